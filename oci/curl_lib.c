/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include <osbx/str.h>

#include "curl_lib.h"

#define SYMBOL(f) { .name = #f, .offset = offsetof(struct curl_lib, f) },

static const struct {
	const char *name;
	size_t offset;
} symbols[] = { CURL_LIB(SYMBOL) };

/* By order of preference: the build with OpenSSL is what most distributions call libcurl. */
static const char *const sonames[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

static struct curl_lib table;

static bool symbols_find(void *handle)
{
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		void *symbol = dlsym(handle, symbols[i].name);

		if (!symbol) {
			return false;
		}
		memcpy((char *)&table + symbols[i].offset, (void *)&symbol, sizeof(symbol));
	}
	return true;
}

static bool library_open(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(sonames); i++) {
		void *handle = dlopen(sonames[i], RTLD_NOW | RTLD_LOCAL);

		if (handle && symbols_find(handle)) {
			return true;
		}
	}
	return false;
}

const struct curl_lib *curl_lib_load(struct error *e)
{
	const long needed = CURL_VERSION_SSL | CURL_VERSION_ASYNCHDNS;
	const curl_version_info_data *info = NULL;

	if (!library_open()) {
		(void)error_set(e, ERRC_UNSUPPORTED, "load %s: library not found", sonames[0]);
		(void)error_hint(e, "install libcurl 7.66 or later (Debian: libcurl4)");
		return NULL;
	}
	if (table.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		(void)error_set(e, ERRC_UNSUPPORTED, "initialise libcurl");
		return NULL;
	}
	info = table.curl_version_info(CURLVERSION_NOW);
	if ((info->features & needed) != needed || !info->ssl_version) {
		(void)error_set(e, ERRC_UNSUPPORTED,
				"libcurl %s was built without TLS or a threaded resolver",
				info->version);
		return NULL;
	}
	table.is_openssl = str_after(info->ssl_version, "OpenSSL/") != NULL;
	if (info->age >= CURLVERSION_SEVENTH) {
		table.cainfo = info->cainfo;
		table.capath = info->capath;
	}
	return &table;
}
