/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/utsname.h>

#include <osbx/features.h>
#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/str.h>

#include "cli.h"

struct version_args {
	bool json;
};

/* What a reader of a report wants to know beside the number. */
struct about {
	struct utsname kernel;
	char ids[ERROR_TEXT_MAX]; /* id mode, or why there is none */
	struct feature features[FEATURES_MAX];
	size_t features_n;
};

static const struct args_option version_options[] = {
	{ "json", 0, ARGS_FLAG, offsetof(struct version_args, json), NULL, "print a JSON object",
			NULL },
	{ .name = NULL },
};

static int about_fill(struct about *about, struct error *e)
{
	struct error none = ERROR_INIT;
	struct idmap map;

	if (uname(&about->kernel) < 0) {
		return error_sys(e, errno, "uname");
	}
	if (idmap_choose(&map, &none) < 0) {
		error_render(&none, about->ids, sizeof(about->ids));
	} else {
		str_printable(idmap_mode_name(map.mode), about->ids, sizeof(about->ids));
	}
	about->features_n = features_find(about->features);
	return 0;
}

static int about_json(const struct about *about, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_object_begin(&w, NULL);
	json_add_string(&w, "version", OSBX_VERSION);
	json_add_string(&w, "kernel", about->kernel.release);
	json_add_string(&w, "machine", about->kernel.machine);
	json_add_string(&w, "ids", about->ids);
	json_array_begin(&w, "libraries");
	for (size_t i = 0; i < about->features_n; i++) {
		const struct feature *f = &about->features[i];

		json_object_begin(&w, NULL);
		json_add_string(&w, "name", f->name);
		json_add_string(&w, "soname", f->soname);
		json_add_bool(&w, "found", f->found);
		if (f->version[0] != '\0') {
			json_add_string(&w, "version", f->version);
		}
		json_object_end(&w);
	}
	json_array_end(&w);
	json_object_end(&w);
	return w.failed ? -1 : buf_append_str(out, "\n");
}

static int about_text(const struct about *about, struct buf *out)
{
	int r = buf_appendf(out, "osbx %s\n%-8s %s %s %s\n%-8s %s\n", OSBX_VERSION, "kernel",
			about->kernel.sysname, about->kernel.release, about->kernel.machine, "ids",
			about->ids);

	for (size_t i = 0; i < about->features_n && r == 0; i++) {
		const struct feature *f = &about->features[i];

		r = f->found ? buf_appendf(out, "%-8s %s\n", f->name,
					       f->version[0] ? f->version : "found")
			     : buf_appendf(out, "%-8s not found (%s): %s\n", f->name, f->soname,
					       f->without);
	}
	return r;
}

int cli_version_print(void)
{
	AUTO(buf) struct buf text = BUF_INIT(256);

	return buf_append_str(&text, "osbx " OSBX_VERSION "\n") < 0 ? 125 : cli_print(&text);
}

static int version_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct version_args args = { .json = false };
	char **operands = NULL;
	int r = args_parse(&cmd_version, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(buf) struct buf out = BUF_INIT(LIMIT_STATE_BYTES);
	struct about about = { .features_n = 0 };

	if (about_fill(&about, &e) < 0) {
		return cli_fail(&e);
	}
	r = args.json ? about_json(&about, &out) : about_text(&about, &out);
	return r < 0 ? 125 : cli_print(&out);
}

const struct args_command cmd_version = {
	.name = "version",
	.synopsis = "[options]",
	.summary = "print the version, and what this build can use here",
	.options = version_options,
	.operands_max = 0,
	.run = version_run,
};
