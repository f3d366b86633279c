/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <osbx/mem.h>
#include <osbx/mountplan.h>
#include <osbx/path.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "mount_internal.h"

#define SHM_DEFAULT_BYTES (UINT64_C(64) << 20)
/* The group that terminals belong to in every distribution. */
#define TTY_GID 5

#define INERT (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static const char *const kind_names[] = {
	[MOUNT_FS] = "fs",
	[MOUNT_TREE] = "tree",
	[MOUNT_FILE] = "file",
	[MOUNT_DIR] = "dir",
	[MOUNT_DEVICE] = "device",
	[MOUNT_HOST_SYS] = "host-sys",
	[MOUNT_SYMLINK] = "symlink",
	[MOUNT_MASK] = "mask",
	[MOUNT_READONLY] = "readonly",
	[MOUNT_SEAL] = "seal",
};
_Static_assert(ARRAY_SIZE(kind_names) == MOUNT_KIND_COUNT, "each kind has a name");

static const struct mount_op proc_and_dev[] = {
	{ .kind = MOUNT_FS,
			.dst = "/proc",
			.source = "proc",
			.attrs = INERT,
			.flags = MOUNT_STRICT },
	{ .kind = MOUNT_FS,
			.dst = "/dev",
			.source = "tmpfs",
			.options = "mode=755,size=64k",
			.attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
			.flags = MOUNT_STRICT },
	{ .kind = MOUNT_DEVICE, .dst = "/dev/null", .source = "/dev/null", .device = { 1, 3 } },
	{ .kind = MOUNT_DEVICE, .dst = "/dev/zero", .source = "/dev/zero", .device = { 1, 5 } },
	{ .kind = MOUNT_DEVICE, .dst = "/dev/full", .source = "/dev/full", .device = { 1, 7 } },
	{ .kind = MOUNT_DEVICE, .dst = "/dev/random", .source = "/dev/random", .device = { 1, 8 } },
	{ .kind = MOUNT_DEVICE,
			.dst = "/dev/urandom",
			.source = "/dev/urandom",
			.device = { 1, 9 } },
	{ .kind = MOUNT_DEVICE, .dst = "/dev/tty", .source = "/dev/tty", .device = { 5, 0 } },
	{ .kind = MOUNT_SYMLINK, .dst = "/dev/ptmx", .source = "pts/ptmx" },
	{ .kind = MOUNT_SYMLINK, .dst = "/dev/fd", .source = "/proc/self/fd" },
	{ .kind = MOUNT_SYMLINK, .dst = "/dev/stdin", .source = "/proc/self/fd/0" },
	{ .kind = MOUNT_SYMLINK, .dst = "/dev/stdout", .source = "/proc/self/fd/1" },
	{ .kind = MOUNT_SYMLINK, .dst = "/dev/stderr", .source = "/proc/self/fd/2" },
};

/* What tells about the host, or steers it. Beside what container engines commonly hide:
 * /proc/interrupts, by which keystrokes were timed. */
static const char *const masks[] = {
	"/proc/acpi",
	"/proc/asound",
	"/proc/interrupts",
	"/proc/kcore",
	"/proc/keys",
	"/proc/latency_list",
	"/proc/latency_stats",
	"/proc/sched_debug",
	"/proc/scsi",
	"/proc/timer_list",
	"/proc/timer_stats",
	"/sys/dev/block",
	"/sys/devices/virtual/powercap",
	"/sys/firmware",
	"/sys/fs/selinux",
};

static const char *const read_onlys[] = {
	"/proc/bus",
	"/proc/fs",
	"/proc/irq",
	"/proc/sys",
	"/proc/sysrq-trigger",
};

const char *mount_kind_name(enum mount_kind kind)
{
	assert(kind < MOUNT_KIND_COUNT);
	return kind_names[kind];
}

void mountplan_done(struct mountplan *p)
{
	if (!p) {
		return;
	}
	for (size_t i = 0; i < p->owned_n; i++) {
		free(p->owned[i]);
	}
	free(p->owned);
	free(p->ops);
	*p = (struct mountplan){ .n = 0 };
}

static void plan_add(struct mountplan *p, struct mount_op op)
{
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 64;

		p->ops = mem_resize(p->ops, p->cap, cap, sizeof(*p->ops));
		p->cap = cap;
	}
	p->ops[p->n++] = op;
}

/* The plan keeps s until it is done. */
static const char *plan_own(struct mountplan *p, char *s)
{
	p->owned = mem_resize(p->owned, p->owned_n, p->owned_n + 1, sizeof(*p->owned));
	p->owned[p->owned_n++] = s;
	return s;
}

