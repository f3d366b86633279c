/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/magic.h>

#include <osbx/caps.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../src/engine/doctor_table.h"
#include "../unit.h"

#define ALL_CAPS ((UINT64_C(1) << 41) - 1)
#define GIB      (UINT64_C(1) << 30)
#define YEAR_60  INT64_C(2840140800000)

/* An ordinary user of a machine where nothing is wrong. */
static void set_user(struct doctor_facts *f)
{
	*f = (struct doctor_facts){
		.uid = 1000,
		.user = "ann",
		.exe = "/usr/local/bin/osbx",
		.initial_userns = true,
		.uts = { .sysname = "Linux", .release = "6.8.0-31-generic", .machine = "x86_64" },
		.version = { 6, 8, 1 },
		.version_certain = true,
		.max_user_namespaces = 100000,
		.unprivileged_userns_clone = DOCTOR_ABSENT,
		.apparmor_userns = 0,
		.apparmor_unconfined = 0,
		.apparmor_label = "unconfined",
		.seccomp_mode = 0,
		.overlay_known = true,
		.systemd = true,
		.linger = true,
		.runtime_variable = true,
		.wall_ms = YEAR_60,
		.map = { .mode = IDMAP_SUBID,
				.uids_n = 2,
				.uids = { { 0, 1000, 1 }, { 1, 100000, 65535 } } },
		.helpers = { { .path = "/usr/bin/newuidmap", .privileged = true },
				{ .path = "/usr/bin/newgidmap", .privileged = true } },
		.subids = { { .count = 65536 }, { .count = 65536 } },
		.subids_free = 165536,
		.store = { .path = "/home/ann/.local/share/osbx",
				.exists = true,
				.type = EXT4_SUPER_MAGIC,
				.free_bytes = 40 * GIB,
				.free_inodes = 100000 },
		.runtime = { .path = "/run/user/1000/osbx",
				.exists = true,
				.type = TMPFS_MAGIC,
				.free_bytes = GIB,
				.free_inodes = 100000 },
		.cgroup = { .unified = true,
				.writable = true,
				.controllers = "cpuset cpu io memory pids" },
		.features_n = 1,
		.features = { { .name = "archive",
				.soname = "libarchive.so.13",
				.package = "libarchive13",
				.without = "images cannot be unpacked",
				.found = true,
				.version = "3.6.2" } },
	};
}

static void set_root(struct doctor_facts *f)
{
	set_user(f);
	f->uid = 0;
	f->caps = ALL_CAPS;
	(void)snprintf(f->user, sizeof(f->user), "root");
	f->map = (struct idmap){ .mode = IDMAP_MAPPED };
	f->store_maps = true;
	(void)snprintf(f->store.path, sizeof(f->store.path), "/var/lib/osbx");
}

static void word(char *out, size_t size, const char *text)
{
	(void)snprintf(out, size, "%s", text);
}
#define WORD(member, text) word(member, sizeof(member), text)

static void old_kernel(struct doctor_facts *f)
{
	memcpy(f->version, (unsigned int[]){ 5, 10, 200 }, sizeof(f->version));
	WORD(f->uts.release, "5.10.200");
}

static void dirty_pipe(struct doctor_facts *f)
{
	memcpy(f->version, (unsigned int[]){ 5, 15, 24 }, sizeof(f->version));
}

static void userns_off(struct doctor_facts *f)
{
	f->max_user_namespaces = 0;
}

static void userns_of_root(struct doctor_facts *f)
{
	f->unprivileged_userns_clone = 0;
}

static void no_userns(struct doctor_facts *f)
{
	f->probes[DOCTOR_PROBE_USERNS] = EINVAL;
}

static void used_up(struct doctor_facts *f)
{
	f->probes[DOCTOR_PROBE_USERNS] = ENOSPC;
}

static void no_net(struct doctor_facts *f)
{
	WORD(f->zero_limit, "user.max_net_namespaces");
}

static void refused(struct doctor_facts *f)
{
	f->probes[DOCTOR_PROBE_USERNS] = EPERM;
}

static void powerless(struct doctor_facts *f)
{
	f->probes[DOCTOR_PROBE_MOUNT] = EACCES;
}

/* Ubuntu 24.04. */
static void apparmor(struct doctor_facts *f)
{
	f->apparmor_userns = 1;
	f->probes[DOCTOR_PROBE_MOUNT] = EACCES;
}

