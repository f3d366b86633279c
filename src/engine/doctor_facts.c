/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/dirs.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/program.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "doctor_internal.h"

#define STATUS_BYTES (64U << 10)
#define MOUNTS_BYTES (8U << 20)

/* First line of a file into out, "" when there is none. */
static void line_read(int root_fd, const char *name, char *out, size_t out_size)
{
	AUTO(buf) struct buf text = BUF_INIT(STATUS_BYTES);

	out[0] = '\0';
	if (file_read_at(root_fd, name, &text) == 0 && text.n > 0) {
		(void)snprintf(out, out_size, "%.*s", (int)strcspn(text.p, "\n"), text.p);
	}
}

static int64_t number_read(int root_fd, const char *name)
{
	char line[32];
	uint64_t v = 0;

	line_read(root_fd, name, line, sizeof(line));
	return str_to_u64(line, INT64_MAX, &v) == 0 ? (int64_t)v : DOCTOR_ABSENT;
}

static bool exists(int root_fd, const char *name)
{
	return faccessat(root_fd, name, F_OK, AT_EACCESS) == 0;
}

/* Three numbers of "6.1.0-28-amd64"; those that are missing are 0. How many there were. */
static size_t version_parse(const char *text, unsigned int out[3])
{
	size_t n = 0;

	for (; n < 3; n++) {
		size_t digits = strspn(text, "0123456789");
		autofree char *number = mem_dup(text, digits);
		uint64_t v = 0;

		if (str_to_u64(number, UINT32_MAX, &v) < 0) {
			break;
		}
		out[n] = (unsigned int)v;
		text += digits;
		if (*text != '.') {
			return n + 1;
		}
		text++;
	}
	return n;
}

void doctor_read_version(const struct utsname *uts, const char *signature, struct doctor_facts *f)
{
	const char *debian = strstr(uts->version, "Debian ");
	const char *ubuntu = strrchr(signature, ' ');
	unsigned int v[3] = { 0 };

	memset(f->version, 0, sizeof(f->version));
	(void)version_parse(uts->release, f->version);
	/* "5.10.0-11-amd64" is of any 5.10: the number is the interface's. */
	f->version_certain = f->version[2] > 0 || strchr(uts->release, '-') == NULL;
	if ((ubuntu && version_parse(ubuntu + 1, v) == 3) ||
			(debian && version_parse(debian + strlen("Debian "), v) == 3)) {
		memcpy(f->version, v, sizeof(v));
		f->version_certain = true;
	}
}

/* A file below the modules of this kernel whose name begins with overlay.ko. */
static bool module_exists(int root_fd, const char *release)
{
	static const char *const endings[] = { "", ".xz", ".zst", ".gz" };
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(endings) && !found; i++) {
		autofree char *path = mem_printf("lib/modules/%s/kernel/fs/overlayfs/overlay.ko%s",
				release, endings[i]);

		found = exists(root_fd, path);
	}
	return found;
}

/* A list that cannot be read says nothing: it is no ground to call overlay missing. */
static bool overlay_is_known(int root_fd)
{
	AUTO(buf) struct buf text = BUF_INIT(STATUS_BYTES);
	struct span line;

	if (file_read_at(root_fd, "proc/filesystems", &text) < 0) {
		return true;
	}
	for (struct span rest = buf_span(&text); span_next(&rest, '\n', &line);) {
		if (span_eq(line, span_of("nodev\toverlay"))) {
			return true;
		}
	}
	return false;
}

/* Namespaces of other kinds have limits of their own. */
static void read_limits(int root_fd, struct doctor_facts *f)
{
	static const char *const kinds[] = { "cgroup", "ipc", "mnt", "net", "pid", "uts" };

	f->max_user_namespaces = number_read(root_fd, "proc/sys/user/max_user_namespaces");
	f->zero_limit[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && f->zero_limit[0] == '\0'; i++) {
		autofree char *path = mem_printf("proc/sys/user/max_%s_namespaces", kinds[i]);

		if (number_read(root_fd, path) == 0) {
			(void)snprintf(f->zero_limit, sizeof(f->zero_limit),
					"user.max_%s_namespaces", kinds[i]);
		}
	}
}

void doctor_read_kernel(int root_fd, struct doctor_facts *f)
{
	AUTO(buf) struct buf status = BUF_INIT(STATUS_BYTES);
	char signature[256];
	struct span line;

	line_read(root_fd, "proc/version_signature", signature, sizeof(signature));
	doctor_read_version(&f->uts, signature, f);
	read_limits(root_fd, f);
	f->unprivileged_userns_clone =
			number_read(root_fd, "proc/sys/kernel/unprivileged_userns_clone");
	f->overlay_known = overlay_is_known(root_fd);
	f->overlay_module = module_exists(root_fd, f->uts.release);
	f->seccomp_mode = DOCTOR_ABSENT;
	if (file_read_at(root_fd, "proc/self/status", &status) < 0) {
		return;
	}
	for (struct span rest = buf_span(&status); span_next(&rest, '\n', &line);) {
		struct span prefix = span_of("Seccomp:\t");

		if (span_has_prefix(line, prefix) && line.n == prefix.n + 1) {
			f->seccomp_mode = line.p[prefix.n] - '0';
		}
	}
}

