/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <osbx/str.h>

#include "metrics.h"

#define MIB 1048576.0

/* A decimal number, or -1: there is none ("max"). */
static double number_of(struct span text)
{
	char digits[24];
	uint64_t value = 0;

	if (text.n >= sizeof(digits)) {
		return -1;
	}
	memcpy(digits, text.p, text.n);
	digits[text.n] = '\0';
	return str_to_u64(digits, UINT64_MAX, &value) == 0 ? (double)value : -1;
}

/* The next word of *rest, past any number of spaces; false at the end of the line. */
static bool word_next(struct span *rest, struct span *out)
{
	while (span_next(rest, ' ', out)) {
		if (out->n > 0) {
			return true;
		}
	}
	return false;
}

static double first_number(struct span text)
{
	struct span line;

	return span_next(&text, '\n', &line) ? number_of(line) : -1;
}

/* The number behind a word at the beginning of a line. */
static double number_at(struct span text, const char *key)
{
	struct span line;
	struct span word;

	while (span_next(&text, '\n', &line)) {
		if (word_next(&line, &word) && span_eq(word, span_of(key))) {
			return word_next(&line, &word) ? number_of(word) : -1;
		}
	}
	return -1;
}

/* "QUOTA PERIOD", in processors; -1: no limit. */
static double quota_of(struct span text)
{
	struct span quota;
	struct span period;

	if (!span_next(&text, ' ', &quota) || !span_next(&text, '\n', &period)) {
		return -1;
	}
	double have = number_of(quota);
	double of = number_of(period);

	return have > 0 && of > 0 ? have / of : -1;
}

/* Columns of the first line of /proc/stat, proc(5). */
#define COLUMN_IDLE   3
#define COLUMN_IOWAIT 4
#define COLUMN_STEAL  7

static void machine_times(struct span text, struct metrics *out)
{
	struct span line;
	struct span word;

	if (!span_next(&text, '\n', &line) || !word_next(&line, &word) ||
			!span_eq(word, span_of("cpu"))) {
		return;
	}
	for (int i = 0; i <= COLUMN_STEAL && word_next(&line, &word); i++) {
		double ticks = number_of(word);

		out->whole += ticks;
		out->busy += i == COLUMN_IDLE || i == COLUMN_IOWAIT ? 0 : ticks;
	}
}

void metrics_parse(const struct metrics_text *t, long cpus_online, int64_t boot_us,
		struct metrics *out)
{
	double quota = quota_of(t->cpu_max);
	double used_us = number_at(t->cpu_stat, "usage_usec");
	double limit = first_number(t->memory_max);
	double current = first_number(t->memory_current);
	double total = number_at(t->meminfo, "MemTotal:") * 1024;
	double available = number_at(t->meminfo, "MemAvailable:") * 1024;
	struct metrics m = { .cpus = cpus_online > 0 ? (double)cpus_online : 1 };

	m.cpus = quota > 0 && quota < m.cpus ? quota : m.cpus;
	if (used_us >= 0) {
		m.busy = used_us;
		m.whole = m.cpus * (double)boot_us;
	} else {
		machine_times(t->stat, &m);
	}
	m.total_bytes = total > 0 ? total : 0;
	if (limit > 0 && (total <= 0 || limit < total)) {
		m.total_bytes = limit;
	}
	m.used_bytes = total > 0 && available >= 0 ? total - available : 0;
	if (current >= 0) {
		m.used_bytes = current;
	}
	m.used_bytes = m.used_bytes < m.total_bytes ? m.used_bytes : m.total_bytes;
	*out = m;
}

void metrics_format(const struct metrics *before, const struct metrics *now, struct buf *out)
{
	double whole = now->whole - before->whole;
	double busy = now->busy - before->busy;
	double part = whole > 0 && busy > 0 ? 100 * busy / whole : 0;

	/* Accounting is not in step with the clock. */
	part = part < 100 ? part : 100;
	(void)!buf_appendf(out,
			"{\"cpu_count\":%.6g,\"cpu_used_pct\":%.2f,\"mem_total_mib\":%.2f,"
			"\"mem_used_mib\":%.2f,\"timestamp\":%lld}",
			now->cpus, part, now->total_bytes / MIB, now->used_bytes / MIB,
			(long long)now->wall_ms);
}
