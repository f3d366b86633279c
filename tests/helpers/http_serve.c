/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_serve SOCKET - a server with a route of each kind, for tests of the HTTP server from
 * outside. Prints "ready" when it listens; ends at the end of standard input.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/http.h>
#include <osbx/mem.h>
#include <osbx/str.h>

static int file_fd = -1;

static void ping(struct http_req *rq)
{
	http_reply(rq, 200, NULL, span_of(""));
}

static void echo(struct http_req *rq)
{
	http_reply(rq, 200, "application/octet-stream", rq->body);
}

/* What of the body comes goes back, in chunks. */
static void echo_on_body(struct http_req *rq)
{
	for (struct span data = http_body_peek(rq); data.n > 0; data = http_body_peek(rq)) {
		http_write(rq, data);
		http_body_take(rq, data.n);
	}
	if (http_body_done(rq)) {
		http_end(rq);
	}
}

static void echo_stream(struct http_req *rq)
{
	rq->on_body = echo_on_body;
	if (http_body_peek(rq).n == 0 && !http_body_done(rq) && !rq->ctx) {
		http_begin(rq, 200, "text/plain", UINT64_MAX);
		return;
	}
	http_begin(rq, 200, "text/plain", UINT64_MAX);
	echo_on_body(rq);
}

static void hello(struct http_req *rq)
{
	autofree char *name = http_param(rq, 0);
	autofree char *text = mem_printf("hello %s", name ? name : "(bad escape)");

	http_reply(rq, 200, "text/plain", span_of(text));
}

static void lines(struct http_req *rq)
{
	http_begin(rq, 200, "text/event-stream", UINT64_MAX);
	http_write(rq, span_of("one\n"));
	http_write(rq, span_of("two\n"));
	http_end(rq);
}

/* As many bytes as the path says, in events of 80 bytes, 400 at once. */
struct flood {
	uint64_t left;
};

static void flood_more(struct http_req *rq)
{
	struct flood *f = rq->ctx;
	static char batch[400 * 80];

	memset(batch, 'x', sizeof(batch));
	while (f->left > 0 && http_pending(rq) < 256U << 10) {
		size_t n = f->left < sizeof(batch) ? (size_t)f->left : sizeof(batch);

		http_write(rq, (struct span){ .p = batch, .n = n });
		f->left -= n;
	}
	if (f->left == 0) {
		free(f);
		http_end(rq);
	}
}

static void flood_on_close(struct http_req *rq)
{
	free(rq->ctx);
}

static uint64_t number_param(struct http_req *rq)
{
	autofree char *text = http_param(rq, 0);
	uint64_t n = 0;

	return text && str_to_u64(text, UINT32_MAX, &n) == 0 ? n : 0;
}

static void flood(struct http_req *rq)
{
	struct flood *f = mem_new(struct flood);

	f->left = number_param(rq);
	rq->ctx = f;
	rq->on_drain = flood_more;
	rq->on_close = flood_on_close;
	http_begin(rq, 200, "text/event-stream", UINT64_MAX);
	flood_more(rq);
}

static void file_run(struct http_req *rq, void *ctx)
{
	uint64_t n = *(uint64_t *)ctx;

	http_begin(rq, 200, "application/octet-stream", n);
	if (http_blocking_sendfile(rq, file_fd, 0, n) < 0) {
		http_abort(rq);
		return;
	}
	http_end(rq);
}

static void file(struct http_req *rq)
{
	uint64_t n = number_param(rq);
	const struct http_fork_opts opts = {
		.run = file_run,
		.ctx = &n,
		.keep = &file_fd,
		.keep_n = 1,
	};

	(void)!ftruncate(file_fd, (off_t)n);
	(void)!http_fork(rq, &opts);
}

static void count_run(struct http_req *rq, void *ctx)
{
	autofree char *bytes = mem_array(1U << 20, 1);
	uint64_t sum = 0;
	ssize_t n = 0;

	(void)ctx;
	while ((n = http_blocking_read(rq, bytes, 1U << 20)) > 0) {
		sum += (uint64_t)n;
	}
	if (n < 0) {
		http_reply(rq, 400, NULL, span_of(""));
		return;
	}
	autofree char *text = mem_printf("%llu", (unsigned long long)sum);

	http_reply(rq, 200, "text/plain", span_of(text));
}

static void count(struct http_req *rq)
{
	const struct http_fork_opts opts = { .run = count_run };

	(void)!http_fork(rq, &opts);
}

static const struct http_route routes[] = {
	{ HTTP_GET, "/ping", ping },
	{ HTTP_POST, "/echo", echo, .body_max = 1U << 20 },
	{ HTTP_POST, "/stream", echo_stream, HTTP_ROUTE_STREAM },
	{ HTTP_GET, "/hello/{name}", hello },
	{ HTTP_GET, "/lines", lines },
	{ HTTP_GET, "/flood/{n}", flood },
	{ HTTP_GET, "/file/{n}", file },
	{ HTTP_POST, "/count", count, HTTP_ROUTE_STREAM },
};

static int listen_at(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(a.sun_path)) {
		return -1;
	}
	memcpy(a.sun_path, path, strlen(path));
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 128) < 0) {
		return -1;
	}
	return fd;
}

static void on_stdin(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)src;
	(void)events;
	loop_stop(loop, 0);
}

int main(int argc, char **argv)
{
	AUTO(loop) struct loop *loop = loop_new();
	const struct http_opts opts = { .routes = routes, .routes_n = ARRAY_SIZE(routes) };
	const struct sigaction ignore = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };
	struct loop_source input = { .fd = 0 };
	int fd = argc == 2 ? listen_at(argv[1]) : -1;

	if (!loop || fd < 0) {
		fprintf(stderr, "usage: http_serve SOCKET\n");
		return 2;
	}
	(void)sigaction(SIGCHLD, &ignore, NULL);
	file_fd = fd_memfd("file", false);
	AUTO(http_server) struct http_server *s = http_server_new(loop, &opts);

	if (file_fd < 0 || http_listen(s, fd, 1) < 0 ||
			loop_add(loop, &input, 0, EPOLLIN, on_stdin) < 0) {
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	return loop_run(loop) < 0 ? 1 : 0;
}
