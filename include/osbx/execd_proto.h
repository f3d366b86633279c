/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * execd_proto - the control channel between a keeper and execd, PID 1 of its sandbox.
 *
 * SOCK_SEQPACKET, packets of packet.h. execd starts with descriptor EXECD_FD_INIT (handshake
 * channel, closed after UP), EXECD_FD_CONTROL (this channel) and EXECD_FD_CONFIG (memfd with a
 * struct execd_config). One request "start a process" serves the entrypoint and exec.
 *
 *   keeper ── LISTEN {flags; fd: a listening Unix stream socket} ─▶ execd   at most once, first
 *          ── START {tag, flags; fds: spec memfd, stdin, stdout, stderr} ─▶ execd
 *          ◀─ STARTED {tag, pid; fds: pty master if EXECD_START_TTY} or FAILED {tag, error}
 *          ── SIGNAL {tag, signo} ─▶         see below; tag 0: every process
 *          ◀─ EXITED {tag, status}           exit code, or 128 + signal with .signal set
 *          ── KILL {tag} ──────────▶         SIGKILL to the whole tree of tag; EXITED follows
 *          ── STAT {tag} ──────────▶
 *          ◀─ STATS {tag, processes}
 *          ── DIAL {tag, port} ────▶         127.0.0.1, then ::1, for 5 s at most
 *          ◀─ DIALLED {tag; fd: a connected stream socket, O_NONBLOCK} or FAILED {tag, error}
 *
 * A tag names a request or a process until its last answer. The tree of a process is what it and
 * its descendants started, in whatever session: a cgroup of its own (cmd-N below EXECD_FD_CGROUP)
 * or, without one, all descendants of a subreaper. That of the main process is everything. Beside
 * the main process, descendants that outlive the process of a tag go on, and no tag means them.
 *
 * A signal goes to the process group of tag. For the main process only SIGINT and SIGQUIT do, as
 * from a keyboard; all others go to the process itself, which may have children to end in order.
 * A signal for a tag that has ended is ignored.
 * When the process started with EXECD_START_MAIN has exited, execd sends EXITED and ends, and with
 * it the pid namespace. The end of the channel ends execd too.
 */
#ifndef OSBX_EXECD_PROTO_H
#define OSBX_EXECD_PROTO_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/packet.h>
#include <osbx/strv.h>

#define EXECD_FD_INIT    3
#define EXECD_FD_CONTROL 4
#define EXECD_FD_CONFIG  5
#define EXECD_FD_ROOT    6 /* O_PATH descriptor of the new root, for pivot_root */
#define EXECD_FD_CGROUP  7 /* directory of the sandbox's own cgroup; absent: there is none */
#define EXECD_FD_COUNT   8 /* first number that is not given */

enum execd_msg {
	EXECD_MSG_START = 64,
	EXECD_MSG_SIGNAL,
	EXECD_MSG_STARTED,
	EXECD_MSG_FAILED,
	EXECD_MSG_EXITED,
	EXECD_MSG_KILL,
	EXECD_MSG_STAT,
	EXECD_MSG_STATS,
	EXECD_MSG_DIAL,
	EXECD_MSG_DIALLED,
	EXECD_MSG_LISTEN,
	EXECD_MSG_END,
};

/* The execution API: a socket in the sandbox's live directory, a port inside, and what clients of
 * both must show when the sandbox was given it in its environment. */
#define EXECD_SOCKET    "execd.sock"
#define EXECD_PORT      44772
#define EXECD_TOKEN_ENV "EXECD_ACCESS_TOKEN"
#define EXECD_TOKEN_MAX 4096

#define EXECD_LISTEN_INSIDE 1U /* also on 127.0.0.1 in a network namespace of the sandbox's own */

#define EXECD_START_MAIN 1U /* the sandbox ends with this process */
#define EXECD_START_TTY  2U /* on a new pty of the sandbox's own devpts; no stdio descriptors */

struct execd_start {
	uint32_t tag; /* chosen by the keeper, > 0, unique among live processes */
	uint32_t flags;
};

struct execd_started {
	uint32_t tag;
	int32_t pid; /* in the sandbox's pid namespace */
};

struct execd_signal {
	uint32_t tag;
	int32_t signo;
};

struct execd_exited {
	uint32_t tag;
	int32_t status; /* as a shell says it: exit code or 128 + signal */
	int32_t signal; /* 0: exited by itself */
	uint32_t alone; /* 1: PID 1 has no other child, so nothing else runs in the sandbox */
};

struct execd_listen {
	uint32_t flags;
	uint32_t pad;
};

