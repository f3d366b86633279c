/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * The back end of our own drivers: a process of the sandbox, started as a command is, with its text
 * as a sealed descriptor, pipes for its output, and a stream socket as its channel (code_frame.h).
 *
 *   .start ── execve ──▶ (code_started) ── HELLO ──▶ takes runs ── reaped ──▶ (code_ended)
 *
 * Output comes by the pipes, results by the channel; SYNC puts them in order: until the pipes are
 * empty no further frame is looked at, then the driver is told so. While the client has enough to
 * take, nothing is read at all.
 *
 * Between runs the pipes are read all the same, so that nobody inside waits for us: the first
 * LATE_MAX bytes come with the next run.
 *
 * The process is not the context: one that is stopped is killed, and its record (context NULL)
 * lives until it is reaped. All that comes from it is hostile; a fault in the protocol is its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "code_frame.h"
#include "code_internal.h"

#define READ_BYTES  (64U << 10)
#define READ_ROUNDS 16 /* then others have their turn */
#define LATE_MAX    (64U << 10)
#define OUT_MAX     (CODE_TEXT_MAX + 64U)
#define FD_FIRST    3
#define OOM_KILL    "oom_kill "

struct driver;

struct pipe_end {
	struct driver *driver;
	int fd; /* -1: at its end */
	struct loop_source src;
	size_t owed; /* bytes to be read before SYNC is acknowledged */
	struct buf late;
};

struct driver {
	struct execd *execd;
	struct code_context *context; /* NULL: it is being killed */
	uint32_t tag;
	bool is_ready; /* HELLO has come */
	bool has_run;  /* a run waits for that */
	bool has_sync; /* the pipes must be empty before anything else */
	bool is_pumping;
	uint64_t count;     /* runs that have finished */
	uint64_t oom_kills; /* of the sandbox, when the run began */
	int channel_fd;
	struct loop_source channel;
	struct buf in;
	struct buf out;
	struct pipe_end pipes[2];
};

static struct code_run *run_of(const struct driver *d)
{
	return d->context ? d->context->run : NULL;
}

static bool must_wait(const struct driver *d)
{
	const struct code_run *r = run_of(d);

	return r && r->is_running && code_run_must_wait(r);
}

static void channel_close(struct driver *d)
{
	loop_remove(d->execd->loop, &d->channel);
	fd_close(&d->channel_fd);
}

static void pipe_close(struct pipe_end *p)
{
	loop_remove(p->driver->execd->loop, &p->src);
	fd_close(&p->fd);
}

static void driver_free(struct driver *d)
{
	channel_close(d);
	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		pipe_close(&d->pipes[i]);
		buf_done(&d->pipes[i].late);
	}
	buf_done(&d->in);
	buf_done(&d->out);
	free(d);
}

/* Write what the driver is owed. */
static void out_flush(struct driver *d)
{
	while (d->channel_fd >= 0 && d->out.n > 0) {
		ssize_t n = send(d->channel_fd, d->out.p, d->out.n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n <= 0) {
			break; /* full; or gone, which its end will tell */
		}
		buf_consume(&d->out, (size_t)n);
	}
	if (d->out.n == 0) {
		buf_done(&d->out);
	}
}

static void out_put(struct driver *d, char kind, struct span payload)
{
	/* At most one run and one acknowledgement are on their way. */
	if (buf_appendf(&d->out, "%c %zu\n", kind, payload.n) < 0 ||
			buf_append(&d->out, payload.p, payload.n) < 0) {
		buf_reset(&d->out);
	}
	out_flush(d);
}

static void text_take(struct pipe_end *p, struct span text)
{
	struct driver *d = p->driver;
	struct code_run *r = run_of(d);

	if (r && r->is_running) {
		code_run_text(r, p == &d->pipes[1], text);
	} else if (p->late.n < LATE_MAX) {
		size_t room = LATE_MAX - p->late.n;

		(void)!buf_append(&p->late, text.p, text.n < room ? text.n : room);
	}
}

/* One read of at most so many bytes. How many there were. */
static size_t pipe_read(struct pipe_end *p, size_t most)
{
	static char bytes[READ_BYTES];
	size_t want = most < sizeof(bytes) ? most : sizeof(bytes);
	ssize_t n = p->fd < 0 ? -EAGAIN : fd_read(p->fd, bytes, want);

	if (n > 0) {
		text_take(p, (struct span){ .p = bytes, .n = (size_t)n });
		return (size_t)n;
	}
	if (n != -EAGAIN) {
		pipe_close(p);
	}
	return 0;
}

