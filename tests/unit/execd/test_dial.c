/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#define PORT 8123

/* One connection's greeting, by address. */
static const char server[] = "import socket,sys\n"
			     "f = socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET\n"
			     "s = socket.socket(f)\n"
			     "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
			     "s.bind((sys.argv[1], int(sys.argv[2])))\n"
			     "s.listen(1)\n"
			     "print('ready', flush=True)\n"
			     "c = s.accept()[0]\n"
			     "c.sendall(sys.argv[1].encode())\n"
			     "c.recv(1)\n" /* its end is told behind the connection */
			     "c.close()\n";

static void listen_on(struct sandbox_run *r, const char *address)
{
	char line[8] = "";

	RUN_INIT(r, "python3", "-c", server, address, "8123");
	r->tag = 2;
	r->flags = 0;
	(void)run_start(&tree_box, r);
	ck_assert_int_eq(read(r->out, line, 6), 6);
	ck_assert_str_eq(line, "ready\n");
}

static void dial(uint32_t port)
{
	const struct execd_dial d = { .tag = 7, .port = port };

	ck_assert_int_eq(execd_send(tree_box.control, EXECD_MSG_DIAL, &d, sizeof(d), NULL, 0), 0);
}

static struct error dial_fails(uint32_t port)
{
	struct packet p;

	dial(port);
	sandbox_expect(&tree_box, EXECD_MSG_FAILED, &p);
	const struct execd_failed *failed = execd_payload(&p, sizeof(*failed));

	ck_assert_ptr_nonnull(failed);
	ck_assert_uint_eq(failed->tag, 7);
	ck_assert_uint_eq(p.fds_n, 0);
	return failed->error;
}

START_TEST(connects)
{
	static const char *const addresses[] = { "127.0.0.1", "::1" };
	struct sandbox_run r;
	struct packet p;
	char text[16] = "";

	if (_i == 1 && access("/proc/net/if_inet6", F_OK) < 0) {
		return; /* no IPv6 here */
	}
	tree_begin(-1);
	listen_on(&r, addresses[_i]);
	dial(PORT);
	sandbox_expect(&tree_box, EXECD_MSG_DIALLED, &p);
	const struct execd_tag *t = execd_payload(&p, sizeof(*t));

	ck_assert_ptr_nonnull(t);
	ck_assert_uint_eq(t->tag, 7);
	ck_assert_uint_eq(p.fds_n, 1);
	ck_assert_int_ne(fcntl(p.fds[0], F_GETFL) & O_NONBLOCK, 0);
	ck_assert_int_eq(fd_set_nonblock(p.fds[0], false), 0);
	ck_assert_int_gt(read(p.fds[0], text, sizeof(text) - 1), 0);
	ck_assert_str_eq(text, addresses[_i]);
	close(p.fds[0]);
	ck_assert_int_eq(run_wait(&tree_box, &r).status, 0);
	free(run_output(&r));
	tree_end();
}
END_TEST

START_TEST(refusals_are_told)
{
	tree_begin(-1);
	struct error e = dial_fails(PORT);

	ck_assert_int_eq(e.code, ERRC_UNAVAILABLE);
	ck_assert_str_eq(e.text, "port 8123 of the sandbox: nothing listens");
	ck_assert_int_eq(dial_fails(0).code, ERRC_INVALID);
	ck_assert_int_eq(dial_fails(65536).code, ERRC_INVALID);
	tree_end();
}
END_TEST

/* A queue that is full lets nobody wait for ever; others are served meanwhile. */
START_TEST(gives_up)
{
	static const char full[] =
			"import socket,time\n"
			"s = socket.socket()\n"
			"s.bind(('127.0.0.1', 8123))\n"
			"s.listen(0)\n"
			"c = [socket.socket() for i in range(4)]\n"
			"[x.setblocking(False) or x.connect_ex(('127.0.0.1', 8123)) for x in c]\n"
			"time.sleep(0.2)\n"
			"print('ready', flush=True)\n"
			"time.sleep(100)\n";
	struct sandbox_run r;
	struct packet p;
	char line[8] = "";

	tree_begin(-1);
	RUN_INIT(&r, "python3", "-c", full);
	r.tag = 2;
	r.flags = 0;
	(void)run_start(&tree_box, &r);
	ck_assert_int_eq(read(r.out, line, 6), 6);
	int64_t before = clock_boot_ms();

	dial(PORT);
	ck_assert_uint_ge(tree_count(), 2);
	sandbox_expect(&tree_box, EXECD_MSG_FAILED, &p);
	int64_t after = clock_boot_ms();
	const struct execd_failed *failed = execd_payload(&p, sizeof(*failed));

	ck_assert_ptr_nonnull(failed);
	ck_assert_int_eq(failed->error.code, ERRC_TIMEOUT);
	ck_assert_int_ge(after - before, 4900);
	ck_assert_int_lt(after - before, 9000);
	tree_send(EXECD_MSG_KILL, 2);
	(void)run_wait(&tree_box, &r);
	free(run_output(&r));
	tree_end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dial");
	TCase *tc = tcase_create("all");

	if (!sandbox_is_possible()) {
		return getenv("OSBX_TESTS_MUST_RUN") ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, connects, 0, 2);
	tcase_add_test(tc, refusals_are_told);
	tcase_add_test(tc, gives_up);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
