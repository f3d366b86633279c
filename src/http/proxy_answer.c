/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include <osbx/mem.h>

#include "proxy_internal.h"

/* What the fields of one answer may take, those of the caller included. */
#define FIELDS_BYTES_MAX (HTTP_EXTRA_MAX - 1024)

/* One field at a time: to the server's answer, or into a head of our own. */
typedef void (*field_fn)(void *to, const char *name, const char *value);

static void field_to_reply(void *to, const char *name, const char *value)
{
	http_reply_field(to, name, value);
}

static void field_to_head(void *to, const char *name, const char *value)
{
	int r = buf_appendf(to, "%s: %s\r\n", name, value);

	assert(r == 0);
	(void)r;
}

static bool is_dropped(const struct proxy *p, struct span name)
{
	for (const char *const *n = p->drop_response; n && *n; n++) {
		if (parse_same_name(name, *n)) {
			return true;
		}
	}
	return false;
}

static bool is_beneath(struct span path, struct span prefix)
{
	if (!span_has_prefix(path, prefix)) {
		return false;
	}
	struct span rest = span_from(path, prefix.n);

	return rest.n == 0 || strchr("/?#", rest.p[0]) || prefix.p[prefix.n - 1] == '/';
}

static bool has_start(struct span s, struct span start)
{
	return s.n >= start.n && strncasecmp(s.p, start.p, start.n) == 0;
}

/* What is behind "http://" and the name that the backend was called by: to the client, that is a
 * port of its own machine. False: it is somebody else's. */
static bool is_own_url(const struct proxy *p, struct span url, struct span *out_rest)
{
	struct span scheme = span_of("http://");
	struct span host = span_of(p->host);

	if (!has_start(url, scheme)) {
		return false;
	}
	url = span_from(url, scheme.n);
	/* The port of the scheme is left out by who makes a URL with care. */
	if (!has_start(url, host) && host.n > 3 && memcmp(host.p + host.n - 3, ":80", 3) == 0) {
		host.n -= 3;
	}
	if (!has_start(url, host)) {
		return false;
	}
	url = span_from(url, host.n);
	if (url.n > 0 && !strchr("/?#", url.p[0])) {
		return false;
	}
	*out_rest = url;
	return true;
}

/* Below the prefix, for what is the backend's own. Caller frees. */
static char *location_of(const struct proxy *p, struct span value)
{
	bool is_own = is_own_url(p, value, &value);

	/* "//host/path" is another host's, but not when it follows one. */
	if (!is_own && (value.n == 0 || value.p[0] != '/' || (value.n > 1 && value.p[1] == '/'))) {
		return mem_dup(value.p, value.n);
	}
	if (is_beneath(value, span_of(p->location_prefix))) {
		return mem_dup(value.p, value.n);
	}
	return mem_printf("%s%s%.*s", p->location_prefix,
			value.n > 0 && value.p[0] == '/' ? "" : "/", (int)value.n, value.p);
}

static bool is_location(const struct proxy *p, const struct parse_field *f)
{
	return p->location_prefix && parse_same_name(f->name, "location");
}

/* Caller frees. */
static char *value_of(const struct proxy *p, const struct parse_field *f)
{
	return is_location(p, f) ? location_of(p, f->value) : mem_dup(f->value.p, f->value.n);
}

/* Lines "Name: value" with CR LF. */
static void lines_each(const char *lines, field_fn fn, void *to)
{
	struct span rest = span_of(lines);
	struct span line = { .p = NULL };

	while (span_next(&rest, '\n', &line) && line.n > 0) {
		const char *colon = memchr(line.p, ':', line.n);

		assert(colon && line.p[line.n - 1] == '\r');
		struct span value = parse_trim((struct span){
				.p = colon + 1, .n = (size_t)(line.p + line.n - 1 - (colon + 1)) });
		autofree char *name = mem_dup(line.p, (size_t)(colon - line.p));
		autofree char *text = mem_dup(value.p, value.n);

		fn(to, name, text);
	}
}

