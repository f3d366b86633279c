/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "expand.h"
#include "files.h"
#include "place.h"

#define LINKS_MAX 40 /* as the kernel */

void place_done(struct place *p)
{
	fd_close(&p->dir_fd);
	fd_close(&p->fd);
	free(TAKE_PTR(p->path));
	free(TAKE_PTR(p->missing));
	free(TAKE_PTR(p->name));
}

static const char *variable(void *ctx, const char *name)
{
	const struct files *const *of = ctx;
	const struct files *f = *of;
	const char *value = f->env ? strv_env_find(f->env, name) : NULL;

	return value || !str_eq(name, "HOME") ? value : f->user.home;
}

int place_path(const struct files *f, const char *given, char **out_path, struct error *e)
{
	AUTO(buf) struct buf b = BUF_INIT(LIMIT_PATH_BYTES);

	if (given[0] == '\0') {
		(void)error_set(e, ERRC_INVALID, "the path is empty");
		return -1;
	}
	if (expand_path(span_of(given), variable, &f, &b, e) < 0) {
		/* A long path is a bad one, not a large body. */
		e->code = ERRC_INVALID;
		return -1;
	}
	autofree char *expanded = buf_take(&b);
	autofree char *whole = mem_printf("%s/%s", expanded[0] == '/' ? "" : f->cwd, expanded);

	*out_path = path_normalise(whole);
	return 0;
}

/* Directory and last component of a path that need not be clean. One without a name of its own
 * ("/", "a/..") is a directory. */
static void split(const char *path, char **out_dir, char **out_name)
{
	const char *name = path_last(path);

	if (str_eq(name, "") || str_eq(name, ".") || str_eq(name, "..")) {
		*out_dir = mem_strdup(path);
		*out_name = mem_strdup(".");
		return;
	}
	size_t n = (size_t)(name - path);

	while (n > 1 && path[n - 1] == '/') {
		n--;
	}
	*out_dir = n > 0 ? mem_dup(path, n) : mem_strdup("/");
	*out_name = mem_strdup(name);
}

/* Open dir, or the part of it that exists; what is missing goes to *out_missing. dir is clean. */
static int open_existing(const struct files *f, const char *dir, char **out_missing)
{
	autofree char *path = mem_strdup(dir);
	size_t n = strlen(path);

	for (;;) {
		int fd = path_open_beneath(f->root_fd, path, O_PATH | O_DIRECTORY, 0);

		if (fd != -ENOENT || n <= 1) {
			const char *rest = dir + n + strspn(dir + n, "/");

			if (fd >= 0 && *rest) {
				*out_missing = mem_strdup(rest);
			}
			return fd;
		}
		/* A link that leads to nothing is there, and mkdir would say so. */
		while (n > 1 && path[n - 1] != '/') {
			n--;
		}
		while (n > 1 && path[n - 1] == '/') {
			n--;
		}
		path[n] = '\0';
	}
}

static int place_open_how(const struct files *f, const char *given, bool may_miss,
		struct place *out, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;
	autofree char *dir = NULL;

	if (place_path(f, given, &p.path, e) < 0) {
		return -1;
	}
	split(p.path, &dir, &p.name);
	if (strlen(p.name) > NAME_MAX) {
		return files_sys(e, ENAMETOOLONG, "open", p.path);
	}
	p.dir_fd = may_miss ? open_existing(f, dir, &p.missing)
			    : path_open_beneath(f->root_fd, dir, O_PATH | O_DIRECTORY, 0);
	if (p.dir_fd < 0) {
		return files_sys(e, -p.dir_fd, "open the directory of", p.path);
	}
	*out = TAKE(p, (struct place)PLACE_INIT);
	return 0;
}

int place_open(const struct files *f, const char *given, struct place *out, struct error *e)
{
	return place_open_how(f, given, false, out, e);
}

int place_open_new(const struct files *f, const char *given, struct place *out, struct error *e)
{
	return place_open_how(f, given, true, out, e);
}

/* Whose link was followed, if that matters. */
struct follow {
	char *text; /* path of the object, not clean behind links */
	unsigned int links;
	bool is_foreign;
	uid_t owner;
};

