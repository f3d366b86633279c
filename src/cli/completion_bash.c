/* SPDX-License-Identifier: Apache-2.0 */
#include "completion.h"

/* Bash splits words at ':' and '=', which names of images and options have: the line is split here
 * anew, and what bash has already is cut off the replies. */
static const char head[] =
		"# bash completion for osbx, printed by \"osbx completion bash\"\n"
		"\n"
		"_osbx() {\n"
		"\tlocal line=${COMP_LINE:0:COMP_POINT} cur word wants= past= operand= stops= valued=\n"
		"\tlocal words= files= options= names= whole broken breaks=${COMP_WORDBREAKS//[^:=]/}\n"
		"\tlocal -a typed\n"
		"\tread -r -a typed <<<\"$line\"\n"
		"\t[[ $line == *[[:space:]] ]] && typed+=('')\n"
		"\tcur=${typed[-1]} whole=${typed[-1]} broken=${typed[-1]}\n"
		"\tif ((${#typed[@]} <= 2)); then\n"
		"\t\twords='";

static const char middle[] =
		"'\n"
		"\telse\n"
		"\t\t_osbx_command \"${typed[1]}\"\n"
		"\t\tfor word in \"${typed[@]:2:${#typed[@]}-3}\"; do\n"
		"\t\t\tif [[ $wants ]]; then\n"
		"\t\t\t\twants=\n"
		"\t\t\telif [[ -z $past && $word == -?* ]]; then\n"
		"\t\t\t\t[[ \" $valued \" == *\" $word \"* ]] && wants=$word\n"
		"\t\t\telse\n"
		"\t\t\t\tpast=$stops\n"
		"\t\t\tfi\n"
		"\t\tdone\n"
		"\t\tif [[ -z $wants$past && $cur == --*=* ]]; then\n"
		"\t\t\twants=${cur%%=*} cur=${cur#*=}\n"
		"\t\tfi\n"
		"\t\tif [[ $wants ]]; then\n"
		"\t\t\t_osbx_value \"${typed[1]} $wants\"\n"
		"\t\telif [[ $past ]]; then\n"
		"\t\t\tfiles=1\n"
		"\t\telif [[ $cur == -* ]]; then\n"
		"\t\t\twords=$options\n"
		"\t\telif [[ -z $operand ]]; then\n"
		"\t\t\twords=$names\n"
		"\t\telif [[ $operand == sandbox ]]; then\n"
		"\t\t\twords=$(osbx completion --list sandboxes 2>/dev/null)\n"
		"\t\telif [[ $operand == copy ]]; then\n"
		"\t\t\tfiles=1\n"
		"\t\t\twords=$(osbx completion --list sandboxes 2>/dev/null | sed 's/$/:/')\n"
		"\t\telse\n"
		"\t\t\tcase $cur in\n"
		"\t\t\toci:* | oci-archive:* | docker-archive:* | dir:*)\n"
		"\t\t\t\tcur=${cur#*:} files=1 ;;\n"
		"\t\t\t*)\n"
		"\t\t\t\twords=\"$names " COMPLETION_TRANSPORTS "\"\n"
		"\t\t\t\t[[ $operand == image ]] && "
		"words+=\" $(osbx completion --list images 2>/dev/null)\" ;;\n"
		"\t\t\tesac\n"
		"\t\tfi\n"
		"\tfi\n"
		"\tmapfile -t COMPREPLY < <(compgen ${files:+-f} -W \"$words\" -- \"$cur\")\n"
		"\t[[ $breaks ]] && broken=${whole##*[\"$breaks\"]}\n"
		"\tif ((${#cur} >= ${#broken})); then\n"
		"\t\tCOMPREPLY=(\"${COMPREPLY[@]#\"${cur%\"$broken\"}\"}\")\n"
		"\telse\n"
		"\t\tCOMPREPLY=(\"${COMPREPLY[@]/#/${broken%\"$cur\"}}\")\n"
		"\tfi\n"
		"\t[[ $files ]] && compopt -o filenames 2>/dev/null\n"
		"\t[[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *: ]] && compopt -o nospace 2>/dev/null\n"
		"\treturn 0\n"
		"}\n"
		"\n"
		"_osbx_command() {\n"
		"\tcase $1 in\n";

