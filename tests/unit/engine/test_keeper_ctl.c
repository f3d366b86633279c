/* SPDX-License-Identifier: Apache-2.0 */
/* A keeper with its control socket, between a PID 1 and a client that are children of the test. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <osbx/clock.h>
#include <osbx/ctl.h>
#include <osbx/fd.h>
#include <osbx/keeper.h>
#include <osbx/mem.h>
#include <osbx/packet.h>
#include <osbx/sys.h>

#include "../unit.h"

#define STOP_SIGNAL SIGQUIT

struct fixture {
	struct execd_process process;
	struct idmap map;
	struct cgroup cgroup;
	struct keeper_opts opts;
	struct launch launch;
	struct sandbox_state state;
	struct dirs dirs;
	int live_fd;
	int fake_sock;
	pid_t client;
};

static void fixture_done(struct fixture *f)
{
	execd_process_done(&f->process);
	launch_done(&f->launch);
	state_done(&f->state);
	dirs_done(&f->dirs);
	fd_close(&f->live_fd);
	fd_close(&f->fake_sock);
}
AUTO_DEFINE(fixture, struct fixture, fixture_done);

static void fixture_init(struct fixture *f)
{
	autofree char *path = NULL;
	struct error e = ERROR_INIT;
	struct id id;
	int sock[2];

	ck_assert_int_eq(fd_seqpacket_pair(sock), 0);
	*f = (struct fixture){
		.map = { .mode = IDMAP_SINGLE,
				.uids_n = 1,
				.gids_n = 1,
				.uids = { { .outside = geteuid(), .count = 1 } },
				.gids = { { .outside = getegid(), .count = 1 } } },
		.cgroup = CGROUP_INIT,
		.launch = { .control_fd = sock[0], .pidfd = -1, .userns_fd = -1 },
		.dirs = DIRS_INIT,
		.fake_sock = sock[1],
	};
	setenv("OSBX_ROOT", unit_path, 1);
	setenv("OSBX_RUNTIME", unit_path, 1);
	ck_assert_int_eq(dirs_open(&f->dirs, &e), 0);
	id_new(&id);
	state_init(&f->state, &id, "web", "busybox");
	state_go(&f->state, SANDBOX_RUNNING);
	path = mem_printf("sandboxes/%s", id.text);
	ck_assert_int_eq(mkdirat(unit_fd, "sandboxes", 0700), 0);
	ck_assert_int_eq(mkdirat(unit_fd, path, 0700), 0);
	f->live_fd = fd_open_at(unit_fd, path, O_RDONLY | O_DIRECTORY, 0);
	ck_assert_int_ge(f->live_fd, 0);
	ck_assert_int_eq(strv_add(&f->process.argv, "main"), 0);
	ck_assert_int_eq(strv_add(&f->process.env, "MAIN=1"), 0);
	f->process.cwd = mem_strdup("/cwd");
	f->process.user = mem_strdup("5:6");
	f->opts = (struct keeper_opts){
		.detached = true,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
		.stop_signal = STOP_SIGNAL,
		.process = &f->process,
		.map = &f->map,
		.cgroup = &f->cgroup,
		.state = &f->state,
		.live_fd = f->live_fd,
		.runtime_fd = unit_fd,
	};
}

static void fake_send(int sock, enum execd_msg type, const void *p, uint32_t n)
{
	if (execd_send(sock, type, p, n, NULL, 0) < 0) {
		_exit(98);
	}
}

/* Is the process of this START what the client and the main process make it together? */
static bool process_is_right(const struct packet *p)
{
	AUTO(execd_process) struct execd_process got = { .caps = 0 };
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);

	return p->fds_n == 4 && lseek(p->fds[0], 0, SEEK_SET) == 0 &&
	       fd_read_all(p->fds[0], &text) == 0 &&
	       execd_process_decode(buf_span(&text), &got) == 0 && got.argv.n == 1 &&
	       strcmp(got.argv.v[0], "extra") == 0 && strv_env_find(&got.env, "MAIN") &&
	       strv_env_find(&got.env, "OWN") && strcmp(got.cwd, "/cwd") == 0 &&
	       strcmp(got.user, "5:6") == 0;
}

