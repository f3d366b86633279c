/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/http.h>
#include <osbx/mem.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void echo(struct http_req *rq)
{
	char *value = NULL;
	struct span name = { .p = NULL };
	struct span field = { .p = NULL };
	size_t sum = 0;

	for (size_t i = 0; http_field_at(rq, i, &name, &field); i++) {
		sum += name.n + field.n;
	}
	if (http_query(rq, "a", &value) == 0) {
		free(value);
	}
	free(http_param(rq, 0));
	if (sum > 2 * HTTP_HEAD_BYTES_MAX) {
		abort();
	}
	http_reply(rq, 200, "text/plain", rq->body);
}

static void stream_on_body(struct http_req *rq)
{
	for (struct span piece = http_body_peek(rq); piece.n > 0; piece = http_body_peek(rq)) {
		http_write(rq, piece);
		/* By halves, so that pieces begin anywhere. */
		http_body_take(rq, (piece.n + 1) / 2);
	}
	if (http_body_done(rq)) {
		http_end(rq);
	}
}

static void stream(struct http_req *rq)
{
	rq->on_body = stream_on_body;
	http_begin(rq, 200, NULL, UINT64_MAX);
	stream_on_body(rq);
}

static const struct http_route routes[] = {
	{ HTTP_GET, "/", echo },
	{ HTTP_POST, "/e/{a}", echo, .body_max = 100 },
	{ HTTP_POST, "/s", stream, HTTP_ROUTE_STREAM },
	{ HTTP_GET, "/any/{a}/{rest*}", echo, HTTP_ROUTE_ANY },
};

static void on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)src;
	(void)events;
	loop_stop(loop, 0);
}

/* All that can be done now. */
static void step(struct loop *loop)
{
	struct loop_source stop = { .kind = LOOP_SOURCE_NONE };

	loop_timer(loop, &stop, clock_boot_ms(), on_time);
	if (loop_run(loop) != 0) {
		abort();
	}
	loop_remove(loop, &stop);
}

/* Send in pieces of a size, 0: all at once; what comes back. */
static void talk(const uint8_t *data, size_t size, size_t piece, struct buf *out)
{
	AUTO(loop) struct loop *loop = loop_new();
	const struct http_opts opts = { .routes = routes, .routes_n = ARRAY_SIZE(routes) };
	AUTO(http_server) struct http_server *s = loop ? http_server_new(loop, &opts) : NULL;
	int fds[2];
	size_t at = 0;

	if (!s || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0 ||
			http_adopt(s, fds[1], 0) < 0) {
		abort();
	}
	for (bool is_open = true; is_open;) {
		size_t n = piece && piece < size - at ? piece : size - at;
		ssize_t sent = n ? send(fds[0], data + at, n, MSG_NOSIGNAL) : 0;

		at += sent > 0 ? (size_t)sent : 0;
		if (at == size) {
			(void)shutdown(fds[0], SHUT_WR);
		}
		step(loop);
		for (ssize_t got = 1; got > 0;) {
			if (buf_reserve(out, 65536) < 0) {
				abort();
			}
			got = recv(fds[0], out->p + out->n, 65536, MSG_DONTWAIT);
			out->n += got > 0 ? (size_t)got : 0;
			is_open = got != 0 && http_conns(s) > 0;
		}
	}
	close(fds[0]);
}

/* Status line of the first answer but "100 Continue", which depends on what has come. */
static struct span status_of(const struct buf *got)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct span rest = buf_span(got);

	if (span_has_prefix(rest, span_of(go_on))) {
		rest = span_from(rest, sizeof(go_on) - 1);
	}
	const char *end = memchr(rest.p, '\r', rest.n);

	return (struct span){ .p = rest.p, .n = end ? (size_t)(end - rest.p) : 0 };
}

/* However the bytes of a connection are cut, the first answer is the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf) struct buf whole = BUF_INIT(64U << 20);
	AUTO(buf) struct buf pieces = BUF_INIT(64U << 20);

	if (size == 0 || size > 4096) {
		return 0;
	}
	talk(data, size, 0, &whole);
	talk(data, size, 1 + data[0] % 7, &pieces);
	if (!span_eq(status_of(&whole), status_of(&pieces))) {
		abort();
	}
	return 0;
}
