/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/id.h>
#include <osbx/mem.h>
#include <osbx/str.h>

int file_read_at(int dir_fd, const char *name, struct buf *b)
{
	autoclose int fd = fd_open_at(dir_fd, name, O_RDONLY, 0);

	return fd < 0 ? fd : fd_read_all(fd, b);
}

static int temp_write(int dir_fd, const char *temp, struct span data, bool durable)
{
	autoclose int fd = fd_open_at(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int r = 0;

	if (fd < 0) {
		return fd;
	}
	r = fd_write_all(fd, data.p, data.n);
	if (r == 0 && durable && fsync(fd) < 0) {
		r = -errno;
	}
	return r;
}

int file_write_at(int dir_fd, const char *name, struct span data, bool durable)
{
	char random[17];
	autofree char *temp = NULL;
	int r = 0;

	id_random_hex(random, 8);
	temp = mem_printf("%s.%s.tmp", name, random);
	r = temp_write(dir_fd, temp, data, durable);
	if (r == 0 && renameat(dir_fd, temp, dir_fd, name) < 0) {
		r = -errno;
	}
	if (r < 0 && r != -EEXIST) {
		(void)unlinkat(dir_fd, temp, 0);
	}
	return r;
}

int file_put_at(int dir_fd, const char *name, const char *text)
{
	autoclose int fd = fd_open_at(dir_fd, name, O_WRONLY, 0);
	size_t n = strlen(text);
	ssize_t r = 0;

	if (fd < 0) {
		return fd;
	}
	do {
		r = write(fd, text, n);
	} while (r < 0 && errno == EINTR);
	if (r < 0) {
		return -errno;
	}
	return (size_t)r == n ? 0 : -EIO;
}

int file_mkdir_at(int dir_fd, const char *name, mode_t mode)
{
	struct stat st;

	if (mkdirat(dir_fd, name, mode) == 0) {
		return 0;
	}
	if (errno != EEXIST) {
		return -errno;
	}
	if (fstatat(dir_fd, name, &st, 0) < 0) {
		return -errno;
	}
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int file_mkdirs(const char *path, mode_t mode)
{
	autofree char *head = mem_strdup(path);
	int r = file_mkdir_at(AT_FDCWD, path, mode);

	assert(path[0] == '/');

	if (r != -ENOENT) {
		return r;
	}
	for (char *slash = strchr(head + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		r = file_mkdir_at(AT_FDCWD, head, mode);
		if (r < 0) {
			return r;
		}
		*slash = '/';
	}
	return file_mkdir_at(AT_FDCWD, path, mode);
}

int file_sync_dir(int dir_fd)
{
	return fsync(dir_fd) < 0 ? -errno : 0;
}
