/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/image.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "cli.h"

struct save_args {
	const char *output;
};

static const struct args_option save_options[] = {
	{ "output", 'o', ARGS_STRING, offsetof(struct save_args, output), "FILE",
			"write the oci-archive to FILE instead of standard output", NULL },
	{ .name = NULL },
};

/* A file appears under its name only when it is complete. */
static int save_to_file(struct store *st, const char *path, const struct ref *refs, size_t n,
		struct error *e)
{
	autofree char *part = mem_printf("%s.part", path);
	autoclose int fd = fd_open(part, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0) {
		return error_sys(e, -fd, "%s", part);
	}
	if (image_save(st, refs, n, fd, e) < 0) {
		(void)unlink(part);
		return -1;
	}
	if (fsync(fd) < 0 || rename(part, path) < 0) {
		(void)error_sys(e, errno, "%s", path);
		(void)unlink(part);
		return -1;
	}
	return 0;
}

static int save_refs(char **names, size_t n, const char *output, struct error *e)
{
	AUTO(cli_store) struct cli_store cs = CLI_STORE_INIT;
	autofree struct ref *refs = mem_array(n, sizeof(*refs));
	int r = cli_store_open(&cs, true, e);

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = ref_parse(names[i], &refs[i], e);
	}
	if (r == 0) {
		r = output ? save_to_file(cs.store, output, refs, n, e)
			   : image_save(cs.store, refs, n, STDOUT_FILENO, e);
	}
	for (size_t i = 0; i < n; i++) {
		ref_done(&refs[i]);
	}
	return r;
}

static int save_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct save_args args = { .output = NULL };
	char **operands = NULL;
	size_t n = 0;
	int r = args_parse(&cmd_save, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	if (!args.output && isatty(STDOUT_FILENO)) {
		(void)error_set(&e, ERRC_INVALID, "standard output is a terminal");
		(void)error_hint(&e, "osbx save -o FILE IMAGE, or redirect the output");
		return cli_fail(&e);
	}
	while (operands[n]) {
		n++;
	}
	return save_refs(operands, n, args.output, &e) < 0 ? cli_fail(&e) : 0;
}

const struct args_command cmd_save = {
	.name = "save",
	.synopsis = "[options] IMAGE...",
	.summary = "write images as an oci-archive",
	.options = save_options,
	.operands_min = 1,
	.operands_max = -1,
	.run = save_run,
};
