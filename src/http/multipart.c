/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * One window slides over the body: window[begin..end) has been read and not been given away. A
 * delimiter is CR LF "--" boundary; the body is read as if a CR LF stood before it, so that the
 * first delimiter needs no rule of its own, and the empty line that ends a part's head is looked at
 * once more as the beginning of a delimiter, for a part without content.
 *
 *   PREAMBLE ──delimiter──► HEAD ──empty line──► CONTENT ──delimiter──► HEAD …
 *                                                └─closing delimiter──► EPILOGUE ──end──► END
 *
 * window[begin..clean) is content: no delimiter begins there. Each byte is searched once; what
 * could be the beginning of a delimiter waits at the end of the window for the next read, so at
 * most a delimiter's length is moved to the front. The preamble is content that nobody sees.
 *
 * A failure is final: every later call returns it.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include <osbx/buf.h>
#include <osbx/mem.h>
#include <osbx/multipart.h>

#define WINDOW_BYTES    (128U << 10)
#define BOUNDARY_MAX    70 /* RFC 2046 section 5.1.1 */
#define PADDING_MAX     256
#define DELIMITER_START "\r\n--"

enum multipart_state {
	MULTIPART_PREAMBLE,
	MULTIPART_HEAD,
	MULTIPART_CONTENT,
	MULTIPART_EPILOGUE,
	MULTIPART_END,
};

struct multipart {
	multipart_read_fn read;
	void *ctx;
	enum multipart_state state;
	int failed; /* -errno, 0: none */
	bool is_over;
	char *window;
	size_t begin, clean, end;
	char delimiter[sizeof(DELIMITER_START) + BOUNDARY_MAX];
	size_t delimiter_n;
	char *name, *filename, *type; /* of the part, what multipart_part borrows */
};

/* What stands behind the bytes of a delimiter. */
enum tail {
	TAIL_MORE,    /* cannot be said yet */
	TAIL_CONTENT, /* it is none: content that looks like one ("--boundaryx") */
	TAIL_NEXT,    /* white space and CR LF: a part follows */
	TAIL_CLOSE,   /* "--": the last one */
};

struct param {
	struct span name;
	char *value; /* owned */
};

static void param_done(struct param *p)
{
	free(p->value);
	*p = (struct param){ .value = NULL };
}
AUTO_DEFINE(param, struct param, param_done);

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct span trim(struct span s)
{
	while (s.n > 0 && is_blank(s.p[0])) {
		s = span_from(s, 1);
	}
	while (s.n > 0 && is_blank(s.p[s.n - 1])) {
		s.n--;
	}
	return s;
}

static bool span_is(struct span s, const char *lower)
{
	return s.n == strlen(lower) && strncasecmp(s.p, lower, s.n) == 0;
}

static bool is_token_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!is_token_byte(s.p[i])) {
			return false;
		}
	}
	return s.n > 0;
}

/* The value of a parameter in quotes; *rest begins behind the opening one. A backslash that quotes
 * neither a quote nor itself is one: old clients send paths of Windows. */
static int quoted_take(struct span *rest, char **out_value)
{
	AUTO(buf) struct buf value = BUF_INIT(MULTIPART_PART_HEAD_MAX);

	for (size_t i = 0; i < rest->n; i++) {
		char c = rest->p[i];

		if (c == '"') {
			*rest = span_from(*rest, i + 1);
			*out_value = buf_take(&value);
			return 0;
		}
		if (c == '\\' && i + 1 < rest->n &&
				(rest->p[i + 1] == '"' || rest->p[i + 1] == '\\')) {
			c = rest->p[++i];
		}
		if (buf_append(&value, &c, 1) < 0) {
			return -EMSGSIZE;
		}
	}
	return -EBADMSG;
}

