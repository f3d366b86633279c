/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   Pending ──▶ Running ──▶ Pausing ──▶ Paused ──▶ Resuming ──▶ Running
 *      │           │           │          │            │
 *      │           ├───────────┴──────────┴────────────┴──▶ Stopping
 *      │           │                                           │
 *      └──▶ Failed ◀───────────── from anywhere ───────────────┤
 *                  └──▶ Terminated ◀───────────────────────────┘
 *
 * Terminated and Failed are final. A failed pause goes back to Running, a failed resume to Paused.
 * state_go is the single place that changes a code, and it asserts the table.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/buf.h>
#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/json.h>
#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/request.h>
#include <osbx/state.h>
#include <osbx/str.h>

#define STATE_VERSION   1
#define PROC_STAT_BYTES 4096
#define PROC_STAT_START 22 /* number of the field, the name being the second */

static const char *const stage_names[] = {
	[STATE_STAGE_IMAGE] = "image",
	[STATE_STAGE_PLAN] = "plan",
	[STATE_STAGE_LAUNCH] = "launch",
	[STATE_STAGE_START] = "start",
};
_Static_assert(ARRAY_SIZE(stage_names) == STATE_STAGE_COUNT, "stage_names is complete");

static const char *const state_names[] = {
	[SANDBOX_PENDING] = "Pending",
	[SANDBOX_RUNNING] = "Running",
	[SANDBOX_PAUSING] = "Pausing",
	[SANDBOX_PAUSED] = "Paused",
	[SANDBOX_RESUMING] = "Resuming",
	[SANDBOX_STOPPING] = "Stopping",
	[SANDBOX_TERMINATED] = "Terminated",
	[SANDBOX_FAILED] = "Failed",
};
_Static_assert(ARRAY_SIZE(state_names) == SANDBOX_STATE_COUNT, "state_names is complete");

#define TO(code) (1U << (code))

static const unsigned int state_next[] = {
	[SANDBOX_PENDING] = TO(SANDBOX_RUNNING) | TO(SANDBOX_STOPPING) | TO(SANDBOX_TERMINATED) |
			    TO(SANDBOX_FAILED),
	[SANDBOX_RUNNING] = TO(SANDBOX_PAUSING) | TO(SANDBOX_STOPPING) | TO(SANDBOX_TERMINATED) |
			    TO(SANDBOX_FAILED),
	[SANDBOX_PAUSING] = TO(SANDBOX_PAUSED) | TO(SANDBOX_RUNNING) | TO(SANDBOX_STOPPING) |
			    TO(SANDBOX_FAILED),
	[SANDBOX_PAUSED] = TO(SANDBOX_RESUMING) | TO(SANDBOX_STOPPING) | TO(SANDBOX_FAILED),
	[SANDBOX_RESUMING] = TO(SANDBOX_RUNNING) | TO(SANDBOX_PAUSED) | TO(SANDBOX_STOPPING) |
			     TO(SANDBOX_FAILED),
	[SANDBOX_STOPPING] = TO(SANDBOX_TERMINATED) | TO(SANDBOX_FAILED),
	[SANDBOX_TERMINATED] = 0,
	[SANDBOX_FAILED] = 0,
};
_Static_assert(ARRAY_SIZE(state_next) == SANDBOX_STATE_COUNT, "state_next is complete");

const char *state_name(enum sandbox_state_code code)
{
	assert((unsigned int)code < SANDBOX_STATE_COUNT);
	return state_names[code];
}

const char *state_stage_name(enum state_stage stage)
{
	assert((unsigned int)stage < STATE_STAGE_COUNT);
	return stage_names[stage];
}

int state_from_name(const char *name, enum sandbox_state_code *out_code)
{
	for (size_t i = 0; i < ARRAY_SIZE(state_names); i++) {
		if (str_eq(state_names[i], name)) {
			*out_code = (enum sandbox_state_code)i;
			return 0;
		}
	}
	return -EINVAL;
}

bool state_may_go(enum sandbox_state_code from, enum sandbox_state_code to)
{
	assert((unsigned int)from < SANDBOX_STATE_COUNT && (unsigned int)to < SANDBOX_STATE_COUNT);
	return (state_next[from] & TO(to)) != 0;
}

void state_go(struct sandbox_state *s, enum sandbox_state_code to)
{
	assert(state_may_go(s->code, to));

	s->code = to;
	if (to == SANDBOX_RUNNING && s->started_ms == 0) {
		s->started_ms = clock_wall_ms();
	}
	if (to == SANDBOX_TERMINATED || to == SANDBOX_FAILED) {
		s->ended_ms = clock_wall_ms();
		s->pid = 0;
		s->pid_start = 0;
		s->keeper_pid = 0;
	}
}

