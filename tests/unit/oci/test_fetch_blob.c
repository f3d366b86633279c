/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>

#include <osbx/fd.h>

#include "../../../oci/fetch_blob.h"
#include "../unit.h"

#define SIZE 200000

static char content[SIZE];
static struct error e = ERROR_INIT;
static int part_fd = -1;
static int reader = -1;
static struct blob blob;

static void content_make(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	for (size_t i = 0; i < SIZE; i++) {
		content[i] = (char)(i * 7 + i / 251);
	}
	part_fd = open("part", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(part_fd, 0);
	ck_assert_int_eq(sigaction(SIGPIPE, &ignore, NULL), 0);
}

static void make(void)
{
	unit_dir_make();
	ck_assert_int_eq(fchdir(unit_fd), 0);
	content_make();
}

static void done(void)
{
	blob_close(&blob);
	fd_close(&reader);
	unit_dir_close();
}

/* The blob with its first bytes in the file already, and a pipe. */
static void begin(size_t held, uint64_t size)
{
	int pair[2] = { -1, -1 };

	ck_assert_int_eq(fd_write_all(part_fd, content, held), 0);
	ck_assert_int_eq(fd_pipe(pair, 0), 0);
	reader = pair[0];
	ck_assert_int_eq(fd_set_nonblock(reader, true), 0);
	ck_assert_msg(blob_open(&blob, part_fd, pair[1], size, &e) == 0, "%s", e.text);
}

static int give(size_t from, size_t n)
{
	return blob_write(&blob, (struct span){ .p = content + from, .n = n }, &e);
}

/* Read all that is in the pipe; it must go on at *at. */
static void drain(size_t *at)
{
	char bytes[4096];
	ssize_t n = 0;

	while ((n = read(reader, bytes, sizeof(bytes))) > 0) {
		ck_assert_int_eq(memcmp(bytes, content + *at, (size_t)n), 0);
		*at += (size_t)n;
	}
}

static void pass_all(void)
{
	size_t at = 0;

	for (int i = 0; i < 1000 && !blob_is_over(&blob); i++) {
		ck_assert_int_eq(blob_feed(&blob, &e), 0);
		drain(&at);
	}
	ck_assert_uint_eq(at, blob.have);
}

static void check_file(void)
{
	static char bytes[SIZE + 1];

	ck_assert_int_eq(pread(part_fd, bytes, sizeof(bytes), 0), SIZE);
	ck_assert_int_eq(memcmp(bytes, content, SIZE), 0);
}

START_TEST(bytes_go_to_file_and_pipe)
{
	begin(0, SIZE);
	blob_begin(&blob, 0);
	ck_assert_int_eq(give(0, SIZE - 5), 0);
	ck_assert(!blob_is_complete(&blob));
	ck_assert_int_eq(give(SIZE - 5, 5), 0);
	ck_assert(blob_is_complete(&blob));
	ck_assert(!blob_is_over(&blob));
	ck_assert_uint_eq(blob.gained, SIZE);
	check_file();
	pass_all();
	ck_assert(blob_is_over(&blob));
}
END_TEST

START_TEST(what_is_held_is_passed_on_first)
{
	begin(1000, SIZE);
	ck_assert_uint_eq(blob.have, 1000);
	ck_assert_uint_eq(blob.resumed, 1000);
	ck_assert(blob_is_hungry(&blob));
	blob_begin(&blob, 1000);
	ck_assert_int_eq(give(1000, SIZE - 1000), 0);
	ck_assert_uint_eq(blob.gained, SIZE - 1000);
	check_file();
	pass_all();
}
END_TEST

/* An answer from the start, in pieces that end before, at and behind what is held. */
START_TEST(a_whole_answer_skips_what_is_held)
{
	begin(1000, SIZE);
	blob_begin(&blob, 0);
	ck_assert_int_eq(give(0, 999), 0);
	ck_assert_int_eq(give(999, 1), 0);
	ck_assert_uint_eq(blob.have, 1000);
	ck_assert_uint_eq(blob.gained, 0);
	ck_assert_int_eq(give(1000, SIZE - 1000), 0);
	check_file();
	pass_all();
}
END_TEST

START_TEST(a_piece_across_what_is_held)
{
	begin(1000, SIZE);
	blob_begin(&blob, 500);
	ck_assert_int_eq(give(500, 1000), 0);
	ck_assert_uint_eq(blob.have, 1500);
	ck_assert_uint_eq(blob.gained, 500);
	blob_begin(&blob, 1500);
	ck_assert_int_eq(give(1500, SIZE - 1500), 0);
	check_file();
	pass_all();
}
END_TEST

START_TEST(more_than_the_size_is_refused)
{
	begin(0, 1000);
	blob_begin(&blob, 0);
	ck_assert_int_eq(give(0, 1001), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_uint_eq(blob.have, 0);
	error_clear(&e);
	ck_assert_int_eq(give(0, 1000), 0);
	ck_assert_int_eq(give(1000, 1), -1);
	ck_assert_str_eq(e.text, "more than its 1000 bytes");
}
END_TEST

START_TEST(a_part_that_is_too_long_is_begun_anew)
{
	begin(SIZE, SIZE - 1);
	ck_assert_uint_eq(blob.have, 0);
	ck_assert_uint_eq(blob.resumed, 0);
	ck_assert_int_eq(lseek(part_fd, 0, SEEK_END), 0);
}
END_TEST

START_TEST(a_complete_part_is_only_passed_on)
{
	begin(SIZE, SIZE);
	ck_assert(blob_is_complete(&blob));
	pass_all();
}
END_TEST

START_TEST(an_empty_blob)
{
	begin(0, 0);
	ck_assert(blob_is_over(&blob));
	ck_assert_int_eq(blob_feed(&blob, &e), 0);
}
END_TEST

START_TEST(a_full_pipe_is_not_waited_for)
{
	size_t at = 0;
	uint64_t fed = 0;

	begin(SIZE, SIZE);
	ck_assert_int_eq(blob_feed(&blob, &e), 0);
	fed = blob.fed;
	ck_assert_uint_gt(fed, 0);
	ck_assert_uint_lt(fed, SIZE);
	ck_assert_int_eq(blob_feed(&blob, &e), 0);
	ck_assert_uint_eq(blob.fed, fed);
	drain(&at);
	ck_assert_uint_eq(at, fed);
	ck_assert_int_eq(blob_feed(&blob, &e), 0);
	ck_assert_uint_gt(blob.fed, fed);
}
END_TEST

START_TEST(a_reader_that_has_gone)
{
	begin(SIZE, SIZE);
	fd_close(&reader);
	ck_assert_int_eq(blob_feed(&blob, &e), -1);
	ck_assert_int_eq(e.code, ERRC_SYSTEM);
	ck_assert_int_eq(e.sysno, EPIPE);
}
END_TEST

START_TEST(a_file_that_became_shorter)
{
	begin(SIZE, SIZE);
	ck_assert_int_eq(ftruncate(part_fd, 0), 0);
	ck_assert_int_eq(blob_feed(&blob, &e), -1);
	ck_assert_int_eq(e.sysno, EIO);
}
END_TEST

/* splice(2) refuses a socket, as it does some file systems. */
START_TEST(where_splice_does_not_work)
{
	int pair[2] = { -1, -1 };

	ck_assert_int_eq(fd_write_all(part_fd, content, SIZE), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	reader = pair[0];
	ck_assert_int_eq(fd_set_nonblock(reader, true), 0);
	ck_assert_int_eq(blob_open(&blob, part_fd, pair[1], SIZE, &e), 0);
	pass_all();
	ck_assert(blob_is_over(&blob));
}
END_TEST

START_TEST(without_a_pipe)
{
	ck_assert_int_eq(blob_open(&blob, part_fd, -1, SIZE, &e), 0);
	blob_begin(&blob, 0);
	ck_assert_int_eq(give(0, SIZE), 0);
	ck_assert(!blob_is_hungry(&blob));
	ck_assert(blob_is_over(&blob));
	check_file();
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	int pair[2] = { -1, -1 };

	ck_assert_int_eq(fd_pipe(pair, 0), 0);
	ck_assert_int_eq(blob_open(&blob, pair[0], pair[1], SIZE, &e), -1);
	ck_assert_int_eq(e.code, ERRC_SYSTEM);
	ck_assert_int_eq(fcntl(pair[0], F_GETFD), -1);
	ck_assert_int_eq(fcntl(pair[1], F_GETFD), -1);
}
END_TEST

START_TEST(a_full_disk)
{
	int full = open("/dev/full", O_RDWR | O_CLOEXEC);

	begin(0, SIZE);
	blob_begin(&blob, 0);
	ck_assert_int_eq(dup2(full, part_fd), part_fd);
	ck_assert_int_eq(give(0, 10), -1);
	ck_assert_int_eq(e.sysno, ENOSPC);
	close(full);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fetch_blob");
	TCase *tc = tcase_create("all");

	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, make, done);
	tcase_add_test(tc, bytes_go_to_file_and_pipe);
	tcase_add_test(tc, what_is_held_is_passed_on_first);
	tcase_add_test(tc, a_whole_answer_skips_what_is_held);
	tcase_add_test(tc, a_piece_across_what_is_held);
	tcase_add_test(tc, more_than_the_size_is_refused);
	tcase_add_test(tc, a_part_that_is_too_long_is_begun_anew);
	tcase_add_test(tc, a_complete_part_is_only_passed_on);
	tcase_add_test(tc, an_empty_blob);
	tcase_add_test(tc, a_full_pipe_is_not_waited_for);
	tcase_add_test(tc, a_reader_that_has_gone);
	tcase_add_test(tc, a_file_that_became_shorter);
	tcase_add_test(tc, where_splice_does_not_work);
	tcase_add_test(tc, without_a_pipe);
	tcase_add_test(tc, what_is_no_file_is_refused);
	tcase_add_test(tc, a_full_disk);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