/* PID 1: other processes run until they get a signal, whose number is their status. The status of
 * the main one is the number of trees that were killed, plus ten times its signal. */
static void fake_run(int sock, bool deaf)
{
	bool has_started = false;
	int listeners = 0;
	int killed = 0;

	for (;;) {
		struct packet p;
		uint32_t tag = 0;

		if (packet_recv(sock, &p, -1) != 1) {
			_exit(0);
		}
		memcpy(&tag, p.payload, sizeof(tag));
		struct execd_started started = { .tag = tag, .pid = 7 };
		struct execd_exited exited = { .tag = tag };
		struct execd_stats stats = { .tag = tag, .processes = 5 };
		struct execd_failed failed = { .tag = tag };

		switch (p.type) {
		case EXECD_MSG_LISTEN:
			/* Before everything else, and not again. */
			if (listeners++ > 0 || has_started || p.fds_n != 1) {
				_exit(96);
			}
			break;
		case EXECD_MSG_START:
			if (listeners != 1) {
				_exit(95);
			}
			has_started = true;
			if (tag == 1 || process_is_right(&p)) {
				fake_send(sock, EXECD_MSG_STARTED, &started, sizeof(started));
			} else {
				(void)error_set(&failed.error, ERRC_NO_COMMAND, "wrong process");
				fake_send(sock, EXECD_MSG_FAILED, &failed, sizeof(failed));
			}
			break;
		case EXECD_MSG_STAT:
			fake_send(sock, EXECD_MSG_STATS, &stats, sizeof(stats));
			break;
		case EXECD_MSG_KILL:
			killed++;
			exited.status = 137;
			exited.signal = SIGKILL;
			fake_send(sock, EXECD_MSG_EXITED, &exited, sizeof(exited));
			break;
		default:
			memcpy(&exited.status, p.payload + sizeof(tag), sizeof(exited.status));
			if (tag == 1 && deaf) {
				break;
			}
			exited.status = tag == 1 ? exited.status * 10 + killed : exited.status;
			fake_send(sock, EXECD_MSG_EXITED, &exited, sizeof(exited));
			if (tag == 1) {
				_exit(0);
			}
		}
		packet_done(&p);
	}
}

/* The client: its exit status is 0 when all was as it should be, else the number of a line. */
#define CHECK(expr)                      \
	do {                             \
		if (!(expr)) {           \
			_exit(__LINE__); \
		}                        \
	} while (0)

static int client_ask(const struct fixture *f, enum ctl_msg type, const void *payload, uint32_t n,
		struct error *e)
{
	return ctl_request(&f->dirs, &f->state.id, type, payload, n, e);
}

static void client_stop(const struct fixture *f)
{
	const struct ctl_stop stop = { .grace_ms = -1 };
	struct error e = ERROR_INIT;

	CHECK(client_ask(f, CTL_MSG_STOP, &stop, sizeof(stop), &e) == 0);
}

static int client_open(const struct fixture *f)
{
	struct error e = ERROR_INIT;
	int sock = ctl_connect(&f->dirs, &f->state.id, &e);

	CHECK(sock >= 0);
	return sock;
}

/* Ask for a process; the caller reads the answers. */
static int client_exec(const struct fixture *f, int null_fd, int process_fd, uint32_t flags)
{
	const struct ctl_exec request = { .flags = flags };
	const int fds[] = { process_fd, null_fd, null_fd, null_fd };
	struct error e = ERROR_INIT;
	int sock = client_open(f);

	CHECK(ctl_send_exec(sock, &request, fds, 4, &e) == 0);
	return sock;
}