/* Next "; name=value" of a field's value. 1, 0 at the end, -EBADMSG. */
static int param_next(struct span *rest, struct param *out)
{
	struct span at = trim(*rest);
	const char *equals = NULL;

	/* An empty one ("; ;", a last semicolon) is nothing. */
	while (at.n > 0 && at.p[0] == ';') {
		at = trim(span_from(at, 1));
	}
	if (at.n == 0) {
		*rest = at;
		return 0;
	}
	equals = memchr(at.p, '=', at.n);
	if (!equals) {
		return -EBADMSG;
	}
	struct param p = { .name = { .p = at.p, .n = (size_t)(equals - at.p) } };

	if (!is_token(p.name)) {
		return -EBADMSG;
	}
	at = span_from(at, p.name.n + 1);
	if (at.n > 0 && at.p[0] == '"') {
		at = span_from(at, 1);
		int r = quoted_take(&at, &p.value);

		if (r < 0) {
			return r;
		}
		at = trim(at);
		if (at.n > 0 && at.p[0] != ';') {
			free(p.value);
			return -EBADMSG;
		}
	} else {
		const char *semicolon = at.n > 0 ? memchr(at.p, ';', at.n) : NULL;
		struct span value = { .p = at.p,
			.n = semicolon ? (size_t)(semicolon - at.p) : at.n };

		at = span_from(at, value.n);
		value = trim(value);
		if (value.n == 0 || memchr(value.p, '"', value.n)) {
			return -EBADMSG;
		}
		p.value = mem_dup(value.p, value.n);
	}
	*rest = at;
	*out = p;
	return 1;
}

/* Cut what stands before the first semicolon off. */
static struct span head_take(struct span *rest)
{
	const char *semicolon = rest->n > 0 ? memchr(rest->p, ';', rest->n) : NULL;
	struct span head = { .p = rest->p,
		.n = semicolon ? (size_t)(semicolon - rest->p) : rest->n };

	*rest = span_from(*rest, head.n);
	return trim(head);
}

static bool is_boundary(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++) {
		bool is_alnum = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
				(s[i] >= '0' && s[i] <= '9');

		if (!is_alnum && !strchr("'()+_,-./:=? ", s[i])) {
			return false;
		}
	}
	return n > 0 && n <= BOUNDARY_MAX && s[n - 1] != ' ';
}

/* The boundary that a Content-Type names. Caller frees; NULL: there is none. */
static char *boundary_of(struct span content_type)
{
	struct span rest = content_type;
	autofree char *boundary = NULL;

	/* A NUL would end strings early. */
	if (content_type.n == 0 || memchr(content_type.p, '\0', content_type.n)) {
		return NULL;
	}
	if (!span_is(head_take(&rest), "multipart/form-data")) {
		return NULL;
	}
	for (;;) {
		AUTO(param) struct param p = { .value = NULL };
		int r = param_next(&rest, &p);

		if (r < 0) {
			return NULL;
		}
		if (r == 0) {
			return boundary && is_boundary(boundary) ? TAKE_PTR(boundary) : NULL;
		}
		if (span_is(p.name, "boundary")) {
			if (boundary) {
				return NULL;
			}
			boundary = TAKE_PTR(p.value);
		}
	}
}

struct multipart *multipart_new(
		struct span content_type, multipart_read_fn read, void *ctx, int *out_r)
{
	autofree char *boundary = boundary_of(content_type);

	if (!boundary) {
		*out_r = -EINVAL;
		return NULL;
	}
	struct multipart *m = mem_new(struct multipart);
	size_t boundary_n = strlen(boundary);

	m->read = read;
	m->ctx = ctx;
	m->window = mem_array(1, WINDOW_BYTES);
	memcpy(m->delimiter, DELIMITER_START, sizeof(DELIMITER_START) - 1);
	memcpy(m->delimiter + sizeof(DELIMITER_START) - 1, boundary, boundary_n + 1);
	m->delimiter_n = sizeof(DELIMITER_START) - 1 + boundary_n;
	memcpy(m->window, "\r\n", 2);
	m->end = 2;
	*out_r = 0;
	return m;
}

static void part_forget(struct multipart *m)
{
	free(TAKE_PTR(m->name));
	free(TAKE_PTR(m->filename));
	free(TAKE_PTR(m->type));
}

void multipart_free(struct multipart *m)
{
	if (m) {
		part_forget(m);
		free(m->window);
		free(m);
	}
}

static int fail(struct multipart *m, int r)
{
	m->failed = r;
	return r;
}

/* Read once more. 0, or -errno; at the end of the body is_over is set. */
static int window_fill(struct multipart *m)
{
	if (m->begin > 0) {
		memmove(m->window, m->window + m->begin, m->end - m->begin);
		m->clean -= m->begin;
		m->end -= m->begin;
		m->begin = 0;
	}
	assert(m->end < WINDOW_BYTES);
	ssize_t n = m->read(m->ctx, m->window + m->end, WINDOW_BYTES - m->end);

	if (n < 0) {
		return fail(m, (int)n);
	}
	assert((size_t)n <= WINDOW_BYTES - m->end);
	m->end += (size_t)n;
	m->is_over = n == 0;
	return 0;
}

