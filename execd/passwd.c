/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "passwd.h"
#include "shown.h"

#define PASSWD_PATH "/etc/passwd"
#define GROUP_PATH  "/etc/group"
#define ID_LAST     4294967294ULL /* 4294967295 is "no id" to the kernel */

/* The text of a user, taken apart. */
struct wish {
	char user[LIMIT_PASSWD_LINE];
	const char *group; /* inside user; NULL without one */
	bool user_is_id;
	bool group_is_id;
	uint32_t uid;
	uint32_t gid;
};

/* The entry of a user in /etc/passwd. */
struct entry {
	char *name; /* NULL: no entry */
	char *home;
	uint32_t uid;
	uint32_t gid;
};

static void entry_done(struct entry *entry)
{
	free(entry->name);
	free(entry->home);
}
AUTO_DEFINE(entry, struct entry, entry_done);

void passwd_user_done(struct passwd_user *u)
{
	free(TAKE_PTR(u->home));
	u->groups_n = 0;
}

/* An id from digits. */
static int id_parse(const char *text, const char *what, uint32_t *out_id, struct error *e)
{
	uint64_t v = 0;

	if (str_to_u64(text, ID_LAST, &v) < 0) {
		return error_set(e, ERRC_INVALID, "%s \"%s\" is not a number from 0 to %llu", what,
				shown(text).text, ID_LAST);
	}
	*out_id = (uint32_t)v;
	return 0;
}

static int wish_parse(const char *text, struct wish *w, struct error *e)
{
	*w = (struct wish){ .user_is_id = true };
	if (text[0] == '\0') {
		return 0;
	}
	size_t n = strlen(text);

	if (n >= sizeof(w->user)) {
		return error_set(e, ERRC_INVALID, "user \"%s…\" is longer than %zu bytes",
				shown(text).text, sizeof(w->user) - 1);
	}
	memcpy(w->user, text, n + 1);
	char *colon = strchr(w->user, ':');

	if (colon) {
		*colon = '\0';
		w->group = colon + 1;
	}
	if (w->user[0] == '\0' || (w->group && (w->group[0] == '\0' || strchr(w->group, ':')))) {
		(void)error_set(e, ERRC_INVALID, "user \"%s\" is not of the form USER[:GROUP]",
				shown(text).text);
		return -1;
	}
	w->user_is_id = str_is_digits(w->user);
	w->group_is_id = w->group && str_is_digits(w->group);
	if (w->user_is_id && id_parse(w->user, "user id", &w->uid, e) < 0) {
		return -1;
	}
	return w->group_is_id ? id_parse(w->group, "group id", &w->gid, e) : 0;
}

/* Next line, without its newline. 1, 0 at the end, -1 (too long). */
static int line_next(struct span *rest, const char *path, struct span *out_line, struct error *e)
{
	if (!span_next(rest, '\n', out_line)) {
		return 0;
	}
	if (out_line->n > LIMIT_PASSWD_LINE) {
		return error_set(e, ERRC_LIMIT, "%s of the image has a line of more than %d bytes",
				path, LIMIT_PASSWD_LINE);
	}
	return 1;
}

/* Fields of a line, `need` of them at least, absent ones empty. Comments, compatibility lines,
 * short lines and lines without a name have none. */
static bool line_split(struct span line, struct span *fields, size_t need, size_t n)
{
	if (line.n == 0 || strchr("#+-:", line.p[0])) {
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		fields[i] = (struct span){ .p = "" };
		if (!span_next(&line, ':', &fields[i]) && i < need) {
			return false;
		}
	}
	return true;
}

static bool field_is(struct span field, const char *text)
{
	return span_eq(field, span_of(text));
}

static int field_id(struct span field, uint32_t *out_id)
{
	autofree char *text = span_dup(field);
	uint64_t v = 0;

	if (!text || str_to_u64(text, ID_LAST, &v) < 0) {
		return -EINVAL;
	}
	*out_id = (uint32_t)v;
	return 0;
}

enum passwd_field {
	PASSWD_NAME,
	PASSWD_PASSWORD,
	PASSWD_UID,
	PASSWD_GID,
	PASSWD_GECOS,
	PASSWD_HOME,
	PASSWD_FIELDS, /* the shell is of no interest */
};

