/* SPDX-License-Identifier: Apache-2.0 */
/* One sandbox: create, get, delete, pause, resume, renew, metadata. Each runs in a worker. */
#include <stdlib.h>
#include <string.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/sandbox.h>

#include "auth.h"
#include "handlers.h"
#include "metrics.h"

#define KEY_LABEL "opensandbox.io/key="

static void reply_view(struct api *api, struct http_req *rq, const struct sandbox_info *info)
{
	AUTO(buf) struct buf out = BUF_INIT(API_JSON_MAX);
	struct json_writer w = JSON_WRITER(&out);

	view_sandbox(api, info, &w);
	api_json(rq, 200, &out);
}

static void reply_created(struct api *api, struct http_req *rq, const struct id *id)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	AUTO(buf) struct buf out = BUF_INIT(API_JSON_MAX);
	struct json_writer w = JSON_WRITER(&out);
	struct error e = ERROR_INIT;

	if (sandbox_find(&api->dirs, id->text, &info, &e) < 0) {
		/* Its main process has ended already, and so has its time. */
		api_fail_error(rq, API_START_FAILED, &e);
		return;
	}
	autofree char *location = mem_printf("/v1/sandboxes/%s", id->text);

	if (info.state.code == SANDBOX_RUNNING) {
		api_count_stages(api->counters, info.state.stage_us);
	}
	view_created(api, &info, &w);
	http_reply_field(rq, "Location", location);
	api_json(rq, 202, &out);
}

static void reply_start_failed(struct http_req *rq, const struct error *e)
{
	if (e->code == ERRC_NO_COMMAND || e->code == ERRC_NOT_EXECUTABLE) {
		api_fail_error(rq, API_INVALID_ENTRYPOINT, e);
		return;
	}
	if (e->api_code == SANDBOX_ERROR_IMAGE) {
		struct error same = *e;

		/* That a registry wants other credentials is no 401 of this server. */
		if (same.code != ERRC_INVALID && same.code != ERRC_UNAVAILABLE) {
			same.code = ERRC_SYSTEM;
		}
		api_fail_error(rq, API_PULL_FAILED, &same);
		return;
	}
	api_fail_error(rq, API_START_FAILED, e);
}

static bool has_label(const struct strv *labels, const char *label)
{
	strv_for_each(labels, i) {
		if (strcmp(labels->v[i], label) == 0) {
			return true;
		}
	}
	return false;
}

/* More than one worker and server may create at a time, so a count goes before a creation and
 * another one after it, of those that were there earlier: of many at once the latest give way. own:
 * the label of the key's sandboxes, or NULL. mine: what was created, or NULL. True: answered, and
 * mine is removed. */
static bool is_full(struct api *api, struct http_req *rq, const char *own, const struct id *mine)
{
	AUTO(sandbox_list) struct sandbox_list l = { .n = 0 };
	const uint64_t most = api->opts->sandboxes_max;
	const uint64_t most_own = own ? api->opts->key_sandboxes : 0;
	struct error e = ERROR_INIT;
	uint64_t alive = 0;
	uint64_t alive_own = 0;

	if ((most == 0 && most_own == 0) || sandbox_list(&api->dirs, true, &l, &e) < 0) {
		return false;
	}
	/* Oldest first. */
	for (size_t i = 0; i < l.n && !(mine && strcmp(l.v[i].state.id.text, mine->text) == 0);
			i++) {
		if (!state_is_final(&l.v[i].state)) {
			alive++;
			alive_own += own && has_label(&l.v[i].state.labels, own);
		}
	}
	bool is_own = most_own > 0 && alive_own >= most_own;

	if (!is_own && (most == 0 || alive < most)) {
		return false;
	}
	if (mine) {
		(void)!sandbox_remove(&api->dirs, mine, true, &e);
	}
	http_reply_field(rq, "Retry-After", "5");
	api_fail(rq, 429, API_LIMIT_REACHED, "%llu sandboxes%s are alive, as many as may be",
			(unsigned long long)(is_own ? alive_own : alive),
			is_own ? " of this key" : "");
	return true;
}

/* Whose it is stands in a label that clients neither see nor change. The label, borrowed, or NULL
 * without a key. 0 or -1: answered. */