bool state_is_final(const struct sandbox_state *s)
{
	return s->code == SANDBOX_TERMINATED || s->code == SANDBOX_FAILED;
}

void state_end(struct sandbox_state *s, enum sandbox_state_code code, const char *reason,
		const char *message)
{
	if (!state_may_go(s->code, code)) {
		state_go(s, SANDBOX_STOPPING);
	}
	state_go(s, code);
	free(s->reason);
	free(s->message);
	s->reason = mem_strdup(reason);
	s->message = mem_strdup(message);
}

uint64_t state_pid_start(pid_t pid)
{
	AUTO(buf) struct buf text = BUF_INIT(PROC_STAT_BYTES);
	autofree char *path = mem_printf("/proc/%d/stat", (int)pid);
	struct span field = { .n = 0 };
	uint64_t start = 0;

	if (pid <= 0 || file_read_at(AT_FDCWD, path, &text) < 0) {
		return 0;
	}
	/* The name of the program stands in parentheses and may hold any byte. */
	const char *end = strrchr(text.p, ')');
	struct span rest = span_of(end ? end : "");

	for (int i = 0; i <= PROC_STAT_START - 2; i++) {
		if (!span_next(&rest, ' ', &field)) {
			return 0;
		}
	}
	autofree char *number = span_dup(field);

	return number && str_to_u64(number, UINT64_MAX, &start) == 0 ? start : 0;
}

void state_init(struct sandbox_state *s, const struct id *id, const char *name, const char *image)
{
	*s = (struct sandbox_state){
		.id = *id,
		.code = SANDBOX_PENDING,
		.name = mem_strdup(name),
		.image = mem_strdup(image),
		.exit_status = -1,
		.created_ms = clock_wall_ms(),
	};
}

void state_done(struct sandbox_state *s)
{
	if (!s) {
		return;
	}
	free(TAKE_PTR(s->name));
	free(TAKE_PTR(s->image));
	free(TAKE_PTR(s->reason));
	free(TAKE_PTR(s->message));
	free(TAKE_PTR(s->cgroup));
	strv_done(&s->labels);
	strv_done(&s->ports);
	strv_done(&s->limits_missing);
}

/* Into the blocks that the record has already, the rest filled with blanks: JSON ends before
 * them. 0 or -errno. */
static int write_over(int dir_fd, struct span text, bool durable)
{
	autoclose int fd = fd_open_at(dir_fd, STATE_FILE, O_RDWR | O_NOFOLLOW, 0);
	AUTO(buf) struct buf padded = BUF_INIT(LIMIT_STATE_BYTES);
	struct stat st;

	if (fd < 0) {
		return fd;
	}
	if (fstat(fd, &st) < 0) {
		return -errno;
	}
	if (text.n > (uint64_t)st.st_blocks * 512) {
		return -ENOSPC;
	}
	int r = buf_append(&padded, text.p, text.n);

	while (r == 0 && padded.n < (uint64_t)st.st_size) {
		r = buf_append(&padded, " ", 1);
	}
	if (r == 0 && pwrite(fd, padded.p, padded.n, 0) != (ssize_t)padded.n) {
		r = -EIO;
	}
	return r == 0 && durable && fsync(fd) < 0 ? -errno : r;
}

/* In one step, but where the disk is full: how a sandbox has ended is to be told there too. */
static int text_save(int dir_fd, struct span text, bool durable)
{
	int r = file_write_at(dir_fd, STATE_FILE, text, durable);

	return (r == -ENOSPC || r == -EDQUOT) && write_over(dir_fd, text, durable) == 0 ? 0 : r;
}

/* Only what there is. */
static void write_strings(struct json_writer *w, const char *name, const struct strv *sv)
{
	if (sv->n == 0) {
		return;
	}
	json_array_begin(w, name);
	strv_for_each(sv, i) {
		json_add_string(w, NULL, sv->v[i]);
	}
	json_array_end(w);
}

