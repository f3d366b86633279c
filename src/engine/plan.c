/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/plan.h>
#include <osbx/str.h>

#define UMASK_DEFAULT 022

/* An entrypoint of one empty string is how some builders write "none". */
static bool is_no_entrypoint(const struct strv *entrypoint)
{
	return entrypoint->n == 0 || (entrypoint->n == 1 && entrypoint->v[0][0] == '\0');
}

/* docker's rules: a command replaces the image's Cmd; a given entrypoint replaces the image's and
 * makes its Cmd, which was written for the other one, void. */
static int argv_build(const struct plan_input *in, struct strv *argv)
{
	const struct sandbox_request *req = in->req;
	const struct image_config *config = &in->img->config;
	int r = 0;

	if (req->entrypoint) {
		r = req->entrypoint[0] ? strv_add(argv, req->entrypoint) : 0;
	} else if (!is_no_entrypoint(&config->entrypoint)) {
		r = strv_add_all(argv, strv_get(&config->entrypoint));
	}
	if (r < 0) {
		return r;
	}
	if (req->command.n > 0) {
		return strv_add_all(argv, strv_get(&req->command));
	}
	if (!req->entrypoint) {
		r = strv_add_all(argv, strv_get(&config->cmd));
	}
	if (r == 0 && argv->n == 0 && in->img->is_host) {
		r = strv_add(argv, "sh");
	}
	return r;
}

static int argv_check(const struct plan_input *in, const struct strv *argv, struct error *e)
{
	if (argv->n == 0) {
		(void)error_set(e, ERRC_INVALID, "%s: the image names no command", in->req->image);
		return error_hint(e, "osbx run %s COMMAND", in->req->image);
	}
	if (argv->v[0][0] == '\0') {
		return error_set(e, ERRC_INVALID, "%s: the command is an empty string",
				in->req->image);
	}
	if (strv_bytes(argv) > LIMIT_ARGS_BYTES) {
		return error_set(e, ERRC_LIMIT, "command of more than %u bytes", LIMIT_ARGS_BYTES);
	}
	return 0;
}

/* Set "name=value" unless env has the name already. */
static int env_default(struct strv *env, const char *name, const char *value)
{
	return strv_env_find(env, name) ? 0 : strv_addf(env, "%s=%s", name, value);
}

