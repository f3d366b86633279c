/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <osbx/clock.h>

#include "attrs.h"
#include "shown.h"

#define MODE_DIGITS_MAX 7777
#define ID_TEXT_MAX     16

int attrs_mode_parse(uint64_t digits, mode_t *out_mode)
{
	mode_t mode = 0;

	if (digits > MODE_DIGITS_MAX) {
		return -EINVAL;
	}
	for (unsigned int shift = 0; digits > 0; digits /= 10, shift += 3) {
		if (digits % 10 > 7) {
			return -EINVAL;
		}
		mode |= (mode_t)(digits % 10) << shift;
	}
	*out_mode = mode;
	return 0;
}

unsigned int attrs_mode_digits(mode_t mode)
{
	unsigned int digits = 0;

	for (unsigned int scale = 1; mode > 0; mode >>= 3, scale *= 10) {
		digits += (mode & 7) * scale;
	}
	return digits;
}

static int mode_parse(const struct json *v, mode_t *out_mode, struct error *e)
{
	uint64_t digits = 0;

	if (v && (json_u64(v, MODE_DIGITS_MAX, &digits) < 0 ||
				 attrs_mode_parse(digits, out_mode) < 0)) {
		return error_set(e, ERRC_INVALID,
				"mode: expected octal digits as a number, 0 to 7777");
	}
	return 0;
}

/* A name, or an id in digits; unknown ones and those that no file can have here are left out. */
static int id_parse(const struct json *v, const struct files *f,
		int (*find)(const struct passwd_book *b, const char *name, uint32_t *out_id),
		uint32_t *out_id, struct error *e)
{
	const char *text = json_string(v);
	uint32_t id = 0;
	uint64_t number = 0;

	if (!v || (text && text[0] == '\0')) {
		return 0;
	}
	if (!text) {
		return error_set(e, ERRC_INVALID, "owner and group: expected a name");
	}
	if (find(&f->names, text, &id) == 0 && id < f->ids_max) {
		*out_id = id;
	} else if (str_to_u64(text, f->ids_max - 1, &number) == 0) {
		*out_id = (uint32_t)number;
	}
	return 0;
}

int attrs_parse(struct files *f, const struct json *v, struct attrs *out, struct error *e)
{
	struct attrs a = ATTRS_INIT;

	if (v && !json_is_object(v)) {
		return error_set(e, ERRC_INVALID, "expected an object with owner, group and mode");
	}
	if (id_parse(json_get(v, "owner"), f, passwd_book_uid, &a.uid, e) < 0 ||
			id_parse(json_get(v, "group"), f, passwd_book_gid, &a.gid, e) < 0 ||
			mode_parse(json_get(v, "mode"), &a.mode, e) < 0) {
		return -1;
	}
	a.has_mode = a.mode != 0;
	*out = a;
	return 0;
}

/* fchmod refuses O_PATH, fchmodat2 is Linux 6.6; this path names the open object. */
static int set_mode(const struct files *f, int fd, mode_t mode)
{
	char self[32];

	if (fchmod(fd, mode) == 0) {
		return 0;
	}
	if (errno != EBADF) {
		return -errno;
	}
	(void)snprintf(self, sizeof(self), "self/fd/%d", fd);
	return fchmodat(f->proc_fd, self, mode, 0) < 0 ? -errno : 0;
}

int attrs_apply(const struct files *f, int fd, const struct attrs *a, const char *path,
		struct error *e)
{
	/* First: a change of owner takes set-id bits away. */
	if ((a->uid != (uid_t)-1 || a->gid != (gid_t)-1) &&
			fchownat(fd, "", a->uid, a->gid, AT_EMPTY_PATH) < 0) {
		return files_sys(e, errno, "set owner or group of", path);
	}
	int r = a->has_mode ? set_mode(f, fd, a->mode) : 0;

	return r < 0 ? files_sys(e, -r, "set the mode of", path) : 0;
}

static int64_t ms_of(const struct timespec *ts)
{
	return (int64_t)ts->tv_sec * 1000 + ts->tv_nsec / 1000000;
}

struct fileinfo fileinfo_of(const struct stat *st)
{
	return (struct fileinfo){
		.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.size = (uint64_t)st->st_size,
		.modified_ms = ms_of(&st->st_mtim),
		.changed_ms = ms_of(&st->st_ctim),
	};
}

static const char *type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	default:
		return "other";
	}
}

static void id_write(struct json_writer *w, const char *key, const char *name, uint32_t id)
{
	char text[ID_TEXT_MAX];

	(void)snprintf(text, sizeof(text), "%u", id);
	json_add_string(w, key, name ? name : text);
}

void fileinfo_write(struct json_writer *w, const char *name, const char *path,
		const struct fileinfo *info, struct passwd_book *names)
{
	char time[CLOCK_RFC3339_MAX];

	json_object_begin(w, name);
	json_add_string(w, "path", path);
	json_add_string(w, "type", type_of(info->mode));
	json_add_u64(w, "size", info->size);
	clock_rfc3339(info->modified_ms, time, sizeof(time));
	json_add_string(w, "modified_at", time);
	/* What the contract calls creation is the last change of the inode. */
	clock_rfc3339(info->changed_ms, time, sizeof(time));
	json_add_string(w, "created_at", time);
	id_write(w, "owner", passwd_book_user(names, info->uid), info->uid);
	id_write(w, "group", passwd_book_group(names, info->gid), info->gid);
	json_add_u64(w, "mode", attrs_mode_digits(info->mode & 0777));
	json_object_end(w);
}
