/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_url - addresses that registries give, by libcurl's own parser: what is checked here is
 * what is connected to.
 */
#ifndef OSBX_OCI_FETCH_URL_H
#define OSBX_OCI_FETCH_URL_H

#include <stdbool.h>
#include <stddef.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>

#include "curl_lib.h"

#define FETCH_URL_MAX 16384 /* signed addresses of blob stores have some 2,000 bytes */

/* Follow a Location from base. Caller frees *out_url. 0, -EINVAL (no http or https address),
 * -EPERM (from https to http), -EACCES (credentials in it), -E2BIG. */
int url_follow(const struct curl_lib *lib, const char *base, const char *location, char **out_url)
		NONNULL(1, 2, 3, 4) MUST_CHECK;
/* Same scheme, host and port? */
bool url_same_origin(const struct curl_lib *lib, const char *a, const char *b) NONNULL(1, 2, 3);
bool url_is_https(const char *url) NONNULL(1);
/* "host" or "host:port", all that people are shown of an address: the rest may be a secret. Caller
 * frees; never NULL. */
char *url_place(const struct curl_lib *lib, const char *url) NONNULL(1, 2) MUST_CHECK;

struct url_pair {
	const char *name;
	const char *value; /* NULL: left out */
};

/* Add to the query of an address. Caller frees; NULL when base is no address. */
char *url_add_query(const struct curl_lib *lib, const char *base, const struct url_pair *pairs,
		size_t n) NONNULL(1, 2, 3) MUST_CHECK;
/* The same pairs as the body of a form. Caller frees; it may be a secret. */
char *url_form(const struct curl_lib *lib, const struct url_pair *pairs, size_t n)
		NONNULL(1, 2) MUST_CHECK;

/* A proxy without its credentials, which error texts of libcurl would show. */
struct url_proxy {
	char *url;
	char *user;
	char *password;
};

void url_proxy_done(struct url_proxy *p);
AUTO_DEFINE(url_proxy, struct url_proxy, url_proxy_done);
/* Read the value of a variable like https_proxy. 0 or -EINVAL. */
int url_proxy_parse(const struct curl_lib *lib, const char *text, struct url_proxy *out_proxy)
		NONNULL(1, 2, 3) MUST_CHECK;

#endif
