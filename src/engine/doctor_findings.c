/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <string.h>

#include <osbx/caps.h>
#include <osbx/str.h>

#include "doctor_table.h"

#define SPACE_NONE   (UINT64_C(16) << 20)
#define SPACE_LITTLE (UINT64_C(1) << 30)
#define INODES_NONE  64
/* 2024: older than any registry's certificate. */
#define CLOCK_MIN_MS INT64_C(1704067200000)

#define SUBIDS_REMEDY \
	"{sudo}usermod --add-subuids {first}-{last} --add-subgids {first}-{last} {user}"
#define PLACE_REMEDY \
	"export OSBX_ROOT=/var/tmp/osbx-$(id -u)    # any directory on ext4, xfs, btrfs or tmpfs"
#define PROFILE_REMEDY                                                                      \
	"printf 'abi <abi/4.0>,\\nprofile osbx {exe} flags=(unconfined) { userns, }\\n' | " \
	"{sudo}tee /etc/apparmor.d/osbx\n"                                                  \
	"{sudo}apparmor_parser -r /etc/apparmor.d/osbx"

static bool is_before(const struct doctor_facts *f, unsigned int major, unsigned int minor)
{
	return f->version[0] < major || (f->version[0] == major && f->version[1] < minor);
}

static bool is_privileged(const struct doctor_facts *f)
{
	return f->initial_userns && (f->caps & CAPS_BIT(CAP_SYS_ADMIN));
}

static bool is_refusal(int errnum)
{
	return errnum == EPERM || errnum == EACCES || errnum == ENOSYS || errnum == EINTR;
}

static bool kernel_is_old(const struct doctor_facts *f)
{
	return is_before(f, 5, 12);
}

/* CVE-2022-0847 came with 5.8. Series that nobody maintains have no corrected release. */
static bool kernel_has_dirty_pipe(const struct doctor_facts *f)
{
	static const unsigned int fixed[][3] = { { 5, 10, 102 }, { 5, 15, 25 }, { 5, 16, 11 } };

	if (!f->version_certain || is_before(f, 5, 8) || !is_before(f, 5, 17)) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
		if (f->version[1] == fixed[i][1]) {
			return f->version[2] < fixed[i][2];
		}
	}
	return true;
}

static bool userns_are_off(const struct doctor_facts *f)
{
	return f->max_user_namespaces == 0;
}

static bool userns_are_for_root(const struct doctor_facts *f)
{
	return f->unprivileged_userns_clone == 0 && !is_privileged(f);
}

static bool userns_are_missing(const struct doctor_facts *f)
{
	return f->probes[DOCTOR_PROBE_USERNS] == EINVAL;
}

static bool userns_are_used_up(const struct doctor_facts *f)
{
	return f->probes[DOCTOR_PROBE_USERNS] == ENOSPC && !userns_are_off(f) &&
	       f->zero_limit[0] == '\0';
}

static bool limit_is_zero(const struct doctor_facts *f)
{
	return f->zero_limit[0] != '\0';
}

static bool apparmor_restricts(const struct doctor_facts *f)
{
	return f->apparmor_userns == 1 && !is_privileged(f) &&
	       (f->apparmor_label[0] == '\0' || str_eq(f->apparmor_label, "unconfined"));
}

static bool apparmor_lacks_profile(const struct doctor_facts *f)
{
	return apparmor_restricts(f) && !f->apparmor_profile;
}

static bool apparmor_ignores_profile(const struct doctor_facts *f)
{
	return apparmor_restricts(f) && f->apparmor_profile;
}

static bool apparmor_stacks(const struct doctor_facts *f)
{
	return apparmor_restricts(f) && f->apparmor_unconfined == 1;
}

static bool is_in_restricted_userns(const struct doctor_facts *f)
{
	return str_after(f->apparmor_label, "unprivileged_userns") != NULL;
}

static bool apparmor_confines(const struct doctor_facts *f)
{
	return str_has_suffix(f->apparmor_label, "(enforce)") && !is_in_restricted_userns(f) &&
	       (is_refusal(f->probes[DOCTOR_PROBE_USERNS]) ||
			       is_refusal(f->probes[DOCTOR_PROBE_MOUNT]));
}

static bool filter_refuses(const struct doctor_facts *f)
{
	if (f->seccomp_mode <= 0 || userns_are_for_root(f) || apparmor_restricts(f)) {
		return false;
	}
	for (size_t i = 0; i < DOCTOR_PROBE_OPTIONAL; i++) {
		if (is_refusal(f->probes[i])) {
			return true;
		}
	}
	return false;
}

