/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a plan through a mocked kernel, over an image of plain directories: the order of the
 * calls, and every call failing once.
 */
#include <errno.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/mountplan.h>
#include <osbx/str.h>

#include "../unit.h"
#include "mock_sys.h"

static int root_fd;
static int staging_fd;
static int tree_fds[2];
static int sys_fd;
static size_t round_n;

static void must_dir(int dir_fd, const char *name)
{
	ck_assert_msg(mkdirat(dir_fd, name, 0755) == 0, "%s", name);
}

static void must_file(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	ck_assert_msg(fd >= 0, "%s", name);
	close(fd);
}

static int must_open(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_PATH | O_CLOEXEC);

	ck_assert_msg(fd >= 0, "%s", name);
	return fd;
}

/* A new image, so that nothing of an earlier round is in the way: what procfs and sysfs would
 * have lies in the image itself. */
static void image_make(void)
{
	static const char *const dirs[] = { "root", "staging", "tree", "tree/sub", "root/proc",
		"root/proc/acpi", "root/proc/sys", "root/sys", "root/sys/fs", "root/sys/fs/cgroup",
		"root/sys/firmware", "root/etc" };
	static const char *const files[] = { "tree/file", "root/proc/kcore",
		"root/proc/sysrq-trigger", "root/etc/hosts", "root/etc/there" };
	char name[32];

	snprintf(name, sizeof(name), "round%zu", round_n++);
	must_dir(unit_fd, name);
	int fd = openat(unit_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		must_dir(fd, dirs[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		must_file(fd, files[i]);
	}
	root_fd = must_open(fd, "root");
	staging_fd = must_open(fd, "staging");
	tree_fds[0] = must_open(fd, "tree");
	tree_fds[1] = must_open(fd, "tree/file");
	sys_fd = must_open(fd, "tree/sub");
	close(fd);
}

static void image_close(void)
{
	close(root_fd);
	close(staging_fd);
	close(tree_fds[0]);
	close(tree_fds[1]);
	close(sys_fd);
}

static void spec_make(struct spec *s)
{
	spec_init(s);
	(void)spec_add_tree(s, "/tree", SPEC_TREE_OWNER, true);
	(void)spec_add_tree(s, "/file", SPEC_TREE_OWNER, false);
	s->cgroup_fd = 0;
	s->read_only = true;
	struct spec_mount *m = spec_add_mount(s, SPEC_MOUNT_FILE, "/etc/hosts");

	m->content = mem_strdup("127.0.0.1 localhost\n");
	m->mode = 0644;
	m = spec_add_mount(s, SPEC_MOUNT_BIND, "/new/volume");
	m->read_only = true;
	m = spec_add_mount(s, SPEC_MOUNT_BIND, "/etc/file");
	m->tree = 1;
	m = spec_add_mount(s, SPEC_MOUNT_BIND, "/sub");
	m->path = mem_strdup("sub");
	m = spec_add_mount(s, SPEC_MOUNT_TMPFS, "/tmp");
	m->mode = 01777;
	m->size = 4096;
	(void)!spec_add_mount(s, SPEC_MOUNT_DIR, "/new/data");
	(void)!spec_add_mount(s, SPEC_MOUNT_DIR, "/etc/there");
}

static int apply(const struct spec *s, struct error *e)
{
	AUTO(mountplan) struct mountplan p = { .n = 0 };
	const struct mount_ctx ctx = {
		.root_fd = root_fd,
		.staging_fd = staging_fd,
		.sys_fd = sys_fd,
		.tree_fds = tree_fds,
		.trees_n = ARRAY_SIZE(tree_fds),
	};

	ck_assert_int_eq(mountplan_build(s, &p, e), 0);
	return mountplan_apply(&p, &ctx, e);
}

static void mock_start(int fail_at, int errnum)
{
	mock_sys_reset();
	mock_sys_openat2_real = true;
	mock_sys_open_tree_real = true;
	mock_sys_fail_at = fail_at;
	mock_sys_errno = errnum;
}

static size_t fds_open(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++) {
		n += fcntl(fd, F_GETFD) >= 0;
	}
	return n;
}

/* Lines of the log that are no lookup and no building of a file system, all descriptors alike. */
static char *mounts_of_log(void)
{
	AUTO(buf) struct buf b = BUF_INIT(65536);

	for (int i = 1; i <= mock_sys_calls; i++) {
		const char *line = mock_sys_line(i);

		if (str_after(line, "openat2") || str_after(line, "fsconfig")) {
			continue;
		}
		while (*line) {
			const size_t n = strcspn(line, "#");

			ck_assert_int_eq(buf_append(&b, line, n), 0);
			line += n;
			if (*line == '#') {
				ck_assert_int_eq(buf_append_str(&b, "fd"), 0);
				line += 1 + strspn(line + 1, "0123456789");
			}
		}
		ck_assert_int_eq(buf_append_str(&b, "\n"), 0);
	}
	return buf_take(&b);
}

/* Line by line: libcheck's messages are bounded. */
static void expect_lines(const char *got, const char *want)
{
	for (int n = 1; *got || *want; n++) {
		const size_t got_n = strcspn(got, "\n");
		const size_t want_n = strcspn(want, "\n");

		ck_assert_msg(got_n == want_n && memcmp(got, want, got_n) == 0,
				"line %d is \"%.*s\", not \"%.*s\"", n, (int)got_n, got,
				(int)want_n, want);
		got += got_n + (got[got_n] == '\n');
		want += want_n + (want[want_n] == '\n');
	}
}

/* The calls of tests/golden/mountplan/calls.txt; OSBX_GOLDEN=write writes it anew. */
START_TEST(runs_the_rows_in_order)
{
	static const char path[] = OSBX_GOLDEN_DIR "/mountplan/calls.txt";
	AUTO(spec) struct spec s = { .trees_n = 0 };
	AUTO(buf) struct buf want = BUF_INIT(65536);
	const char *mode = getenv("OSBX_GOLDEN");
	struct error e = ERROR_INIT;

	image_make();
	spec_make(&s);
	mock_start(0, 0);
	ck_assert_msg(apply(&s, &e) == 0, "%s", e.text);
	autofree char *log = mounts_of_log();

	if (mode && str_eq(mode, "write")) {
		ck_assert_int_eq(file_write_at(AT_FDCWD, path, span_of(log), false), 0);
	}
	ck_assert_msg(file_read_at(AT_FDCWD, path, &want) == 0, "%s", path);
	expect_lines(log, want.p);
	image_close();
}
END_TEST

START_TEST(makes_what_is_not_mounted)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;
	char text[64] = "";
	struct stat st;

	image_make();
	spec_make(&s);
	mock_start(0, 0);
	ck_assert_int_eq(apply(&s, &e), 0);
	ck_assert_int_gt(readlinkat(root_fd, "dev/fd", text, sizeof(text) - 1), 0);
	ck_assert_str_eq(text, "/proc/self/fd");
	memset(text, 0, sizeof(text));
	ck_assert_int_gt(readlinkat(root_fd, "dev/ptmx", text, sizeof(text) - 1), 0);
	ck_assert_str_eq(text, "pts/ptmx");
	ck_assert_int_eq(fstatat(root_fd, "new/volume", &st, 0), 0);
	ck_assert(S_ISDIR(st.st_mode));
	ck_assert_int_eq(fstatat(root_fd, "new/data", &st, 0), 0);
	ck_assert(S_ISDIR(st.st_mode));
	ck_assert_int_eq(fstatat(root_fd, "etc/there", &st, 0), 0);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_int_eq(fstatat(root_fd, "etc/file", &st, 0), 0);
	ck_assert(S_ISREG(st.st_mode));
	int fd = openat(staging_fd, "file0", O_RDONLY | O_CLOEXEC);

	memset(text, 0, sizeof(text));
	ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
	ck_assert_str_eq(text, "127.0.0.1 localhost\n");
	close(fd);
	image_close();
}
END_TEST

