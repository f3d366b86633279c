/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   SPECS ── the kernel's name ──▶ SESSION ── ids ──▶ CHANNELS ── 101 ──▶ INFO ── reply ──▶
 *     ▲ │                                                                        │
 *     └─┘ no server yet, or not this kernel yet            PRELUDE ◀── directory ┤
 *                                                             └──▶ READY ◀───────┘
 *
 * An image starts its server and installs its kernels while clients already ask: a server that does
 * not listen or is not ready is asked again for START_MS, a kernel that is not in its list for
 * KERNEL_MS, and so is one for Python that is named python3 (see code_jupyter.h), once in a
 * sandbox.
 *
 * A run is one execute_request. It has ended when its reply is there and the kernel was idle behind
 * it; both come on one connection, but on different sockets of the kernel, in either order.
 *
 * Whoever stops a context whose session is being made leaves an orphan behind, which ends the
 * session as soon as it knows its id.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/utsname.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/sys.h>
#include <osbx/websocket.h>

#include "code_internal.h"
#include "code_jupyter.h"
#include "code_jupyter_call.h"

#define START_MS       30000
#define KERNEL_MS      2500
#define READY_MS       60000 /* of a kernel that was started */
#define RETRY_MS       200
#define WATCH_MS       1000
#define FAREWELL_MS    1000
#define LAST_WORDS_MS  100
#define FAREWELL_TRIES 10
#define PING_MS        60000
#define REQUEST_MAX    ((size_t)8 * CODE_TEXT_MAX)

#define ENDED "the kernel has ended"

enum step {
	STEP_SPECS,
	STEP_SESSION,
	STEP_CHANNELS,
	STEP_INFO,
	STEP_PRELUDE,
	STEP_READY,
};

struct jupyter {
	struct code_context *context; /* NULL: an orphan */
	struct id name; /* of the session: a server gives an old one to who asks for it again */
	struct execd *execd;
	enum step step;
	struct jupyter_call *call;
	struct jupyter_call *watch; /* beside CHANNELS */
	struct websocket *ws;
	struct loop_source timer; /* the next try, or the end of patience */
	int64_t give_up_ms;
	int64_t kernel_give_up_ms; /* 0: there was no list yet */
	char *kernel;              /* name of its kind */
	char *session_id;
	char *kernel_id;
	char *prelude; /* or NULL */
	char key[WEBSOCKET_KEY_SIZE];
	uint64_t n;   /* of the last request */
	char *parent; /* its id */
	char *usage;  /* of the question for its pid */
	int pid_fd;   /* or -1 */
	struct loop_source process;
	bool is_idle;    /* behind it */
	bool is_replied; /* to it */
};

/* The end of a session, which outlives its context. */
struct farewell {
	struct execd *execd;
	char *path;
	unsigned int tries;
	struct loop_source timer;
};

static void step_begin(struct jupyter *j);

static void jupyter_free(struct jupyter *j)
{
	loop_remove(j->execd->loop, &j->timer);
	jupyter_call_cancel(j->call);
	jupyter_call_cancel(j->watch);
	websocket_free(j->ws);
	free(j->kernel);
	free(j->session_id);
	free(j->kernel_id);
	free(j->prelude);
	loop_remove(j->execd->loop, &j->process);
	fd_close(&j->pid_fd);
	free(j->parent);
	free(j->usage);
	free(j);
}

static void farewell_on_time(struct loop *loop, struct loop_source *src, uint32_t events);

static void farewell_free(struct farewell *f)
{
	free(f->path);
	free(f);
}

/* A server that just restarts a kernel fails to end it. */
static void farewell_on_end(void *ctx, int r, const struct http_answer *a)
{
	struct farewell *f = ctx;

	if ((r == 0 && a->status < 500) || ++f->tries == FAREWELL_TRIES) {
		farewell_free(f);
	} else {
		loop_timer(f->execd->loop, &f->timer, clock_boot_ms() + FAREWELL_MS,
				farewell_on_time);
	}
}