static int process_fd_make(bool sealed)
{
	AUTO(execd_process) struct execd_process p = { .caps = 0 };
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);

	CHECK(strv_add(&p.argv, "extra") == 0 && strv_add(&p.env, "OWN=2") == 0);
	CHECK(execd_process_encode(&p, &text) == 0);
	if (sealed) {
		return fd_memfd_sealed("p", text.p, text.n, false);
	}
	int fd = memfd_create("p", MFD_CLOEXEC);

	CHECK(fd_write_all(fd, text.p, text.n) == 0);
	return fd;
}

static int null_open(void)
{
	return fd_open("/dev/null", O_RDWR, 0);
}

static void expect(int sock, enum ctl_msg want, struct packet *p)
{
	struct error e = ERROR_INIT;

	CHECK(ctl_expect(sock, want, p, clock_boot_ms() + 10000, &e) == 0);
}

static enum errc expect_failed(int sock)
{
	struct error e = ERROR_INIT;
	struct packet p;

	CHECK(ctl_expect(sock, CTL_MSG_OK, &p, clock_boot_ms() + 10000, &e) < 0);
	return e.code;
}

/* Run the keeper beside a PID 1 and a client. The status of the main process. */
static int keep(struct fixture *f, bool deaf, void (*client)(const struct fixture *f))
{
	struct error e = ERROR_INIT;
	int status = -1;
	int client_status = -1;

	f->launch.pid = fork();
	if (f->launch.pid == 0) {
		close(f->launch.control_fd);
		fake_run(f->fake_sock, deaf);
	}
	f->launch.pidfd = sys_pidfd_open(f->launch.pid);
	fd_close(&f->fake_sock);
	AUTO(keeper) struct keeper *k = keeper_new(&f->opts, &e);

	ck_assert_msg(k != NULL, "%s", e.text);
	f->client = fork();
	if (f->client == 0) {
		close(f->launch.control_fd);
		client(f);
		_exit(0);
	}
	ck_assert_int_eq(keeper_queue(k, f->launch.control_fd, &e), 0);
	ck_assert_int_eq(keeper_start(k, &f->launch, &e), 0);
	ck_assert_msg(keeper_run(k, &status, &e) == 0, "%s", e.text);
	keeper_end(k);
	ck_assert_int_eq(waitpid(f->client, &client_status, 0), f->client);
	ck_assert_msg(client_status == 0, "client: line %d", WEXITSTATUS(client_status));
	return status;
}

START_TEST(stops_with_the_stop_signal)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };

	fixture_init(&f);
	ck_assert_int_eq(keep(&f, false, client_stop), STOP_SIGNAL * 10);
	ck_assert_int_eq(f.state.code, SANDBOX_STOPPING);
}
END_TEST

static void client_stop_hard(const struct fixture *f)
{
	const struct ctl_stop patient = { .grace_ms = 60000, .signo = SIGTERM };
	const struct ctl_stop hasty = { .grace_ms = 50 };
	int first = client_open(f);
	struct error e = ERROR_INIT;
	struct packet p;

	CHECK(ctl_send(first, CTL_MSG_STOP, &patient, sizeof(patient), &e) == 0);
	CHECK(client_ask(f, CTL_MSG_STOP, &hasty, sizeof(hasty), &e) == 0);
	expect(first, CTL_MSG_OK, &p);
}

START_TEST(kills_what_does_not_listen)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };

	fixture_init(&f);
	ck_assert_int_eq(keep(&f, true, client_stop_hard), 137);
}
END_TEST

static void client_signal_and_wait(const struct fixture *f)
{
	const struct ctl_signal s = { .signo = SIGUSR1 };
	struct error e = ERROR_INIT;
	struct ctl_ended ended;
	struct packet p;
	int sock = client_open(f);

	CHECK(ctl_send(sock, CTL_MSG_WAIT, NULL, 0, &e) == 0);
	CHECK(client_ask(f, CTL_MSG_SIGNAL, &s, sizeof(s), &e) == 0);
	expect(sock, CTL_MSG_ENDED, &p);
	CHECK(p.len == sizeof(ended));
	memcpy(&ended, p.payload, sizeof(ended));
	CHECK(ended.status == SIGUSR1 * 10);
}

