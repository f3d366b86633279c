/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../src/runtime/mount_internal.h"
#include "world.h"

START_TEST(volumes)
{
	struct world w;
	struct stat st;
	uid_t me = 0;

	world_make(&w, (enum surrounding)_i);
	/* Elsewhere another owner has no place inside but as nobody. */
	me = w.spec.map.mode == IDMAP_MAPPED ? 1234 : geteuid();
	make_dir("vol", me);
	make_dir("vol/sub", me);
	make_file("vol/sub/f", "text\n", me);
	ck_assert_int_eq(fchmodat(unit_fd, "vol", 0777, 0), 0);
	(void)add_bind(&w.spec, "vol", "/vol");
	add_bind(&w.spec, "vol", "/read/only")->read_only = true;
	struct spec_mount *m = add_bind(&w.spec, "vol", "/part");

	m->path = mem_strdup("sub");
	add_bind(&w.spec, "vol/sub/f", "/etc/f")->read_only = true;
	EXPECT_RUN(&w,
			"echo hi > /vol/new; cat /part/f /etc/f /read/only/new\n"
			"(echo x > /read/only/x) 2>&1 | grep -c Read-only\n"
			"(echo x > /etc/f) 2>&1 | grep -c Read-only",
			"text\ntext\nhi\n1\n1\n");
	ck_assert_int_eq(fstatat(unit_fd, "vol/new", &st, 0), 0);
	ck_assert_uint_eq(st.st_uid, me == 1234 ? me : idmap_outside(w.spec.map.uids, 1, 0));
	ck_assert_int_eq(fstatat(unit_fd, "vol/x", &st, 0), -1);
	world_end(&w);
}
END_TEST

/* "-v /:/host": nothing of the sandbox's own making is in it. */
START_TEST(volume_of_everything)
{
	struct world w;

	if (_i == AS_MAPPED && surroundings() > 1) {
		return; /* procfs and sysfs cannot be mapped: refusal_names_the_volume */
	}
	world_make(&w, (enum surrounding)_i);
	(void)add_bind(&w.spec, "/", "/host");
	EXPECT_RUN(&w, "ls -d /host/usr; ls /host/sys | grep -c 'tree\\|root\\|mask'",
			"/host/usr\n0\n");
	world_end(&w);
}
END_TEST

