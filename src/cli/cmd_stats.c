/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <osbx/clock.h>
#include <osbx/limits.h>
#include <osbx/str.h>

#include "cli.h"
#include "sandboxes.h"

#define ANSWER_MS 5000

struct stats_args {
	bool json;
	bool stream;
};

static const struct args_option stats_options[] = {
	{ "json", 0, ARGS_FLAG, offsetof(struct stats_args, json), NULL,
			"print a JSON object for each", NULL },
	{ "stream", 0, ARGS_FLAG, offsetof(struct stats_args, stream), NULL, "again every second",
			NULL },
	{ .name = NULL },
};

static int stats_get(const struct dirs *dirs, const struct id *id, struct ctl_stats *out,
		struct error *e)
{
	autoclose int sock = ctl_connect(dirs, id, e);
	struct packet p;

	if (sock < 0 || ctl_send(sock, CTL_MSG_STAT, NULL, 0, e) < 0 ||
			ctl_expect(sock, CTL_MSG_STATS, &p, clock_boot_ms() + ANSWER_MS, e) < 0) {
		return -1;
	}
	bool whole = p.len == sizeof(*out);

	if (whole) {
		memcpy(out, p.payload, sizeof(*out));
	}
	packet_done(&p);
	return whole ? 0 : error_set(e, ERRC_INTERNAL, "answer of the keeper of the sandbox");
}

/* What is not known is left out. */
static void add_number(struct json_writer *w, const char *name, uint64_t value)
{
	if (value != UINT64_MAX) {
		json_add_u64(w, name, value);
	}
}

static int print_json(const struct id *id, const struct ctl_stats *s, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_object_begin(&w, NULL);
	json_add_string(&w, "id", id->text);
	add_number(&w, "cpuUsec", s->cpu_usec);
	add_number(&w, "cpuQuotaUsec", s->cpu_quota_usec);
	add_number(&w, "cpuPeriodUsec", s->cpu_period_usec);
	add_number(&w, "memoryBytes", s->memory_bytes);
	add_number(&w, "memoryMaxBytes", s->memory_max_bytes);
	add_number(&w, "pids", s->pids);
	add_number(&w, "pidsMax", s->pids_max);
	add_number(&w, "oomKills", s->oom_kills);
	add_number(&w, "ioReadBytes", s->io_read_bytes);
	add_number(&w, "ioWriteBytes", s->io_write_bytes);
	add_number(&w, "netDenied", s->net_denied);
	json_object_end(&w);
	return w.failed ? -1 : buf_append_str(out, "\n");
}

static void size_format(uint64_t bytes, char *out, size_t size)
{
	if (bytes == UINT64_MAX) {
		(void)snprintf(out, size, "-");
	} else {
		str_from_size(bytes, out, size);
	}
}

static int print_row(const struct id *id, const struct ctl_stats *s, struct buf *out)
{
	char memory[24] = "";
	char limit[24] = "";
	char cpu[24] = "-";
	char pids[24] = "-";

	size_format(s->memory_bytes, memory, sizeof(memory));
	size_format(s->memory_max_bytes, limit, sizeof(limit));
	if (s->cpu_usec != UINT64_MAX) {
		(void)snprintf(cpu, sizeof(cpu), "%" PRIu64 ".%03us", s->cpu_usec / 1000000,
				(unsigned int)(s->cpu_usec / 1000 % 1000));
	}
	if (s->pids != UINT64_MAX) {
		(void)snprintf(pids, sizeof(pids), "%" PRIu64, s->pids);
	}
	return buf_appendf(out, "%.8s  %-14s %-12s %-12s %s\n", id->text, cpu, memory, limit, pids);
}

struct stats_run {
	const struct stats_args *args;
	struct buf out;
};

static int stats_one(const struct dirs *dirs, const struct sandbox_info *info, void *ctx,
		struct error *e)
{
	struct stats_run *run = ctx;
	struct ctl_stats s = { .pids = UINT64_MAX };

	if (stats_get(dirs, &info->state.id, &s, e) < 0) {
		return -1;
	}
	int r = run->args->json ? print_json(&info->state.id, &s, &run->out)
				: print_row(&info->state.id, &s, &run->out);

	return r < 0 ? error_set(e, ERRC_LIMIT, "too much to print") : 0;
}

static int stats_round(const struct stats_args *args, char *const *names)
{
	struct stats_run run = { .args = args, .out = BUF_INIT(LIMIT_STATE_BYTES) };
	const struct each_opts opts = { .run = stats_one, .ctx = &run, .quiet = true };
	int r = args->json ? 0
			   : buf_appendf(&run.out, "%-9s %-14s %-12s %-12s %s\n", "ID", "CPU",
					     "MEMORY", "LIMIT", "PIDS");
	int status = r < 0 ? 125 : sandboxes_each(names, &opts);

	r = cli_print(&run.out);
	buf_done(&run.out);
	return status ? status : r;
}

static int stats_run(int argc, char **argv)
{
	const struct timespec pause = { .tv_sec = 1 };
	struct error e = ERROR_INIT;
	struct stats_args args = { .json = false };
	char **operands = NULL;
	int r = args_parse(&cmd_stats, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	r = stats_round(&args, operands);
	while (r == 0 && args.stream) {
		(void)nanosleep(&pause, NULL);
		r = stats_round(&args, operands);
	}
	return r;
}

const struct args_command cmd_stats = {
	.name = "stats",
	.synopsis = "[options] SANDBOX...",
	.summary = "what running sandboxes use",
	.options = stats_options,
	.operands_min = 1,
	.operands_max = -1,
	.run = stats_run,
};
