/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * compiler - attributes and small macros that every file may use.
 */
#ifndef OSBX_COMPILER_H
#define OSBX_COMPILER_H

#include <stddef.h>

#ifdef NDEBUG
#	error "asserts guard security contracts here and are never compiled out"
#endif

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NONNULL(...)      __attribute__((nonnull(__VA_ARGS__)))
#define MUST_CHECK        __attribute__((warn_unused_result))
#define NORETURN          __attribute__((noreturn))
#define ARRAY_SIZE(a)     (sizeof(a) / sizeof((a)[0]))

/* The object of TYPE whose member MEMBER is at ptr. */
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Static in the product, visible to the unit test of its file. */
#ifdef UNIT_TESTS
#	define UNIT
#else
#	define UNIT static
#endif

#endif
