/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * An edit is a row of the table of routes: it makes the new policy out of the one in force and the
 * body, or an error. Edits wait in a list; the first one is being put in force (.change), and only
 * when that has ended is the next one made, so none is lost and none is made of a policy that never
 * was. The request of an edit may vanish meanwhile: the edit stays in the list, its answer is not
 * sent.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include <osbx/buf.h>
#include <osbx/http.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "netd_policy_api.h"

#define BODY_BYTES_MAX (1U << 20)
/* Rules as they are shown, each with its quotes, and the denials. */
#define ANSWER_BYTES_MAX ((size_t)NETPOLICY_RULES_MAX * 2 * NETPOLICY_TARGET_MAX + (256U << 10))
#define CONNS_MAX        64
#define WAITING_MAX      64
#define TOKEN_FIELD      "opensandbox-egress-auth"
#define TEXT_PLAIN       "text/plain; charset=utf-8"

/* Make the new policy in p. *out_reason: a word for the answer, of static duration. */
typedef int (*edit_fn)(
		struct netpolicy *p, struct span body, const char **out_reason, struct error *e);

struct edit {
	struct edit *next;
	struct netd_policy_api *api;
	struct http_req *rq; /* NULL: gone */
	edit_fn make;
	char *body;
	size_t body_n;
	const char *reason;
	struct netpolicy policy;
};

struct netd_policy_api {
	struct netd_policy_api_opts opts;
	struct http_opts http;
	struct http_server *server;
	struct edit *first; /* is being put in force */
	size_t waiting;
};

static struct netd_policy_api *api_of(const struct http_req *rq)
{
	return rq->server_ctx;
}

static void reply_text(struct http_req *rq, int status, const char *text)
{
	http_reply(rq, status, TEXT_PLAIN, span_of(text));
}

static void reply_error(struct http_req *rq, const struct error *e)
{
	reply_text(rq, e->code == ERRC_LIMIT ? 413 : e->code == ERRC_INVALID ? 400 : 500, e->text);
}

static void reply_json(struct http_req *rq, const struct json_writer *w, const struct buf *b)
{
	if (w->failed) {
		reply_text(rq, 500, "the answer is too long");
		return;
	}
	http_reply(rq, 200, "application/json", buf_span(b));
}

/* PolicyStatusResponse of egress-api.yaml. */
static void reply_policy(struct http_req *rq, const char *reason)
{
	const struct netd_policy_api *a = api_of(rq);
	const struct netpolicy *p = a->opts.policy(a->opts.ctx);
	AUTO(buf) struct buf b = BUF_INIT(ANSWER_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&b);

	json_object_begin(&w, NULL);
	json_add_string(&w, "status", "ok");
	json_add_string(&w, "mode", netpolicy_mode(p));
	json_add_string(&w, "enforcementMode", "dns+nft");
	if (reason) {
		json_add_string(&w, "reason", reason);
	}
	netpolicy_format(p, &w, "policy");
	json_object_end(&w);
	reply_json(rq, &w, &b);
}

static void policy_get(struct http_req *rq)
{
	reply_policy(rq, NULL);
}

static bool is_blank(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!isspace((unsigned char)s.p[i])) {
			return false;
		}
	}
	return true;
}

static int edit_replace(
		struct netpolicy *p, struct span body, const char **out_reason, struct error *e)
{
	if (is_blank(body)) {
		netpolicy_done(p);
		netpolicy_init(p);
		p->fallback = NETPOLICY_DENY;
		*out_reason = "policy reset to default deny-all";
		return 0;
	}
	AUTO(json) struct json *v = json_parse(body, e);
	AUTO(netpolicy) struct netpolicy new = { .n = 0 };

	if (!v) {
		return error_wrap(e, "the policy");
	}
	netpolicy_init(&new);
	if (netpolicy_parse(v, &new, e) < 0) {
		return -1;
	}
	netpolicy_done(p);
	*p = new;
	new = (struct netpolicy){ .n = 0 };
	return 0;
}

static int edit_patch(
		struct netpolicy *p, struct span body, const char **out_reason, struct error *e)
{
	AUTO(json) struct json *v = json_parse(body, e);

	*out_reason = NULL;
	return v ? netpolicy_patch(p, v, e) : error_wrap(e, "the rules");
}

static int edit_delete(
		struct netpolicy *p, struct span body, const char **out_reason, struct error *e)
{
	AUTO(json) struct json *v = json_parse(body, e);
	size_t n = 0;

	if (!v) {
		return error_wrap(e, "the targets");
	}
	if (netpolicy_delete(p, v, &n, e) < 0) {
		return -1;
	}
	*out_reason = n == 0 ? "no rule matched" : NULL;
	return 0;
}

static void edit_free(struct edit *d)
{
	if (d->rq) {
		d->rq->on_close = NULL;
	}
	free(d->body);
	netpolicy_done(&d->policy);
	free(d);
}

static void edit_on_close(struct http_req *rq)
{
	struct edit *d = rq->ctx;

	d->rq = NULL;
}

