/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/magic.h>

#include <osbx/mem.h>
#include <osbx/program.h>
#include <osbx/str.h>

#include "../../../src/engine/doctor_internal.h"
#include "../unit.h"

static void word(char *out, size_t size, const char *text)
{
	(void)snprintf(out, size, "%s", text);
}
#define WORD(member, text) word(member, sizeof(member), text)

static void set_user(struct doctor_facts *f)
{
	*f = (struct doctor_facts){ .uid = 1000, .user = "ann" };
	WORD(f->exe, "/usr/local/bin/osbx");
	WORD(f->runtime.path, "/run/user/1000/osbx");
}

static const struct {
	const char *text;
	const char *wanted;
} texts[] = {
	{ "", "" },
	{ "plain", "plain" },
	{ "{user}", "ann" },
	{ "a{user}b{user}", "aannbann" },
	{ "{ userns, }", "{ userns, }" },
	{ "{", "{" },
	{ "}{", "}{" },
	{ "{unknown} {user", "{unknown} {user" },
	{ "{{user}}", "{ann}" },
	{ "{sudo}x", "sudo x" },
	{ "ls {root}", "ls '/home/ann/it'\\''s; reboot #'" },
	{ "{runtime}", "/run/user/1000/osbx" },
	{ "{exe}", "/usr/local/bin/osbx" },
};

START_TEST(texts_are_filled_in)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	set_user(f);
	WORD(f->store.path, "/home/ann/it's; reboot #");
	autofree char *text = doctor_text(texts[_i].text, f);

	ck_assert_str_eq(text, texts[_i].wanted);
	free(f);
}
END_TEST

static const struct {
	const char *release;
	const char *version;
	const char *signature;
	unsigned int wanted[3];
	bool certain;
} versions[] = {
	{ "6.18.44", "#1 SMP", "", { 6, 18, 44 }, true },
	{ "6.18.44-fc-v669", "#1 SMP", "", { 6, 18, 44 }, true },
	{ "5.10", "", "", { 5, 10, 0 }, true },
	{ "5.10.0-11-amd64", "#1 SMP Debian 5.10.92-1 (2022-01-18)", "", { 5, 10, 92 }, true },
	{ "5.15.0-25-generic", "#25-Ubuntu SMP", "Ubuntu 5.15.0-25.25-generic 5.15.30",
			{ 5, 15, 30 }, true },
	/* Such a number says nothing about corrections. */
	{ "5.14.0-503.el9.x86_64", "#1 SMP", "", { 5, 14, 0 }, false },
	{ "", "", "", { 0, 0, 0 }, true },
	{ "x.y", "Debian x", "y", { 0, 0, 0 }, true },
	{ "99999999999.1.1", "", "", { 0, 0, 0 }, true },
};

START_TEST(versions_are_read)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);
	struct utsname uts = { .sysname = "Linux" };

	WORD(uts.release, versions[_i].release);
	WORD(uts.version, versions[_i].version);
	doctor_read_version(&uts, versions[_i].signature, f);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(f->version[i], versions[_i].wanted[i]);
	}
	ck_assert_int_eq(f->version_certain, versions[_i].certain);
	free(f);
}
END_TEST

static const struct {
	unsigned int version[3];
	bool certain;
	bool has_it;
} pipes[] = {
	{ { 5, 7, 0 }, true, false },
	{ { 5, 8, 1 }, true, true },
	{ { 5, 10, 101 }, true, true },
	{ { 5, 10, 102 }, true, false },
	{ { 5, 14, 21 }, true, true },
	{ { 5, 15, 24 }, true, true },
	{ { 5, 15, 25 }, true, false },
	{ { 5, 16, 10 }, true, true },
	{ { 5, 16, 11 }, true, false },
	{ { 5, 17, 0 }, true, false },
	{ { 5, 14, 0 }, false, false },
	{ { 6, 1, 0 }, true, false },
};