/* In a mount namespace of its own, whatever the machine has mounted. */
START_TEST(refusal_names_the_mount)
{
	struct world w;
	struct error e = ERROR_INIT;

	world_make(&w, AS_MAPPED);
	if (w.spec.map.mode != IDMAP_MAPPED) {
		world_end(&w);
		return;
	}
	ck_assert_int_eq(sys_unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	make_dir("vol", 0);
	make_dir("vol/sub", 0);
	autofree char *good = below("vol/sub");
	autofree char *bad = below("vol/sub/a b");

	ck_assert_int_eq(sys_mount("good", good, "tmpfs", 0, NULL), 0);
	ck_assert_int_eq(mkdir(bad, 0755), 0);
	ck_assert_int_eq(sys_mount("bad", bad, "proc", 0, NULL), 0);
	(void)add_bind(&w.spec, "vol", "/p");
	world_fails(&w, &e);
	ck_assert_msg(strstr(e.text, "/vol/sub/a b (proc) below it cannot be id-mapped") != NULL,
			"%s", e.text);
	ck_assert_int_ne(e.hint[0], '\0');
	world_end(&w);
}
END_TEST

START_TEST(refusal_names_the_volume)
{
	struct world w;
	struct error e = ERROR_INIT;

	world_make(&w, AS_MAPPED);
	if (w.spec.map.mode != IDMAP_MAPPED) {
		world_end(&w);
		return;
	}
	uint32_t tree = spec_add_tree(&w.spec, "/proc", SPEC_TREE_OWNER, true);
	struct spec_mount *m = spec_add_mount(&w.spec, SPEC_MOUNT_BIND, "/p");

	m->tree = tree;
	world_fails(&w, &e);
	ck_assert_ptr_nonnull(strstr(e.text, "/proc or a file system mounted below it"));
	world_end(&w);
}
END_TEST

START_TEST(mount_point_in_a_volume_is_not_made)
{
	struct world w;
	struct error e = ERROR_INIT;
	struct stat st;

	world_make(&w, (enum surrounding)_i);
	make_dir("vol", geteuid());
	(void)add_bind(&w.spec, "vol", "/vol");
	(void)add_bind(&w.spec, "vol", "/vol/missing/deep");
	world_fails(&w, &e);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(str_after(e.text, "mount point /vol/missing/deep: it is "));
	ck_assert_int_eq(fstatat(unit_fd, "vol/missing", &st, 0), -1);
	world_end(&w);
}
END_TEST

/* Where the read-only volume goes, by the way that its mount point is written. */
static const char *const inner_points[] = { "/w/a/b/hooks", "/link/hooks" };

/* Renaming a directory above a mount point would take the mount away. */
START_TEST(volume_in_a_volume_keeps_its_place)
{
	struct world w;
	struct stat st;

	world_make(&w, (enum surrounding)(_i / 2));
	const uid_t owner = w.spec.map.mode == IDMAP_SHARED ? idmap_outside(w.spec.map.uids, 1, 0)
							    : geteuid();

	make_dir("vol", owner);
	make_dir("vol/a", owner);
	make_dir("vol/a/c", owner);
	make_dir("vol/a/b", owner);
	make_dir("vol/a/b/hooks", owner);
	make_file("vol/a/b/hooks/h", "kept\n", owner);
	make_dir("other", owner);
	make_file("other/o", "other\n", owner);
	ck_assert_int_eq(symlinkat("/w/a/b", unit_fd, "layers/high/link"), 0);
	give("layers/high/link", root_on_disk(&w.spec.map));
	(void)add_bind(&w.spec, "vol", "/w");
	(void)add_bind(&w.spec, "other", "/w/a/c");
	add_bind(&w.spec, "vol/a/b/hooks", inner_points[_i % 2])->read_only = true;
	EXPECT_RUN(&w,
			"for d in a a/b a/b/hooks; do mv /w/$d /w/$d.x 2>&1 | grep -c busy; done\n"
			"mkdir -p /w/a/b/hooks; (echo evil >/w/a/b/hooks/h) 2>&1 | grep -c Read\n"
			"cat /w/a/b/hooks/h /w/a/c/o; echo new >/w/a/b/new; mv /w/a/b/new /w/a/b/n",
			"1\n1\n1\n1\nkept\nother\n");
	ck_assert_int_eq(fstatat(unit_fd, "vol/a/b/n", &st, 0), 0);
	world_end(&w);
}
END_TEST

/* Links of the image: CVE-2019-18837, CVE-2019-19921, CVE-2021-30465. */
static const struct {
	const char *link; /* in the image */
	const char *target;
	const char *dst;   /* where a volume goes; NULL: none */
	const char *error; /* part of the text; NULL: it starts */
} links[] = {
	{ "proc", "/etc", NULL, "mount /proc (fs)" },
	{ "sys", "/", NULL, "mount /sys (fs)" },
	{ "dev", "../../../..", NULL, "mount /dev (fs)" },
	{ "out", "/proc", "/out/sys", "file system of the kernel" },
	{ "out", "/dev", "/out/pts", "file system of the kernel" },
	{ "out", "../../../../../../..", "/out/canary", NULL },
	{ "out", "/nowhere/else", "/out/canary", NULL },
};

START_TEST(links_of_the_image)
{
	struct world w;
	struct error e = ERROR_INIT;
	autofree char *path = mem_printf("layers/high/%s", links[_i].link);

	world_make(&w, AS_MAPPED);
	ck_assert_int_eq(symlinkat(links[_i].target, unit_fd, path), 0);
	give(path, root_on_disk(&w.spec.map));
	make_dir("vol", geteuid());
	if (links[_i].dst) {
		(void)add_bind(&w.spec, "vol", links[_i].dst);
	}
	if (links[_i].error) {
		world_fails(&w, &e);
		ck_assert_msg(strstr(e.text, links[_i].error) != NULL, "%s", e.text);
	} else {
		world_launch(&w);
		ck_assert_int_ne(access("/canary", F_OK), 0);
		ck_assert_int_ne(access("/nowhere", F_OK), 0);
	}
	world_end(&w);
}
END_TEST

START_TEST(as_many_layers_as_allowed)
{
	struct world w;
	char name[32];
	char path[64];

	world_make(&w, AS_MAPPED);
	for (int i = 0; i < LIMIT_LAYERS - 1; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		snprintf(path, sizeof(path), "layers/%s", name);
		make_dir(path, root_on_disk(&w.spec.map));
		snprintf(path, sizeof(path), "layers/%s/both", name);
		make_file(path, name, root_on_disk(&w.spec.map));
		spec_add_lower(&w.spec, 0, name);
	}
	ck_assert_uint_eq(w.spec.lowers_n, LIMIT_LAYERS + 1);
	EXPECT_RUN(&w, "cat /both /below", "l126low\n");
	spec_add_lower(&w.spec, 0, name);
	struct error e = ERROR_INIT;

	world_fails(&w, &e);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	world_end(&w);
}
END_TEST

/* In a user namespace of its own: 0, or the line of what went wrong. */
static int old_overlay(const struct idmap *map)
{
	struct error e = ERROR_INIT;
	struct overlay o = { .lowers_n = 2 };
	const char *const paths[] = { "layers/low", "layers/high", "sandbox/upper",
		"sandbox/work" };
	int fds[4];
	int root = -1;

	if (sys_unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || idmap_write(map, getpid(), &e) < 0) {
		return __LINE__;
	}
	autofree char *stage = below("stage");

	if (sys_mount("stage", stage, "tmpfs", 0, NULL) < 0) {
		return __LINE__;
	}
	/* Descriptors of before belong to the other mount namespace. */
	autoclose int base = fd_open(unit_path, O_PATH | O_DIRECTORY, 0);
	autoclose int staging = fd_open(stage, O_PATH | O_DIRECTORY, 0);

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		fds[i] = fd_open_at(base, paths[i], O_PATH | O_DIRECTORY, 0);
	}
	o.lower_fds = fds;
	o.upper_fd = fds[2];
	o.work_fd = fds[3];
	if (overlay_mount_old(&o, staging, &root, &e) < 0) {
		return __LINE__;
	}
	AUTO(buf) struct buf b = BUF_INIT(64);

	if (file_read_at(root, "both", &b) < 0 || !str_eq(b.p, "high\n") ||
			file_write_at(root, "new", span_of("x"), false) < 0) {
		return __LINE__;
	}
	return faccessat(base, "sandbox/upper/new", F_OK, 0) < 0 ? __LINE__ : 0;
}

