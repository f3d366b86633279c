/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/caps.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/spawn.h>
#include <osbx/sys.h>

#include "idmap_internal.h"

/* Linux's PROC_USER_INIT_INO: fixed since namespaces have inodes. */
#define USER_INIT_INO 0xEFFFFFFDU
#define SYSCTL_BYTES  32
#define MAP_BYTES     ((size_t)340 * 36)

static const char *const mode_names[] = {
	[IDMAP_MAPPED] = "mapped",
	[IDMAP_SHARED] = "shared",
	[IDMAP_SUBID] = "subid",
	[IDMAP_SINGLE] = "single",
};
_Static_assert(ARRAY_SIZE(mode_names) == IDMAP_MODE_COUNT, "one name per mode");

/* Settings of the kernel that keep a process from making user namespaces. */
static const struct blocker {
	const char *path;
	const char *value;
	bool ordinary; /* stops only processes without CAP_SYS_ADMIN */
	bool certain;  /* else it may be that a profile of osbx lifts it */
	const char *what;
	const char *remedy;
} blockers[] = {
	{
			.path = "/proc/sys/user/max_user_namespaces",
			.value = "0",
			.certain = true,
			.what = "user namespaces are off (user.max_user_namespaces is 0)",
			.remedy = "sysctl -w user.max_user_namespaces=15000",
	},
	{
			.path = "/proc/sys/kernel/unprivileged_userns_clone",
			.value = "0",
			.ordinary = true,
			.certain = true,
			.what = "user namespaces are for root only (kernel.unprivileged_userns_clone "
				"is 0)",
			.remedy = "sysctl -w kernel.unprivileged_userns_clone=1",
	},
	{
			.path = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
			.value = "1",
			.ordinary = true,
			.what = "AppArmor restricts user namespaces "
				"(kernel.apparmor_restrict_unprivileged_userns is 1)",
			.remedy = "load an AppArmor profile for osbx that permits userns, or sysctl -w "
				  "kernel.apparmor_restrict_unprivileged_userns=0",
	},
};

const char *idmap_mode_name(enum idmap_mode mode)
{
	return (unsigned int)mode < IDMAP_MODE_COUNT ? mode_names[mode] : "unknown";
}

bool idmap_is_initial_userns(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino == USER_INIT_INO;
}

void idmap_set_first(struct idmap *map, uint32_t first)
{
	idmap_set_ranges(map, first, IDMAP_SANDBOX_IDS, IDMAP_SANDBOX_IDS);
}

uint32_t idmap_outside(const struct idmap_range *ranges, size_t n, uint32_t inside)
{
	for (size_t i = 0; i < n; i++) {
		if (inside >= ranges[i].inside && inside - ranges[i].inside < ranges[i].count) {
			return ranges[i].outside + (inside - ranges[i].inside);
		}
	}
	return UINT32_MAX;
}

/* The whole file, or nothing when it is missing, unreadable or larger than the buffer. */
static struct span file_span(const char *path, struct buf *b)
{
	if (file_read_at(AT_FDCWD, path, b) < 0) {
		buf_reset(b);
	}
	return buf_span(b);
}

void idmap_root_range(uint32_t *out_first, uint32_t *out_count)
{
	AUTO(buf) struct buf subuid = BUF_INIT(LIMIT_PASSWD_BYTES);

	idmap_root_range_in(file_span("/etc/subuid", &subuid), out_first, out_count);
}

static uint64_t caps_effective(void)
{
	struct sys_caps caps = { 0 };

	return sys_capget(&caps) == 0 ? caps.effective : 0;
}

static bool blocker_holds(const struct blocker *b, uint64_t caps)
{
	AUTO(buf) struct buf text = BUF_INIT(SYSCTL_BYTES);
	struct span value = { .n = 0 };

	if (b->ordinary && (caps & CAPS_BIT(CAP_SYS_ADMIN))) {
		return false;
	}
	struct span rest = file_span(b->path, &text);

	return span_next(&rest, '\n', &value) && span_eq(value, span_of(b->value));
}

static int blockers_check(uint64_t caps, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(blockers); i++) {
		if (blockers[i].certain && blocker_holds(&blockers[i], caps)) {
			error_set(e, ERRC_UNSUPPORTED, "%s", blockers[i].what);
			return error_hint(e, "%s", blockers[i].remedy);
		}
	}
	return 0;
}

int idmap_hint(struct error *e)
{
	uint64_t caps = caps_effective();

	assert(e->code != ERRC_OK);
	for (size_t i = 0; i < ARRAY_SIZE(blockers); i++) {
		if (blocker_holds(&blockers[i], caps)) {
			return error_hint(e, "%s: %s", blockers[i].what, blockers[i].remedy);
		}
	}
	switch (e->sysno) {
	case ENOSPC:
		return error_hint(e, "the limit of user namespaces is reached: raise "
				     "user.max_user_namespaces");
	case EUSERS:
		return error_hint(e, "user namespaces are nested too deep here");
	case EPERM:
	case EACCES:
		return error_hint(e, "a seccomp filter, a security module or a chroot around this "
				     "process refuses user namespaces");
	default:
		return -1;
	}
}

static bool helpers_exist(void)
{
	autofree char *uids = spawn_find("newuidmap");
	autofree char *gids = spawn_find("newgidmap");

	/* With no_new_privs they start without their privilege. */
	return uids && gids && prctl(PR_GET_NO_NEW_PRIVS, 0UL, 0UL, 0UL, 0UL) == 0;
}

int idmap_choose(struct idmap *out_map, struct error *e)
{
	AUTO(buf) struct buf uid_map = BUF_INIT(MAP_BYTES);
	AUTO(buf) struct buf gid_map = BUF_INIT(MAP_BYTES);
	AUTO(buf) struct buf setgroups = BUF_INIT(SYSCTL_BYTES);
	AUTO(buf) struct buf subuid = BUF_INIT(LIMIT_PASSWD_BYTES);
	AUTO(buf) struct buf subgid = BUF_INIT(LIMIT_PASSWD_BYTES);
	AUTO(buf) struct buf passwd = BUF_INIT(LIMIT_PASSWD_BYTES);
	struct idmap_facts facts = {
		.euid = geteuid(),
		.egid = getegid(),
		.caps = caps_effective(),
		.initial = idmap_is_initial_userns(),
	};

	if (blockers_check(facts.caps, e) < 0) {
		return -1;
	}
	/* Nothing else decides, and each file takes its time. */
	if (idmap_may_map(&facts)) {
		return idmap_decide(&facts, out_map, e);
	}
	facts.uid_map = file_span("/proc/self/uid_map", &uid_map);
	facts.gid_map = file_span("/proc/self/gid_map", &gid_map);
	facts.setgroups = span_has_prefix(
			file_span("/proc/self/setgroups", &setgroups), span_of("allow"));
	facts.subuid = file_span("/etc/subuid", &subuid);
	if (facts.euid != 0) {
		facts.subgid = file_span("/etc/subgid", &subgid);
		facts.passwd = file_span("/etc/passwd", &passwd);
		facts.helpers = helpers_exist();
	}
	return idmap_decide(&facts, out_map, e);
}
