/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * state - what a sandbox is doing, and its record state.json.
 *
 * The keeper is the only writer. RUNTIME/sandboxes/ID/state.json is replaced in one step and never
 * synced (a reboot ends what it speaks of); the last state of a kept sandbox stands beside its
 * files in ROOT, synced.
 */
#ifndef OSBX_STATE_H
#define OSBX_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/id.h>
#include <osbx/ports.h>
#include <osbx/spec.h>
#include <osbx/strv.h>

enum sandbox_state_code {
	SANDBOX_PENDING,
	SANDBOX_RUNNING,
	SANDBOX_PAUSING,
	SANDBOX_PAUSED,
	SANDBOX_RESUMING,
	SANDBOX_STOPPING,
	SANDBOX_TERMINATED,
	SANDBOX_FAILED,
	SANDBOX_STATE_COUNT,
};

/* What the making of a sandbox takes its time for. */
enum state_stage {
	STATE_STAGE_IMAGE,  /* to find it, or to pull and unpack it */
	STATE_STAGE_PLAN,   /* everything else before there is a process */
	STATE_STAGE_LAUNCH, /* namespaces, mounts, until PID 1 is there */
	STATE_STAGE_START,  /* until the main process runs */
	STATE_STAGE_COUNT,
};

struct sandbox_state {
	struct id id;
	enum sandbox_state_code code;
	char *name;          /* or NULL */
	char *image;         /* as the user wrote it */
	struct strv labels;  /* KEY=VALUE */
	char *reason;        /* why it failed or ended, STATE_REASON_*; NULL: nothing to say */
	char *message;       /* the same in words, or NULL */
	bool retained;       /* the record stays when it ends */
	bool kept;           /* so do its files */
	pid_t keeper_pid;    /* 0: none */
	pid_t pid;           /* of PID 1 on the host; 0: none */
	uint64_t pid_start;  /* its start time (state_pid_start): tells it from a later one */
	int32_t exit_status; /* of the main process; -1: none yet */
	bool oom_killed;     /* a process of it was killed: its memory limit was reached */
	int64_t created_ms;  /* wall clock */
	int64_t started_ms;  /* 0: not yet */
	int64_t ended_ms;    /* 0: not yet */
	int64_t expires_ms;  /* 0: never */
	int64_t renew_ms;    /* it lives at least so long after an access through serve; 0: no */
	int64_t stage_us[STATE_STAGE_COUNT]; /* 0: not yet */
	char *cgroup;                        /* cgroup_path of it; NULL: none, or not yet */
	struct strv ports;                   /* published: "127.0.0.1:8080:80", see ports.h */
	enum spec_network network;
	struct strv limits_missing; /* that were asked for and are not in force: "memory" … */
};

#define STATE_REASON_EXITED  "exited"      /* the main process ended by itself */
#define STATE_REASON_STOPPED "stopped"     /* stop, or a signal to the keeper */
#define STATE_REASON_EXPIRED "ttl_expiry"  /* its time was over */
#define STATE_REASON_OOM     "oom"         /* the kernel killed the main process: memory limit */
#define STATE_REASON_LOST    "keeper_lost" /* the keeper was killed, and the sandbox with it */
#define STATE_REASON_ERROR   "error"       /* see the message */

#define STATE_FILE "state.json"

/* Name of a code as the API writes it ("Running"). */
const char *state_name(enum sandbox_state_code code);
/* Name of a stage ("image"). */
const char *state_stage_name(enum state_stage stage);
/* Code of a name. 0 or -EINVAL. */
int state_from_name(const char *name, enum sandbox_state_code *out_code) NONNULL(1, 2) MUST_CHECK;
/* Is the transition one of those that happen? */
bool state_may_go(enum sandbox_state_code from, enum sandbox_state_code to);
/* Take it; asserts that it may be taken. The only place that changes the code. Stamps started_ms
 * and ended_ms. */
void state_go(struct sandbox_state *s, enum sandbox_state_code to) NONNULL(1);
/* A new record, Pending, now. Strings are copied. */
void state_init(struct sandbox_state *s, const struct id *id, const char *name, const char *image)
		NONNULL(1, 2);
/* Terminated or Failed? */
bool state_is_final(const struct sandbox_state *s) NONNULL(1);
/* Take it to Terminated or Failed by allowed steps, with reason and message (copied, may be NULL).
 */
void state_end(struct sandbox_state *s, enum sandbox_state_code code, const char *reason,
		const char *message) NONNULL(1, 3);
/* When a process started, in clock ticks since boot (proc(5), stat); 0: there is none. */
uint64_t state_pid_start(pid_t pid);
void state_done(struct sandbox_state *s);
AUTO_DEFINE(state, struct sandbox_state, state_done);
/* Replace state.json below dir_fd. durable: through fsync. */
int state_save(const struct sandbox_state *s, int dir_fd, bool durable, struct error *e) MUST_CHECK
		NONNULL(1, 4);
/* Read state.json below dir_fd, strictly. ERRC_NOT_FOUND, ERRC_INVALID, ERRC_SYSTEM. */
int state_load(int dir_fd, struct sandbox_state *out_state, struct error *e) MUST_CHECK
		NONNULL(2, 3);

#endif
