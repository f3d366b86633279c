/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/clock.h>
#include <osbx/execd_proto.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/json.h>
#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/record.h>
#include <osbx/strv.h>

#define RECORD_VERSION   1
#define RECORD_BYTES_MAX (8U << 20) /* a request's arguments, environment and mounts, escaped */
#define REQUEST_FILE     "request.json"

static void write_resolved(struct json_writer *w, const struct image *img, const struct idmap *map)
{
	json_object_begin(w, "resolved");
	json_add_string(w, "manifest", img && img->manifest.text[0] ? img->manifest.text : NULL);
	json_array_begin(w, "layers");
	for (size_t i = 0; img && i < img->layers_n; i++) {
		json_add_string(w, NULL, img->layers[i].chain.text);
	}
	json_array_end(w);
	json_add_string(w, "idMode", idmap_mode_name(map->mode));
	json_add_u64(w, "firstId", map->uids_n > 0 ? map->uids[0].outside : 0);
	json_object_end(w);
}

static int request_write(const struct record *r, struct span text, bool durable)
{
	autoclose int fd = fd_open_at(r->dir_fd, REQUEST_FILE, O_WRONLY | O_CREAT | O_EXCL, 0600);

	/* Of one that was pending. */
	if (fd == -EEXIST && unlinkat(r->dir_fd, REQUEST_FILE, 0) == 0) {
		fd = fd_open_at(r->dir_fd, REQUEST_FILE, O_WRONLY | O_CREAT | O_EXCL, 0600);
	}
	int n = fd < 0 ? fd : fd_write_all(fd, text.p, text.n);

	if (n == 0 && durable && (fsync(fd) < 0 || fsync(r->dir_fd) < 0)) {
		n = -errno;
	}
	return n;
}

/* As the request was made, but for what nobody is to read there. */
static void write_request(struct json_writer *w, const struct sandbox_request *req)
{
	struct sandbox_request shown = *req;
	AUTO(strv) struct strv env = STRV_INIT;

	strv_for_each(&req->env, i) {
		/* Of LIMIT_ENV variables at most. */
		(void)!strv_add(&env, req->env.v[i]);
	}
	free(strv_env_remove(&env, EXECD_TOKEN_ENV));
	shown.env = env;
	request_format(&shown, w, "request");
}

int record_save(const struct record *r, const struct sandbox_request *req, const struct image *img,
		const struct idmap *map, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(RECORD_BYTES_MAX);
	struct json_writer w = JSON_WRITER(&text);

	json_object_begin(&w, NULL);
	json_add_u64(&w, "version", RECORD_VERSION);
	json_add_string(&w, "id", r->id.text);
	json_add_u64(&w, "createdMs", (uint64_t)clock_wall_ms());
	json_add_bool(&w, "keep", req->keep);
	write_resolved(&w, img, map);
	write_request(&w, req);
	json_object_end(&w);
	if (w.failed) {
		return error_set(e, ERRC_LIMIT, "request of more than %u bytes", RECORD_BYTES_MAX);
	}
	/* Nobody reads it before the store is free again; what is not kept is not synced either. */
	int n = request_write(r, buf_span(&text), req->keep);

	return n < 0 ? error_sys(e, -n, "write %s/" REQUEST_FILE, r->path) : 0;
}

struct resolved {
	char *manifest;
	struct strv layers;
};

struct refs_document {
	uint64_t version;
	bool keep;
	struct resolved resolved;
};

static void refs_done(struct refs_document *d)
{
	free(d->resolved.manifest);
	strv_done(&d->resolved.layers);
}
AUTO_DEFINE(refs, struct refs_document, refs_done);

static const struct jsondec_field resolved_fields[] = {
	{ "manifest", JSONDEC_STRING, offsetof(struct resolved, manifest), 0, 0, NULL, NULL },
	{ "layers", JSONDEC_STRV, offsetof(struct resolved, layers), 0, 0, NULL, NULL },
	{ .name = NULL },
};

static const struct jsondec_field refs_fields[] = {
	{ "version", JSONDEC_U64, offsetof(struct refs_document, version), JSONDEC_REQUIRED,
			UINT32_MAX, NULL, NULL },
	{ "keep", JSONDEC_BOOL, offsetof(struct refs_document, keep), JSONDEC_REQUIRED, 0, NULL,
			NULL },
	{ "resolved", JSONDEC_OBJECT, offsetof(struct refs_document, resolved), JSONDEC_REQUIRED, 0,
			resolved_fields, NULL },
	{ .name = NULL },
};

int record_load_refs(int dir_fd, bool *out_keep, struct strv *refs)
{
	AUTO(buf) struct buf text = BUF_INIT(RECORD_BYTES_MAX);
	AUTO(refs) struct refs_document d = { .version = 0 };
	struct error e = ERROR_INIT;
	int r = file_read_at(dir_fd, REQUEST_FILE, &text);

	if (r < 0) {
		return r;
	}
	AUTO(json) struct json *root = json_parse(buf_span(&text), &e);

	if (!root || jsondec_object(root, refs_fields, &d, &e) < 0 || d.version != RECORD_VERSION) {
		return -EBADMSG;
	}
	*out_keep = d.keep;
	if (d.resolved.manifest && strv_add(refs, d.resolved.manifest) < 0) {
		return -E2BIG;
	}
	return strv_add_all(refs, strv_get(&d.resolved.layers));
}
