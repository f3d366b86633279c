/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <osbx/image.h>
#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/str.h>

#include "cli.h"
#include "progress.h"

struct load_args {
	bool quiet;
	bool json;
	const char *name;
	const char *platform;
	uint64_t unpack_max;
};

static const struct args_option load_options[] = {
	{ "json", 0, ARGS_FLAG, offsetof(struct load_args, json), NULL,
			"print the loaded names as a JSON array", NULL },
	{ "name", 0, ARGS_STRING, offsetof(struct load_args, name), "NAME[:TAG]",
			"store the image under this name instead of its own", NULL },
	{ "platform", 0, ARGS_STRING, offsetof(struct load_args, platform), "OS/ARCH",
			"choose this platform of an index instead of the machine's", NULL },
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct load_args, quiet), NULL,
			"no progress; print only the loaded names", NULL },
	{ "unpack-max", 0, ARGS_SIZE, offsetof(struct load_args, unpack_max), "SIZE",
			"largest unpacked size of one image (default 64g)", NULL },
	{ .name = NULL },
};

static int names_print(const struct strv *names, const struct load_args *args)
{
	AUTO(buf) struct buf out = BUF_INIT(LIMIT_STATE_BYTES);
	struct json_writer w = JSON_WRITER(&out);
	int r = 0;

	if (args->json) {
		json_array_begin(&w, NULL);
		strv_for_each(names, i) {
			json_add_string(&w, NULL, names->v[i]);
		}
		json_array_end(&w);
		r = buf_append_str(&out, "\n");
	} else {
		strv_for_each(names, i) {
			autofree char *shown = ref_familiar(names->v[i]);

			r = r < 0 ? r
				  : buf_appendf(&out, args->quiet ? "%s\n" : "loaded %s\n", shown);
		}
	}
	return r < 0 || w.failed ? 125 : cli_print(&out);
}

static int load_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct load_args args = { .quiet = false };
	char **operands = NULL;
	int r = args_parse(&cmd_load, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(ref) struct ref ref = REF_INIT;
	AUTO(cli_store) struct cli_store cs = CLI_STORE_INIT;
	AUTO(strv) struct strv names = STRV_INIT;
	AUTO(progress) struct progress *bars = progress_new(args.quiet || args.json);

	if (ref_parse(operands[0], &ref, &e) < 0 || cli_store_open(&cs, true, &e) < 0) {
		return cli_fail(&e);
	}
	struct image_opts opts = {
		.map = &cs.map,
		.platform = args.platform,
		.unpack_max = args.unpack_max,
		.progress = progress_callbacks(bars),
		.name = args.name,
	};

	r = image_load(cs.store, &ref, &opts, &names, &e);
	progress_free(TAKE_PTR(bars));
	return r < 0 ? cli_fail(&e) : names_print(&names, &args);
}

const struct args_command cmd_load = {
	.name = "load",
	.synopsis = "[options] oci:DIR[:TAG] | oci-archive:FILE[:TAG] | docker-archive:FILE[:NAME]",
	.summary = "load images from a local layout or archive and unpack them",
	.options = load_options,
	.operands_min = 1,
	.operands_max = 1,
	.run = load_run,
};