static void pipes_read(struct driver *d)
{
	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		bool more = true;

		for (int n = 0; n < READ_ROUNDS && more; n++) {
			more = !must_wait(d) && pipe_read(&d->pipes[i], SIZE_MAX) > 0;
		}
	}
}

/* What is in the pipes now; somebody else may write to them for ever. */
static void owed_note(struct driver *d)
{
	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		int n = 0;
		bool is_known = d->pipes[i].fd >= 0 && ioctl(d->pipes[i].fd, FIONREAD, &n) == 0;

		d->pipes[i].owed = is_known ? (size_t)n : 0;
	}
}

/* Read that. False: the client must take something first. */
static bool owed_read(struct driver *d)
{
	bool is_read = true;

	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		struct pipe_end *p = &d->pipes[i];

		while (p->owed > 0 && !must_wait(d)) {
			size_t n = pipe_read(p, p->owed);

			p->owed = n > 0 ? p->owed - n : 0;
		}
		is_read = is_read && p->owed == 0;
	}
	return is_read;
}

/* It is killed, and told to end as one that has ended. */
static void fault(struct driver *d, const char *what)
{
	struct code_context *c = d->context;
	autofree char *text = mem_printf("the driver broke its protocol (%s) and was killed", what);

	code_ended(c, CODE_KERNEL_PROTOCOL, text);
}

static void frame_bundle(struct driver *d, const struct code_frame *f)
{
	struct error e = ERROR_INIT;
	AUTO(json) struct json *bundle = json_parse(f->payload, &e);
	const uint64_t count = d->count + 1;

	if (!json_is_object(bundle)) {
		fault(d, "a result that is no JSON object");
		return;
	}
	code_run_result(run_of(d), bundle, f->kind == CODE_FRAME_RESULT ? &count : NULL);
}

static void frame_error(struct driver *d, const struct code_frame *f)
{
	struct error e = ERROR_INIT;
	AUTO(json) struct json *v = json_parse(f->payload, &e);
	const char *ename = json_string(json_get(v, "ename"));
	const char *evalue = json_string(json_get(v, "evalue"));
	const struct json *trace = json_get(v, "traceback");

	if (!ename || !evalue || (trace && !json_is_array(trace))) {
		fault(d, "an error that is none");
		return;
	}
	code_run_error(run_of(d), ename, evalue, trace);
}

static void frame_finished(struct driver *d, const struct code_frame *f)
{
	struct error e = ERROR_INIT;
	AUTO(json) struct json *v = json_parse(f->payload, &e);
	uint64_t count = 0;

	if (json_u64(json_get(v, "execution_count"), UINT32_MAX, &count) < 0) {
		fault(d, "no execution_count");
		return;
	}
	d->count = count;
	code_run_finished(run_of(d));
}

static void run_send(struct driver *d, const struct code_run *r)
{
	d->has_run = false;
	out_put(d, CODE_FRAME_RUN, span_of(r->code));
}

static void frame_hello(struct driver *d, const struct code_run *r)
{
	if (d->is_ready) {
		fault(d, "a second greeting");
		return;
	}
	d->is_ready = true;
	if (d->has_run && r) {
		run_send(d, r);
	}
}

static void frame_take(struct driver *d, const struct code_frame *f)
{
	struct code_run *r = run_of(d);
	bool has_run = r && r->is_running && d->is_ready && !d->has_run;

	if (f->kind == CODE_FRAME_SYNC) {
		d->has_sync = true;
		owed_note(d);
	} else if (f->kind == CODE_FRAME_HELLO) {
		frame_hello(d, r);
	} else if (!has_run) {
		/* A thread of the last run may still have had something to show. */
		if (f->kind == CODE_FRAME_FINISHED || f->kind == CODE_FRAME_ERROR) {
			fault(d, "the end of a run that is none");
		}
	} else if (f->kind == CODE_FRAME_OUT || f->kind == CODE_FRAME_ERR) {
		code_run_text(r, f->kind == CODE_FRAME_ERR, f->payload);
	} else if (f->kind == CODE_FRAME_ERROR) {
		frame_error(d, f);
	} else if (f->kind == CODE_FRAME_FINISHED) {
		frame_finished(d, f);
	} else {
		frame_bundle(d, f);
	}
}

