/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/limits.h>

#include "envfile.h"

#define NAME_FIRST "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define NAME_MORE  NAME_FIRST "0123456789"
#define BLANKS     " \t\r\v\f"

struct reader {
	struct span rest;
	struct strv *env;
	size_t bytes; /* of env */
	struct buf value;
};

/* Not the NUL at the end of the set. */
static bool is_in(char c, const char *set)
{
	return c != '\0' && strchr(set, c);
}

static size_t skip(struct span s, const char *set)
{
	size_t n = 0;

	while (n < s.n && is_in(s.p[n], set)) {
		n++;
	}
	return n;
}

static size_t name_len(struct span s)
{
	return s.n > 0 && is_in(s.p[0], NAME_FIRST) ? skip(s, NAME_MORE) : 0;
}

static void line_skip(struct reader *r)
{
	const char *end = r->rest.n > 0 ? memchr(r->rest.p, '\n', r->rest.n) : NULL;

	r->rest = span_from(r->rest, end ? (size_t)(end - r->rest.p) + 1 : r->rest.n);
}

/* Behind the opening quote. False: it is never closed. */
static bool value_literal(struct reader *r)
{
	const char *end = r->rest.n > 0 ? memchr(r->rest.p, '\'', r->rest.n) : NULL;

	if (!end || buf_append(&r->value, r->rest.p, (size_t)(end - r->rest.p)) < 0) {
		return false;
	}
	r->rest = span_from(r->rest, (size_t)(end - r->rest.p) + 1);
	return true;
}

/* The byte that a backslash and c mean, or 0: both stay. */
static char escaped(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	case '\\':
	case '"':
		return c;
	default:
		return '\0';
	}
}

static bool value_quoted(struct reader *r)
{
	size_t i = 0;

	while (i < r->rest.n && r->rest.p[i] != '"') {
		char c = r->rest.p[i];

		if (c == '\\' && i + 1 < r->rest.n && escaped(r->rest.p[i + 1]) != '\0') {
			c = escaped(r->rest.p[++i]);
		}
		i++;
		if (buf_append(&r->value, &c, 1) < 0) {
			return false;
		}
	}
	bool closed = i < r->rest.n;

	r->rest = span_from(r->rest, i + 1);
	return closed;
}

/* The variable at the beginning of s, which is a '$'. Bytes of s that it takes. */
static size_t variable_put(struct reader *r, struct span s)
{
	const bool braced = s.n > 1 && s.p[1] == '{';
	struct span name = span_from(s, 1U + braced);
	const char *value = NULL;

	name.n = name_len(name);
	size_t taken = 1U + braced + name.n + braced;

	if (name.n == 0 || taken > s.n || (braced && s.p[taken - 1] != '}')) {
		(void)!buf_append(&r->value, "$", 1);
		return 1;
	}
	autofree char *copy = span_dup(name);

	value = copy ? strv_env_find(r->env, copy) : NULL;
	return buf_append_str(&r->value, value ? value : "") < 0 ? s.n : taken;
}

static bool value_plain(struct reader *r)
{
	const char *end = r->rest.n > 0 ? memchr(r->rest.p, '\n', r->rest.n) : NULL;
	struct span line = { .p = r->rest.p, .n = end ? (size_t)(end - r->rest.p) : r->rest.n };

	while (line.n > 0 && is_in(line.p[line.n - 1], BLANKS)) {
		line.n--;
	}
	while (line.n > 0) {
		const char *dollar = memchr(line.p, '$', line.n);
		size_t n = dollar ? (size_t)(dollar - line.p) : line.n;

		if (buf_append(&r->value, line.p, n) < 0) {
			return false;
		}
		line = span_from(line, n);
		if (line.n > 0) {
			line = span_from(line, variable_put(r, line));
		}
	}
	return true;
}

static bool value_read(struct reader *r)
{
	char first = (char)(r->rest.n > 0 ? r->rest.p[0] : '\n');

	buf_reset(&r->value);
	if (first == '\'' || first == '"') {
		r->rest = span_from(r->rest, 1);
		return first == '"' ? value_quoted(r) : value_literal(r);
	}
	return value_plain(r);
}

/* NAME has been read, the rest begins behind '='. 0 or -E2BIG. */
static int variable_read(struct reader *r, struct span name)
{
	if (!value_read(r)) {
		return 0;
	}
	AUTO(buf) struct buf b = BUF_INIT(LIMIT_ARGS_BYTES);

	if (buf_append(&b, name.p, name.n) < 0 || buf_append_str(&b, "=") < 0 ||
			buf_append(&b, buf_span(&r->value).p, r->value.n) < 0) {
		return -E2BIG;
	}
	autofree char *entry = span_dup(buf_span(&b));

	if (!entry) {
		return 0; /* a NUL */
	}
	r->bytes += b.n + 1;
	return r->bytes > LIMIT_ARGS_BYTES ? -E2BIG : strv_env_set(r->env, entry);
}

static int line_read(struct reader *r)
{
	struct span name = { .n = 0 };
	int result = 0;

	r->rest = span_from(r->rest, skip(r->rest, BLANKS));
	if (span_has_prefix(r->rest, span_of("export "))) {
		r->rest = span_from(r->rest, strlen("export "));
		r->rest = span_from(r->rest, skip(r->rest, BLANKS));
	}
	name.p = r->rest.p;
	name.n = name_len(r->rest);
	if (name.n > 0 && name.n < r->rest.n && r->rest.p[name.n] == '=') {
		r->rest = span_from(r->rest, name.n + 1);
		r->rest = span_from(r->rest, skip(r->rest, BLANKS));
		result = variable_read(r, name);
	}
	line_skip(r);
	return result;
}

int envfile_apply(struct span text, struct strv *env)
{
	struct reader r = {
		.rest = text,
		.env = env,
		.bytes = strv_bytes(env),
		.value = BUF_INIT(LIMIT_ARGS_BYTES),
	};
	int result = 0;

	while (r.rest.n > 0 && result == 0) {
		result = line_read(&r);
	}
	buf_done(&r.value);
	return result;
}

int envfile_load(const char *path, struct strv *env)
{
	AUTO(buf) struct buf b = BUF_INIT(ENVFILE_BYTES_MAX);
	/* Of a FIFO, a device or an endless file nothing is read. */
	autoclose int fd = fd_open(path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0) {
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	}
	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		return -EINVAL;
	}
	int r = fd_read_all(fd, &b);

	return r < 0 ? r : envfile_apply(buf_span(&b), env);
}