static void farewell_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct farewell *f = container_of(src, struct farewell, timer);
	const struct jupyter_call_opts opts = {
		.method = "DELETE", .path = f->path, .on_end = farewell_on_end, .ctx = f
	};
	struct error e = ERROR_INIT;

	(void)loop;
	(void)events;
	if (jupyter_call_start(f->execd, &opts, NULL, &e) < 0) {
		farewell_free(f);
	}
}

static void session_end(struct jupyter *j)
{
	if (j->session_id) {
		struct farewell *f = mem_new(struct farewell);

		f->execd = j->execd;
		f->path = mem_printf("/api/sessions/%s", j->session_id);
		loop_timer(j->execd->loop, &f->timer, clock_boot_ms(), farewell_on_time);
	}
	jupyter_free(j);
}

/* j is gone behind it, as behind the next two. */
static void start_fail(struct jupyter *j, const struct error *e)
{
	assert(j->context);
	code_start_failed(j->context, e);
}

static void fail(struct jupyter *j, enum errc code, const char *what)
{
	struct error e = ERROR_INIT;

	(void)error_set(&e, code, "the Jupyter server of the sandbox %s", what);
	start_fail(j, &e);
}

static void lose(struct jupyter *j, const char *ename, const char *what)
{
	struct error e = ERROR_INIT;

	if (j->step == STEP_READY) {
		code_ended(j->context, ename, what);
	} else {
		(void)error_set(&e, ERRC_UNAVAILABLE, "%s while it started", what);
		start_fail(j, &e);
	}
}

static void retry_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	step_begin(container_of(src, struct jupyter, timer));
}

static void retry(struct jupyter *j)
{
	loop_timer(j->execd->loop, &j->timer, clock_boot_ms() + RETRY_MS, retry_on_time);
}

static void ready_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	fail(container_of(src, struct jupyter, timer), ERRC_TIMEOUT,
			"has started a kernel that does not answer");
}

/* Its id, owned by the caller. */
static char *message_send(struct jupyter *j, struct jupyter_request *r)
{
	AUTO(buf) struct buf b = BUF_INIT(REQUEST_MAX);

	r->session = j->name.text;
	r->n = ++j->n;
	jupyter_request_put(r, &b);
	websocket_send_text(j->ws, buf_span(&b));
	return mem_printf("%s-%llu", r->session, (unsigned long long)r->n);
}

static void request_send(struct jupyter *j, const char *type, const char *code, bool is_silent)
{
	struct jupyter_request r = {
		.type = type, .channel = "shell", .code = code, .is_silent = is_silent
	};

	free(j->parent);
	j->parent = message_send(j, &r);
	j->is_idle = false;
	j->is_replied = false;
}

/* Some kernels tell their pid, and nothing is heard of the others. */
static void usage_ask(struct jupyter *j)
{
	struct jupyter_request r = { .type = "usage_request", .channel = "control" };

	j->usage = message_send(j, &r);
}

static void gone_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	lose(container_of(src, struct jupyter, timer), CODE_KERNEL_DIED, ENDED);
}

/* What it has said before is still on its way. */
static void process_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct jupyter *j = container_of(src, struct jupyter, process);

	(void)events;
	loop_remove(loop, src);
	loop_timer(loop, &j->timer, clock_boot_ms() + LAST_WORDS_MS, gone_on_time);
}

/* Its server looks every three seconds whether it lives; the kernel of the system knows at once. A
 * false pid makes nobody believe more than that this kernel has ended. */
static void on_usage(struct jupyter *j, const struct json *content)
{
	const char *host = json_string(json_get(content, "hostname"));
	struct utsname name;
	uint64_t pid = 0;

	if (j->pid_fd >= 0 || !host || uname(&name) < 0 || !str_eq(host, name.nodename) ||
			json_u64(json_get(content, "pid"), INT32_MAX, &pid) < 0 || pid < 2) {
		return;
	}
	j->pid_fd = sys_pidfd_open((pid_t)pid);
	if (j->pid_fd >= 0 && loop_add(j->execd->loop, &j->process, j->pid_fd, EPOLLIN,
					      process_on_end) < 0) {
		fd_close(&j->pid_fd);
	}
}

