/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of the child: their order, and each of them against a mocked kernel.
 */
#include <errno.h>
#include <poll.h>
#include <sys/wait.h>

#include <osbx/clock.h>
#include <osbx/execd_proto.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../src/runtime/init_internal.h"
#include "../unit.h"
#include "mock_sys.h"

/* A child of the test: context, spec and the parent's end of the channel. */
struct child {
	struct spec spec;
	struct mountplan plan;
	struct init_ctx c;
	int parent;
	int tree_fds[16];
	int lower_fds[2];
};

static void child_done(struct child *t)
{
	fd_close(&t->parent);
	fd_close(&t->c.sock);
	spec_done(&t->spec);
}
AUTO_DEFINE(child, struct child, child_done);

#define CHILD_INIT                               \
	{                                        \
		.parent = -1, .c = {.sock = -1 } \
	}

static void child_make(struct child *t, enum idmap_mode mode)
{
	int pair[2];

	*t = (struct child){ .parent = -1 };
	spec_init(&t->spec);
	t->spec.map.mode = mode;
	t->spec.map.setgroups = true;
	ck_assert_int_eq(fd_seqpacket_pair(pair), 0);
	t->parent = pair[0];
	t->c = (struct init_ctx){
		.spec = &t->spec,
		.plan = &t->plan,
		.deadline_ms = clock_boot_ms() + 2000,
		.stage = INIT_STAGE_CLONED,
		.sock = pair[1],
		.control_fd = -1,
		.staging_fd = unit_fd,
		.sys_fd = -1,
		.root_fd = unit_fd,
		.upper_fd = -1,
		.work_fd = -1,
		.tree_fds = t->tree_fds,
		.lower_fds = t->lower_fds,
	};
	for (size_t i = 0; i < ARRAY_SIZE(t->tree_fds); i++) {
		t->tree_fds[i] = -1;
	}
	mock_sys_reset();
}

/* Directories of a store in the test's own: layers/one, sandbox/upper, sandbox/work. */
static void store_make(struct child *t)
{
	static const char *const dirs[] = { "layers", "layers/one", "sandbox", "sandbox/upper",
		"sandbox/work" };
	char path[160];

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		ck_assert_int_eq(mkdirat(unit_fd, dirs[i], 0755), 0);
	}
	snprintf(path, sizeof(path), "%s/layers", unit_path);
	(void)spec_add_tree(&t->spec, path, SPEC_TREE_CONTAINER, false);
	snprintf(path, sizeof(path), "%s/sandbox", unit_path);
	(void)spec_add_tree(&t->spec, path, SPEC_TREE_CONTAINER, false);
	spec_add_lower(&t->spec, 0, "one");
}

START_TEST(order_is_pinned)
{
	static const char *const names[] = { "namespaces", "private mounts", "host name", "session",
		"id maps", "sources", "ids", "parent", "cgroup", "staging", "trees", "root",
		"mounts", "go", "execd" };

	ck_assert_uint_eq(init_steps_n, ARRAY_SIZE(names));
	for (size_t i = 0; i < init_steps_n; i++) {
		ck_assert_str_eq(init_steps[i].name, names[i]);
	}
}
END_TEST

START_TEST(mounts_become_private)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_SINGLE);
	ck_assert_int_eq(init_step_private(&t.c, &e), 0);
	ck_assert_str_eq(mock_sys_log, "mount - / - 44000 -\n");
}
END_TEST

START_TEST(namespaces_and_what_refuses_them)
{
	static const struct {
		int errnum;
		const char *hint;
	} rows[] = {
		{ EACCES, "AppArmor" },
		{ EPERM, "AppArmor" },
		{ ENOSPC, "max_mnt_namespaces" },
	};
	AUTO(child) struct child t = CHILD_INIT;
	struct error none = ERROR_INIT;

	child_make(&t, IDMAP_SINGLE);
	ck_assert_int_eq(init_step_namespaces(&t.c, &none), 0);
	ck_assert_str_eq(mock_sys_log, "unshare c020000\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error e = ERROR_INIT;

		mock_sys_reset();
		mock_sys_fail_at = 1;
		mock_sys_errno = rows[i].errnum;
		ck_assert_int_eq(init_step_namespaces(&t.c, &e), -1);
		ck_assert_ptr_nonnull(strstr(e.hint, rows[i].hint));
	}
}
END_TEST

