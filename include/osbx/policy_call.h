/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: api
 * policy_call - a request to the policy API of a sandbox (netd.h), through its keeper. Blocks.
 */
#ifndef OSBX_POLICY_CALL_H
#define OSBX_POLICY_CALL_H

#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/dirs.h>
#include <osbx/error.h>
#include <osbx/id.h>
#include <osbx/span.h>

#define POLICY_ANSWER_MAX (8U << 20)

struct policy_call {
	const char *method;
	const char *target; /* begins with '/' */
	struct span body;   /* JSON, or none */
};

/* Ask, with the token that is on record. *out_status is the answer's, its body is appended to
 * out_body, whose maximum bounds it. ERRC_CONFLICT: the sandbox has no private network, or is not
 * running; ERRC_UNAVAILABLE: nobody answers. */
int policy_call(const struct dirs *dirs, const struct id *id, const struct policy_call *call,
		int *out_status, struct buf *out_body, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3, 4, 5, 6);

#endif
