/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include <osbx/ctl.h>
#include <osbx/image.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "cli.h"
#include "completion.h"

#define SCRIPT_BYTES (256U << 10)
#define WORD_BYTES   "abcdefghijklmnopqrstuvwxyz0123456789-"

struct completion_args {
	const char *list;
};

static const struct args_option completion_options[] = {
	{ "list", 0, ARGS_STRING, offsetof(struct completion_args, list), "images|sandboxes",
			"print what the scripts offer: names of images or sandboxes", NULL },
	{ .name = NULL },
};

static const struct {
	const char *name;
	int (*script)(struct buf *out);
} shells[] = {
	{ "bash", completion_bash },
	{ "zsh", completion_zsh },
	{ "fish", completion_fish },
};

int completion_each(int (*fn)(const struct args_command *cmd, struct buf *out), struct buf *out)
{
	int r = 0;

	for (size_t i = 0; i < cli_commands_n && r == 0; i++) {
		r = cli_commands[i]->hidden ? 0 : fn(cli_commands[i], out);
	}
	return r;
}

const char *completion_operands(const struct args_command *cmd)
{
	const char *rest = str_after(cmd->synopsis, "[options]");

	rest = rest ? rest : cmd->synopsis;
	return rest + strspn(rest, " [");
}

enum completion_operand completion_operand(const struct args_command *cmd)
{
	const char *first = completion_operands(cmd);

	if (str_after(first, "IMAGE")) {
		return COMPLETION_OPERAND_IMAGE;
	}
	if (str_after(first, "oci:")) {
		return COMPLETION_OPERAND_TRANSPORT;
	}
	if (str_after(first, "SANDBOX")) {
		return str_after(first, "SANDBOX:") ? COMPLETION_OPERAND_COPY
						    : COMPLETION_OPERAND_SANDBOX;
	}
	return completion_has_words(first) ? COMPLETION_OPERAND_WORDS : COMPLETION_OPERAND_NONE;
}

int completion_words(const char *placeholder, struct buf *out)
{
	struct span rest = span_of(placeholder + strspn(placeholder, " ["));
	struct span word;
	int r = 0;

	/* "[true|false]" and "[options] bash|zsh" end there. */
	rest.n = strcspn(rest.p, " ]");
	while (r == 0 && span_next(&rest, '|', &word)) {
		autofree char *text = span_dup(word);

		if (str_is_made_of(text, WORD_BYTES)) {
			r = buf_appendf(out, "%s%s", out->n > 0 ? " " : "", text);
		}
	}
	return r;
}

bool completion_has_words(const char *placeholder)
{
	AUTO(buf) struct buf words = BUF_INIT(LIMIT_PATH_BYTES);

	return completion_words(placeholder, &words) == 0 && words.n > 0;
}

bool completion_is_path(const char *placeholder)
{
	struct span rest = span_of(placeholder);
	struct span word;

	while (span_next(&rest, '|', &word)) {
		if (span_eq(word, span_of("FILE")) || span_has_prefix(word, span_of("SRC"))) {
			return true;
		}
	}
	return false;
}

int completion_quote(const char *text, const char *specials, struct buf *out)
{
	int r = 0;

	for (; *text != '\0' && r == 0; text++) {
		if (*text == '\'') {
			r = buf_append_str(out, "'\\''");
			continue;
		}
		if (strchr(specials, *text)) {
			r = buf_append_str(out, "\\");
		}
		r = r < 0 ? r : buf_append(out, text, 1);
	}
	return r;
}

static int images_list(const struct image_list *list, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; i < list->n && r == 0; i++) {
		autofree char *shown = list->v[i].name ? ref_familiar(list->v[i].name) : NULL;

		r = shown ? buf_appendf(out, "%s\n", shown) : 0;
	}
	return r;
}

