/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that the keeper starts, and what it is told of them. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <osbx/cleanup.h>

#include "code.h"
#include "execd.h"

void answer(const struct execd *x, enum execd_msg type, const void *payload, uint32_t n, int fd)
{
	if (execd_send(x->control_fd, type, payload, n, &fd, fd >= 0 ? 1 : 0) < 0) {
		loop_stop(x->loop, EXECD_STATUS_CHANNEL);
	}
}

void answer_failed(const struct execd *x, uint32_t tag, const struct error *e)
{
	const struct execd_failed failed = { .tag = tag, .error = *e };

	answer(x, EXECD_MSG_FAILED, &failed, sizeof(failed), -1);
}

static void keeper_on_started(void *ctx, pid_t pid, int master_fd)
{
	const struct process *p = ctx;
	const struct execd_started started = { .tag = p->tag, .pid = pid };
	autoclose int fd = master_fd;

	answer(p->execd, EXECD_MSG_STARTED, &started, sizeof(started), fd);
	if (p->flags & EXECD_START_MAIN) {
		code_gate_arm(p->execd);
	}
}

static void keeper_on_failed(void *ctx, const struct error *e)
{
	const struct process *p = ctx;

	answer_failed(p->execd, p->tag, e);
}

/* Whatever lives in the namespace is our descendant, and an orphan our child. */
static bool is_alone(void)
{
	siginfo_t si = { .si_pid = 0 };

	return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

static void keeper_on_exited(void *ctx, const siginfo_t *end)
{
	const struct process *p = ctx;
	bool by_itself = end->si_code == CLD_EXITED;
	const struct execd_exited exited = {
		.tag = p->tag,
		.status = by_itself ? end->si_status : 128 + end->si_status,
		.signal = by_itself ? 0 : end->si_status,
		.alone = (p->flags & EXECD_START_MAIN) && is_alone(),
	};

	answer(p->execd, EXECD_MSG_EXITED, &exited, sizeof(exited), -1);
}

int process_start(struct execd *x, const struct execd_start *start, const int *fds, struct error *e)
{
	struct child c = { .spec_fd = fds[0], .stdio = { -1, -1, -1 } };
	const struct process init = {
		.tag = start->tag,
		.flags = start->flags,
		.calls = {
			.on_started = keeper_on_started,
			.on_failed = keeper_on_failed,
			.on_exited = keeper_on_exited,
		},
		.execd = x,
	};

	if (start->tag & EXECD_TAG_API) {
		return error_set(e, ERRC_INVALID, "process tag %u is not one of the keeper's",
				start->tag);
	}
	for (size_t i = 0; i < ARRAY_SIZE(c.stdio) && !(start->flags & EXECD_START_TTY); i++) {
		c.stdio[i] = fds[1 + i];
	}
	if (process_launch(&init, &c, e) < 0) {
		return -1;
	}
	if (start->flags & EXECD_START_MAIN) {
		process_keep_main(x, fds[0]);
	}
	return 0;
}
