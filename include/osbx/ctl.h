/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * ctl - what commands (and the API server) do to sandboxes of other processes.
 *
 * The file system is the database: a sandbox is found by its live directory (or, for a kept one,
 * its record below ROOT), its state is read from state.json; only changes need its keeper. Every
 * call that lists or finds begins with sandbox_sweep_dead: a lock nobody holds and a state that is
 * still alive becomes Failed "keeper lost", and what it left is removed.
 */
#ifndef OSBX_CTL_H
#define OSBX_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/ctl_proto.h>
#include <osbx/dirs.h>
#include <osbx/error.h>
#include <osbx/execd_proto.h>
#include <osbx/id.h>
#include <osbx/packet.h>
#include <osbx/state.h>

/* One sandbox as ps and inspect show it. */
struct sandbox_info {
	struct sandbox_state state;
	bool is_kept; /* its files stay when it ends */
};

struct sandbox_list {
	struct sandbox_info *v;
	size_t n;
};

void sandbox_list_done(struct sandbox_list *l);
AUTO_DEFINE(sandbox_list, struct sandbox_list, sandbox_list_done);
/* All sandboxes, oldest first; ended ones too when all. */
int sandbox_list(const struct dirs *dirs, bool all, struct sandbox_list *out_list,
		struct error *e) MUST_CHECK NONNULL(1, 3, 4);
/* The sandbox that text names: its id, a unique prefix of at least 4 digits, or its name (a name
 * wins over a prefix). ERRC_NOT_FOUND, or ERRC_CONFLICT for an ambiguous prefix. */
int sandbox_find(const struct dirs *dirs, const char *text, struct sandbox_info *out_info,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
void sandbox_info_done(struct sandbox_info *info);
AUTO_DEFINE(sandbox_info, struct sandbox_info, sandbox_info_done);
/* The cheap sweep; idempotent, safe beside other processes doing the same. */
int sandbox_sweep_dead(const struct dirs *dirs, struct error *e) MUST_CHECK NONNULL(1, 2);

/* Connect to the keeper of id. fd, or -1 with ERRC_CONFLICT when the sandbox is not alive. */
int ctl_connect(const struct dirs *dirs, const struct id *id, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Send one request. */
int ctl_send(int sock, enum ctl_msg type, const void *payload, uint32_t n,
		struct error *e) MUST_CHECK NONNULL(5);
/* Send a request that is a descriptor (borrowed). */
int ctl_send_fd(int sock, enum ctl_msg type, int fd, struct error *e) MUST_CHECK NONNULL(4);
/* Send EXEC with its descriptors (borrowed). */
int ctl_send_exec(int sock, const struct ctl_exec *request, const int *fds, uint32_t fds_n,
		struct error *e) MUST_CHECK NONNULL(2, 3, 5);
/* Wait for an answer of type want; FAILED becomes the error, the end of the connection
 * ERRC_UNAVAILABLE. deadline_ms by clock_boot_ms, -1: for ever. Descriptors belong to the caller.
 */
int ctl_expect(int sock, enum ctl_msg want, struct packet *out_p, int64_t deadline_ms,
		struct error *e) MUST_CHECK NONNULL(3, 5);
/* Request and OK in one: stop, signal, pause, resume, renew. */
int ctl_request(const struct dirs *dirs, const struct id *id, enum ctl_msg type,
		const void *payload, uint32_t n, struct error *e) MUST_CHECK NONNULL(1, 2, 6);
/* A process to start in a running sandbox; all borrowed. */
struct exec_opts {
	const struct strv *argv;
	const struct strv *env; /* adds to the main process's */
	const char *cwd;        /* NULL: the main process's */
	const char *user;       /* NULL: likewise */
	bool interactive;       /* forward standard input */
	bool tty;
	bool detach; /* without input and output; it lives on when this call has returned */
	int in_fd;   /* the caller's descriptors */
	int out_fd;
	int err_fd;
};

/* Start a process and keep its terminal or pipes until it has ended (detached: until it has been
 * started). Signals of this process are forwarded to it; when this process dies, so do it and its
 * children. *out_status is its exit code or 128 + signal. ERRC_NO_COMMAND, ERRC_NOT_EXECUTABLE,
 * ERRC_CONFLICT when the sandbox is paused or not alive. */
int sandbox_exec(const struct dirs *dirs, const struct id *id, const struct exec_opts *opts,
		int *out_status, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4, 5);
/* Keep others from changing the labels until the descriptor is closed: for who reads them first.
 * fd, or -1: ERRC_NOT_FOUND. */
int sandbox_labels_lock(const struct dirs *dirs, const struct id *id, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Replace all labels of a sandbox, alive or ended. ERRC_CONFLICT while it is pending. */
int sandbox_set_labels(const struct dirs *dirs, const struct id *id, const struct strv *labels,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Files to copy between this machine and a running sandbox; all borrowed. */
struct sandbox_copy {
	bool in;             /* into the sandbox, else out of it */
	const char *inside;  /* path there; a relative one begins at "/" */
	const char *outside; /* path here; NULL: a tar stream at stream_fd */
	int stream_fd;
	const char *user; /* who does it inside; NULL: the main process's user, with archive root */
	bool archive;     /* keep owners, and into the sandbox also set-id bits */
	bool follow;      /* a source that is a link: what it leads to */
};

/* Copy, as copy.h says of both sides. *out_left_out is the number of devices, FIFOs and sockets
 * that were left out. An interrupted copy ends inside too. ERRC_CONFLICT when the sandbox is paused
 * or not alive. */
int sandbox_copy(const struct dirs *dirs, const struct id *id, const struct sandbox_copy *copy,
		uint64_t *out_left_out, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4, 5);
/* Remove a sandbox, alive (force: killed first) or ended, with everything it has. Idempotent and
 * resumable. ERRC_CONFLICT when alive without force. */
int sandbox_remove(const struct dirs *dirs, const struct id *id, bool force,
		struct error *e) MUST_CHECK NONNULL(1, 2, 4);

#endif
