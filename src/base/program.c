/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <osbx/limits.h>
#include <osbx/program.h>
#include <osbx/str.h>
#include <osbx/sys.h>

static char path[LIMIT_PATH_BYTES];

void program_begin(char **argv)
{
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = '\0';
	/* Executed from memory by the static program, which puts its own path there. */
	if (str_after(path, "/memfd:") && argv[0]) {
		(void)snprintf(path, sizeof(path), "%s", argv[0]);
		/* The name would be that of the memory, or the number of a descriptor. */
		(void)!sys_prctl(PR_SET_NAME, (unsigned long)"osbx");
	}
}

int program_full(struct error *e)
{
	(void)e;
	return 0;
}

const char *program_path(void)
{
	return path;
}
