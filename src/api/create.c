/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A body is decoded by tables into struct wish, whose faults of form are 422 with the path of the
 * member, and then goes through checks[], whose refusals are 400: what is legal and not to be had
 * here is refused, never left out in silence. The rest is the command line's request_validate.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "api_internal.h"

#define RENEW_MIN_S         300
#define RENEW_MAX_S         86400
#define EXTENSION_ISOLATION "bootstrap.execd.isolation"
#define EXTENSION_RENEW     "access.renew.extend.seconds"
#define EXTENSION_POOL      "poolRef"
#define ENV_EGRESS          "OPENSANDBOX_EGRESS_"
#define ENV_LIFECYCLE       "OPENSANDBOX_LIFECYCLE"
#define SECONDS_MAX         (100ULL * 366 * 24 * 3600)

/* Decoded, not yet checked. */
struct wish {
	struct {
		char *uri;
		struct credential auth;
	} image;
	char *snapshot_id;
	char *template_id;
	struct {
		char *os;
		char *arch;
	} platform;
	uint64_t timeout_s;
	struct strv entrypoint;
	struct strv env; /* NAME=VALUE */
	bool secure_access;
	bool proxy_enabled;
	const struct json *body;
};

static void wish_done(struct wish *w)
{
	free(w->image.uri);
	credential_done(&w->image.auth);
	free(w->snapshot_id);
	free(w->template_id);
	free(w->platform.os);
	free(w->platform.arch);
	strv_done(&w->entrypoint);
	strv_done(&w->env);
}
AUTO_DEFINE(wish, struct wish, wish_done);

void create_done(struct create *c)
{
	if (c) {
		request_done(&c->request);
		credential_done(&c->credential);
	}
}

static const struct jsondec_field auth_fields[] = {
	{ "username", JSONDEC_STRING, offsetof(struct credential, user), JSONDEC_REQUIRED,
			LIMIT_SECRET_BYTES, NULL, NULL },
	{ "password", JSONDEC_STRING, offsetof(struct credential, password), JSONDEC_REQUIRED,
			LIMIT_SECRET_BYTES, NULL, NULL },
	{ .name = NULL },
};

#define WISH(member) offsetof(struct wish, member)

static const struct jsondec_field image_fields[] = {
	{ "uri", JSONDEC_STRING, WISH(image.uri), JSONDEC_REQUIRED, LIMIT_PATH_BYTES, NULL, NULL },
	{ "auth", JSONDEC_OBJECT, WISH(image.auth), 0, 0, auth_fields, NULL },
	{ .name = NULL },
};

static const struct jsondec_field platform_fields[] = {
	{ "os", JSONDEC_STRING, WISH(platform.os), JSONDEC_REQUIRED, 64, NULL, NULL },
	{ "arch", JSONDEC_STRING, WISH(platform.arch), JSONDEC_REQUIRED, 64, NULL, NULL },
	{ .name = NULL },
};

static const struct jsondec_field proxy_fields[] = {
	{ "enabled", JSONDEC_BOOL, WISH(proxy_enabled), 0, 0, NULL, NULL },
	{ .name = NULL },
};

/* A map; a null member is none. */
static int read_env(const struct json *v, void *out, struct error *e)
{
	struct strv *env = out;

	if (!json_is_object(v)) {
		return error_set(e, ERRC_INVALID, "expected an object");
	}
	json_for_each(member, v) {
		const char *name = json_name(member);
		const char *value = json_string(member);

		if (!value && json_get(v, name)) {
			return error_set(e, ERRC_INVALID, "%.80s: expected a string", name);
		}
		if (name[0] == '\0' || strchr(name, '=')) {
			return error_set(e, ERRC_INVALID, "%.80s: not a name of a variable", name);
		}
		if (value && (env->n >= LIMIT_ENV || strv_addf(env, "%s=%s", name, value) < 0)) {
			return error_set(e, ERRC_LIMIT, "more than %d variables", LIMIT_ENV);
		}
	}
	return 0;
}

static const struct jsondec_field wish_fields[] = {
	{ "image", JSONDEC_OBJECT, 0, 0, 0, image_fields, NULL },
	{ "snapshotId", JSONDEC_STRING, WISH(snapshot_id), 0, 256, NULL, NULL },
	{ "templateId", JSONDEC_STRING, WISH(template_id), 0, 256, NULL, NULL },
	{ "platform", JSONDEC_OBJECT, 0, 0, 0, platform_fields, NULL },
	{ "timeout", JSONDEC_U64, WISH(timeout_s), 0, SECONDS_MAX, NULL, NULL },
	{ "entrypoint", JSONDEC_STRV, WISH(entrypoint), 0, 0, NULL, NULL },
	{ "env", JSONDEC_CUSTOM, WISH(env), 0, 0, NULL, read_env },
	{ "secureAccess", JSONDEC_BOOL, WISH(secure_access), 0, 0, NULL, NULL },
	{ "credentialProxy", JSONDEC_OBJECT, 0, 0, 0, proxy_fields, NULL },
	{ .name = NULL },
};

