/* SPDX-License-Identifier: Apache-2.0 */
#include "completion.h"

static const char head[] =
		"#compdef osbx\n"
		"# zsh completion for osbx, printed by \"osbx completion zsh\"\n"
		"\n"
		"_osbx_transport() {\n"
		"\tif compset -P '(oci|oci-archive|docker-archive|dir):'; then\n"
		"\t\t_files\n"
		"\telse\n"
		"\t\tcompadd \"$@\" -S '' -- " COMPLETION_TRANSPORTS "\n"
		"\tfi\n"
		"}\n"
		"\n"
		"_osbx_image() {\n"
		"\tlocal -a names=(${(f)\"$(osbx completion --list images 2>/dev/null)\"})\n"
		"\t(( $#names )) && compadd \"$@\" -- $names\n"
		"\t_osbx_transport \"$@\"\n"
		"}\n"
		"\n"
		"_osbx_sandbox() {\n"
		"\tlocal -a names=(${(f)\"$(osbx completion --list sandboxes 2>/dev/null)\"})\n"
		"\t(( $#names )) && compadd \"$@\" -- $names\n"
		"}\n"
		"\n"
		"_osbx_copy() {\n"
		"\tlocal -a names=(${(f)\"$(osbx completion --list sandboxes 2>/dev/null)\"})\n"
		"\t(( $#names )) && compadd \"$@\" -S '' -- ${^names}:\n"
		"\t_files\n"
		"}\n"
		"\n"
		"_osbx_start() {\n"
		"\tcompadd \"$@\" -- @host\n"
		"\t_osbx_image \"$@\"\n"
		"}\n"
		"\n"
		"_osbx() {\n"
		"\tlocal curcontext=$curcontext state line\n"
		"\tlocal -A opt_args\n"
		"\t_arguments -C '1:command:->command' '*::argument:->argument'\n"
		"\tif [[ $state == command ]]; then\n"
		"\t\tlocal -a commands=(\n";

static const char middle[] = "\t\t)\n"
			     "\t\t_describe command commands\n"
			     "\t\treturn\n"
			     "\tfi\n"
			     "\tcase $words[1] in\n";

static const char tail[] = "\tesac\n"
			   "}\n"
			   "\n"
			   "if [[ $funcstack[1] == _osbx ]]; then\n"
			   "\t_osbx \"$@\"\n"
			   "else\n"
			   "\tcompdef _osbx osbx\n"
			   "fi\n";

static int name_add(const struct args_command *cmd, struct buf *out)
{
	int r = buf_appendf(out, "\t\t\t'%s:", cmd->name);

	r = r < 0 ? r : completion_quote(cmd->summary, ":", out);
	return r < 0 ? r : buf_append_str(out, "'\n");
}

/* ":K=V:(words)" of an option with a value. */
static int value_add(const struct args_option *o, struct buf *out)
{
	AUTO(buf) struct buf words = BUF_INIT(1024);
	int r = 0;

	if (!o->value) {
		return 0;
	}
	r = buf_append_str(out, ":");
	r = r < 0 ? r : completion_quote(o->value, ":[]", out);
	r = r < 0 ? r : completion_words(o->value, &words);
	if (r < 0) {
		return r;
	}
	if (completion_is_path(o->value) && words.n > 0) {
		return buf_appendf(out, ":{compadd -- %s; _files}", words.p);
	}
	if (completion_is_path(o->value)) {
		return buf_append_str(out, ":_files");
	}
	return words.n > 0 ? buf_appendf(out, ":(%s)", words.p) : buf_append_str(out, ": ");
}

/* '(-e --env)'{-e+,--env=}'[help]:value:action': one name shuts out the other, unless the option
 * may be given again. */
static int option_add(const struct args_option *o, struct buf *out)
{
	const char *glued = o->value ? "+" : "";
	const char *equals = o->value ? "=" : "";
	const bool again = o->kind == ARGS_LIST || o->kind == ARGS_CALLBACK;
	int r = buf_append_str(out, " \\\n\t\t\t");

	if (r == 0 && o->letter) {
		r = again ? buf_append_str(out, "'*'")
			  : buf_appendf(out, "'(-%c --%s)'", o->letter, o->name);
		r = r < 0 ? r
			  : buf_appendf(out, "{-%c%s,--%s%s}'[", o->letter, glued, o->name, equals);
	} else if (r == 0) {
		r = buf_appendf(out, "'%s--%s%s[", again ? "*" : "", o->name, equals);
	}
	r = r < 0 ? r : completion_quote(o->help, "[]:", out);
	r = r < 0 ? r : buf_append_str(out, "]");
	r = r < 0 ? r : value_add(o, out);
	return r < 0 ? r : buf_append_str(out, "'");
}

static int operand_add(const struct args_command *cmd, struct buf *out)
{
	AUTO(buf) struct buf words = BUF_INIT(1024);

	switch (completion_operand(cmd)) {
	case COMPLETION_OPERAND_IMAGE:
		return buf_append_str(out, cmd->stop_at_operand
							   ? " \\\n\t\t\t'1:image:_osbx_start'"
							     " '*:argument:_files'"
							   : " \\\n\t\t\t'*:image:_osbx_image'");
	case COMPLETION_OPERAND_TRANSPORT:
		return buf_append_str(out, " \\\n\t\t\t'1:image:_osbx_transport'");
	case COMPLETION_OPERAND_WORDS:
		return completion_words(completion_operands(cmd), &words) < 0
				       ? -1
				       : buf_appendf(out, " \\\n\t\t\t'1: :(%s)'", words.p);
	case COMPLETION_OPERAND_SANDBOX:
		return buf_append_str(
				out, cmd->stop_at_operand ? " \\\n\t\t\t'1:sandbox:_osbx_sandbox'"
							    " '*:argument:_files'"
							  : " \\\n\t\t\t'*:sandbox:_osbx_sandbox'");
	case COMPLETION_OPERAND_COPY:
		return buf_append_str(out, " \\\n\t\t\t'*:path:_osbx_copy'");
	case COMPLETION_OPERAND_NONE:
	case COMPLETION_OPERAND_COUNT:
		break;
	}
	return 0;
}

static int command_add(const struct args_command *cmd, struct buf *out)
{
	int r = buf_appendf(out, "\t%s)\n\t\t_arguments -s -S%s \\\n\t\t\t'--help[print help]'",
			cmd->name, cmd->stop_at_operand ? " -A '-*'" : "");

	for (const struct args_option *o = cmd->options; o->name && r == 0; o++) {
		r = option_add(o, out);
	}
	r = r < 0 ? r : operand_add(cmd, out);
	return r < 0 ? r : buf_append_str(out, " ;;\n");
}

int completion_zsh(struct buf *out)
{
	int r = buf_append_str(out, head);

	r = r < 0 ? r : completion_each(name_add, out);
	r = r < 0 ? r : buf_append_str(out, middle);
	r = r < 0 ? r : completion_each(command_add, out);
	return r < 0 ? r : buf_append_str(out, tail);
}
