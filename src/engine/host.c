/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/host.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "host_internal.h"

/*
 * What /etc takes from the host: how programs are found (62 commands of Debian's /usr/bin lead
 * through alternatives), loaded, told the time, shown on a terminal, and whom they trust. Nothing
 * that is secret lies below: as root these are readable by container root.
 */
static const struct etc_entry {
	const char *name;
	bool prefix; /* all names that begin so */
} etc_entries[] = {
	{ "alternatives", false },
	{ "ca-certificates", true },
	{ "java-", true },
	{ "ld.so.cache", false },
	{ "ld.so.conf", true },
	{ "localtime", false },
	{ "mime.types", false },
	{ "profile", false },
	{ "python3", true },
	{ "terminfo", false },
};

/* Certificates lie deeper; the second is where Fedora's links lead. */
static const char *const etc_paths[] = {
	"ssl/certs",
	"pki/ca-trust/extracted",
};

const char *const host_roots[HOST_ROOTS_N] = { "bin", "lib", "lib32", "lib64", "libx32", "sbin" };

bool host_wants_etc(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(etc_entries); i++) {
		const char *rest = str_after(name, etc_entries[i].name);

		if (rest && (rest[0] == '\0' || etc_entries[i].prefix)) {
			return true;
		}
	}
	return false;
}

int host_each_etc(int (*fn)(void *ctx, const char *name), void *ctx)
{
	int fd = fd_open("/etc", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = fd < 0 ? fd : dir ? 0 : -errno;

	if (!dir) {
		fd_close(&fd);
		return r;
	}
	for (struct dirent *d = readdir(dir); d && r == 0; d = readdir(dir)) {
		if (host_wants_etc(d->d_name)) {
			r = fn(ctx, d->d_name);
		}
	}
	(void)closedir(dir);
	for (size_t i = 0; i < ARRAY_SIZE(etc_paths) && r == 0; i++) {
		r = fn(ctx, etc_paths[i]);
	}
	return r;
}

struct host_trees {
	struct spec *spec;
	uint32_t usr;
	uint32_t etc;
};

static void add_bind(struct spec *spec, const char *dst, uint32_t tree, const char *path)
{
	struct spec_mount *m = spec_add_mount(spec, SPEC_MOUNT_BIND, dst);

	m->tree = tree;
	m->path = mem_strdup(path);
	m->read_only = true;
}

/* A tree whose files belong to the host's root: container root inside, where ids can be mapped. */
static uint32_t add_tree(struct spec *spec, const char *path, bool recursive)
{
	uint32_t tree = spec_add_tree(spec, path, SPEC_TREE_CONTAINER, recursive);

	spec->trees[tree].ids_optional = true;
	return tree;
}

/* Bind /etc/NAME if it exists and lies, all links followed, in /etc or /usr. */
static int bind_etc(void *ctx, const char *name)
{
	struct host_trees *t = ctx;
	autofree char *dst = mem_printf("/etc/%s", name);
	autofree char *real = realpath(dst, NULL);
	const char *in_etc = real ? str_after(real, "/etc/") : NULL;
	const char *in_usr = real ? str_after(real, "/usr/") : NULL;

	if (in_etc) {
		add_bind(t->spec, dst, t->etc, in_etc);
	} else if (in_usr) {
		add_bind(t->spec, dst, t->usr, in_usr);
	}
	return 0;
}

/* /bin and the like where they are directories of their own; links are part of the skeleton. */
static int bind_roots(struct spec *spec, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(host_roots); i++) {
		autofree char *path = mem_printf("/%s", host_roots[i]);
		struct stat st;

		if (lstat(path, &st) < 0) {
			if (errno != ENOENT) {
				return error_sys(e, errno, "@host: %s", path);
			}
		} else if (S_ISDIR(st.st_mode)) {
			add_bind(spec, path, add_tree(spec, path, true), "");
		}
	}
	return 0;
}

int host_mounts(struct spec *spec, struct error *e)
{
	struct host_trees t = {
		.spec = spec,
		.usr = add_tree(spec, "/usr", true),
		.etc = add_tree(spec, "/etc", false),
	};

	add_bind(spec, "/usr", t.usr, "");
	if (bind_roots(spec, e) < 0) {
		return -1;
	}
	int r = host_each_etc(bind_etc, &t);

	return r < 0 ? error_sys(e, -r, "@host: /etc") : 0;
}
