/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include <osbx/caps.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/plan.h>

#include "../unit.h"

#define WORDS_MAX 4

/* NULL-terminated words. */
struct words {
	const char *v[WORDS_MAX + 1];
};

struct argv_case {
	struct words image_entrypoint;
	struct words image_cmd;
	const char *entrypoint; /* of the request */
	struct words command;
	struct words want; /* empty: refused */
};

/* docker's rules, one a line. */
static const struct argv_case argv_cases[] = {
	{ { { 0 } }, { { "sh" } }, NULL, { { 0 } }, { { "sh" } } },
	{ { { 0 } }, { { "sh" } }, NULL, { { "ls", "-l" } }, { { "ls", "-l" } } },
	{ { { "tini" } }, { { "sh", "-l" } }, NULL, { { 0 } }, { { "tini", "sh", "-l" } } },
	{ { { "tini", "--" } }, { { "sh" } }, NULL, { { "ls" } }, { { "tini", "--", "ls" } } },
	{ { { "tini" } }, { { 0 } }, NULL, { { 0 } }, { { "tini" } } },
	/* A given entrypoint makes the image's Cmd void. */
	{ { { "tini" } }, { { "sh" } }, "env", { { 0 } }, { { "env" } } },
	{ { { "tini" } }, { { "sh" } }, "env", { { "-0" } }, { { "env", "-0" } } },
	{ { { "tini" } }, { { "sh" } }, "", { { "ls" } }, { { "ls" } } },
	{ { { "tini" } }, { { "sh" } }, "", { { 0 } }, { { 0 } } },
	/* Neither. */
	{ { { 0 } }, { { 0 } }, NULL, { { 0 } }, { { 0 } } },
	/* One empty string is no entrypoint, and no command. */
	{ { { "" } }, { { "sh" } }, NULL, { { 0 } }, { { "sh" } } },
	{ { { "" } }, { { 0 } }, NULL, { { 0 } }, { { 0 } } },
	{ { { 0 } }, { { "" } }, NULL, { { 0 } }, { { 0 } } },
	{ { { "", "x" } }, { { 0 } }, NULL, { { 0 } }, { { 0 } } },
	{ { { "tini" } }, { { "" } }, NULL, { { 0 } }, { { "tini", "" } } },
};

struct fixture {
	struct sandbox_request req;
	struct image img;
	struct id id;
	struct idmap map;
	struct plan_input in;
};

static void fixture_done(struct fixture *f)
{
	request_done(&f->req);
	strv_done(&f->img.config.entrypoint);
	strv_done(&f->img.config.cmd);
	strv_done(&f->img.config.env);
	free(f->img.config.user);
	free(f->img.config.working_dir);
}
AUTO_DEFINE(fixture, struct fixture, fixture_done);

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){ .map = { .mode = IDMAP_SINGLE } };
	request_init(&f->req);
	f->req.image = mem_strdup("busybox");
	id_new(&f->id);
	f->in = (struct plan_input){
		.req = &f->req,
		.img = &f->img,
		.id = &f->id,
		.map = &f->map,
		.layers = "/root/layers/single",
		.record = "/root/sandboxes/id",
	};
}

static void words_add(struct strv *sv, const struct words *w)
{
	for (size_t i = 0; w->v[i]; i++) {
		ck_assert_int_eq(strv_add(sv, w->v[i]), 0);
	}
}

START_TEST(merges_the_command)
{
	const struct argv_case *c = &argv_cases[_i];
	AUTO(fixture) struct fixture f = { .id = { "" } };
	AUTO(execd_process) struct execd_process p = { .caps = 0 };
	struct error e = ERROR_INIT;
	size_t n = 0;

	fixture_init(&f);
	words_add(&f.img.config.entrypoint, &c->image_entrypoint);
	words_add(&f.img.config.cmd, &c->image_cmd);
	words_add(&f.req.command, &c->command);
	f.req.entrypoint = mem_strdup(c->entrypoint);
	if (!c->want.v[0]) {
		ck_assert_int_eq(plan_process(&f.in, &p, &e), -1);
		ck_assert_int_eq(e.code, ERRC_INVALID);
		ck_assert_ptr_nonnull(strstr(e.text, "busybox"));
		return;
	}
	ck_assert_int_eq(plan_process(&f.in, &p, &e), 0);
	while (c->want.v[n]) {
		ck_assert_uint_lt(n, p.argv.n);
		ck_assert_str_eq(p.argv.v[n], c->want.v[n]);
		n++;
	}
	ck_assert_uint_eq(p.argv.n, n);
}
END_TEST

