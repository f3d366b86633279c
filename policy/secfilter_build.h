/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * secfilter_build - a table of secfilter_tables.h as BPF instructions. Build time only.
 *
 * The program checks the architecture, then finds the system call by a balanced tree of
 * comparisons over ranges of equal treatment; the kernel (Linux 5.11) finds by itself which numbers
 * are allowed whatever the arguments and does not run the program for them.
 */
#ifndef OSBX_POLICY_SECFILTER_BUILD_H
#define OSBX_POLICY_SECFILTER_BUILD_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "secfilter_tables.h"

#define BUILD_INSNS_MAX    4096 /* BPF_MAXINSNS */
#define BUILD_SYSCALLS_MAX 1024 /* no machine has more */

struct build_arch {
	const char *name;    /* meson's cpu_family */
	uint32_t audit_arch; /* AUDIT_ARCH_* */
	uint32_t scmp_arch;  /* SCMP_ARCH_* */
	bool has_x32;        /* a second table of system calls behind bit 30 */
};

struct build_program {
	struct sock_filter insns[BUILD_INSNS_MAX];
	size_t n;
};

/* The machine of a name, or NULL. Only machines with the generic ioctl numbers, little endian. */
const struct build_arch *build_arch_find(const char *name);
/* Compile; ends the program with a message on a mistake in the tables. */
void build_program(const struct filter_profile *profile, const struct build_arch *arch,
		struct build_program *out);
/* Readable form of what was compiled last, one instruction a line, system calls by name. */
void build_print(const struct build_program *program, FILE *out);

#endif
