/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * code_frame - frames of the channel between PID 1 and a driver: "KIND LENGTH\n" and LENGTH bytes.
 */
#ifndef OSBX_EXECD_CODE_FRAME_H
#define OSBX_EXECD_CODE_FRAME_H

#include <osbx/compiler.h>
#include <osbx/span.h>

#define CODE_FRAME_RUN      'R' /* to the driver: execute the payload */
#define CODE_FRAME_ACK      'A' /* to the driver: what was written before SYNC has been read */
#define CODE_FRAME_HELLO    'H' /* it takes runs */
#define CODE_FRAME_SYNC     'S' /* read the pipes, then acknowledge */
#define CODE_FRAME_OUT      'O' /* text of stdout that does not come by the pipe */
#define CODE_FRAME_ERR      'U' /* the same of stderr */
#define CODE_FRAME_DISPLAY  'D'
#define CODE_FRAME_RESULT   'X'
#define CODE_FRAME_ERROR    'E'
#define CODE_FRAME_FINISHED 'F'

#define CODE_FRAME_HEAD_MAX 16

struct code_frame {
	char kind;
	struct span payload; /* borrowed */
};

/* The frame at the beginning of in, from a driver. *out_n: its bytes. 1, 0: not all of it is there,
 * -EBADMSG: no such kind, no decimal length, or a payload that is too large for its kind. */
int code_frame_next(struct span in, struct code_frame *out, size_t *out_n) NONNULL(2, 3) MUST_CHECK;

#endif
