/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8 - one step of strict UTF-8 (RFC 3629), shared by span, str and json.
 */
#ifndef OSBX_BASE_UTF8_H
#define OSBX_BASE_UTF8_H

#include <stddef.h>

/* Length of the well-formed character at p (n bytes follow, n > 0), or 0 if there is none. */
size_t utf8_len(const char *p, size_t n);

#endif
