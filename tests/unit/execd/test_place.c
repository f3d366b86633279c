/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <sys/wait.h>

#include <osbx/mem.h>

#include "../../../execd/outfile.h"
#include "../../../execd/place.h"
#include "../unit.h"

static struct strv env;
static struct files f;

/* The directory of the test is the root of a sandbox. */
static void sandbox_make(void)
{
	unit_dir_make();
	ck_assert_int_eq(strv_add(&env, "HERE=/dir"), 0);
	f = (struct files){
		.root_fd = unit_fd,
		.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.cwd = "/dir",
		.env = &env,
		.ids_max = UINT32_MAX,
		.user = { .uid = getuid(), .gid = getgid(), .home = mem_strdup("/home/u") },
	};
	ck_assert_int_eq(mkdirat(unit_fd, "dir", 0755), 0);
	umask(022);
}

static void sandbox_close(void)
{
	strv_done(&env);
	passwd_user_done(&f.user);
	close(f.proc_fd);
	unit_dir_close();
}

static void put(const char *name, const char *text)
{
	int fd = openat(unit_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void holds(const char *name, const char *text)
{
	char got[100] = "";
	int fd = openat(unit_fd, name, O_RDONLY);

	ck_assert_msg(fd >= 0, "%s", name);
	ck_assert_int_ge(read(fd, got, sizeof(got) - 1), 0);
	ck_assert_str_eq(got, text);
	close(fd);
}

static size_t entries(const char *path)
{
	size_t n = 0;
	DIR *dir = fdopendir(openat(unit_fd, path, O_RDONLY | O_DIRECTORY));

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir)) {
		n++;
	}
	closedir(dir);
	return n - 2;
}

static const struct {
	const char *given;
	const char *path;
} paths[] = {
	{ "/a/b", "/a/b" },
	{ "/a//b/", "/a/b" },
	{ "/a/./b/../c", "/a/c" },
	{ "/../..", "/" },
	{ "x", "/dir/x" },
	{ "../x", "/x" },
	{ ".", "/dir" },
	{ "~", "/home/u" },
	{ "~/x", "/home/u/x" },
	{ "$HERE/x", "/dir/x" },
	{ "${HOME}", "/home/u" },
	{ "$", "/dir/$" },
};

START_TEST(paths_of_clients)
{
	autofree char *path = NULL;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(place_path(&f, paths[_i].given, &path, &e), 0);
	ck_assert_str_eq(path, paths[_i].path);
}
END_TEST

START_TEST(no_paths)
{
	static const char *const bad[] = { "", "$NONE", "${", "/${}" };
	char *path = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error e = ERROR_INIT;

		ck_assert_int_eq(place_path(&f, bad[i], &path, &e), -1);
		ck_assert_int_eq(e.code, ERRC_INVALID);
	}
	ck_assert_ptr_null(path);
}
END_TEST

START_TEST(no_environment_of_another)
{
	autofree char *path = NULL;
	struct error e = ERROR_INIT;

	f.env = NULL;
	f.cwd = "/";
	ck_assert_int_eq(place_path(&f, "~/x", &path, &e), 0);
	ck_assert_str_eq(path, "/home/u/x");
	ck_assert_int_eq(place_path(&f, "$HERE", &path, &e), -1);
}
END_TEST