static void ready(struct jupyter *j)
{
	loop_remove(j->execd->loop, &j->timer);
	j->step = STEP_READY;
	code_started(j->context);
}

static void on_info(struct jupyter *j)
{
	usage_ask(j);
	if (j->prelude) {
		j->step = STEP_PRELUDE;
		request_send(j, "execute_request", j->prelude, true);
	} else {
		ready(j);
	}
}

static bool reply_is_ok(const struct json *content)
{
	const char *status = json_string(json_get(content, "status"));

	return status && str_eq(status, "ok");
}

static const char *text_of(const struct json *content, const char *name, const char *otherwise)
{
	const char *text = json_string(json_get(content, name));

	return text ? text : otherwise;
}

static void on_prelude(struct jupyter *j, const struct json *content)
{
	struct error e = ERROR_INIT;

	if (reply_is_ok(content)) {
		ready(j);
		return;
	}
	(void)error_set(&e, ERRC_INVALID, "directory and variables of the context: %.100s: %.150s",
			text_of(content, "ename", "failed"), text_of(content, "evalue", ""));
	start_fail(j, &e);
}

static void run_error(struct code_run *r, const struct json *content)
{
	code_run_error(r, text_of(content, "ename", "Error"), text_of(content, "evalue", ""),
			json_get(content, "traceback"));
}

static void run_display(struct code_run *r, const struct json *bundle, const uint64_t *count)
{
	if (json_is_object(bundle)) {
		code_run_result(r, bundle, count);
	}
}

/* What pagers would show ("?name"). */
static void run_pages(struct code_run *r, const struct json *content)
{
	json_for_each(payload, json_get(content, "payload")) {
		if (str_eq(text_of(payload, "source", ""), "page")) {
			run_display(r, json_get(payload, "data"), NULL);
		}
	}
}

static void on_reply(struct jupyter *j, const struct json *content)
{
	struct code_run *r = j->context->run;

	j->is_replied = true;
	run_pages(r, content);
	/* Some kernels tell an error only here; an aborted request has none. */
	if (!reply_is_ok(content) && !r->has_error) {
		run_error(r, content);
	}
}

static void on_result(struct code_run *r, const struct json *content)
{
	uint64_t count = 0;
	bool has_count = json_u64(json_get(content, "execution_count"), UINT32_MAX, &count) == 0;

	run_display(r, json_get(content, "data"), has_count ? &count : NULL);
}

/* Of the run. */
static void run_message(struct jupyter *j, const struct jupyter_message *m)
{
	struct code_run *r = j->context->run;

	switch (m->kind) {
	case JUPYTER_STREAM:
		code_run_text(r, str_eq(text_of(m->content, "name", ""), "stderr"),
				span_of(text_of(m->content, "text", "")));
		break;
	case JUPYTER_RESULT:
		on_result(r, m->content);
		break;
	case JUPYTER_DISPLAY:
		run_display(r, json_get(m->content, "data"), NULL);
		break;
	case JUPYTER_ERROR:
		run_error(r, m->content);
		break;
	case JUPYTER_REPLY:
		on_reply(j, m->content);
		break;
	case JUPYTER_IDLE:
		j->is_idle = true;
		break;
	case JUPYTER_OTHER:
	case JUPYTER_INFO:
	case JUPYTER_USAGE:
	case JUPYTER_DEAD:
		break;
	}
	if (j->is_idle && j->is_replied) {
		code_run_finished(r);
	} else if (code_run_must_wait(r)) {
		websocket_pause(j->ws);
	}
}

