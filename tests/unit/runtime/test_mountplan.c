/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mount plans of typical specs against tests/golden/mountplan. OSBX_GOLDEN=write in the
 * environment writes the files anew; look at the difference before you keep it.
 */
#include <errno.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/mountplan.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "../unit.h"

#define DUMP_BYTES 65536

static const struct idmap many_ids = {
	.mode = IDMAP_MAPPED,
	.setgroups = true,
	.uids_n = 1,
	.gids_n = 1,
	.uids = { { .outside = IDMAP_DEFAULT_FIRST, .count = IDMAP_SANDBOX_IDS } },
	.gids = { { .outside = IDMAP_DEFAULT_FIRST, .count = IDMAP_SANDBOX_IDS } },
};

static const struct idmap one_id = {
	.mode = IDMAP_SINGLE,
	.uids_n = 1,
	.gids_n = 1,
	.uids = { { .outside = 1000, .count = 1 } },
	.gids = { { .outside = 1000, .count = 1 } },
};

static void spec_base(struct spec *s)
{
	spec_init(s);
	s->map = many_ids;
	(void)spec_add_tree(s, "/store/layers", SPEC_TREE_CONTAINER, false);
	(void)spec_add_tree(s, "/store/sandbox", SPEC_TREE_CONTAINER, false);
	spec_add_lower(s, 0, "one");
}

static void change_none(struct spec *s)
{
	(void)s;
}

static void change_single(struct spec *s)
{
	s->map = one_id;
}

static void change_host_network(struct spec *s)
{
	s->network = SPEC_NETWORK_HOST;
}

static void change_cgroup(struct spec *s)
{
	s->cgroup_fd = 0;
}

static void change_cgroup_host_network(struct spec *s)
{
	s->cgroup_fd = 0;
	s->network = SPEC_NETWORK_HOST;
}

static void change_isolation(struct spec *s)
{
	s->isolation = true;
}

static void change_tty(struct spec *s)
{
	s->tty = true;
}

static void change_read_only(struct spec *s)
{
	struct spec_mount *m = spec_add_mount(s, SPEC_MOUNT_TMPFS, "/tmp");

	m->mode = 01777;
	s->read_only = true;
	s->shm_bytes = 1024;
}

static void add_volume(struct spec *s, const char *src, const char *dst, bool read_only)
{
	uint32_t tree = spec_add_tree(s, src, SPEC_TREE_OWNER, true);
	struct spec_mount *m = spec_add_mount(s, SPEC_MOUNT_BIND, dst);

	m->tree = tree;
	m->read_only = read_only;
}

static void change_mounts(struct spec *s)
{
	struct spec_mount *m = spec_add_mount(s, SPEC_MOUNT_FILE, "/etc/resolv.conf");

	m->content = mem_strdup("nameserver 192.0.2.1\n");
	m->mode = 0644;
	add_volume(s, "/home/alice/src", "/src", true);
	add_volume(s, "/home/alice/out", "/out", false);
	m = spec_add_mount(s, SPEC_MOUNT_BIND, "/usr/share/zoneinfo");
	m->tree = 0;
	m->path = mem_strdup("share/zoneinfo");
	m = spec_add_mount(s, SPEC_MOUNT_TMPFS, "/scratch");
	m->size = 65536;
	m->mode = 0755;
	m->exec_ok = true;
	m = spec_add_mount(s, SPEC_MOUNT_TMPFS, "/dev/shm");
	m->mode = 01777;
	(void)!spec_add_mount(s, SPEC_MOUNT_DIR, "/var/lib/data");
	(void)!spec_add_mount(s, SPEC_MOUNT_DIR, "/proc/data");
}

static const struct {
	const char *name;
	void (*change)(struct spec *s);
} rows[] = {
	{ "default", change_none },
	{ "single", change_single },
	{ "host-network", change_host_network },
	{ "cgroup", change_cgroup },
	{ "cgroup-host-network", change_cgroup_host_network },
	{ "isolation", change_isolation },
	{ "tty", change_tty },
	{ "read-only", change_read_only },
	{ "mounts", change_mounts },
};