START_TEST(dirty_pipe_is_known_by_number)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);
	struct doctor_lines lines = { .n = 0 };
	bool said = false;

	set_user(f);
	memcpy(f->version, pipes[_i].version, sizeof(f->version));
	f->version_certain = pipes[_i].certain;
	doctor_check(f, NULL, &lines);
	for (size_t i = 0; i < lines.n; i++) {
		said |= strstr(lines.v[i].detail, "CVE-2022-0847") != NULL;
	}
	ck_assert_int_eq(said, pipes[_i].has_it);
	doctor_lines_done(&lines);
	free(f);
}
END_TEST

/* A file of the fake machine, with the directories above it. */
static void put(const char *path, const char *text)
{
	autofree char *full = mem_printf("%s/%s", unit_path, path);
	char *slash = strrchr(full, '/');

	*slash = '\0';
	ck_assert_int_eq(file_mkdirs(full, 0755), 0);
	ck_assert_int_eq(file_write_at(unit_fd, path, span_of(text), false), 0);
}

START_TEST(kernel_is_read)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	WORD(f->uts.release, "6.1.0-28-amd64");
	doctor_read_kernel(unit_fd, f);
	ck_assert_int_eq(f->max_user_namespaces, DOCTOR_ABSENT);
	ck_assert_int_eq(f->unprivileged_userns_clone, DOCTOR_ABSENT);
	ck_assert_int_eq(f->seccomp_mode, DOCTOR_ABSENT);
	ck_assert(f->overlay_known && !f->overlay_module && f->zero_limit[0] == '\0');

	put("proc/sys/user/max_user_namespaces", "15000\n");
	put("proc/sys/user/max_mnt_namespaces", "7\n");
	put("proc/sys/user/max_pid_namespaces", "0\n");
	put("proc/sys/kernel/unprivileged_userns_clone", "0\n");
	put("proc/self/status", "Name:\tosbx\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n");
	put("proc/filesystems", "nodev\tproc\nnodev\toverlayx\n\text4\n");
	put("lib/modules/6.1.0-28-amd64/kernel/fs/overlayfs/overlay.ko.xz", "");
	doctor_read_kernel(unit_fd, f);
	ck_assert_int_eq(f->max_user_namespaces, 15000);
	ck_assert_str_eq(f->zero_limit, "user.max_pid_namespaces");
	ck_assert_int_eq(f->unprivileged_userns_clone, 0);
	ck_assert_int_eq(f->seccomp_mode, 2);
	ck_assert(!f->overlay_known && f->overlay_module);

	put("proc/filesystems", "nodev\tproc\nnodev\toverlay\n\text4\n");
	doctor_read_kernel(unit_fd, f);
	ck_assert(f->overlay_known);
	free(f);
}
END_TEST

START_TEST(apparmor_is_read)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	put("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
	put("proc/sys/kernel/apparmor_restrict_unprivileged_unconfined", "1\n");
	put("proc/self/attr/current", "unconfined\n");
	doctor_read_apparmor(unit_fd, f);
	ck_assert_int_eq(f->apparmor_userns, 1);
	ck_assert_int_eq(f->apparmor_unconfined, 1);
	ck_assert_str_eq(f->apparmor_label, "");
	ck_assert(!f->apparmor_profile);

	/* Only an AppArmor that is on has labels: that file may be another module's. */
	put("sys/module/apparmor/parameters/enabled", "Y\n");
	put("etc/apparmor.d/osbx", "profile\n");
	doctor_read_apparmor(unit_fd, f);
	ck_assert_str_eq(f->apparmor_label, "unconfined");
	ck_assert(f->apparmor_profile);
	put("proc/self/attr/apparmor/current", "osbx (unconfined)\n");
	doctor_read_apparmor(unit_fd, f);
	ck_assert_str_eq(f->apparmor_label, "osbx (unconfined)");
	free(f);
}
END_TEST

#define MOUNT(point) "36 35 0:5 / " point " rw,nosuid - proc proc rw\n"

static const struct {
	const char *mountinfo;
	const char *mask;
} masks[] = {
	{ "", "" },
	{ MOUNT("/") MOUNT("/proc") MOUNT("/processor"), "" },
	{ MOUNT("/proc") MOUNT("/proc/sys/fs/binfmt_misc") MOUNT("/proc/fs/nfsd"), "" },
	{ MOUNT("/proc") MOUNT("/proc/kcore") MOUNT("/proc/keys"), "/proc/kcore" },
	{ MOUNT("/proc") MOUNT("/proc/sys"), "/proc/sys" },
	{ "broken\n\n" MOUNT("/proc/acpi"), "/proc/acpi" },
};

