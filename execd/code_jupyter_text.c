/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <osbx/mem.h>
#include <osbx/span.h>
#include <osbx/str.h>

#include "code_jupyter.h"

#define URL_MAX        1024
#define LANGUAGES_MAX  256 /* bytes of a list for a message */
#define SAFE_IN_A_PATH "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
#define PATH_BYTES     SAFE_IN_A_PATH "/.~%"

void jupyter_place_done(struct jupyter_place *p)
{
	free(p->host);
	free(p->base);
	*p = (struct jupyter_place){ .port = 0 };
}

static bool is_loopback(struct span host)
{
	return span_eq(host, span_of("localhost")) || span_eq(host, span_of("[::1]")) ||
	       (span_has_prefix(host, span_of("127.")) && host.n <= strlen("127.255.255.255") &&
			       strspn(host.p, "0123456789.") >= host.n);
}

static int place_bad(struct error *e, const char *what)
{
	return error_set(e, ERRC_INVALID, "%s of the sandbox: %s", JUPYTER_HOST_VARIABLE, what);
}

int jupyter_place_parse(const char *url, struct jupyter_place *out, struct error *e)
{
	const char *rest = str_after(url, "http://");
	uint64_t port = 80;

	if (!rest || strlen(url) > URL_MAX) {
		return place_bad(e, "is not an URL that begins with http://");
	}
	size_t place_n = strcspn(rest, "/?#");
	/* The colons of an address are within its brackets. */
	const char *bracket = memchr(rest, ']', place_n);
	const char *from = bracket ? bracket : rest;
	const char *colon = memchr(from, ':', place_n - (size_t)(from - rest));
	struct span host = { .p = rest, .n = colon ? (size_t)(colon - rest) : place_n };

	if (!is_loopback(host)) {
		(void)place_bad(e, "is not on the sandbox's own loopback");
		return error_hint(e, "only a server at 127.0.0.1 in the sandbox is used");
	}
	if (colon) {
		autofree char *digits = mem_dup(colon + 1, place_n - host.n - 1);

		if (str_to_u64(digits, UINT16_MAX, &port) < 0 || port == 0) {
			return place_bad(e, "has a bad port");
		}
	}
	const char *base = rest + place_n;
	size_t base_n = strlen(base);

	if (strspn(base, PATH_BYTES) != base_n) {
		return place_bad(e, "has a bad path");
	}
	while (base_n > 0 && base[base_n - 1] == '/') {
		base_n--;
	}
	*out = (struct jupyter_place){
		.port = (uint16_t)port,
		.host = mem_dup(rest, place_n),
		.base = mem_dup(base, base_n),
	};
	return 0;
}

bool jupyter_id_is_valid(const char *id)
{
	return id && str_is_made_of(id, SAFE_IN_A_PATH) && strlen(id) <= JUPYTER_ID_MAX;
}

static const char *kernel_language(const struct json *kernel)
{
	const char *language = json_string(json_get(json_get(kernel, "spec"), "language"));

	return language ? language : "";
}

const char *jupyter_kernel_find(const struct json *specs, const char *language)
{
	const char *last = NULL;

	json_for_each(kernel, json_get(specs, "kernelspecs")) {
		const char *name = json_name(kernel);

		if (!name || strcasecmp(kernel_language(kernel), language) != 0) {
			continue;
		}
		if (!str_eq(name, "python3")) {
			return name;
		}
		last = name;
	}
	return last;
}

void jupyter_languages_list(const struct json *specs, struct buf *out)
{
	json_for_each(kernel, json_get(specs, "kernelspecs")) {
		char language[JUPYTER_ID_MAX];

		str_printable(kernel_language(kernel), language, sizeof(language));
		if (language[0] && out->n + strlen(language) < LANGUAGES_MAX) {
			(void)!buf_appendf(out, "%s%s", out->n > 0 ? ", " : "", language);
		}
	}
}

static void content_put(const struct jupyter_request *r, struct json_writer *w)
{
	json_object_begin(w, "content");
	if (r->code) {
		json_add_string(w, "code", r->code);
		json_add_bool(w, "silent", r->is_silent);
		json_add_bool(w, "store_history", !r->is_silent);
		json_object_begin(w, "user_expressions");
		json_object_end(w);
		json_add_bool(w, "allow_stdin", false);
		/* There is never a second request to be given up after a failure, but one that
		 * comes soon after it would be. */
		json_add_bool(w, "stop_on_error", false);
	}
	json_object_end(w);
}

void jupyter_request_put(const struct jupyter_request *r, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	char id[JUPYTER_ID_MAX + 32];

	(void)snprintf(id, sizeof(id), "%.*s-%llu", JUPYTER_ID_MAX, r->session,
			(unsigned long long)r->n);
	json_object_begin(&w, NULL);
	json_object_begin(&w, "header");
	json_add_string(&w, "msg_id", id);
	json_add_string(&w, "msg_type", r->type);
	json_add_string(&w, "username", "osbx");
	json_add_string(&w, "session", r->session);
	json_add_string(&w, "version", "5.3");
	json_object_end(&w);
	json_object_begin(&w, "parent_header");
	json_object_end(&w);
	json_object_begin(&w, "metadata");
	json_object_end(&w);
	content_put(r, &w);
	json_add_string(&w, "channel", r->channel);
	json_array_begin(&w, "buffers");
	json_array_end(&w);
	json_object_end(&w);
}

