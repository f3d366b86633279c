/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libs - libraries that only the unpack helper needs, loaded on demand (libarchive alone costs
 * every exec 1.6 ms), one typed table of symbols each.
 */
#ifndef OSBX_OCI_LIBS_H
#define OSBX_OCI_LIBS_H

#include <archive.h>
#include <archive_entry.h>
#include <stdbool.h>
#include <zlib.h>
#include <zstd.h>
#if OSBX_HAVE_ISAL
#	include <isa-l/igzip_lib.h>
#endif

#include <osbx/compiler.h>
#include <osbx/error.h>

#define LIBS_MEMBER(name) __typeof__(&(name)) name;

#define LIBS_ARCHIVE(X)                    \
	X(archive_read_new)                \
	X(archive_read_free)               \
	X(archive_read_support_format_tar) \
	X(archive_read_open)               \
	X(archive_read_next_header)        \
	X(archive_read_data_block)         \
	X(archive_error_string)            \
	X(archive_entry_pathname)          \
	X(archive_entry_hardlink)          \
	X(archive_entry_symlink)           \
	X(archive_entry_filetype)          \
	X(archive_entry_perm)              \
	X(archive_entry_uid)               \
	X(archive_entry_gid)               \
	X(archive_entry_size)              \
	X(archive_entry_mtime)             \
	X(archive_entry_mtime_nsec)        \
	X(archive_entry_xattr_count)       \
	X(archive_entry_xattr_reset)       \
	X(archive_entry_xattr_next)

#define LIBS_ZLIB(X)     \
	X(inflateInit2_) \
	X(inflate)       \
	X(inflateReset)  \
	X(inflateEnd)

#define LIBS_ZSTD(X)             \
	X(ZSTD_createDStream)    \
	X(ZSTD_freeDStream)      \
	X(ZSTD_initDStream)      \
	X(ZSTD_decompressStream) \
	X(ZSTD_isError)          \
	X(ZSTD_getErrorName)

struct lib_archive {
	LIBS_ARCHIVE(LIBS_MEMBER)
};

struct lib_zlib {
	LIBS_ZLIB(LIBS_MEMBER)
};

struct lib_zstd {
	LIBS_ZSTD(LIBS_MEMBER)
};

#if OSBX_HAVE_ISAL
#	define LIBS_ISAL(X)          \
		X(isal_inflate_init)  \
		X(isal_inflate_reset) \
		X(isal_inflate)

struct lib_isal {
	LIBS_ISAL(LIBS_MEMBER)
};

/* ISA-L, or NULL when it is absent: zlib then inflates. */
const struct lib_isal *lib_isal(void);
#endif

/* Each loads its library at the first call; NULL with ERRC_UNSUPPORTED when it is absent. */
const struct lib_archive *lib_archive(struct error *e) MUST_CHECK NONNULL(1);
const struct lib_zlib *lib_zlib(struct error *e) MUST_CHECK NONNULL(1);
const struct lib_zstd *lib_zstd(struct error *e) MUST_CHECK NONNULL(1);
/* Load whatever the helper may come to need, before its chroot and syscall filter. Only
 * libarchive must be there: a layer that needs another one says so itself. */
int libs_load(struct error *e) MUST_CHECK NONNULL(1);

#endif