static void apparmor_profile(struct doctor_facts *f)
{
	apparmor(f);
	f->apparmor_profile = true;
	WORD(f->exe, "/home/ann/it's mine/osbx");
}

/* Ubuntu 26.04. */
static void apparmor_both(struct doctor_facts *f)
{
	apparmor(f);
	f->apparmor_unconfined = 1;
}

static void apparmor_inside(struct doctor_facts *f)
{
	apparmor(f);
	WORD(f->apparmor_label, "unprivileged_userns (enforce)");
}

static void docker_label(struct doctor_facts *f)
{
	WORD(f->apparmor_label, "docker-default (enforce)");
	f->probes[DOCTOR_PROBE_MOUNT] = EACCES;
}

static void docker_filter(struct doctor_facts *f)
{
	f->seccomp_mode = 2;
	WORD(f->container, "docker");
	f->probes[DOCTOR_PROBE_OPEN_TREE] = EPERM;
	f->probes[DOCTOR_PROBE_USERNS] = EPERM;
	f->probes[DOCTOR_PROBE_CLONE3] = ENOSYS;
}

static void killing_filter(struct doctor_facts *f)
{
	f->seccomp_mode = 2;
	f->probes[DOCTOR_PROBE_USERNS] = EINTR;
}

static void hiding_filter(struct doctor_facts *f)
{
	f->seccomp_mode = 2;
	f->probes[DOCTOR_PROBE_CLONE3] = ENOSYS;
}

static void masked_proc(struct doctor_facts *f)
{
	WORD(f->proc_mask, "/proc/kcore");
	WORD(f->container, "podman");
}

static void no_ids(struct doctor_facts *f)
{
	(void)error_set(&f->map_error, ERRC_UNSUPPORTED, "root without the capability SETFCAP");
}

static void plain_helper(struct doctor_facts *f)
{
	f->helpers[1].privileged = false;
}

static void nosuid_helper(struct doctor_facts *f)
{
	f->helpers[0].on_nosuid = true;
}

static void single(struct doctor_facts *f)
{
	f->map = (struct idmap){ .mode = IDMAP_SINGLE, .uids_n = 1, .uids = { { 0, 1000, 1 } } };
}

static void no_helpers(struct doctor_facts *f)
{
	single(f);
	f->helpers[0].path[0] = '\0';
}

static void no_new_privs(struct doctor_facts *f)
{
	single(f);
	f->no_new_privs = true;
}

static void no_subids(struct doctor_facts *f)
{
	single(f);
	f->subids[0].count = 0;
	f->subids[1].count = 0;
}

/* In one file only. */
static void no_subgids(struct doctor_facts *f)
{
	single(f);
	f->subids[1].count = 0;
}

static void few_subids(struct doctor_facts *f)
{
	f->subids[0].count = 1000;
}

static void overlapping(struct doctor_facts *f)
{
	WORD(f->subids[1].overlaps, "bob");
}

static void read_only_store(struct doctor_facts *f)
{
	f->store.read_only = true;
}

static void nfs(struct doctor_facts *f)
{
	f->store.type = NFS_SUPER_MAGIC;
}

static void overlay_store(struct doctor_facts *f)
{
	f->store.type = OVERLAYFS_SUPER_MAGIC;
}

static void fuse(struct doctor_facts *f)
{
	f->store.type = 0x65735546;
}

static void full(struct doctor_facts *f)
{
	f->store.free_bytes = 4096;
}

static void no_inodes(struct doctor_facts *f)
{
	f->store.free_inodes = 3;
}

static void tight(struct doctor_facts *f)
{
	f->store.free_bytes = GIB / 2;
}

static void no_xattrs(struct doctor_facts *f)
{
	f->store.xattr_errno = EOPNOTSUPP;
}

static void read_only_runtime(struct doctor_facts *f)
{
	f->runtime.read_only = true;
}

static void no_runtime_variable(struct doctor_facts *f)
{
	f->runtime_variable = false;
}

static void runtime_on_disk(struct doctor_facts *f)
{
	f->runtime.type = EXT4_SUPER_MAGIC;
}

static void no_overlay(struct doctor_facts *f)
{
	f->overlay_known = false;
}

static void overlay_module(struct doctor_facts *f)
{
	f->overlay_known = false;
	f->overlay_module = true;
}