void doctor_read_apparmor(int root_fd, struct doctor_facts *f)
{
	char enabled[8];

	f->apparmor_userns = number_read(
			root_fd, "proc/sys/kernel/apparmor_restrict_unprivileged_userns");
	f->apparmor_unconfined = number_read(
			root_fd, "proc/sys/kernel/apparmor_restrict_unprivileged_unconfined");
	f->apparmor_profile = exists(root_fd, "etc/apparmor.d/osbx");
	f->apparmor_label[0] = '\0';
	line_read(root_fd, "sys/module/apparmor/parameters/enabled", enabled, sizeof(enabled));
	if (!str_eq(enabled, "Y")) {
		return;
	}
	/* The first is there since Linux 5.8; the second belongs to whichever module is first. */
	line_read(root_fd, "proc/self/attr/apparmor/current", f->apparmor_label,
			sizeof(f->apparmor_label));
	if (f->apparmor_label[0] == '\0') {
		line_read(root_fd, "proc/self/attr/current", f->apparmor_label,
				sizeof(f->apparmor_label));
	}
}

/* Mounts on directories that are always empty hide nothing, and the kernel knows. */
static bool is_mask(struct span path)
{
	return span_has_prefix(path, span_of("/proc/")) &&
	       !span_has_prefix(path, span_of("/proc/sys/fs/binfmt_misc")) &&
	       !span_has_prefix(path, span_of("/proc/fs/nfsd"));
}

static void read_masks(int root_fd, struct doctor_facts *f)
{
	AUTO(buf) struct buf text = BUF_INIT(MOUNTS_BYTES);
	struct span line;

	f->proc_mask[0] = '\0';
	if (file_read_at(root_fd, "proc/self/mountinfo", &text) < 0) {
		return;
	}
	for (struct span rest = buf_span(&text); span_next(&rest, '\n', &line);) {
		struct span field = { .n = 0 };

		/* "id parent major:minor root mount-point …" */
		for (int i = 0; i < 5; i++) {
			(void)span_next(&line, ' ', &field);
		}
		if (f->proc_mask[0] == '\0' && is_mask(field)) {
			(void)snprintf(f->proc_mask, sizeof(f->proc_mask), "%.*s", (int)field.n,
					field.p);
		}
	}
}

void doctor_read_surroundings(int root_fd, struct doctor_facts *f)
{
	static const struct {
		const char *path;
		const char *name;
	} marks[] = {
		{ ".dockerenv", "docker" },
		{ "run/.containerenv", "podman" },
		{ "var/run/secrets/kubernetes.io", "kubernetes" },
	};

	line_read(root_fd, "run/systemd/container", f->container, sizeof(f->container));
	for (size_t i = 0; i < ARRAY_SIZE(marks) && f->container[0] == '\0'; i++) {
		if (exists(root_fd, marks[i].path)) {
			(void)snprintf(f->container, sizeof(f->container), "%s", marks[i].name);
		}
	}
	read_masks(root_fd, f);
	f->systemd = exists(root_fd, "run/systemd/system");
	autofree char *linger = mem_printf("var/lib/systemd/linger/%s", f->user);

	f->linger = f->user[0] != '\0' && exists(root_fd, linger);
}

static void read_caller(struct doctor_facts *f)
{
	struct sys_caps caps = { 0 };

	(void)snprintf(f->exe, sizeof(f->exe), "%s", program_path());
	f->uid = geteuid();
	f->caps = sys_capget(&caps) == 0 ? caps.effective : 0;
	f->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0UL, 0UL, 0UL, 0UL) == 1;
	f->initial_userns = idmap_is_initial_userns();
	f->runtime_variable = getenv("XDG_RUNTIME_DIR") || getenv("OSBX_RUNTIME");
	f->wall_ms = clock_wall_ms();
}

static void read_places(struct doctor_facts *f)
{
	struct error e = ERROR_INIT;
	AUTO(dirs) struct dirs dirs = DIRS_INIT;

	if (dirs_find(&dirs, &e) < 0) {
		return;
	}
	doctor_read_place(dirs.root, &f->store);
	doctor_read_place(dirs.runtime, &f->runtime);
	autofree char *mapped =
			mem_printf("%s/layers/%s", dirs.root, idmap_mode_name(IDMAP_MAPPED));

	autofree char *unmapped = mem_printf("%s/layers/.unmapped", dirs.root);

	f->store_maps = exists(AT_FDCWD, mapped);
	f->store_unmapped = exists(AT_FDCWD, unmapped);
}

struct doctor_facts *doctor_facts_read(void)
{
	struct doctor_facts *f = mem_new(struct doctor_facts);
	autoclose int root_fd = fd_open("/", O_PATH | O_DIRECTORY, 0);

	(void)uname(&f->uts);
	read_caller(f);
	doctor_read_kernel(root_fd, f);
	doctor_read_apparmor(root_fd, f);
	doctor_read_ids(root_fd, f);
	doctor_read_surroundings(root_fd, f);
	doctor_read_cgroup(root_fd, f);
	doctor_probe_all(f->probes);
	if (idmap_choose(&f->map, &f->map_error) == 0) {
		error_clear(&f->map_error);
	}
	read_places(f);
	return f;
}
