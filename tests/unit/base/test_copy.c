/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <osbx/copy.h>
#include <osbx/fd.h>
#include <osbx/pax.h>
#include <osbx/str.h>

#include "../unit.h"

static int stream_fd = -1;

/* from/ and to/ are two machines with roots of their own. */
static int from_fd = -1;
static int to_fd = -1;

static int dir_open(const char *name)
{
	ck_assert_int_eq(mkdirat(unit_fd, name, 0755), 0);
	int fd = openat(unit_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void sides_open(void)
{
	unit_dir_make();
	(void)umask(022);
	from_fd = dir_open("from");
	to_fd = dir_open("to");
	stream_fd = memfd_create("stream", MFD_CLOEXEC);
	ck_assert_int_ge(stream_fd, 0);
}

static void sides_close(void)
{
	close(stream_fd);
	close(from_fd);
	close(to_fd);
	unit_dir_close();
}

static void ignore(int signo)
{
	const struct sigaction sa = { .sa_handler = SIG_IGN };

	ck_assert_int_eq(sigaction(signo, &sa, NULL), 0);
}

static void file_put(int dir_fd, const char *name, const char *text, mode_t mode)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static void file_is(int dir_fd, const char *name, const char *text)
{
	char got[64] = "";
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	ck_assert_msg(fd >= 0, "%s: %s", name, strerror(errno));
	ck_assert_int_ge(read(fd, got, sizeof(got) - 1), 0);
	ck_assert_str_eq(got, text);
	close(fd);
}

static bool is_there(int dir_fd, const char *name)
{
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int try_pack(const char *path, unsigned int flags, struct copy_result *r, struct error *e)
{
	const struct copy_opts opts = {
		.root_fd = from_fd, .path = path, .flags = flags, .stream_fd = stream_fd
	};

	return copy_pack(&opts, r, e);
}

static void pack(const char *path, unsigned int flags)
{
	struct copy_result r;
	struct error e = ERROR_INIT;

	ck_assert_msg(try_pack(path, flags, &r, &e) == 0, "%s", e.text);
}

static int try_unpack(const char *path, unsigned int flags, struct copy_result *r, struct error *e)
{
	const struct copy_opts opts = {
		.root_fd = to_fd, .path = path, .flags = flags, .stream_fd = stream_fd
	};

	ck_assert_int_eq(lseek(stream_fd, 0, SEEK_SET), 0);
	return copy_unpack(&opts, r, e);
}

static void unpack(const char *path, unsigned int flags)
{
	struct copy_result r;
	struct error e = ERROR_INIT;

	ck_assert_msg(try_unpack(path, flags, &r, &e) == 0, "%s", e.text);
}

static struct error unpack_refused(const char *path, unsigned int flags)
{
	struct copy_result r;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(try_unpack(path, flags, &r, &e), -1);
	return e;
}

/* An entry of a stream that nobody of ours has made. */
static void entry_put(enum pax_type type, const char *name, const char *target)
{
	struct pax_entry entry = {
		.type = type, .mode = 06777, .uid = geteuid(), .gid = getegid()
	};
	bool is_file = type == PAX_FILE;

	memcpy(entry.name, name, strlen(name));
	if (target && !is_file) {
		memcpy(entry.target, target, strlen(target));
	}
	entry.size = is_file ? strlen(target) : 0;
	ck_assert_int_eq(pax_write_header(stream_fd, &entry), 0);
	if (is_file) {
		ck_assert_int_eq(fd_write_all(stream_fd, target, strlen(target)), 0);
		ck_assert_int_eq(pax_write_padding(stream_fd, entry.size), 0);
	}
}

static void end_put(void)
{
	ck_assert_int_eq(pax_write_end(stream_fd), 0);
}

static void tree_make(void)
{
	ck_assert_int_eq(mkdirat(from_fd, "d", 0755), 0);
	ck_assert_int_eq(mkdirat(from_fd, "d/e", 0755), 0);
	file_put(from_fd, "d/f", "f", 0640);
	file_put(from_fd, "d/e/g", "g", 04755);
	ck_assert_int_eq(linkat(from_fd, "d/f", from_fd, "d/e/h", 0), 0);
	ck_assert_int_eq(symlinkat("/etc", from_fd, "d/l"), 0);
	ck_assert_int_eq(fchmodat(from_fd, "d/e", 0500, 0), 0);
}

static const struct {
	const char *from;
	const char *to;
	const char *made; /* where d/f is then */
} places[] = {
	{ "/d", "/", "d/f" },
	{ "/d", "/new", "new/f" },
	{ "/d", "/new/", "new/f" },
	{ "/d/", "/there", "there/d/f" },
	{ "/d/.", "/there", "there/f" },
	{ "/d/.", "/new", "new/f" },
	{ "/d/e/..", "/new", "new/f" },
	{ "/", "/there", "there/d/f" },
	{ "/d/f", "/there", "there/f" },
	{ "/d/f", "/there/name", "there/name" },
	{ "/d/f", "/there/file", "there/file" },
	{ "/d/f", "/link", "there/file" },
	{ "/d/f", "/dangling", "there/none" },
	{ "/d/f", "/dirlink", "there/f" },
	{ "/d", "/dirlink/x", "there/x/f" },
	{ "/d/f", "/../../there/up", "there/up" },
};

START_TEST(where_it_goes)
{
	tree_make();
	ck_assert_int_eq(mkdirat(to_fd, "there", 0755), 0);
	file_put(to_fd, "there/file", "old", 0600);
	ck_assert_int_eq(symlinkat("/there/file", to_fd, "link"), 0);
	ck_assert_int_eq(symlinkat("there/none", to_fd, "dangling"), 0);
	ck_assert_int_eq(symlinkat("../there", to_fd, "dirlink"), 0);
	pack(places[_i].from, 0);
	unpack(places[_i].to, 0);
	file_is(to_fd, places[_i].made, "f");
}
END_TEST

static const struct {
	const char *from;
	const char *to;
} no_places[] = {
	{ "/d/f", "/none/" },
	{ "/d/f", "/none/name" },
	{ "/d", "/file" },
	{ "/d", "/file/x" },
	{ "/d/f", "/file/" },
	{ "/d/f", "/loop" },
	{ "/d/f", "/none/.." },
	{ "/d/e/g", "/has-dir" },
	{ "/d", "/has-file" },
};

START_TEST(where_it_does_not_go)
{
	tree_make();
	file_put(to_fd, "file", "old", 0600);
	ck_assert_int_eq(symlinkat("loop", to_fd, "loop"), 0);
	ck_assert_int_eq(mkdirat(to_fd, "has-dir", 0755), 0);
	ck_assert_int_eq(mkdirat(to_fd, "has-dir/g", 0755), 0);
	ck_assert_int_eq(mkdirat(to_fd, "has-file", 0755), 0);
	file_put(to_fd, "has-file/d", "old", 0600);
	pack(no_places[_i].from, 0);
	ck_assert_int_ne(unpack_refused(no_places[_i].to, 0).code, ERRC_OK);
	file_is(to_fd, "file", "old");
	file_is(to_fd, "has-file/d", "old");
}
END_TEST

START_TEST(what_it_keeps)
{
	struct stat a;
	struct stat b;
	char target[8] = "";

	tree_make();
	pack("/d", 0);
	unpack("/d", 0);
	ck_assert_int_eq(fstatat(to_fd, "d/e", &a, 0), 0);
	ck_assert_uint_eq(a.st_mode & 07777, 0500);
	ck_assert_int_eq(fstatat(to_fd, "d/e/g", &a, 0), 0);
	ck_assert_uint_eq(a.st_mode & 07777, 0755);
	ck_assert_int_eq(fstatat(to_fd, "d/f", &a, 0), 0);
	ck_assert_int_eq(fstatat(to_fd, "d/e/h", &b, 0), 0);
	ck_assert_uint_eq(a.st_mode & 07777, 0640);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	ck_assert_int_gt(readlinkat(to_fd, "d/l", target, sizeof(target)), 0);
	ck_assert_str_eq(target, "/etc");
	/* Again, over itself. */
	unpack("/", 0);
	file_is(to_fd, "d/e/h", "f");
}
END_TEST

START_TEST(set_id_bits)
{
	struct stat st;
	const mode_t want[] = { 0755, 06777, 0777 };
	const unsigned int flags[] = { 0, COPY_ARCHIVE, COPY_ARCHIVE | COPY_PLAIN };

	entry_put(PAX_FILE, "s", "s");
	end_put();
	unpack("/", flags[_i]);
	ck_assert_int_eq(fstatat(to_fd, "s", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, want[_i]);
}
END_TEST

static const char *const bad_names[] = { "/abs", "..", "a/../b", "a/..", "../a" };

START_TEST(bad_name)
{
	entry_put(PAX_FILE, bad_names[_i], "x");
	end_put();
	ck_assert_int_eq(unpack_refused("/", 0).code, ERRC_DENIED);
	ck_assert_int_eq(unpack_refused("/", COPY_ANY).code, ERRC_DENIED);
	ck_assert(!is_there(to_fd, "a/../b") && !is_there(unit_fd, "a"));
}
END_TEST

START_TEST(other_top)
{
	entry_put(PAX_DIR, "a", NULL);
	entry_put(PAX_FILE, _i == 0 ? "ab/x" : "b", "x");
	end_put();
	ck_assert_int_eq(unpack_refused("/", 0).code, ERRC_DENIED);
	unpack("/", COPY_ANY);
	file_is(to_fd, _i == 0 ? "ab/x" : "b", "x");
}
END_TEST

/* A link that the stream brings leads nowhere for what follows. */
START_TEST(through_a_link)
{
	file_put(unit_fd, "outside", "old", 0600);
	entry_put(PAX_DIR, "a", NULL);
	entry_put(PAX_SYMLINK, "a/l", unit_path);
	if (_i == 0) {
		entry_put(PAX_FILE, "a/l/new", "x");
	} else if (_i == 1) {
		entry_put(PAX_DIR, "a/l", NULL);
	} else if (_i == 2) {
		entry_put(PAX_HARDLINK, "a/h", "a/l/outside");
	} else {
		entry_put(PAX_DIR, "a/l/new/deeper", NULL);
	}
	end_put();
	ck_assert_int_eq(unpack_refused("/", 0).code, ERRC_CONFLICT);
	ck_assert_int_eq(unpack_refused("/", COPY_ANY).code, ERRC_CONFLICT);
	ck_assert(!is_there(unit_fd, "new") && !is_there(to_fd, "a/h"));
}
END_TEST

/* The link itself is replaced. */
START_TEST(over_a_link)
{
	char target[160];

	file_put(unit_fd, "outside", "old", 0600);
	snprintf(target, sizeof(target), "%s/outside", unit_path);
	entry_put(PAX_DIR, "a", NULL);
	entry_put(PAX_SYMLINK, "a/l", target);
	entry_put(PAX_FILE, "a/l", "new");
	end_put();
	unpack("/", 0);
	file_is(unit_fd, "outside", "old");
	file_is(to_fd, "a/l", "new");
}
END_TEST

static const char *const bad_targets[] = { "/etc/passwd", "../outside", "a/../../outside", "b/x",
	"a" };

START_TEST(bad_hard_link)
{
	file_put(unit_fd, "outside", "old", 0600);
	ck_assert_int_eq(mkdirat(to_fd, "b", 0755), 0);
	file_put(to_fd, "b/x", "x", 0600);
	entry_put(PAX_DIR, "a", NULL);
	entry_put(PAX_HARDLINK, "a/h", bad_targets[_i]);
	end_put();
	ck_assert_int_ne(unpack_refused("/", 0).code, ERRC_OK);
	ck_assert(!is_there(to_fd, "a/h"));
}
END_TEST

/* What a name of another file had keeps its content. */
START_TEST(file_is_made_anew)
{
	file_put(to_fd, "kept", "old", 0600);
	ck_assert_int_eq(linkat(to_fd, "kept", to_fd, "f", 0), 0);
	entry_put(PAX_FILE, "f", "new");
	end_put();
	unpack("/", 0);
	file_is(to_fd, "kept", "old");
	file_is(to_fd, "f", "new");
}
END_TEST

START_TEST(left_out)
{
	struct copy_result r;
	struct error e = ERROR_INIT;

	tree_make();
	ck_assert_int_eq(mkfifoat(from_fd, "d/fifo", 0600), 0);
	ck_assert_int_eq(try_pack("/d", 0, &r, &e), 0);
	ck_assert_uint_eq(r.left_out, 1);
	ck_assert_int_eq(try_pack("/d/fifo", 0, &r, &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNSUPPORTED);
}
END_TEST

START_TEST(source_link)
{
	struct stat st;

	file_put(from_fd, "f", "f", 0600);
	ck_assert_int_eq(symlinkat("/f", from_fd, "l"), 0);
	pack("/l", _i ? COPY_FOLLOW : 0);
	unpack("/", 0);
	ck_assert_int_eq(fstatat(to_fd, "l", &st, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert(_i ? S_ISREG(st.st_mode) : S_ISLNK(st.st_mode));
}
END_TEST

START_TEST(holes_stay)
{
	struct stat st;
	int fd = openat(from_fd, "s", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_eq(ftruncate(fd, 8 << 20), 0);
	ck_assert_int_eq(pwrite(fd, "x", 1, 4 << 20), 1);
	close(fd);
	pack("/s", 0);
	unpack("/s", 0);
	ck_assert_int_eq(fstatat(to_fd, "s", &st, 0), 0);
	ck_assert_int_eq(st.st_size, 8 << 20);
	ck_assert_int_lt(st.st_blocks, 2048);
	fd = openat(to_fd, "s", O_RDONLY | O_CLOEXEC);
	char byte = 0;

	ck_assert_int_eq(pread(fd, &byte, 1, 4 << 20), 1);
	ck_assert_int_eq(byte, 'x');
	close(fd);
}
END_TEST

START_TEST(reader_that_is_gone)
{
	int fds[2];
	struct copy_result r;
	struct error e = ERROR_INIT;

	tree_make();
	ck_assert_int_eq(fd_pipe(fds, 0), 0);
	close(fds[0]);
	ignore(SIGPIPE);
	const struct copy_opts opts = { .root_fd = from_fd, .path = "/d", .stream_fd = fds[1] };

	ck_assert_int_eq(copy_pack(&opts, &r, &e), -1);
	ck_assert(r.stream);
	close(fds[1]);
}
END_TEST

START_TEST(stream_that_ends)
{
	struct copy_result r;
	struct error e = ERROR_INIT;

	entry_put(PAX_FILE, "f", "data");
	if (_i == 0) {
		ck_assert_int_eq(ftruncate(stream_fd, 514), 0);
	} else if (_i == 1) {
		ck_assert_int_eq(ftruncate(stream_fd, 0), 0);
	}
	ck_assert_int_eq(try_unpack("/", 0, &r, &e), -1);
	ck_assert(r.stream);
}
END_TEST

START_TEST(disk_that_is_full)
{
	const struct rlimit limit = { .rlim_cur = 2, .rlim_max = 2 };
	struct copy_result r;
	struct error e = ERROR_INIT;

	entry_put(PAX_FILE, "f", "data");
	end_put();
	ignore(SIGXFSZ);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(try_unpack("/", 0, &r, &e), -1);
	ck_assert_int_eq(e.sysno, EFBIG);
	ck_assert(!r.stream);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("copy");
	TCase *tc = tcase_create("copy");

	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, sides_open, sides_close);
	tcase_add_loop_test(tc, where_it_goes, 0, ARRAY_SIZE(places));
	tcase_add_loop_test(tc, where_it_does_not_go, 0, ARRAY_SIZE(no_places));
	tcase_add_test(tc, what_it_keeps);
	tcase_add_loop_test(tc, set_id_bits, 0, 3);
	tcase_add_loop_test(tc, bad_name, 0, ARRAY_SIZE(bad_names));
	tcase_add_loop_test(tc, other_top, 0, 2);
	tcase_add_loop_test(tc, through_a_link, 0, 4);
	tcase_add_test(tc, over_a_link);
	tcase_add_loop_test(tc, bad_hard_link, 0, ARRAY_SIZE(bad_targets));
	tcase_add_test(tc, file_is_made_anew);
	tcase_add_test(tc, left_out);
	tcase_add_loop_test(tc, source_link, 0, 2);
	tcase_add_test(tc, holes_stay);
	tcase_add_test(tc, reader_that_is_gone);
	tcase_add_loop_test(tc, stream_that_ends, 0, 3);
	tcase_add_test(tc, disk_that_is_full);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
