/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * errnos - names and texts of the kernel's error numbers: one table, because those of the C
 * libraries differ, follow the locale, or are not there.
 */
#ifndef OSBX_ERRNOS_H
#define OSBX_ERRNOS_H

/* "ENOENT", or NULL for a number without a name. */
const char *errno_name(int sysno);
/* "No such file or directory", or NULL. */
const char *errno_text(int sysno);
/* The number of a name, or -EINVAL. */
int errno_from_name(const char *name);

#endif