static int owner_add(struct http_req *rq, struct create *c, const char **out_label)
{
	const struct api_key *key = auth_key(rq);
	struct strv *labels = &c->request.labels;

	*out_label = NULL;
	if (!key) {
		return 0;
	}
	if (labels->n >= LIMIT_LABELS || strv_addf(labels, KEY_LABEL "%s", key->name) < 0) {
		api_fail(rq, 400, API_INVALID_LABEL, "more than %d labels", LIMIT_LABELS - 1);
		return -1;
	}
	*out_label = labels->v[labels->n - 1];
	return 0;
}

static void create_work(struct api *api, struct http_req *rq)
{
	AUTO(json) struct json *body = api_body(rq, false);
	AUTO(create) struct create c = { .has_credential = false };
	struct refusal why = { .status = 0 };
	struct error e = ERROR_INIT;
	struct id id;
	bool pending = false;

	if (!body) {
		return;
	}
	if (create_parse(api->opts, body, &c, &why) < 0) {
		api_refuse(rq, &why);
		return;
	}
	const char *own = NULL;

	if (owner_add(rq, &c, &own) < 0 || is_full(api, rq, own, NULL)) {
		return;
	}
	const struct sandbox_start_opts opts = {
		.err_fd = -1,
		.credential = c.has_credential ? &c.credential : NULL,
		.wait_ms = api->opts->create_wait_ms,
	};

	int64_t begin_ms = clock_boot_ms();
	int r = sandbox_start(&c.request, &opts, &id, &pending, &e);

	api_count_creation(api->counters,
			r < 0     ? API_CREATION_FAILED
			: pending ? API_CREATION_PENDING
				  : API_CREATION_OK,
			clock_boot_ms() - begin_ms);
	if (r < 0) {
		reply_start_failed(rq, &e);
		return;
	}
	if (http_blocking_is_gone(rq)) {
		/* Nobody would ever know of it. */
		(void)!sandbox_remove(&api->dirs, &id, true, &e);
		http_abort(rq);
		return;
	}
	if (!is_full(api, rq, own, &id)) {
		reply_created(api, rq, &id);
	}
}

void sandboxes_post(struct http_req *rq)
{
	if (auth_rate(rq)) {
		api_work_start(rq, create_work);
	}
}

static void get_work(struct api *api, struct http_req *rq)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };

	if (api_find(api, rq, &info) == 0) {
		reply_view(api, rq, &info);
	}
}

void sandbox_get(struct http_req *rq)
{
	api_work_start(rq, get_work);
}

static void delete_work(struct api *api, struct http_req *rq)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	struct error e = ERROR_INIT;

	if (api_find(api, rq, &info) < 0) {
		return;
	}
	if (sandbox_remove(&api->dirs, &info.state.id, true, &e) < 0) {
		api_fail_error(rq, API_DELETE_FAILED, &e);
		return;
	}
	api_empty(rq, 204);
}

void sandbox_delete(struct http_req *rq)
{
	api_work_start(rq, delete_work);
}

/* A change that failed: the sandbox may have been removed since it was found. */
static void fail_late(struct api *api, struct http_req *rq, const struct id *id,
		const char *late_code, const char *failed_code, const struct error *e)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	struct error gone = ERROR_INIT;
	/* Unavailable: the keeper has ended while it was asked. */
	bool is_late = e->code == ERRC_CONFLICT || e->code == ERRC_NOT_FOUND ||
		       e->code == ERRC_UNAVAILABLE;

	if (sandbox_find(&api->dirs, id->text, &info, &gone) < 0 && gone.code == ERRC_NOT_FOUND) {
		api_fail(rq, 404, API_NOT_FOUND, "no sandbox %s", id->text);
		return;
	}
	if (is_late) {
		api_fail(rq, 409, late_code, "%s%s%s", e->text, e->hint[0] ? "; " : "", e->hint);
		return;
	}
	api_fail_error(rq, failed_code, e);
}

/* Pause and resume differ in words. */
struct change {
	enum sandbox_state_code from;
	enum ctl_msg request;
	const char *wrong_code;
	const char *failed_code;
	const char *verb;
};

static void change_work(struct api *api, struct http_req *rq, const struct change *change)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	struct error e = ERROR_INIT;

	if (api_find(api, rq, &info) < 0) {
		return;
	}
	if (info.state.code != change->from) {
		api_fail(rq, 409, change->wrong_code, "sandbox %s is %s: it cannot be %s",
				info.state.id.text, state_name(info.state.code), change->verb);
		return;
	}
	if (ctl_request(&api->dirs, &info.state.id, change->request, NULL, 0, &e) < 0) {
		fail_late(api, rq, &info.state.id, change->wrong_code, change->failed_code, &e);
		return;
	}
	api_empty(rq, 202);
}