START_TEST(missing)
{
	AUTO(place) struct place p = PLACE_INIT;
	AUTO(place) struct place q = PLACE_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(place_open(&f, "/dir/no/thing", &p, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	error_clear(&e);
	ck_assert_int_eq(place_find(&f, "/dir/nothing", &p, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	error_clear(&e);
	ck_assert_int_eq(place_open_new(&f, "/dir/no/such/thing", &q, &e), 0);
	ck_assert_str_eq(q.missing, "no/such");
	ck_assert_str_eq(q.name, "thing");
	/* Somebody is faster, with a link. */
	ck_assert_int_eq(symlinkat("..", unit_fd, "dir/no"), 0);
	ck_assert_int_eq(place_make_dirs(&q, &e), -1);
	ck_assert_uint_eq(entries("."), 1);
}
END_TEST

START_TEST(links)
{
	AUTO(place) struct place p = PLACE_INIT;
	AUTO(place) struct place q = PLACE_INIT;
	AUTO(place) struct place r = PLACE_INIT;
	AUTO(place) struct place s = PLACE_INIT;
	struct error e = ERROR_INIT;

	put("dir/file", "x");
	ck_assert_int_eq(symlinkat("../link2", unit_fd, "dir/link1"), 0);
	ck_assert_int_eq(symlinkat("/dir/file", unit_fd, "link2"), 0);
	ck_assert_int_eq(symlinkat("/../..", unit_fd, "up"), 0);
	ck_assert_int_eq(symlinkat("new", unit_fd, "dir/dangling"), 0);
	ck_assert_int_eq(symlinkat("loop", unit_fd, "loop"), 0);
	ck_assert_int_eq(place_find(&f, "link1", &p, &e), 0);
	ck_assert_str_eq(p.path, "/dir/link1");
	ck_assert_str_eq(p.name, "file");
	ck_assert(S_ISREG(p.st.st_mode));
	/* Not out of the root. */
	ck_assert_int_eq(place_find(&f, "/up", &q, &e), 0);
	ck_assert(S_ISDIR(q.st.st_mode));
	ck_assert_str_eq(q.name, ".");
	ck_assert_int_eq(faccessat(q.fd, "dir", F_OK, 0), 0);
	ck_assert_int_eq(place_open(&f, "dangling", &r, &e), 0);
	ck_assert_int_eq(place_follow(&f, &r, &e), 0);
	ck_assert_int_eq(r.fd, -1);
	ck_assert_str_eq(r.name, "new");
	ck_assert_int_eq(place_find(&f, "/loop", &s, &e), -1);
	ck_assert_int_eq(e.sysno, ELOOP);
}
END_TEST

/* A link of one user to a file of another one. */
START_TEST(foreign_links)
{
	AUTO(place) struct place p = PLACE_INIT;
	struct error e = ERROR_INIT;

	put("mine", "x");
	put("theirs", "x");
	ck_assert_int_eq(symlinkat("mine", unit_fd, "to-mine"), 0);
	ck_assert_int_eq(symlinkat("theirs", unit_fd, "to-theirs"), 0);
	ck_assert_int_eq(symlinkat("new", unit_fd, "to-new"), 0);
	if (getuid() == 0) {
		ck_assert_int_eq(fchownat(unit_fd, "to-mine", 1, 1, AT_SYMLINK_NOFOLLOW), 0);
		ck_assert_int_eq(fchownat(unit_fd, "to-new", 1, 1, AT_SYMLINK_NOFOLLOW), 0);
		ck_assert_int_eq(fchownat(unit_fd, "to-theirs", 1, 1, AT_SYMLINK_NOFOLLOW), 0);
		ck_assert_int_eq(fchownat(unit_fd, "theirs", 1, 1, 0), 0);
	} else {
		/* Everything here is another one's. */
		f.user.uid = getuid() + 1;
	}
	ck_assert_int_eq(place_find(&f, "/to-theirs", &p, &e), 0);
	if (getuid() == 0) {
		ck_assert_int_eq(place_find(&f, "/to-mine", &p, &e), -1);
		ck_assert_int_eq(e.sysno, EACCES);
		error_clear(&e);
	}
	ck_assert_int_eq(place_find(&f, "/to-new", &p, &e), -1);
	ck_assert_int_eq(e.sysno, EACCES);
}
END_TEST

START_TEST(magic_links)
{
	AUTO(place) struct place p = PLACE_INIT;
	struct error e = ERROR_INIT;

	f.root_fd = open("/", O_PATH | O_DIRECTORY);
	ck_assert_int_eq(place_find(&f, "/proc/self/fd/0", &p, &e), -1);
	error_clear(&e);
	ck_assert_int_eq(place_find(&f, "/proc/self/root/etc/passwd", &p, &e), -1);
	error_clear(&e);
	ck_assert_int_eq(place_find(&f, "/proc/self/exe", &p, &e), -1);
	ck_assert_int_eq(e.sysno, ELOOP);
	close(f.root_fd);
}
END_TEST

static void out_open(const char *path, struct outfile *o)
{
	AUTO(place) struct place p = PLACE_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(place_open_new(&f, path, &p, &e), 0);
	ck_assert_int_eq(place_follow(&f, &p, &e), 0);
	ck_assert_int_eq(outfile_open(&f, &p, o, &e), 0);
	ck_assert_int_eq(outfile_write(o, "new", 3, &e), 0);
}

START_TEST(publishes)
{
	const struct attrs as_is = ATTRS_INIT;
	struct error e = ERROR_INIT;
	struct stat st;
	AUTO(outfile) struct outfile o = OUTFILE_INIT;
	AUTO(outfile) struct outfile again = OUTFILE_INIT;

	out_open("/a/b/c", &o);
	/* Not even a directory before the end. */
	ck_assert_uint_eq(entries("."), 1);
	ck_assert_int_eq(outfile_publish(&f, &o, &as_is, &e), 0);
	holds("a/b/c", "new");
	ck_assert_int_eq(fstatat(unit_fd, "a/b/c", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0755);
	ck_assert_uint_eq(entries("a/b"), 1);
	put("dir/old", "old");
	ck_assert_int_eq(fchmodat(unit_fd, "dir/old", 0640, 0), 0);
	out_open("/dir/old", &again);
	holds("dir/old", "old");
	ck_assert_int_eq(outfile_publish(&f, &again, &as_is, &e), 0);
	holds("dir/old", "new");
	ck_assert_int_eq(fstatat(unit_fd, "dir/old", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0640);
	ck_assert_uint_eq(entries("dir"), 1);
}
END_TEST

START_TEST(leaves_nothing)
{
	const struct attrs as_is = ATTRS_INIT;
	struct error e = ERROR_INIT;
	struct outfile o = OUTFILE_INIT;
	struct outfile late = OUTFILE_INIT;

	out_open("/dir/x", &o);
	outfile_done(&o);
	ck_assert_uint_eq(entries("dir"), 0);
	out_open("/dir/y", &late);
	put("dir/y", "first");
	ck_assert_int_eq(outfile_publish_new(&f, &late, &as_is, &e), -1);
	ck_assert_int_eq(e.sysno, EEXIST);
	outfile_done(&late);
	holds("dir/y", "first");
	ck_assert_uint_eq(entries("dir"), 1);
}
END_TEST

START_TEST(no_targets)
{
	static const char *const bad[] = { "/dir", "/", "/fifo" };

	ck_assert_int_eq(mkfifoat(unit_fd, "fifo", 0600), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		AUTO(place) struct place p = PLACE_INIT;
		AUTO(outfile) struct outfile o = OUTFILE_INIT;
		struct error e = ERROR_INIT;

		ck_assert_int_eq(place_open_new(&f, bad[i], &p, &e), 0);
		ck_assert_int_eq(place_follow(&f, &p, &e), 0);
		ck_assert_int_eq(outfile_open(&f, &p, &o, &e), -1);
	}
}
END_TEST

/* In a directory that is not writable a file that is gets the content in its place. */
static void in_place(void)
{
	AUTO(outfile) struct outfile o = OUTFILE_INIT;
	struct error e = ERROR_INIT;
	struct stat before;
	struct stat after;

	ck_assert_int_eq(fstatat(unit_fd, "dir/file", &before, 0), 0);
	out_open("/dir/file", &o);
	ck_assert(o.is_spool);
	holds("dir/file", "long content");
	ck_assert_int_eq(outfile_publish_same(&f, &o, &e), 0);
	holds("dir/file", "new");
	ck_assert_int_eq(fstatat(unit_fd, "dir/file", &after, 0), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	o.bytes = OUTFILE_SPOOL_MAX;
	ck_assert_int_eq(outfile_write(&o, "x", 1, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}

START_TEST(not_replaceable)
{
	int status = 0;

	put("dir/file", "long content");
	ck_assert_int_eq(fchmodat(unit_fd, "dir/file", 0666, 0), 0);
	ck_assert_int_eq(fchmodat(unit_fd, "dir", 0555, 0), 0);
	ck_assert_int_eq(fchmod(unit_fd, 0755), 0);
	/* Rights do not bind root. */
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (getuid() == 0) {
			ck_assert_int_eq(setresgid(65534, 65534, 65534), 0);
			ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
			f.user.uid = 65534;
		}
		in_place();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(fchmodat(unit_fd, "dir", 0755, 0), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("place");
	TCase *t = tcase_create("place");

	tcase_add_unchecked_fixture(t, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(t, sandbox_make, sandbox_close);
	tcase_add_loop_test(t, paths_of_clients, 0, ARRAY_SIZE(paths));
	tcase_add_test(t, no_paths);
	tcase_add_test(t, no_environment_of_another);
	tcase_add_test(t, missing);
	tcase_add_test(t, links);
	tcase_add_test(t, foreign_links);
	tcase_add_test(t, magic_links);
	tcase_add_test(t, publishes);
	tcase_add_test(t, leaves_nothing);
	tcase_add_test(t, no_targets);
	tcase_add_test(t, not_replaceable);
	suite_add_tcase(s, t);
	return unit_run(s);
}