START_TEST(masks_are_read)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	put("proc/self/mountinfo", masks[_i].mountinfo);
	doctor_read_surroundings(unit_fd, f);
	ck_assert_str_eq(f->proc_mask, masks[_i].mask);
	free(f);
}
END_TEST

START_TEST(surroundings_are_read)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	WORD(f->user, "ann");
	doctor_read_surroundings(unit_fd, f);
	ck_assert(!f->systemd && !f->linger);
	ck_assert_str_eq(f->container, "");

	put("run/.containerenv", "");
	put("run/systemd/system/x", "");
	put("var/lib/systemd/linger/bob", "");
	doctor_read_surroundings(unit_fd, f);
	ck_assert(f->systemd && !f->linger);
	ck_assert_str_eq(f->container, "podman");

	put("run/systemd/container", "lxc\n");
	put("var/lib/systemd/linger/ann", "");
	doctor_read_surroundings(unit_fd, f);
	ck_assert(f->linger);
	ck_assert_str_eq(f->container, "lxc");
	free(f);
}
END_TEST

#define PASSWD                                                            \
	"root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n" \
	"eve:x:170000:170000::/home/eve:/bin/sh\n"

static const struct {
	const char *subuid;
	const char *subgid;
	uint64_t uids;
	uint64_t gids;
	const char *overlaps[2];
	uint32_t free;
} subids[] = {
	{ NULL, NULL, 0, 0, { "", "" }, 100000 },
	{ "", "ann:100000:65536\n", 0, 65536, { "", "" }, 165536 },
	{ "ann:100000:65536\n", "ann:200000:65536\n", 65536, 65536, { "", "" }, 265536 },
	{ "1000:100000:10\nann:300000:20", "", 30, 0, { "", "" }, 300020 },
	{ "ann:100000:65536\nbob:165535:1\n", "", 65536, 0, { "bob", "" }, 165536 },
	{ "bob:1:200000\nann:100000:65536\n", "ann:5000:10\nbob:5009:1\n", 65536, 10,
			{ "bob", "bob" }, 200001 },
	{ "ann:100000:65536\nbob:165536:65536\n", "", 65536, 0, { "", "" }, 231072 },
	/* twice his own is no overlap; a real user's id is */
	{ "ann:100000:10\n1000:100000:10\n", "", 20, 0, { "", "" }, 100010 },
	{ "ann:165536:65536\n", "", 65536, 0, { "eve", "" }, 231072 },
	{ "ann:x:1\nann:1\n:5:5\nann:100000:0\nann:4294967295:1\nann:-5:7\n", "", 1, 0, { "", "" },
			UINT32_MAX },
};

START_TEST(subids_are_read)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	f->uid = 1000;
	put("etc/passwd", PASSWD);
	if (subids[_i].subuid) {
		put("etc/subuid", subids[_i].subuid);
		put("etc/subgid", subids[_i].subgid);
	}
	doctor_read_ids(unit_fd, f);
	ck_assert_str_eq(f->user, "ann");
	ck_assert_uint_eq(f->subids[0].count, subids[_i].uids);
	ck_assert_uint_eq(f->subids[1].count, subids[_i].gids);
	ck_assert_str_eq(f->subids[0].overlaps, subids[_i].overlaps[0]);
	ck_assert_str_eq(f->subids[1].overlaps, subids[_i].overlaps[1]);
	ck_assert_uint_eq(f->subids_free, subids[_i].free);
	free(f);
}
END_TEST

START_TEST(unknown_users_have_no_name)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	f->uid = 4711;
	put("etc/passwd", PASSWD);
	doctor_read_ids(unit_fd, f);
	ck_assert_str_eq(f->user, "");
	autofree char *text = doctor_text("{user}", f);

	ck_assert_str_eq(text, "4711");
	free(f);
}
END_TEST