/* Begin with the first edit that can be made. */
static void edits_go(struct netd_policy_api *a)
{
	while (a->first) {
		struct edit *d = a->first;
		const struct span body = { .p = d->body, .n = d->body_n };
		struct error e = ERROR_INIT;

		netpolicy_copy(a->opts.policy(a->opts.ctx), &d->policy);
		if (d->make(&d->policy, body, &d->reason, &e) == 0) {
			a->opts.change(a->opts.ctx, &d->policy);
			return;
		}
		struct http_req *rq = TAKE_PTR(d->rq);

		a->first = d->next;
		a->waiting--;
		edit_free(d);
		if (rq) {
			rq->on_close = NULL;
			reply_error(rq, &e);
		}
	}
}

void netd_policy_api_changed(struct netd_policy_api *a, int errnum)
{
	struct edit *d = a->first;

	if (!d) {
		return;
	}
	struct http_req *rq = TAKE_PTR(d->rq);
	const char *reason = d->reason;

	a->first = d->next;
	a->waiting--;
	edit_free(d);
	if (rq) {
		rq->on_close = NULL;
		if (errnum == 0) {
			reply_policy(rq, reason);
		} else {
			struct error e = ERROR_INIT;

			(void)error_sys(&e, errnum, "put the policy in force");
			reply_error(rq, &e);
		}
	}
	edits_go(a);
}

static void edit_queue(struct http_req *rq, edit_fn make)
{
	struct netd_policy_api *a = api_of(rq);

	if (a->waiting >= WAITING_MAX) {
		http_reply_field(rq, "Retry-After", "1");
		reply_text(rq, 503, "too many edits at once");
		return;
	}
	struct edit *d = mem_new(struct edit);
	struct edit **end = &a->first;

	*d = (struct edit){
		.api = a,
		.rq = rq,
		.make = make,
		.body = mem_dup(rq->body.p ? rq->body.p : "", rq->body.n),
		.body_n = rq->body.n,
	};
	rq->ctx = d;
	rq->on_close = edit_on_close;
	while (*end) {
		end = &(*end)->next;
	}
	*end = d;
	a->waiting++;
	if (a->first == d) {
		edits_go(a);
	}
}

static void policy_put(struct http_req *rq)
{
	edit_queue(rq, edit_replace);
}

static void policy_patch(struct http_req *rq)
{
	edit_queue(rq, edit_patch);
}

static void policy_delete(struct http_req *rq)
{
	edit_queue(rq, edit_delete);
}

static void denials_get(struct http_req *rq)
{
	autofree char *text = NULL;
	AUTO(buf) struct buf b = BUF_INIT(ANSWER_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&b);
	uint64_t after = 0;

	if (http_query(rq, "after", &text) < 0 ||
			(text && str_to_u64(text, UINT64_MAX, &after) < 0)) {
		reply_text(rq, 400, "after: expected a number");
		return;
	}
	netd_denials_format(api_of(rq)->opts.denials, after, &w);
	reply_json(rq, &w, &b);
}

static void healthz(struct http_req *rq)
{
	reply_text(rq, 200, "ok");
}

static const struct http_route policy_routes[] = {
	{ HTTP_GET, "/policy", policy_get, 0, 0 },
	{ HTTP_POST, "/policy", policy_put, 0, BODY_BYTES_MAX },
	{ HTTP_PUT, "/policy", policy_put, 0, BODY_BYTES_MAX },
	{ HTTP_PATCH, "/policy", policy_patch, 0, BODY_BYTES_MAX },
	{ HTTP_DELETE, "/policy", policy_delete, 0, BODY_BYTES_MAX },
	{ HTTP_GET, "/policy/denials", denials_get, 0, 0 },
	{ HTTP_GET, "/healthz", healthz, HTTP_ROUTE_OPEN, 0 },
};

/* Whoever is in the sandbox reaches this port: without the token it is told nothing. */
static bool admit(struct http_req *rq)
{
	const struct netd_policy_api *a = api_of(rq);

	if ((rq->route && (rq->route->flags & HTTP_ROUTE_OPEN)) ||
			http_secret_eq(http_field(rq, TOKEN_FIELD), span_of(a->opts.token))) {
		return true;
	}
	reply_text(rq, 401, "unauthorized");
	return false;
}

static const char *describe(struct http_req *rq, int status, const char *what, struct buf *out)
{
	(void)rq;
	if (buf_append_str(out, what ? what : http_reason(status)) < 0) {
		out->n = 0;
	}
	return TEXT_PLAIN;
}

struct netd_policy_api *netd_policy_api_new(
		struct loop *loop, int listen_fd, const struct netd_policy_api_opts *opts)
{
	AUTO(netd_policy_api) struct netd_policy_api *a = mem_new(struct netd_policy_api);

	a->opts = *opts;
	a->http = (struct http_opts){
		.routes = policy_routes,
		.routes_n = ARRAY_SIZE(policy_routes),
		.admit = admit,
		.describe = describe,
		.conns_max = CONNS_MAX,
		/* The sandbox can take all that there are. */
		.makes_room = true,
		.ctx = a,
	};
	a->server = http_server_new(loop, &a->http);
	int r = a->server ? http_listen(a->server, listen_fd, 0) : -errno;

	if (r < 0) {
		errno = -r;
		return NULL;
	}
	return TAKE_PTR(a);
}

void netd_policy_api_free(struct netd_policy_api *a)
{
	if (!a) {
		return;
	}
	http_server_free(a->server);
	while (a->first) {
		struct edit *d = a->first;

		a->first = d->next;
		edit_free(d);
	}
	free(a);
}
