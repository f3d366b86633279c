/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "http_internal.h"

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 203, "Non-Authoritative Information" },
	{ 204, "No Content" },
	{ 205, "Reset Content" },
	{ 206, "Partial Content" },
	{ 207, "Multi-Status" },
	{ 208, "Already Reported" },
	{ 300, "Multiple Choices" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 402, "Payment Required" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 407, "Proxy Authentication Required" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 422, "Unprocessable Content" },
	{ 423, "Locked" },
	{ 424, "Failed Dependency" },
	{ 425, "Too Early" },
	{ 426, "Upgrade Required" },
	{ 428, "Precondition Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 451, "Unavailable For Legal Reasons" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};

const char *http_reason(int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		if (reasons[i].status == status) {
			return reasons[i].reason;
		}
	}
	return "";
}

/* "Mon, 30 Nov 2026 21:59:33 GMT", made once a second; no locale has a say. */
static const char *date(struct http_server *s)
{
	static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug",
		"Sep", "Oct", "Nov", "Dec" };
	time_t now = time(NULL);
	struct tm tm = { .tm_year = 0 };

	if ((int64_t)now != s->date_s && gmtime_r(&now, &tm)) {
		s->date_s = now;
		(void)snprintf(s->date, sizeof(s->date), "%s, %02d %s %04d %02d:%02d:%02d GMT",
				days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon],
				(tm.tm_year + 1900) % 10000, tm.tm_hour, tm.tm_min, tm.tm_sec);
	}
	return s->date;
}

static void put(struct conn *c, const char *text)
{
	conn_queue(c, span_of(text));
}

static void put_line(struct conn *c, const char *name, const char *value)
{
	put(c, name);
	conn_queue(c, (struct span){ .p = ": ", .n = 2 });
	put(c, value);
	conn_queue(c, (struct span){ .p = "\r\n", .n = 2 });
}

/* Where the peer is told that this is the last answer. */
static void decide_close(struct conn *c)
{
	const struct exchange *x = c->x;
	const struct body *b = &x->body;

	if (x->length == UINT64_MAX && x->is_10 && !x->has_no_body) {
		c->must_close = true;
	}
	if (body_is_done(b)) {
		return;
	}
	/* A client that waits for 100 (Continue) may send its body after all, or not. */
	if (b->expects || (b->kind == BODY_LENGTH && b->left > HTTP_DRAIN_MAX && !x->is_early)) {
		c->must_close = true;
	}
}

static void put_framing(struct conn *c)
{
	struct exchange *x = c->x;
	char number[24];

	if (x->length != UINT64_MAX) {
		(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)x->length);
		put_line(c, "Content-Length", number);
	} else if (!x->is_10) {
		x->is_chunked = true;
		put_line(c, "Transfer-Encoding", "chunked");
	}
}

void http_begin(struct http_req *rq, int status, const char *type, uint64_t length_n)
{
	struct exchange *x = exchange_of(rq);
	struct conn *c = x->conn;
	char line[32];
	bool has_length = status != 204 && status != 304;

	assert(!x->has_begun && status >= 200 && status <= 999);
	conn_enter(c);
	if (c->is_blocking) {
		worker_begun(c);
	}
	x->has_begun = true;
	x->length = length_n;
	x->has_no_body = rq->method == HTTP_HEAD || !has_length;
	/* A route that reads its body by itself may go on to do so. */
	x->is_early = status < 400;
	decide_close(c);
	(void)snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
	put(c, line);
	put(c, http_reason(status));
	conn_queue(c, (struct span){ .p = "\r\n", .n = 2 });
	if (!x->has_date) {
		put_line(c, "Date", date(c->server));
	}
	if (type) {
		put_line(c, "Content-Type", type);
	}
	if (has_length) {
		put_framing(c);
	}
	if (c->must_close) {
		put_line(c, "Connection", "close");
	} else if (x->is_10) {
		put_line(c, "Connection", "keep-alive");
	}
	conn_queue(c, buf_span(&x->extra));
	buf_done(&x->extra);
	if (c->server->opts.fields) {
		AUTO(buf) struct buf more = BUF_INIT(HTTP_EXTRA_MAX);

		c->server->opts.fields(rq, &more);
		conn_queue(c, buf_span(&more));
	}
	conn_queue(c, (struct span){ .p = "\r\n", .n = 2 });
	conn_leave(c);
}