START_TEST(signals_and_tells_the_end)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };

	fixture_init(&f);
	ck_assert_int_eq(keep(&f, false, client_signal_and_wait), SIGUSR1 * 10);
}
END_TEST

static void client_two_processes(const struct fixture *f)
{
	const struct ctl_signal s = { .signo = 5 };
	int process_fd = process_fd_make(true);
	int null_fd = null_open();
	struct error e = ERROR_INIT;
	struct ctl_ended ended;
	struct packet p;
	int a = client_exec(f, null_fd, process_fd, 0);
	int b = client_exec(f, null_fd, process_fd, 0);

	expect(a, CTL_MSG_STARTED, &p);
	expect(b, CTL_MSG_STARTED, &p);
	CHECK(ctl_send(b, CTL_MSG_EXEC_SIGNAL, &s, sizeof(s), &e) == 0);
	expect(b, CTL_MSG_ENDED, &p);
	memcpy(&ended, p.payload, sizeof(ended));
	CHECK(ended.status == 5);
	/* The other one's client goes away. */
	close(a);
	/* A detached one's too, which nobody minds. */
	int c = client_exec(f, null_fd, process_fd, CTL_EXEC_DETACH);

	expect(c, CTL_MSG_STARTED, &p);
	close(c);
	client_stop(f);
}

START_TEST(starts_processes_and_kills_what_is_left_alone)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };

	fixture_init(&f);
	ck_assert_int_eq(keep(&f, false, client_two_processes), STOP_SIGNAL * 10 + 1);
}
END_TEST

static void client_bad_processes(const struct fixture *f)
{
	int good = process_fd_make(true);
	int open_memfd = process_fd_make(false);
	int null_fd = null_open();
	int dir_fd = fd_open("/", O_RDONLY | O_DIRECTORY, 0);
	int pair[2];

	CHECK(fd_seqpacket_pair(pair) == 0);
	CHECK(expect_failed(client_exec(f, null_fd, open_memfd, 0)) == ERRC_INVALID);
	CHECK(expect_failed(client_exec(f, null_fd, null_fd, 0)) == ERRC_INVALID);
	CHECK(expect_failed(client_exec(f, dir_fd, good, 0)) == ERRC_INVALID);
	CHECK(expect_failed(client_exec(f, pair[0], good, 0)) == ERRC_INVALID);
	/* With a terminal there are no others. */
	CHECK(expect_failed(client_exec(f, null_fd, good, CTL_EXEC_TTY)) == ERRC_INVALID);
	client_stop(f);
}

START_TEST(gives_the_workload_no_descriptor_but_pipes)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };

	fixture_init(&f);
	ck_assert_int_eq(keep(&f, false, client_bad_processes), STOP_SIGNAL * 10);
}
END_TEST

