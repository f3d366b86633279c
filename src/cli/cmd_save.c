/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/id.h>
#include <osbx/image.h>
#include <osbx/mem.h>
#include <osbx/path.h>
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

#define RANDOM_BYTES 8U

/* A name beside path that nobody can have guessed. Caller frees. */
static char *name_beside(const char *path)
{
	char random[2 * RANDOM_BYTES + 1];
	autofree char *dir = mem_dup(path, (size_t)(path_last(path) - path));

	id_random_hex(random, RANDOM_BYTES);
	return mem_printf("%s.osbx-save-%s", dir, random);
}

/* A file in the directory of path: without a name until it is complete where the file system can
 * (a save that is killed leaves nothing), else under the name part. fd or -errno. */
static int staged_open(const char *path, const char *part, mode_t mode, bool *out_named)
{
	autofree char *dir = mem_dup(path, (size_t)(path_last(path) - path));
	int fd = fd_open(dir[0] ? dir : ".", O_WRONLY | O_TMPFILE, mode);

	*out_named = fd < 0;
	return fd < 0 ? fd_open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode) : fd;
}

static int staged_name(int fd, const char *part)
{
	char self[32];

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, part, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int staged_publish(int fd, bool named, const char *part, const char *path)
{
	int r = fsync(fd) < 0 ? -errno : 0;

	if (r == 0 && !named) {
		r = staged_name(fd, part);
	}
	return r == 0 && rename(part, path) < 0 ? -errno : r;
}

/* A file appears under its name only when it is complete. */
static int save_staged(struct store *st, const char *path, mode_t mode, const struct ref *refs,
		size_t n, struct error *e)
{
	autofree char *part = name_beside(path);
	bool named = false;
	autoclose int fd = staged_open(path, part, mode, &named);

	if (fd < 0) {
		return error_sys(e, -fd, "%s", path);
	}
	int r = image_save(st, refs, n, fd, e);

	if (r == 0) {
		int sysno = staged_publish(fd, named, part, path);

		r = sysno < 0 ? error_sys(e, -sysno, "%s", path) : 0;
	}
	if (r < 0) {
		(void)unlink(part);
	}
	return r;
}

/* What is no regular file (a device, a named pipe, a link such as /dev/stdout) stays what it is. */
static int save_through(struct store *st, const char *path, const struct ref *refs, size_t n,
		struct error *e)
{
	autoclose int fd = fd_open(path, O_WRONLY | O_TRUNC, 0);

	return fd < 0 ? error_sys(e, -fd, "%s", path) : image_save(st, refs, n, fd, e);
}

static int save_to_file(struct store *st, const char *path, const struct ref *refs, size_t n,
		struct error *e)
{
	struct stat old;

	if (lstat(path, &old) < 0) {
		return errno == ENOENT ? save_staged(st, path, 0644, refs, n, e)
				       : error_sys(e, errno, "%s", path);
	}
	return S_ISREG(old.st_mode) ? save_staged(st, path, old.st_mode & 0777, refs, n, e)
				    : save_through(st, path, refs, n, e);
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
