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
 * CODE_LATE_MAX bytes come with the next run.
 *
 * The process is not the context: one that is stopped is killed, and its record (context NULL)
 * lives until it is reaped. All that comes from it is hostile; a fault in the protocol is its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/oom.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "code_driver.h"

#define OUT_MAX        (CODE_TEXT_MAX + 64U)
#define FD_FIRST       3
#define MEMORY_LOOK_MS 20

static void driver_free(struct driver *d)
{
	loop_remove(d->execd->loop, &d->memory);
	driver_close(d);
	buf_done(&d->pipes[0].late);
	buf_done(&d->pipes[1].late);
	codes_of(d->execd)->in_sum -= d->in.n;
	buf_done(&d->in);
	buf_done(&d->out);
	free(d);
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
	if (end->si_status == SIGKILL && oom_kills(d->execd->cgroup_fd) > d->oom_kills) {
		return mem_printf("the interpreter was killed: out of memory");
	}
	return mem_printf("the interpreter was killed by signal %d (%s)", end->si_status,
			signal_name(end->si_status));
}

static void process_on_exited(void *ctx, const siginfo_t *end)
{
	struct driver *d = ctx;

	d->tag = 0;
	if (d->context) {
		driver_last_words(d);
	}
	if (d->context) {
		autofree char *text = end_text(d, end);

		code_ended(d->context, CODE_KERNEL_DIED, text);
	}
	driver_free(d);
}

static void missing_set(const struct execd *x, const char *language, struct error *e)
{
	AUTO(buf) struct buf list = BUF_INIT(1024);

	code_langs_list(x, &list);
	(void)error_set(e, ERRC_SYSTEM,
			"%s: no interpreter for it is in the PATH of this sandbox; there is one for: %s",
			language, list.n > 0 ? list.p : "nothing");
}

static void process_on_failed(void *ctx, const struct error *e)
{
	struct driver *d = ctx;
	struct code_context *c = d->context;

	d->tag = 0;
	if (c && e->code == ERRC_NO_COMMAND) {
		struct error none = ERROR_INIT;

		missing_set(d->execd, c->language, &none);
		code_start_failed(c, &none);
	} else if (c) {
		code_start_failed(c, e);
	}
	driver_free(d);
}

static void process_on_started(void *ctx, pid_t pid, int master_fd)
{
	struct driver *d = ctx;

	(void)master_fd;
	d->pid = pid;
	if (!d->context) {
		return;
	}
	if (driver_watch(d) < 0) {
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
		.in = BUF_INIT(CODE_BUNDLE_MAX + CODE_READ_BYTES + CODE_FRAME_HEAD_MAX),
		.out = BUF_INIT(OUT_MAX),
	};
	for (size_t i = 0; i < ARRAY_SIZE(d->pipes); i++) {
		d->pipes[i] = (struct pipe_end){
			.driver = d,
			.fd = -1,
			.late = BUF_INIT(CODE_LATE_MAX),
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
	if (lang->program && !code_lang_is_there(c->codes->execd, lang)) {
		missing_set(c->codes->execd, c->language, e);
		return -1;
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

/* Bytes of memory that a process has; 0: nobody knows. */
static uint64_t memory_of(const struct execd *x, pid_t pid)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "/proc/%d/statm", pid);
	autoclose int fd = path_open_nolink(x->root_fd, text, O_RDONLY, 0);
	ssize_t n = fd < 0 ? fd : fd_read(fd, text, sizeof(text) - 1);
	struct span rest = { .p = text, .n = n > 0 ? (size_t)n : 0 };
	struct span word;
	uint64_t pages = 0;

	/* All of it, then what is in memory: proc(5). */
	if (span_next(&rest, ' ', &word) && span_next(&rest, ' ', &word)) {
		autofree char *number = span_dup(word);

		(void)!(number && str_to_u64(number, UINT32_MAX, &pages) == 0);
	}
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void memory_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct driver *d = container_of(src, struct driver, memory);
	const struct code_run *r = d->context ? d->context->run : NULL;

	(void)events;
	if (!r || r->memory == 0) {
		return; /* the next run with a limit looks again */
	}
	if (memory_of(d->execd, d->pid) <= r->memory) {
		loop_timer(loop, src, clock_boot_ms() + MEMORY_LOOK_MS, memory_on_time);
		return;
	}
	autofree char *text = mem_printf("the interpreter had more than the %llu bytes of memory "
					 "of this run and was killed",
			(unsigned long long)r->memory);

	code_ended(d->context, CODE_KERNEL_DIED, text);
}

static void driver_run(struct code_context *c)
{
	struct driver *d = c->backend_state;

	if (c->run->memory > 0) {
		loop_timer(d->execd->loop, &d->memory, clock_boot_ms() + MEMORY_LOOK_MS,
				memory_on_time);
	}

	d->oom_kills = oom_kills(d->execd->cgroup_fd);
	driver_tell_late(d);
	if (d->is_ready) {
		driver_send_run(d, c->run);
	} else {
		d->has_run = true;
	}
	driver_pump(d);
}

static void driver_interrupt(struct code_context *c)
{
	const struct driver *d = c->backend_state;

	process_signal(d->execd, d->tag, SIGINT);
}

static void driver_resume(struct code_context *c)
{
	driver_pump(c->backend_state);
}

static void driver_stop(struct code_context *c)
{
	struct driver *d = TAKE_PTR(c->backend_state);

	if (c->run && d->tag != 0 && !d->is_pumping) {
		d->is_pumping = true;
		driver_last_text(d);
		d->is_pumping = false;
	}
	d->context = NULL;
	driver_close(d);
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