enum group_field {
	GROUP_NAME,
	GROUP_PASSWORD,
	GROUP_GID,
	GROUP_MEMBERS,
	GROUP_FIELDS,
};
_Static_assert((int)PASSWD_UID == (int)GROUP_GID && (int)PASSWD_NAME == (int)GROUP_NAME,
		"names and ids are in the same places of both files");

/* Does this line describe the wanted user? 1, 0, -1 (it does, with bad ids). */
static int entry_match(
		const struct span *f, const struct wish *w, struct entry *out, struct error *e)
{
	if (!w->user_is_id && !field_is(f[PASSWD_NAME], w->user)) {
		return 0;
	}
	int bad = field_id(f[PASSWD_UID], &out->uid);

	if (w->user_is_id && (bad || out->uid != w->uid)) {
		return 0;
	}
	if (bad || field_id(f[PASSWD_GID], &out->gid) < 0) {
		return error_set(e, ERRC_INVALID,
				"%s of the image has no valid ids for user \"%s\"", PASSWD_PATH,
				shown(w->user).text);
	}
	return 1;
}

/* Find the user's line; *out stays empty when there is none. */
static int entry_find(const struct passwd_file *file, const struct wish *w, struct entry *out,
		struct error *e)
{
	struct span rest = file->text;
	struct span line;
	struct span f[PASSWD_FIELDS];
	int more;

	while ((more = line_next(&rest, PASSWD_PATH, &line, e)) > 0) {
		if (!line_split(line, f, PASSWD_GID + 1, PASSWD_FIELDS)) {
			continue;
		}
		int match = entry_match(f, w, out, e);

		if (match < 0) {
			return -1;
		}
		if (match > 0) {
			out->name = span_dup(f[PASSWD_NAME]);
			out->home = span_dup(f[PASSWD_HOME]);
			return 0;
		}
	}
	return more;
}

static int file_check(const struct passwd_file *file, struct error *e)
{
	if (file->error.code != ERRC_OK) {
		*e = file->error;
		return -1;
	}
	return 0;
}

/* A name was asked for and is not there. */
static int name_unknown(const struct passwd_file *file, const char *path, const char *what,
		const char *name, struct error *e)
{
	if (file->absent) {
		(void)error_set(e, ERRC_INVALID, "%s \"%s\": %s of the image %s", what,
				shown(name).text, path, file->absent);
	} else {
		(void)error_set(e, ERRC_INVALID, "%s \"%s\" is not in %s of the image", what,
				shown(name).text, path);
	}
	return error_hint(e, "use a number instead of the name");
}

/* Must this id exist, and does it? */
static int id_check(uint32_t id, const char *what, const struct passwd_query *q, struct error *e)
{
	if (id < q->ids_max) {
		return 0;
	}
	if (q->ids_max == 1) {
		(void)error_set(e, ERRC_INVALID, "%s id %u: this sandbox has the id 0 only", what,
				id);
		return error_hint(e, "give the calling user subordinate ids: usermod --add-subuids "
				     "100000-165535 --add-subgids 100000-165535 USER");
	}
	(void)error_set(e, ERRC_INVALID, "%s id %u: this sandbox has the ids 0 to %u only", what,
			id, q->ids_max - 1);
	return error_hint(e, "use a smaller id, or build the image with ids below %u", q->ids_max);
}

static int groups_add(
		struct passwd_user *u, uint32_t gid, const struct passwd_query *q, struct error *e)
{
	if (id_check(gid, "group", q, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < u->groups_n; i++) {
		if (u->groups[i] == gid) {
			return 0;
		}
	}
	if (u->groups_n == ARRAY_SIZE(u->groups)) {
		return error_set(e, ERRC_LIMIT, "the user is in more than %d groups", LIMIT_GROUPS);
	}
	u->groups[u->groups_n++] = gid;
	return 0;
}

static bool members_have(struct span members, const char *name)
{
	struct span member;

	while (span_next(&members, ',', &member)) {
		if (field_is(member, name)) {
			return true;
		}
	}
	return false;
}

static int group_id(const struct span *f, uint32_t *out_gid, struct error *e)
{
	if (field_id(f[GROUP_GID], out_gid) < 0) {
		autofree char *name = span_dup(f[GROUP_NAME]);

		return error_set(e, ERRC_INVALID,
				"%s of the image has no valid id for group \"%s\"", GROUP_PATH,
				shown(name ? name : "").text);
	}
	return 0;
}

/* Id of a group's name. */
static int group_find(const struct passwd_file *file, const char *name, uint32_t *out_gid,
		struct error *e)
{
	struct span rest = file->text;
	struct span line;
	struct span f[GROUP_FIELDS];
	int more;

