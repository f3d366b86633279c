/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/clock.h>
#include <osbx/events.h>
#include <osbx/fd.h>
#include <osbx/logfile.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "api_internal.h"
#include "handlers.h"

#define LINES_MAX      10000
#define LINE_BYTES_MAX (64U << 10)
#define TEXT_BYTES_MAX (16U << 20)
#define LOGS_DEFAULT   100
#define EVENTS_DEFAULT 50
#define EVENTS_MAX     500
#define SUMMARY_LOGS   50
#define SUMMARY_EVENTS 20

/* The last lines of something, oldest first. */
struct tail {
	char **v;
	size_t max;
	size_t n; /* that there were in all */
};

static void tail_init(struct tail *t, size_t max)
{
	*t = (struct tail){ .v = mem_array(max, sizeof(*t->v)), .max = max };
}

static void tail_done(struct tail *t)
{
	for (size_t i = 0; t->v && i < t->max; i++) {
		free(t->v[i]);
	}
	free(t->v);
}
AUTO_DEFINE(tail, struct tail, tail_done);

static void tail_add(struct tail *t, struct span text)
{
	char **at = &t->v[t->n++ % t->max];

	free(*at);
	*at = mem_printf("%.*s", (int)(text.n < LINE_BYTES_MAX ? text.n : LINE_BYTES_MAX), text.p);
}

/* False: not all of it fits. */
static bool tail_write(const struct tail *t, struct buf *out)
{
	size_t first = t->n > t->max ? t->n - t->max : 0;

	for (size_t i = first; i < t->n; i++) {
		if (buf_appendf(out, "%s\n", t->v[i % t->max]) < 0) {
			return false;
		}
	}
	return first == 0;
}

