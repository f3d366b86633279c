/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion - scripts for shells, made of the same tables that parse the options: a placeholder
 * such as "none|host" or "FILE|default" also says what may be typed for it.
 */
#ifndef OSBX_CLI_COMPLETION_H
#define OSBX_CLI_COMPLETION_H

#include <stdbool.h>

#include <osbx/args.h>
#include <osbx/buf.h>

/* What the operands of a command are, by its synopsis. */
enum completion_operand {
	COMPLETION_OPERAND_NONE,
	COMPLETION_OPERAND_IMAGE,     /* a name in the store, or a local layout or archive */
	COMPLETION_OPERAND_TRANSPORT, /* only the latter */
	COMPLETION_OPERAND_WORDS,     /* one of those in the synopsis */
	COMPLETION_OPERAND_SANDBOX,   /* a name */
	COMPLETION_OPERAND_COPY,      /* a name and a colon, or a file */
	COMPLETION_OPERAND_COUNT,
};

/* Prefixes behind which a file name follows. */
#define COMPLETION_TRANSPORTS "oci: oci-archive: docker-archive: dir:"

/* Call fn for every command that people see. 0 or its first failure. */
int completion_each(int (*fn)(const struct args_command *cmd, struct buf *out), struct buf *out);
/* The synopsis behind "[options]". */
const char *completion_operands(const struct args_command *cmd);
enum completion_operand completion_operand(const struct args_command *cmd);
/* The words of a placeholder or synopsis ("none|host": "none host"), appended to out; upper case
 * words stand for something else and are left out. 0 or -EMSGSIZE. */
int completion_words(const char *placeholder, struct buf *out);
/* Has it any? */
bool completion_has_words(const char *placeholder);
/* May a file name be typed for it? */
bool completion_is_path(const char *placeholder);
/* Append text with the ' of a quoted shell word taken care of, and a backslash before each of the
 * bytes in specials. */
int completion_quote(const char *text, const char *specials, struct buf *out);

/* Append the script. 0 or -EMSGSIZE. */
int completion_bash(struct buf *out);
int completion_zsh(struct buf *out);
int completion_fish(struct buf *out);

#endif
