/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * code_jupyter_call - one request to the Jupyter server of the sandbox.
 */
#ifndef OSBX_EXECD_CODE_JUPYTER_CALL_H
#define OSBX_EXECD_CODE_JUPYTER_CALL_H

#include <osbx/http_client.h>

#include "code_jupyter.h"
#include "dial.h"

struct execd;
struct jupyter_call;

struct jupyter_call_opts {
	const char *method;
	const char *path; /* behind the base */
	struct span body; /* JSON, or of no bytes */
	const char *fields;
	const char *upgrade;
	/* As of http_client.h; the connection could not be made: r is that error, a is NULL. The
	 * last call, never from within jupyter_call_start. NULL: nobody waits for it. */
	void (*on_end)(void *ctx, int r, const struct http_answer *a);
	void *ctx;
};

/* Begin; everything is copied. *slot, where there is one, is NULL again when on_end is called. -1:
 * the sandbox's environment names no server that can be asked. */
int jupyter_call_start(struct execd *x, const struct jupyter_call_opts *opts,
		struct jupyter_call **slot, struct error *e) NONNULL(1, 2, 4) MUST_CHECK;
/* Give up without a call; c may be NULL. */
void jupyter_call_cancel(struct jupyter_call *c);

#endif
