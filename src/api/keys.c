/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>

#include "api_internal.h"

#define FILE_BYTES_MAX (64U << 10)
#define KEYS_MAX       256

static struct span trim(struct span s)
{
	while (s.n > 0 && isspace((unsigned char)s.p[0])) {
		s = span_from(s, 1);
	}
	while (s.n > 0 && isspace((unsigned char)s.p[s.n - 1])) {
		s.n--;
	}
	return s;
}

/* A secret that a field of a request can hold. */
static bool is_fit(struct span secret)
{
	for (size_t i = 0; i < secret.n; i++) {
		if (!isgraph((unsigned char)secret.p[i])) {
			return false;
		}
	}
	return secret.n > 0;
}

static int key_add(struct api_opts *o, struct span line, const char *path, struct error *e)
{
	const char *colon = memchr(line.p, ':', line.n);
	size_t name_n = colon ? (size_t)(colon - line.p) : 0;
	struct span secret = colon ? span_from(line, name_n + 1) : line;

	if (!is_fit(secret)) {
		return error_set(e, ERRC_INVALID, "%s: line of another form than [NAME:]SECRET",
				path);
	}
	autofree char *name =
			name_n > 0 ? span_dup((struct span){ .p = line.p, .n = name_n }) : NULL;

	/* It becomes the value of a label. */
	if (name && !metadata_value_is_valid(name)) {
		return error_set(e, ERRC_INVALID,
				"%s: name of a key \"%.80s\": expected letters, digits and inner "
				"- _ ., at most 63 bytes",
				path, name);
	}
	if (o->keys_n >= KEYS_MAX) {
		return error_set(e, ERRC_LIMIT, "%s: more than %d keys", path, KEYS_MAX);
	}
	o->keys = mem_resize(o->keys, o->keys_n, o->keys_n + 1, sizeof(*o->keys));
	o->keys[o->keys_n++] = (struct api_key){
		.name = name ? TAKE_PTR(name) : mem_printf("key-%zu", o->keys_n),
		.secret = span_dup(secret),
	};
	return 0;
}

static int file_check(int fd, const char *path, struct error *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		return error_sys(e, errno, "%s", path);
	}
	if (!S_ISREG(st.st_mode)) {
		return error_set(e, ERRC_INVALID, "%s: not a file", path);
	}
	if ((st.st_mode & 077) != 0) {
		(void)error_set(e, ERRC_DENIED, "%s: others can read the keys", path);
		return error_hint(e, "chmod 600 %s", path);
	}
	return 0;
}

int api_opts_add_key(struct api_opts *o, const char *name, const char *secret, struct error *e)
{
	if (!is_fit(span_of(secret))) {
		(void)error_set(e, ERRC_INVALID,
				"key \"%s\": white space or another character that no field of a "
				"request can hold",
				name);
		return error_hint(e, "has it a line end that belongs to its file?");
	}
	if (o->keys_n >= KEYS_MAX) {
		return error_set(e, ERRC_LIMIT, "more than %d keys", KEYS_MAX);
	}
	o->keys = mem_resize(o->keys, o->keys_n, o->keys_n + 1, sizeof(*o->keys));
	o->keys[o->keys_n++] = (struct api_key){
		.name = mem_strdup(name),
		.secret = mem_strdup(secret),
	};
	return 0;
}

int api_opts_add_key_file(struct api_opts *o, const char *path, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(FILE_BYTES_MAX);
	autoclose int fd = fd_open(path, O_RDONLY | O_NONBLOCK, 0);
	size_t before = o->keys_n;

	if (fd < 0) {
		return error_sys(e, -fd, "%s", path);
	}
	if (file_check(fd, path, e) < 0) {
		return -1;
	}
	int r = fd_read_all(fd, &text);

	if (r == -EMSGSIZE) {
		return error_set(e, ERRC_LIMIT, "%s: more than %u bytes", path, FILE_BYTES_MAX);
	}
	if (r < 0) {
		return error_sys(e, -r, "%s", path);
	}
	struct span rest = buf_span(&text);
	struct span line;

	while (span_next(&rest, '\n', &line)) {
		line = trim(line);
		if (line.n > 0 && line.p[0] != '#' && key_add(o, line, path, e) < 0) {
			return -1;
		}
	}
	explicit_bzero(text.p, text.n);
	return o->keys_n > before ? 0 : error_set(e, ERRC_INVALID, "%s: no key in it", path);
}
