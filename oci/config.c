/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>

#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#define WORD_MAX 255

struct diffs {
	struct digest *v;
	size_t n;
};

/* The document as it stands. */
struct raw {
	struct image_config config;
	char *rootfs_type;
	struct diffs diffs;
};

void image_config_done(struct image_config *c)
{
	if (!c) {
		return;
	}
	strv_done(&c->entrypoint);
	strv_done(&c->cmd);
	strv_done(&c->env);
	strv_done(&c->volumes);
	free(c->user);
	free(c->working_dir);
	free(c->stop_signal);
	free(c->os);
	free(c->architecture);
	free(c->variant);
	free(c->created);
	*c = (struct image_config){ .user = NULL };
}

void config_doc_done(struct config_doc *d)
{
	if (!d) {
		return;
	}
	image_config_done(&d->config);
	free(d->diffs);
	*d = (struct config_doc)CONFIG_DOC_INIT;
}

static void raw_done(struct raw *r)
{
	image_config_done(&r->config);
	free(r->rootfs_type);
	free(r->diffs.v);
}
AUTO_DEFINE(raw, struct raw, raw_done);

static int diffs_decode(const struct json *v, void *out, struct error *e)
{
	struct diffs *d = out;

	if (!json_is_array(v)) {
		return error_set(e, ERRC_INVALID, "expected an array of digests");
	}
	if (json_size(v) > LIMIT_LAYERS) {
		return error_set(e, ERRC_LIMIT, "more than %d layers", LIMIT_LAYERS);
	}
	d->v = mem_array(LIMIT_LAYERS, sizeof(*d->v));
	json_for_each(entry, v) {
		const char *text = json_string(entry);
		int r = text ? digest_parse(text, &d->v[d->n]) : -EINVAL;

		if (r == -ENOTSUP) {
			return error_set(e, ERRC_UNSUPPORTED,
					"[%zu]: only sha256 digests are supported", d->n);
		}
		if (r < 0) {
			return error_set(e, ERRC_INVALID, "[%zu]: expected a digest", d->n);
		}
		d->n++;
	}
	return 0;
}

static int string_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "/a" and "/a/" are one destination. */
static void sorted_make_unique(struct strv *sv)
{
	size_t kept = 0;

	strv_for_each(sv, i) {
		if (kept > 0 && str_eq(sv->v[kept - 1], sv->v[i])) {
			free(sv->v[i]);
		} else {
			sv->v[kept++] = sv->v[i];
		}
	}
	if (sv->v) {
		sv->v[kept] = NULL;
	}
	sv->n = kept;
}

/* An object whose names are the destinations. */
static int volumes_decode(const struct json *v, void *out, struct error *e)
{
	struct strv *volumes = out;

	if (!json_is_object(v)) {
		return error_set(e, ERRC_INVALID, "expected an object");
	}
	if (json_size(v) > LIMIT_VOLUMES) {
		return error_set(e, ERRC_LIMIT, "more than %d volumes", LIMIT_VOLUMES);
	}
	json_for_each(volume, v) {
		autofree char *path = path_normalise(json_name(volume));

		if (strlen(path) >= LIMIT_PATH_BYTES) {
			return error_set(e, ERRC_LIMIT, "a path is longer than %d bytes",
					LIMIT_PATH_BYTES - 1);
		}
		if (!str_eq(path, "/") && strv_add(volumes, path) < 0) {
			return error_set(e, ERRC_LIMIT, "too many volumes");
		}
	}
	if (volumes->n > 1) {
		qsort(volumes->v, volumes->n, sizeof(*volumes->v), string_compare);
	}
	sorted_make_unique(volumes);
	return 0;
}

#define CONFIG_AT(member) offsetof(struct image_config, member)

