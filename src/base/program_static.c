/* SPDX-License-Identifier: Apache-2.0 */
/* The other implementation of program.h, in the static program alone. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/full_image.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/program.h>
#include <osbx/sys.h>

static char path[LIMIT_PATH_BYTES];
static char **program_argv;

void program_begin(char **argv)
{
	size_t n = 0;

	while (argv[n]) {
		n++;
	}
	/* A copy: reading options moves the operands to the front. */
	program_argv = mem_array(n + 1, sizeof(*program_argv));
	memcpy(program_argv, argv, n * sizeof(*program_argv));
}

const char *program_path(void)
{
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = '\0';
	return path;
}

int program_full(struct error *e)
{
	char *name = program_argv[0];
	autoclose int fd = fd_memfd_sealed("osbx", full_image, full_image_size, true);

	if (fd < 0) {
		return error_sys(e, -fd, "put osbx into memory");
	}
	if (program_path()[0] == '/') {
		program_argv[0] = path;
	}
	int r = sys_execveat(fd, program_argv, environ);

	program_argv[0] = name;
	(void)error_sys(e, -r, "execute osbx in memory");
	return r == -ENOENT ? error_hint(e, "commands of osbx that are seldom in a hurry need glibc, "
					    "which is missing here: apt install libc6")
			    : -1;
}