static void unmapped_kernel(struct doctor_facts *f)
{
	set_root(f);
	memcpy(f->version, (unsigned int[]){ 5, 15, 100 }, sizeof(f->version));
}

static void unmapped_store(struct doctor_facts *f)
{
	set_root(f);
	f->store_unmapped = true;
}

static void no_cgroup(struct doctor_facts *f)
{
	f->cgroup.unified = false;
}

static void foreign_cgroup(struct doctor_facts *f)
{
	f->cgroup.writable = false;
}

static void foreign_without_systemd(struct doctor_facts *f)
{
	f->cgroup.writable = false;
	f->systemd = false;
}

static void few_controllers(struct doctor_facts *f)
{
	WORD(f->cgroup.controllers, "memory pids");
}

static void root_hybrid(struct doctor_facts *f)
{
	set_root(f);
	f->cgroup.controllers[0] = '\0';
}

static void no_linger(struct doctor_facts *f)
{
	f->linger = false;
}

static void no_library(struct doctor_facts *f)
{
	f->features[0].found = false;
}

static void no_network(struct doctor_facts *f)
{
	(void)error_sys(&f->net_error, EPROTONOSUPPORT, "private network: load its rules");
}

static void no_ping(struct doctor_facts *f)
{
	f->no_ping = true;
}

static void wrong_clock(struct doctor_facts *f)
{
	f->wall_ms = 1000;
}

