/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A path of the host is allowed by its text alone: it has no "..", and lies below a directory of
 * the list. What it leads to is not looked at here, where a guest that can write to such a
 * directory could still change it: the keeper opens it, once, with no way for a link to lead out
 * (request_volume.beneath), and mounts what it has opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/jsondec.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "api_internal.h"

#define LABEL_CHARS "abcdefghijklmnopqrstuvwxyz0123456789-"
#define LABEL_MAX   63

struct volume {
	char *name;
	char *mount_path;
	char *sub_path;
	char *host_path;
	bool read_only;
};

static void volume_done(struct volume *v)
{
	free(v->name);
	free(v->mount_path);
	free(v->sub_path);
	free(v->host_path);
}
AUTO_DEFINE(volume, struct volume, volume_done);

#define VOLUME(member) offsetof(struct volume, member)

static const struct jsondec_field host_fields[] = {
	{ "path", JSONDEC_STRING, VOLUME(host_path), JSONDEC_REQUIRED, LIMIT_PATH_BYTES, NULL,
			NULL },
	{ .name = NULL },
};

static const struct jsondec_field volume_fields[] = {
	{ "name", JSONDEC_STRING, VOLUME(name), JSONDEC_REQUIRED, 256, NULL, NULL },
	{ "mountPath", JSONDEC_STRING, VOLUME(mount_path), JSONDEC_REQUIRED, LIMIT_PATH_BYTES, NULL,
			NULL },
	{ "subPath", JSONDEC_STRING, VOLUME(sub_path), 0, LIMIT_PATH_BYTES, NULL, NULL },
	{ "host", JSONDEC_OBJECT, 0, 0, 0, host_fields, NULL },
	{ "readOnly", JSONDEC_BOOL, VOLUME(read_only), 0, 0, NULL, NULL },
	{ .name = NULL },
};

const char *host_path_allowed(const struct api_opts *opts, const char *path)
{
	strv_for_each(&opts->host_paths, i) {
		if (path_is_below(path, opts->host_paths.v[i])) {
			return opts->host_paths.v[i];
		}
	}
	return NULL;
}

static bool has_dotdot(const char *path)
{
	struct span rest = span_of(path);
	struct span piece;

	while (span_next(&rest, '/', &piece)) {
		if (span_eq(piece, span_of(".."))) {
			return true;
		}
	}
	return false;
}

static bool is_label(const char *name)
{
	size_t n = strlen(name);

	return n <= LABEL_MAX && str_is_made_of(name, LABEL_CHARS) && name[0] != '-' &&
	       name[n - 1] != '-';
}

static int name_check(const struct json *list, const struct volume *v, struct refusal *why)
{
	size_t n = 0;

	if (!is_label(v->name)) {
		return refuse(why, 400, "VOLUME::INVALID_NAME",
				"volume name \"%.80s\": not a DNS label of at most 63 bytes",
				v->name);
	}
	json_for_each(other, list) {
		const char *name = json_string(json_get(other, "name"));

		n += name && str_eq(name, v->name);
	}
	return n > 1 ? refuse(why, 400, "VOLUME::DUPLICATE_NAME",
				       "volume name \"%s\" is used twice", v->name)
		     : 0;
}

static int backend_check(const struct json *one, const struct volume *v, struct refusal *why)
{
	bool pvc = json_get(one, "pvc") != NULL;
	bool ossfs = json_get(one, "ossfs") != NULL;

	if ((v->host_path ? 1 : 0) + (pvc ? 1 : 0) + (ossfs ? 1 : 0) != 1) {
		return refuse(why, 400, "VOLUME::INVALID_BACKEND",
				"volume %s: exactly one of host, pvc and ossfs is needed", v->name);
	}
	if (pvc || ossfs) {
		return refuse(why, 400, "VOLUME::UNSUPPORTED_BACKEND",
				"volume %s: only host directories are supported by this server",
				v->name);
	}
	return 0;
}

static int paths_check(const struct volume *v, struct refusal *why)
{
	size_t n = strlen(v->host_path);

	if (v->mount_path[0] != '/' || has_dotdot(v->mount_path)) {
		return refuse(why, 400, "VOLUME::INVALID_MOUNT_PATH",
				"volume %s: mountPath is not an absolute path without \"..\"",
				v->name);
	}
	if (v->sub_path && (v->sub_path[0] == '/' || has_dotdot(v->sub_path))) {
		return refuse(why, 400, "VOLUME::INVALID_SUB_PATH",
				"volume %s: subPath is not a relative path without \"..\"",
				v->name);
	}
	if (v->host_path[0] != '/' || has_dotdot(v->host_path) || strstr(v->host_path, "//") ||
			(n > 1 && v->host_path[n - 1] == '/')) {
		return refuse(why, 400, "VOLUME::INVALID_HOST_PATH",
				"volume %s: host.path is not an absolute path without \"..\", "
				"\"//\" and a slash at its end",
				v->name);
	}
	return 0;
}

