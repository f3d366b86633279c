/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recursive id-mapping fails as a whole, and the kernel does not say where. Only then the mounts
 * below the tree are tried one by one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "launch_internal.h"

#define MOUNTS_BYTES (4U << 20)

/* Fields of a line of /proc/self/mountinfo, and behind its lone "-". */
#define FIELD_POINT 5
#define FIELD_TYPE  1

/* A mount point as mountinfo has it: white space and the backslash are \ and three octal digits. */
static char *unescape(struct span text)
{
	char *out = mem_dup(text.p, text.n);
	size_t n = 0;

	for (const char *p = out; *p; n++) {
		const bool is_code = p[0] == '\\' && strspn(p + 1, "01234567") >= 3;
		const int code = is_code ? (p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0') : *p;

		out[n] = (char)code;
		p += is_code ? 4 : 1;
	}
	out[n] = '\0';
	return out;
}

static bool line_parse(struct span line, struct span *out_point, struct span *out_type)
{
	struct span field = { .n = 0 };

	for (int i = 0; i < FIELD_POINT; i++) {
		if (!span_next(&line, ' ', out_point)) {
			return false;
		}
	}
	while (span_next(&line, ' ', &field)) {
		if (span_eq(field, span_of("-"))) {
			return span_next(&line, ' ', out_type);
		}
	}
	return false;
}

/* Without the mounts below it. */
static bool is_refused(const char *point, int userns_fd)
{
	const struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_IDMAP,
		.propagation = MS_PRIVATE,
		.userns_fd = (uint64_t)userns_fd,
	};
	autoclose int fd = sys_open_tree(AT_FDCWD, point, OPEN_TREE_CLONE);

	return fd >= 0 && sys_mount_setattr(fd, 0, &attr) < 0;
}

/* Where the tree lies, without links; NULL if that cannot be said. */
static char *tree_path(const struct spec_tree *t)
{
	char path[LIMIT_PATH_BYTES + 1];
	char name[32];
	autoclose int own_fd = t->fd >= 0 ? -1 : fd_open(t->path, O_PATH, 0);

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", t->fd >= 0 ? t->fd : own_fd);
	ssize_t n = readlink(name, path, sizeof(path) - 1);

	return n > 0 && path[0] == '/' ? mem_dup(path, (size_t)n) : NULL;
}

bool launch_refused_mount(
		const struct spec_tree *t, int userns_fd, char **out_point, char **out_type)
{
	AUTO(buf) struct buf text = BUF_INIT(MOUNTS_BYTES);
	autofree char *dir = tree_path(t);
	struct span line;
	struct span point;
	struct span type;

	if (!dir || file_read_at(AT_FDCWD, "/proc/self/mountinfo", &text) < 0) {
		return false;
	}
	for (struct span rest = buf_span(&text); span_next(&rest, '\n', &line);) {
		if (!line_parse(line, &point, &type)) {
			continue;
		}
		autofree char *path = unescape(point);

		if (path_is_below(path, dir) && !str_eq(path, dir) && is_refused(path, userns_fd)) {
			*out_point = TAKE_PTR(path);
			*out_type = mem_dup(type.p, type.n);
			return true;
		}
	}
	return false;
}