	if (file_check(file, e) < 0) {
		return -1;
	}
	while ((more = line_next(&rest, GROUP_PATH, &line, e)) > 0) {
		if (line_split(line, f, GROUP_GID + 1, GROUP_FIELDS) &&
				field_is(f[GROUP_NAME], name)) {
			return group_id(f, out_gid, e);
		}
	}
	return more < 0 ? -1 : name_unknown(file, GROUP_PATH, "group", name, e);
}

/* All groups that list the user as a member. */
static int members_add(const struct passwd_query *q, const struct passwd_file *file,
		const char *name, struct passwd_user *u, struct error *e)
{
	struct span rest = file->text;
	struct span line;
	struct span f[GROUP_FIELDS];
	uint32_t gid = 0;
	int more;

	if (file_check(file, e) < 0) {
		return -1;
	}
	while ((more = line_next(&rest, GROUP_PATH, &line, e)) > 0) {
		if (line_split(line, f, GROUP_GID + 1, GROUP_FIELDS) &&
				members_have(f[GROUP_MEMBERS], name) &&
				(group_id(f, &gid, e) < 0 || groups_add(u, gid, q, e) < 0)) {
			return -1;
		}
	}
	return more;
}

/* Groups that the request adds. */
static int additional_add(const struct passwd_query *q, const struct passwd_file *file,
		struct passwd_user *u, struct error *e)
{
	if (q->groups->n > 0 && !q->has_setgroups) {
		(void)error_set(e, ERRC_UNSUPPORTED,
				"additional groups cannot be set: this sandbox has the id 0 only");
		return error_hint(
				e, "give the calling user subordinate ids (subuid(5), subgid(5))");
	}
	strv_for_each(q->groups, i) {
		const char *text = q->groups->v[i];
		uint32_t gid = 0;
		int r = str_is_digits(text) ? id_parse(text, "group id", &gid, e)
					    : group_find(file, text, &gid, e);

		if (r < 0 || groups_add(u, gid, q, e) < 0) {
			return -1;
		}
	}
	return 0;
}

static int groups_find(const struct passwd_query *q, const struct passwd_files *files,
		const struct wish *w, const char *name, struct passwd_user *u, struct error *e)
{
	if (w->group) {
		u->gid = w->gid;
		if (!w->group_is_id && group_find(&files->group, w->group, &u->gid, e) < 0) {
			return -1;
		}
	} else if (name && q->has_setgroups && members_add(q, &files->group, name, u, e) < 0) {
		return -1;
	}
	if (id_check(u->gid, "group", q, e) < 0) {
		return -1;
	}
	return additional_add(q, &files->group, u, e);
}

static int lookup(const struct passwd_query *q, const struct passwd_files *files,
		struct passwd_user *out_user, struct error *e)
{
	struct wish w;
	AUTO(entry) struct entry entry = { .name = NULL };
	struct passwd_user u = { .uid = 0 };

	if (wish_parse(q->user, &w, e) < 0 || file_check(&files->passwd, e) < 0 ||
			entry_find(&files->passwd, &w, &entry, e) < 0) {
		return -1;
	}
	if (!entry.name && !w.user_is_id) {
		return name_unknown(&files->passwd, PASSWD_PATH, "user", w.user, e);
	}
	u.uid = entry.name ? entry.uid : w.uid;
	u.gid = entry.name ? entry.gid : 0;
	if (id_check(u.uid, "user", q, e) < 0 || groups_find(q, files, &w, entry.name, &u, e) < 0) {
		return -1;
	}
	u.is_listed = entry.name != NULL;
	u.home = entry.home && entry.home[0] == '/' ? TAKE_PTR(entry.home) : mem_strdup("/");
	*out_user = u;
	return 0;
}

int passwd_lookup(const struct passwd_query *q, const struct passwd_files *files,
		struct passwd_user *out_user, struct error *e)
{
	int r = lookup(q, files, out_user, e);

	if (r == 0 || q->user[0] != '\0') {
		return r;
	}
	/* Nobody asked for a user: it is root, who needs no entry. A file that cannot be used is as
	 * good as none, as where something else than a file is. */
	const struct passwd_files without = { .group = files->group };