static void client_requests(const struct fixture *f)
{
	struct ctl_renew renew = { .expires_ms = clock_wall_ms() - 1 };
	AUTO(state) struct sandbox_state state = { .code = SANDBOX_PENDING };
	const struct ctl_signal none = { .signo = 0 };
	struct error e = ERROR_INIT;
	struct ctl_stats stats;
	struct packet p;

	CHECK(client_ask(f, CTL_MSG_RENEW, &renew, sizeof(renew), &e) < 0 &&
			e.code == ERRC_INVALID);
	error_clear(&e);
	renew.expires_ms += 3600000;
	CHECK(client_ask(f, CTL_MSG_RENEW, &renew, sizeof(renew), &e) == 0);
	CHECK(state_load(f->live_fd, &state, &e) == 0 && state.expires_ms == renew.expires_ms);
	CHECK(client_ask(f, CTL_MSG_PAUSE, NULL, 0, &e) < 0 && e.code == ERRC_UNSUPPORTED);
	error_clear(&e);
	CHECK(client_ask(f, CTL_MSG_RESUME, NULL, 0, &e) < 0 && e.code == ERRC_CONFLICT);
	error_clear(&e);
	CHECK(client_ask(f, CTL_MSG_SIGNAL, &none, sizeof(none), &e) < 0 && e.code == ERRC_INVALID);
	error_clear(&e);
	CHECK(client_ask(f, CTL_MSG_SIGNAL, NULL, 0, &e) < 0 && e.code == ERRC_INVALID);
	error_clear(&e);
	CHECK(client_ask(f, (enum ctl_msg)9999, NULL, 0, &e) < 0 && e.code == ERRC_UNSUPPORTED);
	error_clear(&e);
	int sock = client_open(f);

	CHECK(ctl_send(sock, CTL_MSG_STAT, NULL, 0, &e) == 0);
	expect(sock, CTL_MSG_STATS, &p);
	CHECK(p.len == sizeof(stats));
	memcpy(&stats, p.payload, sizeof(stats));
	CHECK(stats.pids == 5 && stats.memory_bytes == UINT64_MAX);
	/* Noise is dropped, and so is who says nothing. */
	sock = client_open(f);
	CHECK(send(sock, "x", 1, MSG_NOSIGNAL) == 1);
	CHECK(ctl_expect(sock, CTL_MSG_OK, &p, clock_boot_ms() + 10000, &e) < 0);
	(void)client_open(f);
	client_stop(f);
}

START_TEST(answers_requests)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };

	fixture_init(&f);
	ck_assert_int_eq(keep(&f, false, client_requests), STOP_SIGNAL * 10);
}
END_TEST

static void client_many(const struct fixture *f)
{
	int socks[80];
	struct error e = ERROR_INIT;
	struct packet p;

	for (size_t i = 0; i < ARRAY_SIZE(socks); i++) {
		socks[i] = client_open(f);
		CHECK(ctl_send(socks[i], CTL_MSG_WAIT, NULL, 0, &e) == 0);
	}
	/* The last ones are served when the first ones leave. */
	for (size_t i = 0; i < 40; i++) {
		close(socks[i]);
	}
	client_stop(f);
	for (size_t i = 40; i < ARRAY_SIZE(socks); i++) {
		expect(socks[i], CTL_MSG_ENDED, &p);
	}
}

START_TEST(serves_a_bounded_number_at_once)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };

	fixture_init(&f);
	ck_assert_int_eq(keep(&f, false, client_many), STOP_SIGNAL * 10);
}
END_TEST

static void client_late(const struct fixture *f)
{
	struct ctl_renew renew = { .expires_ms = clock_wall_ms() + 3600000 };
	struct error e = ERROR_INIT;

	usleep(200000);
	/* It expired, and does not listen: too late. */
	CHECK(client_ask(f, CTL_MSG_RENEW, &renew, sizeof(renew), &e) < 0 &&
			e.code == ERRC_CONFLICT);
	error_clear(&e);
	const struct ctl_stop now = { .grace_ms = 0 };

	CHECK(client_ask(f, CTL_MSG_STOP, &now, sizeof(now), &e) == 0);
}

START_TEST(expires_and_cannot_be_renewed_then)
{
	AUTO(fixture) struct fixture f = { .fake_sock = -1 };

	fixture_init(&f);
	f.state.expires_ms = clock_wall_ms() + 50;
	ck_assert_int_eq(keep(&f, true, client_late), 137);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("keeper_ctl");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, stops_with_the_stop_signal);
	tcase_add_test(tc, kills_what_does_not_listen);
	tcase_add_test(tc, signals_and_tells_the_end);
	tcase_add_test(tc, starts_processes_and_kills_what_is_left_alone);
	tcase_add_test(tc, gives_the_workload_no_descriptor_but_pipes);
	tcase_add_test(tc, answers_requests);
	tcase_add_test(tc, serves_a_bounded_number_at_once);
	tcase_add_test(tc, expires_and_cannot_be_renewed_then);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