START_TEST(sources_are_opened_by_the_callers_ids)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_SUBID);
	store_make(&t);
	mock_sys_openat2_real = true;
	ck_assert_msg(init_step_sources(&t.c, &e) == 0, "%s", e.text);
	ck_assert_int_ge(t.c.upper_fd, 0);
	ck_assert_int_ge(t.c.work_fd, 0);
	ck_assert_int_ge(t.lower_fds[0], 0);
	/* No clone: nothing of it is bound. */
	ck_assert_int_eq(mock_sys_count("open_tree"), 0);
	ck_assert_int_eq(init_step_trees(&t.c, &e), 0);
	ck_assert_int_eq(mock_sys_count("move_mount"), 0);
}
END_TEST

START_TEST(bound_trees_are_cloned_first)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_SUBID);
	store_make(&t);
	uint32_t tree = spec_add_tree(&t.spec, unit_path, SPEC_TREE_OWNER, true);
	struct spec_mount *m = spec_add_mount(&t.spec, SPEC_MOUNT_BIND, "/data");

	m->tree = tree;
	mock_sys_openat2_real = true;
	mock_sys_open_tree_real = true;
	ck_assert_msg(init_step_sources(&t.c, &e) == 0, "%s", e.text);
	ck_assert_int_eq(mock_sys_count("open_tree cwd "), 1);
	ck_assert_int_eq(init_step_trees(&t.c, &e), 0);
	ck_assert_int_eq(mock_sys_count("move_mount"), 1);
	ck_assert_int_eq(faccessat(unit_fd, "tree2", F_OK, 0), 0);
}
END_TEST

START_TEST(mapped_trees_are_the_parents)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_MAPPED);
	store_make(&t);
	ck_assert_int_eq(init_step_sources(&t.c, &e), 0);
	ck_assert_int_eq(mock_sys_calls, 0);
	ck_assert_int_eq(t.c.upper_fd, -1);
	for (size_t i = 0; i < 2; i++) {
		t.tree_fds[i] = open(t.spec.trees[i].path, O_PATH | O_CLOEXEC);
	}
	mock_sys_openat2_real = true;
	ck_assert_msg(init_step_trees(&t.c, &e) == 0, "%s", e.text);
	ck_assert_int_eq(mock_sys_count("move_mount"), 2);
	ck_assert_int_ge(t.c.upper_fd, 0);
	ck_assert_int_ge(t.lower_fds[0], 0);
}
END_TEST

START_TEST(changed_source_is_refused)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_SINGLE);
	store_make(&t);
	t.spec.trees[1].fd = unit_fd;
	mock_sys_openat2_real = true;
	ck_assert_int_eq(init_step_sources(&t.c, &e), -1);
	ck_assert_int_eq(e.code, ERRC_CONFLICT);
	ck_assert_ptr_nonnull(strstr(e.text, "/sandbox changed while being mounted"));
}
END_TEST

START_TEST(missing_source_is_named)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_SINGLE);
	store_make(&t);
	spec_add_lower(&t.spec, 0, "gone");
	mock_sys_openat2_real = true;
	ck_assert_int_eq(init_step_sources(&t.c, &e), -1);
	ck_assert_int_eq(e.sysno, ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "/layers/gone"));
}
END_TEST

START_TEST(ids_are_taken_in_this_order)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_SUBID);
	ck_assert_int_eq(init_send(t.parent, INIT_MSG_IDS_DONE, NULL, 0), 0);
	ck_assert_int_eq(init_step_maps(&t.c, &e), 0);
	ck_assert_int_eq(t.c.stage, INIT_STAGE_IDS);
	ck_assert_int_eq(mock_sys_calls, 0);
	ck_assert_int_eq(init_step_ids(&t.c, &e), 0);
	ck_assert_str_eq(mock_sys_log, "setgroups 0\nsetresgid 0\nsetresuid 0\n");
}
END_TEST

START_TEST(single_id_keeps_its_groups)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_SINGLE);
	t.spec.map.setgroups = false;
	ck_assert_int_eq(init_step_ids(&t.c, &e), 0);
	ck_assert_str_eq(mock_sys_log, "setresgid 0\nsetresuid 0\n");
}
END_TEST

static void send_trees(const struct child *t, enum init_msg msg, uint32_t n)
{
	int fds[PACKET_FDS_MAX];

	for (uint32_t i = 0; i < n; i++) {
		fds[i] = unit_fd;
	}
	ck_assert_int_eq(init_send(t->parent, msg, fds, n), 0);
}

