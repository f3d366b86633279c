/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/lock.h>
#include <osbx/mem.h>

#include "pull.h"

#define DIGEST_PIECE (256U << 10)

int part_dir_open(const struct store *st)
{
	int r = file_mkdir_at(store_root_fd(st), STORE_PARTIAL, 0700);

	return r < 0 ? r
		     : fd_open_at(store_root_fd(st), STORE_PARTIAL,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is it still the file of that name? */
static bool is_current(int dir_fd, const struct part *p, const struct digest *d)
{
	struct stat mine;
	struct stat there;

	return fstat(p->fd, &mine) == 0 &&
	       fstatat(dir_fd, digest_hex(d), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       is_same(&mine, &there);
}

int part_open(const struct store *st, int dir_fd, const struct image_layer *layer,
		struct part *out_part)
{
	struct part p = PART_INIT;
	int fd = lock_try_at(dir_fd, digest_hex(&layer->blob), LOCK_MODE_EXCLUSIVE);

	if (fd < 0) {
		return fd;
	}
	p = (struct part){ .fd = fd, .is_locked = true };
	/* Only now: another process may have published it until it gave up the lock. */
	if (store_has_blob(st, &layer->blob, layer->size)) {
		part_remove(dir_fd, &p, &layer->blob);
		part_close(&p);
		fd = store_blob_open(st, &layer->blob);
		if (fd < 0) {
			return fd;
		}
		p = (struct part){ .fd = fd, .is_blob = true };
	}
	/* Of another size than this image says it has: to be seen before anybody measures it. */
	if (p.is_locked && part_size(&p) > layer->size && ftruncate(p.fd, 0) < 0) {
		fd = -errno;
		part_close(&p);
		return fd;
	}
	*out_part = p;
	return 0;
}

void part_close(struct part *p)
{
	fd_close(&p->fd);
	p->is_locked = false;
}

uint64_t part_size(const struct part *p)
{
	struct stat s;

	return fstat(p->fd, &s) == 0 && s.st_size > 0 ? (uint64_t)s.st_size : 0;
}

/* Not by closing: the fetch helper has the same open file. */
void part_unlock(struct part *p)
{
	if (p->is_locked) {
		(void)flock(p->fd, LOCK_UN);
		p->is_locked = false;
	}
}

int part_publish(struct store *st, int dir_fd, const struct part *p, const struct digest *d)
{
	int r = 0;

	if (p->is_blob) {
		return 0;
	}
	r = is_current(dir_fd, p, d) ? store_blob_publish(st, dir_fd, digest_hex(d), d) : -ENOENT;
	return r == -ENOENT && store_has_blob(st, d, part_size(p)) ? 0 : r;
}

/* Under its lock: else it could be another one, that was begun after somebody else removed it. */
void part_remove(int dir_fd, const struct part *p, const struct digest *d)
{
	autoclose int lock = -1;
	struct part found = PART_INIT;

	if (p->is_blob) {
		return;
	}
	if (!p->is_locked) {
		lock = lock_try_at(dir_fd, digest_hex(d), LOCK_MODE_EXCLUSIVE);
		if (lock < 0) {
			return;
		}
		found.fd = lock;
	}
	if (is_current(dir_fd, p, d) || (found.fd >= 0 && part_size(&found) == 0)) {
		(void)unlinkat(dir_fd, digest_hex(d), 0);
	}
}

int part_digest(const struct part *p, struct digest *out_d, struct error *e)
{
	AUTO(digest_hash) struct digest_hash *h = digest_hash_new(e);
	autofree char *piece = mem_array(DIGEST_PIECE, 1);
	off_t at = 0;

	while (h) {
		ssize_t n = pread(p->fd, piece, DIGEST_PIECE, at);

		if (n < 0) {
			return error_sys(e, errno, "read what was downloaded");
		}
		if (n == 0) {
			digest_hash_end(h, out_d);
			return 0;
		}
		digest_hash_add(h, piece, (size_t)n);
		at += n;
	}
	return -1;
}
