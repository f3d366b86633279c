/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/lock.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "auth.h"
#include "listen.h"

#define BACKLOG          4096
#define ACTIVATION_FIRST 3 /* SD_LISTEN_FDS_START */
#define ACTIVATION_MAX   1024

/* One that nobody listens on any more is left over by a server that was killed. A file of another
 * kind refuses connections, too, and is somebody's; one whose queue is full is only slow. */
static bool is_stale(const struct sockaddr_un *addr)
{
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	return fd >= 0 && lstat(addr->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 &&
	       errno == ECONNREFUSED;
}

static int in_use(const char *path, struct error *e)
{
	struct stat st;

	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
		return error_set(e, ERRC_CONFLICT, "%s: there is a file already that is no socket",
				path);
	}
	(void)error_set(e, ERRC_CONFLICT, "%s: another server listens there", path);
	return error_hint(e, "end it, or choose another --listen");
}

static int unix_bind(const struct sockaddr_un *addr, mode_t mode, struct error *e)
{
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) {
		return error_sys(e, errno, "make a socket");
	}
	if (is_stale(addr)) {
		(void)unlink(addr->sun_path);
	}
	/* Its mode is that of the socket itself: there is no moment in which others may connect. */
	if (fchmod(fd, mode) < 0 || bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0) {
		if (errno == EADDRINUSE) {
			return in_use(addr->sun_path, e);
		}
		return error_sys(e, errno, "listen on %s", addr->sun_path);
	}
	if (listen(fd, BACKLOG) < 0) {
		return error_sys(e, errno, "listen on %s", addr->sun_path);
	}
	return TAKE_FD(fd);
}

static int unix_listen(const char *path, mode_t mode, struct error *e)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (path[0] != '/' || strlen(path) >= sizeof(addr.sun_path)) {
		return error_set(e, ERRC_INVALID,
				"--listen unix:%s: not an absolute path of less than %zu bytes",
				path, sizeof(addr.sun_path));
	}
	memcpy(addr.sun_path, path, strlen(path) + 1);
	autofree char *dir = mem_strdup(path);

	strrchr(dir, '/')[1] = '\0';
	autoclose int dir_fd = fd_open(dir, O_RDONLY | O_DIRECTORY, 0);
	/* Two servers that start at once must not take each other's socket for stale. */
	autoclose int lock_fd =
			dir_fd < 0 ? dir_fd
				   : lock_open_at(dir_fd, ".osbx-listen", LOCK_MODE_EXCLUSIVE);

	return lock_fd < 0 ? error_sys(e, -lock_fd, "%s", dir) : unix_bind(&addr, mode, e);
}

/* Is this a line "NAME:PASSWORD:GID:MEMBERS" of that name? */
static bool line_is_group(struct span line, const char *name, uint64_t *out_gid)
{
	struct span field[3];

	for (size_t i = 0; i < ARRAY_SIZE(field); i++) {
		if (!span_next(&line, ':', &field[i])) {
			return false;
		}
	}
	autofree char *gid = span_dup(field[2]);

	return span_eq(field[0], span_of(name)) && gid &&
	       str_to_u64(gid, UINT32_MAX - 1, out_gid) == 0;
}

/* A number, or a name of /etc/group: a static program has no other source of names. */
static int group_find(const char *name, gid_t *out_gid, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_PASSWD_BYTES);
	uint64_t gid = 0;
	bool is_found = str_to_u64(name, UINT32_MAX - 1, &gid) == 0;
	int r = is_found ? 0 : file_read_at(AT_FDCWD, "/etc/group", &text);
	struct span rest = buf_span(&text);
	struct span line;

	while (!is_found && r == 0 && span_next(&rest, '\n', &line)) {
		is_found = line_is_group(line, name, &gid);
	}
	if (!is_found) {
		return error_set(e, ERRC_NOT_FOUND, "--socket-group %s: no such group", name);
	}
	*out_gid = (gid_t)gid;
	return 0;
}

/* The members of the group may look for what they know the name of; nothing else in the runtime
 * directory is for others. */
