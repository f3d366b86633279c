/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * dirs - where osbx keeps things: the persistent root and the live runtime directory.
 *
 * Root of the initial user namespace: /var/lib/osbx and /run/osbx. Everybody else:
 * $XDG_DATA_HOME/osbx (or ~/.local/share/osbx, HOME from the environment, else from the own
 * passwd entry) and $XDG_RUNTIME_DIR/osbx, or /tmp/osbx-UID (0700, ours, checked; made). OSBX_ROOT
 * and OSBX_RUNTIME override. All directories 0700.
 */
#ifndef OSBX_DIRS_H
#define OSBX_DIRS_H

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>

struct dirs {
	char *root;
	char *runtime;
	int root_fd;
	int runtime_fd;
};

#define DIRS_INIT                                \
	{                                        \
		.root_fd = -1, .runtime_fd = -1, \
	}

/* Find, make and open both. The error names the directory and the variable that moves it. */
int dirs_open(struct dirs *out_dirs, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Only find where they are: the paths; nothing is made, opened or checked. */
int dirs_find(struct dirs *out_dirs, struct error *e) MUST_CHECK NONNULL(1, 2);
void dirs_done(struct dirs *d);
AUTO_DEFINE(dirs, struct dirs, dirs_done);

#endif