START_TEST(trees_come_in_several_packets)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_MAPPED);
	for (int i = 0; i < 11; i++) {
		(void)spec_add_tree(&t.spec, "/", SPEC_TREE_AS_IS, false);
	}
	send_trees(&t, INIT_MSG_IDS_DONE, 8);
	send_trees(&t, INIT_MSG_TREES, 2);
	send_trees(&t, INIT_MSG_TREES, 1);
	ck_assert_msg(init_step_maps(&t.c, &e) == 0, "%s", e.text);
	ck_assert_int_ge(t.tree_fds[10], 0);
	ck_assert_int_eq(t.tree_fds[11], -1);
	ck_assert_int_eq(t.c.stage, INIT_STAGE_IDS);
	/* Nothing else was taken from the channel. */
	t.c.stage = INIT_STAGE_NET;
	ck_assert_int_eq(init_send(t.parent, INIT_MSG_GO, NULL, 0), 0);
	ck_assert_int_eq(init_step_go(&t.c, &e), 0);
}
END_TEST

static const struct {
	enum idmap_mode mode;
	size_t trees_n;
	enum init_msg msg;
	uint32_t fds_n;
} bad_trees[] = {
	{ IDMAP_MAPPED, 2, INIT_MSG_IDS_DONE, 3 },
	{ IDMAP_MAPPED, 2, INIT_MSG_IDS_DONE, 0 },
	{ IDMAP_SUBID, 2, INIT_MSG_IDS_DONE, 1 },
	{ IDMAP_MAPPED, 2, INIT_MSG_TREES, 2 },
	{ IDMAP_MAPPED, 2, INIT_MSG_GO, 0 },
};

START_TEST(wrong_trees_are_refused)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, bad_trees[_i].mode);
	for (size_t i = 0; i < bad_trees[_i].trees_n; i++) {
		(void)spec_add_tree(&t.spec, "/", SPEC_TREE_AS_IS, false);
	}
	send_trees(&t, bad_trees[_i].msg, bad_trees[_i].fds_n);
	ck_assert_int_eq(init_step_maps(&t.c, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INTERNAL);
	ck_assert_int_eq(mock_sys_calls, 0);
}
END_TEST

START_TEST(dies_with_its_parent)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_SINGLE);
	ck_assert_int_eq(init_step_parent(&t.c, &e), 0);
	ck_assert_str_eq(mock_sys_log, "prctl 1 9\n");
	/* A message that waits is no end. */
	ck_assert_int_eq(init_send(t.parent, INIT_MSG_IDS_DONE, NULL, 0), 0);
	ck_assert_int_eq(init_step_parent(&t.c, &e), 0);
	fd_close(&t.parent);
	ck_assert_int_eq(init_step_parent(&t.c, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INTERNAL);
}
END_TEST

START_TEST(cgroup_namespace_only_when_moved)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_SINGLE);
	ck_assert_int_eq(init_step_cgroup(&t.c, &e), 0);
	ck_assert_int_eq(mock_sys_calls, 0);
	t.c.unshare_cgroup = true;
	ck_assert_int_eq(init_step_cgroup(&t.c, &e), 0);
	ck_assert_str_eq(mock_sys_log, "unshare 2000000\n");
}
END_TEST

START_TEST(staging_is_a_small_inert_tmpfs)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_SINGLE);
	ck_assert_int_eq(init_step_staging(&t.c, &e), 0);
	ck_assert_int_eq(mock_sys_count("fsopen tmpfs"), 1);
	ck_assert_int_eq(mock_sys_count("fsconfig #1 size 4m"), 1);
	ck_assert_int_eq(mock_sys_count("fsmount #1 e"), 1);
	ck_assert_int_eq(mock_sys_count("move_mount #2 fd"), 1);
}
END_TEST

/* Steps that do nothing but call the kernel: each call fails once. */
START_TEST(each_call_fails_once)
{
	static int (*const steps[])(struct init_ctx *, struct error *) = {
		init_step_namespaces,
		init_step_private,
		init_step_hostname,
		init_step_parent,
		init_step_cgroup,
		init_step_staging,
	};
	AUTO(child) struct child t = CHILD_INIT;

	child_make(&t, IDMAP_SINGLE);
	t.spec.hostname = mem_strdup("host");
	t.c.unshare_cgroup = true;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct error none = ERROR_INIT;

		mock_sys_reset();
		ck_assert_int_eq(steps[i](&t.c, &none), 0);
		const int calls = mock_sys_calls;

		ck_assert_int_gt(calls, 0);
		for (int k = 1; k <= calls; k++) {
			struct error e = ERROR_INIT;

			mock_sys_reset();
			mock_sys_fail_at = k;
			mock_sys_errno = EIO;
			ck_assert_int_eq(steps[i](&t.c, &e), -1);
			ck_assert_int_eq(e.sysno, EIO);
		}
	}
}
END_TEST

