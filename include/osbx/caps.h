/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * caps - capability sets by raw system calls (capset(2)); a set is a 64-bit mask of CAP_* bits.
 */
#ifndef OSBX_CAPS_H
#define OSBX_CAPS_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/compiler.h>

#define CAPS_BIT(cap) (UINT64_C(1) << (cap))

/* product.md "Capabilities": CHOWN DAC_OVERRIDE FOWNER FSETID KILL NET_BIND_SERVICE SETFCAP
 * SETGID SETPCAP SETUID SYS_CHROOT. */
extern const uint64_t caps_workload_default;

/* Drop everything outside mask from the bounding set; clear inheritable and ambient
 * (CVE-2022-29162, CVE-2022-24769). 0 or -errno. */
int caps_bound(uint64_t mask) MUST_CHECK;
/* Set permitted and effective to mask; inheritable is cleared. 0 or -errno. */
int caps_set(uint64_t mask) MUST_CHECK;
/* Bit of a name, "CAP_CHOWN" or "chown" in any case. 0..63 or -EINVAL. */
int caps_from_name(const char *name) NONNULL(1) MUST_CHECK;
/* Name of a bit ("CAP_CHOWN"), NULL if unknown. */
const char *caps_name(int cap);

#endif
