/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "api_internal.h"

#define EXTENSION_SHOWN "opensandbox.extensions."

/* What state and reason are called, where the record says nothing more. */
static const struct {
	enum sandbox_state_code code;
	const char *reason;
	const char *message;
} defaults[] = {
	{ SANDBOX_PENDING, "PROVISIONING", "The sandbox is being created." },
	{ SANDBOX_RUNNING, "RUNNING", "The sandbox is running." },
	{ SANDBOX_PAUSING, "PAUSING", "The sandbox is being paused." },
	{ SANDBOX_PAUSED, "PAUSED", "The processes of the sandbox are frozen." },
	{ SANDBOX_RESUMING, "RESUMING", "The sandbox is being resumed." },
	{ SANDBOX_STOPPING, "STOPPING", "The sandbox is being ended." },
	{ SANDBOX_TERMINATED, "TERMINATED", "The sandbox has ended." },
	{ SANDBOX_FAILED, "FAILED", "The sandbox has failed." },
};
_Static_assert(ARRAY_SIZE(defaults) == SANDBOX_STATE_COUNT, "defaults is complete");

static int64_t transition_ms(const struct sandbox_state *s)
{
	return s->ended_ms ? s->ended_ms : s->started_ms ? s->started_ms : s->created_ms;
}

/* In words; what is not in force of the limits is never hidden. */
static char *message_of(const struct sandbox_state *s)
{
	const char *message = s->message ? s->message : defaults[s->code].message;
	AUTO(buf) struct buf text = BUF_INIT(4096);
	int r = buf_append_str(&text, message);

	if (!s->message && s->exit_status >= 0 && state_is_final(s)) {
		r = buf_appendf(&text, " Exit status %d.", s->exit_status);
	}
	if (r == 0 && s->limits_missing.n > 0) {
		r = buf_append_str(&text, " Limits that are not in force:");
	}
	strv_for_each(&s->limits_missing, i) {
		r = r < 0 ? r : buf_appendf(&text, " %s", s->limits_missing.v[i]);
	}
	return buf_take(&text);
}

static void view_status(const struct sandbox_state *s, struct json_writer *w)
{
	autofree char *message = message_of(s);

	json_object_begin(w, "status");
	json_add_string(w, "state", state_name(s->code));
	json_add_string(w, "reason", s->reason ? s->reason : defaults[s->code].reason);
	json_add_string(w, "message", message);
	view_time(w, "lastTransitionAt", transition_ms(s));
	json_object_end(w);
}

/* Members of an object that are kept as KEY=VALUE, behind shift bytes of the key. */
static void view_pair(struct json_writer *w, const char *pair)
{
	const char *eq = strchr(pair, '=');
	autofree char *key = span_dup((struct span){ .p = pair, .n = (size_t)(eq - pair) });

	json_add_string(w, key, eq + 1);
}

static void view_metadata(const struct sandbox_state *s, struct json_writer *w)
{
	bool any = false;

	strv_for_each(&s->labels, i) {
		if (metadata_is_hidden(s->labels.v[i])) {
			continue;
		}
		if (!any) {
			json_object_begin(w, "metadata");
		}
		any = true;
		view_pair(w, s->labels.v[i]);
	}
	if (any) {
		json_object_end(w);
	}
}

/* request.json and what it holds; NULL: it is not there any more. */
static struct json *request_read(const struct api *api, const struct id *id)
{
	AUTO(buf) struct buf text = BUF_INIT(API_REQUEST_MAX);
	autofree char *path = mem_printf("sandboxes/%s/request.json", id->text);
	struct error e = ERROR_INIT;

	return file_read_at(api->dirs.root_fd, path, &text) < 0 ? NULL
								: json_parse(buf_span(&text), &e);
}

static void view_extensions(const struct json *request, struct json_writer *w)
{
	bool any = false;

	json_for_each(one, json_get(request, "extensions")) {
		const char *pair = json_string(one);

		if (!pair || !str_after(pair, EXTENSION_SHOWN) || !strchr(pair, '=')) {
			continue;
		}
		if (!any) {
			json_object_begin(w, "extensions");
		}
		any = true;
		view_pair(w, pair);
	}
	if (any) {
		json_object_end(w);
	}
}

static void view_platform(const struct json *request, struct json_writer *w)
{
	const char *platform = json_string(json_get(request, "platform"));
	const char *arch = platform ? str_after(platform, "linux/") : NULL;

	if (arch && (str_eq(arch, "amd64") || str_eq(arch, "arm64"))) {
		json_object_begin(w, "platform");
		json_add_string(w, "os", "linux");
		json_add_string(w, "arch", arch);
		json_object_end(w);
	}
}

/* As the client sent it: the program of --entrypoint, if there is one, and the command. */
static void view_entrypoint(const struct json *request, struct json_writer *w)
{
	const char *program = json_string(json_get(request, "entrypoint"));

	json_array_begin(w, "entrypoint");
	if (program && program[0]) {
		json_add_string(w, NULL, program);
	}
	json_for_each(one, json_get(request, "command")) {
		/* Bytes that are no text stand there in another form (request_json.c). */
		json_add_string(w, NULL, json_string(one) ? json_string(one) : "\xff");
	}
	json_array_end(w);
}

static void view_rest(
		const struct sandbox_state *s, const struct json *request, struct json_writer *w)
{
	view_platform(request, w);
	view_status(s, w);
	view_metadata(s, w);
	view_extensions(request, w);
	view_entrypoint(request, w);
	if (s->expires_ms) {
		view_time(w, "expiresAt", s->expires_ms);
	}
	view_time(w, "createdAt", s->created_ms);
}

/* While a sandbox is pending its request is not on disk, but in the file of the record it may be:
 * what is not known is left out. */
static void view(const struct api *api, const struct sandbox_info *info, bool with_image,
		struct json_writer *w)
{
	const struct sandbox_state *s = &info->state;
	AUTO(json) struct json *root = request_read(api, &s->id);

	json_object_begin(w, NULL);
	json_add_string(w, "id", s->id.text);
	if (with_image) {
		json_object_begin(w, "image");
		json_add_string(w, "uri", s->image);
		json_object_end(w);
	}
	view_rest(s, json_get(root, "request"), w);
	json_object_end(w);
}

void view_sandbox(const struct api *api, const struct sandbox_info *info, struct json_writer *w)
{
	view(api, info, true, w);
}

void view_created(const struct api *api, const struct sandbox_info *info, struct json_writer *w)
{
	view(api, info, false, w);
}
