/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * One form for request.json and for the keeper that a request is handed to. A string of Linux need
 * not be UTF-8, one of JSON must: what is not stands as {"hex": "…"}, so that every byte arrives.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/caps.h>
#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/request.h>
#include <osbx/span.h>
#include <osbx/str.h>

#define TIMEOUT_MAX_MS (366LL * 24 * 3600 * 1000 * 100)

static const char *const pull_names[] = {
	[PULL_MISSING] = "missing",
	[PULL_ALWAYS] = "always",
	[PULL_NEVER] = "never",
};
_Static_assert(ARRAY_SIZE(pull_names) == PULL_POLICY_COUNT, "pull_names is complete");

static void write_text(struct json_writer *w, const char *name, const char *text)
{
	static const char digits[] = "0123456789abcdef";

	if (!text || span_is_utf8(span_of(text))) {
		json_add_string(w, name, text);
		return;
	}
	size_t n = strlen(text);
	autofree char *hex = mem_array(2 * n + 1, 1);

	for (size_t i = 0; i < n; i++) {
		hex[2 * i] = digits[(unsigned char)text[i] >> 4];
		hex[2 * i + 1] = digits[(unsigned char)text[i] & 0xf];
	}
	json_object_begin(w, name);
	json_add_string(w, "hex", hex);
	json_object_end(w);
}

static void write_texts(struct json_writer *w, const char *name, const struct strv *sv)
{
	json_array_begin(w, name);
	strv_for_each(sv, i) {
		write_text(w, NULL, sv->v[i]);
	}
	json_array_end(w);
}

static void write_mounts(struct json_writer *w, const struct sandbox_request *req)
{
	json_array_begin(w, "volumes");
	for (size_t i = 0; i < req->volumes_n; i++) {
		json_object_begin(w, NULL);
		write_text(w, "source", req->volumes[i].src);
		write_text(w, "destination", req->volumes[i].dst);
		write_text(w, "beneath", req->volumes[i].beneath);
		write_text(w, "sub", req->volumes[i].sub);
		json_add_bool(w, "readOnly", req->volumes[i].read_only);
		json_object_end(w);
	}
	json_array_end(w);
	json_array_begin(w, "tmpfs");
	for (size_t i = 0; i < req->tmpfs_n; i++) {
		json_object_begin(w, NULL);
		write_text(w, "destination", req->tmpfs[i].dst);
		json_add_u64(w, "size", req->tmpfs[i].size);
		json_object_end(w);
	}
	json_array_end(w);
}

static void write_ports(struct json_writer *w, const struct sandbox_request *req)
{
	char text[PORTS_TEXT_MAX];

	json_array_begin(w, "ports");
	for (size_t i = 0; i < req->ports_n; i++) {
		ports_format(&req->ports[i], text);
		json_add_string(w, NULL, text);
	}
	json_array_end(w);
}

static void write_caps(struct json_writer *w, uint64_t caps)
{
	json_array_begin(w, "capabilities");
	for (int cap = 0; caps_name(cap); cap++) {
		if (caps & CAPS_BIT(cap)) {
			json_add_string(w, NULL, caps_name(cap));
		}
	}
	json_array_end(w);
}