/* A value that goes to a terminal's programs by name only. */
static bool is_plain_term(const char *term)
{
	return strlen(term) <= LIMIT_NAME_BYTES &&
	       str_is_made_of(term, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789+.-_");
}

static int env_build(const struct plan_input *in, struct strv *env)
{
	char hostname[LIMIT_NAME_BYTES + 1];
	int r = 0;

	/* Each is looked for among all others: no work that an image may multiply. */
	if (in->img->config.env.n > LIMIT_ENV) {
		return -E2BIG;
	}
	strv_for_each(&in->img->config.env, i) {
		r = strv_env_set(env, in->img->config.env.v[i]);
		/* What is not NAME=VALUE no program could read either. */
		if (r < 0 && r != -EINVAL) {
			return r;
		}
	}
	strv_for_each(&in->req->env, i) {
		r = strv_env_set(env, in->req->env.v[i]);
		if (r < 0) {
			return r;
		}
	}
	plan_hostname(in->req, in->id, hostname);
	r = env_default(env, "HOSTNAME", hostname);
	if (r == 0 && in->req->sets_id) {
		autofree char *entry = mem_printf("OPENSANDBOX_ID=%s", in->id->text);

		r = strv_env_set(env, entry);
	}
	if (r == 0 && in->req->network == SPEC_NETWORK_PRIVATE) {
		r = strv_env_set(env, "OSBX_NETWORK=private");
	}
	/* An image may not know the caller's terminal; the host's own programs do. */
	if (r == 0 && in->req->tty && in->img->is_host && in->term && is_plain_term(in->term)) {
		r = env_default(env, "TERM", in->term);
	}
	return r == 0 && env->n > LIMIT_ENV ? -E2BIG : r;
}

static char *cwd_choose(const struct plan_input *in)
{
	const char *dir = in->req->workdir ? in->req->workdir : in->img->config.working_dir;

	if (!dir || dir[0] == '\0') {
		return mem_strdup("/");
	}
	return dir[0] == '/' ? mem_strdup(dir) : mem_printf("/%s", dir);
}

int plan_process(const struct plan_input *in, struct execd_process *out_process, struct error *e)
{
	const char *image_user = in->img->config.user;
	AUTO(execd_process) struct execd_process p = { .caps = in->req->caps };
	int r = argv_build(in, &p.argv);

	if (r == 0) {
		r = env_build(in, &p.env);
	}
	if (r == 0) {
		r = strv_add_all(&p.groups, strv_get(&in->req->groups));
	}
	if (r < 0) {
		return error_set(e, ERRC_LIMIT, "more than %d arguments or %d variables",
				LIMIT_ARGS, LIMIT_ENV);
	}
	if (argv_check(in, &p.argv, e) < 0) {
		return -1;
	}
	if (strv_bytes(&p.env) > LIMIT_ARGS_BYTES) {
		return error_set(e, ERRC_LIMIT, "environment of more than %u bytes",
				LIMIT_ARGS_BYTES);
	}
	p.cwd = cwd_choose(in);
	p.cwd_create = plan_is_in_tmpfs(in, p.cwd) ? EXECD_CWD_MAKE_IN_TMPFS : EXECD_CWD_MAKE;
	p.user = mem_strdup(in->req->user ? in->req->user : image_user ? image_user : "");
	p.umask_bits = UMASK_DEFAULT;
	p.set_home = 1;
	*out_process = TAKE(p, (struct execd_process){ .caps = 0 });
	return 0;
}

/* Those of the kernel, and the range that glibc leaves to programs, which is what images mean; the
 * C library that osbx is linked with may keep more for itself. */
#define RT_MIN 34
#define RT_MAX 64

static const char signal_names[][8] = {
	[SIGHUP] = "HUP",
	[SIGINT] = "INT",
	[SIGQUIT] = "QUIT",
	[SIGILL] = "ILL",
	[SIGTRAP] = "TRAP",
	[SIGABRT] = "ABRT",
	[SIGBUS] = "BUS",
	[SIGFPE] = "FPE",
	[SIGKILL] = "KILL",
	[SIGUSR1] = "USR1",
	[SIGSEGV] = "SEGV",
	[SIGUSR2] = "USR2",
	[SIGPIPE] = "PIPE",
	[SIGALRM] = "ALRM",
	[SIGTERM] = "TERM",
	[SIGSTKFLT] = "STKFLT",
	[SIGCHLD] = "CHLD",
	[SIGCONT] = "CONT",
	[SIGSTOP] = "STOP",
	[SIGTSTP] = "TSTP",
	[SIGTTIN] = "TTIN",
	[SIGTTOU] = "TTOU",
	[SIGURG] = "URG",
	[SIGXCPU] = "XCPU",
	[SIGXFSZ] = "XFSZ",
	[SIGVTALRM] = "VTALRM",
	[SIGPROF] = "PROF",
	[SIGWINCH] = "WINCH",
	[SIGPOLL] = "POLL",
	[SIGPWR] = "PWR",
	[SIGSYS] = "SYS",
};

static int rt_signal(const char *name)
{
	const char *from_min = str_after(name, "RTMIN");
	const char *from_max = str_after(name, "RTMAX");
	const char *text = from_min ? from_min : from_max;
	uint64_t offset = 0;

	if (!text) {
		return -EINVAL;
	}
	if (text[0] != '\0' && (text[0] != (from_min ? '+' : '-') ||
					       str_to_u64(text + 1, NSIG, &offset) < 0)) {
		return -EINVAL;
	}
	int signo = from_min ? RT_MIN + (int)offset : RT_MAX - (int)offset;

	return signo >= RT_MIN && signo <= RT_MAX ? signo : -EINVAL;
}

int plan_stop_signal(const char *text)
{
	uint64_t number = 0;

	if (!text || text[0] == '\0') {
		return SIGTERM;
	}
	if (str_to_u64(text, NSIG - 1, &number) == 0) {
		return number > 0 ? (int)number : SIGTERM;
	}
	const char *name = str_after(text, "SIG") ? str_after(text, "SIG") : text;

	for (int signo = 1; signo < (int)ARRAY_SIZE(signal_names); signo++) {
		if (str_eq(signal_names[signo], name)) {
			return signo;
		}
	}
	int signo = rt_signal(name);

	return signo > 0 ? signo : SIGTERM;
}

void plan_hostname(const struct sandbox_request *req, const struct id *id, char *out)
{
	if (req->hostname) {
		(void)snprintf(out, LIMIT_NAME_BYTES + 1, "%s", req->hostname);
	} else {
		id_short(id, out);
	}
}
