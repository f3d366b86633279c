/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper_internal - what the parts of a keeper share: its life (keeper.c), the signals it gets
 * (keeper_signals.c), its time (keeper_ttl.c), the commands of others (keeper_ctl.c).
 */
#ifndef OSBX_ENGINE_KEEPER_INTERNAL_H
#define OSBX_ENGINE_KEEPER_INTERNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/console.h>
#include <osbx/error.h>
#include <osbx/keeper.h>
#include <osbx/loop.h>
#include <osbx/packet.h>

#include "logpump.h"

#define MAIN_TAG      1U
#define STOP_GRACE_MS 10000
/* For what is in a pipe or terminal when the sandbox was ended. */
#define OUTPUT_GRACE_MS 1000

enum keeper_stage {
	KEEPER_NEW,
	KEEPER_QUEUED,
	KEEPER_STARTING,
	KEEPER_RUNNING,
	KEEPER_EXITED,
	KEEPER_DEAD,
	KEEPER_STAGE_COUNT,
};

struct ctl;

struct keeper {
	struct keeper_opts opts;
	enum keeper_stage stage;
	const struct launch *launch;
	struct loop *loop;
	struct console *console; /* one of the two */
	struct logpump *pump;
	struct ctl *ctl; /* NULL: nobody can speak to this keeper */
	struct loop_source control;
	struct loop_source pidfd;
	struct loop_source signals;
	struct loop_source grace;
	struct loop_source expiry;
	struct loop_source jump; /* of the wall clock */
	sigset_t mask_before;
	int signal_fd;
	int jump_fd;
	int process_fd; /* memfd of the encoded process */
	int stdio[3];   /* the workload's ends; borrowed from console or pump but for null_fd */
	int null_fd;    /* standard input without -i */
	int api_fd;     /* listener of the execution API, until PID 1 has it */
	int status;     /* of the main process, -1: unknown */
	int status_signal;
	int64_t grace_end_ms;
	bool stopping;
	bool asked;         /* a signal that asks this process to end came */
	bool killed;        /* PID 1 was killed by us */
	bool paused;        /* by a command */
	bool output_done;   /* everything was delivered */
	bool alone;         /* PID 1, when the main process had ended */
	const char *reason; /* of the end, STATE_REASON_* */
	struct error error;
};

/* Block and take the signals of this process. 0 or -errno. */
int keeper_signals_start(struct keeper *k) NONNULL(1) MUST_CHECK;
/* Forget what came since, and restore the mask. */
void keeper_signals_stop(struct keeper *k) NONNULL(1);

/* Let execd send a signal to the process of tag (0: all). 0, -EAGAIN (frozen) or -errno. */
int keeper_kill(struct keeper *k, uint32_t tag, int signo) NONNULL(1);
/* End the sandbox: signo to the main process, and after grace_ms the end of PID 1. What is frozen
 * ends at once. Called again, it can only come sooner. */
void keeper_stop(struct keeper *k, int signo, int64_t grace_ms, const char *reason) NONNULL(1, 4);
/* This process is asked to end: it waits no longer for a reader that has stalled than
 * OUTPUT_GRACE_MS after its sandbox; asked again meanwhile, it goes at once. */
void keeper_ask(struct keeper *k) NONNULL(1);
/* Go on in another state and say so on disk. 0, or -1 with the old state in place. */
int keeper_go(struct keeper *k, enum sandbox_state_code to, struct error *e) MUST_CHECK
		NONNULL(1, 3);

/* Arm the timer for the state's expiry, if it has one; called again when that was changed. 0 or
 * -errno. */
int keeper_ttl_start(struct keeper *k) NONNULL(1) MUST_CHECK;
void keeper_ttl_stop(struct keeper *k) NONNULL(1);

/* Connect to a port inside: done is called once with a connected socket (O_NONBLOCK, taken over),
 * or with -1 when nobody listens or PID 1 is dead. 0 or -errno, and then it is not called. */
int keeper_dial(struct keeper *k, uint16_t port, void (*done)(void *ctx, int fd), void *ctx)
		NONNULL(1, 3) MUST_CHECK;
/* Do not call done with this ctx any more. */
void keeper_dial_forget(struct keeper *k, const void *ctx) NONNULL(1);
/* What was on its way through published ports when PID 1 died is delivered, or given up. */
void keeper_on_unpublished(struct keeper *k) NONNULL(1);

/* A listening socket in the live directory, which the owner of this process alone may connect to.
 * fd (O_NONBLOCK) or -errno. */
int keeper_socket(int live_fd, const char *name, int type) MUST_CHECK NONNULL(2);
/* Make the socket, where commands wait until ctl_begin. */
struct ctl *ctl_new(struct keeper *k, struct error *e) MUST_CHECK NONNULL(1, 2);
/* The main process runs: serve. 0 or -errno. */
int ctl_begin(struct ctl *c) NONNULL(1) MUST_CHECK;
/* A packet of execd about another process than the main one. 0 or -EPROTO. */
int ctl_on_packet(struct ctl *c, struct packet *p) NONNULL(1, 2) MUST_CHECK;
/* PID 1 is dead: what was started inside has ended too. */
void ctl_on_death(struct ctl *c) NONNULL(1);
/* Answer those who wait for the end: it is recorded and cleared away. */
void ctl_end(struct ctl *c) NONNULL(1);
void ctl_free(struct ctl *c);

#endif
