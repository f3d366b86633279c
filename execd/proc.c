/* SPDX-License-Identifier: Apache-2.0 */
/* What PID 1 learns of its pid namespace from /proc. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "execd.h"

#define STAT_BYTES 512

struct entry {
	pid_t pid;
	pid_t parent;
	bool is_alive;
	bool is_below; /* a descendant of the one in question */
};

struct table {
	struct entry *v; /* by pid, as the kernel lists them */
	size_t n;
	size_t room;
};

static void table_done(struct table *t)
{
	free(TAKE_PTR(t->v));
}
AUTO_DEFINE(table, struct table, table_done);

int proc_open(int root_fd)
{
	struct statfs fs;
	autoclose int fd = path_open_nolink(root_fd, "/proc", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0) {
		return fd;
	}
	if (fstatfs(fd, &fs) < 0) {
		return -errno;
	}
	return fs.f_type == PROC_SUPER_MAGIC ? TAKE_FD(fd) : -ENODEV;
}

/* "PID (NAME) STATE PPID …": the name may hold anything, also ')' and line feeds. */
static bool stat_read(int proc_fd, const char *pid, struct entry *out)
{
	char path[32];
	char text[STAT_BYTES];

	(void)snprintf(path, sizeof(path), "%.16s/stat", pid);
	autoclose int fd = fd_open_at(proc_fd, path, O_RDONLY, 0);
	ssize_t n = fd < 0 ? fd : fd_read(fd, text, sizeof(text) - 1);
	uint64_t parent = 0;

	if (n <= 0) {
		return false; /* gone */
	}
	text[n] = '\0';
	char *tail = strrchr(text, ')');

	if (!tail || strlen(tail) < 5) {
		return false;
	}
	char state = tail[2];

	tail += 4;
	tail[strcspn(tail, " ")] = '\0';
	if (str_to_u64(tail, INT32_MAX, &parent) < 0) {
		return false;
	}
	out->parent = (pid_t)parent;
	out->is_alive = state != 'Z' && state != 'X';
	return true;
}

static void table_add(struct table *t, const struct entry *entry)
{
	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 64;

		t->v = mem_resize(t->v, t->room, room, sizeof(*t->v));
		t->room = room;
	}
	t->v[t->n++] = *entry;
}

/* All processes; with_stat: also who their parents are. */
static int table_read(int root_fd, bool with_stat, struct table *out)
{
	int fd = proc_open(root_fd);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d = NULL;

	if (!dir) {
		int r = fd < 0 ? fd : -errno;

		fd_close(&fd);
		return r;
	}
	while ((d = readdir(dir))) {
		struct entry entry = { .is_alive = true };
		uint64_t pid = 0;

		if (str_to_u64(d->d_name, INT32_MAX, &pid) < 0) {
			continue;
		}
		entry.pid = (pid_t)pid;
		if (!with_stat || stat_read(dirfd(dir), d->d_name, &entry)) {
			table_add(out, &entry);
		}
	}
	(void)closedir(dir);
	return 0;
}

static int pid_compare(const void *key, const void *element)
{
	pid_t pid = *(const pid_t *)key;
	pid_t other = ((const struct entry *)element)->pid;

	return pid < other ? -1 : pid > other;
}

/* One pass finds all in the usual case: a child has a greater pid than its parent. */
static void mark_descendants(struct table *t, pid_t top)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < t->n; i++) {
			struct entry *one = &t->v[i];

			if (one->is_below || one->pid == top) {
				continue;
			}
			const struct entry *parent = bsearch(
					&one->parent, t->v, t->n, sizeof(*t->v), pid_compare);

			one->is_below = one->parent == top || (parent && parent->is_below);
			more = more || one->is_below;
		}
	}
}

int proc_kill(int root_fd, pid_t top, pid_t spared)
{
	AUTO(table) struct table t = { .n = 0 };
	int n = 0;

	/* What cannot run cannot fork either. */
	if (spared > 1) {
		(void)kill(spared, SIGSTOP);
	}
	int r = table_read(root_fd, true, &t);

	if (r < 0) {
		return r;
	}
	mark_descendants(&t, top);
	for (size_t i = 0; i < t.n; i++) {
		if (t.v[i].is_below && t.v[i].is_alive && t.v[i].pid != spared && t.v[i].pid > 1) {
			n++;
			(void)kill(t.v[i].pid, SIGKILL);
		}
	}
	return n;
}

int proc_count(int root_fd)
{
	AUTO(table) struct table t = { .n = 0 };
	int r = table_read(root_fd, false, &t);

	return r < 0 ? r : (int)t.n;
}