static void message_use(struct jupyter *j, const struct jupyter_message *m)
{
	if (m->kind == JUPYTER_DEAD) {
		lose(j, CODE_KERNEL_DIED, ENDED);
		return;
	}
	if (m->kind == JUPYTER_USAGE && j->usage && str_eq(m->parent, j->usage)) {
		on_usage(j, m->content);
		return;
	}
	/* The kernel may be another client's, too. */
	if (!j->parent || !str_eq(m->parent, j->parent)) {
		return;
	}
	if (j->step == STEP_INFO && m->kind == JUPYTER_INFO) {
		on_info(j);
	} else if (j->step == STEP_PRELUDE && m->kind == JUPYTER_REPLY) {
		on_prelude(j, m->content);
	} else if (j->step == STEP_READY && j->context->run && j->context->run->is_running) {
		run_message(j, m);
	}
}

static void on_message(struct websocket *ws, void *ctx, bool is_text, struct span data)
{
	struct jupyter *j = ctx;
	AUTO(buf) struct buf text = BUF_INIT(CODE_BUNDLE_MAX);
	struct jupyter_message m;
	struct error e = ERROR_INIT;

	(void)ws;
	/* Binary ones are for the widgets of a notebook. */
	if (!is_text || buf_append(&text, data.p, data.n) < 0) {
		return;
	}
	json_mend(&text);
	AUTO(json) struct json *document = json_parse(buf_span(&text), &e);

	if (document) {
		jupyter_message_read(document, &m);
		message_use(j, &m);
	} else if (j->step == STEP_READY && j->context->run) {
		autofree char *note =
				mem_printf("a message of the kernel is left out: %s\n", e.text);

		code_run_text(j->context->run, true, span_of(note));
	}
}

static void on_close(struct websocket *ws, void *ctx, uint16_t code)
{
	struct jupyter *j = ctx;

	(void)ws;
	j->ws = NULL;
	if (code == 1009) {
		lose(j, CODE_KERNEL_PROTOCOL,
				"the kernel has sent more than 16 MiB in one message");
	} else {
		lose(j, CODE_KERNEL_DIED, "the connection to the kernel has ended");
	}
}

static void watch_on_time(struct loop *loop, struct loop_source *src, uint32_t events);

static void watch_arm(struct jupyter *j)
{
	loop_timer(j->execd->loop, &j->timer, clock_boot_ms() + WATCH_MS, watch_on_time);
}

static void watch_on_end(void *ctx, int r, const struct http_answer *a)
{
	if (r == 0 && a->status == 404) {
		fail(ctx, ERRC_UNAVAILABLE, "has started a kernel that ended at once");
	} else {
		watch_arm(ctx);
	}
}

/* The channels of a kernel that ends again and again are opened only after a minute. */
static void watch_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct jupyter *j = container_of(src, struct jupyter, timer);
	autofree char *path = mem_printf("/api/kernels/%s", j->kernel_id);
	const struct jupyter_call_opts opts = {
		.method = "GET", .path = path, .on_end = watch_on_end, .ctx = j
	};
	struct error e = ERROR_INIT;

	(void)loop;
	(void)events;
	if (jupyter_call_start(j->execd, &opts, &j->watch, &e) < 0) {
		start_fail(j, &e);
	}
}

static void on_channels(struct jupyter *j, const struct http_answer *a)
{
	const struct websocket_opts opts = {
		.message_max = CODE_BUNDLE_MAX,
		.ping_ms = PING_MS,
		.on_message = on_message,
		.on_close = on_close,
		.ctx = j,
	};
	int fd = a->fd;

	jupyter_call_cancel(j->watch);
	if (fd < 0 || !websocket_is_answer(j->key, http_answer_field(a, "sec-websocket-accept"))) {
		fd_close(&fd);
		fail(j, ERRC_UNAVAILABLE, "does not open the channels of a kernel");
		return;
	}
	j->ws = websocket_connect(fd, a->rest, j->execd->loop, &opts);
	if (!j->ws) {
		fail(j, ERRC_UNAVAILABLE, "cannot be watched");
		return;
	}
	j->step = STEP_INFO;
	loop_timer(j->execd->loop, &j->timer, clock_boot_ms() + READY_MS, ready_on_time);
	request_send(j, "kernel_info_request", NULL, false);
}