/* The next frame that is there. False: there is none, or d is stopped. */
static bool frame_step(struct driver *d)
{
	struct code_frame f = { .kind = 0 };
	size_t n = 0;
	int r = code_frame_next(buf_span(&d->in), &f, &n);

	if (r < 0) {
		fault(d, "a frame that is none");
	}
	if (r <= 0) {
		return false;
	}
	frame_take(d, &f);
	buf_consume(&d->in, n);
	if (d->in.n == 0) {
		buf_done(&d->in);
	}
	return d->context != NULL;
}

/* Read the channel once. False: nothing is there. */
static bool channel_read(struct driver *d)
{
	if (d->channel_fd < 0 || buf_reserve(&d->in, READ_BYTES) < 0) {
		return false;
	}
	ssize_t n = fd_read(d->channel_fd, d->in.p + d->in.n, READ_BYTES);

	if (n > 0) {
		d->in.n += (size_t)n;
		return true;
	}
	if (n != -EAGAIN) {
		channel_close(d); /* what that means, its end will tell */
	}
	return false;
}

/* What is owed before the next frame. False: the client must take something first. */
static bool sync_settle(struct driver *d)
{
	if (d->has_sync && owed_read(d)) {
		d->has_sync = false;
		out_put(d, CODE_FRAME_ACK, span_of(""));
	}
	return !d->has_sync && !must_wait(d);
}

static void frames_take(struct driver *d)
{
	bool more = true;

	for (int n = 0; n < READ_ROUNDS && more; n++) {
		while (d->context && sync_settle(d) && frame_step(d)) {
			/* all that are there */
		}
		more = d->context && sync_settle(d) && channel_read(d);
	}
}

static void settle(const struct driver *d, struct loop_source *src)
{
	if (src->kind != LOOP_SOURCE_FD) {
		return;
	}
	if (must_wait(d)) {
		loop_pause(d->execd->loop, src);
	} else {
		loop_resume(d->execd->loop, src);
	}
}

static void pump(struct driver *d)
{
	uint32_t wanted = 0;

	/* The core may find its client gone, or able to take more, and call again. */
	if (d->is_pumping || !d->context) {
		return;
	}
	d->is_pumping = true;
	pipes_read(d);
	frames_take(d);
	d->is_pumping = false;
	wanted = EPOLLIN | (d->out.n > 0 ? (uint32_t)EPOLLOUT : 0);
	if (d->channel.kind == LOOP_SOURCE_FD && d->channel.events != wanted) {
		(void)!loop_change(d->execd->loop, &d->channel, wanted);
	}
	settle(d, &d->channel);
	settle(d, &d->pipes[0].src);
	settle(d, &d->pipes[1].src);
}

static void pipe_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	pump(container_of(src, struct pipe_end, src)->driver);
}

static void channel_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct driver *d = container_of(src, struct driver, channel);

	(void)loop;
	(void)events;
	out_flush(d);
	pump(d);
}

/* Number of processes that the kernel has killed for want of memory. */
static uint64_t oom_kills(const struct execd *x)
{
	char text[512];
	uint64_t n = 0;
	autoclose int fd = x->cgroup_fd < 0
					   ? -1
					   : fd_open_at(x->cgroup_fd, "memory.events", O_RDONLY, 0);
	ssize_t read_n = fd < 0 ? fd : fd_read(fd, text, sizeof(text) - 1);
	struct span rest = { .p = text, .n = read_n > 0 ? (size_t)read_n : 0 };
	struct span line;

	while (span_next(&rest, '\n', &line)) {
		if (span_has_prefix(line, span_of(OOM_KILL))) {
			autofree char *number = span_dup(span_from(line, strlen(OOM_KILL)));

			(void)!(number && str_to_u64(number, UINT64_MAX, &n) == 0);
		}
	}
	return n;
}

static const char *signal_name(int signo)
{
	switch (signo) {
	case SIGSEGV:
		return "SIGSEGV, a segmentation fault";
	case SIGABRT:
		return "SIGABRT";
	case SIGBUS:
		return "SIGBUS";
	case SIGFPE:
		return "SIGFPE";
	case SIGILL:
		return "SIGILL";
	case SIGTERM:
		return "SIGTERM";
	case SIGINT:
		return "SIGINT";
	case SIGKILL:
		return "SIGKILL";
	default:
		return "a signal";
	}
}

