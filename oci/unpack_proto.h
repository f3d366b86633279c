/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack_proto - between oci/unpack.c and its helpers: one SEQPACKET socket each.
 *
 *   parent                                helper
 *     JOB {descriptors}, n x LOWER ────▶
 *                              ◀────  UNPACKED {statistics}     all entries are there
 *     FINISH (layers below are) ─────▶
 *                              ◀────  DONE                      the layer is complete
 *   at any time                ◀────  ERROR {struct error}
 */
#ifndef OSBX_OCI_UNPACK_PROTO_H
#define OSBX_OCI_UNPACK_PROTO_H

#include <stdint.h>

#include <osbx/digest.h>
#include <osbx/idmap.h>
#include <osbx/packet.h>

#include "layer.h"

#define UNPACK_CONTROL_FD 3
#define UNPACK_NAME_MAX   128 /* ".staging-…/N" or 64 hexadecimal digits */

enum unpack_msg {
	UNPACK_MSG_JOB,
	UNPACK_MSG_LOWER,
	UNPACK_MSG_UNPACKED,
	UNPACK_MSG_FINISH,
	UNPACK_MSG_DONE,
	UNPACK_MSG_ERROR,
	UNPACK_MSG_COUNT,
};

enum unpack_kind {
	UNPACK_KIND_LAYER,
	UNPACK_KIND_VERIFY,  /* the layer is there; hash and copy the blob */
	UNPACK_KIND_ARCHIVE, /* an image archive, not a layer */
	UNPACK_KIND_COUNT,
};

/* Descriptors that come with JOB, in this order; the last one is left out without a copy. */
enum unpack_fd {
	UNPACK_FD_BLOB,
	UNPACK_FD_TREE, /* what dir and the lower names are beneath */
	UNPACK_FD_USERNS,
	UNPACK_FD_USAGE,
	UNPACK_FD_COPY,
	UNPACK_FD_COUNT,
};

struct unpack_job {
	uint32_t kind;
	uint32_t index; /* in unpack_usage.done */
	uint32_t lowers_n;
	uint32_t reserved;
	uint64_t size; /* of the blob, UINT64_MAX: not known */
	uint64_t budget;
	uint64_t entries_max;
	struct digest blob;
	struct digest diff;
	struct idmap map;
	char dir[UNPACK_NAME_MAX];
};
_Static_assert(sizeof(struct unpack_job) <= PACKET_PAYLOAD_MAX, "a job travels in one packet");
_Static_assert(UNPACK_FD_COUNT <= (int)PACKET_FDS_MAX, "with all its descriptors");

#endif
