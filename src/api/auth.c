/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * With keys, every route but the open ones needs one. Without keys whoever can connect may do
 * everything, so the ways to connect are few: a socket file that its directory guards, and the
 * loopback. A browser can be made to connect to the loopback by any page it shows: without keys,
 * requests that a page of another origin sent are refused, and so are names of hosts that somebody
 * else may have pointed here (DNS rebinding).
 *
 * What a sandbox serves is shown below this server's own origin (proxy.c), so a page of this origin
 * may be a guest's: no page at all may ask for more than what is passed on to sandboxes.
 */
#include <string.h>
#include <strings.h>

#include <osbx/clock.h>
#include <osbx/str.h>

#include "auth.h"

#define MINUTE_MS (60LL * 1000)

static const struct api_key *key_of(const struct api *api, struct span secret)
{
	const struct api_key *found = NULL;

	/* All of them: how long it takes tells nothing of which. */
	for (size_t i = 0; i < api->opts->keys_n; i++) {
		if (http_secret_eq(secret, span_of(api->opts->keys[i].secret))) {
			found = &api->opts->keys[i];
		}
	}
	return found;
}

const struct api_key *auth_key(const struct http_req *rq)
{
	return key_of(api_of(rq), http_field(rq, "open-sandbox-api-key"));
}

/* Also with dots that are escaped: who is asked next may take them for what they stand for. */
static bool has_dotdot(struct span path)
{
	size_t dots = 0;
	size_t i = 0;

	while (i < path.n && dots < 2) {
		bool escaped = path.n - i >= 3 && strncasecmp(path.p + i, "%2e", 3) == 0;

		dots = escaped || path.p[i] == '.' ? dots + 1 : 0;
		i += escaped ? 3 : 1;
	}
	return dots == 2;
}

/* The part of a Host or Origin field without its port. */
static struct span host_part(struct span host)
{
	const char *end = NULL;

	if (host.n > 0 && host.p[0] == '[') {
		end = memchr(host.p, ']', host.n);
		return end ? (struct span){ .p = host.p, .n = (size_t)(end + 1 - host.p) } : host;
	}
	end = memchr(host.p, ':', host.n);
	return end ? (struct span){ .p = host.p, .n = (size_t)(end - host.p) } : host;
}

static bool ends_with(struct span s, const char *tail)
{
	size_t n = strlen(tail);

	return s.n >= n && strncasecmp(s.p + s.n - n, tail, n) == 0;
}

/* An address, or a name that can only be this machine's. */
static bool is_own_host(struct span host)
{
	struct span name = host_part(host);

	if (name.n == 0) {
		return false;
	}
	if (name.p[0] == '[') {
		return true;
	}
	for (size_t i = 0; i < name.n; i++) {
		if (!strchr("0123456789.", name.p[i])) {
			return ends_with(name, "localhost") &&
			       (name.n == 9 || name.p[name.n - 10] == '.');
		}
	}
	return true;
}

static bool is_same_origin(struct span origin, struct span host)
{
	const char *at = memmem(origin.p, origin.n, "://", 3);

	return at && span_eq(span_from(origin, (size_t)(at + 3 - origin.p)), host);
}

/* Pages cannot leave these fields out. Sec-Fetch-Site alone comes with a GET of the same origin;
 * "none" is what somebody has typed. */
static bool is_of_page(const struct http_req *rq)
{
	struct span site = http_field(rq, "sec-fetch-site");

	return http_field(rq, "origin").p || (site.p && !span_eq(site, span_of("none")));
}

static bool page_may_ask(const struct http_req *rq, bool is_open)
{
	struct span host = http_field(rq, "host");
	struct span origin = http_field(rq, "origin");

	if (!host.p || !is_own_host(host)) {
		return false;
	}
	return is_open ? !origin.p || is_same_origin(origin, host) : !is_of_page(rq);
}

/* False: answered. */
static bool admit_without_keys(struct http_req *rq, bool is_open)
{
	if (rq->listener != AUTH_LISTENER_TCP || page_may_ask(rq, is_open)) {
		return true;
	}
	api_fail(rq, 403, "FORBIDDEN",
			"a server without keys answers only to localhost and addresses, and to no web "
			"page; give it a key (--api-key-file)");
	return false;
}

bool auth_admit(struct http_req *rq)
{
	struct api *api = api_of(rq);
	bool is_open = rq->route && (rq->route->flags & HTTP_ROUTE_OPEN) && !has_dotdot(rq->path);
	struct span secret = http_field(rq, "open-sandbox-api-key");

	api_request_begin(api);
	if (api->opts->keys_n == 0) {
		return admit_without_keys(rq, is_open);
	}
	if (is_open) {
		return true;
	}
	if (!secret.p || secret.n == 0) {
		api_fail(rq, 401, "MISSING_API_KEY", "the field OPEN-SANDBOX-API-KEY is needed");
		return false;
	}
	if (!key_of(api, secret)) {
		api_fail(rq, 401, "INVALID_API_KEY", "OPEN-SANDBOX-API-KEY: no such key");
		return false;
	}
	return true;
}

/* A window of a minute for each key; without keys, for all. */
bool auth_rate(struct http_req *rq)
{
	struct api *api = api_of(rq);
	const struct api_key *key = auth_key(rq);
	struct auth_window *window = &api->windows[key ? (size_t)(key - api->opts->keys) + 1 : 0];
	int64_t now_ms = clock_boot_ms();

	if (api->opts->key_rate == 0) {
		return true;
	}
	if (now_ms - window->begin_ms >= MINUTE_MS) {
		*window = (struct auth_window){ .begin_ms = now_ms };
	}
	if (window->n < api->opts->key_rate) {
		window->n++;
		return true;
	}
	http_reply_field(rq, "Retry-After", "10");
	api_fail(rq, 429, API_RATE_LIMITED, "more than %llu creations a minute",
			(unsigned long long)api->opts->key_rate);
	return false;
}
