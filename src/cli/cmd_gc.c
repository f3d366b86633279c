/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/sandbox.h>
#include <osbx/str.h>

#include "cli.h"

struct gc_args {
	bool dry_run;
	bool json;
	bool kept;
	bool quiet;
};

static const struct args_option gc_options[] = {
	{ "dry-run", 'n', ARGS_FLAG, offsetof(struct gc_args, dry_run), NULL,
			"only say what would be removed", NULL },
	{ "json", 0, ARGS_FLAG, offsetof(struct gc_args, json), NULL,
			"print what was removed as a JSON object", NULL },
	{ "kept", 0, ARGS_FLAG, offsetof(struct gc_args, kept), NULL,
			"also remove the files of \"run --keep\"", NULL },
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct gc_args, quiet), NULL, "print nothing", NULL },
	{ .name = NULL },
};

static int result_print(const struct sandbox_gc_result *r, const struct gc_args *args)
{
	AUTO(buf) struct buf out = BUF_INIT(LIMIT_STATE_BYTES);
	char size[32];

	if (args->quiet) {
		return 0;
	}
	str_from_size(r->store.bytes, size, sizeof(size));
	int n = buf_appendf(&out,
			"%s %" PRIu64 " sandboxes, %" PRIu64 " blobs, %" PRIu64 " layers, %" PRIu64
			" unfinished: %s\n",
			args->dry_run ? "would remove" : "removed", r->sandboxes + r->kept,
			r->store.blobs, r->store.layers, r->store.staging, size);

	if (n == 0 && r->failed > 0) {
		n = buf_appendf(&out, "%" PRIu64 " left-overs are in use still\n", r->failed);
	}
	return n < 0 ? 125 : cli_print(&out);
}

static int result_print_json(const struct sandbox_gc_result *r)
{
	AUTO(buf) struct buf out = BUF_INIT(LIMIT_STATE_BYTES);
	struct json_writer w = JSON_WRITER(&out);

	json_object_begin(&w, NULL);
	json_add_u64(&w, "sandboxes", r->sandboxes);
	json_add_u64(&w, "kept", r->kept);
	json_add_u64(&w, "names", r->names);
	json_add_u64(&w, "failed", r->failed);
	json_add_u64(&w, "blobs", r->store.blobs);
	json_add_u64(&w, "layers", r->store.layers);
	json_add_u64(&w, "staging", r->store.staging);
	json_add_u64(&w, "bytes", r->store.bytes);
	json_object_end(&w);
	return w.failed || buf_append_str(&out, "\n") < 0 ? 125 : cli_print(&out);
}

int cli_collect(struct cli_store *cs, struct error *e)
{
	const struct sandbox_gc_opts opts = { .dry_run = false };
	struct sandbox_gc_result result;

	return sandbox_gc(&cs->dirs, cs->store, &cs->map, &opts, &result, e);
}

static int gc_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct gc_args args = { .quiet = false };
	char **operands = NULL;
	int r = args_parse(&cmd_gc, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(cli_store) struct cli_store cs = CLI_STORE_INIT;
	const struct sandbox_gc_opts opts = { .dry_run = args.dry_run, .kept = args.kept };
	struct sandbox_gc_result result;

	if (cli_store_open(&cs, false, &e) < 0 ||
			sandbox_gc(&cs.dirs, cs.store, &cs.map, &opts, &result, &e) < 0) {
		return cli_fail(&e);
	}
	return args.json ? result_print_json(&result) : result_print(&result, &args);
}

const struct args_command cmd_gc = {
	.name = "gc",
	.synopsis = "[options]",
	.summary = "remove what no image and no live sandbox uses",
	.options = gc_options,
	.operands_max = 0,
	.run = gc_run,
};
