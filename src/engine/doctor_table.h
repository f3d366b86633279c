/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_table - the parts of a machine that are looked at, and what can be wrong with them.
 */
#ifndef OSBX_ENGINE_DOCTOR_TABLE_H
#define OSBX_ENGINE_DOCTOR_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "doctor_internal.h"

#define DOCTOR_ERRNOS_MAX 6

enum doctor_part {
	DOCTOR_PART_KERNEL,
	DOCTOR_PART_USERNS,
	DOCTOR_PART_APPARMOR,
	DOCTOR_PART_SECCOMP,
	DOCTOR_PART_PROC,
	DOCTOR_PART_IDS,
	DOCTOR_PART_STORE,
	DOCTOR_PART_RUNTIME,
	DOCTOR_PART_OVERLAY,
	DOCTOR_PART_MAPPED,
	DOCTOR_PART_CGROUP,
	DOCTOR_PART_NETWORK,
	DOCTOR_PART_SESSION,
	DOCTOR_PART_LIBRARIES,
	DOCTOR_PART_CLOCK,
	DOCTOR_PART_COUNT,
};

struct doctor_part_row {
	const char *name;
	/* What is said when nothing is wrong with it. Caller frees. */
	char *(*describe)(const struct doctor_facts *f);
};

struct doctor_finding {
	enum doctor_part part;
	bool (*holds)(const struct doctor_facts *f);
	const char *cause;             /* doctor_text */
	const char *remedy;            /* doctor_text, commands a line; NULL: nothing to do */
	int errnos[DOCTOR_ERRNOS_MAX]; /* that it explains, up to 0; none: never a blocker */
};

extern const struct doctor_part_row doctor_parts[DOCTOR_PART_COUNT];
/* By part, in it the surest first. */
extern const struct doctor_finding doctor_findings[];
extern const size_t doctor_findings_n;

#endif