START_TEST(cgroup_is_read)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	put("proc/self/cgroup", "4:memory:/x\n0::/user.slice/a b\n");
	doctor_read_cgroup(unit_fd, f);
	ck_assert(!f->cgroup.unified);

	put("sys/fs/cgroup/user.slice/a b/cgroup.controllers", "memory pids\n");
	doctor_read_cgroup(unit_fd, f);
	ck_assert(f->cgroup.unified && !f->cgroup.writable);
	ck_assert_str_eq(f->cgroup.controllers, "memory pids");
	ck_assert_uint_eq(doctor_controllers_missing(f, NULL), 1);

	put("sys/fs/cgroup/user.slice/a b/cgroup.procs", "");
	doctor_read_cgroup(unit_fd, f);
	free(f);

	/* A manager gives scopes; its cgroup is what counts then, if it can be asked. */
	f = mem_new(struct doctor_facts);
	f->uid = 1000;
	f->systemd = true;
	put("sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers",
			"cpu memory pids\n");
	put("sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.procs", "");
	doctor_read_cgroup(unit_fd, f);
	ck_assert(f->cgroup.unified && !f->cgroup.scope);
	put("run/user/1000/systemd/private", "");
	doctor_read_cgroup(unit_fd, f);
	ck_assert(f->cgroup.scope && f->cgroup.writable);
	ck_assert_uint_eq(doctor_controllers_missing(f, NULL), 0);
	free(f);

	/* Outside of the cgroup namespace. */
	f = mem_new(struct doctor_facts);
	put("proc/self/cgroup", "0::/../../x\n");
	doctor_read_cgroup(unit_fd, f);
	ck_assert(!f->cgroup.unified);
	free(f);
}
END_TEST

START_TEST(places_are_read)
{
	struct doctor_place *p = mem_new(struct doctor_place);
	autofree char *below = mem_printf("%s/not/there", unit_path);
	char name[DOCTOR_WORD_MAX];

	doctor_read_place(unit_path, p);
	ck_assert(p->exists && !p->read_only);
	ck_assert_uint_gt(p->free_bytes, 0);
	uint64_t type = p->type;

	doctor_read_place(below, p);
	ck_assert(!p->exists);
	ck_assert_uint_eq(p->type, type);
	ck_assert_str_eq(p->path, below);

	doctor_read_place("/proc", p);
	ck_assert_uint_eq(p->type, PROC_SUPER_MAGIC);
	doctor_fs_name(PROC_SUPER_MAGIC, name);
	ck_assert_str_eq(name, "file system 0x9fa0");
	free(p);
}
END_TEST

/* On the machine that runs the test: nothing may be left, and all that is asked for is answered. */
START_TEST(this_machine_is_read)
{
	char name[] = "test";
	char *argv[] = { name, NULL };
	struct doctor_lines lines = { .n = 0 };

	program_begin(argv);
	autofree struct doctor_facts *f = doctor_facts_read();

	ck_assert_uint_eq(f->uid, geteuid());
	ck_assert_uint_ge(f->version[0], 5);
	ck_assert_str_ne(f->exe, "");
	ck_assert_str_ne(f->store.path, "");
	doctor_check(f, NULL, &lines);
	ck_assert_uint_ge(lines.n, 10);
	doctor_lines_done(&lines);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("doctor_facts");
	TCase *tc = tcase_create("facts");

	unit_with_dir(tc);
	tcase_add_loop_test(tc, texts_are_filled_in, 0, ARRAY_SIZE(texts));
	tcase_add_loop_test(tc, versions_are_read, 0, ARRAY_SIZE(versions));
	tcase_add_loop_test(tc, dirty_pipe_is_known_by_number, 0, ARRAY_SIZE(pipes));
	tcase_add_test(tc, kernel_is_read);
	tcase_add_test(tc, apparmor_is_read);
	tcase_add_test(tc, surroundings_are_read);
	tcase_add_test(tc, unknown_users_have_no_name);
	tcase_add_test(tc, cgroup_is_read);
	tcase_add_test(tc, places_are_read);
	tcase_add_test(tc, this_machine_is_read);
	tcase_add_loop_test(tc, masks_are_read, 0, ARRAY_SIZE(masks));
	tcase_add_loop_test(tc, subids_are_read, 0, ARRAY_SIZE(subids));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
