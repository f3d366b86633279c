/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_syscall NAME[,NAME] COMMAND…: run COMMAND under a filter that answers ENOSYS to the named
 * system calls, as an old kernel or an outer container does. Forces the fallbacks.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned int nr;
} calls[] = {
	{ "openat2", 437 },
	{ "clone3", 435 },
	{ "close_range", 436 },
	{ "mount_setattr", 442 },
	{ "copy_file_range", 326 },
	{ "statx", 332 },
	{ "sethostname", 170 },
};

static int find(const char *name, unsigned int *out_nr)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(calls[i].name, name) == 0) {
			*out_nr = calls[i].nr;
			return 0;
		}
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct sock_filter insns[2 * 8 + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	unsigned short n = 1;

	if (argc < 3) {
		(void)fprintf(stderr, "usage: no_syscall NAME[,NAME] COMMAND...\n");
		return 2;
	}
	for (char *rest = argv[1]; rest && n < 2 * 8;) {
		char *name = strsep(&rest, ",");
		unsigned int nr = 0;

		if (find(name, &nr) < 0) {
			(void)fprintf(stderr, "no_syscall: %s: unknown\n", name);
			return 2;
		}
		insns[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
		insns[n++] = (struct sock_filter)BPF_STMT(
				BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	}
	insns[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	struct sock_fprog prog = { .len = n, .filter = insns };

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 &&
			(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
					syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) <
							0)) {
		perror("no_syscall: seccomp");
		return 2;
	}
	(void)execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
