/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * copy - the side of "osbx cp" that is in the sandbox.
 */
#ifndef OSBX_EXECD_COPY_H
#define OSBX_EXECD_COPY_H

#include <osbx/compiler.h>
#include <osbx/strv.h>

/* Body of a child of execd that is the user already, in the place of a program: argv is what
 * EXECD_COPY_* says. Closes report_fd, which tells that it has started, copies between the
 * standard input or output and a path below root_fd, writes a struct copy_report to the standard
 * error, and exits: 0, or 1 when the report has an error. */
NORETURN void copy_run(int root_fd, int report_fd, const struct strv *argv) NONNULL(3);

#endif
