/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * file - whole files and trees of our own directories.
 */
#ifndef OSBX_FILE_H
#define OSBX_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include <osbx/buf.h>
#include <osbx/compiler.h>

/* Read a file of ours into b (bounded by its maximum). 0, -EMSGSIZE or -errno. */
int file_read_at(int dir_fd, const char *name, struct buf *b) NONNULL(2, 3) MUST_CHECK;
/* Replace a file in one step: temporary name, write, fsync if durable, rename. 0 or -errno. */
int file_write_at(int dir_fd, const char *name, struct span data, bool durable)
		NONNULL(2) MUST_CHECK;
/* Write a number or word into an existing kernel file (uid_map, cgroup files): one open with
 * O_WRONLY and one write. 0 or -errno. */
int file_put_at(int dir_fd, const char *name, const char *text) NONNULL(2, 3) MUST_CHECK;
/* Remove name and all below it, without following links, on descriptors; directories that cannot
 * be read are made readable first. Missing is success. Crosses no mount point (EBUSY/EXDEV). The
 * depth is unbounded and uses constant descriptors. 0 or -errno of the first failure; goes on. */
int file_remove_tree_at(int dir_fd, const char *name) NONNULL(2) MUST_CHECK;
/* mkdir that takes an existing directory as success. 0 or -errno. */
int file_mkdir_at(int dir_fd, const char *name, mode_t mode) NONNULL(2) MUST_CHECK;
/* mkdir -p for an absolute path of ours. 0 or -errno. */
int file_mkdirs(const char *path, mode_t mode) NONNULL(1) MUST_CHECK;
/* fsync a directory. 0 or -errno. */
int file_sync_dir(int dir_fd) MUST_CHECK;

#endif
