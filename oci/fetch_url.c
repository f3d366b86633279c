/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "auth.h"
#include "fetch_url.h"

/* One part as a string of ours; NULL when the address has none. */
static char *part_get(const struct curl_lib *lib, CURLU *u, CURLUPart part, unsigned int flags)
{
	char *theirs = NULL;
	char *ours = NULL;

	if (lib->curl_url_get(u, part, &theirs, flags) == CURLUE_OK) {
		ours = mem_strdup(theirs);
	}
	lib->curl_free(theirs);
	return ours;
}

/* NULL when it is no address. */
static CURLU *url_open(const struct curl_lib *lib, const char *url)
{
	CURLU *u = lib->curl_url();

	if (u && lib->curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK) {
		return u;
	}
	lib->curl_url_cleanup(u);
	return NULL;
}

bool url_is_https(const char *url)
{
	return strncasecmp(url, "https://", 8) == 0;
}

static bool is_http(const char *url)
{
	return strncasecmp(url, "http://", 7) == 0;
}

static int follow(const struct curl_lib *lib, CURLU *u, const char *base, const char *location,
		char **out_url)
{
	autofree char *url = NULL;
	autofree char *user = NULL;
	autofree char *password = NULL;

	if (lib->curl_url_set(u, CURLUPART_URL, location, 0) != CURLUE_OK) {
		return -EINVAL;
	}
	user = part_get(lib, u, CURLUPART_USER, 0);
	password = part_get(lib, u, CURLUPART_PASSWORD, 0);
	if (user || password) {
		return -EACCES;
	}
	/* Browsers keep a fragment; a server never sees it. */
	(void)lib->curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
	url = part_get(lib, u, CURLUPART_URL, 0);
	if (!url || (!is_http(url) && !url_is_https(url))) {
		return -EINVAL;
	}
	if (is_http(url) && url_is_https(base)) {
		return -EPERM;
	}
	if (strlen(url) > FETCH_URL_MAX) {
		return -E2BIG;
	}
	*out_url = TAKE_PTR(url);
	return 0;
}

int url_follow(const struct curl_lib *lib, const char *base, const char *location, char **out_url)
{
	CURLU *u = NULL;
	int rc = 0;

	if (strlen(location) > FETCH_URL_MAX) {
		return -E2BIG;
	}
	u = url_open(lib, base);
	rc = u ? follow(lib, u, base, location, out_url) : -EINVAL;
	lib->curl_url_cleanup(u);
	return rc;
}

static bool part_is_same(const struct curl_lib *lib, CURLU *a, CURLU *b, CURLUPart part)
{
	autofree char *x = part_get(lib, a, part, CURLU_DEFAULT_PORT);
	autofree char *y = part_get(lib, b, part, CURLU_DEFAULT_PORT);

	return x && y && strcasecmp(x, y) == 0;
}

bool url_same_origin(const struct curl_lib *lib, const char *a, const char *b)
{
	CURLU *x = url_open(lib, a);
	CURLU *y = url_open(lib, b);
	bool same = x && y && part_is_same(lib, x, y, CURLUPART_SCHEME) &&
		    part_is_same(lib, x, y, CURLUPART_HOST) &&
		    part_is_same(lib, x, y, CURLUPART_PORT);

	lib->curl_url_cleanup(x);
	lib->curl_url_cleanup(y);
	return same;
}

char *url_place(const struct curl_lib *lib, const char *url)
{
	CURLU *u = url_open(lib, url);
	autofree char *host = NULL;
	autofree char *port = NULL;

	if (u) {
		host = part_get(lib, u, CURLUPART_HOST, 0);
		port = part_get(lib, u, CURLUPART_PORT, 0);
		lib->curl_url_cleanup(u);
	}
	if (!host) {
		return mem_strdup("an address that is not valid");
	}
	return port ? mem_printf("%s:%s", host, port) : TAKE_PTR(host);
}

/* Percent-encoding by the parser itself, which has no other way to encode a string. */
static bool query_add(const struct curl_lib *lib, CURLU *u, const struct url_pair *pair)
{
	AUTO(auth_secret) char *text = mem_printf("%s=%s", pair->name, pair->value);

	return lib->curl_url_set(u, CURLUPART_QUERY, text, CURLU_APPENDQUERY | CURLU_URLENCODE) ==
	       CURLUE_OK;
}

static char *query_url(const struct curl_lib *lib, const char *base, const struct url_pair *pairs,
		size_t n, CURLUPart part)
{
	CURLU *u = url_open(lib, base);
	bool ok = u != NULL;
	char *out = NULL;

	for (size_t i = 0; ok && i < n; i++) {
		ok = !pairs[i].value || query_add(lib, u, &pairs[i]);
	}
	if (ok) {
		out = part_get(lib, u, part, 0);
	}
	lib->curl_url_cleanup(u);
	return out;
}

char *url_add_query(const struct curl_lib *lib, const char *base, const struct url_pair *pairs,
		size_t n)
{
	return query_url(lib, base, pairs, n, CURLUPART_URL);
}

char *url_form(const struct curl_lib *lib, const struct url_pair *pairs, size_t n)
{
	return query_url(lib, "https://form/", pairs, n, CURLUPART_QUERY);
}

void url_proxy_done(struct url_proxy *p)
{
	free(p->url);
	auth_secret_free(p->user);
	auth_secret_free(p->password);
	*p = (struct url_proxy){ .url = NULL };
}

static int proxy_split(const struct curl_lib *lib, CURLU *u, struct url_proxy *out)
{
	static const char *const schemes[] = { "http", "https", "socks4", "socks4a", "socks5",
		"socks5h" };
	autofree char *scheme = part_get(lib, u, CURLUPART_SCHEME, 0);
	bool known = false;

	for (size_t i = 0; scheme && i < ARRAY_SIZE(schemes); i++) {
		known |= str_eq(scheme, schemes[i]);
	}
	if (!known) {
		return -EINVAL;
	}
	out->user = part_get(lib, u, CURLUPART_USER, CURLU_URLDECODE);
	out->password = part_get(lib, u, CURLUPART_PASSWORD, CURLU_URLDECODE);
	(void)lib->curl_url_set(u, CURLUPART_USER, NULL, 0);
	(void)lib->curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
	(void)lib->curl_url_set(u, CURLUPART_PATH, NULL, 0);
	(void)lib->curl_url_set(u, CURLUPART_QUERY, NULL, 0);
	(void)lib->curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
	out->url = part_get(lib, u, CURLUPART_URL, 0);
	return out->url ? 0 : -EINVAL;
}

int url_proxy_parse(const struct curl_lib *lib, const char *text, struct url_proxy *out_proxy)
{
	AUTO(auth_secret)
	char *full = strstr(text, "://") ? mem_strdup(text) : mem_printf("http://%s", text);
	AUTO(url_proxy) struct url_proxy p = { .url = NULL };
	CURLU *u = lib->curl_url();
	int rc = -EINVAL;

	if (u && lib->curl_url_set(u, CURLUPART_URL, full, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK) {
		rc = proxy_split(lib, u, &p);
	}
	lib->curl_url_cleanup(u);
	if (rc == 0) {
		*out_proxy = p;
		p = (struct url_proxy){ .url = NULL };
	}
	return rc;
}
