/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side: what it hands over is in fetch_setup.h, the messages are in fetch_proto.h. */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/spawn.h>
#include <osbx/sys.h>

#include "fetch.h"
#include "fetch_proto.h"
#include "fetch_setup.h"

#define EVENTS_MAX ((size_t)4 * LIMIT_LAYERS) /* that nobody has asked for yet */

struct fetch {
	int sock;
	int pidfd;
	struct error failed; /* the helper's last word */
	/* Events that came while an answer was waited for. */
	struct fetch_event *events;
	size_t events_n;
};

static int send_setup(const struct fetch *f, const struct fetch_setup *setup, struct error *e)
{
	struct buf bytes = BUF_INIT(FETCH_SETUP_BYTES_MAX);
	struct packet p = { 0 };
	autoclose int fd = -1;
	int rc = fetch_setup_write(setup, &bytes);

	if (rc == 0) {
		fd = fd_memfd_sealed("osbx-fetch", bytes.p, bytes.n, false);
		rc = fd < 0 ? fd : 0;
	}
	fetch_buf_wipe(&bytes);
	packet_init(&p, FETCH_MSG_SETUP);
	rc = rc < 0 ? rc : packet_put_fd(&p, fd);
	rc = rc < 0 ? rc : packet_send(f->sock, &p);
	return rc < 0 ? error_sys(e, -rc, "send setup to fetch") : 0;
}

static int start(struct fetch *f, struct error *e)
{
	const struct spawn_part part = {
		.command = "fetch",
		.control_fd = FETCH_CONTROL_FD,
		.die_with_parent = true,
	};

	return spawn_part(&part, &f->sock, &f->pidfd, e);
}

struct fetch *fetch_start_setup(const struct fetch_setup *setup, struct error *e)
{
	AUTO(fetch) struct fetch *f = mem_new(struct fetch);

	f->sock = -1;
	f->pidfd = -1;
	if (start(f, e) < 0 || send_setup(f, setup, e) < 0) {
		return NULL;
	}
	return TAKE_PTR(f);
}

struct fetch *fetch_start(const struct ref *ref, const struct pull_opts *opts,
		const struct credential *credential, struct error *e)
{
	AUTO(fetch_setup) struct fetch_setup setup = FETCH_SETUP_INIT;

	assert(ref->domain);
	if (fetch_setup_make(ref, opts, credential, &setup, e) < 0) {
		return NULL;
	}
	return fetch_start_setup(&setup, e);
}

void fetch_stop(struct fetch *f)
{
	int status = 0;

	if (!f) {
		return;
	}
	if (f->pidfd >= 0 && (sys_pidfd_kill(f->pidfd, SIGKILL) < 0 ||
					     spawn_wait(f->pidfd, -1, &status) < 0)) {
		log_debug("fetch is gone already");
	}
	fd_close(&f->pidfd);
	fd_close(&f->sock);
	free(f->events);
	free(f);
}

/* It closed its socket: with its reason, or the kernel killed it, or the filter did. */
static int died(struct fetch *f, struct error *e)
{
	int status = 0;

	if (f->failed.code == ERRC_OK) {
		if (spawn_wait(f->pidfd, -1, &status) < 0) {
			status = 0;
		}
		fd_close(&f->pidfd);
		(void)error_set(&f->failed, ERRC_INTERNAL, "fetch ended with status %d", status);
	}
	*e = f->failed;
	return -1;
}

static void take_log(const struct packet *p)
{
	char text[FETCH_LOG_MAX];
	size_t n = p->len < sizeof(text) ? p->len : sizeof(text) - 1;

	memcpy(text, p->payload, n);
	text[n] = '\0';
	log_debug("fetch: %s", text);
}

static struct error error_of(const void *bytes)
{
	struct error theirs = ERROR_INIT;

	memcpy(&theirs, bytes, sizeof(theirs));
	error_sanitize(&theirs);
	if (theirs.code == ERRC_OK) {
		(void)error_set(&theirs, ERRC_INTERNAL, "fetch failed without a reason");
	}
	return theirs;
}

