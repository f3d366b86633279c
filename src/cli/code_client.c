/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <osbx/execd_proto.h>
#include <osbx/fd.h>
#include <osbx/http_client.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "code.h"

#define ANSWER_MAX (4U << 20)
#define LINE_MAX_  (64U << 20) /* a result, with escapes */
#define SILENCE_MS 30000       /* a run is told of every 3 s */

/* A request under way. */
struct exchange {
	struct code_client *client;
	struct http_call *call;
	struct http_call *interrupt;
	struct buf answer; /* what is no event */
	struct buf line;
	struct code_show *show; /* of a run */
	char *context_id;       /* its, once it is known */
	int r;                  /* of http_client.h */
	int status;
	unsigned int signals_n;
	bool has_ended;
	bool reader_gone; /* of what is shown */
	struct error e;
};

int code_client_open(struct code_client *c, const struct dirs *dirs, const struct id *id,
		struct error *e)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) {
		return error_sys(e, errno, "block signals");
	}
	(void)sigdelset(&set, SIGPIPE);
	c->dirs = dirs;
	c->id = id;
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	c->loop = loop_new();
	if (c->signal_fd < 0 || !c->loop) {
		return error_sys(e, errno, "wait for signals");
	}
	return 0;
}

void code_client_done(struct code_client *c)
{
	loop_free(c->loop);
	fd_close(&c->signal_fd);
	c->loop = NULL;
}

/* A connection to PID 1. fd or -1. */
static int client_connect(const struct code_client *c, struct error *e)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* The runtime directory may be longer than sun_path. */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/sandboxes/%s/%s",
			c->dirs->runtime_fd, c->id->text, EXECD_SOCKET);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0) {
		return errno == ENOENT || errno == ECONNREFUSED
				       ? error_set(e, ERRC_CONFLICT, "sandbox %s is not alive",
							 c->id->text)
				       : error_sys(e, errno, "speak to sandbox %s", c->id->text);
	}
	int r = fd_set_nonblock(fd, true);

	return r < 0 ? error_sys(e, -r, "speak to sandbox %s", c->id->text) : TAKE_FD(fd);
}

static void interrupt_on_end(void *ctx, int r, const struct http_answer *a)
{
	struct exchange *x = ctx;

	(void)r;
	(void)a;
	x->interrupt = NULL;
}

/* An id is made of digits and dashes. */
static bool has_safe_id(const struct exchange *x)
{
	return x->context_id && !strpbrk(x->context_id, " \r\n&#%");
}

/* The run goes on to its end, which then comes soon. */
static void interrupt_send(struct exchange *x)
{
	struct error e = ERROR_INIT;
	int fd = client_connect(x->client, &e);
	autofree char *target = mem_printf("/code?id=%s", x->context_id);
	const struct http_call_opts opts = {
		.method = "DELETE",
		.target = target,
		.host = "sandbox",
		.on_end = interrupt_on_end,
		.ctx = x,
	};

	x->interrupt = fd >= 0 ? http_call_start(x->client->loop, fd, &opts) : NULL;
}

/* Nobody reads any more ("| head"): the run is ended, and its end waited for, since the context is
 * busy until then and the next command of a script would be refused. */
static void reader_lost(struct exchange *x)
{
	x->reader_gone = true;
	error_clear(&x->e);
	if (x->signals_n == 0 && !x->interrupt && has_safe_id(x)) {
		interrupt_send(x);
	}
}

static void line_use(struct exchange *x)
{
	struct error e = ERROR_INIT;

	json_mend(&x->line);
	AUTO(json) struct json *event = json_parse(buf_span(&x->line), &e);
	const char *type = json_string(json_get(event, "type"));
	const char *text = json_string(json_get(event, "text"));

	if (x->e.code != ERRC_OK) {
		return;
	}
	if (!event) {
		x->e = e;
		(void)error_wrap(&x->e, "answer of the sandbox");
		loop_stop(x->client->loop, 0);
		return;
	}
	if (type && text && str_eq(type, "init") && !x->context_id) {
		x->context_id = mem_strdup(text);
	}
	if (x->reader_gone || code_show_event(x->show, event, &x->e) == 0) {
		return;
	}
	if (x->e.sysno == EPIPE) {
		reader_lost(x);
	} else {
		loop_stop(x->client->loop, 0);
	}
}

static void on_data(void *ctx, int status, struct span data)
{
	struct exchange *x = ctx;
	struct span piece = { .p = NULL };

	x->status = status;
	if (status != 200 || !x->show) {
		/* What is beyond its maximum is not read either. */
		(void)!buf_append(&x->answer, data.p, data.n);
		return;
	}
	while (data.n > 0) {
		const char *end = memchr(data.p, '\n', data.n);

		piece = (struct span){ .p = data.p, .n = end ? (size_t)(end - data.p) : data.n };
		if (buf_append(&x->line, piece.p, piece.n) < 0) {
			(void)error_set(&x->e, ERRC_LIMIT,
					"answer of the sandbox: too long a line");
			loop_stop(x->client->loop, 0);
			return;
		}
		data = span_from(data, piece.n + (end ? 1 : 0));
		if (end && x->line.n > 0) {
			line_use(x);
			buf_done(&x->line);
		}
	}
}

static void on_end(void *ctx, int r, const struct http_answer *a)
{
	struct exchange *x = ctx;

	x->call = NULL;
	x->has_ended = true;
	x->r = r;
	x->status = a->status;
	loop_stop(x->client->loop, 0);
}

