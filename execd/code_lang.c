/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Languages. A row and a file of drivers/ are all there is to one.
 *
 * A driver is given its channel as descriptor 3, and as descriptor 4 its own text, sealed: nothing
 * of it is in a file of the sandbox.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/buf.h>
#include <osbx/limits.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "code_internal.h"

#define PATH_OTHERWISE "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* An expression: no name of ours is left in __main__. */
#define PYTHON_START                                                              \
	"(lambda t:exec(compile(t[0],'<osbx>','exec'),{'__name__':'osbx_driver'," \
	"'__builtins__':dict(__builtins__.__dict__),'PARTS':t}))"                 \
	"(open(4,encoding='utf-8').read().split('\\f\\n'))"

static const char *const python_aliases[] = { "python3", "py", NULL };
static const char *const python_argv[] = { "python3", "-c", PYTHON_START, NULL };
static const char *const python_otherwise[] = { "python", "-c", PYTHON_START, NULL };

/* What a dynamic import() of the driver finds, the code finds too. */
#define NODE_START(language)                                                    \
	("require('vm').runInThisContext(require('fs').readFileSync(4,'utf8')," \
	 "{filename:'<osbx>',importModuleDynamically:m=>import(m)})"            \
	 "(require,m=>import(m),'" language "')")

static const char *const javascript_aliases[] = { "js", "node", "nodejs", NULL };
static const char *const javascript_argv[] = { "node", "-e", NODE_START("javascript"), NULL };
static const char *const typescript_aliases[] = { "ts", NULL };
static const char *const typescript_argv[] = { "node", "-e", NODE_START("typescript"), NULL };

/* Its text is its standard input, and nothing that it starts inherits a descriptor of ours. */
#define BASH_START                                                    \
	("PS1= PS2= exec \"$BASH\" --norc --noprofile --noediting -i" \
	 " 61>&2 2>/dev/null 62<&4 63<&3 <&4 3<&- 4<&-")

static const char *const bash_aliases[] = { "sh", "shell", NULL };
static const char *const bash_argv[] = { "bash", "--norc", "--noprofile", "-c", BASH_START, NULL };

static const char *const ruby_aliases[] = { "rb", NULL };
static const char *const ruby_argv[] = { "ruby", "-rmonitor", "-e",
	"eval(IO.for_fd(4).read,TOPLEVEL_BINDING.dup,'<osbx>')", NULL };

/* Go has no interpreter: the driver is compiled where it runs. */
#define GO_START                                                                              \
	"d=$(mktemp -d \"${TMPDIR:-/tmp}/osbx-go.XXXXXX\") && cat <&4 >\"$d/driver.go\" && "  \
	"(cd \"$d\" && go build -o driver driver.go 3<&- 4<&-) && exec \"$d/driver\" \"$d\" " \
	"4<&-; rm -rf \"$d\"; exit 1"

static const char *const go_aliases[] = { "golang", NULL };
static const char *const go_argv[] = { "sh", "-c", GO_START, NULL };
/* Of what the image has, and from nowhere else. */
static const char *const go_env[] = { "GOTOOLCHAIN=local", NULL };

/* A small program, soon there: few of its own would be worth more of the compiler. */
static const char *const java_argv[] = { "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
	"--add-opens", "java.base/java.io=ALL-UNNAMED", "--source", "11", "/proc/self/fd/4", NULL };

static const char *const r_aliases[] = { "R", NULL };
static const char *const r_argv[] = { "R", "--no-echo", "--no-save", "--no-restore",
	"--no-readline", "-f", "/proc/self/fd/4", NULL };
/* Where the image says nothing else: R writes what its locale has not as numbers. */
static const char *const r_env[] = { "LC_CTYPE=C.UTF-8", NULL };

const struct code_lang code_langs[] = {
	{
			.language = "python",
			.aliases = python_aliases,
			.argv = python_argv,
			.otherwise = python_otherwise,
			.driver = "driver.py",
			.again_ms = 1500,
	},
	{
			.language = "javascript",
			.aliases = javascript_aliases,
			.argv = javascript_argv,
			.driver = "driver.js",
	},
	{
			.language = "typescript",
			.aliases = typescript_aliases,
			.argv = typescript_argv,
			.driver = "driver.js",
	},
	{
			.language = "bash",
			.aliases = bash_aliases,
			.argv = bash_argv,
			.driver = "driver.sh",
			.again_ms = 100,
	},
	{
			.language = "ruby",
			.aliases = ruby_aliases,
			.argv = ruby_argv,
			.driver = "driver.rb",
			.again_ms = 1500,
	},
	{
			.language = "java",
			.argv = java_argv,
			.driver = "driver.java",
			.again_ms = 400,
	},
	{
			.language = "go",
			.aliases = go_aliases,
			.argv = go_argv,
			.env = go_env,
			.program = "go",
			.driver = "driver.go",
	},
	{
			.language = "r",
			.aliases = r_aliases,
			.argv = r_argv,
			.env = r_env,
			.driver = "driver.R",
	},
};
const size_t code_langs_n = ARRAY_SIZE(code_langs);

static bool has_alias(const struct code_lang *lang, const char *name)
{
	for (size_t i = 0; lang->aliases && lang->aliases[i]; i++) {
		if (str_eq(lang->aliases[i], name)) {
			return true;
		}
	}
	return false;
}

const struct code_lang *code_lang_find(const char *name)
{
	for (size_t i = 0; i < code_langs_n; i++) {
		if (str_eq(code_langs[i].language, name) || has_alias(&code_langs[i], name)) {
			return &code_langs[i];
		}
	}
	return NULL;
}

static bool is_program(const struct execd *x, struct span dir, const char *name)
{
	AUTO(buf) struct buf path = BUF_INIT(LIMIT_PATH_BYTES);
	struct stat st;

	if (dir.n == 0 || buf_append(&path, dir.p, dir.n) < 0 ||
			buf_appendf(&path, "/%s", name) < 0 || memchr(path.p, '\0', path.n)) {
		return false;
	}
	autoclose int fd = path_open_beneath(x->root_fd, path.p, O_PATH, 0);

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

static bool is_in_path(const struct execd *x, const char *name)
{
	const struct execd_process *main = api_main(x);
	const char *list = main ? strv_env_find(&main->env, "PATH") : NULL;
	struct span rest = span_of(list ? list : PATH_OTHERWISE);
	struct span dir;

	while (span_next(&rest, ':', &dir)) {
		if (is_program(x, dir, name)) {
			return true;
		}
	}
	return false;
}

bool code_lang_is_there(const struct execd *x, const struct code_lang *lang)
{
	if (lang->program && !is_in_path(x, lang->program)) {
		return false;
	}
	return is_in_path(x, lang->argv[0]) ||
	       (lang->otherwise && is_in_path(x, lang->otherwise[0]));
}

void code_langs_list(const struct execd *x, struct buf *out)
{
	for (size_t i = 0; i < code_langs_n; i++) {
		if (code_lang_is_there(x, &code_langs[i])) {
			(void)!buf_appendf(out, "%s%s", out->n > 0 ? ", " : "",
					code_langs[i].language);
		}
	}
}