/* Pieces of code around an object of variables, and around a directory; both as JSON, whose strings
 * and objects are literals of these languages, too. */
static const struct prelude {
	const char *language;
	const char *envs[2];
	const char *cwd[2];
} preludes[] = {
	{ "python", { "__import__('os').environ.update(", ")\n" },
			{ "__import__('os').chdir(", ")\n" } },
	{ "javascript", { "Object.assign(process.env, ", ");\n" }, { "process.chdir(", ");\n" } },
	{ "typescript", { "Object.assign(process.env, ", ");\n" }, { "process.chdir(", ");\n" } },
};

static void quoted_put(struct buf *out, const char *text)
{
	int r = buf_append_str(out, "'");

	for (const char *at = text; r == 0 && *at; at++) {
		r = *at == '\'' ? buf_append_str(out, "'\\''") : buf_append(out, at, 1);
	}
	(void)r;
	(void)!buf_append_str(out, "'");
}

static void prelude_bash(const char *cwd, const struct strv *envs, struct buf *out)
{
	strv_for_each(envs, i) {
		const char *equals = strchr(envs->v[i], '=');

		(void)!buf_appendf(out, "export %.*s=", (int)(equals - envs->v[i]), envs->v[i]);
		quoted_put(out, equals + 1);
		(void)!buf_append_str(out, "\n");
	}
	if (cwd) {
		(void)!buf_append_str(out, "cd ");
		quoted_put(out, cwd);
		(void)!buf_append_str(out, "\n");
	}
}

static void prelude_put(
		const struct prelude *p, const char *cwd, const struct strv *envs, struct buf *out)
{
	if (envs->n > 0) {
		struct json_writer w = JSON_WRITER(out);

		(void)!buf_append_str(out, p->envs[0]);
		json_object_begin(&w, NULL);
		strv_for_each(envs, i) {
			const char *equals = strchr(envs->v[i], '=');
			autofree char *name = mem_dup(envs->v[i], (size_t)(equals - envs->v[i]));

			json_add_string(&w, name, equals + 1);
		}
		json_object_end(&w);
		(void)!buf_append_str(out, p->envs[1]);
	}
	if (cwd) {
		/* As an element, for a document is an object or an array. */
		struct json_writer w = JSON_WRITER(out);

		(void)!buf_append_str(out, p->cwd[0]);
		json_array_begin(&w, NULL);
		json_add_string(&w, NULL, cwd);
		json_array_end(&w);
		(void)!buf_append_str(out, "[0]");
		(void)!buf_append_str(out, p->cwd[1]);
	}
}

int jupyter_prelude(const char *language, const char *cwd, const struct strv *envs, char **out_code,
		struct error *e)
{
	AUTO(buf) struct buf out = BUF_INIT(8U << 20);

	if (!cwd && envs->n == 0) {
		*out_code = NULL;
		return 0;
	}
	if (str_eq(language, "bash")) {
		prelude_bash(cwd, envs, &out);
		*out_code = buf_take(&out);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(preludes); i++) {
		if (str_eq(preludes[i].language, language)) {
			prelude_put(&preludes[i], cwd, envs, &out);
			*out_code = buf_take(&out);
			return 0;
		}
	}
	if (envs->n > 0) {
		return error_set(e, ERRC_UNSUPPORTED,
				"variables for a kernel of %.32s in a Jupyter server", language);
	}
	*out_code = NULL;
	return 0;
}

static enum jupyter_kind status_kind(const struct json *content)
{
	const char *state = json_string(json_get(content, "execution_state"));

	if (!state) {
		return JUPYTER_OTHER;
	}
	if (str_eq(state, "dead") || str_eq(state, "restarting") ||
			str_eq(state, "autorestarting")) {
		return JUPYTER_DEAD;
	}
	return str_eq(state, "idle") ? JUPYTER_IDLE : JUPYTER_OTHER;
}

static const struct {
	const char *type;
	enum jupyter_kind kind;
} message_kinds[] = {
	{ "stream", JUPYTER_STREAM },
	{ "execute_result", JUPYTER_RESULT },
	{ "display_data", JUPYTER_DISPLAY },
	{ "update_display_data", JUPYTER_DISPLAY },
	{ "error", JUPYTER_ERROR },
	{ "execute_reply", JUPYTER_REPLY },
	{ "kernel_info_reply", JUPYTER_INFO },
	{ "usage_reply", JUPYTER_USAGE },
};

void jupyter_message_read(const struct json *document, struct jupyter_message *out)
{
	const struct json *header = json_get(document, "header");
	const char *type = json_string(json_get(header, "msg_type"));
	const char *parent = json_string(json_get(json_get(document, "parent_header"), "msg_id"));

	*out = (struct jupyter_message){
		.parent = parent ? parent : "",
		.content = json_get(document, "content"),
	};
	if (!type) {
		return;
	}
	if (str_eq(type, "status")) {
		out->kind = status_kind(out->content);
	}
	for (size_t i = 0; i < ARRAY_SIZE(message_kinds); i++) {
		if (str_eq(message_kinds[i].type, type)) {
			out->kind = message_kinds[i].kind;
		}
	}
}
