/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /sandboxes/ID/networkpolicy: the policy API of the sandbox with the token that is on record,
 * whatever token the client sends. What is malformed is refused here, with its place.
 */
#include <string.h>

#include <osbx/mem.h>
#include <osbx/netpolicy.h>
#include <osbx/policy_call.h>
#include <osbx/str.h>

#include "api_internal.h"
#include "handlers.h"

/* Would the policy API take it? A policy stands in for the one that is in force. */
static int check_put(const struct json *v, struct error *e)
{
	struct netpolicy p;

	if (!json_is_object(v)) {
		return error_set(e, ERRC_INVALID, "expected an object");
	}
	if (netpolicy_parse(v, &p, e) < 0) {
		return -1;
	}
	netpolicy_done(&p);
	return 0;
}

static int check_patch(const struct json *v, struct error *e)
{
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };

	netpolicy_init(&p);
	return netpolicy_patch(&p, v, e);
}

static int check_delete(const struct json *v, struct error *e)
{
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };
	size_t n = 0;

	netpolicy_init(&p);
	if (json_is_array(v) && json_size(v) == 0) {
		return error_set(e, ERRC_INVALID, "expected at least one target");
	}
	return netpolicy_delete(&p, v, &n, e);
}

static const struct method_row {
	enum http_method method;
	const char *name;
	int (*check)(const struct json *v, struct error *e);
} methods[] = {
	{ HTTP_GET, "GET", NULL },
	{ HTTP_PUT, "PUT", check_put },
	{ HTTP_PATCH, "PATCH", check_patch },
	{ HTTP_DELETE, "DELETE", check_delete },
};

static const struct method_row *method_find(const struct http_req *rq)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		if (methods[i].method == rq->method) {
			return &methods[i];
		}
	}
	return &methods[0];
}

/* -1: answered. */
static int body_check(struct http_req *rq, int (*check)(const struct json *v, struct error *e))
{
	struct error e = ERROR_INIT;
	AUTO(json) struct json *root = json_parse(rq->body, &e);

	if (root && check(root, &e) == 0) {
		return 0;
	}
	if (e.code == ERRC_LIMIT) {
		api_fail(rq, 413, API_INVALID_PARAMETER, "%s", e.text);
		return -1;
	}
	const char *colon = root ? strstr(e.text, ": ") : NULL;
	autofree char *field = mem_dup(e.text, colon ? (size_t)(colon - e.text) : 0);

	api_fail_field(rq, "body", field, colon ? colon + 2 : e.text);
	return -1;
}

/* Its refusals are text. */
static void reply_pass(struct http_req *rq, int status, const struct buf *body)
{
	char text[256];

	if (status == 200) {
		api_json(rq, 200, body);
		return;
	}
	str_printable(body->n > 0 ? body->p : "no answer", text, sizeof(text));
	api_fail(rq, status == 400 || status == 413 ? status : 502, API_INVALID_PARAMETER,
			"network policy: %s", text);
}

static void policy_work(struct api *api, struct http_req *rq)
{
	const struct method_row *row = method_find(rq);
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	AUTO(buf) struct buf body = BUF_INIT(POLICY_ANSWER_MAX);
	struct policy_call call = { .method = row->name, .target = "/policy" };
	struct error e = ERROR_INIT;
	int status = 0;

	if ((row->check && body_check(rq, row->check) < 0) || api_find(api, rq, &info) < 0) {
		return;
	}
	if (row->check) {
		call.body = rq->body;
	}
	if (policy_call(&api->dirs, &info.state.id, &call, &status, &body, &e) < 0) {
		api_fail_error(rq, e.code == ERRC_CONFLICT ? API_NOT_RUNNING : NULL, &e);
		return;
	}
	reply_pass(rq, status, &body);
}

void sandbox_policy(struct http_req *rq)
{
	api_work_start(rq, policy_work);
}