static const struct jsondec_field workload_fields[] = {
	{ "Entrypoint", JSONDEC_STRV, CONFIG_AT(entrypoint) },
	{ "Cmd", JSONDEC_STRV, CONFIG_AT(cmd) },
	{ "Env", JSONDEC_STRV, CONFIG_AT(env) },
	{ "Volumes", JSONDEC_CUSTOM, CONFIG_AT(volumes), .decode = volumes_decode },
	{ "User", JSONDEC_STRING, CONFIG_AT(user), .max = WORD_MAX },
	{ "WorkingDir", JSONDEC_STRING, CONFIG_AT(working_dir), .max = LIMIT_PATH_BYTES - 1 },
	{ "StopSignal", JSONDEC_STRING, CONFIG_AT(stop_signal), .max = WORD_MAX },
	{ .name = NULL },
};

static const struct jsondec_field rootfs_fields[] = {
	{ "type", JSONDEC_STRING, offsetof(struct raw, rootfs_type), .max = WORD_MAX },
	{ "diff_ids", JSONDEC_CUSTOM, offsetof(struct raw, diffs), .decode = diffs_decode },
	{ .name = NULL },
};

static const struct jsondec_field document_fields[] = {
	{ "os", JSONDEC_STRING, CONFIG_AT(os), .max = WORD_MAX },
	{ "architecture", JSONDEC_STRING, CONFIG_AT(architecture), .max = WORD_MAX },
	{ "variant", JSONDEC_STRING, CONFIG_AT(variant), .max = WORD_MAX },
	{ "created", JSONDEC_STRING, CONFIG_AT(created), .max = WORD_MAX },
	{ "config", JSONDEC_OBJECT, offsetof(struct raw, config), .fields = workload_fields },
	{ "rootfs", JSONDEC_OBJECT, 0, JSONDEC_REQUIRED, .fields = rootfs_fields },
	{ .name = NULL },
};
_Static_assert(offsetof(struct raw, config) == 0, "document_fields counts from the config");

static int env_make_uniform(struct strv *env, struct error *e)
{
	AUTO(strv) struct strv uniform = STRV_INIT;

	strv_for_each(env, i) {
		const char *equals = strchr(env->v[i], '=');

		if (equals == env->v[i] || env->v[i][0] == '\0') {
			continue;
		}
		if (strv_addf(&uniform, "%s%s", env->v[i], equals ? "" : "=") < 0) {
			return error_set(e, ERRC_LIMIT, "config.Env: too many entries");
		}
	}
	strv_done(env);
	*env = uniform;
	uniform = (struct strv)STRV_INIT;
	return 0;
}

static void empty_drop(char **s)
{
	if (*s && !**s) {
		free(*s);
		*s = NULL;
	}
}

static int raw_check(struct raw *raw, struct error *e)
{
	struct image_config *c = &raw->config;

	if (raw->rootfs_type && !str_eq(raw->rootfs_type, "layers")) {
		return error_set(e, ERRC_UNSUPPORTED, "rootfs.type is not \"layers\"");
	}
	empty_drop(&c->os);
	if (c->os && !str_eq(c->os, "linux")) {
		return error_set(e, ERRC_UNSUPPORTED,
				"the image is for %s, only linux images can run", c->os);
	}
	empty_drop(&c->architecture);
	empty_drop(&c->variant);
	empty_drop(&c->created);
	empty_drop(&c->user);
	empty_drop(&c->working_dir);
	empty_drop(&c->stop_signal);
	if (c->entrypoint.n == 1 && c->entrypoint.v[0][0] == '\0') {
		strv_done(&c->entrypoint);
	}
	return env_make_uniform(&c->env, e);
}

int config_parse(struct span text, struct config_doc *out_doc, struct error *e)
{
	AUTO(json) struct json *root = json_parse(text, e);
	AUTO(raw) struct raw raw = { .rootfs_type = NULL };

	if (!root || jsondec_object(root, document_fields, &raw, e) < 0 || raw_check(&raw, e) < 0) {
		return -1;
	}
	*out_doc = (struct config_doc){
		.config = raw.config,
		.diffs = TAKE_PTR(raw.diffs.v),
		.diffs_n = raw.diffs.n,
	};
	raw.config = (struct image_config){ .user = NULL };
	return 0;
}