START_TEST(host_network_binds_sys)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;

	image_make();
	spec_init(&s);
	s.network = SPEC_NETWORK_HOST;
	mock_start(0, 0);
	ck_assert_msg(apply(&s, &e) == 0, "%s", e.text);
	ck_assert_int_eq(mock_sys_count("fsopen sysfs"), 0);
	ck_assert_int_eq(mock_sys_count("mount_setattr fd 8000 set=f"), 1);
	ck_assert_int_eq(mock_sys_count("move_mount fd "), 1);
	image_close();
}
END_TEST

/* Curl's torture: each call fails once; the error names the row, nothing stays open. */
START_TEST(each_call_fails_once)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error none = ERROR_INIT;
	int calls = 0;

	image_make();
	spec_make(&s);
	mock_start(0, 0);
	ck_assert_int_eq(apply(&s, &none), 0);
	calls = mock_sys_calls;
	image_close();
	ck_assert_int_gt(calls, 100);
	for (int i = 1; i <= calls; i++) {
		struct error e = ERROR_INIT;

		image_make();
		size_t before = fds_open();

		mock_start(i, EIO);
		ck_assert_msg(apply(&s, &e) == -1, "call %d: %s", i, mock_sys_line(i));
		ck_assert_int_eq(e.code, ERRC_SYSTEM);
		ck_assert_int_eq(e.sysno, EIO);
		ck_assert(str_after(e.text, "mount /") || str_after(e.text, "mount point /"));
		ck_assert_uint_eq(fds_open(), before);
		image_close();
	}
}
END_TEST