static bool filter_hides(const struct doctor_facts *f)
{
	return f->seccomp_mode > 0 && !filter_refuses(f) &&
	       (f->probes[DOCTOR_PROBE_OPENAT2] != 0 || f->probes[DOCTOR_PROBE_CLONE3] != 0);
}

/* Nothing that is known does it. */
static bool userns_are_refused(const struct doctor_facts *f)
{
	return is_refusal(f->probes[DOCTOR_PROBE_USERNS]) && !userns_are_for_root(f) &&
	       !apparmor_restricts(f) && !apparmor_confines(f) && f->seccomp_mode <= 0;
}

static bool userns_are_powerless(const struct doctor_facts *f)
{
	return is_refusal(f->probes[DOCTOR_PROBE_MOUNT]) && !apparmor_restricts(f) &&
	       !apparmor_confines(f) && !is_in_restricted_userns(f) && f->seccomp_mode <= 0;
}

static bool proc_is_masked(const struct doctor_facts *f)
{
	return f->proc_mask[0] != '\0';
}

static bool ids_are_impossible(const struct doctor_facts *f)
{
	return f->map_error.code != ERRC_OK && !userns_are_off(f) && !userns_are_for_root(f);
}

static bool has_map(const struct doctor_facts *f, enum idmap_mode mode)
{
	return f->uid != 0 && f->map_error.code == ERRC_OK && f->map.mode == mode;
}

static bool helper_is_plain(const struct doctor_facts *f)
{
	return has_map(f, IDMAP_SUBID) && (!f->helpers[0].privileged || !f->helpers[1].privileged);
}

static bool helper_is_on_nosuid(const struct doctor_facts *f)
{
	return has_map(f, IDMAP_SUBID) && (f->helpers[0].on_nosuid || f->helpers[1].on_nosuid);
}

static bool helpers_are_missing(const struct doctor_facts *f)
{
	return has_map(f, IDMAP_SINGLE) &&
	       (f->helpers[0].path[0] == '\0' || f->helpers[1].path[0] == '\0');
}

static bool helpers_are_powerless(const struct doctor_facts *f)
{
	return has_map(f, IDMAP_SINGLE) && !helpers_are_missing(f) && f->no_new_privs;
}

static bool subids_are_missing(const struct doctor_facts *f)
{
	return has_map(f, IDMAP_SINGLE) && (f->subids[0].count == 0 || f->subids[1].count == 0);
}

/* Together with the user's own id. */
static bool subids_are_few(const struct doctor_facts *f)
{
	return has_map(f, IDMAP_SUBID) &&
	       (f->subids[0].count + 1 < IDMAP_SANDBOX_IDS ||
			       f->subids[1].count + 1 < IDMAP_SANDBOX_IDS);
}

static bool subids_overlap(const struct doctor_facts *f)
{
	return f->uid != 0 && (f->subids[0].overlaps[0] || f->subids[1].overlaps[0]);
}

static bool store_is_read_only(const struct doctor_facts *f)
{
	return f->store.read_only;
}

static bool store_refuses_upper(const struct doctor_facts *f)
{
	return f->store.path[0] != '\0' && doctor_fs_refuses_upper(f->store.type);
}

static bool store_is_full(const struct doctor_facts *f)
{
	return f->store.path[0] != '\0' &&
	       (f->store.free_bytes < SPACE_NONE || f->store.free_inodes < INODES_NONE);
}

static bool store_is_tight(const struct doctor_facts *f)
{
	return f->store.path[0] != '\0' && !store_is_full(f) && f->store.free_bytes < SPACE_LITTLE;
}

static bool store_lacks_attributes(const struct doctor_facts *f)
{
	return f->store.xattr_errno == EOPNOTSUPP || f->store.xattr_errno == EPERM;
}

static bool runtime_is_read_only(const struct doctor_facts *f)
{
	return f->runtime.read_only;
}

static bool runtime_is_unset(const struct doctor_facts *f)
{
	return f->uid != 0 && !f->runtime_variable && f->systemd;
}

static bool runtime_is_on_disk(const struct doctor_facts *f)
{
	return f->runtime.path[0] != '\0' && f->runtime.type != TMPFS_MAGIC &&
	       f->runtime.type != RAMFS_MAGIC;
}

static bool overlay_is_absent(const struct doctor_facts *f)
{
	return !f->overlay_known && !f->overlay_module;
}

static bool overlay_is_unloaded(const struct doctor_facts *f)
{
	return !f->overlay_known && f->overlay_module;
}