/* A newer state of a blob takes the place of an older one. */
static int event_keep(struct fetch *f, const struct fetch_event *event)
{
	for (size_t i = 0; i < f->events_n; i++) {
		if (f->events[i].tag == event->tag && f->events[i].kind == FETCH_EVENT_PROGRESS) {
			f->events[i] = *event;
			return 0;
		}
	}
	if (f->events_n == EVENTS_MAX) {
		return -EMSGSIZE;
	}
	if (!f->events) {
		f->events = mem_array(EVENTS_MAX, sizeof(*f->events));
	}
	f->events[f->events_n++] = *event;
	return 0;
}

static bool event_of(const struct packet *p, struct fetch_event *out_event)
{
	struct fetch_blob_failure m = { .error = ERROR_INIT };
	bool failed = p->type == FETCH_MSG_FAILED;

	if (p->len != (failed ? sizeof(m) : sizeof(m.state))) {
		return false;
	}
	memcpy(&m, p->payload, p->len);
	*out_event = (struct fetch_event){
		.kind = failed                      ? FETCH_EVENT_FAILED
			: p->type == FETCH_MSG_DONE ? FETCH_EVENT_DONE
						    : FETCH_EVENT_PROGRESS,
		.tag = m.state.tag,
		.done = m.state.done,
		.resumed = m.state.resumed,
	};
	if (failed) {
		out_event->error = error_of(&m.error);
	}
	return true;
}

enum taken {
	TAKEN_EVENT,
	TAKEN_ANSWER, /* the caller's */
	TAKEN_NOTHING,
	TAKEN_COUNT,
};

/* What a packet is; -1: not one of the helper's. Descriptors stay in it. */
static int sort_packet(struct fetch *f, const struct packet *p, struct fetch_event *out_event)
{
	switch (p->type) {
	case FETCH_MSG_PROGRESS:
	case FETCH_MSG_DONE:
	case FETCH_MSG_FAILED:
		return event_of(p, out_event) ? TAKEN_EVENT : -1;
	case FETCH_MSG_PONG:
	case FETCH_MSG_BODY:
	case FETCH_MSG_REFUSED:
		return TAKEN_ANSWER;
	case FETCH_MSG_LOG:
		take_log(p);
		return TAKEN_NOTHING;
	case FETCH_MSG_ERROR:
		if (p->len == sizeof(f->failed) && f->failed.code == ERRC_OK) {
			f->failed = error_of(p->payload);
		}
		return TAKEN_NOTHING;
	default:
		return -1;
	}
}

static int protocol_error(const struct packet *p, struct error *e)
{
	return error_set(e, ERRC_INTERNAL, "unexpected message %d from fetch", (int)p->type);
}

/* Wait for the answer to a request. */
static int answer(struct fetch *f, struct packet *out_p, struct error *e)
{
	for (;;) {
		struct packet p = { 0 };
		struct fetch_event event;
		int rc = packet_recv(f->sock, &p, -1);
		int taken = TAKEN_NOTHING;

		if (rc <= 0) {
			return died(f, e);
		}
		taken = sort_packet(f, &p, &event);
		if (taken == TAKEN_ANSWER) {
			*out_p = p;
			return 0;
		}
		packet_done(&p);
		if (taken < 0 || (taken == TAKEN_EVENT && event_keep(f, &event) < 0)) {
			return protocol_error(&p, e);
		}
	}
}

static int request(struct fetch *f, const struct packet *p, struct error *e)
{
	int rc = packet_send(f->sock, p);

	if (rc == 0) {
		return 0;
	}
	if (rc != -EPIPE && rc != -ECONNRESET) {
		return error_sys(e, -rc, "send to fetch");
	}
	/* What it said before it ended is still to be read. */
	for (;;) {
		struct packet last = { 0 };
		struct fetch_event event;

		if (packet_recv(f->sock, &last, -1) <= 0) {
			return died(f, e);
		}
		(void)sort_packet(f, &last, &event);
		packet_done(&last);
	}
}

/* Send a request and take its answer of a type, or why there is none. */
static int ask(struct fetch *f, const struct packet *p, enum fetch_msg type, struct packet *out_p,
		struct error *e)
{
	struct packet got = { 0 };

	if (request(f, p, e) < 0 || answer(f, &got, e) < 0) {
		return -1;
	}
	if (got.type == type) {
		*out_p = got;
		return 0;
	}
	packet_done(&got);
	if (got.type != FETCH_MSG_REFUSED || got.len != sizeof(*e)) {
		return protocol_error(&got, e);
	}
	*e = error_of(got.payload);
	return -1;
}

