/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>

#include "cli.h"
#include "sandboxes.h"

#define REQUEST_BYTES_MAX (8U << 20)
#define OUT_BYTES_MAX     (64U << 20)

static const struct args_option inspect_options[] = {
	{ "json", 0, ARGS_IGNORED, 0, NULL, "accepted: it is what is printed", NULL },
	{ .name = NULL },
};

/* request.json, or NULL: it is not there any more. */
static struct json *request_read(const struct dirs *dirs, const struct id *id)
{
	AUTO(buf) struct buf text = BUF_INIT(REQUEST_BYTES_MAX);
	autofree char *path = mem_printf("sandboxes/%s/request.json", id->text);
	struct error e = ERROR_INIT;

	return file_read_at(dirs->root_fd, path, &text) < 0 ? NULL
							    : json_parse(buf_span(&text), &e);
}

static int inspect_one(const struct dirs *dirs, const struct sandbox_info *info, void *ctx,
		struct error *e)
{
	AUTO(json) struct json *request = request_read(dirs, &info->state.id);
	struct json_writer w = JSON_WRITER((struct buf *)ctx);

	sandbox_info_format(info, request, dirs, &w);
	return w.failed || buf_append_str(ctx, "\n") < 0
			       ? error_set(e, ERRC_LIMIT, "too much to print")
			       : 0;
}

static int inspect_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	char **operands = NULL;
	int none = 0;
	int r = args_parse(&cmd_inspect, argc, argv, &none, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(buf) struct buf out = BUF_INIT(OUT_BYTES_MAX);
	const struct each_opts opts = { .run = inspect_one, .ctx = &out, .quiet = true };
	int status = sandboxes_each(operands, &opts);

	r = cli_print(&out);
	return status ? status : r;
}

const struct args_command cmd_inspect = {
	.name = "inspect",
	.synopsis = "SANDBOX...",
	.summary = "print all that is known of sandboxes, a JSON object each",
	.options = inspect_options,
	.operands_min = 1,
	.operands_max = -1,
	.run = inspect_run,
};
