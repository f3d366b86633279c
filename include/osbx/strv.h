/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * strv - an owned, NULL-terminated vector of strings (argv, env), bounded.
 */
#ifndef OSBX_STRV_H
#define OSBX_STRV_H

#include <stddef.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>

struct strv {
	char **v; /* NULL-terminated once anything was added, else NULL */
	size_t n;
};

#define STRV_INIT      \
	{              \
		.n = 0 \
	}

#define strv_for_each(sv, i) for (size_t i = 0; (i) < (sv)->n; (i)++)

/* Free all strings; the vector is empty and usable again. */
void strv_done(struct strv *sv);
AUTO_DEFINE(strv, struct strv, strv_done);
/* Append a copy of s. 0, or -E2BIG above LIMIT_ARGS strings. */
int strv_add(struct strv *sv, const char *s) NONNULL(1, 2) MUST_CHECK;
/* Append s itself, taking ownership also on failure. */
int strv_take(struct strv *sv, char *s) NONNULL(1, 2) MUST_CHECK;
/* Append a formatted string. */
int strv_addf(struct strv *sv, const char *fmt, ...) PRINTF_LIKE(2, 3) NONNULL(1, 2) MUST_CHECK;
/* Append copies of all strings of a NULL-terminated vector (may be NULL). */
int strv_add_all(struct strv *sv, char *const *v) NONNULL(1) MUST_CHECK;
/* The vector for execve: never NULL. Borrowed. */
char *const *strv_get(const struct strv *sv) NONNULL(1);
/* Sum of all strings with their NULs. */
size_t strv_bytes(const struct strv *sv) NONNULL(1);
/* Environment: set "name=value" given as one string, replacing an entry of that name.
 * 0, -EINVAL (no '=' or an empty name) or -E2BIG above LIMIT_ENV. */
int strv_env_set(struct strv *env, const char *entry) NONNULL(1, 2) MUST_CHECK;
/* Environment: value of name, or NULL. Borrowed. */
const char *strv_env_find(const struct strv *env, const char *name) NONNULL(1, 2);
/* Environment: remove name, wherever it stands; its first value, owned by the caller, or NULL. */
char *strv_env_remove(struct strv *env, const char *name) NONNULL(1, 2);

#endif