bool http_has_begun(const struct http_req *rq)
{
	return exchange_of(rq)->has_begun;
}

static void add_line(struct buf *b, const char *name, const char *value)
{
	assert(parse_is_token(span_of(name)) && parse_is_value(span_of(value)));
	int r = buf_appendf(b, "%s: %s\r\n", name, value);

	assert(r == 0);
	(void)r;
}

void http_reply_field(struct http_req *rq, const char *name, const char *value)
{
	struct exchange *x = exchange_of(rq);

	assert(!x->has_begun);
	x->has_date |= parse_same_name(span_of(name), "date");
	add_line(&x->extra, name, value);
}

void http_reply_trailer(struct http_req *rq, const char *name, const char *value)
{
	add_line(&exchange_of(rq)->trailers, name, value);
}

void http_write(struct http_req *rq, struct span data)
{
	struct exchange *x = exchange_of(rq);
	struct conn *c = x->conn;
	char size[20];
	static char line_end[] = "\r\n";

	assert(x->has_begun && c->state == CONN_HANDLER);
	if (x->has_no_body || data.n == 0) {
		return;
	}
	x->written += data.n;
	assert(x->written <= x->length);
	int size_n = x->is_chunked ? snprintf(size, sizeof(size), "%zx\r\n", data.n) : 0;
	struct iovec v[] = {
		{ .iov_base = size, .iov_len = (size_t)size_n },
		{ .iov_base = (void *)(uintptr_t)data.p, .iov_len = data.n },
		{ .iov_base = line_end, .iov_len = x->is_chunked ? 2 : 0 },
	};

	conn_enter(c);
	conn_send(c, v, ARRAY_SIZE(v));
	conn_leave(c);
}

size_t http_pending(const struct http_req *rq)
{
	return conn_pending(conn_of(rq));
}

void http_end(struct http_req *rq)
{
	struct exchange *x = exchange_of(rq);
	struct conn *c = x->conn;

	assert(x->has_begun && c->state == CONN_HANDLER);
	if (!x->has_no_body && x->length != UINT64_MAX && x->written != x->length) {
		http_abort(rq);
		return;
	}
	conn_enter(c);
	if (x->is_chunked && !x->has_no_body) {
		put(c, "0\r\n");
		conn_queue(c, buf_span(&x->trailers));
		conn_queue(c, (struct span){ .p = "\r\n", .n = 2 });
	}
	conn_ended(c);
	if (c->is_blocking) {
		conn_flush(c);
	}
	conn_leave(c);
}

void http_abort(struct http_req *rq)
{
	struct conn *c = conn_of(rq);

	conn_enter(c);
	conn_flush(c);
	conn_kill(c);
	conn_leave(c);
}

void http_reply(struct http_req *rq, int status, const char *type, struct span body)
{
	struct conn *c = conn_of(rq);

	conn_enter(c);
	http_begin(rq, status, type, body.n);
	http_write(rq, body);
	http_end(rq);
	conn_leave(c);
}

void reply_error(struct http_req *rq, int status, const char *what)
{
	struct exchange *x = exchange_of(rq);
	const struct http_opts *o = &x->conn->server->opts;
	AUTO(buf) struct buf body = BUF_INIT(64U << 10);
	const char *type = "text/plain; charset=utf-8";

	if (o->describe) {
		type = o->describe(x->is_nobody ? NULL : rq, status, what, &body);
	} else if (buf_appendf(&body, "%s\n", what) < 0) {
		buf_reset(&body);
	}
	http_reply(rq, status, type, buf_span(&body));
}
