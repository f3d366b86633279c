/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <strings.h>
#include <sys/prctl.h>

#include <osbx/caps.h>
#include <osbx/sys.h>

const uint64_t caps_workload_default =
		CAPS_BIT(CAP_CHOWN) | CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_FOWNER) |
		CAPS_BIT(CAP_FSETID) | CAPS_BIT(CAP_KILL) | CAPS_BIT(CAP_NET_BIND_SERVICE) |
		CAPS_BIT(CAP_SETFCAP) | CAPS_BIT(CAP_SETGID) | CAPS_BIT(CAP_SETPCAP) |
		CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SYS_CHROOT);

#define CAPS_MAX 64

static const char *const names[] = {
	[CAP_CHOWN] = "CAP_CHOWN",
	[CAP_DAC_OVERRIDE] = "CAP_DAC_OVERRIDE",
	[CAP_DAC_READ_SEARCH] = "CAP_DAC_READ_SEARCH",
	[CAP_FOWNER] = "CAP_FOWNER",
	[CAP_FSETID] = "CAP_FSETID",
	[CAP_KILL] = "CAP_KILL",
	[CAP_SETGID] = "CAP_SETGID",
	[CAP_SETUID] = "CAP_SETUID",
	[CAP_SETPCAP] = "CAP_SETPCAP",
	[CAP_LINUX_IMMUTABLE] = "CAP_LINUX_IMMUTABLE",
	[CAP_NET_BIND_SERVICE] = "CAP_NET_BIND_SERVICE",
	[CAP_NET_BROADCAST] = "CAP_NET_BROADCAST",
	[CAP_NET_ADMIN] = "CAP_NET_ADMIN",
	[CAP_NET_RAW] = "CAP_NET_RAW",
	[CAP_IPC_LOCK] = "CAP_IPC_LOCK",
	[CAP_IPC_OWNER] = "CAP_IPC_OWNER",
	[CAP_SYS_MODULE] = "CAP_SYS_MODULE",
	[CAP_SYS_RAWIO] = "CAP_SYS_RAWIO",
	[CAP_SYS_CHROOT] = "CAP_SYS_CHROOT",
	[CAP_SYS_PTRACE] = "CAP_SYS_PTRACE",
	[CAP_SYS_PACCT] = "CAP_SYS_PACCT",
	[CAP_SYS_ADMIN] = "CAP_SYS_ADMIN",
	[CAP_SYS_BOOT] = "CAP_SYS_BOOT",
	[CAP_SYS_NICE] = "CAP_SYS_NICE",
	[CAP_SYS_RESOURCE] = "CAP_SYS_RESOURCE",
	[CAP_SYS_TIME] = "CAP_SYS_TIME",
	[CAP_SYS_TTY_CONFIG] = "CAP_SYS_TTY_CONFIG",
	[CAP_MKNOD] = "CAP_MKNOD",
	[CAP_LEASE] = "CAP_LEASE",
	[CAP_AUDIT_WRITE] = "CAP_AUDIT_WRITE",
	[CAP_AUDIT_CONTROL] = "CAP_AUDIT_CONTROL",
	[CAP_SETFCAP] = "CAP_SETFCAP",
	[CAP_MAC_OVERRIDE] = "CAP_MAC_OVERRIDE",
	[CAP_MAC_ADMIN] = "CAP_MAC_ADMIN",
	[CAP_SYSLOG] = "CAP_SYSLOG",
	[CAP_WAKE_ALARM] = "CAP_WAKE_ALARM",
	[CAP_BLOCK_SUSPEND] = "CAP_BLOCK_SUSPEND",
	[CAP_AUDIT_READ] = "CAP_AUDIT_READ",
	[CAP_PERFMON] = "CAP_PERFMON",
	[CAP_BPF] = "CAP_BPF",
	[CAP_CHECKPOINT_RESTORE] = "CAP_CHECKPOINT_RESTORE",
};

static int ambient_clear(void)
{
	return sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
}

static int inheritable_clear(void)
{
	struct sys_caps caps = { 0 };
	int r = sys_capget(&caps);

	if (r < 0 || caps.inheritable == 0) {
		return r;
	}
	caps.inheritable = 0;
	return sys_capset(&caps);
}

int caps_bound(uint64_t mask)
{
	for (int cap = 0; cap < CAPS_MAX; cap++) {
		int r = sys_prctl(PR_CAPBSET_READ, (unsigned long)cap);

		if (r == -EINVAL) {
			break; /* above the last one of this kernel */
		}
		if (r > 0 && !(mask & CAPS_BIT(cap))) {
			r = sys_prctl(PR_CAPBSET_DROP, (unsigned long)cap);
		}
		if (r < 0) {
			return r;
		}
	}
	int r = inheritable_clear();

	return r < 0 ? r : ambient_clear();
}

int caps_set(uint64_t mask)
{
	return sys_capset(&(struct sys_caps){ .effective = mask, .permitted = mask });
}

int caps_from_name(const char *name)
{
	if (strncasecmp(name, "CAP_", 4) == 0) {
		name += 4;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcasecmp(names[i] + 4, name) == 0) {
			return (int)i;
		}
	}
	return -EINVAL;
}

const char *caps_name(int cap)
{
	return cap >= 0 && (size_t)cap < ARRAY_SIZE(names) ? names[cap] : NULL;
}