int state_save(const struct sandbox_state *s, int dir_fd, bool durable, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_STATE_BYTES);
	struct json_writer w = JSON_WRITER(&text);

	json_object_begin(&w, NULL);
	json_add_u64(&w, "version", STATE_VERSION);
	json_add_string(&w, "id", s->id.text);
	json_add_string(&w, "state", state_name(s->code));
	json_add_string(&w, "name", s->name);
	json_add_string(&w, "image", s->image);
	json_array_begin(&w, "labels");
	strv_for_each(&s->labels, i) {
		json_add_string(&w, NULL, s->labels.v[i]);
	}
	json_array_end(&w);
	write_strings(&w, "limitsMissing", &s->limits_missing);
	write_strings(&w, "ports", &s->ports);
	json_add_string(&w, "reason", s->reason);
	json_add_string(&w, "message", s->message);
	json_add_string(&w, "cgroup", s->cgroup);
	json_add_string(&w, "network", request_network_name(s->network));
	json_add_bool(&w, "retained", s->retained);
	json_add_bool(&w, "kept", s->kept);
	json_add_u64(&w, "keeperPid", (uint64_t)s->keeper_pid);
	json_add_u64(&w, "pid", (uint64_t)s->pid);
	json_add_u64(&w, "pidStart", s->pid_start);
	if (s->exit_status >= 0) {
		json_add_u64(&w, "exitStatus", (uint64_t)s->exit_status);
	}
	json_add_bool(&w, "oomKilled", s->oom_killed);
	json_object_begin(&w, "stageUs");
	for (size_t i = 0; i < ARRAY_SIZE(stage_names); i++) {
		json_add_u64(&w, stage_names[i], (uint64_t)s->stage_us[i]);
	}
	json_object_end(&w);
	json_add_u64(&w, "createdMs", (uint64_t)s->created_ms);
	json_add_u64(&w, "startedMs", (uint64_t)s->started_ms);
	json_add_u64(&w, "endedMs", (uint64_t)s->ended_ms);
	json_add_u64(&w, "expiresMs", (uint64_t)s->expires_ms);
	json_add_u64(&w, "renewMs", (uint64_t)s->renew_ms);
	json_object_end(&w);
	if (w.failed) {
		return error_set(e, ERRC_LIMIT, "state of sandbox %s: too large", s->id.text);
	}
	int r = text_save(dir_fd, buf_span(&text), durable);

	return r < 0 ? error_sys(e, -r, "write state of sandbox %s", s->id.text) : 0;
}

/* state.json as decoded; numbers wide, as JSON has them. */
struct state_document {
	uint64_t version;
	char *id;
	char *state;
	char *name;
	char *image;
	struct strv labels;
	struct strv limits_missing;
	struct strv ports;
	char *reason;
	char *message;
	char *cgroup;
	enum spec_network network;
	bool retained;
	bool kept;
	uint64_t keeper_pid;
	uint64_t pid;
	uint64_t pid_start;
	uint64_t exit_status;
	uint64_t created_ms;
	uint64_t started_ms;
	uint64_t ended_ms;
	uint64_t expires_ms;
	uint64_t renew_ms;
	bool oom_killed;
	uint64_t stage_us[STATE_STAGE_COUNT];
};

static void document_done(struct state_document *d)
{
	free(d->id);
	free(d->state);
	free(d->name);
	free(d->image);
	free(d->reason);
	free(d->message);
	free(d->cgroup);
	strv_done(&d->labels);
	strv_done(&d->limits_missing);
	strv_done(&d->ports);
}
AUTO_DEFINE(document, struct state_document, document_done);

static int read_network(const struct json *v, void *out, struct error *e)
{
	const char *text = json_string(v);

	return text && request_network_from_name(text, out) == 0
			       ? 0
			       : error_set(e, ERRC_INVALID, "unknown value");
}

#define FIELD(member) offsetof(struct state_document, member)

#define STAGE(name, stage)                                                               \
	{                                                                                \
		name, JSONDEC_U64, (stage) * sizeof(uint64_t), 0, INT64_MAX, NULL, NULL, \
	}

/* Of stage_us. */
static const struct jsondec_field stage_fields[] = {
	STAGE("image", STATE_STAGE_IMAGE),
	STAGE("plan", STATE_STAGE_PLAN),
	STAGE("launch", STATE_STAGE_LAUNCH),
	STAGE("start", STATE_STAGE_START),
	{ .name = NULL },
};
_Static_assert(ARRAY_SIZE(stage_fields) == STATE_STAGE_COUNT + 1, "stage_fields is complete");