static void plan_sysfs(struct child *t, struct mount_op *op)
{
	*op = (struct mount_op){ .kind = MOUNT_FS, .dst = "/sys", .source = "sysfs" };
	t->plan = (struct mountplan){ .n = 1, .ops = op };
	t->c.stage = INIT_STAGE_IDS;
	mock_sys_openat2_real = true;
}

/* A sysfs shows the network namespace of its mounter. */
START_TEST(network_namespace_is_entered_before_sysfs)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;
	struct mount_op op;

	child_make(&t, IDMAP_SINGLE);
	plan_sysfs(&t, &op);
	ck_assert_int_eq(mkdirat(unit_fd, "sys", 0755), 0);
	ck_assert_int_eq(init_send(t.parent, INIT_MSG_NET_DONE, &unit_fd, 1), 0);
	ck_assert_msg(init_step_mounts(&t.c, &e) == 0, "%s", e.text);
	ck_assert_str_eq(mock_sys_line(1), "setns fd 40000000");
	ck_assert_str_eq(mock_sys_line(2), "fsopen sysfs");
	ck_assert_int_eq(t.c.stage, INIT_STAGE_NET);
	mock_sys_reset();
	mock_sys_fail_at = 1;
	mock_sys_errno = EPERM;
	t.c.stage = INIT_STAGE_IDS;
	ck_assert_int_eq(init_send(t.parent, INIT_MSG_NET_DONE, &unit_fd, 1), 0);
	ck_assert_int_eq(init_step_mounts(&t.c, &e), -1);
	ck_assert_str_eq(e.text, "enter the network namespace");
	ck_assert_int_eq(mock_sys_calls, 1);
}
END_TEST

START_TEST(network_of_the_host_is_stayed_in)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;
	struct mount_op op;

	child_make(&t, IDMAP_SINGLE);
	t.spec.network = SPEC_NETWORK_HOST;
	plan_sysfs(&t, &op);
	ck_assert_int_eq(mkdirat(unit_fd, "sys", 0755), 0);
	ck_assert_int_eq(init_send(t.parent, INIT_MSG_NET_DONE, NULL, 0), 0);
	ck_assert_msg(init_step_mounts(&t.c, &e) == 0, "%s", e.text);
	ck_assert_int_eq(mock_sys_count("setns"), 0);
}
END_TEST

static const struct {
	enum spec_network network;
	uint32_t fds_n;
} bad_nets[] = {
	{ SPEC_NETWORK_NONE, 0 },
	{ SPEC_NETWORK_NONE, 2 },
	{ SPEC_NETWORK_HOST, 1 },
};

START_TEST(wrong_network_namespaces_are_refused)
{
	AUTO(child) struct child t = CHILD_INIT;
	const int fds[] = { unit_fd, unit_fd };
	struct error e = ERROR_INIT;
	struct mount_op op;

	child_make(&t, IDMAP_SINGLE);
	t.spec.network = bad_nets[_i].network;
	plan_sysfs(&t, &op);
	ck_assert_int_eq(init_send(t.parent, INIT_MSG_NET_DONE, fds, bad_nets[_i].fds_n), 0);
	ck_assert_int_eq(init_step_mounts(&t.c, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INTERNAL);
	ck_assert_ptr_nonnull(strstr(e.text, "network namespaces came with NET_DONE"));
	ck_assert_int_eq(mock_sys_calls, 0);
}
END_TEST

START_TEST(execd_waits_for_go)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;

	child_make(&t, IDMAP_SINGLE);
	t.c.stage = INIT_STAGE_NET;
	ck_assert_int_eq(init_send(t.parent, INIT_MSG_GO, NULL, 0), 0);
	ck_assert_int_eq(init_step_go(&t.c, &e), 0);
	ck_assert_int_eq(t.c.stage, INIT_STAGE_GONE);
	t.c.stage = INIT_STAGE_NET;
	ck_assert_int_eq(init_send(t.parent, INIT_MSG_NET_DONE, NULL, 0), 0);
	ck_assert_int_eq(init_step_go(&t.c, &e), -1);
	ck_assert_int_eq(e.code, ERRC_INTERNAL);
}
END_TEST

