/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include <osbx/cleanup.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/spawn.h>
#include <osbx/str.h>

#include "doctor_internal.h"

/* What shadow's useradd begins with. */
#define SUBIDS_FIRST 100000U
#define PASSWD_UID   2

static const char *const helper_names[] = { "newuidmap", "newgidmap" };
static const char *const subid_files[] = { "etc/subuid", "etc/subgid" };

/* "owner:first:count" */
struct subid {
	struct span owner;
	uint64_t first;
	uint64_t end; /* behind the last one */
};

static bool number_parse(struct span text, uint64_t *out)
{
	autofree char *copy = span_dup(text);

	return copy && str_to_u64(copy, UINT32_MAX, out) == 0;
}

static bool subid_parse(struct span line, struct subid *out)
{
	struct span first = { .n = 0 };
	struct span count = { .n = 0 };

	if (!span_next(&line, ':', &out->owner) || !span_next(&line, ':', &first) ||
			!span_next(&line, ':', &count) || !number_parse(first, &out->first) ||
			!number_parse(count, &out->end)) {
		return false;
	}
	out->end += out->first;
	return out->owner.n > 0 && out->end > out->first;
}

static bool is_mine(const struct doctor_facts *f, struct span owner)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", f->uid);
	return span_eq(owner, span_of(number)) ||
	       (f->user[0] != '\0' && span_eq(owner, span_of(f->user)));
}

static void name_copy(struct span name, char out[DOCTOR_WORD_MAX])
{
	(void)snprintf(out, DOCTOR_WORD_MAX, "%.*s", (int)name.n, name.p);
}

/* Does somebody else have ids of one of mine? The first who does is named. */
static void find_overlap(const struct doctor_facts *f, struct span file, const struct subid *mine,
		char out[DOCTOR_WORD_MAX])
{
	struct span line;
	struct subid other;

	while (out[0] == '\0' && span_next(&file, '\n', &line)) {
		if (subid_parse(line, &other) && !is_mine(f, other.owner) &&
				other.first < mine->end && mine->first < other.end) {
			name_copy(other.owner, out);
		}
	}
}

/* Is one of mine the id of a real user? */
static void find_user(struct span passwd, const struct subid *mine, char out[DOCTOR_WORD_MAX])
{
	struct span line;

	while (out[0] == '\0' && span_next(&passwd, '\n', &line)) {
		struct span field[PASSWD_UID + 1] = { { .n = 0 } };
		uint64_t uid = 0;

		for (size_t i = 0; i <= PASSWD_UID; i++) {
			(void)span_next(&line, ':', &field[i]);
		}
		if (number_parse(field[PASSWD_UID], &uid) && uid >= mine->first &&
				uid < mine->end) {
			name_copy(field[0], out);
		}
	}
}

static void read_subids(int root_fd, size_t which, struct span passwd, struct doctor_facts *f)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_PASSWD_BYTES);
	struct doctor_subids *s = &f->subids[which];
	struct span line;
	struct subid one;

	if (file_read_at(root_fd, subid_files[which], &text) < 0) {
		return;
	}
	for (struct span rest = buf_span(&text); span_next(&rest, '\n', &line);) {
		if (!subid_parse(line, &one)) {
			continue;
		}
		if (one.end > f->subids_free) {
			f->subids_free = one.end < UINT32_MAX ? (uint32_t)one.end : UINT32_MAX;
		}
		if (is_mine(f, one.owner)) {
			s->count += one.end - one.first;
			find_overlap(f, buf_span(&text), &one, s->overlaps);
			find_user(passwd, &one, s->overlaps);
		}
	}
}

static void read_user(struct span passwd, struct doctor_facts *f)
{
	struct span line;

	while (f->user[0] == '\0' && span_next(&passwd, '\n', &line)) {
		struct span field[PASSWD_UID + 1] = { { .n = 0 } };
		uint64_t uid = 0;

		for (size_t i = 0; i <= PASSWD_UID; i++) {
			(void)span_next(&line, ':', &field[i]);
		}
		if (number_parse(field[PASSWD_UID], &uid) && uid == f->uid) {
			name_copy(field[0], f->user);
		}
	}
}

static void read_helper(const char *name, struct doctor_helper *h)
{
	autofree char *path = spawn_find(name);
	struct statvfs fs;
	struct stat st;

	if (!path || stat(path, &st) < 0) {
		return;
	}
	(void)snprintf(h->path, sizeof(h->path), "%s", path);
	h->privileged = (st.st_uid == 0 && (st.st_mode & S_ISUID)) ||
			getxattr(path, "security.capability", NULL, 0) > 0;
	h->on_nosuid = statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID);
}

void doctor_read_ids(int root_fd, struct doctor_facts *f)
{
	AUTO(buf) struct buf passwd = BUF_INIT(LIMIT_PASSWD_BYTES);

	if (file_read_at(root_fd, "etc/passwd", &passwd) < 0) {
		buf_reset(&passwd);
	}
	read_user(buf_span(&passwd), f);
	f->subids_free = SUBIDS_FIRST;
	for (size_t i = 0; i < ARRAY_SIZE(subid_files); i++) {
		read_subids(root_fd, i, buf_span(&passwd), f);
	}
	for (size_t i = 0; i < ARRAY_SIZE(helper_names); i++) {
		read_helper(helper_names[i], &f->helpers[i]);
	}
}
