/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * cleanup - scope-bound release of resources.
 *
 * Every automatic variable declared with one of these attributes must be initialised in its
 * declaration (tests/lint/style.py checks it). All cleanups keep errno.
 */
#ifndef OSBX_CLEANUP_H
#define OSBX_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define AUTO(name) __attribute__((cleanup(name##_auto)))
#define autofree   AUTO(free)
#define autoclose  AUTO(close)

/* Run DONE on a value kept in caller's memory (struct buf, struct strv). */
#define AUTO_DEFINE(name, type, done)           \
	static inline void name##_auto(type *p) \
	{                                       \
		done(p);                        \
	}                                       \
	struct auto_semicolon

/* Run FREE on a heap object; FREE accepts NULL. */
#define AUTO_DEFINE_PTR(name, type, free_fn)     \
	static inline void name##_auto(type **p) \
	{                                        \
		free_fn(*p);                     \
	}                                        \
	struct auto_semicolon

static inline void free_auto(void *p)
{
	free(*(void **)p);
}

static inline void close_auto(const int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		(void)close(*fd);
		errno = saved;
	}
}

/* Move a value out of VAR, leaving EMPTY behind, so that its cleanup does nothing. */
#define TAKE(var, empty)                        \
	__extension__({                         \
		__typeof__(var) taken_ = (var); \
		(var) = (empty);                \
		taken_;                         \
	})
#define TAKE_PTR(p) TAKE(p, NULL)
#define TAKE_FD(fd) TAKE(fd, -1)

#endif
