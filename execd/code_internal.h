/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * code_internal - contexts, their runs, and the back ends that execute code; see code_context.c.
 */
#ifndef OSBX_EXECD_CODE_INTERNAL_H
#define OSBX_EXECD_CODE_INTERNAL_H

#include <stdint.h>

#include <osbx/id.h>
#include <osbx/json.h>
#include <osbx/span.h>
#include <osbx/strv.h>

#include "api.h"
#include "code.h"
#include "event.h"

#define CODE_CONTEXTS_MAX      128
#define CODE_CONTEXTS_INSIDE   64 /* of them, made by the sandbox's own processes */
#define CODE_TEXT_MAX          (4U << 20)
#define CODE_PENDING_MAX       (256U << 10) /* a client that has more to take stops the run */
#define CODE_GRACE_MS          3000         /* between an interrupt and SIGKILL */
#define CODE_BUNDLE_MAX        ((16U << 20) + (64U << 10))
#define CODE_LANGUAGE_MAX      32
#define CODE_PRESTART_VARIABLE "OSBX_CODE_PRESTART" /* "python,bash": of the sandbox */

/* Error names of our own; those of a language come from its driver. */
#define CODE_KERNEL_DIED        "KernelDied"
#define CODE_KERNEL_INTERRUPTED "KernelInterrupted" /* it ignored the interrupt, and was killed */
#define CODE_KERNEL_TIMEOUT     "KernelTimeout"
#define CODE_KERNEL_PROTOCOL    "KernelProtocolError"

/* A language that a driver of our own runs. */
struct code_lang {
	const char *language;
	const char *const *aliases;   /* NULL-terminated, or NULL */
	const char *const *argv;      /* NULL-terminated; argv[0] is looked for in PATH */
	const char *const *otherwise; /* where argv[0] is not there; or NULL */
	const char *const *env;       /* NULL-terminated NAME=VALUE, or NULL */
	const char *program;          /* NULL, or what must be in PATH for argv to be of use */
	const char *driver;           /* name of a file of drivers/ */
	/* It may lose an interrupt, which is repeated each so often, 0: never. Long where the
	 * code's own way to end is quick, and is not to be interrupted itself. */
	unsigned int again_ms;
};

/* code_lang.c */
extern const struct code_lang code_langs[];
extern const size_t code_langs_n;
/* Language by its name or an alias, or NULL. */
const struct code_lang *code_lang_find(const char *name) NONNULL(1);
/* Is a program of it in the PATH of the main process? Never a promise. */
bool code_lang_is_there(const struct execd *x, const struct code_lang *lang) NONNULL(1, 2);
/* Names of those that are there, ", " between them, for messages. */
void code_langs_list(const struct execd *x, struct buf *out) NONNULL(1, 2);

/* Text of a driver, made by drivers/embed.py from its file without comments and empty lines. */
struct code_driver {
	const char *name;
	const char *text;
	size_t n;
};
extern const struct code_driver code_drivers[];
extern const size_t code_drivers_n;

struct code_context;
struct code_run;

/*
 * What executes the code of a context. All calls come from the core, in the loop, and none comes
 * from within a call that the back end makes to the core, but .free after code_ended().
 */
struct code_backend {
	/* Begin to start the interpreter of c, whose .backend_state is NULL. 0, then code_started()
	 * or code_start_failed() come later; or -1. */
	int (*start)(struct code_context *c, struct error *e);
	/* Execute c->run->code; c has been started. What comes of it are calls of code_run_*. */
	void (*run)(struct code_context *c);
	/* Interrupt c->run. The core kills it when it goes on for CODE_GRACE_MS. */
	void (*interrupt)(struct code_context *c);
	/* The client of c->run can take more again; see code_run_must_wait(). */
	void (*resume)(struct code_context *c);
	/* End the interpreter and forget c: no call about it any more. c->backend_state is NULL
	 * behind it. */
	void (*stop)(struct code_context *c);
};
extern const struct code_backend code_backend_driver;
extern const struct code_backend code_backend_jupyter;

enum code_stage {
	CODE_ABSENT,   /* no interpreter: never started, or it has ended; the next run starts one */
	CODE_STARTING, /* .start has been called */
	CODE_STARTED,
};

struct code_context {
	struct code_context *next; /* codes.list, newest first */
	struct codes *codes;
	struct id id;
	char *language; /* canonical name */
	char *cwd;      /* as asked for, or NULL */
	struct strv envs;
	bool is_default; /* of its language, for runs that name no context */
	bool is_spare;   /* nobody knows of it yet */
	bool is_inside;
	const struct code_backend *backend;
	void *backend_state; /* the back end's own */
	enum code_stage stage;
	struct code_run *run;     /* or NULL */
	struct http_req *creator; /* waits for the start, or NULL */
	char *lost; /* why the interpreter ended without a run, to be told to the next one */
};

