/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * host - the image @host: this machine's own /usr, read-only, and nothing of anybody's data.
 *
 * A skeleton of directories, links and a small /etc is made once a store and id mode; /usr, what
 * of /bin, /lib and /sbin is not a link into it, and a fixed list of entries of /etc are bound
 * read-only over it at each start, so that they are always the host's present ones.
 */
#ifndef OSBX_HOST_H
#define OSBX_HOST_H

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/idmap.h>
#include <osbx/spec.h>

/* Make the skeleton layers/MODE/PLAN_HOST_LOWER below root_fd if it is missing: staged, renamed.
 * The caller holds the store. */
int host_skeleton(int root_fd, const struct idmap *map, struct error *e) MUST_CHECK NONNULL(2, 3);
/* The same for PLAN_POINTS_LOWER, which comes to lie below the layers of each image: mount points
 * for /dev, /proc, /sys and the files of /etc that differ from sandbox to sandbox. What an image
 * lacks of them need not be made in each upper directory then, for which overlay would copy /etc.
 */
int host_points(int root_fd, const struct idmap *map, struct error *e) MUST_CHECK NONNULL(2, 3);
/* Add the trees and mounts of this machine to spec. */
int host_mounts(struct spec *spec, struct error *e) MUST_CHECK NONNULL(1, 2);

#endif
