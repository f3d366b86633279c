/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: runtime
 * scope - a subtree of cgroups that systemd delegates: a transient scope osbx-ID.scope.
 *
 * The scope ends with its last process, and with nothing else: neither with the unit nor with the
 * login session that started osbx. A helper (the hidden command "scope") speaks to the manager, so
 * that the keeper never loads libsystemd.
 */
#ifndef OSBX_SCOPE_H
#define OSBX_SCOPE_H

#include <stdbool.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/id.h>

/* Is there a systemd, and is the caller's own cgroup none that it has delegated, or one that other
 * processes are in? */
bool scope_is_wanted(void);
/* Move this process into a new scope of the system manager (root) or of the user's. Waits up to
 * 10 s. ERRC_UNAVAILABLE, ERRC_UNSUPPORTED (no libsystemd), ERRC_TIMEOUT, ERRC_DENIED with the
 * manager's own words. */
int scope_enter(const struct id *id, struct error *e) MUST_CHECK NONNULL(1, 2);
/* The helper: argv[1] is the id, argv[2] the pid. Writes a struct error to standard output if it
 * fails. Exit status. */
int scope_main(int argc, char **argv) NONNULL(2);

#endif