START_TEST(the_host_has_a_shell)
{
	AUTO(fixture) struct fixture f = { .id = { "" } };
	AUTO(execd_process) struct execd_process p = { .caps = 0 };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	f.img.is_host = true;
	ck_assert_int_eq(plan_process(&f.in, &p, &e), 0);
	ck_assert_uint_eq(p.argv.n, 1);
	ck_assert_str_eq(p.argv.v[0], "sh");
}
END_TEST

/* A process of the image "sh" with what the test has set. */
static void process_plan(struct fixture *f, struct execd_process *out)
{
	struct error e = ERROR_INIT;

	ck_assert_int_eq(strv_add(&f->img.config.cmd, "sh"), 0);
	ck_assert_int_eq(plan_process(&f->in, out, &e), 0);
}

START_TEST(the_request_wins_over_the_image)
{
	AUTO(fixture) struct fixture f = { .id = { "" } };
	AUTO(execd_process) struct execd_process p = { .caps = 0 };

	fixture_init(&f);
	ck_assert_int_eq(strv_add(&f.img.config.env, "A=image"), 0);
	ck_assert_int_eq(strv_add(&f.img.config.env, "B=image"), 0);
	ck_assert_int_eq(strv_add(&f.img.config.env, "no variable"), 0);
	ck_assert_int_eq(strv_add(&f.req.env, "B=request"), 0);
	f.img.config.user = mem_strdup("image");
	f.req.user = mem_strdup("1:2");
	f.img.config.working_dir = mem_strdup("/image");
	f.req.workdir = mem_strdup("/request");
	ck_assert_int_eq(strv_add(&f.req.groups, "audio"), 0);
	process_plan(&f, &p);
	ck_assert_str_eq(strv_env_find(&p.env, "A"), "image");
	ck_assert_str_eq(strv_env_find(&p.env, "B"), "request");
	ck_assert_uint_eq(p.env.n, 3); /* and HOSTNAME */
	ck_assert_str_eq(p.user, "1:2");
	ck_assert_str_eq(p.cwd, "/request");
	ck_assert_uint_eq(p.groups.n, 1);
	ck_assert(p.caps == caps_workload_default);
	ck_assert_uint_eq(p.umask_bits, 022);
	ck_assert_uint_eq(p.set_home, 1);
}
END_TEST

static const struct {
	const char *image;
	const char *request;
	const char *want;
} cwd_cases[] = {
	{ NULL, NULL, "/" },
	{ "", NULL, "/" },
	{ "/app", NULL, "/app" },
	{ "app", NULL, "/app" },
	{ "/app", "/other", "/other" },
};

START_TEST(chooses_the_working_directory)
{
	AUTO(fixture) struct fixture f = { .id = { "" } };
	AUTO(execd_process) struct execd_process p = { .caps = 0 };

	fixture_init(&f);
	f.img.config.working_dir = mem_strdup(cwd_cases[_i].image);
	f.req.workdir = mem_strdup(cwd_cases[_i].request);
	process_plan(&f, &p);
	ck_assert_str_eq(p.cwd, cwd_cases[_i].want);
	ck_assert_str_eq(p.user, "");
}
END_TEST

static const struct {
	const char *dir;
	uint32_t want;
} make_cases[] = {
	{ "/", EXECD_CWD_MAKE },
	{ "/app/x", EXECD_CWD_MAKE },
	{ "/tmp/x", EXECD_CWD_MAKE_IN_TMPFS },
	{ "/tmp/../app", EXECD_CWD_MAKE },
	{ "/volume/x", EXECD_CWD_MAKE },
	{ "/volume/memory", EXECD_CWD_MAKE_IN_TMPFS },
	{ "/volume/memory/x", EXECD_CWD_MAKE_IN_TMPFS },
	{ "/volume/memory/volume/x", EXECD_CWD_MAKE },
	{ "/volume/memoryless", EXECD_CWD_MAKE },
	{ "/run/x", EXECD_CWD_MAKE },
	{ "/var/tmp/x", EXECD_CWD_MAKE_IN_TMPFS },
};

