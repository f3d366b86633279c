/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <osbx/args.h>
#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/guess.h>
#include <osbx/str.h>
#include <osbx/strv.h>

#define HELP_BYTES_MAX 65536
/* Wider options get their help on the next line. */
#define HELP_LABEL_MAX 32

struct args_state {
	const struct args_command *cmd;
	char **argv;
	int argc;
	int at; /* next of argv */
	void *out;
	bool want_help;
	struct error *e;
};

static const struct args_option help_option = {
	.name = "help",
	.letter = 'h',
	.kind = ARGS_IGNORED,
	.help = "print this help",
};

static bool takes_value(const struct args_option *o)
{
	switch (o->kind) {
	case ARGS_STRING:
	case ARGS_LIST:
	case ARGS_U64:
	case ARGS_SIZE:
		return true;
	case ARGS_CALLBACK:
		return o->value != NULL;
	case ARGS_FLAG:
	case ARGS_IGNORED:
	case ARGS_KIND_COUNT:
		break;
	}
	return false;
}

static const struct args_option *find_long(
		const struct args_command *cmd, const char *name, size_t n)
{
	for (const struct args_option *o = cmd->options; o && o->name; o++) {
		if (strlen(o->name) == n && memcmp(o->name, name, n) == 0) {
			return o;
		}
	}
	return n == 4 && memcmp(name, "help", n) == 0 ? &help_option : NULL;
}

/* A command may have its own -h (run: --hostname). */
static const struct args_option *find_letter(const struct args_command *cmd, char letter)
{
	for (const struct args_option *o = cmd->options; o && o->name; o++) {
		if (o->letter == letter) {
			return o;
		}
	}
	return letter == help_option.letter ? &help_option : NULL;
}

static int number_fail(const struct args_option *o, int r, const char *what, struct error *e)
{
	if (r == -ERANGE) {
		return error_set(e, ERRC_INVALID, "option --%s: number too large", o->name);
	}
	return error_set(e, ERRC_INVALID, "option --%s: expected %s", o->name, what);
}

static int option_store(struct args_state *s, const struct args_option *o, const char *value)
{
	void *member = NULL;
	int r = 0;

	if (o->kind == ARGS_IGNORED) {
		s->want_help |= o == &help_option;
		return 0;
	}
	assert(s->out);
	member = (char *)s->out + o->offset;
	switch (o->kind) {
	case ARGS_FLAG:
		*(bool *)member = true;
		return 0;
	case ARGS_STRING:
		*(const char **)member = value;
		return 0;
	case ARGS_LIST:
		if (strv_add(member, value) < 0) {
			return error_set(s->e, ERRC_INVALID, "option --%s: given too often",
					o->name);
		}
		return 0;
	case ARGS_U64:
		r = str_to_u64(value, UINT64_MAX, member);
		return r < 0 ? number_fail(o, r, "a number", s->e) : 0;
	case ARGS_SIZE:
		r = str_to_size(value, member);
		return r < 0 ? number_fail(o, r, "a size such as 512m or 2g", s->e) : 0;
	case ARGS_CALLBACK:
		return o->parse(s->out, value, s->e) < 0 ? error_wrap(s->e, "option --%s", o->name)
							 : 0;
	case ARGS_IGNORED:
	case ARGS_KIND_COUNT:
		break;
	}
	return 0;
}

/* The value that follows an option in the next argument. */
static const char *next_value(struct args_state *s, const struct args_option *o)
{
	if (s->at >= s->argc) {
		error_set(s->e, ERRC_INVALID, "option --%s: missing %s", o->name,
				o->value ? o->value : "value");
		return NULL;
	}
	return s->argv[s->at++];
}

static int unknown_long(struct args_state *s, struct span name)
{
	struct guess g = GUESS_INIT(name);

	for (const struct args_option *o = s->cmd->options; o && o->name; o++) {
		guess_add(&g, o->name);
	}
	guess_add(&g, help_option.name);
	(void)error_set(s->e, ERRC_INVALID, "unknown option --%.*s", (int)name.n, name.p);
	return g.best ? error_hint(s->e, "did you mean --%s?", g.best) : -1;
}

/* "-network" are letters; its writer meant a name. */
static int unknown_letter(struct args_state *s, char letter, const char *arg)
{
	size_t n = strcspn(arg, "=");

	(void)error_set(s->e, ERRC_INVALID, "unknown option -%c", letter);
	return find_long(s->cmd, arg, n) ? error_hint(s->e, "did you mean --%.*s?", (int)n, arg)
					 : -1;
}

static int parse_long(struct args_state *s, const char *arg)
{
	size_t n = strcspn(arg, "=");
	const char *value = arg[n] == '=' ? arg + n + 1 : NULL;
	const struct args_option *o = find_long(s->cmd, arg, n);

	if (!o) {
		return unknown_long(s, (struct span){ .p = arg, .n = n });
	}
	if (!takes_value(o)) {
		if (value) {
			return error_set(
					s->e, ERRC_INVALID, "option --%s: takes no value", o->name);
		}
		return option_store(s, o, NULL);
	}
	if (!value) {
		value = next_value(s, o);
	}
	return value ? option_store(s, o, value) : -1;
}

