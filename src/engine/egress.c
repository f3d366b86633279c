/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/egress.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/jsondec.h>
#include <osbx/mem.h>

#define TOKEN_BYTES (NETD_TOKEN_MAX / 2)

void egress_done(struct egress *g)
{
	if (!g) {
		return;
	}
	netpolicy_done(&g->policy);
	explicit_bzero(g->token, sizeof(g->token));
	free(TAKE_PTR(g->closed));
}

void egress_set_token(struct egress *g)
{
	id_random_hex(g->token, TOKEN_BYTES);
}

int egress_save(const struct egress *g, int live_fd, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(EGRESS_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&text);

	json_object_begin(&w, NULL);
	json_add_string(&w, "token", g->token);
	json_add_bool(&w, "bindsNames", g->binds_names);
	json_add_bool(&w, "ping", g->has_ping);
	json_add_string(&w, "closed", g->closed);
	netpolicy_format(&g->policy, &w, "policy");
	json_object_end(&w);
	if (w.failed) {
		return error_set(e, ERRC_LIMIT, "network policy: too large");
	}
	int r = file_write_at(live_fd, EGRESS_FILE, buf_span(&text), false);

	return r < 0 ? error_sys(e, -r, "record the network policy") : 0;
}

/* The record as decoded. */
struct document {
	char *token;
	bool binds_names;
	bool has_ping;
	char *closed;
	struct netpolicy policy;
};

static void document_done(struct document *d)
{
	free(d->token);
	free(d->closed);
	netpolicy_done(&d->policy);
}
AUTO_DEFINE(document, struct document, document_done);

static int read_policy(const struct json *v, void *out, struct error *e)
{
	struct netpolicy *member = out;
	struct netpolicy p;

	if (netpolicy_parse(v, &p, e) < 0) {
		return -1;
	}
	netpolicy_done(member);
	*member = p;
	return 0;
}

#define FIELD(member) offsetof(struct document, member)

static const struct jsondec_field fields[] = {
	{ "token", JSONDEC_STRING, FIELD(token), JSONDEC_REQUIRED, NETD_TOKEN_MAX, NULL, NULL },
	{ "bindsNames", JSONDEC_BOOL, FIELD(binds_names), 0, 0, NULL, NULL },
	{ "ping", JSONDEC_BOOL, FIELD(has_ping), 0, 0, NULL, NULL },
	{ "closed", JSONDEC_STRING, FIELD(closed), 0, 0, NULL, NULL },
	{ "policy", JSONDEC_CUSTOM, FIELD(policy), JSONDEC_REQUIRED, 0, NULL, read_policy },
	{ .name = NULL },
};

int egress_load(int live_fd, struct egress *out_g, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(EGRESS_BYTES_MAX);
	AUTO(document) struct document d = { .token = NULL };
	int r = file_read_at(live_fd, EGRESS_FILE, &text);

	if (r == -ENOENT) {
		return error_set(e, ERRC_NOT_FOUND, "no private network");
	}
	if (r < 0) {
		return error_sys(e, -r, "read " EGRESS_FILE);
	}
	AUTO(json) struct json *root = json_parse(buf_span(&text), e);

	if (!root || jsondec_object(root, fields, &d, e) < 0) {
		return error_wrap(e, EGRESS_FILE);
	}
	struct egress g = {
		.policy = TAKE(d.policy, (struct netpolicy){ .n = 0 }),
		.binds_names = d.binds_names,
		.has_ping = d.has_ping,
		.closed = TAKE_PTR(d.closed),
	};

	memcpy(g.token, d.token, strlen(d.token) + 1);
	*out_g = g;
	return 0;
}

int egress_find(const struct dirs *dirs, const struct id *id, struct egress *out_g, struct error *e)
{
	autofree char *path = mem_printf("sandboxes/%s", id->text);
	autoclose int live_fd =
			fd_open_at(dirs->runtime_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (live_fd < 0) {
		return live_fd == -ENOENT ? error_set(e, ERRC_NOT_FOUND, "sandbox %s", id->text)
					  : error_sys(e, -live_fd, "sandbox %s", id->text);
	}
	return egress_load(live_fd, out_g, e);
}

void egress_format(const struct egress *g, struct json_writer *w, const char *name)
{
	json_object_begin(w, name);
	json_add_string(w, "state", g->closed ? "closed" : "enforced");
	json_add_string(w, "closed", g->closed);
	json_add_string(w, "mode", netpolicy_mode(&g->policy));
	json_add_bool(w, "checksNames", g->binds_names);
	json_array_begin(w, "carries");
	json_add_string(w, NULL, "tcp");
	json_add_string(w, NULL, "udp");
	if (g->has_ping) {
		json_add_string(w, NULL, "ping");
	}
	json_array_end(w);
	netpolicy_format(&g->policy, w, "policy");
	json_object_end(w);
}
