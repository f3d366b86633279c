/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_userns identity|single COMMAND…: run COMMAND as root of a child user and mount namespace:
 * with all ids mapped to themselves (what nested containers and CI machines look like), or with
 * the caller's own id as the only one ("unshare -r").
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (n < 0) {
		perror(path);
	}
	if (fd >= 0) {
		(void)close(fd);
	}
	return n < 0 ? -1 : 0;
}

/* A privileged map is written from outside, by a child that stayed in the parent namespace. */
static int map_identity(void)
{
	int go[2];
	char path[64];
	char byte = 0;
	int status = 0;
	pid_t self = getpid();

	if (pipe2(go, O_CLOEXEC) < 0) {
		return -1;
	}
	pid_t writer = fork();

	if (writer == 0) {
		(void)close(go[1]);
		if (read(go[0], &byte, 1) != 1) {
			_exit(1);
		}
		(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", self);
		int r = put(path, "0 0 4294967295");

		(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", self);
		_exit(r < 0 || put(path, "0 0 4294967295") < 0);
	}
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || write(go[1], "x", 1) != 1) {
		perror("in_userns: unshare");
		return -1;
	}
	return waitpid(writer, &status, 0) == writer && status == 0 ? 0 : -1;
}

static int map_single(void)
{
	char map[64];
	unsigned int uid = getuid();
	unsigned int gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
		perror("in_userns: unshare");
		return -1;
	}
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	if (put("/proc/self/setgroups", "deny") < 0 || put("/proc/self/uid_map", map) < 0) {
		return -1;
	}
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	return put("/proc/self/gid_map", map);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		(void)fprintf(stderr, "usage: in_userns identity|single COMMAND...\n");
		return 2;
	}
	if ((strcmp(argv[1], "identity") == 0 ? map_identity() : map_single()) < 0) {
		return 2;
	}
	(void)execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