/* A machine on which one thing is wrong, how "run" failed there, and what has to be said. */
static const struct row {
	const char *name;
	void (*make)(struct doctor_facts *f);
	int errnum; /* of the failure; 0: it worked; negative: a sentence of osbx */
	const char *part;
	enum doctor_level level;
	const char *said;
	const char *remedy; /* begins so; NULL: none */
} rows[] = {
	{ "old kernel", old_kernel, ENOSYS, "kernel", DOCTOR_FAIL,
			"Linux 5.10.200 is too old: osbx needs 5.12", "sudo apt full-upgrade" },
	{ "old kernel that works", old_kernel, 0, "kernel", DOCTOR_NOTE, "too old", "sudo apt" },
	{ "dirty pipe", dirty_pipe, 0, "kernel", DOCTOR_NOTE, "CVE-2022-0847", "sudo apt" },
	{ "user namespaces off", userns_off, ENOSPC, "user namespaces", DOCTOR_FAIL,
			"user.max_user_namespaces is 0",
			"sudo sysctl -w user.max_user_namespaces=15000\n" },
	{ "user namespaces off, said by osbx", userns_off, -1, "user namespaces", DOCTOR_FAIL,
			"user.max_user_namespaces is 0", "sudo sysctl" },
	{ "user namespaces of root", userns_of_root, EPERM, "user namespaces", DOCTOR_FAIL,
			"kernel.unprivileged_userns_clone is 0",
			"sudo sysctl -w kernel.unprivileged_userns_clone=1\n" },
	{ "no user namespaces", no_userns, EINVAL, "user namespaces", DOCTOR_FAIL, "CONFIG_USER_NS",
			"sudo apt install linux-image" },
	{ "user namespaces used up", used_up, ENOSPC, "user namespaces", DOCTOR_FAIL,
			"as many user namespaces as allowed exist", "sudo sysctl" },
	{ "no network namespaces", no_net, ENOSPC, "user namespaces", DOCTOR_FAIL,
			"user.max_net_namespaces is 0",
			"sudo sysctl -w user.max_net_namespaces=15000" },
	{ "refused", refused, EPERM, "user namespaces", DOCTOR_FAIL,
			"something refuses new user namespaces", NULL },
	{ "powerless", powerless, EACCES, "user namespaces", DOCTOR_FAIL,
			"takes the capabilities of new user namespaces", NULL },
	{ "AppArmor", apparmor, EACCES, "AppArmor", DOCTOR_FAIL,
			"kernel.apparmor_restrict_unprivileged_userns is 1",
			"printf 'abi <abi/4.0>,\\nprofile osbx /usr/local/bin/osbx "
			"flags=(unconfined) { userns, }\\n' | sudo tee /etc/apparmor.d/osbx\n"
			"sudo apparmor_parser -r /etc/apparmor.d/osbx" },
	{ "AppArmor, another path", apparmor_profile, EPERM, "AppArmor", DOCTOR_FAIL,
			"not loaded, or not for /PATH/TO/osbx",
			"printf 'abi <abi/4.0>,\\nprofile osbx /PATH/TO/osbx" },
	{ "AppArmor, both settings", apparmor_both, EPERM, "AppArmor", DOCTOR_NOTE,
			"kernel.apparmor_restrict_unprivileged_unconfined is 1", NULL },
	{ "AppArmor, inside", apparmor_inside, EPERM, "AppArmor", DOCTOR_FAIL,
			"a user namespace that AppArmor restricts", NULL },
	{ "profile of docker", docker_label, EACCES, "AppArmor", DOCTOR_FAIL,
			"profile docker-default (enforce) refuses mount",
			"docker run --security-opt apparmor=unconfined" },
	{ "filter of docker", docker_filter, EPERM, "seccomp", DOCTOR_FAIL,
			"a seccomp filter of docker refuses open_tree",
			"docker run --security-opt seccomp=unconfined" },
	{ "filter that kills", killing_filter, -1, "seccomp", DOCTOR_FAIL,
			"a seccomp filter of an outer container refuses unshare", "docker run" },
	{ "filter that hides", hiding_filter, 0, "seccomp", DOCTOR_NOTE, "hides clone3", NULL },
	{ "masked /proc", masked_proc, EPERM, "/proc", DOCTOR_FAIL,
			"/proc/kcore is covered by podman",
			"docker run --security-opt systempaths=unconfined" },
	{ "no ids", no_ids, -1, "ids", DOCTOR_FAIL, "without the capability SETFCAP", NULL },
	{ "plain helper", plain_helper, -1, "ids", DOCTOR_FAIL,
			"/usr/bin/newgidmap is not set-user-id root",
			"sudo chown root /usr/bin/newgidmap && sudo chmod u+s /usr/bin/newgidmap" },
	{ "helper on nosuid", nosuid_helper, EPERM, "ids", DOCTOR_FAIL,
			"/usr/bin/newuidmap is on a file system that is mounted nosuid",
			"sudo mount -o remount,suid" },
	{ "no helpers", no_helpers, 0, "ids", DOCTOR_NOTE, "are not installed",
			"sudo apt install uidmap" },
	{ "no new privileges", no_new_privs, 0, "ids", DOCTOR_NOTE, "no_new_privs is set", NULL },
	{ "no subordinate ids", no_subids, 0, "ids", DOCTOR_NOTE,
			"ann has 0 ids in /etc/subuid and 0 in /etc/subgid",
			"sudo usermod --add-subuids 165536-231071 --add-subgids 165536-231071 "
			"ann" },
	{ "in one file only", no_subgids, 0, "ids", DOCTOR_NOTE,
			"ann has 65536 ids in /etc/subuid and 0 in /etc/subgid", "sudo usermod" },
	{ "few subordinate ids", few_subids, 0, "ids", DOCTOR_NOTE,
			"ann has 1000 ids in /etc/subuid", "sudo usermod" },
	{ "overlapping ids", overlapping, 0, "ids", DOCTOR_NOTE, "are also ids of bob",
			"sudo usermod" },
	{ "read-only store", read_only_store, EROFS, "store", DOCTOR_FAIL,
			"/home/ann/.local/share/osbx is mounted read-only", "export OSBX_ROOT=" },
	{ "NFS", nfs, EINVAL, "store", DOCTOR_FAIL, "is on nfs, which cannot be the upper",
			"export OSBX_ROOT=" },
	{ "NFS, said by osbx", nfs, -1, "store", DOCTOR_FAIL, "is on nfs", "export OSBX_ROOT=" },
	{ "overlay on overlay", overlay_store, EINVAL, "store", DOCTOR_FAIL, "is on overlay",
			"export OSBX_ROOT=" },
	{ "FUSE that can do it", fuse, 0, "store", DOCTOR_NOTE, "is on fuse", "export" },
	{ "full", full, ENOSPC, "store", DOCTOR_FAIL, "has 4 KiB free", "osbx gc\n" },
	{ "no inodes", no_inodes, ENOSPC, "store", DOCTOR_FAIL, "free", "osbx gc" },
	{ "tight", tight, 0, "store", DOCTOR_NOTE, "has 512 MiB free", "osbx gc" },
	{ "no attributes", no_xattrs, EOPNOTSUPP, "store", DOCTOR_FAIL,
			"without extended attributes", "export OSBX_ROOT=" },
	{ "read-only runtime", read_only_runtime, EROFS, "runtime directory", DOCTOR_FAIL,
			"is mounted read-only", "export OSBX_RUNTIME=" },
	{ "no runtime directory", no_runtime_variable, 0, "runtime directory", DOCTOR_NOTE,
			"XDG_RUNTIME_DIR is not set", "sudo loginctl enable-linger ann\n" },
	{ "runtime directory on disk", runtime_on_disk, 0, "runtime directory", DOCTOR_NOTE,
			"is on ext4, not on a tmpfs", NULL },
	{ "no overlay", no_overlay, ENODEV, "overlay", DOCTOR_FAIL,
			"no overlay file system in Linux 6.8.0-31-generic", "sudo reboot" },
	{ "overlay not loaded", overlay_module, ENODEV, "overlay", DOCTOR_FAIL,
			"module overlay is not loaded", "sudo modprobe overlay\n" },
	{ "kernel maps no overlay", unmapped_kernel, 0, "id-mapped mounts", DOCTOR_NOTE,
			"before Linux 5.19", NULL },
	{ "store maps not", unmapped_store, 0, "id-mapped mounts", DOCTOR_NOTE,
			"ext4 of /var/lib/osbx takes none", "export OSBX_ROOT=" },
	{ "no cgroup", no_cgroup, 0, "cgroup", DOCTOR_NOTE, "no cgroup of version 2", NULL },
	{ "not delegated", foreign_cgroup, 0, "cgroup", DOCTOR_NOTE, "no manager of ann's runs",
			"sudo loginctl enable-linger ann" },
	{ "nobody delegates", foreign_without_systemd, 0, "cgroup", DOCTOR_NOTE,
			"not delegated to ann: sandboxes", NULL },
	{ "few controllers", few_controllers, 0, "cgroup", DOCTOR_NOTE,
			"delegated without cpu: sandboxes", "sudo mkdir" },
	{ "hybrid hierarchy", root_hybrid, 0, "cgroup", DOCTOR_NOTE,
			"version 2 has no cpu, memory, pids here", NULL },
	{ "no linger", no_linger, 0, "session", DOCTOR_NOTE, "a logout ends what ann runs",
			"loginctl enable-linger ann" },
	{ "no library", no_library, 0, "libraries", DOCTOR_NOTE,
			"libarchive.so.13 is missing: images cannot be unpacked",
			"sudo apt install libarchive13" },
	{ "no network", no_network, 0, "private network", DOCTOR_NOTE,
			"load its rules: Protocol not supported: only", "sudo modprobe" },
	{ "no ping", no_ping, 0, "private network", DOCTOR_NOTE, "ann may have no socket for it",
			"sudo sysctl -w net.ipv4.ping_group_range='0 2147483647'" },
	{ "wrong clock", wrong_clock, 0, "clock", DOCTOR_NOTE, "1970-01-01", "sudo timedatectl" },
};

