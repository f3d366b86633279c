/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A file like /etc/resolv.conf is written in place, replaced, or a link whose target is replaced;
 * where it is mounted alone (containers) its directory hears nothing of it. So three things are
 * watched: the file, its directory, and the directory that its links lead to; whatever is heard,
 * the file is looked at. inotify instances are few (128 a user by default): without one, and where
 * a watch is missing, the file is looked at now and then.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>

#include "net_internal.h"

#define HEARD_BYTES 4096

#define FILE_EVENTS (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
#define DIR_EVENTS  (IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE | IN_ONLYDIR)

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Is it another one than before? */
static bool look(struct net_watch *w)
{
	struct stat now = { .st_ino = 0 };

	if (stat(w->path, &now) < 0) {
		now = (struct stat){ .st_ino = 0 };
	}
	bool changed = !is_same(&w->last, &now);

	w->last = now;
	return changed;
}

static int watch_dir_of(const struct net_watch *w, const char *path)
{
	const char *slash = strrchr(path, '/');
	autofree char *dir = mem_dup(path, slash && slash > path ? (size_t)(slash - path) : 1);

	return inotify_add_watch(w->fd, dir, DIR_EVENTS) < 0 ? -errno : 0;
}

/* Again after each change: what is watched are inodes. 0 or -errno. */
static int watch_all(const struct net_watch *w)
{
	autofree char *target = realpath(w->path, NULL);
	int r = watch_dir_of(w, w->path);

	if (r == 0 && target) {
		r = watch_dir_of(w, target);
	}
	if (r == 0 && target && inotify_add_watch(w->fd, target, FILE_EVENTS) < 0) {
		r = -errno;
	}
	return r;
}

static void timer_on_end(struct loop *loop, struct loop_source *src, uint32_t events);

static void watch_again(struct net_watch *w)
{
	if (w->fd < 0 || watch_all(w) < 0) {
		loop_timer(w->loop, &w->timer, clock_boot_ms() + w->look_ms, timer_on_end);
	}
}

static void timer_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct net_watch *w = container_of(src, struct net_watch, timer);

	(void)loop;
	(void)events;
	watch_again(w);
	if (look(w)) {
		w->on_change(w->ctx);
	}
}

static void source_on_ready(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct net_watch *w = container_of(src, struct net_watch, source);
	char heard[HEARD_BYTES] __attribute__((aligned(__alignof__(struct inotify_event))));

	(void)loop;
	(void)events;
	while (fd_read(w->fd, heard, sizeof(heard)) > 0) {
		/* Which one it was is found out by looking. */
	}
	if (look(w)) {
		watch_again(w);
		w->on_change(w->ctx);
	}
}

void net_watch_start(struct net_watch *w)
{
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->fd >= 0 && loop_add(w->loop, &w->source, w->fd, EPOLLIN, source_on_ready) < 0) {
		fd_close(&w->fd);
	}
	watch_again(w);
	(void)look(w);
}

void net_watch_stop(struct net_watch *w)
{
	if (!w->loop) {
		return;
	}
	loop_remove(w->loop, &w->source);
	loop_remove(w->loop, &w->timer);
	fd_close(&w->fd);
	w->loop = NULL;
}
