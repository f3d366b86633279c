/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/image.h>
#include <osbx/json.h>
#include <osbx/limits.h>

#include "cli.h"

struct rmi_args {
	bool force;
	bool json;
	bool quiet;
};

static const struct args_option rmi_options[] = {
	{ "force", 'f', ARGS_FLAG, offsetof(struct rmi_args, force), NULL,
			"remove an image that has several names", NULL },
	{ "json", 0, ARGS_FLAG, offsetof(struct rmi_args, json), NULL,
			"print what was removed as a JSON array", NULL },
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct rmi_args, quiet), NULL, "print nothing", NULL },
	{ .name = NULL },
};

static int removed_print(const struct strv *removed, const struct rmi_args *args)
{
	AUTO(buf) struct buf out = BUF_INIT(LIMIT_STATE_BYTES);
	struct json_writer w = JSON_WRITER(&out);
	int r = 0;

	if (args->quiet) {
		return 0;
	}
	if (args->json) {
		json_array_begin(&w, NULL);
	}
	strv_for_each(removed, i) {
		if (args->json) {
			json_add_string(&w, NULL, removed->v[i]);
		} else if (r == 0) {
			autofree char *shown = ref_familiar(removed->v[i]);

			r = buf_appendf(&out, "removed %s\n", shown);
		}
	}
	if (args->json) {
		json_array_end(&w);
		r = buf_append_str(&out, "\n");
	}
	return r < 0 || w.failed ? 125 : cli_print(&out);
}

static int rmi_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct rmi_args args = { .force = false };
	char **operands = NULL;
	int r = args_parse(&cmd_rmi, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(cli_store) struct cli_store cs = CLI_STORE_INIT;
	AUTO(strv) struct strv removed = STRV_INIT;
	int status = 0;

	if (cli_store_open(&cs, false, &e) < 0) {
		return cli_fail(&e);
	}
	for (; *operands; operands++) {
		AUTO(ref) struct ref ref = REF_INIT;

		if (ref_parse(*operands, &ref, &e) < 0 ||
				image_remove(cs.store, &ref, args.force, &removed, &e) < 0) {
			status = cli_fail(&e);
			error_clear(&e);
		}
	}
	r = removed_print(&removed, &args);
	if (removed.n > 0) {
		int freed = cli_collect(&cs, &e);

		return freed < 0 ? cli_fail(&e) : status | r;
	}
	return status ? status : r;
}

const struct args_command cmd_rmi = {
	.name = "rmi",
	.synopsis = "[options] IMAGE...",
	.summary = "remove images by name or digest, and what only they used",
	.options = rmi_options,
	.operands_min = 1,
	.operands_max = -1,
	.run = rmi_run,
};

static const struct args_option tag_options[] = { { .name = NULL } };

static int tag_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	char **operands = NULL;
	int none = 0;
	int r = args_parse(&cmd_tag, argc, argv, &none, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(cli_store) struct cli_store cs = CLI_STORE_INIT;
	AUTO(ref) struct ref from = REF_INIT;
	AUTO(ref) struct ref to = REF_INIT;

	if (ref_parse(operands[0], &from, &e) < 0 || ref_parse(operands[1], &to, &e) < 0 ||
			cli_store_open(&cs, true, &e) < 0 ||
			image_tag(cs.store, &from, &to, &e) < 0) {
		return cli_fail(&e);
	}
	return 0;
}

const struct args_command cmd_tag = {
	.name = "tag",
	.synopsis = "IMAGE NAME[:TAG]",
	.summary = "give an image one more name",
	.options = tag_options,
	.operands_min = 2,
	.operands_max = 2,
	.run = tag_run,
};