static int live_open(const struct api *api, const struct id *id)
{
	autofree char *path = mem_printf("sandboxes/%s", id->text);

	return fd_open_at(api->dirs.runtime_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* Lines of the main process's output, those of both streams in the order they came. */
static void logs_collect(
		const struct api *api, const struct id *id, const char *since, struct tail *out)
{
	AUTO(line_reader) struct line_reader reader = { .fd = -1 };
	autoclose int dir_fd = live_open(api, id);
	struct log_record record;
	size_t since_n = strlen(since);

	if (dir_fd < 0) {
		return;
	}
	line_reader_init(&reader, dir_fd, LOG_FILE, LOG_FILES);
	while (log_record_next(&reader, &record) > 0) {
		size_t n = since_n < record.time.n ? since_n : record.time.n;

		if (n == 0 || memcmp(record.time.p, since, n) >= 0) {
			tail_add(out, record.text);
		}
	}
}

static void event_add(const struct json *event, struct tail *out)
{
	const char *time = json_string(json_get(event, "time"));
	const char *type = json_string(json_get(event, "type"));
	const char *reason = json_string(json_get(event, "reason"));
	const char *message = json_string(json_get(event, "message"));
	autofree char *line = mem_printf("%s %s%s%s%s%s", time ? time : "-", type ? type : "-",
			reason ? " " : "", reason ? reason : "", message ? ": " : "",
			message ? message : "");

	tail_add(out, span_of(line));
}

static void events_collect(const struct api *api, const struct id *id, struct tail *out)
{
	AUTO(line_reader) struct line_reader reader = { .fd = -1 };
	struct span line;

	line_reader_init(&reader, api->dirs.runtime_fd, EVENTS_FILE, EVENTS_FILES);
	while (line_reader_next(&reader, &line) > 0) {
		struct error e = ERROR_INIT;
		AUTO(json) struct json *event = json_parse(line, &e);
		const char *of = json_string(json_get(event, "id"));

		if (of && str_eq(of, id->text)) {
			event_add(event, out);
		}
	}
}

/* A number of the query. -1: answered. */
static int number_query(struct http_req *rq, const char *name, uint64_t max, uint64_t *inout)
{
	char *text = NULL;

	if (http_query(rq, name, &text) < 0) {
		api_fail_field(rq, "query", name, "malformed escape");
		return -1;
	}
	int r = text ? str_to_u64(text, max, inout) : 0;

	free(text);
	if (r < 0 || *inout == 0) {
		autofree char *what = mem_printf("expected 1 to %llu", (unsigned long long)max);

		api_fail_field(rq, "query", name, what);
		return -1;
	}
	return 0;
}

/* "10m" as the time since when. -1: answered. */
static int since_query(struct http_req *rq, char *out, size_t size)
{
	char *text = NULL;
	int64_t back_ms = 0;
	int r = http_query(rq, "since", &text);

	out[0] = '\0';
	if (r == 0 && text) {
		r = str_to_duration(text, &back_ms);
		clock_rfc3339(clock_wall_ms() - back_ms, out, size);
		out[strlen(out) - 1] = '\0';
	}
	free(text);
	if (r < 0) {
		api_fail_field(rq, "query", "since", "expected a duration such as 10m");
	}
	return r < 0 ? -1 : 0;
}

/* A word without white space around it, in lower case. */
static void word_take(const char *text, char *out, size_t size)
{
	size_t from = strspn(text, " \t");
	size_t n = strcspn(text + from, " \t");

	n = n < size ? n : size - 1;
	for (size_t i = 0; i < n; i++) {
		out[i] = text[from + i];
		if (out[i] >= 'A' && out[i] <= 'Z') {
			out[i] = (char)(out[i] + ('a' - 'A'));
		}
	}
	out[n] = '\0';
}

/* 1: a scope is asked for, 0: none, -1: answered. */
static int scope_query(struct http_req *rq, const char *own, char *out, size_t size)
{
	char *text = NULL;

	if (http_query(rq, "scope", &text) < 0) {
		api_fail_field(rq, "query", "scope", "malformed escape");
		return -1;
	}
	if (!text) {
		return 0;
	}
	word_take(text, out, size);
	free(text);
	if (str_eq(out, own) || str_eq(out, "all")) {
		return 1;
	}
	api_fail(rq, 400, API_DIAGNOSTICS_SCOPE, "scope: supported are %s and all", own);
	return -1;
}

/* The descriptor of scoped diagnostics (diagnostic-api.yml). */
static void reply_scoped(struct http_req *rq, const struct sandbox_info *info, const char *kind,
		const char *scope, const struct tail *lines)
{
	AUTO(buf) struct buf content = BUF_INIT(TEXT_BYTES_MAX);
	AUTO(buf) struct buf out = BUF_INIT(API_JSON_MAX);
	struct json_writer w = JSON_WRITER(&out);
	bool is_whole = tail_write(lines, &content);
	uint64_t length = content.n;
	autofree char *text = buf_take(&content);

	json_object_begin(&w, NULL);
	json_add_string(&w, "sandboxId", info->state.id.text);
	json_add_string(&w, "kind", kind);
	json_add_string(&w, "scope", scope);
	json_add_string(&w, "delivery", "inline");
	json_add_string(&w, "contentType", "text/plain; charset=utf-8");
	json_add_string(&w, "content", text);
	json_add_u64(&w, "contentLength", length);
	json_add_bool(&w, "truncated", !is_whole);
	json_object_end(&w);
	api_json(rq, 200, &out);
}

static void reply_text(struct http_req *rq, const struct tail *lines, const char *none)
{
	AUTO(buf) struct buf out = BUF_INIT(TEXT_BYTES_MAX);

	(void)tail_write(lines, &out);
	http_reply_field(rq, "Deprecation", "true");
	http_reply(rq, 200, "text/plain; charset=utf-8",
			out.n > 0 ? buf_span(&out) : span_of(none));
}

static void logs_work(struct api *api, struct http_req *rq)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	AUTO(tail) struct tail lines = { .n = 0 };
	char since[CLOCK_RFC3339_MAX];
	char scope[16];
	uint64_t n = LOGS_DEFAULT;
	int scoped = scope_query(rq, "container", scope, sizeof(scope));

	if (scoped < 0 || number_query(rq, "tail", LINES_MAX, &n) < 0 ||
			since_query(rq, since, sizeof(since)) < 0 || api_find(api, rq, &info) < 0) {
		return;
	}
	tail_init(&lines, (size_t)n);
	logs_collect(api, &info.state.id, since, &lines);
	if (scoped) {
		reply_scoped(rq, &info, "logs", scope, &lines);
	} else {
		reply_text(rq, &lines, "(no logs)\n");
	}
}

void diagnostics_logs(struct http_req *rq)
{
	api_work_start(rq, logs_work);
}

static void events_work(struct api *api, struct http_req *rq)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	AUTO(tail) struct tail lines = { .n = 0 };
	char scope[16];
	uint64_t n = EVENTS_DEFAULT;
	int scoped = scope_query(rq, "runtime", scope, sizeof(scope));

	if (scoped < 0 || number_query(rq, "limit", EVENTS_MAX, &n) < 0 ||
			api_find(api, rq, &info) < 0) {
		return;
	}
	tail_init(&lines, (size_t)n);
	events_collect(api, &info.state.id, &lines);
	if (scoped) {
		reply_scoped(rq, &info, "events", scope, &lines);
	} else {
		reply_text(rq, &lines, "(no events)\n");
	}
}

