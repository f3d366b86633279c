/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * args - command line options from tables: the same table parses, prints --help and is checked
 * against the man page (tests/lint/man_options.py).
 *
 * Long options by unique full name only; "--name value", "--name=value", "-n value", "-nvalue",
 * bundled flags "-it". "--" ends the options.
 */
#ifndef OSBX_ARGS_H
#define OSBX_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include <osbx/compiler.h>
#include <osbx/error.h>

enum args_kind {
	ARGS_FLAG,     /* bool: set true */
	ARGS_STRING,   /* const char *: the last one wins; borrowed from argv */
	ARGS_LIST,     /* struct strv: every occurrence is appended */
	ARGS_U64,      /* uint64_t, decimal */
	ARGS_SIZE,     /* uint64_t, str_to_size */
	ARGS_CALLBACK, /* .parse with the struct and the value */
	ARGS_IGNORED,  /* a flag accepted for compatibility, without effect */
	ARGS_KIND_COUNT,
};

struct args_option {
	const char *name; /* long name without dashes; NULL ends the table */
	char letter;      /* 0: none */
	enum args_kind kind;
	size_t offset;     /* of the member in the struct at out */
	const char *value; /* placeholder in --help, NULL for flags */
	const char *help;  /* one line */
	int (*parse)(void *out, const char *value, struct error *e);
};

struct args_command {
	const char *name;     /* "run" */
	const char *synopsis; /* "[options] IMAGE [--] [COMMAND [ARG...]]" */
	const char *summary;  /* one line, lower case */
	const struct args_option *options;
	bool stop_at_operand; /* options end at the first operand (run, exec) */
	int operands_min;
	int operands_max;                  /* -1: any number */
	int (*run)(int argc, char **argv); /* exit status; argv[0] is the command's name */
	bool hidden;
};

/* Parse argv[1..] of cmd into out. *out_operands points at the operands, a NULL-terminated part of
 * argv (which may be permuted). "--help"/"-h" gives 1 after printing the help to standard output,
 * else 0; -1 with ERRC_INVALID and a hint naming "osbx CMD --help". */
int args_parse(const struct args_command *cmd, int argc, char **argv, void *out,
		char ***out_operands, struct error *e) MUST_CHECK NONNULL(1, 3, 5, 6);
/* Print the help of cmd to standard output. */
void args_help(const struct args_command *cmd) NONNULL(1);

#endif
