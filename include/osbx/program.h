/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * program - osbx is two programs made of the same sources.
 *
 * The installed one is linked statically, with a small C library: that starts in a fifth of the
 * time, and can load no library. It runs what must be fast. The full one, linked with the C library
 * of the host, is embedded in it, and executed for everything else. Where the small C library is
 * missing when osbx is built, there is the full program alone.
 */
#ifndef OSBX_PROGRAM_H
#define OSBX_PROGRAM_H

#include <osbx/compiler.h>
#include <osbx/error.h>

/* First in main; the strings of argv are kept. */
void program_begin(char **argv) NONNULL(1);
/* What follows needs a library: be the full program. In that 0. The other one executes it, with the
 * same arguments from the beginning, and returns only if that fails: so call it before anything
 * that must not happen twice. Locks and other descriptors go, the umask stays. */
int program_full(struct error *e) MUST_CHECK NONNULL(1);
/* Path of the installed program, "" if unknown. */
const char *program_path(void);

#endif