static bool is_blank(const char *text)
{
	return !text || text[strspn(text, " \t\r\n")] == '\0';
}

/* What no server of this API would take. */
static int form_check(const struct wish *w, struct refusal *why)
{
	const struct json *timeout = json_get(w->body, "timeout");

	/* Such a wish has no image: that would be said instead. */
	if (!is_blank(w->template_id)) {
		return refuse(why, 400, API_NOT_SUPPORTED,
				"templateId: templates are not supported by this server");
	}
	if (is_blank(w->image.uri) && is_blank(w->snapshot_id)) {
		return refuse_field(why, "image", "one of image and snapshotId is needed");
	}
	if (!is_blank(w->image.uri) && !is_blank(w->snapshot_id)) {
		return refuse_field(why, "image", "only one of image and snapshotId may be given");
	}
	if (is_blank(w->snapshot_id) && w->entrypoint.n == 0) {
		return refuse_field(why, "entrypoint", "a list of at least one string is needed");
	}
	if (timeout && w->timeout_s < API_TIMEOUT_MIN) {
		return refuse_field(why, "timeout",
				"at least %d seconds, or null for a sandbox that does not expire",
				API_TIMEOUT_MIN);
	}
	if (!json_is_object(json_get(w->body, "resourceLimits"))) {
		return refuse_field(why, "resourceLimits", "an object is needed");
	}
	if (strv_env_find(&w->env, ENV_LIFECYCLE)) {
		return refuse_field(why, "env." ENV_LIFECYCLE, "the name is reserved");
	}
	return 0;
}

static const struct {
	const char *field;
	const char *code;
	const char *text;
} missing_parts[] = {
	{ "lifecycle", API_INVALID_PARAMETER, "lifecycle: hooks are not supported" },
};

/* Legal, but not here: an empty object or list asks for nothing. */
static int missing_check(const struct wish *w, struct refusal *why)
{
	for (size_t i = 0; i < ARRAY_SIZE(missing_parts); i++) {
		const struct json *v = json_get(w->body, missing_parts[i].field);

		if (v && (!json_is_object(v) || json_size(v) > 0)) {
			return refuse(why, 400, missing_parts[i].code, "%s", missing_parts[i].text);
		}
	}
	if (!is_blank(w->snapshot_id)) {
		return refuse(why, 400, API_NOT_SUPPORTED,
				"snapshotId: snapshots are not supported by this server");
	}
	if (w->secure_access) {
		return refuse(why, 400, API_INVALID_PARAMETER,
				"secureAccess: needs an ingress gateway, which this server is not");
	}
	if (w->proxy_enabled) {
		return refuse(why, 400, API_INVALID_PARAMETER,
				"credentialProxy: not supported by this server");
	}
	return 0;
}

static int image_take(
		const struct api_opts *opts, struct wish *w, struct create *c, struct refusal *why)
{
	autofree char *local = NULL;
	struct error e = ERROR_INIT;

	if (request_image_path(w->image.uri, &local, &e) < 0) {
		return refuse(why, 400, API_INVALID_PARAMETER, "image.uri: %s", e.text);
	}
	if (local) {
		autofree char *path = path_normalise(local);

		if (local[0] != '/' || !host_path_allowed(opts, path)) {
			return refuse(why, 400, "VOLUME::HOST_PATH_NOT_ALLOWED",
					"image.uri: %.200s is not below a directory that this "
					"server allows (--host-path)",
					local);
		}
	}
	if (w->image.auth.user) {
		c->credential = TAKE(w->image.auth, (struct credential)CREDENTIAL_INIT);
		c->has_credential = true;
	}
	c->request.image = TAKE_PTR(w->image.uri);
	return 0;
}

static int platform_take(const struct wish *w, struct create *c, struct refusal *why)
{
	if (!w->platform.os) {
		return 0;
	}
	if (strcasecmp(w->platform.os, "linux") != 0) {
		return refuse(why, 400, API_INVALID_PARAMETER,
				"platform.os: \"%s\" cannot be run here, only linux",
				w->platform.os);
	}
	if (strcasecmp(w->platform.arch, "amd64") != 0 &&
			strcasecmp(w->platform.arch, "arm64") != 0) {
		return refuse(why, 400, API_INVALID_PARAMETER,
				"platform.arch: expected amd64 or arm64");
	}
	c->request.platform = strcasecmp(w->platform.arch, "amd64") == 0
					      ? mem_strdup("linux/amd64")
					      : mem_strdup("linux/arm64");
	return 0;
}

