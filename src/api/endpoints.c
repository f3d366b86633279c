/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/egress.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "api_internal.h"
#include "handlers.h"

#define HOST_BYTES_MAX 255

/* What the client called this server, if that can stand in a URL. */
static const char *host_of(const struct http_req *rq, char out[HOST_BYTES_MAX + 1])
{
	struct span host = http_field(rq, "host");

	if (!host.p || host.n == 0 || host.n > HOST_BYTES_MAX) {
		return "localhost";
	}
	for (size_t i = 0; i < host.n; i++) {
		if (!isalnum((unsigned char)host.p[i]) && !strchr("-._~:[]%", host.p[i])) {
			return "localhost";
		}
	}
	memcpy(out, host.p, host.n);
	out[host.n] = '\0';
	return out;
}

/* -1: answered. */
static int port_read(struct http_req *rq, uint64_t *out_port)
{
	autofree char *text = http_param(rq, 1);

	if (!text || !str_is_digits(text)) {
		api_fail_field(rq, "path", "port", "expected a number");
		return -1;
	}
	if (str_to_u64(text, 65535, out_port) < 0 || *out_port == 0) {
		api_fail(rq, 400, API_INVALID_PORT, "port: expected 1 to 65535");
		return -1;
	}
	return 0;
}

static int query_check(struct http_req *rq)
{
	char *expires = NULL;

	if (http_query(rq, "expires", &expires) < 0) {
		api_fail_field(rq, "query", "", "malformed escape");
		return -1;
	}
	bool is_asked = expires != NULL;

	free(expires);
	if (is_asked) {
		api_fail(rq, 400, API_NOT_SUPPORTED, "expires: signed routes are not supported");
		return -1;
	}
	return 0;
}

/* Who may ask for a way to the policy may have the token, too. */
static void add_token(struct json_writer *w, const struct api *api, const struct id *id)
{
	AUTO(egress) struct egress g = { .closed = NULL };
	struct error e = ERROR_INIT;

	if (egress_find(&api->dirs, id, &g, &e) == 0) {
		json_object_begin(w, "headers");
		json_add_string(w, EGRESS_TOKEN, g.token);
		json_object_end(w);
	}
}

/* Direct and through the server are the same: this server is the only way in. The mount that the
 * client used is kept, for clients that know only one. */
static void endpoint_reply(
		const struct api *api, struct http_req *rq, const struct id *id, uint64_t port)
{
	AUTO(buf) struct buf out = BUF_INIT(4096);
	struct json_writer w = JSON_WRITER(&out);
	char host[HOST_BYTES_MAX + 1];
	bool has_prefix = span_has_prefix(rq->path, span_of("/v1/"));
	autofree char *endpoint = mem_printf("%s%s/sandboxes/%s/proxy/%llu", host_of(rq, host),
			has_prefix ? "/v1" : "", id->text, (unsigned long long)port);

	json_object_begin(&w, NULL);
	json_add_string(&w, "endpoint", endpoint);
	if (port == NETD_PORT) {
		add_token(&w, api, id);
	}
	json_object_end(&w);
	api_json(rq, 200, &out);
}

static void endpoint_work(struct api *api, struct http_req *rq)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	uint64_t port = 0;

	if (port_read(rq, &port) == 0 && api_find(api, rq, &info) == 0) {
		endpoint_reply(api, rq, &info.state.id, port);
	}
}

/* Each creation asks twice, so a worker is only for what has no live record: that it is not there
 * is found out by clearing up. */
void endpoint_get(struct http_req *rq)
{
	AUTO(state) struct sandbox_state s = { .code = SANDBOX_PENDING };
	struct id id;
	uint64_t port = 0;

	if (port_read(rq, &port) < 0 || query_check(rq) < 0) {
		return;
	}
	if (api_live_state(api_of(rq), rq, &id, &s) == 0) {
		endpoint_reply(api_of(rq), rq, &id, port);
	} else {
		api_work_start(rq, endpoint_work);
	}
}