/* What follows a delimiter that ends at window[at]; *out_n is its length. */
static enum tail tail_of(const struct multipart *m, size_t at, size_t *out_n)
{
	const char *p = m->window + at;
	size_t n = m->end - at;
	size_t i = 0;

	if (n >= 2 && p[0] == '-' && p[1] == '-') {
		*out_n = 2;
		return TAIL_CLOSE;
	}
	if (n == 1 && p[0] == '-') {
		return TAIL_MORE;
	}
	/* Transport padding. */
	while (i < n && i < PADDING_MAX && is_blank(p[i])) {
		i++;
	}
	if (i == n || (i + 1 == n && p[i] == '\r')) {
		return TAIL_MORE;
	}
	if (i + 1 < n && p[i] == '\r' && p[i + 1] == '\n') {
		*out_n = i + 2;
		return TAIL_NEXT;
	}
	return TAIL_CONTENT;
}

/* Go behind the delimiter at window[begin]. */
static void delimiter_pass(struct multipart *m, enum tail tail, size_t tail_n)
{
	m->begin += m->delimiter_n + tail_n;
	m->clean = m->begin;
	m->state = tail == TAIL_CLOSE ? MULTIPART_EPILOGUE : MULTIPART_HEAD;
}

/* Extend window[begin..clean) by what has been read. 1 when a delimiter begins at clean and content
 * stands before it or the delimiter has been passed, 0 when more must be read first. */
static int content_search(struct multipart *m)
{
	for (;;) {
		size_t n = m->end - m->clean;
		const char *found = n >= m->delimiter_n
						    ? memmem(m->window + m->clean, n, m->delimiter,
								      m->delimiter_n)
						    : NULL;

		if (!found) {
			if (n >= m->delimiter_n) {
				m->clean = m->end - (m->delimiter_n - 1);
			}
			return 0;
		}
		m->clean = (size_t)(found - m->window);
		size_t tail_n = 0;
		enum tail tail = tail_of(m, m->clean + m->delimiter_n, &tail_n);

		if (tail == TAIL_MORE) {
			return 0;
		}
		if (tail != TAIL_CONTENT) {
			if (m->clean == m->begin) {
				delimiter_pass(m, tail, tail_n);
			}
			return 1;
		}
		m->clean++;
	}
}

/* Content to give: 1 and window[begin..clean) is some, 0 at the end of the part, -errno. */
static int content_find(struct multipart *m)
{
	enum multipart_state state = m->state;

	for (;;) {
		if (m->clean > m->begin) {
			return 1;
		}
		if (content_search(m) > 0 && m->state != state) {
			return 0;
		}
		if (m->clean > m->begin) {
			return 1;
		}
		if (m->is_over) {
			return fail(m, -EBADMSG);
		}
		int r = window_fill(m);

		if (r < 0) {
			return r;
		}
	}
}

static int content_skip(struct multipart *m)
{
	for (;;) {
		int r = content_find(m);

		if (r <= 0) {
			return r;
		}
		m->begin = m->clean;
	}
}

/* One line of a head at window[begin], without its CR LF; *left bytes of the head may follow. */
static int line_find(struct multipart *m, size_t left, struct span *out_line)
{
	size_t searched = 0;

	for (;;) {
		size_t n = m->end - m->begin;
		const char *p = m->window + m->begin;
		const char *lf = memchr(p + searched, '\n', n - searched);
		size_t line_n = lf ? (size_t)(lf - p) : n;

		if (line_n >= left) {
			return fail(m, -EMSGSIZE);
		}
		if (lf) {
			/* Also that a CR stands before the LF, and nowhere else. */
			if (line_n == 0 || memchr(p, '\r', line_n) != lf - 1) {
				return fail(m, -EBADMSG);
			}
			*out_line = (struct span){ .p = p, .n = line_n - 1 };
			return 0;
		}
		if (m->is_over) {
			return fail(m, -EBADMSG);
		}
		searched = n;
		int r = window_fill(m);

		if (r < 0) {
			return r;
		}
	}
}

static int disposition_parse(struct multipart *m, struct span value)
{
	struct span rest = value;

	if (m->name || !span_is(head_take(&rest), "form-data")) {
		return -EBADMSG;
	}
	for (;;) {
		AUTO(param) struct param p = { .value = NULL };
		int r = param_next(&rest, &p);

		if (r <= 0) {
			m->name = r == 0 && !m->name ? mem_strdup("") : m->name;
			return r;
		}
		char **slot = span_is(p.name, "name")       ? &m->name
			      : span_is(p.name, "filename") ? &m->filename
							    : NULL;

		if (slot) {
			if (*slot) {
				return -EBADMSG;
			}
			*slot = TAKE_PTR(p.value);
		}
	}
}

