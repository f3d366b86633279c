/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * envfile - the file of variables that EXECD_ENVS names.
 *
 * Lines NAME=VALUE, empty ones, and ones that begin with '#'; "export " may stand before a name.
 * 'VALUE' is literal and may span lines; "VALUE" too, with \\ \" \n \r \t as escapes; otherwise a
 * value goes to the end of its line, without the blanks around it, and $NAME and ${NAME} in it are
 * replaced (by nothing when there is no such variable). What is no such line is passed over: the
 * file is the workload's, and a mistake in it must not stop commands.
 */
#ifndef OSBX_EXECD_ENVFILE_H
#define OSBX_EXECD_ENVFILE_H

#include <osbx/compiler.h>
#include <osbx/span.h>
#include <osbx/strv.h>

#define ENVFILE_BYTES_MAX (1U << 20)
#define ENVFILE_NAME      "EXECD_ENVS"
#define ENVFILE_DEFAULT   "/opt/opensandbox/.env"

/* Put the variables of a text into env, over those that are there. 0, or -E2BIG: they are too many,
 * or too long in all (LIMIT_ENV, LIMIT_ARGS_BYTES); the ones before are in env then. */
int envfile_apply(struct span text, struct strv *env) NONNULL(2) MUST_CHECK;
/* The same of a regular file, opened as the calling process may. Missing is fine. 0, -E2BIG,
 * -EMSGSIZE, -EINVAL (no regular file) or -errno. */
int envfile_load(const char *path, struct strv *env) NONNULL(1, 2) MUST_CHECK;

#endif