static void pause_work(struct api *api, struct http_req *rq)
{
	static const struct change change = { SANDBOX_RUNNING, CTL_MSG_PAUSE, API_NOT_RUNNING,
		API_PAUSE_FAILED, "paused" };

	change_work(api, rq, &change);
}

static void resume_work(struct api *api, struct http_req *rq)
{
	static const struct change change = { SANDBOX_PAUSED, CTL_MSG_RESUME, API_NOT_PAUSED,
		API_RESUME_FAILED, "resumed" };

	change_work(api, rq, &change);
}

void sandbox_pause(struct http_req *rq)
{
	api_work_start(rq, pause_work);
}

void sandbox_resume(struct http_req *rq)
{
	api_work_start(rq, resume_work);
}

/* The time of the body. -1: answered. */
static int renew_read(struct http_req *rq, int64_t *out_ms)
{
	AUTO(json) struct json *body = api_body(rq, false);

	if (!body) {
		return -1;
	}
	const char *text = json_string(json_get(body, "expiresAt"));

	if (!text || time_parse(text, out_ms) < 0) {
		api_fail_field(rq, "body", "expiresAt", "expected a time of RFC 3339");
		return -1;
	}
	return 0;
}

static void renew_work(struct api *api, struct http_req *rq)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	AUTO(buf) struct buf out = BUF_INIT(1024);
	struct json_writer w = JSON_WRITER(&out);
	struct ctl_renew renew = { .expires_ms = 0 };
	struct error e = ERROR_INIT;

	if (renew_read(rq, &renew.expires_ms) < 0 || api_find(api, rq, &info) < 0) {
		return;
	}
	if (renew.expires_ms <= clock_wall_ms()) {
		api_fail(rq, 400, API_INVALID_EXPIRATION, "expiresAt: not in the future");
		return;
	}
	if (info.state.expires_ms == 0) {
		api_fail(rq, 409, API_INVALID_EXPIRATION,
				"sandbox %s does not expire: it is removed by hand",
				info.state.id.text);
		return;
	}
	if (ctl_request(&api->dirs, &info.state.id, CTL_MSG_RENEW, &renew, sizeof(renew), &e) < 0) {
		fail_late(api, rq, &info.state.id, API_NOT_RUNNING, API_INVALID_EXPIRATION, &e);
		return;
	}
	json_object_begin(&w, NULL);
	view_time(&w, "expiresAt", renew.expires_ms);
	json_object_end(&w);
	api_json(rq, 200, &out);
}

void sandbox_renew(struct http_req *rq)
{
	api_work_start(rq, renew_work);
}

/* fd; -1: answered. */
static int metadata_lock(struct api *api, struct http_req *rq)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	struct error e = ERROR_INIT;

	if (api_find(api, rq, &info) < 0) {
		return -1;
	}
	int fd = sandbox_labels_lock(&api->dirs, &info.state.id, &e);

	if (fd < 0) {
		fail_late(api, rq, &info.state.id, API_NOT_RUNNING, API_UNKNOWN, &e);
	}
	return fd;
}

static void metadata_work(struct api *api, struct http_req *rq)
{
	AUTO(json) struct json *patch = api_body(rq, false);
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };
	AUTO(strv) struct strv labels = STRV_INIT;
	struct refusal why = { .status = 0 };
	struct error e = ERROR_INIT;

	if (!patch) {
		return;
	}
	/* What another patch changes meanwhile would be undone by this one. */
	autoclose int lock_fd = metadata_lock(api, rq);

	if (lock_fd < 0 || api_find(api, rq, &info) < 0) {
		return;
	}
	if (metadata_patch(patch, &info.state.labels, &labels, &why) < 0) {
		api_refuse(rq, &why);
		return;
	}
	if (sandbox_set_labels(&api->dirs, &info.state.id, &labels, &e) < 0) {
		fail_late(api, rq, &info.state.id, API_NOT_RUNNING, API_UNKNOWN, &e);
		return;
	}
	strv_done(&info.state.labels);
	info.state.labels = TAKE(labels, (struct strv)STRV_INIT);
	reply_view(api, rq, &info);
}

void sandbox_metadata(struct http_req *rq)
{
	api_work_start(rq, metadata_work);
}
