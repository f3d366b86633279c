/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <osbx/config.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/registry.h>
#include <osbx/str.h>

#include "cli.h"

#define LOGIN_HUB  "docker.io"
#define TEXT_BYTES 4096

struct login_args {
	bool password_stdin;
	const char *user;
	int tls_verify; /* as in struct pull_opts */
};

static int parse_tls_verify(void *out, const char *value, struct error *e)
{
	return cli_parse_tls_verify(&((struct login_args *)out)->tls_verify, value, e);
}

static int refuse_password(void *out, const char *value, struct error *e)
{
	(void)out;
	(void)value;
	(void)error_set(e, ERRC_INVALID, "every user of the machine can read a command line");
	return error_hint(e, "leave it out and be asked, or use --password-stdin");
}

static const struct args_option login_options[] = {
	{ "password", 'p', ARGS_CALLBACK, 0, "PASSWORD", "refused: use --password-stdin",
			refuse_password },
	{ "password-stdin", 0, ARGS_FLAG, offsetof(struct login_args, password_stdin), NULL,
			"read the password or token from standard input", NULL },
	{ "tls-verify", 0, ARGS_CALLBACK, 0, "true|false",
			"check the registry's certificate (default true)", parse_tls_verify },
	{ "username", 'u', ARGS_STRING, offsetof(struct login_args, user), "USER", "user name",
			NULL },
	{ .name = NULL },
};

/* What people paste: an address, or one of the hub's other names. *out_domain is as in image
 * names; caller frees. */
static int domain_of(const char *text, char **out_domain, struct error *e)
{
	static const char *const schemes[] = { "https://", "http://" };
	struct error ignored = ERROR_INIT;
	AUTO(ref) struct ref ref = REF_INIT;
	autofree char *host = NULL;
	autofree char *name = NULL;
	char shown[128];

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		const char *rest = str_after(text, schemes[i]);

		text = rest ? rest : text;
	}
	host = mem_dup(text, strcspn(text, "/"));
	name = mem_printf("%s/x", host);
	if (str_eq(host, "registry-1.docker.io")) {
		*out_domain = mem_strdup(LOGIN_HUB);
		return 0;
	}
	if (ref_parse(name, &ref, &ignored) < 0 || ref.no_domain) {
		str_printable(text, shown, sizeof(shown));
		(void)error_set(e, ERRC_INVALID, "\"%s\" is not a registry", shown);
		return error_hint(e, "HOST[:PORT], as it stands in names of images");
	}
	*out_domain = mem_strdup(ref.domain);
	return 0;
}

/*
 * The terminal
 */

static volatile sig_atomic_t interrupted;

static void on_signal(int signo)
{
	interrupted = signo;
}

static const struct {
	int signo;
	void (*handler)(int signo);
} prompt_signals[] = {
	{ SIGINT, on_signal }, { SIGTERM, on_signal }, { SIGHUP, on_signal },
	{ SIGQUIT, on_signal }, { SIGTSTP, SIG_IGN }, /* the shell would bring the echo back */
};

struct prompt {
	struct sigaction before[ARRAY_SIZE(prompt_signals)];
	sigset_t mask;
	struct termios saved;
	bool is_hidden;
};

/* Signals break off the wait for input and nothing else, so that the terminal is never left without
 * echo. */
static void prompt_begin(struct prompt *p, bool hide)
{
	struct termios quiet;
	sigset_t taken;

	(void)sigemptyset(&taken);
	for (size_t i = 0; i < ARRAY_SIZE(prompt_signals); i++) {
		const struct sigaction sa = { .sa_handler = prompt_signals[i].handler };

		(void)sigaction(prompt_signals[i].signo, &sa, &p->before[i]);
		(void)sigaddset(&taken, prompt_signals[i].signo);
	}
	(void)sigprocmask(SIG_BLOCK, &taken, &p->mask);
	if (hide && tcgetattr(STDIN_FILENO, &p->saved) == 0) {
		quiet = p->saved;
		quiet.c_lflag &= ~(tcflag_t)ECHO;
		quiet.c_lflag |= ECHONL;
		p->is_hidden = tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) == 0;
	}
}

static void prompt_end(struct prompt *p)
{
	if (p->is_hidden) {
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &p->saved);
	}
	for (size_t i = 0; i < ARRAY_SIZE(prompt_signals); i++) {
		(void)sigaction(prompt_signals[i].signo, &p->before[i], NULL);
	}
	if (interrupted) {
		(void)raise(interrupted);
	}
	(void)sigprocmask(SIG_SETMASK, &p->mask, NULL);
}

/* One line without its end. */
static int line_read(const struct prompt *p, struct buf *line)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	for (;;) {
		ssize_t n = 0;
		int r = buf_reserve(line, 1);

		if (r < 0) {
			return r;
		}
		if (ppoll(&input, 1, NULL, &p->mask) < 0) {
			return -errno;
		}
		n = fd_read(STDIN_FILENO, line->p + line->n, 1);
		if (n < 0) {
			return (int)n;
		}
		if (n == 0 || line->p[line->n] == '\n') {
			line->p[line->n] = '\0';
			return 0;
		}
		line->n++;
	}
}

