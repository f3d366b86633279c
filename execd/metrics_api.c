/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   request ── first sample ──▶ MEASURING ── SAMPLE_MS ──▶ answered
 *                                   └── of /metrics/watch ──▶ a line each PERIOD_MS, until the
 * client is gone
 *
 * A line that the client has not taken yet gets no other one behind it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "api.h"
#include "metrics.h"
#include "routes.h"

#define SAMPLE_MS   250
#define PERIOD_MS   2000
#define LINE_BYTES  512
#define FILE_BYTES  2048 /* what is needed stands at the beginning */
#define PENDING_MAX 4096

struct watch {
	struct http_req *rq;
	struct execd *execd;
	struct loop_source timer;
	struct metrics before;
	bool goes_on;
};

struct text {
	char bytes[FILE_BYTES];
};

/* Of the kernel's own file systems. Empty when it cannot be read. */
static struct span text_read(int dir_fd, const char *name, struct text *t)
{
	autoclose int fd = dir_fd < 0 ? -1 : fd_open_at(dir_fd, name, O_RDONLY | O_NOFOLLOW, 0);
	ssize_t n = fd < 0 ? 0 : fd_read(fd, t->bytes, sizeof(t->bytes));

	return (struct span){ .p = t->bytes, .n = n > 0 ? (size_t)n : 0 };
}

static void sample(const struct execd *x, struct metrics *out)
{
	autoclose int proc_fd = proc_open(x->root_fd);
	struct text texts[6];
	const struct metrics_text t = {
		.cpu_max = text_read(x->cgroup_fd, "cpu.max", &texts[0]),
		.cpu_stat = text_read(x->cgroup_fd, "cpu.stat", &texts[1]),
		.memory_max = text_read(x->cgroup_fd, "memory.max", &texts[2]),
		.memory_current = text_read(x->cgroup_fd, "memory.current", &texts[3]),
		.stat = text_read(proc_fd, "stat", &texts[4]),
		.meminfo = text_read(proc_fd, "meminfo", &texts[5]),
	};

	metrics_parse(&t, sysconf(_SC_NPROCESSORS_ONLN), clock_boot_us(), out);
	out->wall_ms = clock_wall_ms();
}

static void watch_free(struct watch *w)
{
	loop_remove(w->execd->loop, &w->timer);
	free(w);
}

static void watch_on_close(struct http_req *rq)
{
	watch_free(rq->ctx);
}

static void watch_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct watch *w = container_of(src, struct watch, timer);
	AUTO(buf) struct buf line = BUF_INIT(LINE_BYTES);
	struct http_req *rq = w->rq;
	struct metrics now;

	(void)events;
	sample(w->execd, &now);
	metrics_format(&w->before, &now, &line);
	w->before = now;
	if (!w->goes_on) {
		watch_free(w);
		api_json(rq, 200, &line);
		return;
	}
	loop_timer(loop, &w->timer, clock_boot_ms() + PERIOD_MS, watch_on_time);
	if (http_pending(rq) < PENDING_MAX && buf_append_str(&line, "\n") == 0) {
		http_write(rq, buf_span(&line));
	}
}

static struct watch *watch_new(struct http_req *rq)
{
	struct watch *w = mem_new(struct watch);

	*w = (struct watch){ .rq = rq, .execd = api_execd(rq) };
	sample(w->execd, &w->before);
	loop_timer(w->execd->loop, &w->timer, clock_boot_ms() + SAMPLE_MS, watch_on_time);
	rq->ctx = w;
	rq->on_close = watch_on_close;
	return w;
}

void metrics_get(struct http_req *rq)
{
	(void)watch_new(rq);
}

void metrics_watch(struct http_req *rq)
{
	watch_new(rq)->goes_on = true;
	http_reply_field(rq, "Cache-Control", "no-cache");
	http_reply_field(rq, "X-Accel-Buffering", "no");
	http_begin(rq, 200, "text/event-stream", UINT64_MAX);
}
