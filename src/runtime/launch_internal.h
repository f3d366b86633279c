/* SPDX-License-Identifier: Apache-2.0 */
/* The parent half of a launch: trees for IDMAP_MAPPED. */
#ifndef OSBX_RUNTIME_LAUNCH_INTERNAL_H
#define OSBX_RUNTIME_LAUNCH_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/spec.h>

/* Detached, id-mapped clones of all trees of the spec for a sandbox with this user namespace, in
 * out_fds (spec.trees_n descriptors; -1 from the first failure on). Owned by the caller. */
int launch_trees_open(const struct spec *spec, int userns_fd, int *out_fds,
		struct error *e) MUST_CHECK NONNULL(1, 4);
/* Which mount below a tree cannot be id-mapped by this user namespace, and of which type of file
 * system it is? Both owned by the caller. False: none was found. */
bool launch_refused_mount(const struct spec_tree *t, int userns_fd, char **out_point,
		char **out_type) NONNULL(1, 3, 4);
/* How a volume that belongs to uid and gid is mapped: "inside" is what is on disk, "outside" is
 * how it is seen outside the sandbox. The owner becomes root of the sandbox; its other ids stay
 * what they are; all ids of the host beside the owner have no place in it. */
void launch_owner_map(const struct idmap *sandbox, uid_t uid, gid_t gid, struct idmap *out_map)
		NONNULL(1, 4);

/* netns.c: a network namespace that belongs to this user namespace with that map, its loopback
 * device up. Descriptor in *out_fd. */
int netns_make(int userns_fd, const struct idmap *map, int *out_fd, struct error *e) MUST_CHECK
		NONNULL(2, 3, 4);

#endif