static void on_session(struct jupyter *j, const struct json *document)
{
	const char *id = json_string(json_get(document, "id"));
	const char *kernel = json_string(json_get(json_get(document, "kernel"), "id"));

	j->session_id = jupyter_id_is_valid(id) ? mem_strdup(id) : NULL;
	j->kernel_id = jupyter_id_is_valid(kernel) ? mem_strdup(kernel) : NULL;
	if (!j->context) {
		session_end(j);
	} else if (!j->session_id || !j->kernel_id) {
		fail(j, ERRC_UNAVAILABLE, "does not tell the ids of a session");
	} else {
		j->step = STEP_CHANNELS;
		watch_arm(j);
		step_begin(j);
	}
}

static void kernel_is_missing(struct jupyter *j, const struct json *specs)
{
	AUTO(buf) struct buf list = BUF_INIT(1024);
	struct error e = ERROR_INIT;

	jupyter_languages_list(specs, &list);
	(void)error_set(&e, ERRC_INVALID,
			"language \"%.32s\": the Jupyter server has no kernel; "
			"it has: %s",
			j->context->language, list.n > 0 ? list.p : "none");
	start_fail(j, &e);
}

static void on_specs(struct jupyter *j, const struct json *specs)
{
	assert(j->context);
	const char *name = jupyter_kernel_find(specs, j->context->language);
	bool is_last_choice = name && str_eq(name, "python3");
	bool is_settled = is_last_choice && j->context->codes->is_python3_settled;

	if (j->kernel_give_up_ms == 0) {
		j->kernel_give_up_ms = clock_boot_ms() + KERNEL_MS;
	}
	if ((!name || (is_last_choice && !is_settled)) && clock_boot_ms() < j->kernel_give_up_ms) {
		retry(j);
		return;
	}
	if (!name) {
		kernel_is_missing(j, specs);
		return;
	}
	if (is_last_choice) {
		j->context->codes->is_python3_settled = true;
	}
	j->kernel = mem_strdup(name);
	j->step = STEP_SESSION;
	step_begin(j);
}

/* It may be that the server only starts. */
static bool may_come(int r, const struct http_answer *a)
{
	return r < 0 ? r != -EMSGSIZE : a->status >= 500;
}

static void answer_bad(struct jupyter *j, int r, const struct http_answer *a)
{
	autofree char *text = NULL;

	if (r == 0 && (a->status == 401 || a->status == 403)) {
		fail(j, ERRC_DENIED, "refuses " JUPYTER_TOKEN_VARIABLE);
		return;
	}
	if (j->step == STEP_SPECS && may_come(r, a) && clock_boot_ms() < j->give_up_ms) {
		retry(j);
		return;
	}
	text = r < 0 ? mem_printf("does not answer: %s", strerror(-r))
		     : mem_printf("answers with status %d", a->status);
	fail(j, ERRC_UNAVAILABLE, text);
}

static void on_answer(void *ctx, int r, const struct http_answer *a)
{
	struct jupyter *j = ctx;
	struct error e = ERROR_INIT;
	bool is_good = r == 0 && a->status < 300;

	if (!j->context && !is_good) {
		jupyter_free(j);
		return;
	}
	if (!is_good) {
		answer_bad(j, r, a);
		return;
	}
	if (j->step == STEP_CHANNELS) {
		on_channels(j, a);
		return;
	}
	AUTO(json) struct json *document = json_parse(a->body, &e);

	if (j->step == STEP_SPECS) {
		on_specs(j, document);
	} else {
		on_session(j, document);
	}
}

