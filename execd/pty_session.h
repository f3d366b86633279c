/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * pty_session - shells that clients attach to over WebSockets: the sessions (pty_api.c), their
 * processes (pty_shell.c), their clients (pty_client.c).
 */
#ifndef OSBX_EXECD_PTY_SESSION_H
#define OSBX_EXECD_PTY_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/http.h>
#include <osbx/id.h>
#include <osbx/loop.h>
#include <osbx/websocket.h>

#include "ring.h"

#define PTY_INSIDE_MAX    32 /* sessions that were made from inside */
#define PTY_SESSIONS_MAX  64
#define PTY_CLIENTS_MAX   16 /* of a session: one that controls it, viewers */
#define PTY_INPUT_MAX     (2U << 20)
#define PTY_INPUT_WAITING (64U << 10)  /* beyond that, its client is not read */
#define PTY_PENDING_MAX   (256U << 10) /* beyond that, the shell's output is not */
#define PTY_LATE_MAX      (4U << 20)   /* a viewer that is so far behind is dropped */

/* Channels of binary messages. */
#define PTY_CHANNEL_STDIN  0x00
#define PTY_CHANNEL_STDOUT 0x01
#define PTY_CHANNEL_STDERR 0x02
#define PTY_CHANNEL_REPLAY 0x03

#define PTY_CLOSE_DONE   1000
#define PTY_CLOSE_FAILED 1011
#define PTY_CLOSE_LATE   1013
#define PTY_CLOSE_TAKEN  4001
#define PTY_STDERR       1 /* index of streams[] */
#define PTY_STREAMS      2

struct execd;
struct pty;

struct pty_client {
	struct websocket *ws;
	struct pty *pty;
	bool is_viewer;
	bool is_over; /* its closing handshake goes on; it gets and says nothing any more */
	struct pty_client *next;
};

enum pty_stage {
	PTY_IDLE, /* not started yet, or its shell has ended */
	PTY_STARTING,
	PTY_RUNNING,
};

struct pty_stream {
	struct loop_source src;
	int fd;
	struct pty *pty;
};

struct pty {
	struct execd *execd;
	struct id id;
	char *cwd;     /* or NULL */
	char *command; /* or NULL: interactive */
	enum pty_stage stage;
	bool is_pipe;                           /* no terminal: three pipes */
	bool is_inside;                         /* made by a process of the sandbox */
	bool is_deleted;                        /* it goes with its shell */
	uint32_t tag;                           /* of the shell */
	struct pty_stream streams[PTY_STREAMS]; /* output; with a terminal only the first */
	int in_fd;                              /* input */
	struct loop_source in;                  /* while .input waits to be written */
	struct buf input;
	struct ring ring;
	uint16_t rows;
	uint16_t cols;
	struct pty_client *clients;
	struct pty *next;
};

/* The session of a request's first parameter. NULL: 404 has been answered. */
struct pty *pty_of(struct http_req *rq) NONNULL(1) MUST_CHECK;
/* Free it once neither its shell nor its clients need it. */
void pty_free_if_done(struct pty *p) NONNULL(1);

/* Start the shell of an idle session; its end comes as messages to the clients. */
int shell_start(struct pty *p, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Its whole tree. */
void shell_kill(struct pty *p) NONNULL(1);
/* Bytes for its standard input. -EMSGSIZE: it does not read. */
int shell_write(struct pty *p, struct span data) NONNULL(1) MUST_CHECK;
/* An interrupt goes to what runs in the foreground of the terminal, as from a keyboard. */
void shell_signal(const struct pty *p, int signo) NONNULL(1);
void shell_resize(struct pty *p, uint16_t rows, uint16_t cols) NONNULL(1);
/* Clients have taken what they were sent: read on. */
void shell_resume(struct pty *p) NONNULL(1);

/* A binary message to all; true when what follows has to wait for the one that controls. */
bool clients_output(struct pty *p, struct span message) NONNULL(1) MUST_CHECK;
/* The shell has taken its input: read on. */
void clients_resume(struct pty *p) NONNULL(1);
/* A JSON text message to all, then close. */
void clients_end(struct pty *p, struct span json, uint16_t code, const char *reason) NONNULL(1, 4);
/* {"type":"error","code","error"} */
void client_error_format(struct buf *out, const char *code, const char *message) NONNULL(1, 2, 3);
/* WebSocket of a session. */
void client_attach(struct http_req *rq, struct pty *p) NONNULL(1, 2);

#endif
