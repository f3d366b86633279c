/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * passwd - user and groups of a process by the image's own files, without NSS.
 *
 * "uid", "uid:gid", "uid:group", "name", "name:group", "name:gid" or "" (uid 0). A text of digits
 * is an id and never a name; ids are decimal, 0 to 4294967294 (CVE-2024-40635, CVE-2026-30892).
 * Without a group, the group and the supplementary groups are the user's own; an explicit group
 * replaces both. Only regular files reached without links count, with bounded size and lines
 * (CVE-2024-9407: a FIFO; CVE-2026-47262: an endless file).
 */
#ifndef OSBX_EXECD_PASSWD_H
#define OSBX_EXECD_PASSWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/limits.h>
#include <osbx/span.h>
#include <osbx/strv.h>

struct passwd_query {
	const char *user;          /* never NULL */
	const struct strv *groups; /* additional ones, names or ids */
	uint32_t ids_max;          /* ids 0..ids_max-1 exist in this sandbox */
	bool has_setgroups;        /* supplementary groups can be set */
};

struct passwd_user {
	uint32_t uid;
	uint32_t gid;
	uint32_t groups[LIMIT_GROUPS]; /* supplementary, no duplicates */
	size_t groups_n;
	char *home;     /* absolute; "/" when nothing is known. Owned. */
	bool is_listed; /* has an entry in etc/passwd */
};

/* One of the two files. */
struct passwd_file {
	struct span text;   /* empty when there is none */
	const char *absent; /* why there is none ("does not exist"), or NULL */
	struct error error; /* it could not be read; reported by whoever needs it */
};

struct passwd_files {
	struct passwd_file passwd;
	struct passwd_file group;
};

void passwd_user_done(struct passwd_user *u);
AUTO_DEFINE(passwd_user, struct passwd_user, passwd_user_done);
/* The decision alone, from bytes in memory. Without a user ("") files that cannot be used count as
 * absent, but for the names of additional groups. ERRC_INVALID (bad text, unknown name, an id that
 * does not exist here), ERRC_LIMIT, or the error of a file that is needed. */
int passwd_lookup(const struct passwd_query *q, const struct passwd_files *files,
		struct passwd_user *out_user, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* The same with etc/passwd and etc/group beneath root_fd. */
int passwd_resolve(int root_fd, const struct passwd_query *q, struct passwd_user *out_user,
		struct error *e) MUST_CHECK NONNULL(2, 3, 4);

#define PASSWD_BOOK_CACHE 16

/* One of the names that were asked for last. */
struct passwd_cached {
	bool is_set;
	uint32_t id;
	char *name; /* NULL: the id has none */
};

/* Both files, for questions about names and ids. What cannot be read has none. */
struct passwd_book {
	struct buf passwd;
	struct buf group;
	struct passwd_files files; /* the same, for passwd_lookup */
	struct passwd_cached users[PASSWD_BOOK_CACHE];
	struct passwd_cached groups[PASSWD_BOOK_CACHE];
};

void passwd_book_load(int root_fd, struct passwd_book *out) NONNULL(2);
void passwd_book_done(struct passwd_book *b);
AUTO_DEFINE(passwd_book, struct passwd_book, passwd_book_done);
/* Name of an id, or NULL. Borrowed until the next call. */
const char *passwd_book_user(struct passwd_book *b, uint32_t uid) NONNULL(1);
const char *passwd_book_group(struct passwd_book *b, uint32_t gid) NONNULL(1);
/* Id of a name. 0 or -ENOENT. */
int passwd_book_uid(const struct passwd_book *b, const char *name, uint32_t *out_uid)
		NONNULL(1, 2, 3) MUST_CHECK;
int passwd_book_gid(const struct passwd_book *b, const char *name, uint32_t *out_gid)
		NONNULL(1, 2, 3) MUST_CHECK;

#endif