static int field_parse(struct multipart *m, struct span line)
{
	const char *colon = memchr(line.p, ':', line.n);

	/* No colon, or an empty name: also a folded line, which begins with white space. */
	if (!colon) {
		return -EBADMSG;
	}
	struct span name = { .p = line.p, .n = (size_t)(colon - line.p) };
	struct span value = trim(span_from(line, name.n + 1));

	if (!is_token(name)) {
		return -EBADMSG;
	}
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f) {
			return -EBADMSG;
		}
	}
	if (span_is(name, "content-disposition")) {
		return disposition_parse(m, value);
	}
	if (span_is(name, "content-type")) {
		if (m->type) {
			return -EBADMSG;
		}
		m->type = mem_dup(value.p, value.n);
	}
	return 0;
}

/* The empty line at window[begin] ends the head; its CR LF may be a delimiter's. */
static int head_end(struct multipart *m)
{
	m->state = MULTIPART_CONTENT;
	m->clean = m->begin;
	for (;;) {
		size_t n = m->end - m->begin;
		size_t common = n < m->delimiter_n ? n : m->delimiter_n;
		size_t tail_n = 0;
		enum tail tail = TAIL_CONTENT;

		if (memcmp(m->window + m->begin, m->delimiter, common) == 0) {
			tail = common < m->delimiter_n
					       ? TAIL_MORE
					       : tail_of(m, m->begin + m->delimiter_n, &tail_n);
		}
		if (tail == TAIL_CONTENT) {
			m->begin += 2;
			m->clean = m->begin;
			return 0;
		}
		if (tail != TAIL_MORE) {
			/* content_search finds it there. */
			return 0;
		}
		if (m->is_over) {
			return fail(m, -EBADMSG);
		}
		int r = window_fill(m);

		if (r < 0) {
			return r;
		}
	}
}

static int head_read(struct multipart *m)
{
	size_t left = MULTIPART_PART_HEAD_MAX;

	part_forget(m);
	for (;;) {
		struct span line;
		int r = line_find(m, left, &line);

		if (r < 0) {
			return r;
		}
		if (line.n == 0) {
			break;
		}
		r = field_parse(m, line);
		if (r < 0) {
			return fail(m, r);
		}
		left -= line.n + 2;
		m->begin += line.n + 2;
	}
	m->name = m->name ? m->name : mem_strdup("");
	m->type = m->type ? m->type : mem_strdup("");
	return head_end(m);
}

/* What follows the last delimiter is read, so that the request is complete, and not looked at. */
static int epilogue_skip(struct multipart *m)
{
	while (!m->is_over) {
		m->begin = m->end;
		m->clean = m->end;
		int r = window_fill(m);

		if (r < 0) {
			return r;
		}
	}
	m->state = MULTIPART_END;
	return 0;
}

int multipart_next(struct multipart *m, struct multipart_part *out_part)
{
	int r = m->failed;

	if (r == 0 && (m->state == MULTIPART_PREAMBLE || m->state == MULTIPART_CONTENT)) {
		r = content_skip(m);
	}
	if (r == 0 && m->state == MULTIPART_EPILOGUE) {
		r = epilogue_skip(m);
	}
	if (r < 0 || m->state == MULTIPART_END) {
		return r;
	}
	r = head_read(m);
	if (r < 0) {
		return r;
	}
	*out_part = (struct multipart_part){
		.name = m->name, .filename = m->filename, .type = m->type
	};
	return 1;
}

int multipart_peek(struct multipart *m, struct span *out_data)
{
	int r = m->failed;

	if (r == 0 && m->state == MULTIPART_CONTENT) {
		r = content_find(m);
	}
	if (r > 0) {
		*out_data = (struct span){ .p = m->window + m->begin, .n = m->clean - m->begin };
	}
	return r;
}

void multipart_take(struct multipart *m, size_t n)
{
	assert(n <= m->clean - m->begin);
	m->begin += n;
}

ssize_t multipart_read(struct multipart *m, void *p, size_t n)
{
	struct span data;
	int r = multipart_peek(m, &data);

	if (r <= 0) {
		return r;
	}
	data.n = data.n < n ? data.n : n;
	memcpy(p, data.p, data.n);
	multipart_take(m, data.n);
	return (ssize_t)data.n;
}
