/* SPDX-License-Identifier: Apache-2.0 */
/*
 * console_flow - bytes from one descriptor to another in a loop, without ever waiting outside of
 * it.
 */
#ifndef OSBX_RUNTIME_CONSOLE_FLOW_H
#define OSBX_RUNTIME_CONSOLE_FLOW_H

#include <stdbool.h>
#include <stddef.h>

#include <osbx/compiler.h>
#include <osbx/loop.h>

struct flow_end {
	int fd;
	bool owned;     /* closed with the flow */
	bool foreign;   /* the caller's: its flags are not ours to change */
	bool is_socket; /* MSG_DONTWAIT does what O_NONBLOCK would */
	bool is_ready;  /* a file: never waits, and epoll does not take it */
	bool is_asked;  /* blocking: poll before each read or small write */
	bool can_splice;
	struct loop_source src;
};

struct flow {
	struct loop *loop;
	struct flow_end from;
	struct flow_end to;
	bool lazy;     /* from is a pipe of ours: nothing is looked at before the first byte */
	bool prepared; /* the ends were looked at */
	bool running;
	bool ended;    /* the source's end was read; what is in bytes is still to be written */
	bool draining; /* nothing to read is the end */
	bool splice;
	size_t drain_left; /* while draining */
	int failure;       /* -errno of a read or write of the caller's end; 0: none */
	char *bytes;       /* read, not yet written */
	size_t at;
	size_t n;
	/* The flow has ended and its owned descriptors are closed. May be NULL. */
	void (*on_end)(void *ctx);
	/* The source is at its end: more bytes to be written behind it, at most size. May be
	 * NULL. */
	size_t (*on_eof)(void *ctx, char *out, size_t size);
	void *ctx;
};

/* Begin. loop, the descriptors, owned, foreign, lazy and the callbacks are set. 0 or -errno. */
int flow_start(struct flow *f) NONNULL(1) MUST_CHECK;
/* What is there is still delivered; a writer that holds the source open is not waited for. */
void flow_drain(struct flow *f) NONNULL(1);
/* End at once, without callback. No effect when it has ended or never begun. */
void flow_stop(struct flow *f) NONNULL(1);

#endif
