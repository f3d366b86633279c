/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * mem - heap memory that is there or the process is not.
 *
 * All functions abort when memory is exhausted: sizes from outside have a maximum at birth
 * (limits.h), so this is our own mistake or a dead machine. Results are freed with free().
 */
#ifndef OSBX_MEM_H
#define OSBX_MEM_H

#include <stdarg.h>
#include <stddef.h>

#include <osbx/compiler.h>

/* Zeroed memory for n objects of size bytes each; the product is checked. */
void *mem_array(size_t n, size_t size) MUST_CHECK;
/* Zeroed memory for one object of a type. */
#define mem_new(type) ((type *)mem_array(1, sizeof(type)))
/* Resize an array to n objects; new bytes are zeroed from old_n on. */
void *mem_resize(void *p, size_t old_n, size_t n, size_t size) MUST_CHECK;
/* Copy of n bytes, with a NUL byte behind it. */
char *mem_dup(const void *p, size_t n) MUST_CHECK;
/* Copy of a string; NULL gives NULL. */
char *mem_strdup(const char *s) MUST_CHECK;
/* Formatted string. */
char *mem_printf(const char *fmt, ...) PRINTF_LIKE(1, 2) NONNULL(1) MUST_CHECK;
/* The same from a va_list. */
char *mem_vprintf(const char *fmt, va_list ap) PRINTF_LIKE(1, 0) NONNULL(1) MUST_CHECK;

#endif
