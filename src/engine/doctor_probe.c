/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/sys.h>

#include "doctor_internal.h"

/* Each call fails with the errno of its row where it exists: the arguments are refused before any
 * right is asked for, so that an answer of a filter is told from one of the kernel. */
static int probe_openat2(void)
{
	return syscall(SYS_openat2, -1, "", NULL, 0UL) < 0 ? errno : 0;
}

static int probe_clone3(void)
{
	return syscall(SYS_clone3, NULL, 0UL) < 0 ? errno : 0;
}

static int probe_pidfd_open(void)
{
	return syscall(SYS_pidfd_open, -1, 0U) < 0 ? errno : 0;
}

static int probe_open_tree(void)
{
	return syscall(SYS_open_tree, -1, "", (unsigned int)AT_EMPTY_PATH) < 0 ? errno : 0;
}

static int probe_fsconfig(void)
{
	return syscall(SYS_fsconfig, -1, 0U, NULL, NULL, 0) < 0 ? errno : 0;
}

static int probe_mount_setattr(void)
{
	return syscall(SYS_mount_setattr, -1, "", ~0U, NULL, 0UL) < 0 ? errno : 0;
}

static int probe_userns(void)
{
	return -sys_unshare(CLONE_NEWUSER | CLONE_NEWNS);
}

static int probe_mount(void)
{
	return -sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int probe_hostname(void)
{
	int r = sys_unshare(CLONE_NEWUTS);

	return r < 0 ? 0 : -sys_sethostname("osbx");
}

static int probe_setns(void)
{
	return -sys_setns(-1, 0);
}

static const struct {
	const char *name;
	int (*call)(void);
	int there;
} probes[] = {
	[DOCTOR_PROBE_PIDFD_OPEN] = { "pidfd_open", probe_pidfd_open, EINVAL },
	[DOCTOR_PROBE_OPEN_TREE] = { "open_tree", probe_open_tree, EBADF },
	[DOCTOR_PROBE_FSCONFIG] = { "fsconfig", probe_fsconfig, EINVAL },
	[DOCTOR_PROBE_MOUNT_SETATTR] = { "mount_setattr", probe_mount_setattr, EINVAL },
	[DOCTOR_PROBE_USERNS] = { "unshare", probe_userns, 0 },
	[DOCTOR_PROBE_MOUNT] = { "mount", probe_mount, 0 },
	[DOCTOR_PROBE_HOSTNAME] = { "sethostname", probe_hostname, 0 },
	[DOCTOR_PROBE_SETNS] = { "setns", probe_setns, EBADF },
	[DOCTOR_PROBE_OPENAT2] = { "openat2", probe_openat2, EINVAL },
	[DOCTOR_PROBE_CLONE3] = { "clone3", probe_clone3, EINVAL },
};
_Static_assert(ARRAY_SIZE(probes) == DOCTOR_PROBE_COUNT, "probes is complete");

const char *doctor_probe_name(enum doctor_probe probe)
{
	return probes[probe].name;
}

/* In the child: one answer a probe, so that the one that kills is known. */
static NORETURN void probes_tell(int fd)
{
	bool has_userns = false;

	for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
		bool is_inside = i == DOCTOR_PROBE_MOUNT || i == DOCTOR_PROBE_HOSTNAME;
		int r = is_inside && !has_userns ? 0 : probes[i].call();
		int told = r == probes[i].there ? 0 : r;

		has_userns |= i == DOCTOR_PROBE_USERNS && told == 0;
		if (fd_write_all(fd, &told, sizeof(told)) < 0) {
			break;
		}
	}
	_exit(0);
}

void doctor_probe_all(int out_errnos[DOCTOR_PROBE_COUNT])
{
	int ends[2] = { -1, -1 };
	int status = 0;
	size_t n = 0;

	memset(out_errnos, 0, sizeof(*out_errnos) * DOCTOR_PROBE_COUNT);
	if (fd_pipe(ends, 0) < 0) {
		return;
	}
	autoclose int read_end = ends[0];
	autoclose int write_end = ends[1];
	pid_t pid = sys_fork();

	if (pid < 0) {
		return;
	}
	if (pid == 0) {
		probes_tell(write_end);
	}
	fd_close(&write_end);
	while (n < ARRAY_SIZE(probes) &&
			fd_read(read_end, &out_errnos[n], sizeof(out_errnos[n])) > 0) {
		n++;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
	}
	if (n < ARRAY_SIZE(probes) && WIFSIGNALED(status)) {
		out_errnos[n] = EINTR;
	}
}