static char *end_text(const struct driver *d, const siginfo_t *end)
{
	if (end->si_code == CLD_EXITED) {
		return mem_printf("the interpreter ended with exit status %d", end->si_status);
	}
	if (end->si_status == SIGKILL && oom_kills(d->execd) > d->oom_kills) {
		return mem_printf("the interpreter was killed: out of memory");
	}
	return mem_printf("the interpreter was killed by signal %d (%s)", end->si_status,
			signal_name(end->si_status));
}

/* What has come before the end, and nothing that comes behind it: somebody may hold the pipes. */
static void last_words(struct driver *d)
{
	owed_note(d);
	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		struct pipe_end *p = &d->pipes[i];

		while (p->owed > 0) {
			size_t n = pipe_read(p, p->owed);

			p->owed = n > 0 ? p->owed - n : 0;
		}
	}
	d->has_sync = false;
	while (d->context && (frame_step(d) || (d->context && channel_read(d)))) {
		d->has_sync = false;
	}
}

static void process_on_exited(void *ctx, const siginfo_t *end)
{
	struct driver *d = ctx;

	d->tag = 0;
	d->is_pumping = true;
	if (d->context) {
		last_words(d);
	}
	if (d->context) {
		autofree char *text = end_text(d, end);

		code_ended(d->context, CODE_KERNEL_DIED, text);
	}
	driver_free(d);
}

static void process_on_failed(void *ctx, const struct error *e)
{
	struct driver *d = ctx;
	struct code_context *c = d->context;

	d->tag = 0;
	if (c && e->code == ERRC_NO_COMMAND) {
		struct error none = ERROR_INIT;
		AUTO(buf) struct buf list = BUF_INIT(1024);

		code_langs_list(d->execd, &list);
		(void)error_set(&none, ERRC_NOT_FOUND,
				"%s: no interpreter for it is in the PATH of this sandbox; there "
				"is one for: %s",
				c->language, list.n > 0 ? list.p : "nothing");
		none.code = ERRC_SYSTEM;
		code_start_failed(c, &none);
	} else if (c) {
		code_start_failed(c, e);
	}
	driver_free(d);
}

static void process_on_started(void *ctx, pid_t pid, int master_fd)
{
	struct driver *d = ctx;
	struct loop *loop = d->execd->loop;
	int r = 0;

	(void)pid;
	(void)master_fd;
	if (!d->context) {
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(d->pipes) && r == 0; i++) {
		r = loop_add(loop, &d->pipes[i].src, d->pipes[i].fd, EPOLLIN, pipe_on_ready);
	}
	r = r < 0 ? r : loop_add(loop, &d->channel, d->channel_fd, EPOLLIN, channel_on_ready);
	if (r < 0) {
		code_ended(d->context, CODE_KERNEL_DIED, "the interpreter cannot be watched");
		return;
	}
	code_started(d->context);
}

/* The ends of the process: stdout, stderr, the channel, its own text. */
enum {
	END_OUT,
	END_ERR,
	END_CHANNEL,
	END_TEXT,
	ENDS
};

static int ends_make(struct driver *d, const struct code_driver *text, int ends[ENDS])
{
	int pair[2] = { -1, -1 };

	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		int r = fd_pipe(pair, 0);

		if (r < 0) {
			return r;
		}
		d->pipes[i].fd = pair[0];
		ends[i] = pair[1];
		r = fd_set_nonblock(pair[0], true);
		if (r < 0) {
			return r;
		}
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		return -errno;
	}
	d->channel_fd = pair[0];
	ends[END_CHANNEL] = pair[1];
	int r = fd_set_nonblock(pair[0], true);

	ends[END_TEXT] = r < 0 ? r : fd_memfd_sealed("driver", text->text, text->n, false);
	return ends[END_TEXT] < 0 ? ends[END_TEXT] : 0;
}

static int words_add(struct strv *to, const char *const *words)
{
	int r = 0;

	for (; words && *words && r == 0; words++) {
		r = strv_add(to, *words);
	}
	return r;
}

static const struct code_driver *text_find(const char *name)
{
	for (size_t i = 0; i < code_drivers_n; i++) {
		if (str_eq(code_drivers[i].name, name)) {
			return &code_drivers[i];
		}
	}
	return NULL;
}

static int process_begin(struct driver *d, const struct code_lang *lang, const int ends[ENDS],
		struct error *e)
{
	const struct code_context *c = d->context;
	AUTO(strv) struct strv argv = STRV_INIT;
	AUTO(strv) struct strv otherwise = STRV_INIT;
	AUTO(strv) struct strv envs = STRV_INIT;

