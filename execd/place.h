/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * place - where a client's path leads: a directory that is open, and a name in it.
 *
 * A path is expanded (expand.h), put behind the working directory and cleaned by its text, as the
 * reference does: "a/link/../b" is "a/b". Directories on the way are resolved once, by the kernel
 * and as the worker's user; everything after that is done relative to them, so that nobody can
 * exchange them. Magic links of procfs are never followed.
 */
#ifndef OSBX_EXECD_PLACE_H
#define OSBX_EXECD_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>

struct files;

struct place {
	char *path;    /* absolute, clean: as answers name it */
	int dir_fd;    /* O_PATH; of the last directory that exists */
	char *missing; /* directories to be made below dir_fd, "a/b"; NULL: none */
	char *name;    /* in the directory; "." when the path is a directory without a name */
	int fd;        /* place_follow: O_PATH of the object, -1: there is none */
	struct stat st;
};

#define PLACE_INIT                     \
	{                              \
		.dir_fd = -1, .fd = -1 \
	}

void place_done(struct place *p);
AUTO_DEFINE(place, struct place, place_done);
/* The absolute path of what a client wrote. Caller frees. */
int place_path(const struct files *f, const char *given, char **out_path,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Open the directory of a path; the last component is not looked at. */
int place_open(const struct files *f, const char *given, struct place *out,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* The same; directories may be missing. */
int place_open_new(const struct files *f, const char *given, struct place *out,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Go where links at the last component lead, and open what is there: .fd and .st. A link that
 * belongs to another user than root and the worker's is followed to what is that user's only:
 * nobody lends the rights of the worker's user by a link. 0 also when nothing is there. */
int place_follow(const struct files *f, struct place *p, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* place_open and place_follow; ERRC_NOT_FOUND when nothing is there. */
int place_find(const struct files *f, const char *given, struct place *out,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Make the missing directories; no links are followed in them. */
int place_make_dirs(struct place *p, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Open what place_follow has found, by flags of open(2). fd or -errno. */
int place_reopen(const struct files *f, const struct place *p, int flags) MUST_CHECK NONNULL(1, 2);

#endif