START_TEST(golden)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	AUTO(mountplan) struct mountplan p = { .n = 0 };
	AUTO(buf) struct buf got = BUF_INIT(DUMP_BYTES);
	AUTO(buf) struct buf want = BUF_INIT(DUMP_BYTES);
	autofree char *path = mem_printf(OSBX_GOLDEN_DIR "/mountplan/%s.txt", rows[_i].name);
	const char *mode = getenv("OSBX_GOLDEN");
	struct error e = ERROR_INIT;

	spec_base(&s);
	rows[_i].change(&s);
	ck_assert_int_eq(mountplan_build(&s, &p, &e), 0);
	ck_assert_int_eq(mountplan_dump(&p, &got), 0);
	if (mode && str_eq(mode, "write")) {
		ck_assert_int_eq(file_write_at(AT_FDCWD, path, buf_span(&got), false), 0);
	}
	ck_assert_msg(file_read_at(AT_FDCWD, path, &want) == 0, "%s", path);
	ck_assert_str_eq(got.p, want.p);
}
END_TEST

static const char *const bad_points[] = {
	"",
	"data",
	"/",
	"//",
	"/.",
	"/a/..",
	"/proc",
	"/proc/1/root",
	"//proc//",
	"/sys",
	"/sys/fs",
	"/dev",
	"/dev/null",
	"/dev/./zero",
	"/dev/pts",
	"/dev/pts/0",
	"/dev/fd",
	"/dev/ptmx",
	"/a/../proc",
	"/sys/fs/cgroup",
};

START_TEST(points_of_its_own_are_refused)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	AUTO(mountplan) struct mountplan p = { .n = 0 };
	struct error e = ERROR_INIT;

	spec_base(&s);
	(void)!spec_add_mount(&s, SPEC_MOUNT_TMPFS, bad_points[_i]);
	ck_assert_int_eq(mountplan_build(&s, &p, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, bad_points[_i]));
	ck_assert_uint_eq(p.n, 0);
}
END_TEST

static const char *const good_points[] = {
	"/data",
	"/dev/shm",
	"/dev/mqueue",
	"/dev/fuse",
	"/procfs",
	"/system",
	"/.a",
	"/dev/ptsx",
};

START_TEST(other_points_are_taken)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	AUTO(mountplan) struct mountplan p = { .n = 0 };
	struct error e = ERROR_INIT;
	size_t seen = 0;

	spec_base(&s);
	(void)!spec_add_mount(&s, SPEC_MOUNT_TMPFS, good_points[_i]);
	/* Twice: the later one hides the earlier one, as with mount(8). */
	(void)!spec_add_mount(&s, SPEC_MOUNT_TMPFS, good_points[_i]);
	ck_assert_int_eq(mountplan_build(&s, &p, &e), 0);
	for (size_t i = 0; i < p.n; i++) {
		seen += str_eq(p.ops[i].dst, good_points[_i]);
	}
	ck_assert_uint_ge(seen, 2);
}
END_TEST

START_TEST(volumes_never_bring_devices_or_privilege)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	AUTO(mountplan) struct mountplan p = { .n = 0 };
	struct error e = ERROR_INIT;
	size_t seen = 0;

	spec_base(&s);
	change_mounts(&s);
	ck_assert_int_eq(mountplan_build(&s, &p, &e), 0);
	for (size_t i = 0; i < p.n; i++) {
		const uint32_t want = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

		if (p.ops[i].kind == MOUNT_TREE || p.ops[i].kind == MOUNT_FILE) {
			ck_assert_uint_eq(p.ops[i].attrs & want, want);
			seen++;
		}
	}
	ck_assert_uint_eq(seen, 4);
}
END_TEST

START_TEST(dump_is_bounded)
{
	AUTO(spec) struct spec s = { .trees_n = 0 };
	AUTO(mountplan) struct mountplan p = { .n = 0 };
	AUTO(buf) struct buf small = BUF_INIT(100);
	struct error e = ERROR_INIT;

	spec_base(&s);
	ck_assert_int_eq(mountplan_build(&s, &p, &e), 0);
	ck_assert_int_eq(mountplan_dump(&p, &small), -EMSGSIZE);
	mountplan_done(NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("mountplan");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, golden, 0, ARRAY_SIZE(rows));
	tcase_add_loop_test(tc, points_of_its_own_are_refused, 0, ARRAY_SIZE(bad_points));
	tcase_add_loop_test(tc, other_points_are_taken, 0, ARRAY_SIZE(good_points));
	tcase_add_test(tc, volumes_never_bring_devices_or_privilege);
	tcase_add_test(tc, dump_is_bounded);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