void diagnostics_events(struct http_req *rq)
{
	api_work_start(rq, events_work);
}

static void inspect_write(const struct sandbox_info *info, struct buf *out)
{
	const struct sandbox_state *s = &info->state;
	char created[CLOCK_RFC3339_MAX];

	clock_rfc3339(s->created_ms, created, sizeof(created));
	/* TEXT_BYTES_MAX is far more than these. */
	(void)!buf_appendf(out, "id: %s\nimage: %s\nstate: %s\n", s->id.text, s->image,
			state_name(s->code));
	(void)!buf_appendf(out, "reason: %s\nmessage: %s\ncreated: %s\npid: %d\n",
			s->reason ? s->reason : "-", s->message ? s->message : "-", created,
			(int)s->pid);
	if (s->exit_status >= 0) {
		(void)!buf_appendf(out, "exit status: %d\n", s->exit_status);
	}
	strv_for_each(&s->limits_missing, i) {
		(void)!buf_appendf(out, "limit not in force: %s\n", s->limits_missing.v[i]);
	}
}

static void inspect_work(struct api *api, struct http_req *rq)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	AUTO(buf) struct buf out = BUF_INIT(TEXT_BYTES_MAX);

	if (api_find(api, rq, &info) < 0) {
		return;
	}
	inspect_write(&info, &out);
	http_reply(rq, 200, "text/plain; charset=utf-8", buf_span(&out));
}

void diagnostics_inspect(struct http_req *rq)
{
	api_work_start(rq, inspect_work);
}

static void section_write(
		struct buf *out, const char *title, const struct tail *lines, const char *none)
{
	(void)!buf_appendf(out, "\n%s\n", title);
	if (lines->n == 0) {
		(void)!buf_append_str(out, none);
	}
	(void)tail_write(lines, out);
}

static void summary_work(struct api *api, struct http_req *rq)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	AUTO(tail) struct tail logs = { .n = 0 };
	AUTO(tail) struct tail events = { .n = 0 };
	AUTO(buf) struct buf out = BUF_INIT((size_t)2 * TEXT_BYTES_MAX);
	uint64_t logs_n = SUMMARY_LOGS;
	uint64_t events_n = SUMMARY_EVENTS;

	if (number_query(rq, "tail", LINES_MAX, &logs_n) < 0 ||
			number_query(rq, "event_limit", EVENTS_MAX, &events_n) < 0 ||
			api_find(api, rq, &info) < 0) {
		return;
	}
	tail_init(&logs, (size_t)logs_n);
	tail_init(&events, (size_t)events_n);
	logs_collect(api, &info.state.id, "", &logs);
	events_collect(api, &info.state.id, &events);
	inspect_write(&info, &out);
	section_write(&out, "events:", &events, "(no events)\n");
	section_write(&out, "logs:", &logs, "(no logs)\n");
	http_reply(rq, 200, "text/plain; charset=utf-8", buf_span(&out));
}

void diagnostics_summary(struct http_req *rq)
{
	api_work_start(rq, summary_work);
}
