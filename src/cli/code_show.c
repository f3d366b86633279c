/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/span.h>
#include <osbx/str.h>

#include "code.h"

#define KITTY_CHUNK 4096 /* of base64, as its protocol wants it */
#define IMAGE_MAX   (24U << 20)

static const struct {
	const char *type, *suffix;
	bool is_text; /* the data are not in base64 */
} image_types[] = {
	{ "image/png", "png", false },
	{ "image/jpeg", "jpg", false },
	{ "image/gif", "gif", false },
	{ "image/webp", "webp", false },
	{ "image/svg+xml", "svg", true },
	{ "application/pdf", "pdf", false },
};

static bool env_is(const char *name, const char *value)
{
	const char *v = getenv(name);

	return v && strcasecmp(v, value) == 0;
}

enum code_images code_images_of(int fd)
{
	const char *kitty = getenv("KITTY_WINDOW_ID");

	/* A multiplexer passes nothing of it on. */
	if (isatty(fd) != 1 || getenv("TMUX") || getenv("STY")) {
		return CODE_IMAGES_NONE;
	}
	if ((kitty && kitty[0]) || env_is("TERM", "xterm-kitty") ||
			env_is("TERM", "xterm-ghostty") || env_is("TERM_PROGRAM", "ghostty")) {
		return CODE_IMAGES_KITTY;
	}
	if (env_is("TERM_PROGRAM", "iTerm.app") || env_is("LC_TERMINAL", "iTerm2") ||
			env_is("TERM_PROGRAM", "WezTerm")) {
		return CODE_IMAGES_ITERM;
	}
	return CODE_IMAGES_NONE;
}

static int put(int fd, struct span text, struct error *e)
{
	int r = fd_write_all(fd, text.p, text.n);

	return r < 0 ? error_sys(e, -r, "write to %s",
				       fd == STDOUT_FILENO ? "standard output" : "standard error")
		     : 0;
}

/* With an end of line. */
static int put_line(int fd, const char *text, struct error *e)
{
	size_t n = strlen(text);

	if (put(fd, (struct span){ .p = text, .n = n }, e) < 0) {
		return -1;
	}
	return n > 0 && text[n - 1] == '\n' ? 0 : put(fd, span_of("\n"), e);
}

