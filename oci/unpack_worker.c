/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <signal.h>
#include <string.h>

#include <osbx/fd.h>
#include <osbx/log.h>
#include <osbx/spawn.h>
#include <osbx/sys.h>

#include "unpack_worker.h"

static int send_job(const struct worker *w, const struct unpack_job *job,
		const int fds[UNPACK_FD_COUNT], char (*lowers)[UNPACK_NAME_MAX])
{
	struct packet p = { 0 };
	int rc = 0;

	packet_init(&p, UNPACK_MSG_JOB);
	rc = packet_put(&p, job, sizeof(*job));
	for (size_t i = 0; rc == 0 && i < UNPACK_FD_COUNT && fds[i] >= 0; i++) {
		rc = packet_put_fd(&p, fds[i]);
	}
	if (rc == 0) {
		rc = packet_send(w->sock, &p);
	}
	for (size_t i = 0; rc == 0 && i < job->lowers_n; i++) {
		packet_init(&p, UNPACK_MSG_LOWER);
		rc = packet_put(&p, lowers[i], (uint32_t)strlen(lowers[i]));
		rc = rc < 0 ? rc : packet_send(w->sock, &p);
	}
	return rc;
}

int worker_start(struct worker *w, const struct unpack_job *job, const int fds[UNPACK_FD_COUNT],
		char (*lowers)[UNPACK_NAME_MAX], struct error *e)
{
	const struct spawn_part part = {
		.command = "unpack",
		.control_fd = UNPACK_CONTROL_FD,
		.die_with_parent = true,
	};

	if (spawn_part(&part, &w->sock, &w->pidfd, e) < 0) {
		return -1;
	}
	int rc = send_job(w, job, fds, lowers);
	if (rc < 0) {
		return error_sys(e, -rc, "send job to unpack");
	}
	w->stage = WORKER_UNPACKING;
	return 0;
}

int worker_finish(struct worker *w, struct error *e)
{
	struct packet p = { 0 };
	int rc = 0;

	assert(w->stage == WORKER_UNPACKED);
	packet_init(&p, UNPACK_MSG_FINISH);
	rc = packet_send(w->sock, &p);
	if (rc < 0) {
		return error_sys(e, -rc, "send to unpack");
	}
	w->stage = WORKER_FINISHING;
	return 0;
}

/* It closed its socket without a word: the kernel killed it, or the filter did. */
static int died(struct worker *w, struct error *e)
{
	int status = 0;

	if (spawn_wait(w->pidfd, -1, &status) < 0) {
		status = 0;
	}
	fd_close(&w->pidfd);
	if (status == 128 + SIGABRT) {
		return error_set(e, ERRC_LIMIT, "unpack ran out of memory");
	}
	return error_set(e, ERRC_INTERNAL, "unpack ended with status %d", status);
}

static int take_error(const struct packet *p, struct error *e)
{
	struct error theirs = ERROR_INIT;

	if (p->len == sizeof(theirs)) {
		memcpy(&theirs, p->payload, sizeof(theirs));
		error_sanitize(&theirs);
	}
	if (theirs.code == ERRC_OK) {
		return error_set(e, ERRC_INTERNAL, "unpack failed without a reason");
	}
	*e = theirs;
	return -1;
}

/* What may come when, and what follows. */
static const struct {
	enum worker_stage stage;
	enum unpack_msg message;
	enum worker_stage next;
} permits[] = {
	{ WORKER_UNPACKING, UNPACK_MSG_UNPACKED, WORKER_UNPACKED },
	{ WORKER_UNPACKING, UNPACK_MSG_DONE, WORKER_DONE }, /* verify only */
	{ WORKER_FINISHING, UNPACK_MSG_DONE, WORKER_DONE },
};

int worker_receive(struct worker *w, struct error *e)
{
	struct packet p = { 0 };
	int rc = packet_recv(w->sock, &p, -1);

	if (rc == 0) {
		return died(w, e);
	}
	if (rc < 0) {
		return error_sys(e, -rc, "receive from unpack");
	}
	packet_done(&p);
	if (p.type == UNPACK_MSG_ERROR) {
		return take_error(&p, e);
	}
	for (size_t i = 0; i < ARRAY_SIZE(permits); i++) {
		if (w->stage != permits[i].stage || p.type != permits[i].message) {
			continue;
		}
		w->stage = permits[i].next;
		if (p.len == sizeof(w->stats)) {
			memcpy(&w->stats, p.payload, sizeof(w->stats));
		}
		return 0;
	}
	return error_set(e, ERRC_INTERNAL, "unexpected message %d from unpack at stage %d",
			(int)p.type, (int)w->stage);
}

void worker_done(struct worker *w)
{
	int status = 0;

	if (w->pidfd >= 0) {
		/* At WORKER_DONE it exits by itself; a signal does no harm then. */
		if (sys_pidfd_kill(w->pidfd, SIGKILL) < 0 ||
				spawn_wait(w->pidfd, -1, &status) < 0) {
			log_debug("unpack is gone already");
		}
	}
	fd_close(&w->pidfd);
	fd_close(&w->sock);
}