static const char between[] = "\tesac\n"
			      "}\n"
			      "\n"
			      "_osbx_value() {\n"
			      "\tcase $1 in\n";

static const char tail[] = "\tesac\n"
			   "}\n"
			   "\n"
			   "complete -F _osbx osbx\n";

static int name_add(const struct args_command *cmd, struct buf *out)
{
	return buf_appendf(out, " %s", cmd->name);
}

/* "--env -e" of all options, or of those that take a value. */
static int options_add(const struct args_command *cmd, bool valued, struct buf *out)
{
	int r = valued ? 0 : buf_append_str(out, "--help");

	for (const struct args_option *o = cmd->options; o->name && r == 0; o++) {
		if (valued && !o->value) {
			continue;
		}
		r = buf_appendf(out, " --%s", o->name);
		if (r == 0 && o->letter) {
			r = buf_appendf(out, " -%c", o->letter);
		}
	}
	return r;
}

static int operand_add(const struct args_command *cmd, struct buf *out)
{
	AUTO(buf) struct buf words = BUF_INIT(1024);

	switch (completion_operand(cmd)) {
	case COMPLETION_OPERAND_IMAGE:
		return buf_append_str(out, " operand=image");
	case COMPLETION_OPERAND_TRANSPORT:
		return buf_append_str(out, " operand=transport");
	case COMPLETION_OPERAND_WORDS:
		return completion_words(completion_operands(cmd), &words) < 0
				       ? -1
				       : buf_appendf(out, " names='%s'", words.p);
	case COMPLETION_OPERAND_SANDBOX:
		return buf_append_str(out, " operand=sandbox");
	case COMPLETION_OPERAND_COPY:
		return buf_append_str(out, " operand=copy");
	case COMPLETION_OPERAND_NONE:
	case COMPLETION_OPERAND_COUNT:
		break;
	}
	return 0;
}

static int command_add(const struct args_command *cmd, struct buf *out)
{
	int r = buf_appendf(out, "\t%s)\n\t\toptions='", cmd->name);

	r = r < 0 ? r : options_add(cmd, false, out);
	r = r < 0 ? r : buf_append_str(out, "'\n\t\tvalued='");
	r = r < 0 ? r : options_add(cmd, true, out);
	r = r < 0 ? r : buf_append_str(out, "'");
	r = r < 0 ? r : operand_add(cmd, out);
	if (r == 0 && cmd->stop_at_operand) {
		r = buf_append_str(out, " stops=1");
	}
	if (r == 0 && cmd->stop_at_operand && completion_operand(cmd) == COMPLETION_OPERAND_IMAGE) {
		r = buf_append_str(out, " names=@host");
	}
	return r < 0 ? r : buf_append_str(out, " ;;\n");
}

static int value_add(const struct args_command *cmd, const struct args_option *o, struct buf *out)
{
	AUTO(buf) struct buf words = BUF_INIT(1024);
	int r = completion_words(o->value, &words);

	if (r < 0 || (words.n == 0 && !completion_is_path(o->value))) {
		return r;
	}
	r = buf_appendf(out, "\t'%s --%s'", cmd->name, o->name);
	if (r == 0 && o->letter) {
		r = buf_appendf(out, " | '%s -%c'", cmd->name, o->letter);
	}
	return r < 0 ? r
		     : buf_appendf(out, ") words='%s'%s ;;\n", words.n > 0 ? words.p : "",
				       completion_is_path(o->value) ? " files=1" : "");
}

static int values_add(const struct args_command *cmd, struct buf *out)
{
	int r = 0;

	for (const struct args_option *o = cmd->options; o->name && r == 0; o++) {
		r = o->value ? value_add(cmd, o, out) : 0;
	}
	return r;
}

int completion_bash(struct buf *out)
{
	int r = buf_append_str(out, head);

	r = r < 0 ? r : completion_each(name_add, out);
	r = r < 0 ? r : buf_append_str(out, middle);
	r = r < 0 ? r : completion_each(command_add, out);
	r = r < 0 ? r : buf_append_str(out, between);
	r = r < 0 ? r : completion_each(values_add, out);
	return r < 0 ? r : buf_append_str(out, tail);
}
