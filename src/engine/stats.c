/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include <osbx/buf.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/span.h>
#include <osbx/str.h>

#include "ctl_internal.h"

#define FILE_BYTES (64U << 10)

/* A number in decimal, or UINT64_MAX ("max", and what is none). */
static uint64_t number_of(struct span text)
{
	autofree char *copy = span_dup(text);
	uint64_t value = 0;

	return copy && str_to_u64(copy, UINT64_MAX, &value) == 0 ? value : UINT64_MAX;
}

/* First word of a file. */
static uint64_t read_one(int dir_fd, const char *name)
{
	AUTO(buf) struct buf text = BUF_INIT(FILE_BYTES);
	struct span rest = { .n = 0 };
	struct span line = { .n = 0 };

	if (file_read_at(dir_fd, name, &text) < 0) {
		return UINT64_MAX;
	}
	rest = buf_span(&text);
	return span_next(&rest, '\n', &line) ? number_of(line) : UINT64_MAX;
}

/* "key value" lines. */
static uint64_t read_key(int dir_fd, const char *name, const char *key)
{
	AUTO(buf) struct buf text = BUF_INIT(FILE_BYTES);
	struct span line;
	struct span word;

	if (file_read_at(dir_fd, name, &text) < 0) {
		return UINT64_MAX;
	}
	for (struct span rest = buf_span(&text); span_next(&rest, '\n', &line);) {
		if (span_next(&line, ' ', &word) && span_eq(word, span_of(key))) {
			return number_of(line);
		}
	}
	return UINT64_MAX;
}

/* Sum of "key=value" over all devices; nothing written yet is 0. */
static uint64_t read_io(int dir_fd, const char *key)
{
	AUTO(buf) struct buf text = BUF_INIT(FILE_BYTES);
	uint64_t sum = 0;
	struct span word;

	if (file_read_at(dir_fd, "io.stat", &text) < 0) {
		return UINT64_MAX;
	}
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\n') {
			text.p[i] = ' ';
		}
	}
	for (struct span rest = buf_span(&text); span_next(&rest, ' ', &word);) {
		uint64_t value = span_has_prefix(word, span_of(key))
						 ? number_of(span_from(word, strlen(key)))
						 : UINT64_MAX;

		sum += value < UINT64_MAX ? value : 0;
	}
	return sum;
}

/* "QUOTA PERIOD" */
static void read_cpu_max(int dir_fd, struct ctl_stats *s)
{
	AUTO(buf) struct buf text = BUF_INIT(FILE_BYTES);
	struct span quota;
	struct span period;

	s->cpu_quota_usec = UINT64_MAX;
	s->cpu_period_usec = UINT64_MAX;
	if (file_read_at(dir_fd, "cpu.max", &text) < 0) {
		return;
	}
	struct span rest = buf_span(&text);

	if (span_next(&rest, ' ', &quota) && span_next(&rest, '\n', &period)) {
		s->cpu_quota_usec = number_of(quota);
		s->cpu_period_usec = number_of(period);
	}
}

void stats_read(int cgroup_fd, struct ctl_stats *out)
{
	struct ctl_stats s;

	memset(&s, 0xff, sizeof(s));
	if (cgroup_fd >= 0) {
		s.cpu_usec = read_key(cgroup_fd, "cpu.stat", "usage_usec");
		s.memory_bytes = read_one(cgroup_fd, "memory.current");
		s.memory_max_bytes = read_one(cgroup_fd, "memory.max");
		s.pids = read_one(cgroup_fd, "pids.current");
		s.pids_max = read_one(cgroup_fd, "pids.max");
		s.oom_kills = read_key(cgroup_fd, "memory.events", "oom_kill");
		s.io_read_bytes = read_io(cgroup_fd, "rbytes=");
		s.io_write_bytes = read_io(cgroup_fd, "wbytes=");
		read_cpu_max(cgroup_fd, &s);
	}
	*out = s;
}