static int digit_of(char c)
{
	static const char digits[] =
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* What base64 says, lines ends left out; to_text keeps it in base64. -1: it is none. */
static int base64_read(const char *text, bool to_text, struct buf *out)
{
	uint32_t group = 0;
	unsigned int n = 0;
	unsigned int padding = 0;

	for (const char *at = text; *at; at++) {
		int digit = digit_of(*at);
		char bytes[3];

		if (*at == '\n' || *at == '\r') {
			continue;
		}
		padding += *at == '=';
		if ((digit < 0 && *at != '=') || (digit >= 0 && padding > 0) || padding > 2) {
			return -1;
		}
		if (to_text && buf_append(out, at, 1) < 0) {
			return -1;
		}
		group = group << 6 | (uint32_t)(digit < 0 ? 0 : digit);
		if (++n % 4 != 0 || to_text) {
			continue;
		}
		bytes[0] = (char)(group >> 16);
		bytes[1] = (char)(group >> 8);
		bytes[2] = (char)group;
		if (buf_append(out, bytes, 3 - padding) < 0) {
			return -1;
		}
		group = 0;
	}
	return n % 4 == 0 ? 0 : -1;
}

static int image_kitty(struct span data, struct error *e)
{
	const char *control = "a=T,f=100,";

	while (data.n > 0) {
		AUTO(buf) struct buf b = BUF_INIT(KITTY_CHUNK + 64);
		size_t n = data.n < KITTY_CHUNK ? data.n : KITTY_CHUNK;
		int r = buf_appendf(
				&b, "\033_G%sm=%d;%.*s\033\\", control, data.n > n, (int)n, data.p);

		if (r < 0 || put(STDOUT_FILENO, buf_span(&b), e) < 0) {
			return -1;
		}
		control = "";
		data = span_from(data, n);
	}
	return put(STDOUT_FILENO, span_of("\n"), e);
}

static int image_iterm(struct span data, struct error *e)
{
	if (put(STDOUT_FILENO, span_of("\033]1337;File=inline=1:"), e) < 0 ||
			put(STDOUT_FILENO, data, e) < 0) {
		return -1;
	}
	return put(STDOUT_FILENO, span_of("\a\n"), e);
}

static int image_save(struct code_show *s, const char *data, size_t kind, struct error *e)
{
	AUTO(buf) struct buf bytes = BUF_INIT(IMAGE_MAX);
	autofree char *name =
			mem_printf("%u-%u.%s", s->runs_n, ++s->images_n, image_types[kind].suffix);
	autofree char *said = mem_printf("%s/%s", s->dir, name);
	autoclose int dir_fd = fd_open(s->dir, O_RDONLY | O_DIRECTORY, 0);
	struct span text = span_of(data);

	if (dir_fd < 0) {
		return error_sys(e, -dir_fd, "open %s", s->dir);
	}
	if (!image_types[kind].is_text) {
		if (base64_read(data, false, &bytes) < 0) {
			return put_line(STDERR_FILENO, "osbx: an image that is not base64", e);
		}
		text = buf_span(&bytes);
	}
	int r = file_write_at(dir_fd, name, text, false);

	return r < 0 ? error_sys(e, -r, "write %s", said) : put_line(STDERR_FILENO, said, e);
}

static int image_draw(const struct code_show *s, const char *data, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(IMAGE_MAX);

	/* Bytes of the sandbox stand within an escape: only digits of base64 may. */
	if (base64_read(data, true, &text) < 0) {
		return put_line(STDERR_FILENO, "osbx: an image that is not base64", e);
	}
	return s->images == CODE_IMAGES_KITTY ? image_kitty(buf_span(&text), e)
					      : image_iterm(buf_span(&text), e);
}

/* 1: an image has been shown or saved, 0: there is none, or -1. */
static int result_images(struct code_show *s, const struct json *results, struct error *e)
{
	int shown = 0;

	for (size_t i = 0; i < ARRAY_SIZE(image_types); i++) {
		const char *data = json_string(json_get(results, image_types[i].type));
		bool is_drawn = s->images != CODE_IMAGES_NONE && i == 0;

		if (!data) {
			continue;
		}
		if (s->dir && image_save(s, data, i, e) < 0) {
			return -1;
		}
		if (is_drawn && image_draw(s, data, e) < 0) {
			return -1;
		}
		shown |= s->dir || is_drawn;
	}
	return shown;
}

static int show_result(struct code_show *s, const struct json *results, struct error *e)
{
	const char *text = json_string(json_get(results, "text"));
	int r = result_images(s, results, e);

	if (r != 0 && s->images != CODE_IMAGES_NONE) {
		return r < 0 ? -1 : 0;
	}
	if (text) {
		return r < 0 ? -1 : put_line(STDOUT_FILENO, text, e);
	}
	for (const struct json *member = json_first(results); r == 0 && member;
			member = json_next(member)) {
		char type[80];

		str_printable(json_name(member), type, sizeof(type));
		autofree char *note = mem_printf("(a result of type %s; --out saves images)", type);

		r = put_line(STDERR_FILENO, note, e);
	}
	return r < 0 ? -1 : 0;
}

/* s without escape sequences of colours and the like. Caller frees. */
static char *plain(const char *s)
{
	char *out = mem_strdup(s);
	size_t n = 0;

	for (size_t i = 0; s[i]; i++) {
		if (s[i] == '\033' && s[i + 1] == '[') {
			i += 2 + strspn(s + i + 2, "0123456789;:?");
			if (!s[i]) {
				break;
			}
			continue;
		}
		out[n++] = s[i];
	}
	out[n] = '\0';
	return out;
}

static int show_error(const struct code_show *s, const struct json *error, struct error *e)
{
	const char *name = json_string(json_get(error, "ename"));
	const char *value = json_string(json_get(error, "evalue"));
	const char *last = NULL;

	json_for_each(line, json_get(error, "traceback")) {
		const char *text = json_string(line);

		if (!text || !text[0]) {
			continue;
		}
		autofree char *shown = s->has_colour ? mem_strdup(text) : plain(text);

		last = text;
		if (put_line(STDERR_FILENO, shown, e) < 0) {
			return -1;
		}
	}
	/* Some end with it; a run that was ended from outside has another name than its lines. */
	if (last && name && strstr(last, name)) {
		return 0;
	}
	autofree char *text = mem_printf("%s%s%s", name ? name : "", name && name[0] ? ": " : "",
			value ? value : "");

	return put_line(STDERR_FILENO, text, e);
}

int code_show_event(struct code_show *s, const struct json *event, struct error *e)
{
	const char *type = json_string(json_get(event, "type"));
	const char *text = json_string(json_get(event, "text"));
	const char *message = json_string(json_get(event, "message"));

	if (!type) {
		char shown[ERROR_TEXT_MAX];

		str_printable(message ? message : "an event without a type", shown, sizeof(shown));
		return error_set(e, ERRC_CONFLICT, "%s", shown);
	}
	if (str_eq(type, "stdout") || str_eq(type, "stderr")) {
		return put(str_eq(type, "stdout") ? STDOUT_FILENO : STDERR_FILENO,
				span_of(text ? text : ""), e);
	}
	if (str_eq(type, "result")) {
		return show_result(s, json_get(event, "results"), e);
	}
	if (str_eq(type, "error")) {
		s->has_error = true;
		return show_error(s, json_get(event, "error"), e);
	}
	return 0;
}
