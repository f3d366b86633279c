/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * path - paths beneath a root descriptor. Nothing else in osbx resolves a path of a guest or an
 * image.
 *
 * openat2(2) with RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS: absolute paths, links and ".." stay
 * below the root. Where openat2 is refused (ENOSYS, or EPERM of an outer filter), a walk by
 * components on descriptors does the same; tests/helpers/no_openat2 forces it.
 */
#ifndef OSBX_PATH_H
#define OSBX_PATH_H

#include <stdbool.h>
#include <sys/types.h>

#include <osbx/compiler.h>

/* Open path as if root_fd were "/"; O_CLOEXEC is added. Links are followed below the root, the
 * last one not with O_NOFOLLOW in flags. fd or -errno (-ELOOP, -ENOENT, -ENAMETOOLONG, …). */
int path_open_beneath(int root_fd, const char *path, int flags, mode_t mode) NONNULL(2) MUST_CHECK;
/* Open path with no link in any component (-ELOOP) and no ".." (-EXDEV). fd or -errno. */
int path_open_nolink(int root_fd, const char *path, int flags, mode_t mode) NONNULL(2) MUST_CHECK;
/* Make the directories of path that are missing (mkdirat on descriptors, component by component:
 * CVE-2024-45310) and open the last one O_PATH | O_DIRECTORY. Existing links are followed below
 * the root; a dangling one is -ELOOP, another type -ENOTDIR. fd or -errno. */
int path_mkdirs_beneath(int root_fd, const char *path, mode_t mode) NONNULL(2) MUST_CHECK;
/* Like path_mkdirs_beneath, for path without its last component. out_name points at that
 * component inside path. -EINVAL if it is empty, "." or "..". Parent fd (O_PATH) or -errno. */
int path_parent_beneath(int root_fd, const char *path, mode_t mode, const char **out_name)
		NONNULL(2, 4) MUST_CHECK;
/* Absolute, normalised copy: duplicate and trailing slashes and "." removed, ".." resolved by
 * text and clamped at "/". For display and comparison only. Caller frees. */
char *path_normalise(const char *path) NONNULL(1) MUST_CHECK;
/* Is path equal to or below dir, compared by components? Both normalised. */
bool path_is_below(const char *path, const char *dir) NONNULL(1, 2);
/* Last component; points into path. */
const char *path_last(const char *path) NONNULL(1);

#endif
