/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include <osbx/log.h>

#include "libs.h"

enum lib_state {
	LIB_STATE_NEW,
	LIB_STATE_LOADED,
	LIB_STATE_ABSENT,
	LIB_STATE_COUNT,
};

struct lib_symbol {
	const char *name;
	size_t offset;
};

struct lib {
	const char *soname;
	const struct lib_symbol *symbols;
	size_t n;
	void *table;
	enum lib_state state;
};

#define SYMBOL_ARCHIVE(f) { .name = #f, .offset = offsetof(struct lib_archive, f) },
#define SYMBOL_ZLIB(f)    { .name = #f, .offset = offsetof(struct lib_zlib, f) },
#define SYMBOL_ZSTD(f)    { .name = #f, .offset = offsetof(struct lib_zstd, f) },

static const struct lib_symbol archive_symbols[] = { LIBS_ARCHIVE(SYMBOL_ARCHIVE) };
static const struct lib_symbol zlib_symbols[] = { LIBS_ZLIB(SYMBOL_ZLIB) };
static const struct lib_symbol zstd_symbols[] = { LIBS_ZSTD(SYMBOL_ZSTD) };

static struct lib_archive archive_table;
static struct lib_zlib zlib_table;
static struct lib_zstd zstd_table;

static struct lib archive_lib = {
	.soname = "libarchive.so.13",
	.symbols = archive_symbols,
	.n = ARRAY_SIZE(archive_symbols),
	.table = &archive_table,
};
static struct lib zlib_lib = {
	.soname = "libz.so.1",
	.symbols = zlib_symbols,
	.n = ARRAY_SIZE(zlib_symbols),
	.table = &zlib_table,
};
static struct lib zstd_lib = {
	.soname = "libzstd.so.1",
	.symbols = zstd_symbols,
	.n = ARRAY_SIZE(zstd_symbols),
	.table = &zstd_table,
};

static enum lib_state lib_open(struct lib *lib)
{
	void *handle = dlopen(lib->soname, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		log_debug("load %s: %s", lib->soname, dlerror());
		return LIB_STATE_ABSENT;
	}
	for (size_t i = 0; i < lib->n; i++) {
		void *symbol = dlsym(handle, lib->symbols[i].name);

		if (!symbol) {
			log_debug("load %s: no %s", lib->soname, lib->symbols[i].name);
			return LIB_STATE_ABSENT;
		}
		memcpy((char *)lib->table + lib->symbols[i].offset, (void *)&symbol,
				sizeof(symbol));
	}
	return LIB_STATE_LOADED;
}

static bool lib_is_loaded(struct lib *lib)
{
	if (lib->state == LIB_STATE_NEW) {
		lib->state = lib_open(lib);
	}
	return lib->state == LIB_STATE_LOADED;
}

static const void *lib_get(struct lib *lib, struct error *e)
{
	if (!lib_is_loaded(lib)) {
		(void)error_set(e, ERRC_UNSUPPORTED, "load %s: library not found", lib->soname);
		(void)error_hint(e, "install the package that has %s", lib->soname);
		return NULL;
	}
	return lib->table;
}

const struct lib_archive *lib_archive(struct error *e)
{
	return lib_get(&archive_lib, e);
}

const struct lib_zlib *lib_zlib(struct error *e)
{
	return lib_get(&zlib_lib, e);
}

const struct lib_zstd *lib_zstd(struct error *e)
{
	return lib_get(&zstd_lib, e);
}

#if OSBX_HAVE_ISAL
#	define SYMBOL_ISAL(f) { .name = #        f, .offset = offsetof(struct lib_isal, f) },

static const struct lib_symbol isal_symbols[] = { LIBS_ISAL(SYMBOL_ISAL) };
static struct lib_isal isal_table;
static struct lib isal_lib = {
	.soname = "libisal.so.2",
	.symbols = isal_symbols,
	.n = ARRAY_SIZE(isal_symbols),
	.table = &isal_table,
};

const struct lib_isal *lib_isal(void)
{
	return lib_is_loaded(&isal_lib) ? &isal_table : NULL;
}
#endif

int libs_load(struct error *e)
{
#if OSBX_HAVE_ISAL
	if (!lib_isal()) {
		(void)lib_is_loaded(&zlib_lib);
	}
#else
	(void)lib_is_loaded(&zlib_lib);
#endif
	(void)lib_is_loaded(&zstd_lib);
	return lib_archive(e) ? 0 : -1;
}
