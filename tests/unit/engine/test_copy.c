/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/copy.h>
#include <osbx/pax.h>
#include <osbx/str.h>

#include "fake_keeper.h"

static int stream_fd = -1;

static int copy(struct fake *f, struct sandbox_copy c, uint64_t *out_left_out, struct error *e)
{
	autofree char *outside = c.outside ? mem_printf("%s/%s", unit_path, c.outside) : NULL;

	c.outside = outside;
	c.stream_fd = stream_fd;
	*out_left_out = 0;
	return sandbox_copy(&f->dirs, &f->id, &c, out_left_out, e);
}

static void file_put(const char *name, const char *text)
{
	int fd = openat(unit_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void file_is(const char *name, const char *want)
{
	char got[64] = "";
	int fd = openat(unit_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(read(fd, got, sizeof(got) - 1), 0);
	ck_assert_str_eq(got, want);
	close(fd);
}

static void report(int fd, struct copy_report r)
{
	r.magic = COPY_REPORT_MAGIC;
	CHECK(fd_write_all(fd, &r, sizeof(r)) == 0);
}

/* The sandbox side of it, for a root that is a directory of the test's. */
static void serve_truly(int sock, struct packet *p)
{
	AUTO(execd_process) struct execd_process process = { .caps = 0 };
	struct copy_result result = { .left_out = 0 };
	struct copy_report r = { .left_out = 0 };

	fake_process(p, &process);
	CHECK(process.copy && process.argv.n == EXECD_COPY_ARGS && p->fds_n == 4);
	CHECK(strcmp(process.cwd, "/") == 0);
	uint64_t flags = 0;

	CHECK(str_to_u64(process.argv.v[1], COPY_FLAGS, &flags) == 0);
	bool pack = strcmp(process.argv.v[0], EXECD_COPY_PACK) == 0;
	const struct copy_opts opts = {
		.root_fd = openat(unit_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC),
		.path = process.argv.v[2],
		.flags = (unsigned int)flags,
		.stream_fd = p->fds[pack ? 2 : 1],
	};

	fake_started(sock);
	(void)!(pack ? copy_pack(&opts, &result, &r.error) : copy_unpack(&opts, &result, &r.error));
	r.left_out = result.left_out;
	report(p->fds[3], r);
	packet_done(p);
}

START_TEST(both_ways)
{
	struct fake f;
	struct error e = ERROR_INIT;
	uint64_t left_out = 0;

	ck_assert_int_eq(mkdirat(unit_fd, "root", 0755), 0);
	file_put("mine", "content");
	fake_start(&f, serve_truly);
	int r = copy(&f, (struct sandbox_copy){ .in = true, .inside = "there", .outside = "mine" },
			&left_out, &e);

	ck_assert_msg(r == 0, "%s", e.text);
	fake_end(&f);
	file_is("root/there", "content");
	fake_start(&f, serve_truly);
	r = copy(&f, (struct sandbox_copy){ .inside = "/there", .outside = "back" }, &left_out, &e);
	ck_assert_msg(r == 0, "%s", e.text);
	fake_end(&f);
	file_is("back", "content");
}
END_TEST

START_TEST(streams)
{
	struct fake f;
	struct error e = ERROR_INIT;
	uint64_t left_out = 0;

	ck_assert_int_eq(mkdirat(unit_fd, "root", 0755), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "root/d", 0755), 0);
	file_put("root/d/f", "content");
	fake_start(&f, serve_truly);
	ck_assert_int_eq(copy(&f, (struct sandbox_copy){ .inside = "/d" }, &left_out, &e), 0);
	fake_end(&f);
	ck_assert_int_eq(lseek(stream_fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "root/e", 0755), 0);
	fake_start(&f, serve_truly);
	ck_assert_int_eq(copy(&f, (struct sandbox_copy){ .in = true, .inside = "/e" }, &left_out,
					 &e),
			0);
	fake_end(&f);
	file_is("root/e/d/f", "content");
}
END_TEST

/* Who was first to fail is told, whatever that did to the stream of the other. */
START_TEST(whose_error)
{
	struct fake f;
	struct error e = ERROR_INIT;
	uint64_t left_out = 0;
	struct sandbox_copy c = { .in = _i == 0, .inside = "/none/x", .outside = "mine" };

	ck_assert_int_eq(mkdirat(unit_fd, "root", 0755), 0);
	file_put("mine", "content");
	fake_start(&f, serve_truly);
	ck_assert_int_eq(copy(&f, c, &left_out, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "/none"));
	ck_assert_int_eq(e.sysno, ENOENT);
	fake_end(&f);
}
END_TEST

static void serve_liar(int sock, struct packet *p)
{
	struct pax_entry entry = { .type = PAX_SYMLINK, .name = "d", .target = "../outside" };
	struct copy_report r = { .left_out = 0 };

	fake_started(sock);
	CHECK(pax_write_header(p->fds[2], &entry) == 0);
	entry = (struct pax_entry){ .type = PAX_FILE, .name = "d/x" };
	CHECK(pax_write_header(p->fds[2], &entry) == 0);
	CHECK(pax_write_end(p->fds[2]) == 0);
	report(p->fds[3], r);
	packet_done(p);
}

START_TEST(stream_that_leads_elsewhere)
{
	struct fake f;
	struct error e = ERROR_INIT;
	struct stat st;
	uint64_t left_out = 0;

	ck_assert_int_eq(mkdirat(unit_fd, "outside", 0755), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "to", 0755), 0);
	fake_start(&f, serve_liar);
	ck_assert_int_eq(copy(&f, (struct sandbox_copy){ .inside = "/d", .outside = "to" },
					 &left_out, &e),
			-1);
	ck_assert_int_eq(e.code, ERRC_CONFLICT);
	ck_assert_int_lt(fstatat(unit_fd, "outside/x", &st, 0), 0);
	fake_end(&f);
}
END_TEST

static void serve_rude(int sock, struct packet *p)
{
	struct copy_report r = { .left_out = 5 };

	fake_started(sock);
	(void)error_set(&r.error, ERRC_INVALID, "clear \033[2J the screen");
	report(p->fds[3], r);
	packet_done(p);
}

START_TEST(text_of_the_other_side)
{
	struct fake f;
	struct error e = ERROR_INIT;
	uint64_t left_out = 0;

	fake_start(&f, serve_rude);
	ck_assert_int_eq(copy(&f, (struct sandbox_copy){ .inside = "/d" }, &left_out, &e), -1);
	ck_assert_str_eq(e.text, "clear ?[2J the screen");
	ck_assert_uint_eq(left_out, 5);
	fake_end(&f);
}
END_TEST

static void serve_killed(int sock, struct packet *p)
{
	fake_started(sock);
	packet_done(p);
	fake_ended(sock, 137);
}

static void serve_half_report(int sock, struct packet *p)
{
	fake_started(sock);
	CHECK(fd_write_all(p->fds[3], "half", 4) == 0);
	packet_done(p);
	fake_ended(sock, 137);
}

START_TEST(other_side_is_killed)
{
	struct fake f;
	struct error e = ERROR_INIT;
	uint64_t left_out = 0;

	fake_start(&f, _i == 0 ? serve_killed : serve_half_report);
	ck_assert_int_eq(copy(&f, (struct sandbox_copy){ .inside = "/d" }, &left_out, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "137"));
	fake_end(&f);
}
END_TEST

static void serve_paused(int sock, struct packet *p)
{
	struct error e = ERROR_INIT;

	packet_done(p);
	(void)error_set(&e, ERRC_CONFLICT, "sandbox is paused");
	fake_answer(sock, CTL_MSG_FAILED, &e, sizeof(e));
}

START_TEST(refused)
{
	struct fake f;
	struct error e = ERROR_INIT;
	uint64_t left_out = 0;

	fake_start(&f, serve_paused);
	ck_assert_int_eq(copy(&f, (struct sandbox_copy){ .inside = "/d" }, &left_out, &e), -1);
	ck_assert_str_eq(e.text, "sandbox is paused");
	fake_end(&f);
}
END_TEST

static void stream_open(void)
{
	unit_dir_make();
	stream_fd = openat(unit_fd, "stream", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(stream_fd, 0);
}

static void stream_close(void)
{
	close(stream_fd);
	unit_dir_close();
}

int main(void)
{
	Suite *s = suite_create("copy");
	TCase *tc = tcase_create("all");

	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, stream_open, stream_close);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, both_ways);
	tcase_add_test(tc, streams);
	tcase_add_loop_test(tc, whose_error, 0, 2);
	tcase_add_test(tc, stream_that_leads_elsewhere);
	tcase_add_test(tc, text_of_the_other_side);
	tcase_add_loop_test(tc, other_side_is_killed, 0, 2);
	tcase_add_test(tc, refused);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
