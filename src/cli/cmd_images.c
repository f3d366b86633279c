/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <osbx/image.h>
#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/str.h>

#include "cli.h"

#define DIGEST_SHOWN 12

struct images_args {
	bool json;
	bool quiet;
};

static const struct args_option images_options[] = {
	{ "json", 0, ARGS_FLAG, offsetof(struct images_args, json), NULL, "print a JSON array",
			NULL },
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct images_args, quiet), NULL, "print digests only",
			NULL },
	{ .name = NULL },
};

static void entry_json(struct json_writer *w, const struct image_entry *entry)
{
	autofree char *shown = entry->name ? ref_familiar(entry->name) : NULL;

	json_object_begin(w, NULL);
	json_add_string(w, "name", shown);
	json_add_string(w, "fullName", entry->name);
	json_add_string(w, "digest", entry->manifest.text);
	json_add_string(w, "platform", entry->platform);
	json_add_string(w, "created", entry->created);
	json_add_u64(w, "size", entry->size);
	json_add_u64(w, "layers", entry->layers_n);
	json_add_bool(w, "unpacked", entry->unpacked);
	json_object_end(w);
}

static int list_json(const struct image_list *list, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_array_begin(&w, NULL);
	for (size_t i = 0; i < list->n; i++) {
		entry_json(&w, &list->v[i]);
	}
	json_array_end(&w);
	return w.failed ? -1 : buf_append_str(out, "\n");
}

static int list_table(const struct image_list *list, struct buf *out)
{
	int r = buf_appendf(out, "%-40s %-12s %-14s %10s %6s\n", "NAME", "DIGEST", "PLATFORM",
			"SIZE", "LAYERS");

	for (size_t i = 0; r == 0 && i < list->n; i++) {
		const struct image_entry *entry = &list->v[i];
		autofree char *name = entry->name ? ref_familiar(entry->name) : NULL;
		char size[24];

		str_from_size(entry->size, size, sizeof(size));
		r = buf_appendf(out, "%-40s %.*s %-14s %10s %6zu\n", name ? name : "<none>",
				DIGEST_SHOWN, digest_hex(&entry->manifest), entry->platform, size,
				entry->layers_n);
	}
	return r;
}

static int list_digests(const struct image_list *list, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->n; i++) {
		r = buf_appendf(out, "%s\n", list->v[i].manifest.text);
	}
	return r;
}

static int images_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct images_args args = { .json = false };
	char **operands = NULL;
	int r = args_parse(&cmd_images, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(cli_store) struct cli_store cs = CLI_STORE_INIT;
	AUTO(image_list) struct image_list list = { .n = 0 };
	AUTO(buf) struct buf out = BUF_INIT(16U << 20);

	if (cli_store_open(&cs, true, &e) < 0 || image_list(cs.store, &cs.map, &list, &e) < 0) {
		return cli_fail(&e);
	}
	r = args.json    ? list_json(&list, &out)
	    : args.quiet ? list_digests(&list, &out)
			 : list_table(&list, &out);
	return r < 0 ? 125 : cli_print(&out);
}

const struct args_command cmd_images = {
	.name = "images",
	.synopsis = "[options]",
	.summary = "list the images in the store",
	.options = images_options,
	.operands_max = 0,
	.run = images_run,
};
