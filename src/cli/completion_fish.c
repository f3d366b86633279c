/* SPDX-License-Identifier: Apache-2.0 */
#include "completion.h"

static const char head[] = "# fish completion for osbx, printed by \"osbx completion fish\"\n"
			   "\n"
			   "function __osbx_names\n"
			   "\tosbx completion --list images 2>/dev/null\n"
			   "end\n"
			   "\n"
			   "function __osbx_sandboxes\n"
			   "\tosbx completion --list sandboxes 2>/dev/null\n"
			   "end\n"
			   "\n"
			   "complete -c osbx -f\n";

static const char seen[] = "complete -c osbx -n '__fish_seen_subcommand_from ";

static int name_add(const struct args_command *cmd, struct buf *out)
{
	int r = buf_appendf(out, "complete -c osbx -n __fish_use_subcommand -a %s -d '", cmd->name);

	r = r < 0 ? r : completion_quote(cmd->summary, "\\", out);
	return r < 0 ? r : buf_append_str(out, "'\n");
}

/* -x: a value and no files; -r -F: a value that may be a file. */
static int value_add(const struct args_option *o, struct buf *out)
{
	AUTO(buf) struct buf words = BUF_INIT(1024);
	int r = o->value ? completion_words(o->value, &words) : 0;

	if (r < 0 || !o->value) {
		return r;
	}
	r = buf_append_str(out, completion_is_path(o->value) ? " -r -F" : " -x");
	return r < 0 || words.n == 0 ? r : buf_appendf(out, " -a '%s'", words.p);
}

static int option_add(const struct args_command *cmd, const struct args_option *o, struct buf *out)
{
	int r = buf_appendf(out, "%s%s' -l %s", seen, cmd->name, o->name);

	if (r == 0 && o->letter) {
		r = buf_appendf(out, " -s %c", o->letter);
	}
	r = r < 0 ? r : value_add(o, out);
	r = r < 0 ? r : buf_append_str(out, " -d '");
	r = r < 0 ? r : completion_quote(o->help, "\\", out);
	return r < 0 ? r : buf_append_str(out, "'\n");
}

static int operand_add(const struct args_command *cmd, struct buf *out)
{
	AUTO(buf) struct buf words = BUF_INIT(1024);

	switch (completion_operand(cmd)) {
	case COMPLETION_OPERAND_IMAGE:
		return buf_appendf(out,
				"%s%s' -F -a '%s" COMPLETION_TRANSPORTS " (__osbx_names)'\n", seen,
				cmd->name, cmd->stop_at_operand ? "@host " : "");
	case COMPLETION_OPERAND_TRANSPORT:
		return buf_appendf(
				out, "%s%s' -F -a '" COMPLETION_TRANSPORTS "'\n", seen, cmd->name);
	case COMPLETION_OPERAND_WORDS:
		return completion_words(completion_operands(cmd), &words) < 0
				       ? -1
				       : buf_appendf(out, "%s%s' -a '%s'\n", seen, cmd->name,
							 words.p);
	case COMPLETION_OPERAND_SANDBOX:
		return buf_appendf(out, "%s%s'%s -a '(__osbx_sandboxes)'\n", seen, cmd->name,
				cmd->stop_at_operand ? " -F" : "");
	case COMPLETION_OPERAND_COPY:
		return buf_appendf(out,
				"%s%s' -F -a '(__osbx_sandboxes | string replace -r \"\\$\" :)'\n",
				seen, cmd->name);
	case COMPLETION_OPERAND_NONE:
	case COMPLETION_OPERAND_COUNT:
		break;
	}
	return 0;
}

static int command_add(const struct args_command *cmd, struct buf *out)
{
	int r = buf_appendf(out, "%s%s' -l help -d 'print help'\n", seen, cmd->name);

	for (const struct args_option *o = cmd->options; o->name && r == 0; o++) {
		r = option_add(cmd, o, out);
	}
	return r < 0 ? r : operand_add(cmd, out);
}

int completion_fish(struct buf *out)
{
	int r = buf_append_str(out, head);

	r = r < 0 ? r : completion_each(name_add, out);
	return r < 0 ? r : completion_each(command_add, out);
}