static const struct jsondec_field state_fields[] = {
	{ "version", JSONDEC_U64, FIELD(version), JSONDEC_REQUIRED, UINT32_MAX, NULL, NULL },
	{ "id", JSONDEC_STRING, FIELD(id), JSONDEC_REQUIRED, 0, NULL, NULL },
	{ "state", JSONDEC_STRING, FIELD(state), JSONDEC_REQUIRED, 0, NULL, NULL },
	{ "name", JSONDEC_STRING, FIELD(name), 0, 0, NULL, NULL },
	{ "image", JSONDEC_STRING, FIELD(image), 0, 0, NULL, NULL },
	{ "reason", JSONDEC_STRING, FIELD(reason), 0, 0, NULL, NULL },
	{ "labels", JSONDEC_STRV, FIELD(labels), 0, LIMIT_STATE_BYTES, NULL, NULL },
	{ "limitsMissing", JSONDEC_STRV, FIELD(limits_missing), 0, LIMIT_STATE_BYTES, NULL, NULL },
	{ "ports", JSONDEC_STRV, FIELD(ports), 0, LIMIT_STATE_BYTES, NULL, NULL },
	{ "message", JSONDEC_STRING, FIELD(message), 0, 0, NULL, NULL },
	{ "cgroup", JSONDEC_STRING, FIELD(cgroup), 0, 0, NULL, NULL },
	{ "network", JSONDEC_CUSTOM, FIELD(network), 0, 0, NULL, read_network },
	{ "retained", JSONDEC_BOOL, FIELD(retained), 0, 0, NULL, NULL },
	{ "kept", JSONDEC_BOOL, FIELD(kept), 0, 0, NULL, NULL },
	{ "keeperPid", JSONDEC_U64, FIELD(keeper_pid), 0, INT32_MAX, NULL, NULL },
	{ "pidStart", JSONDEC_U64, FIELD(pid_start), 0, 0, NULL, NULL },
	{ "pid", JSONDEC_U64, FIELD(pid), JSONDEC_REQUIRED, INT32_MAX, NULL, NULL },
	{ "exitStatus", JSONDEC_U64, FIELD(exit_status), 0, 255, NULL, NULL },
	{ "oomKilled", JSONDEC_BOOL, FIELD(oom_killed), 0, 0, NULL, NULL },
	{ "stageUs", JSONDEC_OBJECT, FIELD(stage_us), 0, 0, stage_fields, NULL },
	{ "createdMs", JSONDEC_U64, FIELD(created_ms), JSONDEC_REQUIRED, INT64_MAX, NULL, NULL },
	{ "startedMs", JSONDEC_U64, FIELD(started_ms), 0, INT64_MAX, NULL, NULL },
	{ "endedMs", JSONDEC_U64, FIELD(ended_ms), 0, INT64_MAX, NULL, NULL },
	{ "expiresMs", JSONDEC_U64, FIELD(expires_ms), 0, INT64_MAX, NULL, NULL },
	{ "renewMs", JSONDEC_U64, FIELD(renew_ms), 0, INT64_MAX, NULL, NULL },
	{ .name = NULL },
};

/* Move a document into a record. 0 or -EINVAL. */
static int document_take(struct state_document *d, struct sandbox_state *out_state)
{
	enum sandbox_state_code code = SANDBOX_PENDING;

	if (d->version != STATE_VERSION || !id_is_valid(d->id) ||
			state_from_name(d->state, &code) < 0) {
		return -EINVAL;
	}
	*out_state = (struct sandbox_state){
		.code = code,
		.name = TAKE_PTR(d->name),
		.image = TAKE_PTR(d->image),
		.labels = TAKE(d->labels, (struct strv)STRV_INIT),
		.limits_missing = TAKE(d->limits_missing, (struct strv)STRV_INIT),
		.ports = TAKE(d->ports, (struct strv)STRV_INIT),
		.reason = TAKE_PTR(d->reason),
		.message = TAKE_PTR(d->message),
		.cgroup = TAKE_PTR(d->cgroup),
		.network = d->network,
		.retained = d->retained,
		.kept = d->kept,
		.keeper_pid = (pid_t)d->keeper_pid,
		.pid = (pid_t)d->pid,
		.pid_start = d->pid_start,
		.exit_status = d->exit_status == UINT64_MAX ? -1 : (int32_t)d->exit_status,
		.created_ms = (int64_t)d->created_ms,
		.started_ms = (int64_t)d->started_ms,
		.ended_ms = (int64_t)d->ended_ms,
		.expires_ms = (int64_t)d->expires_ms,
		.renew_ms = (int64_t)d->renew_ms,
		.oom_killed = d->oom_killed,
	};
	for (size_t i = 0; i < ARRAY_SIZE(d->stage_us); i++) {
		out_state->stage_us[i] = (int64_t)d->stage_us[i];
	}
	memcpy(out_state->id.text, d->id, sizeof(out_state->id.text));
	return 0;
}

int state_load(int dir_fd, struct sandbox_state *out_state, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_STATE_BYTES);
	AUTO(document) struct state_document d = { .exit_status = UINT64_MAX };
	int r = file_read_at(dir_fd, STATE_FILE, &text);

	if (r == -ENOENT) {
		return error_set(e, ERRC_NOT_FOUND, "no state of this sandbox");
	}
	if (r < 0) {
		return error_sys(e, -r, "read " STATE_FILE);
	}
	AUTO(json) struct json *root = json_parse(buf_span(&text), e);

	if (!root || jsondec_object(root, state_fields, &d, e) < 0) {
		return error_wrap(e, STATE_FILE);
	}
	if (document_take(&d, out_state) < 0) {
		return error_set(e, ERRC_INVALID, STATE_FILE ": not a state of this version");
	}
	return 0;
}
