/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_proto - between oci/fetch.c and its helper: one SEQPACKET socket.
 *
 *   parent                                     helper
 *     SETUP {memfd} ─────────────────────▶
 *     PING ──────────────────────────────▶
 *                              ◀────────── PONG
 *     MANIFEST {tag or digest} ──────────▶
 *                              ◀────────── BODY {digest, media type, memfd}
 *     BLOB {tag, digest, size, fds} ─────▶
 *                              ◀────────── PROGRESS {tag, bytes} …
 *                              ◀────────── DONE {tag} or FAILED {tag, struct error}
 *   answers to PING and MANIFEST  ◀──────── or REFUSED {struct error}
 *   at any time                ◀────────── LOG {text}; ERROR {struct error}, then it ends
 *
 * One PING or MANIFEST is under way at a time, any number of blobs are.
 */
#ifndef OSBX_OCI_FETCH_PROTO_H
#define OSBX_OCI_FETCH_PROTO_H

#include <stdint.h>

#include <osbx/digest.h>
#include <osbx/error.h>
#include <osbx/packet.h>

#define FETCH_CONTROL_FD 3
#define FETCH_TYPE_MAX   256 /* of a media type */
#define FETCH_NAME_MAX   256 /* of a tag or digest */
#define FETCH_LOG_MAX    512

enum fetch_msg {
	FETCH_MSG_SETUP,
	FETCH_MSG_PING,
	FETCH_MSG_PONG,
	FETCH_MSG_MANIFEST,
	FETCH_MSG_BODY,
	FETCH_MSG_REFUSED,
	FETCH_MSG_BLOB,
	FETCH_MSG_PROGRESS,
	FETCH_MSG_DONE,
	FETCH_MSG_FAILED,
	FETCH_MSG_LOG,
	FETCH_MSG_ERROR,
	FETCH_MSG_COUNT,
};

struct fetch_manifest_request {
	char name[FETCH_NAME_MAX];
};

struct fetch_manifest_answer {
	struct digest digest; /* as the registry claims */
	char type[FETCH_TYPE_MAX];
};

/* With the part's descriptor and, unless it is unwanted, the pipe's. */
struct fetch_blob_request {
	uint64_t size;
	uint32_t tag;
	struct digest digest;
};

/* PROGRESS and DONE. */
struct fetch_blob_state {
	uint64_t done;
	uint64_t resumed;
	uint32_t tag;
	uint32_t reserved;
};

struct fetch_blob_failure {
	struct fetch_blob_state state;
	struct error error;
};
_Static_assert(sizeof(struct fetch_blob_failure) <= PACKET_PAYLOAD_MAX,
		"messages travel in one packet");

#endif