static void add_dev(const struct spec *spec, struct mountplan *p)
{
	const bool has_tty_gid =
			idmap_outside(spec->map.gids, spec->map.gids_n, TTY_GID) != UINT32_MAX;
	const uint64_t shm = spec->shm_bytes ? spec->shm_bytes : SHM_DEFAULT_BYTES;

	for (size_t i = 0; i < ARRAY_SIZE(proc_and_dev); i++) {
		plan_add(p, proc_and_dev[i]);
	}
	plan_add(p, (struct mount_op){ .kind = MOUNT_FS,
				    .dst = "/dev/pts",
				    .source = "devpts",
				    .options = has_tty_gid ? "newinstance,ptmxmode=0666,mode=620,gid=5"
							   : "newinstance,ptmxmode=0666,mode=620",
				    .attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
				    .flags = MOUNT_STRICT });
	if (spec->tty) {
		/* The first terminal of a new devpts: execd's, before anything of the guest runs.
		 * Elsewhere it is a bind mount, and was one to the wrong place (CVE-2025-52565). */
		plan_add(p, (struct mount_op){ .kind = MOUNT_SYMLINK,
					    .dst = "/dev/console",
					    .source = "pts/0" });
	}
	plan_add(p, (struct mount_op){ .kind = MOUNT_FS,
				    .dst = "/dev/shm",
				    .source = "tmpfs",
				    .options = plan_own(
						    p, mem_printf("mode=1777,size=%" PRIu64, shm)),
				    .attrs = INERT,
				    .flags = MOUNT_STRICT });
	plan_add(p, (struct mount_op){ .kind = MOUNT_FS,
				    .dst = "/dev/mqueue",
				    .source = "mqueue",
				    .attrs = INERT,
				    .flags = MOUNT_STRICT | MOUNT_OPTIONAL });
}

static void add_sys(const struct spec *spec, struct mountplan *p)
{
	const bool is_host = spec->network == SPEC_NETWORK_HOST;

	/* The kernel gives a sysfs only to the owner of the network namespace. */
	plan_add(p, (struct mount_op){ .kind = is_host ? MOUNT_HOST_SYS : MOUNT_FS,
				    .dst = "/sys",
				    .source = is_host ? "/sys" : "sysfs",
				    .attrs = INERT | MOUNT_ATTR_RDONLY,
				    .flags = MOUNT_STRICT });
	/* CVE-2023-25809: never the host's hierarchy, and never writable. A sysfs of ours has an
	 * empty directory there. */
	if (spec->cgroup_fd >= 0) {
		plan_add(p, (struct mount_op){ .kind = MOUNT_FS,
					    .dst = "/sys/fs/cgroup",
					    .source = "cgroup2",
					    .attrs = INERT | MOUNT_ATTR_RDONLY,
					    .flags = MOUNT_STRICT });
	} else if (is_host) {
		plan_add(p, (struct mount_op){ .kind = MOUNT_MASK,
					    .dst = "/sys/fs/cgroup",
					    .flags = MOUNT_STRICT | MOUNT_OPTIONAL });
	}
}

static void add_masks(const char *below, struct mountplan *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(masks); i++) {
		if (!path_is_below(masks[i], below)) {
			continue;
		}
		plan_add(p, (struct mount_op){ .kind = MOUNT_MASK,
					    .dst = masks[i],
					    .flags = MOUNT_STRICT | MOUNT_OPTIONAL });
	}
}

static void add_hidden_proc(struct mountplan *p)
{
	add_masks("/proc", p);
	for (size_t i = 0; i < ARRAY_SIZE(read_onlys); i++) {
		plan_add(p, (struct mount_op){ .kind = MOUNT_READONLY,
					    .dst = read_onlys[i],
					    .attrs = MOUNT_ATTR_RDONLY,
					    .flags = MOUNT_STRICT | MOUNT_OPTIONAL });
	}
}

/* Would a mount there hide what osbx itself put there? */
static bool is_reserved(const struct mountplan *p, const char *dst)
{
	if (str_eq(dst, "/") || path_is_below(dst, "/proc") || path_is_below(dst, "/sys")) {
		return true;
	}
	if (path_is_below(dst, "/dev/pts")) {
		return true;
	}
	for (size_t i = 0; i < p->n; i++) {
		if (str_eq(dst, p->ops[i].dst) && !str_eq(dst, "/dev/shm") &&
				!str_eq(dst, "/dev/mqueue")) {
			return true;
		}
	}
	return false;
}