static bool kernel_maps_no_overlay(const struct doctor_facts *f)
{
	return f->map.mode == IDMAP_MAPPED && f->map_error.code == ERRC_OK && is_before(f, 5, 19);
}

static bool store_maps_not(const struct doctor_facts *f)
{
	return f->map.mode == IDMAP_MAPPED && f->map_error.code == ERRC_OK &&
	       !is_before(f, 5, 19) && f->store_unmapped;
}

static bool cgroup_is_missing(const struct doctor_facts *f)
{
	return !f->cgroup.unified;
}

static bool cgroup_is_foreign(const struct doctor_facts *f)
{
	return f->cgroup.unified && !f->cgroup.writable && (f->uid == 0 || !f->systemd);
}

static bool cgroup_has_no_manager(const struct doctor_facts *f)
{
	return f->cgroup.unified && !f->cgroup.writable && f->uid != 0 && f->systemd;
}

static bool cgroup_is_partial(const struct doctor_facts *f)
{
	return f->cgroup.unified && f->cgroup.writable && doctor_controllers_missing(f, NULL) > 0;
}

static bool cgroup_is_partly_delegated(const struct doctor_facts *f)
{
	return cgroup_is_partial(f) && f->uid != 0 && f->systemd;
}

static bool cgroup_is_partly_there(const struct doctor_facts *f)
{
	return cgroup_is_partial(f) && !cgroup_is_partly_delegated(f);
}

static bool network_fails(const struct doctor_facts *f)
{
	return f->net_error.code != ERRC_OK;
}

static bool ping_is_closed(const struct doctor_facts *f)
{
	return f->no_ping;
}

static bool session_ends(const struct doctor_facts *f)
{
	return f->uid != 0 && f->systemd && !f->linger;
}

static bool library_is_missing(const struct doctor_facts *f)
{
	for (size_t i = 0; i < f->features_n; i++) {
		if (!f->features[i].found) {
			return true;
		}
	}
	return false;
}

static bool clock_is_wrong(const struct doctor_facts *f)
{
	return f->wall_ms < CLOCK_MIN_MS;
}

