/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code - what osbx code is made of: requests to the execution API of a sandbox (code_client.c), and
 * what becomes of events (code_show.c).
 */
#ifndef OSBX_CLI_CODE_H
#define OSBX_CLI_CODE_H

#include <osbx/dirs.h>
#include <osbx/id.h>
#include <osbx/json.h>
#include <osbx/loop.h>

#define CODE_TEXT_MAX (4U << 20) /* as the API takes it */

/* How results are shown. */
enum code_images {
	CODE_IMAGES_NONE,
	CODE_IMAGES_KITTY,
	CODE_IMAGES_ITERM,
};

struct code_show {
	const char *dir; /* images of results become files of it; or NULL */
	enum code_images images;
	bool has_colour;     /* of standard error */
	unsigned int runs_n; /* for names of files */
	unsigned int images_n;
	bool has_error;
};

/* What the terminal at standard output can show, by its environment. */
enum code_images code_images_of(int fd);
/* Print an event of a run: text to standard output and standard error as they say. 0, or -1: it
 * cannot be written. */
int code_show_event(struct code_show *s, const struct json *event, struct error *e)
		NONNULL(1, 2, 3) MUST_CHECK;

struct exchange;

/* A sandbox that is spoken to. */
struct code_client {
	const struct dirs *dirs;
	const struct id *id;
	struct loop *loop;
	int signal_fd; /* SIGINT, which is blocked, as is SIGPIPE */
	struct loop_source signals;
	struct exchange *exchange; /* under way */
};

#define CODE_CLIENT_INIT         \
	{                        \
		.signal_fd = -1, \
	}

int code_client_open(struct code_client *c, const struct dirs *dirs, const struct id *id,
		struct error *e) NONNULL(1, 2, 3, 4) MUST_CHECK;
void code_client_done(struct code_client *c);
AUTO_DEFINE(code_client, struct code_client, code_client_done);

/* One request; the answer, when it is one of success, in *out_answer. */
int code_client_ask(struct code_client *c, const char *method, const char *target, struct span body,
		struct json **out_answer, struct error *e) NONNULL(1, 2, 3, 5, 6) MUST_CHECK;

/* A run. context is JSON: {"id":…} or {"language":…}. */
struct code_client_run {
	const char *context;
	const char *code;
	int64_t timeout_ms; /* 0: none */
};
/* Run it and show what comes. SIGINT interrupts it, a second one leaves it; the reader's end
 * interrupts it too. *out_status: 0, 1 when the code has failed, 130 when it was left, 141 when
 * nobody reads. */
int code_client_run(struct code_client *c, const struct code_client_run *run,
		struct code_show *show, int *out_status, struct error *e)
		NONNULL(1, 2, 3, 4, 5) MUST_CHECK;

#endif
