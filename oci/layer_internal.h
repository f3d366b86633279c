/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layer_internal - what the files of the layer unpacker share.
 */
#ifndef OSBX_OCI_LAYER_INTERNAL_H
#define OSBX_OCI_LAYER_INTERNAL_H

#include <sys/stat.h>
#include <time.h>

#include <osbx/span.h>

#include "layer.h"
#include "lowers.h"
#include "tarread.h"
#include "whiteout.h"

/* Paths and names kept until layer_finish, of one layer: far above any real one (a directory
 * costs its path and 64 bytes), far below what hurts. */
#define LAYER_RECORDS_BYTES (256U << 20)
#define LAYER_LINKS_MAX     40 /* links followed in one path, as Linux does */

#define LAYER_XATTR_OPAQUE   "user.overlay.opaque"
#define LAYER_XATTR_OVERRIDE "user.containers.override_stat"

struct layer_attr {
	mode_t mode;
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
};

/* Kept for the end, when nothing is made in a directory any more. */
struct layer_dir {
	char *path; /* without links, relative; "" is the root */
	bool implied;
	size_t seq; /* the last one of a path counts */
	struct layer_attr attr;
};

struct layer_link {
	char *path; /* directory without links, relative */
	char *name;
	char *target; /* normalised, relative */
};

struct layer_whiteout {
	char *dir;  /* normalised, relative; not resolved */
	char *name; /* NULL: opaque */
};

struct layer_level {
	int fd;     /* O_PATH */
	size_t end; /* length of the path up to this component */
};

/* The directory entered last: its components without links, each with its descriptor. */
struct layer_walk {
	size_t n;
	size_t cap;
	struct layer_level *levels;
	size_t len;
	char path[LIMIT_PATH_BYTES];
};

struct layer {
	struct layer_opts opts;
	struct layer_walk walk;
	struct layer_stats stats;
	size_t records_bytes;
	size_t dirs_n;
	size_t dirs_cap;
	struct layer_dir *dirs;
	size_t links_n;
	size_t links_cap;
	struct layer_link *links;
	size_t whiteouts_n;
	size_t whiteouts_cap;
	struct layer_whiteout *whiteouts;
};

/* layer_record.c: all lists grow here. ERRC_LIMIT above LAYER_RECORDS_BYTES. */
int layer_record_dir(struct layer *l, const char *path, bool implied, const struct layer_attr *attr,
		struct error *e) MUST_CHECK NONNULL(1, 2, 4, 5);
int layer_record_link(struct layer *l, const char *name, const char *target,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
int layer_record_whiteout(struct layer *l, struct span dir, const char *name,
		struct error *e) MUST_CHECK NONNULL(1, 4);
void layer_records_done(struct layer *l) NONNULL(1);

/* layer_walk.c: enter the directory dir (normalised, relative), making what is missing with the
 * modification time of the entry that needs it. Links of this layer are followed below the root;
 * a file in the way gives way to a directory. */
int layer_enter(struct layer *l, struct span dir, const struct timespec *mtime,
		struct error *e) MUST_CHECK NONNULL(1, 3, 4);
/* Descriptor (O_PATH) of the directory entered last; borrowed. */
int layer_here(const struct layer *l) NONNULL(1);
/* Is name, in the directory entered last, a directory of this layer now? Removes what else has
 * the name, and makes it (0700 until the end); opaque where it took another entry's place. */
int layer_make_dir(struct layer *l, const char *name, struct error *e) MUST_CHECK NONNULL(1, 2, 3);
/* Remove what has this name in the directory entered last. 0 or -errno. */
int layer_clear(struct layer *l, const char *name) MUST_CHECK NONNULL(1, 2);
/* Path of name in the directory entered last, into out. 0 or -ENAMETOOLONG. */
int layer_path_of(const struct layer *l, const char *name, char *out, size_t size) MUST_CHECK
		NONNULL(1, 2, 3);
void layer_walk_done(struct layer *l) NONNULL(1);

/* layer_attr.c */
/* Check the owner of an entry against the map and round its attributes to what can be kept. */
int layer_attr_of(const struct layer *l, const struct tar_entry *entry, struct layer_attr *out_attr,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Owner, mode (if it is not created_mode yet) and times of an open file or directory. */
int layer_attr_apply(const struct layer *l, int fd, const struct layer_attr *attr,
		mode_t created_mode, struct error *e) MUST_CHECK NONNULL(1, 3, 5);
/* Owner and times of a link or FIFO. */
int layer_attr_apply_at(const struct layer *l, const char *name, const struct layer_attr *attr,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* The entry's extended attributes that are on the allow-list (user.*, but not the names that
 * overlayfs and the container tools obey). */
int layer_xattrs_apply(struct layer *l, int fd, struct tar *t, struct error *e) MUST_CHECK
		NONNULL(1, 3, 4);
/* The same attributes, and the recorded owner, from one directory to another. */
int layer_xattrs_copy(int from_fd, int to_fd, struct error *e) MUST_CHECK NONNULL(3);
/* Hide what lower layers have in this directory. */
int layer_make_opaque(int dir_fd, const char *name, struct error *e) MUST_CHECK NONNULL(2, 3);

/* layer_link.c */
/* Hard link name, in the directory entered last, to target (normalised, relative) of this layer.
 * 1 when done, 0 when this layer has no such file. */
int layer_link_own(struct layer *l, const char *name, const char *target,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Make the hard links that were kept, to files of this layer or of the newest one below that has
 * them. */
int layer_link_lower(struct layer *l, struct lowers *below, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);

/* layer_hide.c: make the whiteouts that were kept; all is this layer on top of those below. */
int layer_hide(struct layer *l, struct lowers *all, struct error *e) MUST_CHECK NONNULL(1, 2, 3);

#endif
