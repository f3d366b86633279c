/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * keeper - hold one running sandbox: its main process, its terminal or pipes, the signals meant
 * for it, the commands of others, its end. Runs in the command that started it, or in a process of
 * its own; single-threaded.
 */
#ifndef OSBX_KEEPER_H
#define OSBX_KEEPER_H

#include <signal.h>
#include <stdbool.h>

#include <osbx/cgroup.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/execd_proto.h>
#include <osbx/idmap.h>
#include <osbx/keeper_net.h>
#include <osbx/launch.h>
#include <osbx/state.h>

struct keeper;
struct publish;

/* All borrowed, for the keeper's life. */
struct keeper_opts {
	bool detached;    /* output goes to the log below live_fd, input is empty */
	bool interactive; /* forward standard input */
	bool tty;
	bool own_network;       /* the execution API listens on a port inside, too */
	struct keeper_net *net; /* of a private network, ready; NULL: it has another one */
	int in_fd;              /* the caller's descriptors */
	int out_fd;
	int err_fd;
	int stop_signal;               /* what a stop begins with; killed 10 s later */
	struct execd_process *process; /* rows and cols are filled in */
	const struct idmap *map;       /* who is container root outside */
	const struct cgroup *cgroup;   /* to freeze, may be without a directory */
	/* The main process is gone; PID 1 and all others follow. NULL allowed. */
	void (*on_exited)(void *ctx);
	/* Then, if it is so before PID 1 is dead: nothing else runs in the sandbox, and all output
	 * is delivered. NULL allowed. */
	void (*on_quiet)(void *ctx);
	/* Its record, which the keeper changes and saves from keeper_start on. NULL: there is none,
	 * and no control socket (ctl_proto.h) either. */
	struct sandbox_state *state;
	int live_fd;    /* where the state is saved; not used without one */
	int runtime_fd; /* where events are told; likewise */
	/* Published ports, served while the sandbox runs; needs a state. NULL: none. */
	struct publish *publish;
	/* The main process has been started. Failure ends the sandbox. NULL allowed. */
	int (*on_started)(void *ctx, struct error *e);
	void *ctx;
};

/* Block what a keeper will take (all that can be caught but TTIN, TTOU, faults, and those that the
 * caller ignores), before there is anything that an end of this process would leave behind. The
 * caller restores *out_before after keeper_free: without a keeper, what came then has its effect. 0
 * or -errno. */
int keeper_hold_signals(sigset_t *out_before) MUST_CHECK NONNULL(1);
/* Take those signals and make pipes and loop, before the sandbox is launched. NULL on failure. */
struct keeper *keeper_new(const struct keeper_opts *opts, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Restore terminal and signal mask, free. Signals that arrived since are forgotten. */
void keeper_free(struct keeper *k);
AUTO_DEFINE_PTR(keeper, struct keeper, keeper_free);
/* Put the start of the main process on the control channel of an execd that may not be up yet. Its
 * failure to start is reported by keeper_run. */
int keeper_queue(struct keeper *k, int control_fd, struct error *e) MUST_CHECK NONNULL(1, 3);
/* The sandbox is up: watch it. After keeper_queue. */
int keeper_start(struct keeper *k, const struct launch *launch, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Keep the sandbox until PID 1 is dead and all output is delivered. *out_status is the main
 * process's: its exit code, or 128 + signal. Fails with execd's own error when it could not be
 * started (ERRC_NO_COMMAND, ERRC_NOT_EXECUTABLE, …). */
int keeper_run(struct keeper *k, int *out_status, struct error *e) MUST_CHECK NONNULL(1, 2, 3);
/* Status of the main process once that has exited: exit code, or 128 + signal. */
int keeper_status(const struct keeper *k) NONNULL(1);
/* Why it ended, STATE_REASON_*; after keeper_run. Constant text. */
const char *keeper_reason(const struct keeper *k) NONNULL(1);
/* The end is recorded and cleared away: answer those who wait for it. */
void keeper_end(struct keeper *k) NONNULL(1);

#endif
