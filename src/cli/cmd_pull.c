/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/config.h>
#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/registry.h>

#include "cli.h"
#include "progress.h"

struct pull_args {
	bool json;
	bool quiet;
	const char *platform;
	int tls_verify; /* as in struct pull_opts */
	uint64_t unpack_max;
};

static int parse_tls_verify(void *out, const char *value, struct error *e)
{
	return cli_parse_tls_verify(&((struct pull_args *)out)->tls_verify, value, e);
}

static const struct args_option pull_options[] = {
	{ "json", 0, ARGS_FLAG, offsetof(struct pull_args, json), NULL,
			"print names, digests and what was pulled as a JSON array", NULL },
	{ "platform", 0, ARGS_STRING, offsetof(struct pull_args, platform), "OS/ARCH",
			"choose this platform of an index instead of the machine's", NULL },
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct pull_args, quiet), NULL,
			"no progress; print only the names", NULL },
	{ "tls-verify", 0, ARGS_CALLBACK, 0, "true|false",
			"check the registry's certificate (default true)", parse_tls_verify },
	{ "unpack-max", 0, ARGS_SIZE, offsetof(struct pull_args, unpack_max), "SIZE",
			"largest unpacked size of one image (default 64g)", NULL },
	{ .name = NULL },
};

static void result_json(struct json_writer *w, const struct pull_result *r, const char *shown)
{
	json_object_begin(w, NULL);
	json_add_string(w, "name", shown);
	json_add_string(w, "fullName", r->name);
	json_add_string(w, "digest", r->image->manifest.text);
	json_add_bool(w, "pulled", r->pulled);
	json_object_end(w);
}

static int result_print(
		const struct pull_result *r, const struct pull_args *args, const char *shown)
{
	AUTO(buf) struct buf out = BUF_INIT((size_t)2 * LIMIT_REF_BYTES);
	int n = args->quiet ? buf_appendf(&out, "%s\n", shown)
		: r->pulled ? buf_appendf(&out, "pulled %s\n", shown)
			    : buf_appendf(&out, "%s is up to date\n", shown);

	return n < 0 ? 125 : cli_print(&out);
}

static int pull_one(struct cli_store *cs, const char *name, const struct pull_args *args,
		const struct config *config, struct pull_result *out_result)
{
	struct error e = ERROR_INIT;
	AUTO(ref) struct ref ref = REF_INIT;
	AUTO(progress) struct progress *bars = progress_new(args->quiet || args->json);
	const struct pull_opts opts = {
		.image = {
			.map = &cs->map,
			.platform = args->platform,
			.unpack_max = args->unpack_max ? args->unpack_max : config->unpack_max,
			.progress = progress_callbacks(bars),
		},
		.config = &config->registries,
		.policy = PULL_ALWAYS,
		.tls_verify = args->tls_verify,
	};

	if (ref_parse(name, &ref, &e) < 0 ||
			image_pull(cs->store, &ref, &opts, out_result, &e) < 0) {
		progress_free(TAKE_PTR(bars));
		return cli_fail(&e);
	}
	return 0;
}

static int pull_all(struct cli_store *cs, char *const *names, const struct pull_args *args,
		const struct config *config)
{
	AUTO(buf) struct buf out = BUF_INIT(LIMIT_STATE_BYTES);
	struct json_writer w = JSON_WRITER(&out);
	int status = 0;

	json_array_begin(&w, NULL);
	for (; *names; names++) {
		AUTO(pull_result) struct pull_result result = { .image = NULL };
		int r = pull_one(cs, *names, args, config, &result);
		autofree char *shown = result.name ? ref_familiar(result.name) : NULL;

		if (r == 0 && args->json) {
			result_json(&w, &result, shown);
		} else if (r == 0) {
			r = result_print(&result, args, shown);
		}
		status = status ? status : r;
	}
	json_array_end(&w);
	if (args->json) {
		int r = w.failed || buf_append_str(&out, "\n") < 0 ? 125 : cli_print(&out);

		status = status ? status : r;
	}
	return status;
}

static int pull_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct pull_args args = { .tls_verify = -1 };
	char **operands = NULL;
	int r = args_parse(&cmd_pull, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(config) struct config config = { .unpack_max = 0 };
	AUTO(cli_store) struct cli_store cs = CLI_STORE_INIT;

	config_init(&config);
	if (config_load(&config, &e) < 0 || cli_store_open(&cs, true, &e) < 0) {
		return cli_fail(&e);
	}
	return pull_all(&cs, operands, &args, &config);
}

const struct args_command cmd_pull = {
	.name = "pull",
	.synopsis = "[options] IMAGE...",
	.summary = "fetch images from registries and unpack them",
	.options = pull_options,
	.operands_min = 1,
	.operands_max = -1,
	.run = pull_run,
};