static void follow_done(struct follow *w)
{
	free(TAKE_PTR(w->text));
}
AUTO_DEFINE(follow, struct follow, follow_done);

/* Take the text of the link that p->fd is, and open the directory it names. 0 or -errno. */
static int follow_link(const struct files *f, struct place *p, struct follow *w)
{
	char target[LIMIT_PATH_BYTES];
	struct statfs fs;
	ssize_t n = readlinkat(p->fd, "", target, sizeof(target) - 1);

	if (n <= 0) {
		return n < 0 ? -errno : -ENOENT;
	}
	/* /proc/PID/fd/N and its like do not lead where their text says. */
	if (fstatfs(p->fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC || ++w->links > LINKS_MAX) {
		return -ELOOP;
	}
	if (p->st.st_uid != 0 && p->st.st_uid != f->user.uid) {
		if (w->is_foreign && w->owner != p->st.st_uid) {
			return -EACCES;
		}
		w->is_foreign = true;
		w->owner = p->st.st_uid;
	}
	target[n] = '\0';
	const char *name = path_last(w->text);
	char *text = target[0] == '/' ? mem_strdup(target)
				      : mem_printf("%.*s/%s", (int)(name - w->text), w->text,
							target);
	autofree char *dir = NULL;

	free(w->text);
	w->text = text;
	free(TAKE_PTR(p->name));
	fd_close(&p->dir_fd);
	split(w->text, &dir, &p->name);
	p->dir_fd = path_open_beneath(f->root_fd, dir, O_PATH | O_DIRECTORY, 0);
	return p->dir_fd < 0 ? p->dir_fd : 0;
}

static int follow(const struct files *f, struct place *p)
{
	AUTO(follow) struct follow w = { .text = mem_strdup(p->path) };

	for (;;) {
		fd_close(&p->fd);
		p->fd = fd_open_at(p->dir_fd, p->name, O_PATH | O_NOFOLLOW, 0);
		if (p->fd == -ENOENT) {
			return w.is_foreign ? -EACCES : 0;
		}
		if (p->fd < 0) {
			return p->fd;
		}
		if (fstat(p->fd, &p->st) < 0) {
			return -errno;
		}
		if (!S_ISLNK(p->st.st_mode)) {
			return w.is_foreign && p->st.st_uid != w.owner ? -EACCES : 0;
		}
		int r = follow_link(f, p, &w);

		if (r < 0) {
			return r;
		}
	}
}

int place_follow(const struct files *f, struct place *p, struct error *e)
{
	int r = p->missing ? 0 : follow(f, p);

	if (r < 0 || p->fd < 0) {
		p->fd = -1;
	}
	return r < 0 ? files_sys(e, -r, "open", p->path) : 0;
}

int place_find(const struct files *f, const char *given, struct place *out, struct error *e)
{
	AUTO(place) struct place p = PLACE_INIT;

	if (place_open(f, given, &p, e) < 0 || place_follow(f, &p, e) < 0) {
		return -1;
	}
	if (p.fd < 0) {
		return files_sys(e, ENOENT, "open", p.path);
	}
	*out = TAKE(p, (struct place)PLACE_INIT);
	return 0;
}

static int make_dirs(struct place *p)
{
	autofree char *names = TAKE_PTR(p->missing);
	char *save = names;
	char *name = NULL;

	while (save && (name = strsep(&save, "/"))) {
		if (name[0] == '\0') {
			continue;
		}
		if (mkdirat(p->dir_fd, name, 0777) < 0 && errno != EEXIST) {
			return -errno;
		}
		int fd = fd_open_at(p->dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

		if (fd < 0) {
			return fd;
		}
		fd_close(&p->dir_fd);
		p->dir_fd = fd;
	}
	return 0;
}

int place_make_dirs(struct place *p, struct error *e)
{
	int r = make_dirs(p);

	return r < 0 ? files_sys(e, -r, "make the directories of", p->path) : 0;
}

int place_reopen(const struct files *f, const struct place *p, int flags)
{
	char self[32];

	(void)snprintf(self, sizeof(self), "self/fd/%d", p->fd);
	return fd_open_at(f->proc_fd, self, flags | O_NONBLOCK, 0);
}
