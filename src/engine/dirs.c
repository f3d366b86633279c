/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/dirs.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/idmap.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/span.h>
#include <osbx/str.h>

/* Where one of the two directories comes from. */
struct place {
	const char *variable; /* overrides everything */
	const char *system;   /* root of the initial user namespace */
	const char *xdg;      /* everybody else: below the value of this variable */
};

static const struct place root_place = { "OSBX_ROOT", "/var/lib/osbx", "XDG_DATA_HOME" };
static const struct place runtime_place = { "OSBX_RUNTIME", "/run/osbx", "XDG_RUNTIME_DIR" };

static const char *env_get(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] != '\0' ? value : NULL;
}

/* Field number at (0: the first) of a passwd line. */
static struct span line_field(struct span line, unsigned int at)
{
	struct span field = { .n = 0 };

	for (unsigned int i = 0; i <= at; i++) {
		if (!span_next(&line, ':', &field)) {
			return (struct span){ .p = "", .n = 0 };
		}
	}
	return field;
}

/* Home directory of the passwd entry of uid, or NULL. No NSS: it would load code. */
static char *passwd_home(uid_t uid)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_PASSWD_BYTES);
	struct span line;

	if (file_read_at(AT_FDCWD, "/etc/passwd", &text) < 0) {
		return NULL;
	}
	for (struct span rest = buf_span(&text); span_next(&rest, '\n', &line);) {
		autofree char *number = span_dup(line_field(line, 2));
		uint64_t value = 0;

		if (number && str_to_u64(number, UINT32_MAX, &value) == 0 && value == uid) {
			return span_dup(line_field(line, 5));
		}
	}
	return NULL;
}

/* $XDG_DATA_HOME/osbx or ~/.local/share/osbx; NULL when there is no home either. */
static char *data_path(void)
{
	const char *xdg = env_get(root_place.xdg);
	const char *home = env_get("HOME");

	/* A relative value is to be ignored (XDG Base Directory Specification). */
	if (xdg && xdg[0] == '/') {
		return mem_printf("%s/osbx", xdg);
	}
	autofree char *own = home && home[0] == '/' ? mem_strdup(home) : passwd_home(geteuid());

	return own && own[0] == '/' ? mem_printf("%s/.local/share/osbx", own) : NULL;
}

static char *runtime_path(void)
{
	const char *xdg = env_get(runtime_place.xdg);

	if (xdg && xdg[0] == '/') {
		return mem_printf("%s/osbx", xdg);
	}
	return mem_printf("/tmp/osbx-%u", (unsigned int)geteuid());
}

static int place_find(const struct place *place, bool is_system, char **out_path, struct error *e)
{
	const char *given = env_get(place->variable);
	char *path = NULL;

	if (given && given[0] != '/') {
		return error_set(e, ERRC_INVALID, "%s=%s: not an absolute path", place->variable,
				given);
	}
	if (given) {
		path = mem_strdup(given);
	} else if (is_system) {
		path = mem_strdup(place->system);
	} else {
		path = place == &root_place ? data_path() : runtime_path();
	}
	if (!path) {
		(void)error_set(e, ERRC_INVALID,
				"no home directory to keep images and sandboxes in");
		return error_hint(e, "set HOME or %s", place->variable);
	}
	*out_path = path;
	return 0;
}

/* Somebody else could replace what is in it. /tmp/osbx-UID could have been made by anybody. */
static int place_check(const char *path, int fd, struct error *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		return error_sys(e, errno, "%s", path);
	}
	if (st.st_uid != geteuid()) {
		return error_set(e, ERRC_DENIED, "%s: belongs to user %u, not to the caller", path,
				(unsigned int)st.st_uid);
	}
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
		(void)error_set(e, ERRC_DENIED, "%s: others may write to it", path);
		return error_hint(e, "chmod go-w %s", path);
	}
	return 0;
}

static int place_open(const char *path)
{
	const int flags = O_RDONLY | O_DIRECTORY;
	/* In /tmp a link would be somebody else's idea. */
	const int nofollow = str_after(path, "/tmp/osbx-") ? O_NOFOLLOW : 0;
	int fd = fd_open(path, flags | nofollow, 0);

	if (fd != -ENOENT) {
		return fd;
	}
	int r = file_mkdirs(path, 0700);

	return r < 0 ? r : fd_open(path, flags | nofollow, 0);
}

static int place_start(const struct place *place, bool is_system, char **out_path, int *out_fd,
		struct error *e)
{
	autofree char *path = NULL;

	if (place_find(place, is_system, &path, e) < 0) {
		return -1;
	}
	assert(path);
	autoclose int fd = place_open(path);

	if (fd < 0) {
		(void)error_sys(e, -fd, "directory %s", path);
		return error_hint(e, "%s names another place", place->variable);
	}
	if (place_check(path, fd, e) < 0) {
		return error_hint(e, "%s names another place", place->variable);
	}
	*out_path = TAKE_PTR(path);
	*out_fd = TAKE_FD(fd);
	return 0;
}

int dirs_open(struct dirs *out_dirs, struct error *e)
{
	bool is_system = geteuid() == 0 && idmap_is_initial_userns();
	AUTO(dirs) struct dirs d = DIRS_INIT;

	if (place_start(&root_place, is_system, &d.root, &d.root_fd, e) < 0 ||
			place_start(&runtime_place, is_system, &d.runtime, &d.runtime_fd, e) < 0) {
		return -1;
	}
	*out_dirs = TAKE(d, (struct dirs)DIRS_INIT);
	return 0;
}

int dirs_find(struct dirs *out_dirs, struct error *e)
{
	bool is_system = geteuid() == 0 && idmap_is_initial_userns();
	AUTO(dirs) struct dirs d = DIRS_INIT;

	if (place_find(&root_place, is_system, &d.root, e) < 0 ||
			place_find(&runtime_place, is_system, &d.runtime, e) < 0) {
		return -1;
	}
	*out_dirs = TAKE(d, (struct dirs)DIRS_INIT);
	return 0;
}

void dirs_done(struct dirs *d)
{
	if (!d) {
		return;
	}
	free(TAKE_PTR(d->root));
	free(TAKE_PTR(d->runtime));
	fd_close(&d->root_fd);
	fd_close(&d->runtime_fd);
}
