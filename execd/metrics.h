/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * metrics - what a sandbox uses of processors and memory, of what it may use.
 *
 * The numbers of its own cgroup count; where that says nothing (no cgroup, no controller, no
 * limit), those of the machine.
 */
#ifndef OSBX_EXECD_METRICS_H
#define OSBX_EXECD_METRICS_H

#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/span.h>

/* Contents of the files, empty where there is none. */
struct metrics_text {
	struct span cpu_max; /* of the cgroup */
	struct span cpu_stat;
	struct span memory_max;
	struct span memory_current;
	struct span stat; /* of /proc */
	struct span meminfo;
};

/* At one moment. busy and whole grow in the same unit: between two samples, busy by how long
 * processors were used, whole by how long they could have been. */
struct metrics {
	double cpus;
	double busy;
	double whole;
	double total_bytes; /* of memory */
	double used_bytes;
	int64_t wall_ms;
};

/* cpus_online and boot_us are what the machine has and its clock. */
void metrics_parse(const struct metrics_text *t, long cpus_online, int64_t boot_us,
		struct metrics *out) NONNULL(1, 4);
/* The JSON document about the time between two samples. */
void metrics_format(const struct metrics *before, const struct metrics *now, struct buf *out)
		NONNULL(1, 2, 3);

#endif
