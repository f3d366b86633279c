/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <osbx/features.h>

#define SONAMES_MAX 2

/* How a library tells its version. */
enum version_form {
	VERSION_FORM_NONE,
	VERSION_FORM_TEXT,    /* const char *f(void) */
	VERSION_FORM_OF_PART, /* const char *f(int): 0 is the whole */
	VERSION_FORM_NUMBERS, /* const unsigned int *f(void): major, minor, micro */
	VERSION_FORM_COUNT,
};

static const struct library {
	const char *name;
	const char *sonames[SONAMES_MAX];
	const char *package;
	const char *without;
	const char *symbol;
	enum version_form form;
} libraries[] = {
	{ "archive", { "libarchive.so.13" }, "libarchive13", "images cannot be unpacked",
			"archive_version_string", VERSION_FORM_TEXT },
	{ "crypto", { "libcrypto.so.3", "libcrypto.so.1.1" }, "libssl3",
			"images cannot be loaded: no digest can be computed", "OpenSSL_version",
			VERSION_FORM_OF_PART },
	{ "curl", { "libcurl.so.4", "libcurl-gnutls.so.4" }, "libcurl4",
			"images cannot be pulled from registries", "curl_version",
			VERSION_FORM_TEXT },
	{ "zlib", { "libz.so.1" }, "zlib1g", "layers compressed by gzip may be unreadable",
			"zlibVersion", VERSION_FORM_TEXT },
	{ "isal", { "libisal.so.2" }, "libisal2", "layers compressed by gzip unpack slower", NULL,
			VERSION_FORM_NONE },
	{ "zstd", { "libzstd.so.1" }, "libzstd1", "layers compressed by zstd cannot be unpacked",
			"ZSTD_versionString", VERSION_FORM_TEXT },
	{ "seccomp", { "libseccomp.so.2" }, "libseccomp2",
			"only the built-in system call filter is there, no --seccomp FILE",
			"seccomp_version", VERSION_FORM_NUMBERS },
	{ "inih", { "libinih.so.1" }, "libinih1", "osbx.conf cannot be read", NULL,
			VERSION_FORM_NONE },
};
_Static_assert(ARRAY_SIZE(libraries) == FEATURES_MAX, "FEATURES_MAX is their number");

static void *library_load(const struct library *lib)
{
	void *handle = NULL;

	for (size_t i = 0; i < SONAMES_MAX && lib->sonames[i] && !handle; i++) {
		handle = dlopen(lib->sonames[i], RTLD_NOW | RTLD_LOCAL);
	}
	return handle;
}

/* "libcurl/7.88.1 OpenSSL/3.0": the first word that is a number. */
static void version_copy(const char *text, char out[FEATURE_TEXT_MAX])
{
	const char *from = text ? strpbrk(text, "0123456789") : NULL;

	if (from) {
		(void)snprintf(out, FEATURE_TEXT_MAX, "%.*s", (int)strcspn(from, " /"), from);
	}
}

static void version_ask(const struct library *lib, void *handle, char out[FEATURE_TEXT_MAX])
{
	void *symbol = lib->symbol ? dlsym(handle, lib->symbol) : NULL;
	const char *(*text)(void) = NULL;
	const char *(*of_part)(int) = NULL;
	const unsigned int *(*numbers)(void) = NULL;
	const unsigned int *v = NULL;

	if (!symbol) {
		return;
	}
	switch (lib->form) {
	case VERSION_FORM_TEXT:
		memcpy(&text, &symbol, sizeof(text));
		version_copy(text(), out);
		break;
	case VERSION_FORM_OF_PART:
		memcpy(&of_part, &symbol, sizeof(of_part));
		version_copy(of_part(0), out);
		break;
	case VERSION_FORM_NUMBERS:
		memcpy(&numbers, &symbol, sizeof(numbers));
		v = numbers();
		(void)snprintf(out, FEATURE_TEXT_MAX, "%u.%u.%u", v[0], v[1], v[2]);
		break;
	case VERSION_FORM_NONE:
	case VERSION_FORM_COUNT:
		break;
	}
}

size_t features_find(struct feature out_features[FEATURES_MAX])
{
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		const struct library *lib = &libraries[i];
		void *handle = library_load(lib);

		out_features[i] = (struct feature){
			.name = lib->name,
			.soname = lib->sonames[0],
			.package = lib->package,
			.without = lib->without,
			.found = handle != NULL,
		};
		if (handle) {
			version_ask(lib, handle, out_features[i].version);
		}
	}
	return ARRAY_SIZE(libraries);
}