void request_format(const struct sandbox_request *req, struct json_writer *w, const char *name)
{
	json_object_begin(w, name);
	write_text(w, "image", req->image);
	write_texts(w, "command", &req->command);
	write_text(w, "entrypoint", req->entrypoint);
	write_texts(w, "env", &req->env);
	write_text(w, "workdir", req->workdir);
	write_text(w, "user", req->user);
	write_texts(w, "groups", &req->groups);
	write_text(w, "hostname", req->hostname);
	write_text(w, "name", req->name);
	write_texts(w, "labels", &req->labels);
	write_texts(w, "extensions", &req->extensions);
	json_add_bool(w, "setsId", req->sets_id);
	json_add_u64(w, "renewMs", (uint64_t)req->renew_ms);
	write_mounts(w, req);
	json_add_bool(w, "readOnly", req->read_only);
	json_add_bool(w, "interactive", req->interactive);
	json_add_bool(w, "tty", req->tty);
	json_add_bool(w, "keep", req->keep);
	json_add_bool(w, "detach", req->detach);
	json_add_bool(w, "remove", req->remove);
	json_add_bool(w, "isolation", req->isolation);
	json_add_string(w, "network", request_network_name(req->network));
	if (req->has_policy) {
		netpolicy_format(&req->policy, w, "policy");
	}
	json_add_bool(w, "anyName", req->any_name);
	write_text(w, "denyWebhook", req->deny_webhook);
	write_ports(w, req);
	write_caps(w, req->caps);
	write_text(w, "seccomp", req->seccomp);
	write_text(w, "platform", req->platform);
	json_add_string(w, "pull", pull_names[req->pull]);
	if (req->tls_verify >= 0) {
		json_add_bool(w, "tlsVerify", req->tls_verify != 0);
	}
	json_add_u64(w, "unpackMax", req->unpack_max);
	json_add_u64(w, "shmBytes", req->shm_bytes);
	json_add_u64(w, "timeoutMs", (uint64_t)req->timeout_ms);
	json_add_u64(w, "cpuMilli", req->limits.cpu_milli);
	json_add_u64(w, "memoryBytes", req->limits.memory_bytes);
	json_add_u64(w, "pids", req->limits.pids);
	if (req->best_effort >= 0) {
		json_add_bool(w, "bestEffort", req->best_effort != 0);
	}
	json_object_end(w);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes of hexadecimal digits; NULL when they are none or hold a NUL. Caller frees. */
static char *hex_decode(const char *hex)
{
	size_t n = strlen(hex);
	autofree char *out = mem_array(n / 2 + 1, 1);

	for (size_t i = 0; i + 1 < n; i += 2) {
		int high = hex_digit(hex[i]);
		int low = hex_digit(hex[i + 1]);

		if (high < 0 || low < 0 || high + low == 0) {
			return NULL;
		}
		out[i / 2] = (char)(high << 4 | low);
	}
	return n % 2 == 0 ? TAKE_PTR(out) : NULL;
}

/* A string in either form. NULL with *e set; caller frees. */
static char *text_read(const struct json *v, struct error *e)
{
	const char *plain = json_string(v);
	const char *hex = plain ? NULL : json_string(json_get(v, "hex"));

	if ((plain && strlen(plain) > LIMIT_ARGS_BYTES) ||
			(hex && strlen(hex) > 2 * (size_t)LIMIT_ARGS_BYTES)) {
		(void)error_set(e, ERRC_LIMIT, "longer than %u bytes", LIMIT_ARGS_BYTES);
		return NULL;
	}
	char *text = plain ? mem_strdup(plain) : hex ? hex_decode(hex) : NULL;

	if (!text) {
		(void)error_set(e, ERRC_INVALID, "expected a string");
	}
	return text;
}

static int read_text(const struct json *v, void *out, struct error *e)
{
	char **member = out;
	char *text = text_read(v, e);

	if (!text) {
		return -1;
	}
	free(*member);
	*member = text;
	return 0;
}

static int read_texts(const struct json *v, void *out, struct error *e)
{
	struct strv *member = out;

	if (!json_is_array(v)) {
		return error_set(e, ERRC_INVALID, "expected an array of strings");
	}
	strv_done(member);
	json_for_each(child, v) {
		char *text = text_read(child, e);

		if (!text) {
			return -1;
		}
		if (strv_take(member, text) < 0) {
			return error_set(e, ERRC_LIMIT, "more than %d strings", LIMIT_ARGS);
		}
	}
	return 0;
}

/* Index of a name in a table. -1 with *e set. */
static int name_read(const struct json *v, const char *const *names, size_t n, struct error *e)
{
	const char *text = json_string(v);

	for (size_t i = 0; text && i < n; i++) {
		if (str_eq(names[i], text)) {
			return (int)i;
		}
	}
	return error_set(e, ERRC_INVALID, "unknown value");
}

static int read_network(const struct json *v, void *out, struct error *e)
{
	const char *text = json_string(v);

	return text && request_network_from_name(text, out) == 0
			       ? 0
			       : error_set(e, ERRC_INVALID, "unknown value");
}

static int read_policy(const struct json *v, void *out, struct error *e)
{
	struct sandbox_request *r = out;
	struct netpolicy policy;

	if (netpolicy_parse(v, &policy, e) < 0) {
		return -1;
	}
	netpolicy_done(&r->policy);
	r->policy = policy;
	r->has_policy = true;
	return 0;
}

static int read_pull(const struct json *v, void *out, struct error *e)
{
	int i = name_read(v, pull_names, ARRAY_SIZE(pull_names), e);

	if (i >= 0) {
		*(enum pull_policy *)out = (enum pull_policy)i;
	}
	return i < 0 ? -1 : 0;
}

static int read_choice(const struct json *v, void *out, struct error *e)
{
	bool on = false;

	if (json_bool(v, &on) < 0) {
		return error_set(e, ERRC_INVALID, "expected true or false");
	}
	*(int *)out = on ? 1 : 0;
	return 0;
}

static int read_caps(const struct json *v, void *out, struct error *e)
{
	uint64_t caps = 0;

	if (!json_is_array(v)) {
		return error_set(e, ERRC_INVALID, "expected an array of names");
	}
	json_for_each(child, v) {
		const char *name = json_string(child);
		int cap = name ? caps_from_name(name) : -1;

		if (cap < 0) {
			return error_set(e, ERRC_INVALID, "unknown capability");
		}
		caps |= CAPS_BIT(cap);
	}
	*(uint64_t *)out = caps;
	return 0;
}

static const struct jsondec_field volume_fields[] = {
	{ "source", JSONDEC_CUSTOM, offsetof(struct request_volume, src), JSONDEC_REQUIRED, 0, NULL,
			read_text },
	{ "destination", JSONDEC_CUSTOM, offsetof(struct request_volume, dst), JSONDEC_REQUIRED, 0,
			NULL, read_text },
	{ "beneath", JSONDEC_CUSTOM, offsetof(struct request_volume, beneath), 0, 0, NULL,
			read_text },
	{ "sub", JSONDEC_CUSTOM, offsetof(struct request_volume, sub), 0, 0, NULL, read_text },
	{ "readOnly", JSONDEC_BOOL, offsetof(struct request_volume, read_only), 0, 0, NULL, NULL },
	{ .name = NULL },
};

static const struct jsondec_field tmpfs_fields[] = {
	{ "destination", JSONDEC_CUSTOM, offsetof(struct request_tmpfs, dst), JSONDEC_REQUIRED, 0,
			NULL, read_text },
	{ "size", JSONDEC_U64, offsetof(struct request_tmpfs, size), 0, 0, NULL, NULL },
	{ .name = NULL },
};

static int mounts_check(const struct json *v, size_t have, struct error *e)
{
	if (!json_is_array(v)) {
		return error_set(e, ERRC_INVALID, "expected an array of mounts");
	}
	return have + json_size(v) > LIMIT_VOLUMES
			       ? error_set(e, ERRC_LIMIT, "more than %d mounts", LIMIT_VOLUMES)
			       : 0;
}

static int read_volumes(const struct json *v, void *out, struct error *e)
{
	struct sandbox_request *r = out;

	if (mounts_check(v, r->volumes_n, e) < 0) {
		return -1;
	}
	json_for_each(child, v) {
		size_t n = r->volumes_n;

		r->volumes = mem_resize(r->volumes, n, n + 1, sizeof(*r->volumes));
		r->volumes_n++;
		if (jsondec_object(child, volume_fields, &r->volumes[n], e) < 0) {
			return -1;
		}
	}
	return 0;
}

static int read_tmpfs(const struct json *v, void *out, struct error *e)
{
	struct sandbox_request *r = out;

	if (mounts_check(v, r->tmpfs_n, e) < 0) {
		return -1;
	}
	json_for_each(child, v) {
		size_t n = r->tmpfs_n;

		r->tmpfs = mem_resize(r->tmpfs, n, n + 1, sizeof(*r->tmpfs));
		r->tmpfs_n++;
		if (jsondec_object(child, tmpfs_fields, &r->tmpfs[n], e) < 0) {
			return -1;
		}
	}
	return 0;
}

static int read_ports(const struct json *v, void *out, struct error *e)
{
	if (!json_is_array(v)) {
		return error_set(e, ERRC_INVALID, "expected an array of ports");
	}
	json_for_each(child, v) {
		const char *text = json_string(child);

		if (!text) {
			return error_set(e, ERRC_INVALID, "expected a string");
		}
		if (request_add_port(out, text, e) < 0) {
			return -1;
		}
	}
	return 0;
}

#define FIELD(member) offsetof(struct sandbox_request, member)

static const struct jsondec_field request_fields[] = {
	{ "image", JSONDEC_CUSTOM, FIELD(image), JSONDEC_REQUIRED, 0, NULL, read_text },
	{ "command", JSONDEC_CUSTOM, FIELD(command), 0, 0, NULL, read_texts },
	{ "entrypoint", JSONDEC_CUSTOM, FIELD(entrypoint), 0, 0, NULL, read_text },
	{ "env", JSONDEC_CUSTOM, FIELD(env), 0, 0, NULL, read_texts },
	{ "workdir", JSONDEC_CUSTOM, FIELD(workdir), 0, 0, NULL, read_text },
	{ "user", JSONDEC_CUSTOM, FIELD(user), 0, 0, NULL, read_text },
	{ "groups", JSONDEC_CUSTOM, FIELD(groups), 0, 0, NULL, read_texts },
	{ "hostname", JSONDEC_CUSTOM, FIELD(hostname), 0, 0, NULL, read_text },
	{ "name", JSONDEC_CUSTOM, FIELD(name), 0, 0, NULL, read_text },
	{ "labels", JSONDEC_CUSTOM, FIELD(labels), 0, 0, NULL, read_texts },
	{ "extensions", JSONDEC_CUSTOM, FIELD(extensions), 0, 0, NULL, read_texts },
	{ "setsId", JSONDEC_BOOL, FIELD(sets_id), 0, 0, NULL, NULL },
	{ "renewMs", JSONDEC_U64, FIELD(renew_ms), 0, TIMEOUT_MAX_MS, NULL, NULL },
	{ "volumes", JSONDEC_CUSTOM, 0, 0, 0, NULL, read_volumes },
	{ "tmpfs", JSONDEC_CUSTOM, 0, 0, 0, NULL, read_tmpfs },
	{ "readOnly", JSONDEC_BOOL, FIELD(read_only), 0, 0, NULL, NULL },
	{ "interactive", JSONDEC_BOOL, FIELD(interactive), 0, 0, NULL, NULL },
	{ "tty", JSONDEC_BOOL, FIELD(tty), 0, 0, NULL, NULL },
	{ "keep", JSONDEC_BOOL, FIELD(keep), 0, 0, NULL, NULL },
	{ "detach", JSONDEC_BOOL, FIELD(detach), 0, 0, NULL, NULL },
	{ "remove", JSONDEC_BOOL, FIELD(remove), 0, 0, NULL, NULL },
	{ "isolation", JSONDEC_BOOL, FIELD(isolation), 0, 0, NULL, NULL },
	{ "network", JSONDEC_CUSTOM, FIELD(network), 0, 0, NULL, read_network },
	{ "ports", JSONDEC_CUSTOM, 0, 0, 0, NULL, read_ports },
	{ "policy", JSONDEC_CUSTOM, 0, 0, 0, NULL, read_policy },
	{ "anyName", JSONDEC_BOOL, FIELD(any_name), 0, 0, NULL, NULL },
	{ "denyWebhook", JSONDEC_CUSTOM, FIELD(deny_webhook), 0, 0, NULL, read_text },
	{ "capabilities", JSONDEC_CUSTOM, FIELD(caps), 0, 0, NULL, read_caps },
	{ "seccomp", JSONDEC_CUSTOM, FIELD(seccomp), 0, 0, NULL, read_text },
	{ "platform", JSONDEC_CUSTOM, FIELD(platform), 0, 0, NULL, read_text },
	{ "pull", JSONDEC_CUSTOM, FIELD(pull), 0, 0, NULL, read_pull },
	{ "tlsVerify", JSONDEC_CUSTOM, FIELD(tls_verify), 0, 0, NULL, read_choice },
	{ "unpackMax", JSONDEC_U64, FIELD(unpack_max), 0, 0, NULL, NULL },
	{ "shmBytes", JSONDEC_U64, FIELD(shm_bytes), 0, 0, NULL, NULL },
	{ "cpuMilli", JSONDEC_U64, FIELD(limits.cpu_milli), 0, LIMIT_CPU_MILLI_MAX, NULL, NULL },
	{ "memoryBytes", JSONDEC_U64, FIELD(limits.memory_bytes), 0, LIMIT_MEMORY_MAX, NULL, NULL },
	{ "pids", JSONDEC_U64, FIELD(limits.pids), 0, LIMIT_PIDS_MAX, NULL, NULL },
	{ "bestEffort", JSONDEC_CUSTOM, FIELD(best_effort), 0, 0, NULL, read_choice },
	{ "timeoutMs", JSONDEC_U64, FIELD(timeout_ms), 0, TIMEOUT_MAX_MS, NULL, NULL },
	{ .name = NULL },
};
_Static_assert(sizeof(((struct sandbox_request *)NULL)->timeout_ms) == sizeof(uint64_t),
		"a whole number of JSON fits");

int request_parse(const struct json *v, struct sandbox_request *out_req, struct error *e)
{
	AUTO(request) struct sandbox_request r = { .volumes_n = 0 };

	request_init(&r);
	if (jsondec_object(v, request_fields, &r, e) < 0 || request_validate(&r, e) < 0) {
		return -1;
	}
	*out_req = TAKE(r, (struct sandbox_request){ .volumes_n = 0 });
	return 0;
}