/* KILL, STAT and DIALLED. */
struct execd_tag {
	uint32_t tag;
};

struct execd_stats {
	uint32_t tag;
	uint32_t processes; /* beside PID 1 and its helpers; zombies count */
};

struct execd_dial {
	uint32_t tag;
	uint32_t port; /* 1..65535 */
};

struct execd_failed {
	uint32_t tag;
	uint32_t pad;
	struct error error; /* ERRC_NO_COMMAND (127), ERRC_NOT_EXECUTABLE (126), else 125 */
};

/* What execd itself needs. Filters may be empty (--seccomp unconfined). */
struct execd_config {
	uint32_t isolation;     /* nonzero: PID 1 keeps CAP_SYS_ADMIN (--isolation) */
	uint32_t has_setgroups; /* zero in single-id mode: setgroups(2) fails */
	uint32_t ids_max;       /* ids 0..ids_max-1 exist inside */
	uint32_t own_filter_n;  /* inherited by every process: never narrower than the workload's */
	uint32_t workload_filter_n; /* what every process but PID 1 gets beside it */
	uint64_t caps; /* what any process may be given; PID 1 adds what it needs itself */
	char *token;   /* of the execution API, owned; NULL: none is needed */
	struct sock_filter *own_filter;      /* heap after execd_config_decode */
	struct sock_filter *workload_filter; /* heap after execd_config_decode */
};

struct execd_rlimit {
	uint32_t resource; /* RLIMIT_* */
	uint32_t pad;
	uint64_t soft;
	uint64_t hard;
};

#define EXECD_RLIMITS_MAX 16

/* A working directory that is missing: nothing is ever made in a volume. */
enum execd_cwd {
	EXECD_CWD_EXISTS,        /* is an error */
	EXECD_CWD_MAKE,          /* is made in the root's own file system (as docker does) */
	EXECD_CWD_MAKE_IN_TMPFS, /* and in a tmpfs: the plan has none of the host's there */
};

/*
 * With .copy argv is EXECD_COPY_PACK (a path to standard output) or EXECD_COPY_UNPACK (standard
 * input to a path), flags of copy.h in decimal, and an absolute path. What it has to say at its end
 * is a struct copy_report on standard error. It has the user, limits and filter of a process.
 */
#define EXECD_COPY_PACK   "pack"
#define EXECD_COPY_UNPACK "unpack"
#define EXECD_COPY_ARGS   3

/* A process to start. Strings and vectors are owned. */
struct execd_process {
	struct strv argv; /* at least one, not empty */
	struct strv env;
	char *cwd;     /* absolute; NULL or "": "/" */
	char *user;    /* "", "uid", "uid:gid", "name", "name:group": image rules, see passwd.h */
	uint64_t caps; /* capability mask of the process */
	uint32_t cwd_create; /* enum execd_cwd */
	uint32_t rows;       /* with a tty */
	uint32_t cols;
	uint32_t umask_bits; /* 022 */
	uint32_t set_home;   /* nonzero: HOME from passwd when env has none */
	uint32_t copy;       /* nonzero: no program, but a copy: see EXECD_COPY_PACK */
	uint32_t rlimits_n;
	struct execd_rlimit rlimits[EXECD_RLIMITS_MAX];
	struct strv groups; /* additional groups, names or numbers */
};

void execd_config_done(struct execd_config *c);
void execd_process_done(struct execd_process *p);
AUTO_DEFINE(execd_config, struct execd_config, execd_config_done);
AUTO_DEFINE(execd_process, struct execd_process, execd_process_done);
/* Serialise. 0 or -EMSGSIZE. */
int execd_config_encode(const struct execd_config *c, struct buf *out) NONNULL(1, 2) MUST_CHECK;
int execd_process_encode(const struct execd_process *p, struct buf *out) NONNULL(1, 2) MUST_CHECK;
/* Parse; every count and length is checked against the bytes that are there and limits.h. 0 or
 * -EBADMSG; *out is empty then. */
int execd_config_decode(struct span in, struct execd_config *out) NONNULL(2) MUST_CHECK;
int execd_process_decode(struct span in, struct execd_process *out) NONNULL(2) MUST_CHECK;
/* Send a packet of a type with one fixed-size payload and descriptors. 0 or -errno. */
int execd_send(int sock, enum execd_msg type, const void *payload, uint32_t n, const int *fds,
		uint32_t fds_n) MUST_CHECK;
/* Payload of a received packet if it has exactly n bytes, else NULL. */
const void *execd_payload(const struct packet *p, uint32_t n) NONNULL(1);

#endif
