/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/packet.h>

#include "../unit.h"

#define HEAD 16

static int pair[2];

static void pair_make(void)
{
	ck_assert_int_eq(fd_seqpacket_pair(pair), 0);
}

static void pair_close(void)
{
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

/* Number of open descriptors. */
static int fds_count(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++) {
		n += fcntl(fd, F_GETFD) >= 0;
	}
	return n;
}

/* Send raw bytes with n copies of descriptor 0. */
static void send_raw(const void *bytes, size_t len, size_t n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 32)];
	} control = { 0 };
	struct packet copy = { 0 };
	struct iovec iov = { .iov_base = &copy, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	const int zeros[32] = { 0 };

	memcpy(&copy, bytes, len);
	if (n > 0) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		ck_assert_ptr_nonnull(c);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n);
		memcpy(CMSG_DATA(c), zeros, sizeof(int) * n);
	}
	ck_assert_int_eq(sendmsg(pair[0], &msg, 0), (ssize_t)len);
}

START_TEST(round_trip)
{
	struct packet p;
	struct packet q = { 0 };
	struct stat sent;
	struct stat got;

	packet_init(&p, 77);
	ck_assert_int_eq(packet_put(&p, "hello", 5), 0);
	ck_assert_int_eq(packet_put(&p, " you", 4), 0);
	ck_assert_int_eq(packet_put_fd(&p, pair[1]), 0);
	ck_assert_int_eq(packet_send(pair[0], &p), 0);
	ck_assert_int_eq(packet_recv(pair[1], &q, 0), 1);
	ck_assert_uint_eq(q.type, 77);
	ck_assert_uint_eq(q.len, 9);
	ck_assert_mem_eq(q.payload, "hello you", 9);
	ck_assert_uint_eq(q.fds_n, 1);
	ck_assert_int_eq(fcntl(q.fds[0], F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fstat(pair[1], &sent), 0);
	ck_assert_int_eq(fstat(q.fds[0], &got), 0);
	ck_assert_uint_eq(sent.st_ino, got.st_ino);
	int fd = q.fds[0];

	packet_done(&q);
	ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
	ck_assert_uint_eq(q.fds_n, 0);
	packet_done(&q);
}
END_TEST

START_TEST(largest_packet)
{
	static const char bytes[PACKET_PAYLOAD_MAX];
	struct packet p;
	struct packet q = { 0 };
	int before = fds_count();

	packet_init(&p, 1);
	ck_assert_int_eq(packet_put(&p, bytes, PACKET_PAYLOAD_MAX), 0);
	ck_assert_int_eq(packet_put(&p, bytes, 1), -EMSGSIZE);
	ck_assert_int_eq(packet_put(&p, bytes, UINT32_MAX), -EMSGSIZE);
	ck_assert_int_eq(packet_put(&p, NULL, 0), 0);
	for (int i = 0; i < PACKET_FDS_MAX; i++) {
		ck_assert_int_eq(packet_put_fd(&p, 0), 0);
	}
	ck_assert_int_eq(packet_put_fd(&p, 0), -EMSGSIZE);
	ck_assert_int_eq(packet_send(pair[0], &p), 0);
	ck_assert_int_eq(packet_recv(pair[1], &q, -1), 1);
	ck_assert_uint_eq(q.len, PACKET_PAYLOAD_MAX);
	ck_assert_uint_eq(q.fds_n, PACKET_FDS_MAX);
	/* Taken by somebody: not closed. */
	int mine = TAKE_FD(q.fds[3]);

	packet_done(&q);
	ck_assert_int_eq(fds_count(), before + 1);
	fd_close(&mine);
}
END_TEST

/* What a hostile peer may send: {bytes sent, field of the head, value, descriptors}. */
static const struct bad {
	size_t len;
	size_t at;
	size_t width;
	uint32_t value;
	size_t fds;
} bad[] = {
	{ .len = 1 },
	{ .len = HEAD - 1, .fds = 1 },
	{ .len = HEAD, .at = 0, .width = 2, .value = PACKET_VERSION + 1 },
	{ .len = HEAD, .at = 4, .width = 4, .value = 1 },
	{ .len = HEAD + 4, .at = 4, .width = 4, .value = 3 },
	{ .len = HEAD + 4, .at = 4, .width = 4, .value = 5 },
	{ .len = HEAD + 4, .at = 4, .width = 4, .value = UINT32_MAX },
	{ .len = HEAD, .at = 8, .width = 4, .value = 1 },
	{ .len = HEAD, .at = 8, .width = 4, .value = 1, .fds = 2 },
	{ .len = HEAD, .fds = 1 },
	{ .len = HEAD, .at = 8, .width = 4, .value = 9, .fds = 9 },
	{ .len = HEAD, .at = 8, .width = 4, .value = 8, .fds = 9 },
	{ .len = HEAD, .at = 8, .width = 4, .value = 30, .fds = 30 },
	{ .len = HEAD + PACKET_PAYLOAD_MAX + 1,
			.at = 4,
			.width = 4,
			.value = PACKET_PAYLOAD_MAX + 1,
			.fds = 3 },
	{ .len = HEAD + PACKET_PAYLOAD_MAX + 1, .at = 4, .width = 4, .value = PACKET_PAYLOAD_MAX },
};

START_TEST(bad_packets_leave_nothing_behind)
{
	const struct bad *b = &bad[_i];
	struct packet p;
	struct packet q = { .type = 99 };
	int before = fds_count();

	packet_init(&p, 1);
	memcpy((char *)&p + b->at, &b->value, b->width);
	send_raw(&p, b->len, b->fds);
	ck_assert_int_eq(packet_recv(pair[1], &q, 0), -EBADMSG);
	ck_assert_uint_eq(q.type, 99);
	ck_assert_int_eq(fds_count(), before);
	/* The channel itself still works. */
	packet_init(&p, 2);
	ck_assert_int_eq(packet_send(pair[0], &p), 0);
	ck_assert_int_eq(packet_recv(pair[1], &q, 0), 1);
	ck_assert_uint_eq(q.type, 2);
}
END_TEST

START_TEST(end_of_file)
{
	struct packet q = { .type = 99 };

	fd_close(&pair[0]);
	ck_assert_int_eq(packet_recv(pair[1], &q, -1), 0);
	ck_assert_int_eq(packet_recv(pair[1], &q, 0), 0);
	ck_assert_uint_eq(q.type, 99);
}
END_TEST

START_TEST(last_words_survive_unread_packets)
{
	struct packet p;
	struct packet q = { 0 };

	/* The peer says something and goes, with a packet of ours unread: ECONNRESET. */
	packet_init(&p, 5);
	ck_assert_int_eq(packet_send(pair[1], &p), 0);
	packet_init(&p, 6);
	ck_assert_int_eq(packet_send(pair[0], &p), 0);
	fd_close(&pair[0]);
	ck_assert_int_eq(packet_recv(pair[1], &q, -1), 1);
	ck_assert_uint_eq(q.type, 6);
	ck_assert_int_eq(packet_recv(pair[1], &q, -1), 0);
}
END_TEST

START_TEST(send_to_nobody)
{
	struct packet p;

	packet_init(&p, 1);
	fd_close(&pair[1]);
	ck_assert_int_eq(packet_send(pair[0], &p), -EPIPE);
}
END_TEST

static void on_alarm(int sig)
{
	(void)sig;
}

START_TEST(deadlines)
{
	struct packet q;
	int64_t start_ms = clock_boot_ms();
	struct sigaction act = { .sa_handler = on_alarm };
	struct itimerval often = {
		.it_value = { .tv_usec = 5000 },
		.it_interval = { .tv_usec = 5000 },
	};

	ck_assert_int_eq(packet_recv(pair[1], &q, 0), -EAGAIN);
	ck_assert_int_eq(packet_recv(pair[1], &q, start_ms), -ETIMEDOUT);
	ck_assert_int_eq(packet_recv(pair[1], &q, 1), -ETIMEDOUT);
	/* Signals neither shorten nor prolong the wait. */
	ck_assert_int_eq(sigaction(SIGALRM, &act, NULL), 0);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
	ck_assert_int_eq(packet_recv(pair[1], &q, start_ms + 60), -ETIMEDOUT);
	ck_assert_int_ge(clock_boot_ms() - start_ms, 60);
	ck_assert_int_lt(clock_boot_ms() - start_ms, 2000);
}
END_TEST

START_TEST(waits_for_a_late_packet)
{
	struct packet p;
	struct packet q;
	pid_t pid = fork();

	if (pid == 0) {
		packet_init(&p, 3);
		(void)usleep(20000);
		_exit(packet_send(pair[0], &p) == 0 ? 0 : 1);
	}
	ck_assert_int_eq(packet_recv(pair[1], &q, clock_boot_ms() + 10000), 1);
	ck_assert_uint_eq(q.type, 3);
}
END_TEST

START_TEST(not_a_socket)
{
	struct packet q;
	int pipe_fds[2];

	ck_assert_int_eq(packet_recv(-1, &q, -1), -EBADF);
	ck_assert_int_eq(fd_pipe(pipe_fds, 0), 0);
	ck_assert_int_eq(packet_recv(pipe_fds[0], &q, -1), -ENOTSOCK);
	fd_close(&pipe_fds[0]);
	fd_close(&pipe_fds[1]);
}
END_TEST

START_TEST(negative_descriptor_aborts)
{
	struct packet p;

	packet_init(&p, 1);
	ck_assert_int_eq(packet_put_fd(&p, -1), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("packet");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, pair_make, pair_close);
	tcase_add_test(tc, round_trip);
	tcase_add_test(tc, largest_packet);
	tcase_add_loop_test(tc, bad_packets_leave_nothing_behind, 0, ARRAY_SIZE(bad));
	tcase_add_test(tc, end_of_file);
	tcase_add_test(tc, last_words_survive_unread_packets);
	tcase_add_test(tc, send_to_nobody);
	tcase_add_test(tc, deadlines);
	tcase_add_test(tc, waits_for_a_late_packet);
	tcase_add_test(tc, not_a_socket);
	tcase_add_test_raise_signal(tc, negative_descriptor_aborts, SIGABRT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