const struct doctor_finding doctor_findings[] = {
	{ DOCTOR_PART_KERNEL, kernel_is_old, "Linux {release} is too old: osbx needs 5.12",
			"{sudo}apt full-upgrade    # and boot the new kernel",
			{ EPERM, ENOSYS, EINVAL, ENODEV, EOPNOTSUPP } },
	{ DOCTOR_PART_KERNEL, kernel_has_dirty_pipe,
			"Linux {release} has CVE-2022-0847: a sandbox can write to layers that "
			"others share",
			"{sudo}apt full-upgrade    # to 5.10.102, 5.15.25, 5.16.11 or later",
			{ 0 } },
	{ DOCTOR_PART_USERNS, userns_are_off,
			"user namespaces are off (user.max_user_namespaces is 0)",
			"{sudo}sysctl -w user.max_user_namespaces=15000\n"
			"echo user.max_user_namespaces=15000 | {sudo}tee /etc/sysctl.d/60-osbx.conf",
			{ ENOSPC, EPERM, EUSERS } },
	{ DOCTOR_PART_USERNS, userns_are_for_root,
			"user namespaces are for root only (kernel.unprivileged_userns_clone is 0)",
			"{sudo}sysctl -w kernel.unprivileged_userns_clone=1\n"
			"echo kernel.unprivileged_userns_clone=1 | "
			"{sudo}tee /etc/sysctl.d/60-osbx.conf",
			{ EPERM } },
	{ DOCTOR_PART_USERNS, userns_are_missing,
			"this kernel was built without user namespaces (CONFIG_USER_NS)",
			"{sudo}apt install linux-image-$(dpkg --print-architecture)    # and boot it",
			{ EINVAL } },
	{ DOCTOR_PART_USERNS, userns_are_used_up,
			"as many user namespaces as allowed exist, or they are nested too deep",
			"{sudo}sysctl -w user.max_user_namespaces=65536", { ENOSPC, EUSERS } },
	{ DOCTOR_PART_USERNS, limit_is_zero, "{limit} is 0", "{sudo}sysctl -w {limit}=15000",
			{ ENOSPC } },
	{ DOCTOR_PART_USERNS, userns_are_refused,
			"something refuses new user namespaces: a security module, a chroot, or "
			"what osbx was started by",
			NULL, { EPERM, EACCES, ENOSYS } },
	{ DOCTOR_PART_USERNS, userns_are_powerless,
			"a security module takes the capabilities of new user namespaces", NULL,
			{ EPERM, EACCES } },
	{ DOCTOR_PART_APPARMOR, apparmor_lacks_profile,
			"AppArmor restricts user namespaces of programs without a profile "
			"(kernel.apparmor_restrict_unprivileged_userns is 1)",
			PROFILE_REMEDY, { EPERM, EACCES } },
	{ DOCTOR_PART_APPARMOR, apparmor_ignores_profile,
			"AppArmor's profile /etc/apparmor.d/osbx is not loaded, or not for {exe}",
			PROFILE_REMEDY, { EPERM, EACCES } },
	{ DOCTOR_PART_APPARMOR, apparmor_stacks,
			"kernel.apparmor_restrict_unprivileged_unconfined is 1, too: aa-exec is no "
			"way around, only a profile for the program's path is",
			NULL, { 0 } },
	{ DOCTOR_PART_APPARMOR, is_in_restricted_userns,
			"osbx was started in a user namespace that AppArmor restricts: start it "
			"outside",
			NULL, { EPERM, EACCES } },
	{ DOCTOR_PART_APPARMOR, apparmor_confines, "AppArmor's profile {label} refuses {call}",
			"docker run --security-opt apparmor=unconfined ...    # podman: the same",
			{ EPERM, EACCES } },
	{ DOCTOR_PART_SECCOMP, filter_refuses, "a seccomp filter of {container} refuses {call}",
			"docker run --security-opt seccomp=unconfined ...    # podman: the same",
			{ EPERM, EACCES, ENOSYS, EINVAL } },
	{ DOCTOR_PART_SECCOMP, filter_hides,
			"a seccomp filter hides {call}: slower substitutes are used", NULL, { 0 } },
	{ DOCTOR_PART_PROC, proc_is_masked,
			"{mask} is covered by {container}: then the kernel lets nobody mount "
			"another /proc",
			"docker run --security-opt systempaths=unconfined ...\n"
			"podman run --security-opt unmask=ALL ...",
			{ EPERM, EACCES } },
	{ DOCTOR_PART_IDS, ids_are_impossible, "{ids}", NULL, { EPERM } },
	{ DOCTOR_PART_IDS, helper_is_plain,
			"{helper} is not set-user-id root and has no file capabilities",
			"{sudo}chown root {helper} && {sudo}chmod u+s {helper}", { EPERM } },
	{ DOCTOR_PART_IDS, helper_is_on_nosuid,
			"{helper} is on a file system that is mounted nosuid",
			"{sudo}mount -o remount,suid $(findmnt -n -o TARGET -T {helper})",
			{ EPERM } },
	{ DOCTOR_PART_IDS, helpers_are_missing,
			"single: newuidmap and newgidmap are not installed, so there is one id, and "
			"files of other owners are squashed",
			"{sudo}apt install uidmap", { 0 } },
	{ DOCTOR_PART_IDS, helpers_are_powerless,
			"single: no_new_privs is set, so newuidmap has no privilege and there is one "
			"id",
			NULL, { 0 } },
	{ DOCTOR_PART_IDS, subids_are_missing,
			"single: {user} has {uids} ids in /etc/subuid and {gids} in /etc/subgid, so "
			"there is one id, and files of other owners are squashed",
			SUBIDS_REMEDY, { 0 } },
	{ DOCTOR_PART_IDS, subids_are_few,
			"subid: {user} has {uids} ids in /etc/subuid and {gids} in /etc/subgid; an "
			"image may need 65536",
			SUBIDS_REMEDY, { 0 } },
	{ DOCTOR_PART_IDS, subids_overlap,
			"subordinate ids of {user} are also ids of {overlaps}: their files are not "
			"apart",
			SUBIDS_REMEDY "    # then remove the old lines of {user}", { 0 } },
	{ DOCTOR_PART_STORE, store_is_read_only, "{root} is mounted read-only", PLACE_REMEDY,
			{ EROFS, EACCES } },
	{ DOCTOR_PART_STORE, store_refuses_upper,
			"{root} is on {fs}, which cannot be the upper directory of an overlay",
			PLACE_REMEDY, { EINVAL, EOPNOTSUPP, EPERM, EACCES, EIO } },
	{ DOCTOR_PART_STORE, store_is_full, "{root} has {free} free",
			"osbx gc\nosbx images    # then osbx rmi those that can go",
			{ ENOSPC, EDQUOT } },
	{ DOCTOR_PART_STORE, store_is_tight,
			"{root} has {free} free: too little for images of usual size", "osbx gc",
			{ 0 } },
	{ DOCTOR_PART_STORE, store_lacks_attributes,
			"{root} is on {fs} without extended attributes user.*: replaced directories "
			"and single ids need them",
			PLACE_REMEDY, { EOPNOTSUPP, EINVAL } },
	{ DOCTOR_PART_RUNTIME, runtime_is_read_only, "{runtime} is mounted read-only",
			"export OSBX_RUNTIME=/tmp/osbx-$(id -u)", { EROFS, EACCES } },
	{ DOCTOR_PART_RUNTIME, runtime_is_unset,
			"XDG_RUNTIME_DIR is not set, as after su: {runtime} is used",
			"{sudo}loginctl enable-linger {user}\n"
			"export XDG_RUNTIME_DIR=/run/user/$(id -u)",
			{ 0 } },
	{ DOCTOR_PART_RUNTIME, runtime_is_on_disk,
			"{runtime} is on {runtime_fs}, not on a tmpfs: what a crash leaves there "
			"survives a reboot, until osbx gc",
			NULL, { 0 } },
	{ DOCTOR_PART_OVERLAY, overlay_is_absent,
			"no overlay file system in Linux {release} and no module for it: was the "
			"kernel upgraded since the last boot?",
			"{sudo}reboot", { ENODEV, EINVAL, EPERM } },
	{ DOCTOR_PART_OVERLAY, overlay_is_unloaded, "the module overlay is not loaded",
			"{sudo}modprobe overlay\n"
			"echo overlay | {sudo}tee /etc/modules-load.d/overlay.conf",
			{ ENODEV, EINVAL, EPERM } },
	{ DOCTOR_PART_MAPPED, kernel_maps_no_overlay,
			"overlay takes none before Linux 5.19: all sandboxes of root share one range "
			"of ids",
			NULL, { 0 } },
	{ DOCTOR_PART_MAPPED, store_maps_not,
			"{fs} of {root} takes none: all sandboxes of root share one range of ids",
			"export OSBX_ROOT=/var/tmp/osbx    # any directory on ext4, xfs or btrfs",
			{ 0 } },
	{ DOCTOR_PART_CGROUP, cgroup_is_missing,
			"this process is in no cgroup of version 2: sandboxes cannot be frozen or "
			"limited",
			NULL, { 0 } },
	{ DOCTOR_PART_CGROUP, cgroup_is_foreign,
			"the cgroup of this process is not delegated to {user}: sandboxes cannot be "
			"frozen or limited",
			NULL, { 0 } },
	{ DOCTOR_PART_CGROUP, cgroup_has_no_manager,
			"the cgroup of this process is not delegated to {user}, and no manager of "
			"{user}'s runs: sandboxes cannot be frozen or limited",
			"{sudo}loginctl enable-linger {user}", { 0 } },
	{ DOCTOR_PART_CGROUP, cgroup_is_partly_delegated,
			"delegated without {controllers}: sandboxes cannot be limited in that",
			"{sudo}mkdir -p /etc/systemd/system/user@.service.d\n"
			"printf '[Service]\\nDelegate=cpu memory pids\\n' | "
			"{sudo}tee /etc/systemd/system/user@.service.d/delegate.conf\n"
			"{sudo}systemctl daemon-reload    # then log in anew",
			{ 0 } },
	{ DOCTOR_PART_CGROUP, cgroup_is_partly_there,
			"version 2 has no {controllers} here: sandboxes cannot be limited in that",
			NULL, { 0 } },
	{ DOCTOR_PART_NETWORK, network_fails,
			"{network}: only sandboxes with --network none or host can start",
			"{sudo}modprobe -a nf_tables nft_chain_nat nft_ct nft_tproxy nft_reject_inet",
			{ 0 } },
	{ DOCTOR_PART_NETWORK, ping_is_closed,
			"can be made, but carries no ping: {user} may have no socket for it",
			"{sudo}sysctl -w net.ipv4.ping_group_range='0 2147483647'\n"
			"echo net.ipv4.ping_group_range=0 2147483647 | "
			"{sudo}tee /etc/sysctl.d/60-osbx-ping.conf",
			{ 0 } },
	{ DOCTOR_PART_SESSION, session_ends, "a logout ends what {user} runs in the background",
			"loginctl enable-linger {user}", { 0 } },
	{ DOCTOR_PART_LIBRARIES, library_is_missing, "{libraries}", "{sudo}apt install {packages}",
			{ 0 } },
	{ DOCTOR_PART_CLOCK, clock_is_wrong,
			"it is {clock} here: registries' certificates are not valid yet",
			"{sudo}timedatectl set-ntp true", { 0 } },
};
const size_t doctor_findings_n = ARRAY_SIZE(doctor_findings);
