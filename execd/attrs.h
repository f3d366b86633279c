/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * attrs - owner, group and mode of a file as the execution API writes them.
 *
 * A mode is the digits of its octal number read as a decimal one: 755 is 0755. Nothing and 0 leave
 * it as it is, as names that the sandbox does not know leave owner and group.
 */
#ifndef OSBX_EXECD_ATTRS_H
#define OSBX_EXECD_ATTRS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/json.h>

#include "files.h"

struct attrs {
	uid_t uid; /* (uid_t)-1: as it is */
	gid_t gid; /* (gid_t)-1: as it is */
	mode_t mode;
	bool has_mode; /* false: as it is */
};

#define ATTRS_INIT                                 \
	{                                          \
		.uid = (uid_t)-1, .gid = (gid_t)-1 \
	}

/* What a file is, as answers tell it. */
struct fileinfo {
	mode_t mode;
	uid_t uid;
	gid_t gid;
	uint64_t size;
	int64_t modified_ms; /* mtime and ctime */
	int64_t changed_ms;
};

/* Digits of an octal number, 0 to 7777. 0 or -EINVAL. */
int attrs_mode_parse(uint64_t digits, mode_t *out_mode) MUST_CHECK NONNULL(2);
/* The same the other way round. */
unsigned int attrs_mode_digits(mode_t mode);
/* The members "owner", "group" and "mode" of an object; NULL: nothing. */
int attrs_parse(struct files *f, const struct json *v, struct attrs *out,
		struct error *e) MUST_CHECK NONNULL(1, 3, 4);
/* Set them on an open object, also an O_PATH one; the path is for the error. */
int attrs_apply(const struct files *f, int fd, const struct attrs *a, const char *path,
		struct error *e) MUST_CHECK NONNULL(1, 3, 4, 5);

struct fileinfo fileinfo_of(const struct stat *st) NONNULL(1);
/* An object with all that is known; name is NULL in an array. */
void fileinfo_write(struct json_writer *w, const char *name, const char *path,
		const struct fileinfo *info, struct passwd_book *names) NONNULL(1, 3, 4, 5);

#endif