static struct mount_op op_from_mount(
		const struct spec *spec, const struct spec_mount *m, struct mountplan *p)
{
	const uint32_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			       (m->read_only ? MOUNT_ATTR_RDONLY : 0);

	switch (m->kind) {
	case SPEC_MOUNT_BIND:
		assert(m->tree < spec->trees_n);
		return (struct mount_op){ .kind = MOUNT_TREE,
			.dst = m->dst,
			.tree = m->tree,
			.path = m->path ? m->path : "",
			.attrs = attrs,
			.flags = spec->trees[m->tree].recursive ? MOUNT_RECURSIVE : 0 };
	case SPEC_MOUNT_TMPFS:
		return (struct mount_op){ .kind = MOUNT_FS,
			.dst = m->dst,
			.source = "tmpfs",
			.options = plan_own(
					p, m->size ? mem_printf("mode=%o,size=%" PRIu64,
								     (unsigned int)m->mode, m->size)
						   : mem_printf("mode=%o", (unsigned int)m->mode)),
			.attrs = attrs | (m->exec_ok ? 0 : MOUNT_ATTR_NOEXEC) };
	case SPEC_MOUNT_FILE:
		return (struct mount_op){ .kind = MOUNT_FILE,
			.dst = m->dst,
			.source = m->content ? m->content : "",
			.attrs = attrs | MOUNT_ATTR_NOEXEC,
			.mode = m->mode };
	case SPEC_MOUNT_DIR:
		return (struct mount_op){ .kind = MOUNT_DIR, .dst = m->dst };
	case SPEC_MOUNT_KIND_COUNT:
		break;
	}
	__builtin_unreachable();
}

static int add_mounts(const struct spec *spec, struct mountplan *p, struct error *e)
{
	const size_t builtin_n = p->n;

	for (size_t i = 0; i < spec->mounts_n; i++) {
		const struct spec_mount *m = &spec->mounts[i];
		autofree char *dst = path_normalise(m->dst);
		const struct mountplan builtin = { .n = builtin_n, .ops = p->ops };

		if (m->dst[0] != '/') {
			return error_set(e, ERRC_INVALID, "mount point %s is not absolute", m->dst);
		}
		if (is_reserved(&builtin, dst)) {
			if (m->kind == SPEC_MOUNT_DIR) {
				continue; /* something is there */
			}
			return error_set(e, ERRC_INVALID, "mount point %s is taken by osbx itself",
					m->dst);
		}
		plan_add(p, op_from_mount(spec, m, p));
	}
	return 0;
}

int mountplan_build(const struct spec *spec, struct mountplan *out_plan, struct error *e)
{
	AUTO(mountplan) struct mountplan p = { .n = 0 };

	add_dev(spec, &p);
	if (!spec->isolation) {
		add_hidden_proc(&p);
	}
	if (add_mounts(spec, &p, e) < 0) {
		return -1;
	}
	/* Late: until here nothing needs the network namespace, which is being made. */
	add_sys(spec, &p);
	add_masks("/sys", &p);
	if (spec->read_only) {
		plan_add(&p, (struct mount_op){
					     .kind = MOUNT_SEAL,
					     .dst = "/",
					     .attrs = MOUNT_ATTR_RDONLY,
			     });
	}
	*out_plan = TAKE(p, (struct mountplan){ .n = 0 });
	return 0;
}

static int dump_words(const struct mount_op *op, struct buf *out)
{
	static const struct {
		const char *name;
		uint32_t attr;
		uint32_t flag;
	} words[] = {
		{ "ro", MOUNT_ATTR_RDONLY, 0 },
		{ "nosuid", MOUNT_ATTR_NOSUID, 0 },
		{ "nodev", MOUNT_ATTR_NODEV, 0 },
		{ "noexec", MOUNT_ATTR_NOEXEC, 0 },
		{ "optional", 0, MOUNT_OPTIONAL },
		{ "strict", 0, MOUNT_STRICT },
		{ "recursive", 0, MOUNT_RECURSIVE },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(words) && r == 0; i++) {
		if ((op->attrs & words[i].attr) != 0 || (op->flags & words[i].flag) != 0) {
			r = buf_appendf(out, " %s", words[i].name);
		}
	}
	return r < 0 ? r : buf_append_str(out, "\n");
}

static int dump_source(const struct mount_op *op, struct buf *out)
{
	switch (op->kind) {
	case MOUNT_FS:
		return buf_appendf(out, " %s(%s)", op->source, op->options ? op->options : "");
	case MOUNT_TREE:
		return buf_appendf(out, " tree %" PRIu32 " \"%s\"", op->tree, op->path);
	case MOUNT_FILE:
		return buf_appendf(out, " mode=%o bytes=%zu", (unsigned int)op->mode,
				strlen(op->source));
	case MOUNT_DEVICE:
		return buf_appendf(out, " %s %" PRIu32 ":%" PRIu32, op->source, op->device[0],
				op->device[1]);
	case MOUNT_SYMLINK:
		return buf_appendf(out, " -> %s", op->source);
	case MOUNT_DIR:
	case MOUNT_HOST_SYS:
	case MOUNT_MASK:
	case MOUNT_READONLY:
	case MOUNT_SEAL:
	case MOUNT_KIND_COUNT:
		break;
	}
	return 0;
}

int mountplan_dump(const struct mountplan *plan, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; i < plan->n && r == 0; i++) {
		const struct mount_op *op = &plan->ops[i];

		r = buf_appendf(out, "%s %s", mount_kind_name(op->kind), op->dst);
		r = r < 0 ? r : dump_source(op, out);
		r = r < 0 ? r : dump_words(op, out);
	}
	return r;
}
