/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * ctl_proto - packets between a keeper and the commands that speak to it, over ctl.sock in the
 * sandbox's live directory (SOCK_SEQPACKET, 0600; only peers of the keeper's own uid are served).
 *
 * One connection carries one request and its answers:
 *
 *   STOP {grace_ms, signo}   -> OK when the sandbox has ended and is cleared away (the ladder:
 *                               signo, grace, kill; what is paused is killed at once)
 *   SIGNAL {signo, all}      -> OK
 *   PAUSE, RESUME            -> OK when cgroup.events says so
 *   RENEW {expires_ms}       -> OK; refused once it has expired
 *   LABELS {fd}              -> OK; a sealed memfd with all labels, each KEY=VALUE and a NUL
 *   STAT                     -> STATS {numbers of the sandbox's cgroup and processes}
 *   WAIT                     -> ENDED {status} when the sandbox has ended and is cleared away
 *   DIAL {port}              -> DIALLED {fd}, a socket connected inside the sandbox
 *   EXEC {flags; fds}        -> STARTED {pid; fd: pty master with a tty}
 *       fds: a sealed memfd with a struct execd_process, and without CTL_EXEC_TTY three pipes or
 *       null devices. The process is the main one but for what it says: its env adds to that one's,
 *       cwd, user and groups replace that one's when not empty; capabilities, umask and rlimits are
 *       that one's. One with .copy copies files instead of running a program.
 *       then <- EXEC_SIGNAL {signo} any number of times
 *       and  -> ENDED {status, signal}
 *       The end of the connection before ENDED kills the process's whole tree, unless the flag
 *       CTL_EXEC_DETACH was given.
 *   any                      -> FAILED {struct error}
 *
 * A paused sandbox gets nothing: EXEC, SIGNAL, EXEC_SIGNAL and DIAL are refused meanwhile.
 */
#ifndef OSBX_CTL_PROTO_H
#define OSBX_CTL_PROTO_H

#include <stdint.h>

#include <osbx/error.h>

#define CTL_SOCKET "ctl.sock"

enum ctl_msg {
	CTL_MSG_STOP = 128,
	CTL_MSG_SIGNAL,
	CTL_MSG_PAUSE,
	CTL_MSG_RESUME,
	CTL_MSG_RENEW,
	CTL_MSG_STAT,
	CTL_MSG_WAIT,
	CTL_MSG_DIAL,
	CTL_MSG_EXEC,
	CTL_MSG_EXEC_SIGNAL,
	CTL_MSG_OK,
	CTL_MSG_FAILED,
	CTL_MSG_STARTED,
	CTL_MSG_ENDED,
	CTL_MSG_DIALLED,
	CTL_MSG_STATS,
	CTL_MSG_LABELS,
	CTL_MSG_END,
};

#define CTL_EXEC_TTY    1U
#define CTL_EXEC_DETACH 2U

struct ctl_stop {
	int32_t grace_ms; /* -1: the sandbox's own (10 s) */
	int32_t signo;    /* 0: the image's stop signal */
};

struct ctl_signal {
	int32_t signo;
	uint32_t all; /* nonzero: every process, else the main one */
};

struct ctl_renew {
	int64_t expires_ms; /* wall clock; 0: never */
};

struct ctl_exec {
	uint32_t flags;
	uint32_t pad;
};

struct ctl_started {
	int32_t pid; /* in the sandbox's pid namespace */
};

struct ctl_ended {
	int32_t status; /* as a shell says it */
	int32_t signal; /* 0: exited by itself */
};

struct ctl_dial {
	uint32_t port;
};

/* What is not known is UINT64_MAX. */
struct ctl_stats {
	uint64_t cpu_usec;
	uint64_t memory_bytes;
	uint64_t memory_max_bytes; /* the limit */
	uint64_t pids;
	uint64_t pids_max;
	uint64_t cpu_quota_usec; /* of each cpu_period_usec */
	uint64_t cpu_period_usec;
	uint64_t oom_kills;
	uint64_t io_read_bytes;
	uint64_t io_write_bytes;
	uint64_t net_denied; /* how often a private network refused something */
};

#endif