/* A working directory is made in the root or in memory, never in a volume. */
START_TEST(says_where_the_working_directory_may_be_made)
{
	AUTO(fixture) struct fixture f = { .id = { "" } };
	AUTO(execd_process) struct execd_process p = { .caps = 0 };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	f.req.workdir = mem_strdup(make_cases[_i].dir);
	f.req.read_only = true;
	ck_assert_int_eq(request_add_volume(&f.req, "/src:/volume/memory/volume", &e), 0);
	ck_assert_int_eq(request_add_volume(&f.req, "/src:/volume/", &e), 0);
	ck_assert_int_eq(request_add_volume(&f.req, "/src:/run", &e), 0);
	ck_assert_int_eq(request_add_tmpfs(&f.req, "//volume/memory", &e), 0);
	process_plan(&f, &p);
	ck_assert_uint_eq(p.cwd_create, make_cases[_i].want);
}
END_TEST

START_TEST(says_inside_what_the_network_is)
{
	AUTO(fixture) struct fixture f = { .id = { "" } };
	AUTO(execd_process) struct execd_process p = { .caps = 0 };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	process_plan(&f, &p);
	ck_assert_ptr_null(strv_env_find(&p.env, "OSBX_NETWORK"));
	execd_process_done(&p);
	p = (struct execd_process){ .caps = 0 };
	f.req.network = SPEC_NETWORK_PRIVATE;
	process_plan(&f, &p);
	ck_assert_str_eq(strv_env_find(&p.env, "OSBX_NETWORK"), "private");
	ck_assert_int_eq(request_add_rule(&f.req, NETPOLICY_DENY, "*", &e), 0);
	for (int i = 0; i < 70; i++) {
		autofree char *name = mem_printf("a%d.test", i);

		ck_assert_int_eq(request_add_rule(&f.req, NETPOLICY_ALLOW, name, &e), 0);
	}
	autofree char *text = plan_resolv_conf(&f.req, &f.id);
	const char *at = strstr(text, "nameserver");

	ck_assert_str_eq(at, "nameserver 192.0.0.1\n");
	ck_assert_ptr_nonnull(strstr(text, "#   allow a0.test\n"));
	ck_assert_ptr_nonnull(strstr(text, "#   ...\n#   deny everything else\n"));
	ck_assert_ptr_null(strstr(text, "a69.test"));
	/* Whoever reads it as resolv.conf, reads one line. */
	for (const char *line = text; line < at; line = strchr(line, '\n') + 1) {
		ck_assert_int_eq(line[0], '#');
	}
}
END_TEST

START_TEST(names_the_host_in_the_environment)
{
	AUTO(fixture) struct fixture f = { .id = { "" } };
	AUTO(execd_process) struct execd_process p = { .caps = 0 };
	char shorter[13];

	fixture_init(&f);
	id_short(&f.id, shorter);
	process_plan(&f, &p);
	ck_assert_str_eq(strv_env_find(&p.env, "HOSTNAME"), shorter);
	execd_process_done(&p);
	p = (struct execd_process){ .caps = 0 };
	f.req.hostname = mem_strdup("web");
	process_plan(&f, &p);
	ck_assert_str_eq(strv_env_find(&p.env, "HOSTNAME"), "web");
	execd_process_done(&p);
	p = (struct execd_process){ .caps = 0 };
	ck_assert_int_eq(strv_add(&f.req.env, "HOSTNAME=mine"), 0);
	process_plan(&f, &p);
	ck_assert_str_eq(strv_env_find(&p.env, "HOSTNAME"), "mine");
}
END_TEST

static const struct {
	const char *term;
	bool is_host;
	bool tty;
	const char *want;
} term_cases[] = {
	{ "xterm-256color", true, true, "xterm-256color" },
	{ "xterm-256color", true, false, NULL },
	{ "xterm-256color", false, true, NULL }, /* execd says xterm */
	{ "$(reboot)", true, true, NULL },
	{ "", true, true, NULL },
	{ NULL, true, true, NULL },
};

START_TEST(passes_the_terminal_to_the_hosts_programs)
{
	AUTO(fixture) struct fixture f = { .id = { "" } };
	AUTO(execd_process) struct execd_process p = { .caps = 0 };

	fixture_init(&f);
	f.in.term = term_cases[_i].term;
	f.img.is_host = term_cases[_i].is_host;
	f.req.tty = term_cases[_i].tty;
	process_plan(&f, &p);
	if (term_cases[_i].want) {
		ck_assert_str_eq(strv_env_find(&p.env, "TERM"), term_cases[_i].want);
	} else {
		ck_assert_ptr_null(strv_env_find(&p.env, "TERM"));
	}
}
END_TEST