static struct error failure_of(int errnum)
{
	struct error e = ERROR_INIT;

	if (errnum > 0) {
		(void)error_sys(&e, errnum, "launch");
	} else if (errnum < 0) {
		(void)error_set(&e, ERRC_UNSUPPORTED, "osbx says why");
	}
	return e;
}

/* The line that says it; all others of the machine have to be ok, but for what belongs to it. */
static const struct doctor_line *find_line(const struct doctor_lines *lines, const struct row *row)
{
	for (size_t i = 0; i < lines->n; i++) {
		if (strstr(lines->v[i].detail, row->said)) {
			return &lines->v[i];
		}
	}
	return NULL;
}

START_TEST(findings_are_said)
{
	const struct row *row = &rows[_i];
	struct doctor_facts *f = mem_new(struct doctor_facts);
	const struct error failure = failure_of(row->errnum);
	struct doctor_lines lines = { .n = 0 };

	set_user(f);
	row->make(f);
	doctor_check(f, row->errnum != 0 ? &failure : NULL, &lines);
	const struct doctor_line *line = find_line(&lines, row);

	ck_assert_msg(line != NULL, "%s: \"%s\" is not said", row->name, row->said);
	ck_assert_str_eq(line->name, row->part);
	ck_assert_msg(line->level == row->level, "%s: %s", row->name,
			doctor_level_name(line->level));
	if (row->remedy) {
		ck_assert_ptr_nonnull(line->remedy);
		ck_assert_msg(strncmp(line->remedy, row->remedy, strlen(row->remedy)) == 0,
				"%s: remedy %s", row->name, line->remedy);
	} else {
		ck_assert_ptr_null(line->remedy);
	}
	doctor_lines_done(&lines);
	free(f);
}
END_TEST