START_TEST(overlay_by_mount)
{
	struct world w;
	int status = 0;
	struct idmap map = {
		.mode = IDMAP_SINGLE,
		.uids_n = 1,
		.gids_n = 1,
		.uids = { { .outside = geteuid(), .count = 1 } },
		.gids = { { .outside = getegid(), .count = 1 } },
	};

	make_dir("stage", geteuid());
	world_make(&w, AS_MAPPED);
	if (w.spec.map.mode == IDMAP_SHARED) {
		return; /* another id owns the directories */
	}
	pid_t pid = fork();

	if (pid == 0) {
		_exit(old_overlay(&map) % 256);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	world_end(&w);
}
END_TEST

START_TEST(more_trees_than_a_packet_holds)
{
	struct world w;
	char dst[32];

	world_make(&w, AS_MAPPED);
	make_dir("vol", geteuid());
	ck_assert_int_eq(fchmodat(unit_fd, "vol", 0777, 0), 0);
	for (int i = 0; i < 20; i++) {
		snprintf(dst, sizeof(dst), "/v%d", i);
		(void)add_bind(&w.spec, "vol", dst);
	}
	EXPECT_RUN(&w, "echo x > /v0/x; cat /v19/x; ls -d /v* | wc -l", "x\n20\n");
	world_end(&w);
}
END_TEST

/* A mount namespace of the test's own. A descriptor of before belongs to the other one. */
static void private_mounts(void)
{
	ck_assert_int_eq(sys_unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(sys_mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	close(unit_fd);
	unit_fd = open(unit_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(unit_fd, 0);
}

/* A host with an odd mount table: many lines, a bound namespace, a mount on a deleted directory.
 * In a mount namespace of the test's own that still propagates, as hosts do. */
static void odd_mounts(void)
{
	autofree char *odd = below("odd");
	autofree char *ns = below("odd/ns");
	autofree char *gone = below("odd/gone");
	char name[32];

	make_dir("odd", 0);
	private_mounts();
	ck_assert_int_eq(sys_mount("none", "/", NULL, MS_REC | MS_SHARED, NULL), 0);
	ck_assert_int_eq(sys_mount("odd", odd, "tmpfs", 0, NULL), 0);
	for (int i = 0; i < 1500; i++) {
		snprintf(name, sizeof(name), "odd/%d", i);
		autofree char *path = below(name);

		make_dir(name, 0);
		ck_assert_int_eq(sys_mount(path, path, NULL, MS_BIND, NULL), 0);
	}
	make_file("odd/ns", "", 0);
	ck_assert_int_eq(sys_mount("/proc/self/ns/net", ns, NULL, MS_BIND, NULL), 0);
	make_dir("odd/gone", 0);
	make_dir("odd/0/x", 0);
	autofree char *x = below("odd/0/x");

	ck_assert_int_eq(sys_mount(x, gone, NULL, MS_BIND, NULL), 0);
	ck_assert_int_eq(rmdir(x), 0);
}

static size_t mounts_now(void)
{
	AUTO(buf) struct buf b = BUF_INIT(4U << 20);
	size_t n = 0;

	ck_assert_int_eq(file_read_at(AT_FDCWD, "/proc/self/mountinfo", &b), 0);
	for (size_t i = 0; i < b.n; i++) {
		n += b.p[i] == '\n';
	}
	return n;
}

START_TEST(odd_mount_tables)
{
	struct world w;
	size_t before = 0;

	odd_mounts();
	world_make(&w, (enum surrounding)_i);
	make_dir("vol", geteuid());
	make_dir("vol/in", geteuid());
	(void)add_bind(&w.spec, "vol", "/vol");
	(void)add_bind(&w.spec, "vol", "/vol/in");
	before = mounts_now();
	EXPECT_RUN(&w, "grep -c odd /proc/self/mountinfo", "0\n");
	/* Nothing that the sandbox mounted came back by propagation. */
	ck_assert_uint_eq(mounts_now(), before);
	world_end(&w);
}
END_TEST

/* What an outer container does to /proc. */
START_TEST(hidden_procfs_is_explained)
{
	struct world w;
	struct error e = ERROR_INIT;

	private_mounts();
	ck_assert_int_eq(sys_mount("hidden", "/proc/fs", "tmpfs", 0, NULL), 0);
	world_make(&w, (enum surrounding)_i);
	world_fails(&w, &e);
	ck_assert_int_eq(e.sysno, EPERM);
	ck_assert_ptr_nonnull(strstr(e.text, "mount /proc (fs): new proc"));
	ck_assert_ptr_nonnull(strstr(e.hint, "unmask"));
	world_end(&w);
}
END_TEST

/* A volume with mounts below it: read-only is all of it. */
START_TEST(read_only_with_submounts)
{
	struct world w;
	autofree char *sub = below("vol/sub");

	private_mounts();
	make_dir("vol", 0);
	make_dir("vol/sub", 0);
	ck_assert_int_eq(sys_mount("sub", sub, "tmpfs", 0, "mode=777"), 0);
	world_make(&w, (enum surrounding)_i);
	(void)add_bind(&w.spec, "vol", "/rw");
	add_bind(&w.spec, "vol", "/ro")->read_only = true;
	EXPECT_RUN(&w,
			"echo x > /rw/sub/x && echo written\n"
			"(echo y > /ro/sub/y) 2>&1 | grep -c Read-only\n"
			"grep ' /r[ow]/sub ' /proc/self/mountinfo | grep -c nosuid,nodev",
			"written\n1\n2\n");
	world_end(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("launch_mounts");
	TCase *tc = tcase_create("all");
	const int n = surroundings();

	if (!sandbox_is_possible()) {
		return 77;
	}
	unit_with_dir(tc);
	tcase_add_loop_test(tc, volumes, 0, n);
	tcase_add_loop_test(tc, volume_of_everything, 0, n);
	tcase_add_test(tc, refusal_names_the_mount);
	tcase_add_test(tc, refusal_names_the_volume);
	tcase_add_loop_test(tc, volume_in_a_volume_keeps_its_place, 0, 2 * n);
	tcase_add_loop_test(tc, mount_point_in_a_volume_is_not_made, 0, n);
	tcase_add_loop_test(tc, links_of_the_image, 0, ARRAY_SIZE(links));
	tcase_add_test(tc, as_many_layers_as_allowed);
	tcase_add_test(tc, overlay_by_mount);
	tcase_add_test(tc, more_trees_than_a_packet_holds);
	if (geteuid() == 0) {
		tcase_add_loop_test(tc, odd_mount_tables, 0, n);
		tcase_add_loop_test(tc, hidden_procfs_is_explained, 0, n);
		tcase_add_loop_test(tc, read_only_with_submounts, 0, n);
	}
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