static const struct {
	const char *type;
	bool hint;
} news[] = {
	{ "proc", true },
	{ "sysfs", true },
	{ "tmpfs", false },
};

/* A new procfs or sysfs is refused where parts of the old one are hidden. */
START_TEST(revealing_mounts_are_explained)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;
	char fsopen[32];
	int call = 0;

	image_make();
	spec_init(&s);
	mock_start(0, 0);
	ck_assert_int_eq(apply(&s, &e), 0);
	snprintf(fsopen, sizeof(fsopen), "fsopen %s", news[_i].type);
	for (int i = 1; i <= mock_sys_calls && call == 0; i++) {
		if (str_eq(mock_sys_line(i), fsopen)) {
			call = i;
		}
	}
	while (!str_after(mock_sys_line(call), "fsmount")) {
		call++;
	}
	image_close();
	image_make();
	mock_start(call, EPERM);
	ck_assert_int_eq(apply(&s, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, news[_i].type));
	ck_assert_int_eq(strstr(e.hint, "unmask") != NULL, news[_i].hint);
	image_close();
}
END_TEST

START_TEST(missing_mqueue_is_left_out)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;
	int call = 1;

	image_make();
	spec_init(&s);
	mock_start(0, 0);
	ck_assert_int_eq(apply(&s, &e), 0);
	while (!str_eq(mock_sys_line(call), "fsopen mqueue")) {
		call++;
	}
	image_close();
	image_make();
	mock_start(call, ENODEV);
	ck_assert_msg(apply(&s, &e) == 0, "%s", e.text);
	image_close();
}
END_TEST

START_TEST(old_kernel_is_named)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;
	int call = 1;

	image_make();
	spec_init(&s);
	mock_start(0, 0);
	ck_assert_int_eq(apply(&s, &e), 0);
	while (!str_after(mock_sys_line(call), "mount_setattr")) {
		call++;
	}
	image_close();
	image_make();
	mock_start(call, ENOSYS);
	ck_assert_int_eq(apply(&s, &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(e.text, "5.12"));
	image_close();
}
END_TEST

/* CVE-2019-19921, CVE-2023-28642, CVE-2026-41579. */
static const struct {
	const char *name;
	const char *target; /* NULL: a file */
} links[] = {
	{ "proc", "/etc" },
	{ "dev", "/etc" },
	{ "sys", "etc" },
	{ "proc", "/nowhere" },
	{ "dev", NULL },
};

START_TEST(links_of_the_image_are_refused)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	struct error e = ERROR_INIT;
	char want[32];

	image_make();
	ck_assert_int_eq(renameat(root_fd, links[_i].name, root_fd, "away") == 0 || errno == ENOENT,
			1);
	if (links[_i].target) {
		ck_assert_int_eq(symlinkat(links[_i].target, root_fd, links[_i].name), 0);
	} else {
		must_file(root_fd, links[_i].name);
	}
	spec_init(&s);
	mock_start(0, 0);
	ck_assert_int_eq(apply(&s, &e), -1);
	ck_assert_int_eq(e.code, ERRC_DENIED);
	snprintf(want, sizeof(want), "mount /%s (fs): ", links[_i].name);
	ck_assert_ptr_nonnull(str_after(e.text, want));
	image_close();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("mountapply");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, runs_the_rows_in_order);
	tcase_add_test(tc, makes_what_is_not_mounted);
	tcase_add_test(tc, host_network_binds_sys);
	tcase_add_test(tc, each_call_fails_once);
	tcase_add_loop_test(tc, revealing_mounts_are_explained, 0, ARRAY_SIZE(news));
	tcase_add_test(tc, missing_mqueue_is_left_out);
	tcase_add_test(tc, old_kernel_is_named);
	tcase_add_loop_test(tc, links_of_the_image_are_refused, 0, ARRAY_SIZE(links));
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