static void fields_each(const struct proxy *p, const struct proxy_answer *a, field_fn fn, void *to)
{
	for (size_t i = 0; i < a->fields_n; i++) {
		struct span name = a->fields[i].name;

		if (proxy_is_hop(a->fields, a->fields_n, name) || is_dropped(p, name)) {
			continue;
		}
		autofree char *name_text = mem_dup(name.p, name.n);
		autofree char *value = value_of(p, &a->fields[i]);

		fn(to, name_text, value);
	}
	if (p->add_response) {
		lines_each(p->add_response, fn, to);
	}
}

bool proxy_answer_fields(struct proxy *p, const struct proxy_answer *a)
{
	size_t bytes = p->add_response ? strlen(p->add_response) : 0;

	for (size_t i = 0; i < a->fields_n; i++) {
		bytes += a->fields[i].name.n + a->fields[i].value.n + strlen(": \r\n");
		if (is_location(p, &a->fields[i])) {
			bytes += strlen(p->location_prefix) + 1;
		}
	}
	if (bytes > FIELDS_BYTES_MAX) {
		return false;
	}
	fields_each(p, a, field_to_reply, p->rq);
	return true;
}

void proxy_answer_upgrade(struct proxy *p, const struct proxy_answer *a, struct buf *out)
{
	int r = buf_appendf(out,
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
			"Upgrade: %.*s\r\n",
			(int)a->upgrade.n, a->upgrade.p);

	fields_each(p, a, field_to_head, out);
	if (conn_of(p->rq)->server->opts.fields) {
		conn_of(p->rq)->server->opts.fields(p->rq, out);
	}
	r = r < 0 ? r : buf_append_str(out, "\r\n");
	assert(r == 0);
	(void)r;
}

static void pass(struct proxy *p, uint64_t max)
{
	size_t n = p->in_n - p->in_at;

	n = n < max ? n : (size_t)max;
	struct span data = { .p = p->in + p->in_at, .n = n };

	p->in_at += n;
	p->left -= p->body == PROXY_BODY_LENGTH ? n : 0;
	if (p->body == PROXY_BODY_CHUNKED) {
		chunked_take(&p->chunked, n);
	}
	http_write(p->rq, data);
}

/* Framing of chunks, a line at a time: those of the trailer are kept. */
static int chunked_pass(struct proxy *p)
{
	struct span rest = { .p = p->in + p->in_at, .n = p->in_n - p->in_at };
	const char *lf = memchr(rest.p, '\n', rest.n);
	bool in_trailer = p->chunked.state == CHUNKED_TRAILER ||
			  p->chunked.state == CHUNKED_TRAILER_MORE ||
			  p->chunked.state == CHUNKED_TRAILER_LF;

	if (p->chunked.state == CHUNKED_DATA) {
		pass(p, p->chunked.left);
		return 0;
	}
	rest.n = lf ? (size_t)(lf - rest.p) + 1 : rest.n;
	ssize_t n = chunked_step(&p->chunked, rest);

	if (n < 0 || (in_trailer && buf_append(&p->trailers, rest.p, (size_t)n) < 0)) {
		return -EBADMSG;
	}
	p->in_at += (size_t)n;
	return 0;
}

int proxy_answer_body(struct proxy *p)
{
	while (p->in_at < p->in_n) {
		switch (p->body) {
		case PROXY_BODY_NONE:
			return 0;
		case PROXY_BODY_LENGTH:
			pass(p, p->left);
			break;
		case PROXY_BODY_CLOSE:
			pass(p, UINT64_MAX);
			break;
		case PROXY_BODY_CHUNKED:
			if (chunked_pass(p) < 0) {
				return -EBADMSG;
			}
			break;
		}
		if ((p->body == PROXY_BODY_LENGTH && p->left == 0) ||
				(p->body == PROXY_BODY_CHUNKED &&
						p->chunked.state == CHUNKED_DONE)) {
			p->is_over = true;
			return 0;
		}
	}
	return 0;
}