static bool is_way_out(int r)
{
	return r == -ELOOP || r == -EXDEV;
}

static int host_refuse(const struct volume *v, const char *path, int r, struct refusal *why)
{
	if (is_way_out(r)) {
		return refuse(why, 400, "VOLUME::HOST_PATH_NOT_ALLOWED",
				"volume %s: %.200s: a link leads out of the directories that this "
				"server allows (--host-path)",
				v->name, path);
	}
	return refuse(why, 400, "VOLUME::HOST_PATH_CREATE_FAILED", "volume %s: %.200s: %s", v->name,
			path, strerror(-r));
}

/* fd, or -errno. */
static int made_beneath(int base_fd, const char *path)
{
	int fd = path_open_beneath(base_fd, path[0] ? path : "/", O_PATH, 0);

	return fd == -ENOENT ? path_mkdirs_beneath(base_fd, path, 0755) : fd;
}

/* A directory that is missing is made, as the reference does; links lead nowhere meanwhile. */
static int host_make(
		const struct volume *v, const char *base, const char *path, struct refusal *why)
{
	autoclose int base_fd = fd_open(base, O_PATH | O_DIRECTORY, 0);

	if (base_fd < 0) {
		return host_refuse(v, base, base_fd, why);
	}
	autoclose int fd = made_beneath(base_fd, path + strlen(base));

	if (fd < 0) {
		return host_refuse(v, path, fd, why);
	}
	if (!v->sub_path || !v->sub_path[0]) {
		return 0;
	}
	autoclose int sub_fd = made_beneath(fd, v->sub_path);

	return sub_fd < 0 ? refuse(why, 400, "VOLUME::INVALID_SUB_PATH",
					    "volume %s: subPath %.200s: %s", v->name, v->sub_path,
					    is_way_out(sub_fd) ? "a link leads out of the volume"
							       : strerror(-sub_fd))
			  : 0;
}

static void volume_add(struct sandbox_request *req, struct volume *v, const char *base, char *path)
{
	size_t n = req->volumes_n;

	req->volumes = mem_resize(req->volumes, n, n + 1, sizeof(*req->volumes));
	req->volumes_n++;
	req->volumes[n] = (struct request_volume){
		.src = path,
		.dst = TAKE_PTR(v->mount_path),
		.beneath = mem_strdup(base),
		.sub = v->sub_path && v->sub_path[0] ? TAKE_PTR(v->sub_path) : NULL,
		.read_only = v->read_only,
	};
}

static int volume_parse(const struct api_opts *opts, const struct json *list,
		const struct json *one, struct sandbox_request *req, struct refusal *why)
{
	AUTO(volume) struct volume v = { .read_only = false };
	struct error e = ERROR_INIT;

	if (jsondec_object(one, volume_fields, &v, &e) < 0) {
		return refuse_field(why, "volumes", "%s", e.text);
	}
	if (name_check(list, &v, why) < 0 || backend_check(one, &v, why) < 0 ||
			paths_check(&v, why) < 0) {
		return -1;
	}
	autofree char *path = path_normalise(v.host_path);
	const char *base = host_path_allowed(opts, path);

	if (!base) {
		return refuse(why, 400, "VOLUME::HOST_PATH_NOT_ALLOWED",
				"volume %s: %.200s is not below a directory that this server "
				"allows (--host-path)",
				v.name, v.host_path);
	}
	if (host_make(&v, base, path, why) < 0) {
		return -1;
	}
	volume_add(req, &v, base, TAKE_PTR(path));
	return 0;
}

int volumes_parse(const struct api_opts *opts, const struct json *v, struct sandbox_request *req,
		struct refusal *why)
{
	if (v && !json_is_array(v)) {
		return refuse_field(why, "volumes", "expected a list");
	}
	if (json_size(v) > LIMIT_VOLUMES) {
		return refuse(why, 400, API_INVALID_PARAMETER, "more than %d volumes",
				LIMIT_VOLUMES);
	}
	json_for_each(one, v) {
		if (volume_parse(opts, v, one, req, why) < 0) {
			return -1;
		}
	}
	return 0;
}