/* One argument of letters: flags, and at the end perhaps an option with its value. */
static int parse_letters(struct args_state *s, const char *arg)
{
	const char *whole = arg;

	for (; *arg != '\0'; arg++) {
		const struct args_option *o = find_letter(s->cmd, *arg);
		const char *value = NULL;

		if (!o) {
			return unknown_letter(s, *arg, whole);
		}
		if (takes_value(o)) {
			value = arg[1] != '\0' ? arg + 1 : next_value(s, o);
			return value ? option_store(s, o, value) : -1;
		}
		if (option_store(s, o, NULL) < 0) {
			return -1;
		}
	}
	return 0;
}

/*
 * Options are taken out, operands move to the front: they never pass the place that is read next.
 * Returns the number of operands, which begin at argv[1], or -1.
 */
static int parse_all(struct args_state *s)
{
	int kept = 1;

	while (s->at < s->argc && !s->want_help) {
		char *arg = s->argv[s->at];
		int r = 0;

		if (arg[0] != '-' || arg[1] == '\0') {
			if (s->cmd->stop_at_operand) {
				break;
			}
			s->argv[kept++] = arg;
			s->at++;
			continue;
		}
		s->at++;
		if (str_eq(arg, "--")) {
			break;
		}
		r = arg[1] == '-' ? parse_long(s, arg + 2) : parse_letters(s, arg + 1);
		if (r < 0) {
			return -1;
		}
	}
	while (s->at < s->argc) {
		s->argv[kept++] = s->argv[s->at++];
	}
	s->argv[kept] = NULL;
	return kept - 1;
}

static int check_operands(const struct args_command *cmd, int n, struct error *e)
{
	if (n < cmd->operands_min) {
		return error_set(e, ERRC_INVALID, "%s: missing argument, usage: osbx %s %s",
				cmd->name, cmd->name, cmd->synopsis);
	}
	if (cmd->operands_max >= 0 && n > cmd->operands_max) {
		return error_set(e, ERRC_INVALID, "%s: too many arguments, usage: osbx %s %s",
				cmd->name, cmd->name, cmd->synopsis);
	}
	return 0;
}

int args_parse(const struct args_command *cmd, int argc, char **argv, void *out,
		char ***out_operands, struct error *e)
{
	struct args_state s = {
		.cmd = cmd, .argv = argv, .argc = argc, .at = 1, .out = out, .e = e
	};
	int n = parse_all(&s);

	if (n >= 0 && s.want_help) {
		args_help(cmd);
		return 1;
	}
	if (n < 0 || check_operands(cmd, n, e) < 0) {
		return error_hint(e, "see osbx %s --help", cmd->name);
	}
	*out_operands = argv + 1;
	return 0;
}

/* "  -e, --env K=V" */
static void option_label(const struct args_option *o, bool has_letter, char *out, size_t out_size)
{
	char letter[8] = "    ";

	if (has_letter && o->letter) {
		(void)snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	}
	(void)snprintf(out, out_size, "  %s--%s%s%s", letter, o->name, o->value ? " " : "",
			o->value ? o->value : "");
}

static size_t labels_width(const struct args_command *cmd)
{
	char label[128];
	size_t width = 0;

	for (const struct args_option *o = cmd->options; o && o->name; o++) {
		option_label(o, true, label, sizeof(label));
		if (strlen(label) > width && strlen(label) <= HELP_LABEL_MAX) {
			width = strlen(label);
		}
	}
	option_label(&help_option, true, label, sizeof(label));
	return strlen(label) > width ? strlen(label) : width;
}

static int help_option_add(
		struct buf *text, const struct args_option *o, bool has_letter, size_t width)
{
	char label[128];

	option_label(o, has_letter, label, sizeof(label));
	if (strlen(label) > width) {
		return buf_appendf(text, "%s\n%*s  %s\n", label, (int)width, "", o->help);
	}
	return buf_appendf(text, "%-*s  %s\n", (int)width, label, o->help);
}

void args_help(const struct args_command *cmd)
{
	AUTO(buf) struct buf text = BUF_INIT(HELP_BYTES_MAX);
	const size_t width = labels_width(cmd);
	int r = buf_appendf(&text, "Usage: osbx %s %s\n\n%s\n\nOptions:\n", cmd->name,
			cmd->synopsis, cmd->summary);

	for (const struct args_option *o = cmd->options; o && o->name && r == 0; o++) {
		r = help_option_add(&text, o, true, width);
	}
	if (r == 0) {
		r = help_option_add(&text, &help_option,
				find_letter(cmd, help_option.letter) == &help_option, width);
	}
	if (r == 0) {
		/* A reader that went away wants no more help. */
		(void)!fd_write_all(STDOUT_FILENO, text.p, text.n);
	}
}