static void on_signal(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct code_client *c = container_of(src, struct code_client, signals);
	struct exchange *x = c->exchange;
	struct signalfd_siginfo si;

	(void)events;
	if (read(c->signal_fd, &si, sizeof(si)) != sizeof(si)) {
		return;
	}
	if (++x->signals_n > 1 || x->reader_gone || !has_safe_id(x)) {
		loop_stop(loop, 0);
	} else {
		interrupt_send(x);
	}
}

/* Start it and wait for its end. 0 or -1; what came of it is in x. */
static int exchange_run(struct exchange *x, const char *method, const char *target,
		struct span body, struct error *e)
{
	struct code_client *c = x->client;
	int fd = client_connect(c, e);
	const struct http_call_opts opts = {
		.method = method,
		.target = target,
		.host = "sandbox",
		.fields = body.n > 0 ? "Content-Type: application/json\r\n" : NULL,
		.body = body,
		.silence_ms = SILENCE_MS,
		.on_data = on_data,
		.on_end = on_end,
		.ctx = x,
	};

	if (fd < 0) {
		return -1;
	}
	c->exchange = x;
	x->call = http_call_start(c->loop, fd, &opts);
	if (!x->call || loop_add(c->loop, &c->signals, c->signal_fd, EPOLLIN, on_signal) < 0) {
		http_call_cancel(TAKE_PTR(x->call));
		return error_sys(e, ENOMEM, "speak to sandbox %s", c->id->text);
	}
	int r = loop_run(c->loop);

	loop_remove(c->loop, &c->signals);
	http_call_cancel(TAKE_PTR(x->call));
	http_call_cancel(TAKE_PTR(x->interrupt));
	return r < 0 ? error_sys(e, -r, "wait for the sandbox") : 0;
}

static void exchange_done(struct exchange *x)
{
	buf_done(&x->answer);
	buf_done(&x->line);
	free(x->context_id);
}
AUTO_DEFINE(exchange, struct exchange, exchange_done);

/* Class of an answer's status. */
static enum errc status_class(int status)
{
	static const struct {
		int status;
		enum errc code;
	} rows[] = {
		{ 400, ERRC_INVALID },
		{ 404, ERRC_NOT_FOUND },
		{ 409, ERRC_CONFLICT },
		{ 501, ERRC_UNSUPPORTED },
		{ 503, ERRC_UNAVAILABLE },
		{ 504, ERRC_TIMEOUT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].status == status) {
			return rows[i].code;
		}
	}
	return ERRC_INTERNAL;
}

/* What is wrong with an answer. 0 or -1. */
static int exchange_check(struct exchange *x, struct error *e)
{
	struct error ignored = ERROR_INIT;

	if (x->e.code != ERRC_OK) {
		*e = x->e;
		return -1;
	}
	if (x->r == -ETIMEDOUT) {
		return error_set(
				e, ERRC_TIMEOUT, "sandbox %s does not answer", x->client->id->text);
	}
	if (x->r < 0) {
		return error_set(e, ERRC_UNAVAILABLE, "sandbox %s has ended the connection",
				x->client->id->text);
	}
	if (x->status < 300) {
		return 0;
	}
	json_mend(&x->answer);
	AUTO(json) struct json *answer = json_parse(buf_span(&x->answer), &ignored);
	const char *message = json_string(json_get(answer, "message"));
	char text[ERROR_TEXT_MAX];

	str_printable(message ? message : "it says no more", text, sizeof(text));
	return message ? error_set(e, status_class(x->status), "%s", text)
		       : error_set(e, status_class(x->status), "the sandbox answers with status %d",
					 x->status);
}

int code_client_ask(struct code_client *c, const char *method, const char *target, struct span body,
		struct json **out_answer, struct error *e)
{
	AUTO(exchange)
	struct exchange x = { .client = c, .answer = BUF_INIT(ANSWER_MAX), .line = BUF_INIT(0) };

	if (exchange_run(&x, method, target, body, e) < 0) {
		return -1;
	}
	if (!x.has_ended && x.signals_n > 0) {
		return error_set(e, ERRC_UNAVAILABLE, "interrupted");
	}
	if (exchange_check(&x, e) < 0) {
		return -1;
	}
	struct json *answer = x.answer.n > 0 ? json_parse(buf_span(&x.answer), e) : NULL;

	if (x.answer.n > 0 && !answer) {
		return error_wrap(e, "answer of the sandbox");
	}
	*out_answer = answer;
	return 0;
}

int code_client_run(struct code_client *c, const struct code_client_run *run,
		struct code_show *show, int *out_status, struct error *e)
{
	AUTO(exchange)
	struct exchange x = { .client = c,
		.answer = BUF_INIT(ANSWER_MAX),
		.line = BUF_INIT(LINE_MAX_),
		.show = show };
	AUTO(buf) struct buf body = BUF_INIT((size_t)8 * CODE_TEXT_MAX);
	struct json_writer w = JSON_WRITER(&body);
	AUTO(json) struct json *context = json_parse(span_of(run->context), e);

	if (!context) {
		return -1;
	}
	json_object_begin(&w, NULL);
	json_add_value(&w, "context", context);
	json_add_string(&w, "code", run->code);
	if (run->timeout_ms > 0) {
		json_add_i64(&w, "timeout", run->timeout_ms);
	}
	json_object_end(&w);
	show->runs_n++;
	show->images_n = 0;
	show->has_error = false;
	if (exchange_run(&x, "POST", "/code", buf_span(&body), e) < 0) {
		return -1;
	}
	if (!x.has_ended && x.signals_n > 0) {
		*out_status = 128 + SIGINT;
		return 0;
	}
	if (exchange_check(&x, e) < 0) {
		return -1;
	}
	*out_status = x.reader_gone ? 128 + SIGPIPE : show->has_error;
	return 0;
}