/* What fails is the cause, and nothing else is blamed. */
START_TEST(cause_is_found)
{
	const struct row *row = &rows[_i];
	struct doctor_facts *f = mem_new(struct doctor_facts);
	const struct error failure = failure_of(row->errnum == 0 ? EPERM : row->errnum);
	autofree char *cause = NULL;
	autofree char *remedy = NULL;

	set_user(f);
	row->make(f);
	bool found = doctor_find_cause(f, &failure, &cause, &remedy);

	if (row->level == DOCTOR_FAIL) {
		ck_assert(found);
		ck_assert_msg(strstr(cause, row->said) != NULL, "%s: %s", row->name, cause);
	} else if (row->make != old_kernel && row->make != fuse && row->make != apparmor_both) {
		ck_assert_msg(!found, "%s: %s", row->name, cause);
	}
	free(f);
}
END_TEST

/* A row of the table that no row here makes hold is not tested. */
START_TEST(every_finding_is_tested)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	for (size_t i = 0; i < doctor_findings_n; i++) {
		size_t n = 0;

		for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
			set_user(f);
			rows[k].make(f);
			n += doctor_findings[i].holds(f);
		}
		ck_assert_msg(n > 0, "never holds: %s", doctor_findings[i].cause);
		ck_assert_msg(n < ARRAY_SIZE(rows), "always holds: %s", doctor_findings[i].cause);
	}
	free(f);
}
END_TEST

/* An error that the finding cannot be the reason of leaves it a note, and blames nobody. */
START_TEST(other_errors_are_not_explained)
{
	static const struct {
		void (*make)(struct doctor_facts *f);
		int errnum;
	} pairs[] = {
		{ userns_off, ENOENT },
		{ apparmor, ENOSPC },
		{ full, EPERM },
		{ nfs, ENOSPC },
		{ docker_filter, ENOSPC },
		{ masked_proc, EINVAL },
		{ read_only_store, EINVAL },
	};
	struct doctor_facts *f = mem_new(struct doctor_facts);

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		const struct error failure = failure_of(pairs[i].errnum);
		struct doctor_lines lines = { .n = 0 };
		autofree char *cause = NULL;
		autofree char *remedy = NULL;

		set_user(f);
		pairs[i].make(f);
		doctor_check(f, &failure, &lines);
		for (size_t k = 0; k < lines.n; k++) {
			ck_assert_int_ne(lines.v[k].level, DOCTOR_FAIL);
		}
		ck_assert(!doctor_find_cause(f, &failure, &cause, &remedy));
		doctor_lines_done(&lines);
	}
	free(f);
}
END_TEST

/* A directory that others may write to is no fault of AppArmor's. */
START_TEST(refusals_of_osbx_are_not_explained)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);
	struct error denied = ERROR_INIT;
	autofree char *cause = NULL;
	autofree char *remedy = NULL;

	set_user(f);
	apparmor(f);
	(void)error_set(&denied, ERRC_DENIED, "/x: others may write to it");
	ck_assert(!doctor_find_cause(f, &denied, &cause, &remedy));
	free(f);
}
END_TEST

/* An error that is one of the findings, on a machine where much is wrong. */
START_TEST(said_causes_are_alone)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);
	struct doctor_lines lines = { .n = 0 };
	struct error failure = ERROR_INIT;
	autofree char *cause = NULL;
	autofree char *remedy = NULL;
	size_t failed = 0;

	set_user(f);
	masked_proc(f);
	overlay_store(f);
	no_ids(f);
	(void)error_set(&failure, ERRC_UNSUPPORTED, "store: root without the capability SETFCAP");
	doctor_check(f, &failure, &lines);
	for (size_t i = 0; i < lines.n; i++) {
		failed += lines.v[i].level == DOCTOR_FAIL;
	}
	ck_assert_uint_eq(failed, 1);
	ck_assert(doctor_find_cause(f, &failure, &cause, &remedy));
	ck_assert_str_eq(cause, "root without the capability SETFCAP");
	doctor_lines_done(&lines);
	free(f);
}
END_TEST

