/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   CLONED ─IDS_DONE▶ IDS ─NET_DONE▶ NET ─GO▶ GONE ─UP▶ UP
 *                     ╰─TREES─╯
 *   ERROR is permitted in every stage before UP and ends the handshake.
 *
 * Both sides walk the same table: each advances its stage with what it sends and what it receives,
 * so a message out of turn is seen at once and named together with the stage it came in. The end
 * of the channel is never success: that is UP alone, sent by execd itself.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <osbx/initproto.h>

static const char *const msg_names[] = {
	[INIT_MSG_IDS_DONE] = "IDS_DONE",
	[INIT_MSG_TREES] = "TREES",
	[INIT_MSG_NET_DONE] = "NET_DONE",
	[INIT_MSG_GO] = "GO",
	[INIT_MSG_UP] = "UP",
	[INIT_MSG_ERROR] = "ERROR",
};
_Static_assert(ARRAY_SIZE(msg_names) == INIT_MSG_COUNT, "one name per message");

static const char *const stage_names[] = {
	[INIT_STAGE_CLONED] = "cloned",
	[INIT_STAGE_IDS] = "ids",
	[INIT_STAGE_NET] = "net",
	[INIT_STAGE_GONE] = "gone",
	[INIT_STAGE_UP] = "up",
};
_Static_assert(ARRAY_SIZE(stage_names) == INIT_STAGE_COUNT, "one name per stage");

static const struct permit {
	enum init_stage stage;
	enum init_msg msg;
	enum init_stage next;
} permits[] = {
	{ INIT_STAGE_CLONED, INIT_MSG_IDS_DONE, INIT_STAGE_IDS },
	{ INIT_STAGE_CLONED, INIT_MSG_ERROR, INIT_STAGE_CLONED },
	{ INIT_STAGE_IDS, INIT_MSG_TREES, INIT_STAGE_IDS },
	{ INIT_STAGE_IDS, INIT_MSG_NET_DONE, INIT_STAGE_NET },
	{ INIT_STAGE_IDS, INIT_MSG_ERROR, INIT_STAGE_IDS },
	{ INIT_STAGE_NET, INIT_MSG_GO, INIT_STAGE_GONE },
	{ INIT_STAGE_NET, INIT_MSG_ERROR, INIT_STAGE_NET },
	{ INIT_STAGE_GONE, INIT_MSG_UP, INIT_STAGE_UP },
	{ INIT_STAGE_GONE, INIT_MSG_ERROR, INIT_STAGE_GONE },
};

const char *init_msg_name(enum init_msg msg)
{
	return (unsigned int)msg < INIT_MSG_COUNT ? msg_names[msg] : "unknown message";
}

const char *init_stage_name(enum init_stage stage)
{
	return (unsigned int)stage < INIT_STAGE_COUNT ? stage_names[stage] : "unknown stage";
}

int init_stage_next(enum init_stage stage, enum init_msg msg)
{
	for (size_t i = 0; i < ARRAY_SIZE(permits); i++) {
		if (permits[i].stage == stage && permits[i].msg == msg) {
			return (int)permits[i].next;
		}
	}
	return -1;
}

int init_send(int sock, enum init_msg msg, const int *fds, uint32_t fds_n)
{
	struct packet p;

	packet_init(&p, (uint16_t)msg);
	for (uint32_t i = 0; i < fds_n; i++) {
		int r = packet_put_fd(&p, fds[i]);

		if (r < 0) {
			return r;
		}
	}
	return packet_send(sock, &p);
}

int init_send_error(int sock, const struct error *e)
{
	struct packet p;

	packet_init(&p, INIT_MSG_ERROR);
	int r = packet_put(&p, e, sizeof(*e));

	return r < 0 ? r : packet_send(sock, &p);
}

/* The peer's error becomes ours. */
static int error_take(const struct packet *p, struct error *e)
{
	struct error peer;

	if (p->len != sizeof(peer)) {
		return error_set(e, ERRC_INTERNAL, "start handshake: ERROR of %u bytes", p->len);
	}
	memcpy(&peer, p->payload, sizeof(peer));
	error_sanitize(&peer);
	if (peer.code == ERRC_OK) {
		return error_set(e, ERRC_INTERNAL, "start handshake: ERROR without an error");
	}
	assert(e->code == ERRC_OK);
	*e = peer;
	return -1;
}

static int receive_failed(int r, enum init_stage stage, enum init_msg want, struct error *e)
{
	const char *what = want == INIT_MSG_COUNT ? "the next message" : init_msg_name(want);

	if (r == -ETIMEDOUT || r == -EAGAIN) {
		return error_set(e, ERRC_TIMEOUT, "start handshake: no %s in time, stage %s", what,
				init_stage_name(stage));
	}
	if (r == 0) {
		return error_set(e, ERRC_INTERNAL,
				"start handshake: the other side ended before %s, stage %s", what,
				init_stage_name(stage));
	}
	if (r == -EBADMSG) {
		return error_set(e, ERRC_INTERNAL, "start handshake: malformed message, stage %s",
				init_stage_name(stage));
	}
	return error_sys(e, -r, "start handshake: wait for %s", what);
}

int init_expect(int sock, enum init_stage *stage, enum init_msg want, struct packet *out_p,
		int64_t deadline_ms, struct error *e)
{
	struct packet p;
	int r = packet_recv(sock, &p, deadline_ms);

	if (r <= 0) {
		return receive_failed(r, *stage, want, e);
	}
	enum init_msg msg = p.type < INIT_MSG_COUNT ? (enum init_msg)p.type : INIT_MSG_COUNT;
	int next = init_stage_next(*stage, msg);

	if (next >= 0 && msg == INIT_MSG_ERROR) {
		packet_done(&p);
		return error_take(&p, e);
	}
	if (next < 0 || (want != INIT_MSG_COUNT && msg != want)) {
		packet_done(&p);
		return error_set(e, ERRC_INTERNAL, "start handshake: %s came in stage %s, not %s",
				init_msg_name(msg), init_stage_name(*stage),
				want == INIT_MSG_COUNT ? "one it permits" : init_msg_name(want));
	}
	*stage = (enum init_stage)next;
	*out_p = p;
	return 0;
}
