/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/copy.h>
#include <osbx/execd_proto.h>
#include <osbx/fd.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "copy.h"

#define ROOT_FD 3

/* PID 1's own descriptors are no business of a process that is the user's; all but three go. */
static int descriptors_drop(int root_fd, int report_fd, struct error *e)
{
	/* The report may have the number we want. */
	if (root_fd != ROOT_FD && dup2(root_fd, ROOT_FD) < 0) {
		return error_sys(e, errno, "copy the descriptor of the root");
	}
	if (report_fd != ROOT_FD) {
		fd_close(&report_fd);
	}
	int r = sys_close_range(ROOT_FD + 1, UINT_MAX, 0);

	return r < 0 ? error_sys(e, -r, "close descriptors") : 0;
}

static int copy(const struct strv *argv, struct copy_result *result, struct error *e)
{
	uint64_t flags = 0;
	bool pack = argv->n == EXECD_COPY_ARGS && str_eq(argv->v[0], EXECD_COPY_PACK);

	if (argv->n != EXECD_COPY_ARGS || (!pack && !str_eq(argv->v[0], EXECD_COPY_UNPACK)) ||
			str_to_u64(argv->v[1], COPY_FLAGS, &flags) < 0 || argv->v[2][0] != '/') {
		return error_set(e, ERRC_INVALID, "request to copy");
	}
	const struct copy_opts opts = {
		.root_fd = ROOT_FD,
		.path = argv->v[2],
		.flags = (unsigned int)flags,
		.stream_fd = pack ? STDOUT_FILENO : STDIN_FILENO,
	};

	return pack ? copy_pack(&opts, result, e) : copy_unpack(&opts, result, e);
}

void copy_run(int root_fd, int report_fd, const struct strv *argv)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct copy_report report = { .magic = COPY_REPORT_MAGIC };
	struct copy_result result = { .left_out = 0 };

	/* A reader that has gone, and a file larger than the sandbox's limit, are errors to tell.
	 */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigaction(SIGXFSZ, &ignore, NULL);
	(void)umask(0);
	int r = descriptors_drop(root_fd, report_fd, &report.error);

	if (r == 0) {
		r = copy(argv, &result, &report.error);
	}
	report.left_out = result.left_out;
	report.stream = result.stream;
	_exit(fd_write_all(STDERR_FILENO, &report, sizeof(report)) < 0 || r < 0 ? 1 : 0);
}
