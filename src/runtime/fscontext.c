/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "mount_internal.h"

#define LOG_LINE_MAX 256

int fscontext_open(const char *type)
{
	autoclose int fs = sys_fsopen(type);

	if (fs < 0) {
		return fs;
	}
	int r = sys_fsconfig_set(fs, "source", type);

	return r < 0 ? r : TAKE_FD(fs);
}

int fscontext_options(int fs_fd, const char *options)
{
	autofree char *copy = mem_strdup(options);
	char *rest = copy;
	const char *option = NULL;

	while ((option = strsep(&rest, ","))) {
		char *value = strchr(option, '=');

		if (value) {
			*value++ = '\0';
		}
		int r = sys_fsconfig_set(fs_fd, option, value);

		if (r < 0) {
			return r;
		}
	}
	return 0;
}

int fscontext_mount(int fs_fd, uint32_t attrs)
{
	int r = sys_fsconfig_create(fs_fd);

	return r < 0 ? r : sys_fsmount(fs_fd, attrs);
}

void fscontext_log(int fs_fd, char *out, size_t out_size)
{
	char line[LOG_LINE_MAX];

	out[0] = '\0';
	/* One message a read, "e overlay: …"; EBADMSG: there is none. */
	for (;;) {
		ssize_t n = fd_read(fs_fd, line, sizeof(line) - 1);

		if (n <= 2) {
			return;
		}
		line[n] = '\0';
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == 'e') {
			(void)snprintf(out, out_size, "%s", line + 2);
		}
	}
}

int mount_clone(int dir_fd, const char *path, bool recursive)
{
	const unsigned int flags = OPEN_TREE_CLONE | (path[0] ? 0 : AT_EMPTY_PATH);
	int fd = recursive ? -EINVAL : sys_open_tree(dir_fd, path, flags);

	return fd == -EINVAL ? sys_open_tree(dir_fd, path, flags | AT_RECURSIVE) : fd;
}