/* One run of a context. */
struct code_run {
	struct code_context *context;
	struct http_req *rq;    /* who reads the events; NULL: gone */
	struct http_req *ender; /* who waits for the end that it has asked for, or NULL */
	char *code;             /* at most CODE_TEXT_MAX bytes, valid UTF-8, no NUL */
	uint64_t eid;
	int64_t started_boot_ms;
	int64_t timeout_ms; /* 0: none */
	uint64_t memory;    /* bytes that the interpreter may have, 0: no limit */
	bool has_begun;     /* "init" has been sent */
	bool is_running;    /* .run of the back end has been called */
	bool has_error;
	bool is_interrupted;
	int64_t grace_end_ms; /* clock_boot_ms(): then it is killed */
	bool is_timed_out;
	struct event_text texts[2];
	struct loop_source ping;
	struct loop_source deadline; /* of timeout_ms, then of the grace */
};

/* All contexts of a sandbox. */
struct codes {
	struct execd *execd;
	struct code_context *list;
	size_t n;
	struct buf out;          /* events on their way to one client */
	size_t in_sum;           /* bytes of drivers that are no frame yet */
	bool is_python3_settled; /* of a Jupyter server: it has no other kernel of Python */
};

/* The table of a sandbox; made at the first call. */
struct codes *codes_of(struct execd *x) NONNULL(1);
/* The back end of new contexts: Jupyter where the sandbox has a JUPYTER_HOST, else our drivers. */
const struct code_backend *code_backend_of(const struct execd *x) NONNULL(1);

/* From a back end: the interpreter runs, and takes code (or keeps it until it can). */
void code_started(struct code_context *c) NONNULL(1);
/* From a back end, instead of code_started(): .stop is called, who waits is answered. */
void code_start_failed(struct code_context *c, const struct error *e) NONNULL(1, 2);
/* From a back end: the interpreter has ended by itself. .stop is called; a run ends with this
 * error, whose value has a word on the state that is lost behind it, and without a run the next one
 * is told. */
void code_ended(struct code_context *c, const char *ename, const char *evalue) NONNULL(1, 2, 3);

/* From a back end, about c->run, which is there. */
/* Does the client have enough to take? Then come back when .resume is called. */
bool code_run_must_wait(const struct code_run *r) NONNULL(1);
/* Text of stdout, or of stderr, as it came; characters may be cut. */
void code_run_text(struct code_run *r, bool is_stderr, struct span text) NONNULL(1);
/* A result (count: its number) or a display (NULL). The bundle is an object, MIME type to data. */
void code_run_result(struct code_run *r, const struct json *bundle, const uint64_t *count)
		NONNULL(1, 2);
/* An error; trace is an array of strings, or NULL. The run goes on until code_run_finished(). */
void code_run_error(struct code_run *r, const char *ename, const char *evalue,
		const struct json *trace) NONNULL(1, 2, 3);
/* The last call: r is gone. */
void code_run_finished(struct code_run *r) NONNULL(1);

/* code_run.c, for the core. */
/* Begin a run for a request, which is answered later. init has .code, which is taken over, and the
 * limits. */
void code_run_begin(struct code_context *c, struct http_req *rq, const struct code_run *init)
		NONNULL(1, 2, 3);
/* The interpreter is there: give it the code. */
void code_run_go(struct code_run *r) NONNULL(1);
/* End with an error that ends the answer (before "init" with a status). */
void code_run_abort(struct code_run *r, const char *ename, const char *evalue) NONNULL(1, 2, 3);
/* The interpreter could not be started. */
void code_run_refuse(struct code_run *r, const struct error *e) NONNULL(1, 2);
/* Interrupt by the back end, SIGKILL by the core after a while. */
void code_run_interrupt(struct code_run *r) NONNULL(1);

/* What a new context is to be. Everything is borrowed for the call. */
struct code_wish {
	const char *language;    /* canonical name */
	const char *cwd;         /* or NULL */
	const struct strv *envs; /* or NULL */
	bool is_default;
	bool is_inside;
};

/* code_context.c, for the core. */
/* A context that somebody knows, or NULL. */
struct code_context *code_context_find(const struct codes *t, const char *id)
		NONNULL(1, 2) MUST_CHECK;
/* That of a language for runs that name none, or NULL. */
struct code_context *code_context_default(const struct codes *t, const char *language)
		NONNULL(1, 2) MUST_CHECK;
/* A new one, whose interpreter is starting or started. NULL: error. */
struct code_context *code_context_new(struct codes *t, const struct code_wish *w, struct error *e)
		NONNULL(1, 2, 3) MUST_CHECK;
/* Start an interpreter for one that has none. */
int code_context_start(struct code_context *c, struct error *e) NONNULL(1, 2) MUST_CHECK;
/* End its interpreter; the context stays. */
void code_context_kill(struct code_context *c) NONNULL(1);
/* End a context with its run, and free it. */
void code_context_drop(struct code_context *c) NONNULL(1);
/* Have a started interpreter of a language ready. */
void code_spare_add(struct codes *t, const char *language) NONNULL(1, 2);

/* code_api.c, for the core. */
/* {"id","language","cwd"} */
void code_context_answer(struct http_req *rq, const struct code_context *c) NONNULL(1, 2);
/* Answer an error of a start. */
void code_fail(struct http_req *rq, const struct error *e) NONNULL(1, 2);

#endif