static void session_put(const struct jupyter *j, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	/* The server's own way to a directory, beneath the one that it serves. */
	const char *cwd = j->prelude || !j->context->cwd ? "" : j->context->cwd;
	autofree char *path = mem_printf(
			"%s%s%s.ipynb", cwd + strspn(cwd, "/"), cwd[0] ? "/" : "", j->name.text);

	json_object_begin(&w, NULL);
	json_add_string(&w, "path", path);
	json_add_string(&w, "name", path);
	json_add_string(&w, "type", "notebook");
	json_object_begin(&w, "kernel");
	json_add_string(&w, "name", j->kernel);
	json_object_end(&w);
	json_object_end(&w);
}

static void step_begin(struct jupyter *j)
{
	AUTO(buf) struct buf body = BUF_INIT(CODE_TEXT_MAX);
	struct jupyter_call_opts opts = {
		.method = "GET",
		.path = "/api/kernelspecs",
		.on_end = on_answer,
		.ctx = j,
	};
	autofree char *path = NULL;
	autofree char *fields = NULL;
	struct error e = ERROR_INIT;

	if (j->step == STEP_SESSION) {
		session_put(j, &body);
		opts.method = "POST";
		opts.path = "/api/sessions";
		opts.body = buf_span(&body);
	} else if (j->step == STEP_CHANNELS) {
		if (websocket_key_new(j->key) < 0) {
			fail(j, ERRC_SYSTEM, "cannot be given a random key");
			return;
		}
		path = mem_printf("/api/kernels/%s/channels?session_id=%s", j->kernel_id,
				j->name.text);
		fields = mem_printf(WEBSOCKET_FIELDS, j->key);
		opts.path = path;
		opts.fields = fields;
		opts.upgrade = "websocket";
	}
	if (jupyter_call_start(j->execd, &opts, &j->call, &e) < 0) {
		start_fail(j, &e);
	}
}

static int jupyter_start(struct code_context *c, struct error *e)
{
	autofree char *prelude = NULL;

	if (jupyter_prelude(c->language, c->cwd, &c->envs, &prelude, e) < 0) {
		return -1;
	}
	struct jupyter *j = mem_new(struct jupyter);

	*j = (struct jupyter){
		.context = c,
		.execd = c->codes->execd,
		.give_up_ms = clock_boot_ms() + START_MS,
		.prelude = TAKE_PTR(prelude),
		.pid_fd = -1,
	};
	id_new(&j->name);
	c->backend_state = j;
	loop_timer(j->execd->loop, &j->timer, clock_boot_ms(), retry_on_time);
	return 0;
}

static void jupyter_run(struct code_context *c)
{
	struct code_run *r = c->run;

	/* The processes of a kernel are its server's. */
	if (r->memory > 0) {
		code_run_error(r, "NotSupported",
				"a Jupyter server has no limit of memory for one run", NULL);
		code_run_finished(r);
		return;
	}
	request_send(c->backend_state, "execute_request", r->code, false);
}

static void jupyter_interrupt(struct code_context *c)
{
	const struct jupyter *j = c->backend_state;

	autofree char *path = mem_printf("/api/kernels/%s/interrupt", j->kernel_id);
	const struct jupyter_call_opts opts = { .method = "POST", .path = path };
	struct error e = ERROR_INIT;

	/* Whoever cannot be asked has not long to go on. */
	(void)!jupyter_call_start(j->execd, &opts, NULL, &e);
}

static void jupyter_resume(struct code_context *c)
{
	const struct jupyter *j = c->backend_state;

	websocket_resume(j->ws);
}

static void jupyter_stop(struct code_context *c)
{
	struct jupyter *j = c->backend_state;

	c->backend_state = NULL;
	if (j->step == STEP_SESSION && j->call) {
		j->context = NULL;
	} else {
		session_end(j);
	}
}

const struct code_backend code_backend_jupyter = {
	.start = jupyter_start,
	.run = jupyter_run,
	.interrupt = jupyter_interrupt,
	.resume = jupyter_resume,
	.stop = jupyter_stop,
};