int fetch_ping(struct fetch *f, struct error *e)
{
	struct packet p = { 0 };
	struct packet got = { 0 };

	packet_init(&p, FETCH_MSG_PING);
	if (ask(f, &p, FETCH_MSG_PONG, &got, e) < 0) {
		return -1;
	}
	packet_done(&got);
	return 0;
}

/* Nothing in it is trusted beyond its bounds; the caller verifies the bytes. */
static int take_body(struct packet *p, struct buf *out, char **out_type, struct digest *out_digest,
		struct error *e)
{
	struct fetch_manifest_answer a;
	struct digest digest = { "" };
	int rc = -EBADMSG;

	if (p->len == sizeof(a) && p->fds_n == 1) {
		memcpy(&a, p->payload, sizeof(a));
		a.type[sizeof(a.type) - 1] = '\0';
		a.digest.text[sizeof(a.digest.text) - 1] = '\0';
		rc = lseek(p->fds[0], 0, SEEK_SET) < 0 ? -errno : fd_read_all(p->fds[0], out);
	}
	if (rc < 0) {
		return error_sys(e, -rc, "receive from fetch");
	}
	if (a.digest.text[0] != '\0' && digest_parse(a.digest.text, &digest) < 0) {
		return error_set(e, ERRC_INTERNAL, "fetch sent what is no digest");
	}
	*out_type = mem_strdup(a.type);
	*out_digest = digest;
	return 0;
}

int fetch_manifest(struct fetch *f, const char *tag_or_digest, struct buf *out, char **out_type,
		struct digest *out_digest, struct error *e)
{
	struct fetch_manifest_request message = { .name = "" };
	struct packet p = { 0 };
	struct packet got = { 0 };
	int rc = 0;

	if (strlen(tag_or_digest) >= sizeof(message.name)) {
		return error_set(e, ERRC_INVALID, "tag is too long");
	}
	memcpy(message.name, tag_or_digest, strlen(tag_or_digest));
	packet_init(&p, FETCH_MSG_MANIFEST);
	rc = packet_put(&p, &message, sizeof(message));
	assert(rc == 0);
	if (ask(f, &p, FETCH_MSG_BODY, &got, e) < 0) {
		return -1;
	}
	rc = take_body(&got, out, out_type, out_digest, e);
	packet_done(&got);
	return rc;
}

int fetch_blob_begin(struct fetch *f, const struct fetch_blob *blob, struct error *e)
{
	struct fetch_blob_request message = {
		.size = blob->size,
		.tag = blob->tag,
		.digest = blob->digest,
	};
	struct packet p = { 0 };
	int rc = 0;

	if (blob->size > LIMIT_UNPACK_BYTES) {
		return error_set(e, ERRC_LIMIT, "blob %.19s… of %llu bytes", blob->digest.text,
				(unsigned long long)blob->size);
	}
	packet_init(&p, FETCH_MSG_BLOB);
	rc = packet_put(&p, &message, sizeof(message));
	rc = rc < 0 ? rc : packet_put_fd(&p, blob->part_fd);
	if (rc == 0 && blob->out_fd >= 0) {
		rc = packet_put_fd(&p, blob->out_fd);
	}
	assert(rc == 0);
	return request(f, &p, e);
}

int fetch_fd(const struct fetch *f)
{
	return f->sock;
}

static bool event_next(struct fetch *f, struct fetch_event *out_event)
{
	if (f->events_n == 0) {
		return false;
	}
	*out_event = f->events[0];
	f->events_n--;
	memmove(f->events, f->events + 1, f->events_n * sizeof(*f->events));
	return true;
}

int fetch_next(struct fetch *f, struct fetch_event *out_event, int64_t deadline_ms, struct error *e)
{
	if (event_next(f, out_event)) {
		return 1;
	}
	for (;;) {
		struct packet p = { 0 };
		int rc = packet_recv(f->sock, &p, deadline_ms);
		int taken = TAKEN_NOTHING;

		if (rc == -EAGAIN || rc == -ETIMEDOUT) {
			return 0;
		}
		if (rc <= 0) {
			return died(f, e);
		}
		taken = sort_packet(f, &p, out_event);
		packet_done(&p);
		if (taken == TAKEN_EVENT) {
			return 1;
		}
		if (taken != TAKEN_NOTHING) {
			return protocol_error(&p, e);
		}
	}
}
