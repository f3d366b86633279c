/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/clock.h>
#include <osbx/egress.h>
#include <osbx/execd_proto.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/request.h>
#include <osbx/str.h>

#include "cli.h"
#include "sandboxes.h"

static void add_time(struct json_writer *w, const char *name, int64_t ms)
{
	char text[CLOCK_RFC3339_MAX];

	clock_rfc3339(ms, text, sizeof(text));
	json_add_string(w, name, ms != 0 ? text : NULL);
}

static void add_labels(struct json_writer *w, const struct strv *labels)
{
	json_object_begin(w, "labels");
	strv_for_each(labels, i) {
		const char *eq = strchr(labels->v[i], '=');
		bool again = false;

		/* The last one of a key is the one that counts. */
		for (size_t k = i + 1; eq && k < labels->n && !again; k++) {
			again = strncmp(labels->v[k], labels->v[i],
						(size_t)(eq - labels->v[i]) + 1) == 0;
		}
		if (eq && !again) {
			autofree char *key = mem_dup(labels->v[i], (size_t)(eq - labels->v[i]));

			json_add_string(w, key, eq + 1);
		}
	}
	json_object_end(w);
}

static void add_status(struct json_writer *w, const struct sandbox_state *s)
{
	json_object_begin(w, "status");
	json_add_string(w, "state", state_name(s->code));
	json_add_string(w, "reason", s->reason);
	json_add_string(w, "message", s->message);
	if (s->exit_status >= 0) {
		json_add_i64(w, "exitStatus", s->exit_status);
	}
	json_add_bool(w, "oomKilled", s->oom_killed);
	add_time(w, "startedAt", s->started_ms);
	add_time(w, "endedAt", s->ended_ms);
	json_object_end(w);
}

/* How long its making took, in microseconds. */
static void add_stages(struct json_writer *w, const struct sandbox_state *s)
{
	json_object_begin(w, "stageUs");
	for (int i = 0; i < STATE_STAGE_COUNT; i++) {
		json_add_i64(w, state_stage_name((enum state_stage)i), s->stage_us[i]);
	}
	json_object_end(w);
}

/* Limits that were asked for and are not in force. */
static void add_missing(struct json_writer *w, const struct strv *missing)
{
	if (missing->n == 0) {
		return;
	}
	json_array_begin(w, "limitsMissing");
	strv_for_each(missing, i) {
		json_add_string(w, NULL, missing->v[i]);
	}
	json_array_end(w);
}

/* Published ports. */
static void add_ports(struct json_writer *w, const struct strv *ports)
{
	if (ports->n == 0) {
		return;
	}
	json_array_begin(w, "ports");
	strv_for_each(ports, i) {
		struct error e = ERROR_INIT;
		struct port_map map;
		char addr[NETADDR_TEXT_MAX];

		if (ports_parse(ports->v[i], &map, &e) < 0) {
			continue;
		}
		netaddr_format(&map.addr, addr);
		json_object_begin(w, NULL);
		json_add_string(w, "address", addr);
		json_add_u64(w, "port", map.outside);
		json_add_u64(w, "inside", map.inside);
		json_add_string(w, "protocol", "tcp");
		json_object_end(w);
	}
	json_array_end(w);
}

/* Where it listens, while it runs. */
static void add_execd(struct json_writer *w, const struct sandbox_state *s, const char *runtime)
{
	autofree char *path = mem_printf("%s/sandboxes/%s/" EXECD_SOCKET, runtime, s->id.text);

	if (state_is_final(s) || s->started_ms == 0) {
		return;
	}
	json_object_begin(w, "execd");
	json_add_string(w, "socket", path);
	json_object_end(w);
}

/* What may go out, as it is on record. */
static void add_egress(
		struct json_writer *w, const struct sandbox_state *s, const struct dirs *dirs)
{
	AUTO(egress) struct egress g = { .closed = NULL };
	struct error e = ERROR_INIT;

	if (s->network == SPEC_NETWORK_PRIVATE && egress_find(dirs, &s->id, &g, &e) == 0) {
		egress_format(&g, w, "egress");
	}
}

void sandbox_info_format(const struct sandbox_info *info, const struct json *request,
		const struct dirs *dirs, struct json_writer *w)
{
	const struct sandbox_state *s = &info->state;

	json_object_begin(w, NULL);
	json_add_string(w, "id", s->id.text);
	json_add_string(w, "name", s->name);
	json_add_string(w, "image", s->image);
	add_labels(w, &s->labels);
	add_status(w, s);
	add_time(w, "createdAt", s->created_ms);
	add_time(w, "expiresAt", s->expires_ms);
	json_add_bool(w, "kept", info->is_kept);
	json_add_bool(w, "detached", s->retained);
	json_add_u64(w, "pid", (uint64_t)s->pid);
	json_add_u64(w, "keeperPid", (uint64_t)s->keeper_pid);
	json_add_string(w, "cgroup", s->cgroup);
	add_missing(w, &s->limits_missing);
	if (!state_is_final(s)) {
		add_ports(w, &s->ports);
	}
	json_add_string(w, "network", request_network_name(s->network));
	if (dirs) {
		add_egress(w, s, dirs);
		add_execd(w, s, dirs->runtime);
	}
	if (request) {
		add_stages(w, s);
		json_add_value(w, "request", json_get(request, "request"));
		json_add_value(w, "resolved", json_get(request, "resolved"));
	}
	json_object_end(w);
}

static int each_one(const struct dirs *dirs, const char *name, const struct each_opts *opts,
		struct error *e)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };

	if (sandbox_find(dirs, name, &info, e) < 0) {
		if (e->code != ERRC_NOT_FOUND || !opts->missing_is_done) {
			return -1;
		}
		error_clear(e);
		return 0;
	}
	return opts->run(dirs, &info, opts->ctx, e);
}

int sandboxes_each(char *const *names, const struct each_opts *opts)
{
	AUTO(dirs) struct dirs dirs = DIRS_INIT;
	AUTO(buf) struct buf out = BUF_INIT(LIMIT_STATE_BYTES);
	struct error e = ERROR_INIT;
	int status = 0;

	if (dirs_open(&dirs, &e) < 0) {
		return cli_fail(&e);
	}
	for (; *names; names++) {
		if (each_one(&dirs, *names, opts, &e) < 0) {
			status = cli_fail(&e);
			error_clear(&e);
		} else if (!opts->quiet && buf_appendf(&out, "%s\n", *names) < 0) {
			status = 125;
		}
	}
	int r = cli_print(&out);

	return status ? status : r;
}
