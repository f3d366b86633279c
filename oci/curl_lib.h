/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curl_lib - libcurl, loaded on demand by the fetch helper only (it costs every exec 5 ms): one
 * typed table of symbols.
 */
#ifndef OSBX_OCI_CURL_LIB_H
#define OSBX_OCI_CURL_LIB_H

/* Type checks by macro would hide the names of the table's members. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stdbool.h>

#include <osbx/compiler.h>
#include <osbx/error.h>

#define CURL_LIB(X)                 \
	X(curl_global_init)         \
	X(curl_version_info)        \
	X(curl_easy_init)           \
	X(curl_easy_perform)        \
	X(curl_easy_setopt)         \
	X(curl_easy_getinfo)        \
	X(curl_easy_cleanup)        \
	X(curl_multi_init)          \
	X(curl_multi_setopt)        \
	X(curl_multi_add_handle)    \
	X(curl_multi_remove_handle) \
	X(curl_multi_perform)       \
	X(curl_multi_poll)          \
	X(curl_multi_info_read)     \
	X(curl_slist_append)        \
	X(curl_slist_free_all)      \
	X(curl_url)                 \
	X(curl_url_cleanup)         \
	X(curl_url_get)             \
	X(curl_url_set)             \
	X(curl_free)

#define CURL_LIB_MEMBER(name) __typeof__(&(name)) name;

struct curl_lib {
	CURL_LIB(CURL_LIB_MEMBER)
	bool is_openssl;    /* else GnuTLS or another */
	const char *cainfo; /* the bundle of certificates it was built for, or NULL */
	const char *capath; /* and the directory */
};

/* Load and initialise the library: it reads its configuration and that of its TLS library now.
 * NULL with ERRC_UNSUPPORTED when it is absent, too old, or lacks TLS or a resolver that does not
 * block. */
const struct curl_lib *curl_lib_load(struct error *e) MUST_CHECK NONNULL(1);

#endif
