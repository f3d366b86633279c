/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * packet - one typed SOCK_SEQPACKET message with up to 8 descriptors.
 *
 * Framing of the handshake (initproto.h) and of execd's control channel (execd_proto.h). Every
 * packet carries a version: keepers outlive upgrades.
 */
#ifndef OSBX_PACKET_H
#define OSBX_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/compiler.h>

#define PACKET_VERSION     1
#define PACKET_FDS_MAX     8
#define PACKET_PAYLOAD_MAX 2032

struct packet {
	uint16_t version;
	uint16_t type;
	uint32_t len;   /* bytes of payload in use */
	uint32_t fds_n; /* descriptors in use; owned by the receiver after packet_recv */
	uint32_t flags;
	char payload[PACKET_PAYLOAD_MAX];
	int fds[PACKET_FDS_MAX]; /* not part of the wire bytes */
};

/* An empty packet of a type. */
void packet_init(struct packet *p, uint16_t type) NONNULL(1);
/* Append payload bytes. 0 or -EMSGSIZE. */
int packet_put(struct packet *p, const void *data, uint32_t n) NONNULL(1) MUST_CHECK;
/* Add a descriptor to be sent (borrowed). 0 or -EMSGSIZE. */
int packet_put_fd(struct packet *p, int fd) NONNULL(1) MUST_CHECK;
/* Send; MSG_NOSIGNAL; blocks unless sock is O_NONBLOCK. 0 or -errno. */
int packet_send(int sock, const struct packet *p) NONNULL(2) MUST_CHECK;
/* Receive one packet, waiting until deadline_ms (clock_boot_ms; -1: for ever; 0: do not wait).
 * Descriptors are O_CLOEXEC and owned by the caller. 1 on a packet, 0 at the end of file,
 * -ETIMEDOUT, -EAGAIN, -EBADMSG (short, truncated, wrong version; descriptors are closed),
 * -errno. */
int packet_recv(int sock, struct packet *out_p, int64_t deadline_ms) NONNULL(2) MUST_CHECK;
/* Close the received descriptors that nobody took (fds[i] >= 0). */
void packet_done(struct packet *p) NONNULL(1);

#endif
