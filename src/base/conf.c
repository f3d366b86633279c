/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include <osbx/cleanup.h>
#include <osbx/conf.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/program.h>
#include <osbx/str.h>

/* libinih cuts longer lines and section names without a word (INI_MAX_LINE, MAX_SECTION). */
#define LINE_MAX_BYTES    199
#define SECTION_MAX_BYTES 49

typedef int (*ini_handler_fn)(void *user, const char *section, const char *name, const char *value);
typedef int (*ini_parse_string_fn)(const char *text, ini_handler_fn handler, void *user);

struct conf_reader {
	const struct conf_key *keys;
	void *out;
	struct error *e;
};

/* The library stays loaded: its handle is the process's. */
static ini_parse_string_fn ini_load(struct error *e)
{
	static ini_parse_string_fn parse;

	if (program_full(e) < 0) {
		return NULL;
	}
	if (!parse) {
		void *lib = dlopen("libinih.so.1", RTLD_NOW | RTLD_LOCAL);

		*(void **)&parse = lib ? dlsym(lib, "ini_parse_string") : NULL;
	}
	if (!parse) {
		(void)error_set(e, ERRC_UNSUPPORTED,
				"configuration: libinih.so.1 cannot be loaded");
		(void)error_hint(e, "install libinih1, or remove the file");
	}
	return parse;
}

/* Split 'registry "HOST"' into its word and argument. 0, or -EINVAL. */
static int section_split(char *section, char **out_arg)
{
	char *quote = strchr(section, '"');

	*out_arg = NULL;
	if (!quote) {
		return 0;
	}
	size_t n = strlen(quote);

	if (quote == section || quote[-1] != ' ' || n < 3 || quote[n - 1] != '"') {
		return -EINVAL;
	}
	quote[n - 1] = '\0';
	quote[-1] = '\0';
	*out_arg = quote + 1;
	return 0;
}

static int entry_set(struct conf_reader *r, const char *word, const char *arg, const char *name,
		const char *value)
{
	bool section_known = false;

	for (const struct conf_key *k = r->keys; k->section; k++) {
		if (!str_eq(k->section, word)) {
			continue;
		}
		section_known = true;
		if (str_eq(k->key, name)) {
			return k->set(r->out, arg, value, r->e);
		}
	}
	return section_known ? error_set(r->e, ERRC_INVALID, "%s: unknown key in [%s]", name, word)
			     : error_set(r->e, ERRC_INVALID, "[%s]: unknown section", word);
}

/* libinih's convention: nonzero is success. */
static int on_entry(void *user, const char *section, const char *name, const char *value)
{
	struct conf_reader *r = user;
	autofree char *word = mem_strdup(section);
	char *arg = NULL;

	if (r->e->code != ERRC_OK) {
		return 1;
	}
	if (section_split(word, &arg) < 0) {
		(void)error_set(r->e, ERRC_INVALID, "[%s]: expected [word] or [word \"name\"]",
				section);
		return 0;
	}
	return entry_set(r, word, arg, name, value) == 0;
}

static int lines_check(struct span text, const char *path, struct error *e)
{
	struct span line;
	unsigned int number = 0;

	while (span_next(&text, '\n', &line)) {
		number++;
		if (line.n > LINE_MAX_BYTES || (line.n > 0 && line.p[0] == '[' &&
							       line.n > SECTION_MAX_BYTES + 2)) {
			return error_set(e, ERRC_INVALID, "%s:%u: line is too long", path, number);
		}
	}
	return 0;
}

/* Comments alone need no library. */
static bool has_entries(struct span text)
{
	struct span line;

	while (span_next(&text, '\n', &line)) {
		size_t i = 0;

		while (i < line.n && (line.p[i] == ' ' || line.p[i] == '\t' || line.p[i] == '\r')) {
			i++;
		}
		if (i < line.n && line.p[i] != '#' && line.p[i] != ';') {
			return true;
		}
	}
	return false;
}

int conf_parse(const char *path, const struct conf_key *keys, void *out, struct error *e)
{
	AUTO(buf) struct buf bytes = BUF_INIT(LIMIT_CONF_BYTES);
	autoclose int fd = fd_open(path, O_RDONLY, 0);

	assert(e->code == ERRC_OK);
	if (fd == -ENOENT || fd == -ENOTDIR) {
		return 0;
	}
	int r = fd < 0 ? fd : fd_read_all(fd, &bytes);

	if (r < 0) {
		return error_sys(e, -r, "%s", path);
	}
	autofree char *text = span_dup(buf_span(&bytes));

	if (!text) {
		return error_set(e, ERRC_INVALID, "%s: holds a NUL byte", path);
	}
	if (lines_check(span_of(text), path, e) < 0) {
		return -1;
	}
	if (!has_entries(span_of(text))) {
		return 0;
	}
	ini_parse_string_fn parse = ini_load(e);

	if (!parse) {
		return error_wrap(e, "%s", path);
	}
	struct conf_reader reader = { .keys = keys, .out = out, .e = e };
	int line = parse(text, on_entry, &reader);

	if (e->code != ERRC_OK) {
		return error_wrap(e, "%s:%d", path, line);
	}
	if (line != 0) {
		(void)error_set(e, ERRC_INVALID, "%s:%d: not a key=value line", path, line);
		return error_hint(e, "osbx.conf(5) describes the file");
	}
	return 0;
}
