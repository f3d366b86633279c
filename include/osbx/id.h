/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * id - a sandbox's identity: a version 4 UUID (RFC 9562) in lower case.
 */
#ifndef OSBX_ID_H
#define OSBX_ID_H

#include <stdbool.h>
#include <stddef.h>

#include <osbx/compiler.h>

#define ID_LEN 36

struct id {
	char text[ID_LEN + 1];
};

/* A new random id (getrandom(2)). */
void id_new(struct id *out_id) NONNULL(1);
/* Exactly the form that id_new makes? */
bool id_is_valid(const char *text) NONNULL(1);
/* First 12 hexadecimal digits, the default host name. out has 13 bytes. */
void id_short(const struct id *id, char *out) NONNULL(1, 2);
/* n random bytes from getrandom(2) as 2n hexadecimal digits and a NUL. */
void id_random_hex(char *out, size_t n) NONNULL(1);

#endif
