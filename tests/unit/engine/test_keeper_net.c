/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper starts this program as its netd ("netd" is the first argument then). What that does is
 * said by names in the policy it is given; what it has seen, it says as denials.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/egress.h>
#include <osbx/fd.h>
#include <osbx/keeper_net.h>
#include <osbx/mem.h>
#include <osbx/packet.h>
#include <osbx/str.h>

#include "../unit.h"

#define POLICY_BYTES 65536
#define LIMIT_MS     60000
#define TOKEN        "0123456789abcdef0123456789abcdef"

/* netd's side. */
static void fake_send(enum netd_msg type, const void *p, uint32_t n, int fd)
{
	struct packet packet;

	packet_init(&packet, (uint16_t)type);
	if (packet_put(&packet, p, n) < 0 || (fd >= 0 && packet_put_fd(&packet, fd) < 0) ||
			packet_send(NETD_CONTROL_FD, &packet) < 0) {
		_exit(90);
	}
}

static void PRINTF_LIKE(1, 2) fake_say(const char *fmt, ...)
{
	struct netd_denied denied = { .seq = 1, .rule = NETPOLICY_BY_DEFAULT };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(denied.what, sizeof(denied.what), fmt, ap);
	va_end(ap);
	fake_send(NETD_MSG_DENIED, &denied, sizeof(denied), -1);
}

static void fake_take(enum netd_msg type, struct packet *out_p)
{
	if (packet_recv(NETD_CONTROL_FD, out_p, -1) != 1) {
		_exit(0);
	}
	if (out_p->type != type) {
		_exit(91);
	}
}

/* Dial 127.0.0.1. Who listens there gets a word. */
static void fake_dial(uint16_t port)
{
	struct netd_dial dial = { .id = 77, .kind = NETD_DIAL_TCP, .port = port };
	struct netd_dialed dialed;
	struct packet p;

	if (netaddr_parse(span_of("127.0.0.1"), &dial.addr) < 0) {
		_exit(92);
	}
	fake_send(NETD_MSG_DIAL, &dial, sizeof(dial), -1);
	fake_take(NETD_MSG_DIALED, &p);
	memcpy(&dialed, p.payload, sizeof(dialed));
	if (p.fds_n == 1) {
		struct pollfd ready = { .fd = p.fds[0], .events = POLLOUT };

		if (poll(&ready, 1, LIMIT_MS) != 1 || write(p.fds[0], "word", 4) != 4) {
			_exit(93);
		}
	}
	fake_say("dialed %u %d", dialed.id, dialed.errnum);
}

static void fake_edit(const char *policy)
{
	struct netd_saved saved;
	struct packet p;
	int fd = fd_memfd_sealed("edited", policy, strlen(policy), false);

	fake_send(NETD_MSG_POLICY, NULL, 0, fd);
	fake_take(NETD_MSG_SAVED, &p);
	memcpy(&saved, p.payload, sizeof(saved));
	fake_say("saved %d", saved.errnum);
}

static void fake_fail(void)
{
	struct error e = ERROR_INIT;

	(void)error_set(&e, ERRC_UNSUPPORTED, "no rules here");
	fake_send(NETD_MSG_ERROR, &e, sizeof(e), -1);
}

/* What a connection is to be made with: "127.0.0.1:PORT" of a rule. */
static uint16_t port_of(const char *policy)
{
	const char *at = strstr(policy, "127.0.0.1:");
	uint64_t port = 9;
	autofree char *number = at ? mem_dup(at + 10, strcspn(at + 10, "\"")) : NULL;

	(void)!str_to_u64(number ? number : "9", 65535, &port);
	return (uint16_t)port;
}

static void fake_act(const char *policy)
{
	if (strstr(policy, "odd.test")) {
		fake_send(NETD_MSG_SAVED, NULL, 0, -1);
	}
	if (strstr(policy, "dial.test")) {
		fake_dial(port_of(policy));
	}
	if (strstr(policy, "edit.test")) {
		fake_edit("{\"defaultAction\":\"deny\",\"egress\":[{\"action\":\"allow\","
			  "\"target\":\"new.test\"}]}");
	}
	if (strstr(policy, "bad.test")) {
		fake_edit("{\"egress\":7}");
	}
	if (strstr(policy, "die.test")) {
		fake_say("dying");
		_exit(0);
	}
}

static int fake_main(void)
{
	AUTO(buf) struct buf policy = BUF_INIT(POLICY_BYTES);
	struct netd_resolvers resolvers;
	struct netd_begin begin;
	struct packet p;

	fake_take(NETD_MSG_BEGIN, &p);
	memcpy(&begin, p.payload, sizeof(begin));
	if (p.len != sizeof(begin) || p.fds_n != 3 || lseek(p.fds[2], 0, SEEK_SET) < 0 ||
			fd_read_all(p.fds[2], &policy) < 0) {
		return 94;
	}
	fake_take(NETD_MSG_RESOLVERS, &p);
	memcpy(&resolvers, p.payload, sizeof(resolvers));
	if (resolvers.n != p.fds_n || strlen(begin.token) < 32) {
		return 95;
	}
	if (strstr(policy.p, "gone.test")) {
		return 7;
	}
	if (strstr(policy.p, "fail.test")) {
		fake_fail();
	}
	fake_send(NETD_MSG_READY, NULL, 0, -1);
	fake_act(policy.p);
	/* Until the keeper goes. */
	(void)!packet_recv(NETD_CONTROL_FD, &p, -1);
	return 0;
}

