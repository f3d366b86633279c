/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>

#include "child.h"
#include "envfile.h"
#include "expand.h"
#include "shown.h"

/* Where an image without a PATH, or with a strange one, has its shell. */
#define SHELL_PLACES "/bin:/usr/bin:/usr/local/bin"

/* As path_mkdirs_beneath, but below no link: it is done with more rights than the user has, who may
 * have put one there. */
static int mkdirs_nolink(int root_fd, const char *path, mode_t mode)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
	autofree char *names = mem_strdup(path);
	autoclose int dir = fd_open_at(root_fd, ".", flags, 0);
	char *save = names;
	char *name = NULL;

	while (dir >= 0 && (name = strsep(&save, "/"))) {
		if (name[0] == '\0' || strcmp(name, ".") == 0) {
			continue;
		}
		if (strcmp(name, "..") == 0) {
			return -EINVAL;
		}
		if (mkdirat(dir, name, mode) < 0 && errno != EEXIST) {
			return -errno;
		}
		int fd = fd_open_at(dir, name, flags, 0);

		fd_close(&dir);
		dir = fd;
	}
	return TAKE_FD(dir);
}

/* The file belongs to whoever is the command; that its directory is missing must not matter. */
int child_step_env_dir(struct setup *s, struct error *e)
{
	(void)e;
	if (!s->more || !s->more->makes_env_dir) {
		return 0;
	}
	const char *named = strv_env_find(&s->process.env, ENVFILE_NAME);
	autofree char *path = mem_strdup(named ? named : ENVFILE_DEFAULT);
	char *slash = strrchr(path, '/');

	if (path[0] == '/' && slash > path) {
		*slash = '\0';
		/* A root that is read-only: the command will say so itself. */
		(void)!child_mkdirs(s, path, mkdirs_nolink);
	}
	return 0;
}

static int env_put(struct strv *env, const char *entry, struct error *e)
{
	int r = strv_env_set(env, entry);

	return r < 0 ? error_set(e, ERRC_LIMIT, "the environment has more than %d variables",
				       LIMIT_ENV)
		     : 0;
}

/* As the user: what that one may not read is not there. */
int child_step_envs(struct setup *s, struct error *e)
{
	struct strv *env = &s->process.env;

	if (!s->more) {
		return 0;
	}
	if (!strv_env_find(env, ENVFILE_NAME) &&
			env_put(env, ENVFILE_NAME "=" ENVFILE_DEFAULT, e) < 0) {
		return -1;
	}
	autofree char *file = mem_strdup(strv_env_find(env, ENVFILE_NAME));

	if (file[0] == '/') {
		(void)!envfile_load(file, env);
	}
	for (size_t i = 0; s->more->envs && i < s->more->envs->n; i++) {
		if (env_put(env, s->more->envs->v[i], e) < 0) {
			return -1;
		}
	}
	return 0;
}

static const char *env_lookup(void *ctx, const char *name)
{
	const struct setup *s = ctx;
	const char *value = strv_env_find(&s->process.env, name);

	return !value && strcmp(name, "HOME") == 0 ? s->user.home : value;
}

int child_step_cwd(struct setup *s, struct error *e)
{
	struct buf path = BUF_INIT(LIMIT_PATH_BYTES);

	if (!s->more || !s->more->cwd) {
		return 0;
	}
	if (expand_path(span_of(s->more->cwd), env_lookup, s, &path, e) < 0) {
		return error_wrap(e, "cwd");
	}
	if (path.n > 0 && path.p[0] != '/') {
		/* Below where the main process works, as a client that knows nothing else means it.
		 */
		s->cwd = mem_printf("%s/%s", s->cwd, path.p);
	} else if (path.n > 0) {
		s->cwd = buf_take(&path);
	}
	return 0;
}

/* The numbers may be in use by what the steps before needed, the report among them. */
int child_step_fds(struct setup *s, struct error *e)
{
	int apart[PROCESS_FDS] = { -1, -1 };

	if (!s->more || s->more->fds_n == 0) {
		return 0;
	}
	const int first = s->more->fd_first > 0 ? s->more->fd_first : PROCESS_FD_FIRST;
	const int above = PROCESS_FD_FIRST + PROCESS_FDS;

	s->report_fd = fd_dup(s->report_fd, above);
	for (size_t i = 0; i < s->more->fds_n && s->report_fd >= 0; i++) {
		apart[i] = fd_dup(s->more->fds[i], above);
	}
	for (size_t i = 0; i < s->more->fds_n; i++) {
		if (apart[i] < 0 || dup2(apart[i], first + (int)i) < 0) {
			return error_sys(e, errno, "set up descriptor %zu", (size_t)first + i);
		}
	}
	return 0;
}

/* Anything but "there is no such file" is the answer. */
static bool exec_of(const struct setup *s, const struct strv *argv, const char *path_list,
		struct error *e)
{
	error_clear(e);
	(void)!command_exec(strv_get(argv), strv_get(&s->process.env), path_list, e);
	return e->code != ERRC_NO_COMMAND;
}

int child_exec_shell(const struct setup *s, struct error *e)
{
	const struct strv *otherwise = s->more->otherwise;
	const char *path_list = strv_env_find(&s->process.env, "PATH");

	if (exec_of(s, &s->process.argv, SHELL_PLACES, e) ||
			exec_of(s, otherwise, path_list ? path_list : SHELL_PLACES, e) ||
			exec_of(s, otherwise, SHELL_PLACES, e)) {
		return -1;
	}
	error_clear(e);
	(void)error_set(e, ERRC_NO_COMMAND, "exec: neither \"%s\" nor \"%s\" is in the image",
			s->process.argv.v[0], otherwise->v[0]);
	return error_hint(e, "a program without a shell is run by \"argv\"");
}