	error_clear(e);
	return lookup(q, &without, out_user, e);
}

/* Open and read one file. A missing or odd one is "absent": an image without users may name ids. */
static void file_load(int root_fd, const char *path, struct buf *b, struct passwd_file *out)
{
	struct stat st;

	*out = (struct passwd_file){ .absent = NULL };
	/* O_NONBLOCK: the open of a FIFO would wait. */
	autoclose int fd = path_open_nolink(root_fd, path, O_RDONLY | O_NONBLOCK, 0);

	if (fd == -ENOENT || fd == -ENOTDIR) {
		out->absent = "does not exist";
		return;
	}
	if (fd == -ELOOP) {
		out->absent = "is a symbolic link or behind one";
		return;
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)error_sys(&out->error, fd < 0 ? -fd : errno, "open %s of the image", path);
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		out->absent = "is not a regular file";
		return;
	}
	int r = fd_read_all(fd, b);

	if (r == -EMSGSIZE) {
		(void)error_set(&out->error, ERRC_LIMIT, "%s of the image is larger than %u bytes",
				path, LIMIT_PASSWD_BYTES);
	} else if (r < 0) {
		(void)error_sys(&out->error, -r, "read %s of the image", path);
	} else {
		out->text = buf_span(b);
	}
}

int passwd_resolve(int root_fd, const struct passwd_query *q, struct passwd_user *out_user,
		struct error *e)
{
	AUTO(buf) struct buf passwd = BUF_INIT(LIMIT_PASSWD_BYTES);
	AUTO(buf) struct buf group = BUF_INIT(LIMIT_PASSWD_BYTES);
	struct passwd_files files;

	file_load(root_fd, PASSWD_PATH, &passwd, &files.passwd);
	file_load(root_fd, GROUP_PATH, &group, &files.group);
	return passwd_lookup(q, &files, out_user, e);
}

void passwd_book_load(int root_fd, struct passwd_book *out)
{
	*out = (struct passwd_book){
		.passwd = BUF_INIT(LIMIT_PASSWD_BYTES),
		.group = BUF_INIT(LIMIT_PASSWD_BYTES),
	};
	file_load(root_fd, PASSWD_PATH, &out->passwd, &out->files.passwd);
	file_load(root_fd, GROUP_PATH, &out->group, &out->files.group);
}

void passwd_book_done(struct passwd_book *b)
{
	for (size_t i = 0; i < PASSWD_BOOK_CACHE; i++) {
		free(TAKE_PTR(b->users[i].name));
		free(TAKE_PTR(b->groups[i].name));
	}
	buf_done(&b->passwd);
	buf_done(&b->group);
}

/* The first line with this id, or with this name unless it is NULL. */
static bool book_find(struct span text, const char *name, uint32_t *id, char **out_name)
{
	struct span line;
	struct span f[PASSWD_UID + 1];

	while (span_next(&text, '\n', &line)) {
		uint32_t found = 0;

		if (line.n > LIMIT_PASSWD_LINE ||
				!line_split(line, f, PASSWD_UID + 1, PASSWD_UID + 1) ||
				(name && !field_is(f[PASSWD_NAME], name)) ||
				field_id(f[PASSWD_UID], &found) < 0 || (!name && found != *id)) {
			continue;
		}
		*id = found;
		if (out_name) {
			*out_name = span_dup(f[PASSWD_NAME]);
		}
		return true;
	}
	return false;
}

static const char *book_name(struct span text, struct passwd_cached *cache, uint32_t id)
{
	struct passwd_cached *slot = &cache[id % PASSWD_BOOK_CACHE];

	if (!slot->is_set || slot->id != id) {
		free(TAKE_PTR(slot->name));
		slot->is_set = true;
		slot->id = id;
		(void)book_find(text, NULL, &id, &slot->name);
	}
	return slot->name;
}

const char *passwd_book_user(struct passwd_book *b, uint32_t uid)
{
	return book_name(b->files.passwd.text, b->users, uid);
}

const char *passwd_book_group(struct passwd_book *b, uint32_t gid)
{
	return book_name(b->files.group.text, b->groups, gid);
}

int passwd_book_uid(const struct passwd_book *b, const char *name, uint32_t *out_uid)
{
	return book_find(b->files.passwd.text, name, out_uid, NULL) ? 0 : -ENOENT;
}

int passwd_book_gid(const struct passwd_book *b, const char *name, uint32_t *out_gid)
{
	return book_find(b->files.group.text, name, out_gid, NULL) ? 0 : -ENOENT;
}