static int group_let_in(const struct api *api, int dir_fd, gid_t group, struct error *e)
{
	struct stat st;

	if (fstat(api->dirs.runtime_fd, &st) < 0 ||
			fchmod(api->dirs.runtime_fd, (st.st_mode & 07777) | S_IXGRP | S_IXOTH) <
					0) {
		return error_sys(e, errno, "open %s to a group", api->dirs.runtime);
	}
	if (fchown(dir_fd, (uid_t)-1, group) < 0 || fchmod(dir_fd, 0750) < 0) {
		return error_sys(e, errno, "give %s/api to a group", api->dirs.runtime);
	}
	return 0;
}

/* The directory of the default socket. fd, or -1 with *e set. group -1: nobody else's. */
static int default_dir(const struct api *api, gid_t group, struct error *e)
{
	if (mkdirat(api->dirs.runtime_fd, "api", 0700) < 0 && errno != EEXIST) {
		return error_sys(e, errno, "make %s/api", api->dirs.runtime);
	}
	autoclose int fd = fd_open_at(
			api->dirs.runtime_fd, "api", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0) {
		return error_sys(e, -fd, "%s/api", api->dirs.runtime);
	}
	if (group != (gid_t)-1) {
		return group_let_in(api, fd, group, e) < 0 ? -1 : TAKE_FD(fd);
	}
	if (fchmod(fd, 0700) < 0) {
		return error_sys(e, errno, "%s/api", api->dirs.runtime);
	}
	return TAKE_FD(fd);
}

/* RUNTIME/api/osbx.sock, whose directory decides who may connect. */
static int default_listen(struct api *api, struct error *e)
{
	autofree char *path = mem_printf("%s/api/osbx.sock", api->dirs.runtime);
	const char *name = api->opts->socket_group;
	gid_t group = (gid_t)-1;

	if (name && group_find(name, &group, e) < 0) {
		return -1;
	}
	autoclose int dir_fd = default_dir(api, group, e);
	autoclose int fd = dir_fd < 0 ? -1 : unix_listen(path, 0600, e);

	/* Of the right group first; the mask of new files does not apply to this mode. */
	if (fd >= 0 && name &&
			(fchownat(dir_fd, "osbx.sock", (uid_t)-1, group, AT_SYMLINK_NOFOLLOW) < 0 ||
					fchmodat(dir_fd, "osbx.sock", 0660, 0) < 0)) {
		return error_sys(e, errno, "give %s to group %s", path, name);
	}
	return fd < 0 ? -1 : TAKE_FD(fd);
}

/* "HOST:PORT" or "[HOST]:PORT", an address or "localhost". */
static int tcp_parse(const char *text, struct sockaddr_storage *out, socklen_t *out_n)
{
	struct sockaddr_in *v4 = (void *)out;
	struct sockaddr_in6 *v6 = (void *)out;
	const char *colon = strrchr(text, ':');
	uint64_t port = 0;

	if (!colon || str_to_u64(colon + 1, 65535, &port) < 0 || port == 0) {
		return -EINVAL;
	}
	bool has_brackets = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
	autofree char *host = span_dup((struct span){ .p = text + has_brackets,
			.n = (size_t)(colon - text) - 2 * (size_t)has_brackets });

	memset(out, 0, sizeof(*out));
	if (!has_brackets && inet_pton(AF_INET, str_eq(host, "localhost") ? "127.0.0.1" : host,
					     &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		*out_n = sizeof(*v4);
		return 0;
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		*out_n = sizeof(*v6);
		return 0;
	}
	return -EINVAL;
}

static bool is_loopback(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *v4 = (const void *)addr;
	const struct sockaddr_in6 *v6 = (const void *)addr;

	if (addr->ss_family == AF_INET) {
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	}
	return addr->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static int key_refuse(const char *where, struct error *e)
{
	(void)error_set(e, ERRC_DENIED,
			"listen on %s: others than this machine could connect, and "
			"no key is set",
			where);
	return error_hint(e, "--api-key-file FILE, or listen on 127.0.0.1");
}

static int tcp_listen(const struct api *api, const char *text, struct error *e)
{
	struct sockaddr_storage addr;
	socklen_t n = 0;
	const int on = 1;

	if (tcp_parse(text, &addr, &n) < 0) {
		return error_set(e, ERRC_INVALID, "--listen tcp:%s: expected ADDRESS:PORT", text);
	}
	if (!is_loopback(&addr) && api->opts->keys_n == 0) {
		return key_refuse(text, e);
	}
	autoclose int fd = socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0) {
		return error_sys(e, errno, "make a socket");
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&addr, n) < 0 || listen(fd, BACKLOG) < 0) {
		return error_sys(e, errno, "listen on tcp:%s", text);
	}
	return TAKE_FD(fd);
}