START_TEST(healthy_machines_are_ok)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	for (int i = 0; i < 2; i++) {
		struct doctor_lines lines = { .n = 0 };

		if (i == 0) {
			set_user(f);
		} else {
			set_root(f);
		}
		doctor_check(f, NULL, &lines);
		ck_assert_uint_eq(lines.n, DOCTOR_PART_COUNT);
		for (size_t k = 0; k < lines.n; k++) {
			ck_assert_msg(lines.v[k].level == DOCTOR_OK, "%s: %s", lines.v[k].name,
					lines.v[k].detail);
			ck_assert_ptr_nonnull(lines.v[k].detail);
			ck_assert_str_ne(lines.v[k].detail, "");
		}
		doctor_lines_done(&lines);
	}
	free(f);
}
END_TEST

/* Restrictions of ordinary users are none of root's. */
START_TEST(root_is_not_restricted)
{
	static void (*const makes[])(struct doctor_facts * f) = { userns_of_root, apparmor };
	struct doctor_facts *f = mem_new(struct doctor_facts);
	const struct error failure = failure_of(EPERM);

	for (size_t i = 0; i < ARRAY_SIZE(makes); i++) {
		autofree char *cause = NULL;
		autofree char *remedy = NULL;

		set_root(f);
		makes[i](f);
		f->probes[DOCTOR_PROBE_MOUNT] = 0;
		ck_assert(!doctor_find_cause(f, &failure, &cause, &remedy));
		/* In a child user namespace root is an ordinary user. */
		f->initial_userns = false;
		ck_assert(doctor_find_cause(f, &failure, &cause, &remedy));
	}
	free(f);
}
END_TEST

START_TEST(root_needs_no_sudo)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	set_root(f);
	autofree char *text = doctor_text("{sudo}modprobe overlay", f);

	ck_assert_str_eq(text, "modprobe overlay");
	free(f);
}
END_TEST

START_TEST(errors_of_requests_keep_their_hints)
{
	static const enum errc codes[] = { ERRC_NOT_FOUND, ERRC_UNSUPPORTED };
	struct error e = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		(void)error_set(&e, codes[i], "image x");
		doctor_explain(&e);
		ck_assert_str_eq(e.hint, "");
		error_clear(&e);
	}
	(void)error_sys(&e, ENOENT, "open /nowhere");
	doctor_explain(&e);
	ck_assert_str_eq(e.hint, "");
	error_clear(&e);
	(void)error_sys(&e, ENODATA, "open /nowhere");
	(void)error_hint(&e, "its own");
	doctor_explain(&e);
	ck_assert_str_eq(e.hint, "its own");
}
END_TEST

/* Every cause fits into the hint of an error, beside the way to the remedy. */
START_TEST(causes_fit_into_hints)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct error failure = failure_of(rows[i].errnum);
		autofree char *cause = NULL;
		autofree char *remedy = NULL;

		set_user(f);
		rows[i].make(f);
		if (rows[i].errnum != 0 && doctor_find_cause(f, &failure, &cause, &remedy)) {
			ck_assert_msg(strlen(cause) + strlen(": osbx doctor has the remedy") <
							ERROR_HINT_MAX,
					"%s", cause);
		}
	}
	free(f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("doctor");
	TCase *tc = tcase_create("findings");

	tcase_add_loop_test(tc, findings_are_said, 0, ARRAY_SIZE(rows));
	tcase_add_loop_test(tc, cause_is_found, 0, ARRAY_SIZE(rows));
	tcase_add_test(tc, every_finding_is_tested);
	tcase_add_test(tc, other_errors_are_not_explained);
	tcase_add_test(tc, refusals_of_osbx_are_not_explained);
	tcase_add_test(tc, said_causes_are_alone);
	tcase_add_test(tc, healthy_machines_are_ok);
	tcase_add_test(tc, root_is_not_restricted);
	tcase_add_test(tc, root_needs_no_sudo);
	tcase_add_test(tc, errors_of_requests_keep_their_hints);
	tcase_add_test(tc, causes_fit_into_hints);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
