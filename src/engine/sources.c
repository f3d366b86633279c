/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>

#include "sandbox_internal.h"

#define HOST_FILE_BYTES_MAX (1U << 20)

static const struct {
	mode_t type;
	const char *what;
} refused_types[] = {
	/* A read-only mount would not keep anybody from talking to whoever listens. */
	{ S_IFSOCK, "is a socket: a way out of the sandbox" },
	{ S_IFIFO, "is a named pipe" },
	{ S_IFBLK, "is a device" },
	{ S_IFCHR, "is a device" },
};

/* Links of directories that a guest can write to lead nowhere: what is allowed was decided by
 * names, and is opened here, where names are resolved once. */
static int path_walk(const struct request_volume *v)
{
	if (!v->beneath) {
		return fd_open(v->src, O_PATH, 0);
	}
	autoclose int base_fd = fd_open(v->beneath, O_PATH | O_DIRECTORY, 0);

	if (base_fd < 0 || !path_is_below(v->src, v->beneath)) {
		return base_fd < 0 ? base_fd : -EXDEV;
	}
	const char *rest = v->src + strlen(v->beneath);
	autoclose int fd = path_open_beneath(base_fd, rest[0] ? rest : "/", O_PATH, 0);

	return fd < 0 || !v->sub ? TAKE_FD(fd) : path_open_beneath(fd, v->sub, O_PATH, 0);
}

static int source_open(const struct request_volume *v, struct error *e)
{
	autoclose int fd = path_walk(v);
	struct stat st;

	if (fd < 0) {
		return error_sys(e, -fd, "volume %s", v->src);
	}
	if (fstat(fd, &st) < 0) {
		return error_sys(e, errno, "volume %s", v->src);
	}
	for (size_t i = 0; i < ARRAY_SIZE(refused_types); i++) {
		if ((st.st_mode & S_IFMT) == refused_types[i].type) {
			return error_set(e, ERRC_INVALID, "volume %s: %s", v->src,
					refused_types[i].what);
		}
	}
	return TAKE_FD(fd);
}

int sources_open(struct sandbox *s, struct error *e)
{
	size_t n = s->req->volumes_n;

	if (n == 0) {
		return 0;
	}
	s->volume_fds = mem_array(n, sizeof(*s->volume_fds));
	for (size_t i = 0; i < n; i++) {
		s->volume_fds[i] = -1;
	}
	for (size_t i = 0; i < n; i++) {
		s->volume_fds[i] = source_open(&s->req->volumes[i], e);
		if (s->volume_fds[i] < 0) {
			return -1;
		}
	}
	return 0;
}

void sources_close(struct sandbox *s)
{
	for (size_t i = 0; s->volume_fds && i < s->req->volumes_n; i++) {
		fd_close(&s->volume_fds[i]);
	}
	free(TAKE_PTR(s->volume_fds));
}

/* Does an id on disk stand for somebody in the sandbox? As root the tree is id-mapped as it is. */
static bool has_owner(const struct idmap *map, uid_t uid)
{
	if (map->mode == IDMAP_MAPPED) {
		return uid < IDMAP_SANDBOX_IDS;
	}
	for (size_t i = 0; i < map->uids_n; i++) {
		const struct idmap_range *range = &map->uids[i];

		if (uid >= range->outside && uid - range->outside < range->count) {
			return true;
		}
	}
	return false;
}

int sources_check_rootfs(struct sandbox *s, struct error *e)
{
	struct stat st;

	if (!s->img->rootfs) {
		return 0;
	}
	if (stat(s->img->rootfs, &st) < 0) {
		return error_sys(e, errno, "%s", s->req->image);
	}
	if (!S_ISDIR(st.st_mode)) {
		return error_set(e, ERRC_INVALID, "%s: not a directory", s->req->image);
	}
	if (!has_owner(&s->map, st.st_uid)) {
		(void)error_set(e, ERRC_DENIED,
				"%s: belongs to user %u, who would be nobody in the sandbox",
				s->req->image, (unsigned int)st.st_uid);
		return error_hint(e,
				s->map.mode == IDMAP_MAPPED
						? "its files need the owners that they have "
						  "inside, 0 to 65535"
						: "use a copy of your own: cp -r %s DIR",
				s->img->rootfs);
	}
	return 0;
}

/* A missing file is an empty one. */
static int text_read(const char *path, char **out_text, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(HOST_FILE_BYTES_MAX);
	int r = file_read_at(AT_FDCWD, path, &text);

	if (r < 0 && r != -ENOENT) {
		return error_sys(e, -r, "%s", path);
	}
	char *copy = span_dup(buf_span(&text));

	if (!copy) {
		return error_set(e, ERRC_INVALID, "%s: NUL byte", path);
	}
	*out_text = copy;
	return 0;
}

int host_network_read(struct host_network *out_net, struct error *e)
{
	AUTO(host_network) struct host_network net = { .hosts = NULL };

	if (text_read("/etc/hosts", &net.hosts, e) < 0 ||
			text_read("/etc/resolv.conf", &net.resolv_conf, e) < 0) {
		return -1;
	}
	*out_net = TAKE(net, (struct host_network){ .hosts = NULL });
	return 0;
}

void host_network_done(struct host_network *net)
{
	free(TAKE_PTR(net->hosts));
	free(TAKE_PTR(net->resolv_conf));
}
