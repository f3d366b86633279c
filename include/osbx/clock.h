/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * clock - int64_t milliseconds everywhere.
 */
#ifndef OSBX_CLOCK_H
#define OSBX_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>

#define CLOCK_RFC3339_MAX 40

/* CLOCK_BOOTTIME: deadlines; goes on in suspend, no jumps. */
int64_t clock_boot_ms(void);
/* CLOCK_BOOTTIME in microseconds: stage timings. */
int64_t clock_boot_us(void);
/* CLOCK_REALTIME since 1970: records. */
int64_t clock_wall_ms(void);
/* "2026-01-02T03:04:05.678Z" of wall-clock milliseconds, always terminated. */
void clock_rfc3339(int64_t wall_ms, char *out, size_t out_size) NONNULL(2);

#endif
