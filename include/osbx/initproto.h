/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * initproto - the handshake between the keeper and the process that becomes a sandbox's PID 1.
 *
 * parent (runtime/launch.c)            child (runtime/init.c)             execd (same pid)
 *   clone3(namespaces, pidfd)      ──▶  private mounts, host name
 *   on_clone(), idmap_write()
 *   ── IDS_DONE {trees 0..7} ────────▶  root of the namespace
 *   ── TREES {more trees} … ─────────▶  steps: root, mounts, /dev …
 *   netns_make(), attach_net()
 *   ── NET_DONE {network namespace} ─▶  enters it; /sys and the mounts above it
 *   meanwhile()
 *   record_pid()
 *   ── GO ───────────────────────────▶  execveat(execd memfd)  ──▶         enter()
 *   ◀───────────────────────────────────────────────────────────── UP ──
 *   at any time before UP: ◀── ERROR {struct error}
 *
 * One permit table {stage, message, next stage} is used by both sides; a message that the stage
 * does not permit is ERRC_INTERNAL with both names. End of file is an error at every stage. GO may
 * be sent while the child still mounts: no side waits for what it does not need.
 */
#ifndef OSBX_INITPROTO_H
#define OSBX_INITPROTO_H

#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/packet.h>

enum init_msg {
	INIT_MSG_IDS_DONE,
	INIT_MSG_TREES,
	INIT_MSG_NET_DONE,
	INIT_MSG_GO,
	INIT_MSG_UP,
	INIT_MSG_ERROR,
	INIT_MSG_COUNT,
};

enum init_stage {
	INIT_STAGE_CLONED, /* waits for ids */
	INIT_STAGE_IDS,    /* has ids; more trees may follow */
	INIT_STAGE_NET,    /* network is there */
	INIT_STAGE_GONE,   /* execd is starting */
	INIT_STAGE_UP,     /* execd serves; end of the protocol */
	INIT_STAGE_COUNT,
};

/* Names for errors and tests. */
const char *init_msg_name(enum init_msg msg);
const char *init_stage_name(enum init_stage stage);
/* Next stage when msg is permitted in stage (ERROR stays in it), else -1. Who sends advances its
 * own stage with this, too. */
int init_stage_next(enum init_stage stage, enum init_msg msg);
/* Send a message without payload but with up to 8 descriptors (borrowed). 0 or -errno. */
int init_send(int sock, enum init_msg msg, const int *fds, uint32_t fds_n) MUST_CHECK;
/* Send the child's error; then the child exits. 0 or -errno. */
int init_send_error(int sock, const struct error *e) NONNULL(2) MUST_CHECK;
/* Wait for message want, which *stage must permit (INIT_MSG_COUNT: any that *stage permits; out_p's
 * type says which), and advance *stage. Fails with the peer's own
 * error (ERROR), ERRC_TIMEOUT, or ERRC_INTERNAL (end of file, unexpected message). The caller owns
 * the descriptors in out_p. */
int init_expect(int sock, enum init_stage *stage, enum init_msg want, struct packet *out_p,
		int64_t deadline_ms, struct error *e) MUST_CHECK NONNULL(2, 4, 6);

#endif
