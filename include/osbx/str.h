/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * str - strings and strict number parsing.
 *
 * All parsers take the whole string or nothing: no sign, no white space, no octal or hexadecimal,
 * no trailing bytes (crun CVE-2026-30892, containerd CVE-2024-40635: lax numbers became root).
 */
#ifndef OSBX_STR_H
#define OSBX_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <osbx/compiler.h>

static inline bool str_eq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* The rest of s behind prefix, or NULL if it does not begin so. */
const char *str_after(const char *s, const char *prefix) NONNULL(1, 2);
/* Does s end with suffix? */
bool str_has_suffix(const char *s, const char *suffix) NONNULL(1, 2);
/* Only decimal digits, at least one? */
bool str_is_digits(const char *s) NONNULL(1);
/* Only bytes of the set (strspn), at least one? */
bool str_is_made_of(const char *s, const char *set) NONNULL(1, 2);
/* Decimal number 0..max. 0, -EINVAL (not a number) or -ERANGE (above max). */
int str_to_u64(const char *s, uint64_t max, uint64_t *out_v) NONNULL(1, 3) MUST_CHECK;
/* Size in bytes: decimal number and an optional suffix b k m g t (or K M G T, with optional
 * "iB"/"b"), powers of 1024 as docker and podman do. 0, -EINVAL, -ERANGE. */
int str_to_size(const char *s, uint64_t *out_bytes) NONNULL(1, 2) MUST_CHECK;
/* Duration: decimal numbers with units ms s m h d, largest first ("1h30m"); a bare number is
 * seconds. 0, -EINVAL, or -ERANGE above ten years. */
int str_to_duration(const char *s, int64_t *out_ms) NONNULL(1, 2) MUST_CHECK;
/* Human-readable size ("1.5 MiB") into out, always terminated. */
void str_from_size(uint64_t bytes, char *out, size_t out_size) NONNULL(2);
/* Copy s into out with bytes that a terminal could obey (C0, DEL, C1) replaced by '?'. */
void str_printable(const char *s, char *out, size_t out_size) NONNULL(1, 2);

#endif