static int ask(const char *question, bool hide, char **out_answer, struct error *e)
{
	struct buf line = BUF_INIT(LIMIT_SECRET_BYTES);
	struct prompt p = { .is_hidden = false };
	int r = buf_reserve(&line, line.max);

	/* Before the question: what is typed earlier is thrown away. */
	prompt_begin(&p, hide);
	r = r < 0 ? r : fd_write_all(STDERR_FILENO, question, strlen(question));
	r = r < 0 ? r : line_read(&p, &line);
	prompt_end(&p);
	if (r < 0 || line.n == 0) {
		buf_done(&line);
		return r < 0 ? error_sys(e, -r, "read from the terminal")
			     : error_set(e, ERRC_INVALID, "nothing was typed");
	}
	*out_answer = mem_strdup(line.p);
	explicit_bzero(line.p, line.cap);
	buf_done(&line);
	return 0;
}

static int stdin_read(char **out_secret, struct error *e)
{
	struct buf text = BUF_INIT(LIMIT_SECRET_BYTES);
	int r = buf_reserve(&text, text.max);

	r = r < 0 ? r : fd_read_all(STDIN_FILENO, &text);
	if (r == 0 && text.n > 0 && text.p[text.n - 1] == '\n') {
		text.n--;
	}
	if (r == 0 && text.n > 0 && text.p[text.n - 1] == '\r') {
		text.n--;
	}
	if (r < 0) {
		(void)error_sys(e, -r, "read the password from standard input");
	} else if (text.n == 0) {
		r = error_set(e, ERRC_INVALID, "no password came from standard input");
	} else if (memchr(text.p, '\0', text.n)) {
		r = error_set(e, ERRC_INVALID, "the password has a NUL in it");
	} else {
		*out_secret = mem_dup(text.p, text.n);
	}
	if (text.p) {
		explicit_bzero(text.p, text.cap);
	}
	buf_done(&text);
	return r < 0 ? -1 : 0;
}

static int credential_get(const struct login_args *args, struct credential *c, struct error *e)
{
	if (args->password_stdin) {
		c->user = mem_strdup(args->user);
		return c->user ? stdin_read(&c->password, e)
			       : error_set(e, ERRC_INVALID, "--password-stdin needs --username");
	}
	if (isatty(STDIN_FILENO) != 1) {
		(void)error_set(e, ERRC_INVALID, "standard input is not a terminal");
		return error_hint(e, "osbx login --username USER --password-stdin REGISTRY <FILE");
	}
	c->user = mem_strdup(args->user);
	if (!c->user && ask("Username: ", false, &c->user, e) < 0) {
		return -1;
	}
	return ask("Password: ", true, &c->password, e);
}

/* As the client reads it back: "USER:PASSWORD". */
static int user_check(const struct credential *c, struct error *e)
{
	assert(c->user);

	return c->user[0] == '\0' || strchr(c->user, ':')
			       ? error_set(e, ERRC_INVALID,
						 "a user name is not empty and has no colon")
			       : 0;
}

static int login(const char *domain, const struct login_args *args, char **out_where,
		struct error *e)
{
	assert(domain);

	AUTO(credential) struct credential c = CREDENTIAL_INIT;
	AUTO(config) struct config config = { .unpack_max = 0 };

	config_init(&config);
	if (config_load(&config, e) < 0 || credential_get(args, &c, e) < 0 ||
			user_check(&c, e) < 0) {
		return -1;
	}
	const struct pull_opts opts = {
		.config = &config.registries,
		.tls_verify = args->tls_verify,
		.credential = &c,
	};

	if (registry_login(domain, &c, &opts, e) < 0) {
		return -1;
	}
	return credential_store(domain, &c, out_where, e);
}

static int login_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct login_args args = { .tls_verify = -1 };
	char **operands = NULL;
	int r = args_parse(&cmd_login, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(buf) struct buf out = BUF_INIT((size_t)2 * LIMIT_PATH_BYTES);
	autofree char *domain = NULL;
	autofree char *where = NULL;

	if (domain_of(operands[0] ? operands[0] : LOGIN_HUB, &domain, &e) < 0 ||
			login(domain, &args, &where, &e) < 0) {
		return cli_fail(&e);
	}
	return buf_appendf(&out, "logged in to %s; the credentials are in %s\n", domain, where) < 0
			       ? 125
			       : cli_print(&out);
}

const struct args_command cmd_login = {
	.name = "login",
	.synopsis = "[options] [REGISTRY]",
	.summary = "check and keep credentials for a registry",
	.options = login_options,
	.operands_max = 1,
	.run = login_run,
};

static const struct args_option logout_options[] = { { .name = NULL } };

static int logout(const char *domain, bool *out_found, struct error *e)
{
	assert(domain);

	return credential_remove(domain, out_found, e);
}

static int logout_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	char **operands = NULL;
	int none = 0;
	int r = args_parse(&cmd_logout, argc, argv, &none, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(buf) struct buf out = BUF_INIT(LIMIT_PATH_BYTES);
	autofree char *domain = NULL;
	bool found = false;

	if (domain_of(operands[0] ? operands[0] : LOGIN_HUB, &domain, &e) < 0 ||
			logout(domain, &found, &e) < 0) {
		return cli_fail(&e);
	}
	r = found ? buf_appendf(&out, "removed the credentials for %s\n", domain)
		  : buf_appendf(&out, "there are no credentials for %s\n", domain);
	return r < 0 ? 125 : cli_print(&out);
}

const struct args_command cmd_logout = {
	.name = "logout",
	.synopsis = "[REGISTRY]",
	.summary = "forget the credentials for a registry",
	.options = logout_options,
	.operands_max = 1,
	.run = logout_run,
};
