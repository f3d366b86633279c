/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * command_internal - a running or finished command, and the table of all; see command_run.c.
 */
#ifndef OSBX_EXECD_COMMAND_INTERNAL_H
#define OSBX_EXECD_COMMAND_INTERNAL_H

#include "api.h"
#include "command_log.h"
#include "command_replay.h"
#include "commands.h"
#include "event.h"

#define COMMAND_ID_BYTES    16
#define COMMAND_READ_BYTES  (16U << 10)
#define COMMAND_PENDING_MAX (256U << 10) /* a client that has more to take stops the command */
#define COMMAND_PARTS_MAX   (16U << 20)  /* lines without an end, of all commands */
#define COMMAND_TEXT_MAX    131071       /* MAX_ARG_STRLEN of the kernel, without the NUL */
#define COMMAND_PING_MS     3000
#define COMMAND_GRACE_MS    3000 /* between SIGTERM and SIGKILL */

enum command_kind {
	COMMAND_FOREGROUND,
	COMMAND_BACKGROUND,
	COMMAND_SESSION, /* a run of a session; stands in no list of commands */
};

enum command_stage {
	COMMAND_STARTING,
	COMMAND_RUNNING,
	COMMAND_EXITED, /* its last output is on its way */
	COMMAND_DONE,   /* a record */
};

/* One pipe of its output. */
struct command_stream {
	struct command *command;
	int fd; /* -1: at its end */
	struct loop_source src;
	struct lines lines;
	struct buf rest; /* read, but too much for the client for now */
	size_t left;     /* COMMAND_EXITED: bytes that are still to be read */
};

struct command {
	struct command *next; /* commands.list */
	struct commands *table;
	enum command_kind kind;
	enum command_stage stage;
	uint64_t seq;
	char id[2 * COMMAND_ID_BYTES + 1];
	char shown_id[40]; /* text of "init" */
	char *content;
	struct http_req *rq;    /* who reads the events, or NULL */
	struct http_req *ender; /* who waits for the end that it has asked for, or NULL */
	uint32_t tag;           /* until COMMAND_EXITED */
	int64_t started_wall_ms;
	int64_t started_boot_ms;
	int64_t finished_wall_ms;
	int64_t timeout_ms; /* 0: none */
	int exit_code;      /* -1: ended by a signal */
	char *error;        /* what to say of the end, NULL: exit status 0 */
	bool is_timed_out;
	bool is_inside;  /* started by a process of the sandbox */
	bool is_foreign; /* of a user that the sandbox's own processes are not */
	bool is_pumping;
	uint64_t eid;
	struct command_replay replay;
	struct command_stream streams[2]; /* stdout and stderr, or both in the first */
	struct command_log log;           /* COMMAND_BACKGROUND */
	struct loop_source ping;
	struct loop_source deadline; /* of timeout_ms, then of the grace */
	void (*on_end)(struct command *c, void *ctx);
	void *ctx;
};

struct session;

/* A pipe whose command is done, and which somebody still holds: read and dropped. */
struct drain;

struct commands {
	struct execd *execd;
	struct command *list; /* newest first */
	uint64_t seq;
	size_t parts; /* bytes of lines without an end */
	struct drain *drains;
	size_t drains_n;
	struct buf out; /* events on their way to one client */
	struct session *sessions;
	size_t sessions_n;
	size_t sessions_bytes; /* of their states */
	uint64_t sessions_used;
};

/* What is to be started. Everything is borrowed for the call. */
struct command_wish {
	enum command_kind kind;
	const char *content;
	const char *shown_id; /* NULL: its own */
	struct execd_process process;
	struct process_more more;
	int64_t timeout_ms;
	bool is_foreign;
	void (*on_end)(struct command *c,
			void *ctx); /* COMMAND_DONE, or not started; may be NULL */
	void *ctx;
};

/* The table of a sandbox; made at the first call. */
struct commands *commands_of(struct execd *x) NONNULL(1);
/* Command by its id, or NULL. No runs of sessions. */
struct command *command_find(const struct commands *t, const char *id) NONNULL(1, 2) MUST_CHECK;
/* A new command in the table, COMMAND_STARTING. */
struct command *command_new(struct commands *t, const struct command_wish *w, bool is_inside)
		NONNULL(1, 2);
/* May the sandbox's own processes start one more? They leave room for others. */
bool commands_have_room_inside(const struct commands *t) NONNULL(1) MUST_CHECK;
/* Out of the table, and freed. Its pipes are closed or drained. */
void command_drop(struct command *c) NONNULL(1);
/* COMMAND_DONE has been set: forget the oldest records that are too many. */
void commands_trim(struct commands *t) NONNULL(1);
/* Read and drop what comes from a pipe, until its end; *fd is taken over. */
void command_drain(struct commands *t, int *fd) NONNULL(1, 2);

/* Start a command for a request, which is answered later, or ends here with an error. NULL: it has
 * been answered. */
struct command *command_start(struct http_req *rq, const struct command_wish *w) NONNULL(1, 2);
/* SIGKILL to its whole tree. */
void command_kill(struct command *c) NONNULL(1);
/* SIGTERM to its group, SIGKILL to its whole tree after a while and at its end. */
void command_interrupt(struct command *c) NONNULL(1);
/* The client of the events is rq from now on; what it is owed has been written to it. */
void command_attach(struct command *c, struct http_req *rq) NONNULL(1, 2);
/* Fields and status of an answer with events. */
void command_begin_events(struct http_req *rq) NONNULL(1);
/* Begin to read its pipes. */
void command_watch(struct command *c) NONNULL(1);
/* Take what can be taken from its pipes; when all output is out after COMMAND_EXITED,
 * command_finish is called. */
void command_pump(struct command *c) NONNULL(1);
/* Events: where they are appended, and sending what was appended. */
struct events command_events(struct command *c) NONNULL(1) MUST_CHECK;
void command_flush(struct command *c, const struct events *ev) NONNULL(1, 2);
/* End the event of a very long line before its line ends. */
void command_end_open(struct command *c) NONNULL(1);
/* Last event, end of the answer, COMMAND_DONE. */
void command_finish(struct command *c) NONNULL(1);

/* sessions.c: end a session by its id. False: there is none. */
bool session_end(struct execd *x, const char *id) NONNULL(1, 2) MUST_CHECK;

#endif