static int serve_on(struct api *api, int fd, uint32_t tag, struct error *e)
{
	int r = fd < 0 ? -1 : http_listen(api->server, fd, tag);

	if (fd < 0) {
		return -1;
	}
	return r < 0 ? error_sys(e, -r, "watch a listener") : 0;
}

static int one_start(struct api *api, const char *text, struct error *e)
{
	const char *path = str_after(text, "unix:");
	const char *tcp = str_after(text, "tcp:");

	if (path) {
		return serve_on(api, unix_listen(path, 0600, e), AUTH_LISTENER_UNIX, e);
	}
	if (tcp) {
		return serve_on(api, tcp_listen(api, tcp, e), AUTH_LISTENER_TCP, e);
	}
	(void)error_set(e, ERRC_INVALID, "--listen %s: neither unix: nor tcp:", text);
	return error_hint(e, "unix:/path/of.sock, or tcp:127.0.0.1:8080");
}

/* That it listens: what does not would be found out anew for ever. 0 or -errno. */
static int activation_check(int fd)
{
	int listens = 0;
	int type = 0;
	socklen_t n = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0 ||
			getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0) {
		return -errno;
	}
	return type == SOCK_STREAM && listens ? 0 : -EPROTOTYPE;
}

/* Descriptors of a socket unit (sd_listen_fds(3)). How many, or -1. */
static int activation_start(struct api *api, struct error *e)
{
	const char *pid_text = getenv("LISTEN_PID");
	const char *n_text = getenv("LISTEN_FDS");
	uint64_t pid = 0;
	uint64_t n = 0;

	if (!pid_text || !n_text || str_to_u64(pid_text, INT32_MAX, &pid) < 0 ||
			(pid_t)pid != getpid()) {
		return 0;
	}
	if (str_to_u64(n_text, ACTIVATION_MAX, &n) < 0) {
		return error_set(e, ERRC_INVALID, "LISTEN_FDS=%.32s: expected at most %d sockets",
				n_text, ACTIVATION_MAX);
	}
	for (int fd = ACTIVATION_FIRST; fd < ACTIVATION_FIRST + (int)n; fd++) {
		struct sockaddr_storage addr = { .ss_family = AF_UNSPEC };
		socklen_t addr_n = sizeof(addr);
		int r = getsockname(fd, (struct sockaddr *)&addr, &addr_n) < 0 ? -errno : 0;

		r = r == 0 ? activation_check(fd) : r;
		r = r == 0 ? fd_set_cloexec(fd, true) : r;
		r = r == 0 ? fd_set_nonblock(fd, true) : r;
		if (r < 0) {
			return error_sys(e, -r, "descriptor %d of the socket unit", fd);
		}
		bool is_unix = addr.ss_family == AF_UNIX;

		if (!is_unix && !is_loopback(&addr) && api->opts->keys_n == 0) {
			return key_refuse("a socket unit's address", e);
		}
		if (serve_on(api, fd, is_unix ? AUTH_LISTENER_UNIX : AUTH_LISTENER_TCP, e) < 0) {
			return -1;
		}
	}
	return (int)n;
}

/* Nobody would notice that it has been for nothing. */
static int group_refuse(struct error *e)
{
	(void)error_set(e, ERRC_INVALID,
			"--socket-group: only the default socket can be given to a group, and this "
			"server listens elsewhere");
	return error_hint(e, "for a socket unit: SocketGroup=, see osbx.socket");
}

int listeners_start(struct api *api, struct error *e)
{
	int given = activation_start(api, e);

	if (given < 0) {
		return -1;
	}
	strv_for_each(&api->opts->listen, i) {
		if (one_start(api, api->opts->listen.v[i], e) < 0) {
			return -1;
		}
	}
	if (given > 0 || api->opts->listen.n > 0) {
		return api->opts->socket_group ? group_refuse(e) : 0;
	}
	return serve_on(api, default_listen(api, e), AUTH_LISTENER_UNIX, e);
}