static const struct {
	const char *text;
	int want;
} signal_cases[] = {
	{ NULL, SIGTERM },
	{ "", SIGTERM },
	{ "SIGTERM", SIGTERM },
	{ "SIGQUIT", SIGQUIT },
	{ "INT", SIGINT },
	{ "9", SIGKILL },
	{ "0", SIGTERM },
	{ "65", SIGTERM },
	{ "-1", SIGTERM },
	{ "SIGNONE", SIGTERM },
	{ "SIG", SIGTERM },
	{ "sigint", SIGTERM },
	{ "SIGRTMIN", -1 },
	{ "SIGRTMIN+3", -2 },
	{ "RTMAX-1", -3 },
	{ "SIGRTMIN+99", SIGTERM },
	{ "SIGRTMIN-1", SIGTERM },
	{ "SIGRTMAX+1", SIGTERM },
	{ "SIGRTMIN+", SIGTERM },
};

START_TEST(reads_stop_signals)
{
	const int real_time[] = { SIGRTMIN, SIGRTMIN + 3, SIGRTMAX - 1 };
	int want = signal_cases[_i].want;

	ck_assert_int_eq(plan_stop_signal(signal_cases[_i].text),
			want < 0 ? real_time[-want - 1] : want);
}
END_TEST

START_TEST(bounds_the_environment)
{
	AUTO(fixture) struct fixture f = { .id = { "" } };
	AUTO(execd_process) struct execd_process p = { .caps = 0 };
	struct error e = ERROR_INIT;
	autofree char *big = mem_array(LIMIT_ARGS_BYTES, 1);

	fixture_init(&f);
	memset(big, 'x', LIMIT_ARGS_BYTES - 1);
	big[1] = '=';
	ck_assert_int_eq(strv_add(&f.img.config.env, big), 0);
	ck_assert_int_eq(strv_add(&f.img.config.cmd, "sh"), 0);
	ck_assert_int_eq(plan_process(&f.in, &p, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	ck_assert_uint_eq(p.argv.n, 0);
}
END_TEST

START_TEST(bounds_the_variables_but_not_the_arguments_to_their_number)
{
	AUTO(fixture) struct fixture f = { .id = { "" } };
	AUTO(execd_process) struct execd_process p = { .caps = 0 };
	struct error e = ERROR_INIT;

	fixture_init(&f);
	for (int i = 0; i < LIMIT_ENV; i++) {
		ck_assert_int_eq(strv_add(&f.img.config.cmd, "x"), 0);
		ck_assert_int_eq(strv_add(&f.img.config.cmd, ""), 0);
		/* One place is for HOSTNAME. */
		ck_assert(i == 0 || strv_addf(&f.img.config.env, "V%d=", i) == 0);
	}
	ck_assert_int_eq(plan_process(&f.in, &p, &e), 0);
	ck_assert_uint_eq(p.argv.n, 2 * LIMIT_ENV);
	ck_assert_uint_eq(p.env.n, LIMIT_ENV);
	execd_process_done(&p);
	p = (struct execd_process){ .caps = 0 };
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(strv_add(&f.img.config.env, "LAST="), 0);
		ck_assert_int_eq(plan_process(&f.in, &p, &e), -1);
		ck_assert_int_eq(e.code, ERRC_LIMIT);
		error_clear(&e);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("plan");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, merges_the_command, 0, ARRAY_SIZE(argv_cases));
	tcase_add_test(tc, the_host_has_a_shell);
	tcase_add_test(tc, the_request_wins_over_the_image);
	tcase_add_loop_test(tc, chooses_the_working_directory, 0, ARRAY_SIZE(cwd_cases));
	tcase_add_loop_test(tc, says_where_the_working_directory_may_be_made, 0,
			ARRAY_SIZE(make_cases));
	tcase_add_test(tc, says_inside_what_the_network_is);
	tcase_add_test(tc, names_the_host_in_the_environment);
	tcase_add_loop_test(
			tc, passes_the_terminal_to_the_hosts_programs, 0, ARRAY_SIZE(term_cases));
	tcase_add_loop_test(tc, reads_stop_signals, 0, ARRAY_SIZE(signal_cases));
	tcase_add_test(tc, bounds_the_environment);
	tcase_add_test(tc, bounds_the_variables_but_not_the_arguments_to_their_number);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