static int quantity_refuse(
		struct refusal *why, const char *name, const char *text, const char *like)
{
	return refuse(why, 400, API_INVALID_PARAMETER,
			"resourceLimits.%s: \"%.80s\" is not a quantity that can be had, for "
			"example %s",
			name, text, like);
}

static int limits_take(const struct wish *w, struct create *c, struct refusal *why)
{
	const struct json *limits = json_get(w->body, "resourceLimits");

	json_for_each(member, limits) {
		if (!json_string(member) && json_get(limits, json_name(member))) {
			autofree char *field =
					mem_printf("resourceLimits.%.80s", json_name(member));

			return refuse_field(why, field, "expected a string");
		}
	}
	const char *cpu = json_string(json_get(limits, "cpu"));
	const char *memory = json_string(json_get(limits, "memory"));
	const char *gpu = json_string(json_get(limits, "gpu"));

	if (cpu && (quantity_cpu(cpu, &c->request.limits.cpu_milli) < 0 ||
				   c->request.limits.cpu_milli < LIMIT_CPU_MILLI_MIN)) {
		return quantity_refuse(why, "cpu", cpu, "500m or 1.5");
	}
	if (memory && (quantity_memory(memory, &c->request.limits.memory_bytes) < 0 ||
				      c->request.limits.memory_bytes < LIMIT_MEMORY_MIN)) {
		return quantity_refuse(why, "memory", memory, "512Mi; at least 6Mi");
	}
	if (gpu) {
		return refuse(why, 400, API_INVALID_PARAMETER,
				"resourceLimits.gpu: there are no GPUs for sandboxes here");
	}
	return 0;
}

/* Nothing, null or {}: the default policy. */
static int policy_take(const struct api_opts *opts, const struct wish *w, struct create *c,
		struct refusal *why)
{
	const struct json *v = json_get(w->body, "networkPolicy");
	struct netpolicy policy;
	struct error e = ERROR_INIT;

	c->request.network = opts->network;
	if (!v || (json_is_object(v) && json_size(v) == 0)) {
		return 0;
	}
	if (!json_is_object(v)) {
		return refuse_field(why, "networkPolicy", "expected an object");
	}
	if (netpolicy_parse(v, &policy, &e) < 0) {
		const char *colon = strstr(e.text, ": ");
		autofree char *field = mem_printf("networkPolicy%s%.*s", colon ? "." : "",
				colon ? (int)(colon - e.text) : 0, e.text);

		return refuse_field(why, field, "%s", colon ? colon + 2 : e.text);
	}
	netpolicy_done(&c->request.policy);
	c->request.policy = policy;
	c->request.has_policy = true;
	return opts->network == SPEC_NETWORK_PRIVATE
			       ? 0
			       : refuse(why, 400, API_INVALID_PARAMETER,
						 "networkPolicy: the network of this server's "
						 "sandboxes is %s",
						 request_network_name(opts->network));
}

/* What is known of the settings of the egress engine. None of them has a meaning here: what they
 * would turn on or off is as it is. */
static const char *const egress_settings[] = {
	"LOG_LEVEL",
	"DNS_UPSTREAM_TIMEOUT",
	"METRICS_EXTRA_ATTRS",
	"POLICY_FILE",
};

/* Those of the egress engine are none of the workload's; without a policy they are left out. */
static int setting_check(const struct create *c, const char *entry, struct refusal *why)
{
	const char *name = str_after(entry, ENV_EGRESS);

	for (size_t i = 0; i < ARRAY_SIZE(egress_settings); i++) {
		const char *rest = str_after(name, egress_settings[i]);

		if (rest && rest[0] == '=') {
			return 0;
		}
	}
	return c->request.has_policy ? refuse(why, 400, API_INVALID_PARAMETER,
						       "env." ENV_EGRESS
						       "%.*s: not supported by this server%s",
						       (int)strcspn(name, "="), name,
						       str_after(name, "DENY_WEBHOOK=")
								       ? "; its operator sets "
									 "deny_webhook in osbx.conf"
								       : "")
				     : 0;
}

static int env_take(struct wish *w, struct create *c, struct refusal *why)
{
	strv_for_each(&w->env, i) {
		if (str_after(w->env.v[i], ENV_EGRESS)) {
			if (setting_check(c, w->env.v[i], why) < 0) {
				return -1;
			}
		} else if (strv_add(&c->request.env, w->env.v[i]) < 0) {
			return refuse_field(why, "env", "too many variables");
		}
	}
	return 0;
}