/* The keeper's side. */
struct fixture {
	struct netpolicy policy;
	struct loop *loop;
	struct loop_source limit;
	unsigned int wanted; /* words until the loop ends; 0: it ends when the network is closed */
	unsigned int heard;
	char said[256]; /* the last one */
	int ns_fds[2];
	struct keeper_net *net;
};

static void heard_on_denied(void *ctx, const struct netd_denied *denied)
{
	struct fixture *f = ctx;

	(void)snprintf(f->said, sizeof(f->said), "%s", denied->what);
	if (++f->heard == f->wanted) {
		loop_stop(f->loop, 0);
	}
}

static void limit_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)src;
	(void)events;
	loop_stop(loop, 1);
}

static void fixture_make(struct fixture *f)
{
	struct error e = ERROR_INIT;

	*f = (struct fixture){ .wanted = 1 };
	netpolicy_init(&f->policy);
	ck_assert_int_eq(netpolicy_add(&f->policy, NETPOLICY_DENY, "*", &e), 0);
	f->loop = loop_new();
	f->ns_fds[0] = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	f->ns_fds[1] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	ck_assert(f->loop && f->ns_fds[0] >= 0 && f->ns_fds[1] >= 0);
	loop_timer(f->loop, &f->limit, clock_boot_ms() + LIMIT_MS, limit_on_end);
}

static void fixture_end(struct fixture *f)
{
	keeper_net_free(f->net);
	loop_free(f->loop);
	netpolicy_done(&f->policy);
	close(f->ns_fds[0]);
	close(f->ns_fds[1]);
}

static void allow(struct fixture *f, const char *target)
{
	struct error e = ERROR_INIT;

	ck_assert_msg(netpolicy_add(&f->policy, NETPOLICY_ALLOW, target, &e) == 0, "%s", e.text);
}

static int begin(struct fixture *f, struct error *e)
{
	const struct keeper_net_opts opts = {
		.policy = &f->policy,
		.binds_names = true,
		.token = TOKEN,
		.on_denied = heard_on_denied,
		.ctx = f,
	};

	f->net = keeper_net_new(&opts, e);
	ck_assert_msg(f->net != NULL, "%s", e->text);
	ck_assert_int_eq(keeper_net_begin(f->net, unit_fd, f->ns_fds[0], f->ns_fds[1], e), 0);
	return keeper_net_wait(f->net, e);
}

static void run(struct fixture *f)
{
	struct error e = ERROR_INIT;

	ck_assert_msg(begin(f, &e) == 0, "%s", e.text);
	ck_assert_int_eq(keeper_net_start(f->net, f->loop), 0);
	ck_assert_int_eq(loop_run(f->loop), 0);
}