static ino_t inode_of(int fd)
{
	struct stat st = { .st_ino = 0 };

	return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

/* In a process of its own: the numbers 0 to 6 change. 0, or what is wrong. */
static int place_and_look(struct child *t, const int sources[4])
{
	struct error e = ERROR_INIT;
	ino_t want[4];

	t->c.sock = sources[0];
	t->c.control_fd = sources[1];
	t->spec.config_fd = sources[2];
	t->c.root_fd = sources[3];
	t->spec.execd_fd = STDIN_FILENO;
	for (int i = 0; i < 4; i++) {
		want[i] = inode_of(sources[i]);
	}
	if (init_step_execd(&t->c, &e) != -1 || e.sysno != ENOEXEC) {
		return 1;
	}
	for (int i = 0; i < 4; i++) {
		if (inode_of(EXECD_FD_INIT + i) != want[i] ||
				fcntl(EXECD_FD_INIT + i, F_GETFD) != 0) {
			return 10 + i;
		}
	}
	for (int i = 0; i < 3; i++) {
		struct stat st;

		if (fstat(i, &st) < 0 || !S_ISCHR(st.st_mode) ||
				(fcntl(i, F_GETFL) & O_ACCMODE) != O_RDWR) {
			return 20 + i;
		}
	}
	for (int fd = EXECD_FD_COUNT; fd < 256; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (fd != sources[0] && fd != sources[1] && fd != sources[2] && fd != sources[3] &&
				flags == 0) {
			return 100 + fd;
		}
	}
	return t->c.sock == EXECD_FD_INIT ? 0 : 2;
}

/* Sources lie on the numbers of other destinations. */
START_TEST(descriptors_get_their_numbers)
{
	static const int orders[][4] = {
		{ 3, 4, 5, 6 },
		{ 6, 5, 4, 3 },
		{ 4, 5, 6, 3 },
		{ 9, 3, 8, 5 },
	};
	AUTO(child) struct child t = CHILD_INIT;
	int status = 0;

	child_make(&t, IDMAP_SINGLE);
	pid_t pid = fork();

	if (pid == 0) {
		int made[4];

		/* Four objects on high numbers, then where the row wants them and nowhere else. */
		for (int i = 0; i < 4; i++) {
			int fd = i == 3 ? open("/", O_PATH | O_CLOEXEC)
					: fd_memfd_sealed("test", "x", 1, false);

			made[i] = fcntl(fd, F_DUPFD_CLOEXEC, 256);
		}
		for (int fd = 3; fd < 256; fd++) {
			close(fd);
		}
		for (int i = 0; i < 4; i++) {
			dup2(made[i], orders[_i][i]);
			close(made[i]);
		}
		_exit(place_and_look(&t, orders[_i]));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d",
			WEXITSTATUS(status));
}
END_TEST

/* init_run: the failing step's name and the reason reach the parent. */
START_TEST(failure_is_told_and_ends)
{
	AUTO(child) struct child t = CHILD_INIT;
	struct error e = ERROR_INIT;
	enum init_stage stage = INIT_STAGE_CLONED;
	struct packet p;
	int status = 0;

	child_make(&t, IDMAP_SINGLE);
	mock_sys_fail_at = 1;
	mock_sys_errno = EPERM;
	pid_t pid = fork();

	if (pid == 0) {
		init_run(&t.c);
	}
	ck_assert_int_eq(init_expect(t.parent, &stage, INIT_MSG_UP, &p, t.c.deadline_ms, &e), -1);
	ck_assert_str_eq(e.text, "namespaces: make new ones");
	ck_assert_int_eq(e.sysno, EPERM);
	ck_assert_int_ne(e.hint[0], '\0');
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 125);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("init");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, order_is_pinned);
	tcase_add_test(tc, mounts_become_private);
	tcase_add_test(tc, namespaces_and_what_refuses_them);
	tcase_add_test(tc, sources_are_opened_by_the_callers_ids);
	tcase_add_test(tc, bound_trees_are_cloned_first);
	tcase_add_test(tc, mapped_trees_are_the_parents);
	tcase_add_test(tc, changed_source_is_refused);
	tcase_add_test(tc, missing_source_is_named);
	tcase_add_test(tc, ids_are_taken_in_this_order);
	tcase_add_test(tc, single_id_keeps_its_groups);
	tcase_add_test(tc, trees_come_in_several_packets);
	tcase_add_loop_test(tc, wrong_trees_are_refused, 0, ARRAY_SIZE(bad_trees));
	tcase_add_test(tc, dies_with_its_parent);
	tcase_add_test(tc, cgroup_namespace_only_when_moved);
	tcase_add_test(tc, staging_is_a_small_inert_tmpfs);
	tcase_add_test(tc, each_call_fails_once);
	tcase_add_test(tc, network_namespace_is_entered_before_sysfs);
	tcase_add_test(tc, network_of_the_host_is_stayed_in);
	tcase_add_loop_test(tc, wrong_network_namespaces_are_refused, 0, ARRAY_SIZE(bad_nets));
	tcase_add_test(tc, execd_waits_for_go);
	tcase_add_loop_test(tc, descriptors_get_their_numbers, 0, 4);
	tcase_add_test(tc, failure_is_told_and_ends);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