static int metadata_take(const struct wish *w, struct create *c, struct refusal *why)
{
	const struct json *metadata = json_get(w->body, "metadata");

	if (metadata && !json_is_object(metadata)) {
		return refuse_field(why, "metadata", "expected an object");
	}
	json_for_each(member, metadata) {
		const char *value = json_string(member);

		if (!value) {
			autofree char *field = mem_printf("metadata.%.80s", json_name(member));

			return refuse_field(why, field, "expected a string");
		}
		if (metadata_add(&c->request.labels, json_name(member), value, why) < 0) {
			return -1;
		}
	}
	return 0;
}

static int extension_take(struct create *c, const char *key, const char *value, struct refusal *why)
{
	uint64_t seconds = 0;

	if (str_eq(key, EXTENSION_POOL)) {
		return refuse(why, 400, API_UNSUPPORTED_POOL,
				"extensions.poolRef: this server has no pools");
	}
	if (str_eq(key, EXTENSION_RENEW) &&
			(str_to_u64(value, RENEW_MAX_S, &seconds) < 0 || seconds < RENEW_MIN_S)) {
		return refuse(why, 400, API_INVALID_PARAMETER,
				"extensions." EXTENSION_RENEW ": expected %d to %d", RENEW_MIN_S,
				RENEW_MAX_S);
	}
	if (seconds > 0) {
		c->request.renew_ms = 1000 * (int64_t)seconds;
	}
	if (str_eq(key, EXTENSION_ISOLATION) && str_eq(value, "enable")) {
		c->request.isolation = true;
	}
	return strv_addf(&c->request.extensions, "%s=%s", key, value) < 0
			       ? refuse_field(why, "extensions", "too many")
			       : 0;
}

static int extensions_take(const struct wish *w, struct create *c, struct refusal *why)
{
	const struct json *extensions = json_get(w->body, "extensions");

	if (extensions && !json_is_object(extensions)) {
		return refuse_field(why, "extensions", "expected an object");
	}
	json_for_each(member, extensions) {
		const char *key = json_name(member);
		const char *value = json_string(member);

		if (!value || strchr(key, '=')) {
			autofree char *field = mem_printf("extensions.%.80s", key);

			return refuse_field(why, field, "expected a string");
		}
		if (extension_take(c, key, value, why) < 0) {
			return -1;
		}
	}
	return 0;
}

static int timeout_take(const struct api_opts *opts, const struct wish *w, struct create *c,
		struct refusal *why)
{
	int64_t timeout_ms = 1000 * (int64_t)w->timeout_s;

	if (opts->timeout_max_ms > 0 && timeout_ms > opts->timeout_max_ms) {
		return refuse(why, 400, API_INVALID_PARAMETER,
				"timeout: at most %lld seconds on this server",
				(long long)(opts->timeout_max_ms / 1000));
	}
	c->request.timeout_ms = timeout_ms;
	return 0;
}

/* The command is the whole of it: the image's own entry point plays no part. */
static void request_start(const struct api_opts *opts, struct wish *w, struct create *c)
{
	c->request.entrypoint = mem_strdup("");
	c->request.command = TAKE(w->entrypoint, (struct strv)STRV_INIT);
	c->request.detach = true;
	c->request.sets_id = true;
	c->request.best_effort = opts->best_effort;
	c->request.deny_webhook = mem_strdup(opts->deny_webhook);
}

int create_parse(const struct api_opts *opts, const struct json *body, struct create *out_create,
		struct refusal *out_why)
{
	AUTO(wish) struct wish w = { .body = body };
	AUTO(create) struct create c = { .has_credential = false };
	struct error e = ERROR_INIT;

	request_init(&c.request);
	if (jsondec_object(body, wish_fields, &w, &e) < 0) {
		return refuse_decoded(out_why, &e);
	}
	if (extensions_take(&w, &c, out_why) < 0 || form_check(&w, out_why) < 0 ||
			missing_check(&w, out_why) < 0 || image_take(opts, &w, &c, out_why) < 0 ||
			platform_take(&w, &c, out_why) < 0 || limits_take(&w, &c, out_why) < 0 ||
			policy_take(opts, &w, &c, out_why) < 0 || env_take(&w, &c, out_why) < 0 ||
			metadata_take(&w, &c, out_why) < 0 ||
			timeout_take(opts, &w, &c, out_why) < 0 ||
			volumes_parse(opts, json_get(body, "volumes"), &c.request, out_why) < 0) {
		return -1;
	}
	request_start(opts, &w, &c);
	if (request_validate(&c.request, &e) < 0) {
		return refuse(out_why, 400, API_INVALID_PARAMETER, "%s%s%s", e.text,
				e.hint[0] ? "; " : "", e.hint);
	}
	*out_create = TAKE(c, (struct create){ .has_credential = false });
	return 0;
}
