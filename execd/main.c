/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/initproto.h>

#include "execd.h"

int main(void)
{
	struct execd x = {
		.init_fd = EXECD_FD_INIT,
		.control_fd = EXECD_FD_CONTROL,
		.config_fd = EXECD_FD_CONFIG,
		.root_fd = EXECD_FD_ROOT,
		.cgroup_fd = EXECD_FD_CGROUP,
		.signal_fd = -1,
	};
	struct error e = ERROR_INIT;

	if (enter(&x, &e) < 0) {
		int r = init_send_error(x.init_fd, &e);

		_exit(error_exit_status(r < 0 ? ERRC_INTERNAL : e.code));
	}
	if (init_send(x.init_fd, INIT_MSG_UP, NULL, 0) < 0) {
		_exit(error_exit_status(ERRC_INTERNAL)); /* nobody is there to be told */
	}
	fd_close(&x.init_fd);
	/* The kernel kills what is left in the pid namespace. */
	_exit(serve(&x));
}
