/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/limits.h>
#include <osbx/span.h>

#include "execd.h"
#include "shown.h"

static bool file_exists(const char *path, mode_t type)
{
	struct stat st;

	return stat(path, &st) == 0 && (type == 0 || (st.st_mode & S_IFMT) == type);
}

/* The file is there, and execve of it failed with sysno. */
static int file_refused(const char *path, int sysno, struct error *e)
{
	const struct shown name = shown(path);

	if (file_exists(path, S_IFDIR)) {
		return error_set(e, ERRC_NOT_EXECUTABLE, "exec: \"%s\": is a directory", name.text);
	}
	switch (sysno) {
	case ENOENT:
		(void)error_set(e, ERRC_NOT_EXECUTABLE,
				"exec: \"%s\": its interpreter does not exist in the image",
				name.text);
		return error_hint(e,
				"a script's \"#!\" line or a program's loader names a file that "
				"is missing");
	case ENOEXEC:
		return error_set(e, ERRC_NOT_EXECUTABLE,
				"exec: \"%s\": neither a program for this machine nor a script "
				"that begins with \"#!\"",
				name.text);
	default:
		(void)error_set(e, ERRC_NOT_EXECUTABLE, "exec: \"%s\"", name.text);
		e->sysno = sysno;
		return -1;
	}
}

static int path_exec(char *const *argv, char *const *env, struct error *e)
{
	(void)execve(argv[0], argv, env);
	int sysno = errno;

	if ((sysno == ENOENT && !file_exists(argv[0], 0)) || sysno == ENOTDIR) {
		return error_set(e, ERRC_NO_COMMAND, "exec: \"%s\": no such file",
				shown(argv[0]).text);
	}
	return file_refused(argv[0], sysno, e);
}

/* Does the search go on behind a directory where execve failed so? As execvpe(3). */
static bool search_goes_on(int sysno)
{
	return sysno == ENOENT || sysno == ENOTDIR || sysno == EACCES || sysno == ESTALE ||
	       sysno == ENODEV || sysno == ETIMEDOUT || sysno == ENAMETOOLONG;
}

int command_exec(char *const *argv, char *const *env, const char *path_list, struct error *e)
{
	char path[LIMIT_PATH_BYTES];
	char refused[LIMIT_PATH_BYTES] = "";
	int refused_sysno = 0;
	struct span rest = span_of(path_list);
	struct span dir;

	if (argv[0][0] != '\0' && strchr(argv[0], '/')) {
		return path_exec(argv, env, e);
	}
	while (argv[0][0] != '\0' && span_next(&rest, ':', &dir)) {
		/* An empty piece is the working directory. */
		int n = snprintf(path, sizeof(path), "%.*s%s%s", (int)dir.n, dir.p,
				dir.n > 0 ? "/" : "", argv[0]);

		if (n < 0 || (size_t)n >= sizeof(path)) {
			continue;
		}
		(void)execve(path, argv, env);
		int sysno = errno;

		if (!search_goes_on(sysno)) {
			return file_refused(path, sysno, e);
		}
		/* The first file that is there, but cannot be executed, is what to talk about. */
		if (refused_sysno == 0 && file_exists(path, 0) && !file_exists(path, S_IFDIR)) {
			memcpy(refused, path, (size_t)n + 1);
			refused_sysno = sysno;
		}
	}
	if (refused_sysno != 0) {
		return file_refused(refused, refused_sysno, e);
	}
	return error_set(
			e, ERRC_NO_COMMAND, "exec: \"%s\": not found in PATH", shown(argv[0]).text);
}