	if (words_add(&argv, lang->argv) < 0 || words_add(&otherwise, lang->otherwise) < 0 ||
			words_add(&envs, lang->env) < 0 ||
			strv_add_all(&envs, strv_get(&c->envs)) < 0) {
		return error_set(e, ERRC_LIMIT, "too many words");
	}
	struct execd_process process = *api_main(d->execd);
	const struct process_more more = {
		.envs = &envs,
		.cwd = c->cwd,
		.otherwise = otherwise.n > 0 ? &otherwise : &argv,
		.fds = { ends[END_CHANNEL], ends[END_TEXT] },
		.fds_n = 2,
		.fd_first = FD_FIRST,
	};
	const struct process_opts opts = {
		.process = &process,
		.more = &more,
		.stdio = { -1, ends[END_OUT], ends[END_ERR] },
		.on_started = process_on_started,
		.on_failed = process_on_failed,
		.on_exited = process_on_exited,
		.ctx = d,
	};

	process.argv = argv;
	process.cwd_create = EXECD_CWD_EXISTS;
	process.set_home = 1;
	return process_spawn(d->execd, &opts, &d->tag, e);
}

static struct driver *driver_new(struct code_context *c)
{
	struct driver *d = mem_new(struct driver);

	*d = (struct driver){
		.execd = c->codes->execd,
		.context = c,
		.channel_fd = -1,
		.in = BUF_INIT(CODE_BUNDLE_MAX + READ_BYTES + CODE_FRAME_HEAD_MAX),
		.out = BUF_INIT(OUT_MAX),
	};
	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		d->pipes[i] = (struct pipe_end){
			.driver = d,
			.fd = -1,
			.late = BUF_INIT(LATE_MAX),
		};
	}
	return d;
}

static int driver_start(struct code_context *c, struct error *e)
{
	const struct code_lang *lang = code_lang_find(c->language);
	const struct code_driver *text = lang ? text_find(lang->driver) : NULL;
	int ends[ENDS] = { -1, -1, -1, -1 };
	AUTO(buf) struct buf list = BUF_INIT(1024);

	if (!text) {
		code_langs_list(c->codes->execd, &list);
		return error_set(e, ERRC_SYSTEM,
				"%s: no such language; this sandbox has an interpreter for: %s",
				c->language, list.n > 0 ? list.p : "nothing");
	}
	struct driver *d = driver_new(c);
	int r = ends_make(d, text, ends);

	r = r < 0 ? error_sys(e, -r, "make the descriptors of an interpreter")
		  : process_begin(d, lang, ends, e);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		fd_close(&ends[i]);
	}
	if (r < 0) {
		driver_free(d);
		return -1;
	}
	process_take_tree(c->codes->execd, d->tag);
	c->backend_state = d;
	return 0;
}

/* What was written since the last run. */
static void late_tell(struct driver *d)
{
	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		struct buf *late = &d->pipes[i].late;

		code_run_text(run_of(d), i == 1, buf_span(late));
		buf_done(late);
	}
}

static void driver_run(struct code_context *c)
{
	struct driver *d = c->backend_state;

	d->oom_kills = oom_kills(d->execd);
	late_tell(d);
	if (d->is_ready) {
		run_send(d, c->run);
	} else {
		d->has_run = true;
	}
	pump(d);
}

static void driver_interrupt(struct code_context *c)
{
	const struct driver *d = c->backend_state;

	process_signal(d->execd, d->tag, SIGINT);
}

static void driver_resume(struct code_context *c)
{
	pump(c->backend_state);
}

static void driver_stop(struct code_context *c)
{
	struct driver *d = TAKE_PTR(c->backend_state);

	if (run_of(d) && d->tag != 0 && !d->is_pumping) {
		d->is_pumping = true;
		pipes_read(d);
		d->is_pumping = false;
	}
	d->context = NULL;
	channel_close(d);
	pipe_close(&d->pipes[0]);
	pipe_close(&d->pipes[1]);
	if (d->tag != 0) {
		process_kill(d->execd, d->tag);
	}
}

const struct code_backend code_backend_driver = {
	.start = driver_start,
	.run = driver_run,
	.interrupt = driver_interrupt,
	.resume = driver_resume,
	.stop = driver_stop,
};
