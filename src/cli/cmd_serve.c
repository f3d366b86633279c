/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/api.h>
#include <osbx/config.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "cli.h"

#define KEY_ENV "OSBX_API_KEY"

struct serve_args {
	struct strv listen;
	struct strv host_paths;
	const char *key_file;
	const char *limits;
	const char *create_wait;
	const char *idle_exit;
	const char *group;
	uint64_t max_sandboxes;
	uint64_t key_sandboxes;
	uint64_t rate;
};

static void serve_args_done(struct serve_args *a)
{
	strv_done(&a->listen);
	strv_done(&a->host_paths);
}
AUTO_DEFINE(serve_args, struct serve_args, serve_args_done);

#define ARG(member) offsetof(struct serve_args, member)

static const struct args_option serve_options[] = {
	{ "api-key-file", 0, ARGS_STRING, ARG(key_file), "FILE",
			"keys that clients must show, one a line, [NAME:]SECRET", NULL },
	{ "create-wait", 0, ARGS_STRING, ARG(create_wait), "DURATION",
			"answer Pending when an image is still being pulled then, default 20s",
			NULL },
	{ "host-path", 0, ARGS_LIST, ARG(host_paths), "DIR",
			"directory that volumes may lie below; may be repeated", NULL },
	{ "idle-exit", 0, ARGS_STRING, ARG(idle_exit), "DURATION",
			"end when nobody was connected for so long", NULL },
	{ "key-sandboxes", 0, ARGS_U64, ARG(key_sandboxes), "N",
			"refuse to create more while so many of one key are alive", NULL },
	{ "limits", 0, ARGS_STRING, ARG(limits), "enforce|best-effort",
			"what becomes of a limit that cannot be enforced", NULL },
	{ "listen", 0, ARGS_LIST, ARG(listen), "unix:PATH|tcp:ADDRESS:PORT",
			"where to listen; may be repeated", NULL },
	{ "max-sandboxes", 0, ARGS_U64, ARG(max_sandboxes), "N",
			"refuse to create more while so many are alive", NULL },
	{ "rate", 0, ARGS_U64, ARG(rate), "N", "creations a minute and key", NULL },
	{ "socket-group", 0, ARGS_STRING, ARG(group), "GROUP",
			"group that may connect to the default socket", NULL },
	{ .name = NULL },
};

static int duration_set(int64_t *out, const char *name, const char *text, struct error *e)
{
	return text && str_to_duration(text, out) < 0
			       ? error_set(e, ERRC_INVALID, "option --%s: %s", name, text)
			       : 0;
}

static int strings_set(
		struct strv *out, const struct strv *args, const struct strv *conf, struct error *e)
{
	const struct strv *from = args->n > 0 ? args : conf;

	return strv_add_all(out, strv_get(from)) < 0 ? error_set(e, ERRC_LIMIT, "too many options")
						     : 0;
}

static int host_paths_set(struct api_opts *o, const struct strv *from, struct error *e)
{
	strv_for_each(from, i) {
		char *path = path_normalise(from->v[i]);
		bool is_absolute = from->v[i][0] == '/';

		if (strv_take(&o->host_paths, path) < 0 || !is_absolute) {
			return error_set(e, ERRC_INVALID, "option --host-path: %s is not absolute",
					from->v[i]);
		}
	}
	return 0;
}

static int limits_set(struct api_opts *o, const char *text, struct error *e)
{
	if (!text) {
		return 0;
	}
	if (!str_eq(text, "enforce") && !str_eq(text, "best-effort")) {
		return error_set(e, ERRC_INVALID, "option --limits: enforce or best-effort");
	}
	o->best_effort = str_eq(text, "best-effort");
	return 0;
}

/* A key in the environment is for a service manager's credentials, and for trying out. */
static int keys_set(struct api_opts *o, const char *file, struct error *e)
{
	const char *secret = getenv(KEY_ENV);

	if (file && api_opts_add_key_file(o, file, e) < 0) {
		return -1;
	}
	if (!secret || secret[0] == '\0') {
		return 0;
	}
	if (api_opts_add_key(o, "environment", secret, e) < 0) {
		return -1;
	}
	/* Keepers are no business of it. */
	return unsetenv(KEY_ENV) < 0 ? error_set(e, ERRC_INTERNAL, "environment") : 0;
}

static int opts_make(const struct serve_args *a, struct api_opts *o, struct error *e)
{
	AUTO(config) struct config c = { .unpack_max = 0 };

	config_init(&c);
	if (config_load(&c, e) < 0) {
		return -1;
	}
	if (c.serve_create_wait_ms >= 0) {
		o->create_wait_ms = c.serve_create_wait_ms;
	}
	o->timeout_max_ms = c.timeout_max_ms;
	o->network = c.network;
	o->deny_webhook = TAKE_PTR(c.deny_webhook);
	o->sandboxes_max = a->max_sandboxes ? a->max_sandboxes : c.serve_sandboxes_max;
	o->key_sandboxes = a->key_sandboxes;
	o->key_rate = a->rate;
	o->socket_group = a->group ? mem_strdup(a->group) : NULL;
	if (strings_set(&o->listen, &a->listen, &c.serve_listen, e) < 0 ||
			host_paths_set(o,
					a->host_paths.n > 0 ? &a->host_paths : &c.serve_host_paths,
					e) < 0 ||
			limits_set(o, a->limits, e) < 0 ||
			duration_set(&o->create_wait_ms, "create-wait", a->create_wait, e) < 0 ||
			duration_set(&o->idle_exit_ms, "idle-exit", a->idle_exit, e) < 0) {
		return -1;
	}
	return keys_set(o, a->key_file ? a->key_file : c.serve_key_file, e);
}

static int serve_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	AUTO(serve_args) struct serve_args args = { .rate = 0 };
	AUTO(api_opts) struct api_opts opts = { .keys_n = 0 };
	char **operands = NULL;
	int r = args_parse(&cmd_serve, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	api_opts_init(&opts);
	if (opts_make(&args, &opts, &e) < 0 || api_serve(&opts, &e) < 0) {
		return cli_fail(&e);
	}
	return 0;
}

const struct args_command cmd_serve = {
	.name = "serve",
	.synopsis = "[options]",
	.summary = "serve the OpenSandbox API",
	.options = serve_options,
	.operands_max = 0,
	.run = serve_run,
};