/* Pressing a key makes no store where there is none. */
static bool store_exists(struct error *e)
{
	AUTO(dirs) struct dirs dirs = DIRS_INIT;

	if (dirs_find(&dirs, e) < 0) {
		return false;
	}
	autofree char *index = mem_printf("%s/index.json", dirs.root);

	return access(index, F_OK) == 0;
}

static int images_add(struct buf *out, struct error *e)
{
	AUTO(cli_store) struct cli_store cs = CLI_STORE_INIT;
	AUTO(image_list) struct image_list list = { .n = 0 };

	if (!store_exists(e)) {
		return e->code == ERRC_OK ? 0 : -1;
	}
	if (cli_store_open(&cs, true, e) < 0 || image_list(cs.store, &cs.map, &list, e) < 0) {
		return -1;
	}
	return images_list(&list, out) < 0 ? error_set(e, ERRC_LIMIT, "names of images") : 0;
}

/* Is there a place where sandboxes could be? */
static bool sandboxes_exist(struct error *e)
{
	AUTO(dirs) struct dirs dirs = DIRS_INIT;

	if (dirs_find(&dirs, e) < 0) {
		return false;
	}
	autofree char *live = mem_printf("%s/sandboxes", dirs.runtime);
	autofree char *kept = mem_printf("%s/sandboxes", dirs.root);

	return access(live, F_OK) == 0 || access(kept, F_OK) == 0;
}

/* Their names, or the ids of those that have none. */
static int sandboxes_add(struct buf *out, struct error *e)
{
	AUTO(dirs) struct dirs dirs = DIRS_INIT;
	AUTO(sandbox_list) struct sandbox_list list = { .n = 0 };
	int r = 0;

	if (!sandboxes_exist(e)) {
		return e->code == ERRC_OK ? 0 : -1;
	}
	if (dirs_open(&dirs, e) < 0 || sandbox_list(&dirs, true, &list, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < list.n && r == 0; i++) {
		const struct sandbox_state *s = &list.v[i].state;

		r = buf_appendf(out, "%s\n", s->name && s->name[0] ? s->name : s->id.text);
	}
	return r < 0 ? error_set(e, ERRC_LIMIT, "names of sandboxes") : 0;
}

static const struct {
	const char *name;
	int (*add)(struct buf *out, struct error *e);
} lists[] = {
	{ "images", images_add },
	{ "sandboxes", sandboxes_add },
};

static int list_print(const char *what)
{
	struct error e = ERROR_INIT;
	AUTO(buf) struct buf out = BUF_INIT(16U << 20);

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		if (str_eq(lists[i].name, what)) {
			return lists[i].add(&out, &e) < 0 ? cli_fail(&e) : cli_print(&out);
		}
	}
	(void)error_set(&e, ERRC_INVALID, "completion: no list of %s", what);
	return cli_fail(&e);
}

static int script_print(const char *shell)
{
	struct error e = ERROR_INIT;
	AUTO(buf) struct buf out = BUF_INIT(SCRIPT_BYTES);

	for (size_t i = 0; shell && i < ARRAY_SIZE(shells); i++) {
		if (str_eq(shells[i].name, shell)) {
			return shells[i].script(&out) < 0 ? 125 : cli_print(&out);
		}
	}
	if (shell) {
		(void)error_set(&e, ERRC_INVALID, "completion: unknown shell %s", shell);
	} else {
		(void)error_set(&e, ERRC_INVALID, "completion: missing argument");
	}
	(void)error_hint(&e, "bash, zsh or fish");
	return cli_fail(&e);
}

static int completion_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct completion_args args = { .list = NULL };
	char **operands = NULL;
	int r = args_parse(&cmd_completion, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	return args.list ? list_print(args.list) : script_print(operands[0]);
}

const struct args_command cmd_completion = {
	.name = "completion",
	.synopsis = "[options] bash|zsh|fish",
	.summary = "print the completion script of a shell",
	.options = completion_options,
	.operands_min = 0,
	.operands_max = 1,
	.run = completion_run,
};