START_TEST(a_policy_is_on_record_before_it_is_in_force)
{
	AUTO(egress) struct egress g = { .closed = NULL };
	struct error e = ERROR_INIT;
	struct fixture f;

	fixture_make(&f);
	allow(&f, "edit.test");
	run(&f);
	ck_assert_str_eq(f.said, "saved 0");
	ck_assert_msg(egress_load(unit_fd, &g, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(g.policy.n, 1);
	ck_assert_str_eq(g.policy.rules[0].target, "new.test");
	ck_assert(g.binds_names && !g.closed);
	ck_assert_str_eq(g.token, TOKEN);
	ck_assert_uint_eq(keeper_net_denied(f.net), 1);
	fixture_end(&f);
}
END_TEST

START_TEST(what_is_no_policy_changes_nothing)
{
	AUTO(egress) struct egress g = { .closed = NULL };
	autofree char *wanted = mem_printf("saved %d", EINVAL);
	struct error e = ERROR_INIT;
	struct fixture f;

	fixture_make(&f);
	allow(&f, "bad.test");
	run(&f);
	ck_assert_str_eq(f.said, wanted);
	ck_assert_int_eq(egress_load(unit_fd, &g, &e), 0);
	ck_assert_str_eq(g.policy.rules[0].target, "bad.test");
	fixture_end(&f);
}
END_TEST

/* A listener of this machine, and its port. */
static int listener(uint16_t *out_port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t n = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(fd, 8), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
	*out_port = ntohs(sa.sin_port);
	return fd;
}

START_TEST(an_address_of_this_machine_needs_a_rule_of_its_own)
{
	autofree char *refused = mem_printf("dialed 77 %d", EACCES);
	struct fixture f;

	fixture_make(&f);
	allow(&f, "dial.test");
	allow(&f, "*");
	run(&f);
	ck_assert_str_eq(f.said, refused);
	fixture_end(&f);
}
END_TEST

START_TEST(with_one_the_socket_comes)
{
	char word[8] = "";
	uint16_t port = 0;
	autoclose int fd = listener(&port);
	autofree char *target = mem_printf("127.0.0.1:%u", port);
	struct fixture f;

	fixture_make(&f);
	allow(&f, "dial.test");
	allow(&f, target);
	run(&f);
	ck_assert_str_eq(f.said, "dialed 77 0");
	autoclose int peer = accept(fd, NULL, NULL);

	ck_assert_int_eq(read(peer, word, sizeof(word)), 4);
	ck_assert_str_eq(word, "word");
	fixture_end(&f);
}
END_TEST

/* Each time with another token; and after too many times never again. */
START_TEST(a_netd_that_dies_is_started_again)
{
	AUTO(egress) struct egress second = { .closed = NULL };
	struct error e = ERROR_INIT;
	struct fixture f;

	fixture_make(&f);
	allow(&f, "die.test");
	run(&f);
	f.wanted = 3;
	ck_assert_int_eq(loop_run(f.loop), 0);
	ck_assert_int_eq(egress_load(unit_fd, &second, &e), 0);
	ck_assert_str_ne(second.token, TOKEN);
	ck_assert_ptr_null(second.closed);
	fixture_end(&f);
}
END_TEST

static void closed_on_look(struct loop *loop, struct loop_source *src, uint32_t events)
{
	AUTO(egress) struct egress g = { .closed = NULL };
	struct error e = ERROR_INIT;

	(void)events;
	if (egress_load(unit_fd, &g, &e) == 0 && g.closed) {
		loop_stop(loop, 0);
		return;
	}
	loop_timer(loop, src, clock_boot_ms() + 20, closed_on_look);
}

START_TEST(one_that_dies_too_often_leaves_it_closed)
{
	struct loop_source look = { .fd = -1 };
	struct fixture f;

	fixture_make(&f);
	f.wanted = 0;
	allow(&f, "die.test");
	loop_timer(f.loop, &look, clock_boot_ms(), closed_on_look);
	run(&f);
	ck_assert_uint_eq(f.heard, 6);
	fixture_end(&f);
}
END_TEST

/* It is ended for what it may not say. */
START_TEST(a_message_out_of_place_ends_it)
{
	struct loop_source look = { .fd = -1 };
	struct fixture f;

	fixture_make(&f);
	f.wanted = 0;
	allow(&f, "odd.test");
	loop_timer(f.loop, &look, clock_boot_ms(), closed_on_look);
	run(&f);
	ck_assert_uint_eq(f.heard, 0);
	fixture_end(&f);
}
END_TEST

static const struct {
	const char *target;
	enum errc code;
	const char *text;
} failures[] = {
	{ "fail.test", ERRC_UNSUPPORTED, "private network: no rules here" },
	{ "gone.test", ERRC_INTERNAL, "private network: netd ended with status 7" },
};

START_TEST(without_a_network_there_is_no_sandbox)
{
	struct error e = ERROR_INIT;
	struct fixture f;

	fixture_make(&f);
	allow(&f, failures[_i].target);
	ck_assert_int_eq(begin(&f, &e), -1);
	ck_assert_int_eq(e.code, failures[_i].code);
	ck_assert_str_eq(e.text, failures[_i].text);
	fixture_end(&f);
}
END_TEST

START_TEST(it_can_be_given_up_at_any_time)
{
	struct error e = ERROR_INIT;
	struct fixture f;

	fixture_make(&f);
	const struct keeper_net_opts opts = { .policy = &f.policy, .token = TOKEN };

	f.net = keeper_net_new(&opts, &e);
	ck_assert_ptr_nonnull(f.net);
	keeper_net_stop(f.net);
	keeper_net_stop(f.net);
	fixture_end(&f);
}
END_TEST

int main(int argc, char **argv)
{
	if (argc > 1 && str_eq(argv[1], "netd")) {
		return fake_main();
	}
	Suite *s = suite_create("keeper_net");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, a_policy_is_on_record_before_it_is_in_force);
	tcase_add_test(tc, what_is_no_policy_changes_nothing);
	tcase_add_test(tc, an_address_of_this_machine_needs_a_rule_of_its_own);
	tcase_add_test(tc, with_one_the_socket_comes);
	tcase_add_test(tc, a_netd_that_dies_is_started_again);
	tcase_add_test(tc, one_that_dies_too_often_leaves_it_closed);
	tcase_add_test(tc, a_message_out_of_place_ends_it);
	tcase_add_loop_test(tc, without_a_network_there_is_no_sandbox, 0, ARRAY_SIZE(failures));
	tcase_add_test(tc, it_can_be_given_up_at_any_time);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
