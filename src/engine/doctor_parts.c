/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <osbx/clock.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "doctor_table.h"

static char *describe_kernel(const struct doctor_facts *f)
{
	return mem_printf("%s %s %s", f->uts.sysname, f->uts.release, f->uts.machine);
}

static char *describe_userns(const struct doctor_facts *f)
{
	return f->max_user_namespaces == DOCTOR_ABSENT
			       ? mem_strdup("allowed")
			       : mem_printf("allowed, at most %lld",
						 (long long)f->max_user_namespaces);
}

static char *describe_apparmor(const struct doctor_facts *f)
{
	return f->apparmor_label[0] != '\0' ? mem_printf("label %s", f->apparmor_label)
					    : mem_strdup("not in use");
}

static char *describe_seccomp(const struct doctor_facts *f)
{
	return mem_strdup(f->seccomp_mode > 0 ? "a filter around osbx lets through what it needs"
					      : "no filter around osbx");
}

static char *describe_proc(const struct doctor_facts *f)
{
	return f->container[0] != '\0' ? mem_printf("nothing of it is masked in %s", f->container)
				       : mem_strdup("nothing of it is masked");
}

static char *describe_ids(const struct doctor_facts *f)
{
	static const char *const texts[] = {
		[IDMAP_MAPPED] = "each sandbox has a range of its own",
		[IDMAP_SHARED] = "all sandboxes share one range",
		[IDMAP_SUBID] = "subordinate ids of this user",
		[IDMAP_SINGLE] = "container root is this user, other ids are squashed",
	};
	uint64_t n = 0;

	for (size_t i = 0; i < f->map.uids_n; i++) {
		n += f->map.uids[i].count;
	}
	return mem_printf("%s: %s (%llu ids)", idmap_mode_name(f->map.mode), texts[f->map.mode],
			(unsigned long long)n);
}

static char *describe_place(const struct doctor_place *p)
{
	char type[DOCTOR_WORD_MAX];
	char size[32];

	doctor_fs_name(p->type, type);
	str_from_size(p->free_bytes, size, sizeof(size));
	return mem_printf("%s on %s, %s free", p->path[0] ? p->path : "unknown", type, size);
}

static char *describe_store(const struct doctor_facts *f)
{
	return describe_place(&f->store);
}

static char *describe_runtime(const struct doctor_facts *f)
{
	return describe_place(&f->runtime);
}

static char *describe_overlay(const struct doctor_facts *f)
{
	return mem_strdup(f->overlay_known ? "in the kernel" : "a module that can be loaded");
}

static char *describe_mapped(const struct doctor_facts *f)
{
	return mem_strdup(f->map.mode != IDMAP_MAPPED ? "not needed"
			  : f->store_maps             ? "the store takes them"
						      : "not tried yet");
}

static char *describe_cgroup(const struct doctor_facts *f)
{
	return mem_printf("version 2, %s, with %s",
			f->cgroup.scope ? "scopes of systemd" : "writable", f->cgroup.controllers);
}

static char *describe_network(const struct doctor_facts *f)
{
	(void)f;
	return mem_strdup("can be made, with a policy; carries TCP, UDP and ping");
}

static char *describe_session(const struct doctor_facts *f)
{
	return mem_strdup(f->uid == 0  ? "root's processes outlive a logout"
			  : f->systemd ? "processes outlive a logout (linger)"
				       : "no systemd that ends processes at logout");
}

static char *describe_libraries(const struct doctor_facts *f)
{
	AUTO(buf) struct buf out = BUF_INIT(1024);
	int r = 0;

	for (size_t i = 0; i < f->features_n && r == 0; i++) {
		r = buf_appendf(&out, "%s%s%s%s", i > 0 ? ", " : "", f->features[i].name,
				f->features[i].version[0] ? " " : "", f->features[i].version);
	}
	return buf_take(&out);
}

static char *describe_clock(const struct doctor_facts *f)
{
	char text[CLOCK_RFC3339_MAX];

	clock_rfc3339(f->wall_ms, text, sizeof(text));
	return mem_strdup(text);
}

const struct doctor_part_row doctor_parts[DOCTOR_PART_COUNT] = {
	[DOCTOR_PART_KERNEL] = { "kernel", describe_kernel },
	[DOCTOR_PART_USERNS] = { "user namespaces", describe_userns },
	[DOCTOR_PART_APPARMOR] = { "AppArmor", describe_apparmor },
	[DOCTOR_PART_SECCOMP] = { "seccomp", describe_seccomp },
	[DOCTOR_PART_PROC] = { "/proc", describe_proc },
	[DOCTOR_PART_IDS] = { "ids", describe_ids },
	[DOCTOR_PART_STORE] = { "store", describe_store },
	[DOCTOR_PART_RUNTIME] = { "runtime directory", describe_runtime },
	[DOCTOR_PART_OVERLAY] = { "overlay", describe_overlay },
	[DOCTOR_PART_MAPPED] = { "id-mapped mounts", describe_mapped },
	[DOCTOR_PART_CGROUP] = { "cgroup", describe_cgroup },
	[DOCTOR_PART_NETWORK] = { "private network", describe_network },
	[DOCTOR_PART_SESSION] = { "session", describe_session },
	[DOCTOR_PART_LIBRARIES] = { "libraries", describe_libraries },
	[DOCTOR_PART_CLOCK] = { "clock", describe_clock },
};
