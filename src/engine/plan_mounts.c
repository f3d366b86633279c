/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/plan.h>
#include <osbx/str.h>

static void add_root(const struct plan_input *in, struct spec *spec)
{
	const struct image *img = in->img;

	if (img->rootfs) {
		uint32_t tree = spec_add_tree(spec, img->rootfs, SPEC_TREE_CONTAINER, false);

		spec_add_lower(spec, tree, "");
	} else {
		uint32_t tree = spec_add_tree(spec, in->layers, SPEC_TREE_CONTAINER, false);

		if (img->is_host) {
			spec_add_lower(spec, tree, PLAN_HOST_LOWER);
		} else if (img->layers_n > 0) {
			spec_add_lower(spec, tree, PLAN_POINTS_LOWER);
		}
		for (size_t i = 0; i < img->layers_n; i++) {
			spec_add_lower(spec, tree, digest_hex(&img->layers[i].chain));
		}
	}
	/* The runtime looks for upper and work in the second tree. */
	uint32_t record = spec_add_tree(spec, in->record, SPEC_TREE_CONTAINER, false);

	assert(record == 1);
}

static void add_file(struct spec *spec, const char *dst, char *content)
{
	struct spec_mount *m = spec_add_mount(spec, SPEC_MOUNT_FILE, dst);

	m->mode = 0644;
	m->content = content;
}

static void add_files(const struct plan_input *in, struct spec *spec)
{
	static const char local[] = "127.0.0.1\tlocalhost\n"
				    "::1\tlocalhost ip6-localhost ip6-loopback\n";
	const char *hosts = in->hosts ? in->hosts : local;
	size_t n = strlen(hosts);

	add_file(spec, "/etc/hostname", mem_printf("%s\n", spec->hostname));
	add_file(spec, "/etc/hosts",
			mem_printf("%s%s127.0.0.1\t%s\n", hosts,
					n > 0 && hosts[n - 1] != '\n' ? "\n" : "", spec->hostname));
	add_file(spec, "/etc/resolv.conf", mem_strdup(in->resolv_conf ? in->resolv_conf : ""));
}

/* The images' directories for data: most are in their layers, others are left to the engine. */
static void add_image_volumes(const struct image *img, struct spec *spec)
{
	strv_for_each(&img->config.volumes, i) {
		(void)!spec_add_mount(spec, SPEC_MOUNT_DIR, img->config.volumes.v[i]);
	}
}

/* What programs expect to be able to write, also where the root is read-only; as podman does. */
static const struct {
	const char *dst;
	mode_t mode;
} read_only_tmpfs[] = {
	{ "/run", 0755 },
	{ "/tmp", 01777 },
	{ "/var/tmp", 01777 },
};

static void add_read_only_tmpfs(struct spec *spec)
{
	for (size_t i = 0; i < ARRAY_SIZE(read_only_tmpfs); i++) {
		struct spec_mount *m =
				spec_add_mount(spec, SPEC_MOUNT_TMPFS, read_only_tmpfs[i].dst);

		m->mode = read_only_tmpfs[i].mode;
		m->exec_ok = true;
	}
}

static int check_platform(const struct plan_input *in, struct error *e)
{
	const struct image *img = in->img;

	if (in->req->platform && (img->is_host || img->rootfs)) {
		return error_set(e, ERRC_INVALID,
				"platform \"%s\": %s has no platforms to choose from",
				in->req->platform, in->req->image);
	}
	return 0;
}

int plan_spec(const struct plan_input *in, struct spec *out_spec, struct error *e)
{
	char hostname[LIMIT_NAME_BYTES + 1];
	AUTO(spec) struct spec spec = { .mounts_n = 0 };

	if (check_platform(in, e) < 0) {
		return -1;
	}
	spec_init(&spec);
	plan_hostname(in->req, in->id, hostname);
	spec.id = *in->id;
	spec.hostname = mem_strdup(hostname);
	spec.network = in->req->network;
	spec.map = *in->map;
	spec.read_only = in->req->read_only;
	spec.tty = in->req->tty;
	spec.isolation = in->req->isolation;
	spec.is_ephemeral = !in->req->keep;
	spec.shm_bytes = in->req->shm_bytes;
	add_root(in, &spec);
	if (spec.lowers_n == 0) {
		return error_set(e, ERRC_INVALID, "%s: the image has no layers", in->req->image);
	}
	add_files(in, &spec);
	add_image_volumes(in->img, &spec);
	if (in->req->read_only) {
		add_read_only_tmpfs(&spec);
	}
	*out_spec = spec;
	spec_init(&spec);
	return 0;
}

/* A tree that is not id-mapped is opened once more by its path where it is mounted: by the path of
 * what was found beneath, subPath and links resolved. */
static char *source_path(const struct request_volume *v, int fd)
{
	char name[sizeof("/proc/self/fd/2147483647")];
	char path[LIMIT_PATH_BYTES];

	if (!v->beneath) {
		return mem_strdup(v->src);
	}
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(name, path, sizeof(path));

	return n > 0 ? mem_printf("%.*s", (int)n, path) : mem_strdup(v->src);
}

static void add_volumes(const struct plan_input *in, struct spec *spec)
{
	for (size_t i = 0; i < in->req->volumes_n; i++) {
		const struct request_volume *v = &in->req->volumes[i];
		autofree char *src = source_path(v, in->volume_fds[i]);
		uint32_t tree = spec_add_tree(spec, src, SPEC_TREE_OWNER, true);
		autofree char *dst = path_normalise(v->dst);
		struct spec_mount *m = spec_add_mount(spec, SPEC_MOUNT_BIND, dst);

		spec->trees[tree].fd = in->volume_fds[i];
		m->tree = tree;
		m->read_only = v->read_only;
	}
}

static void add_tmpfs(const struct plan_input *in, struct spec *spec)
{
	for (size_t i = 0; i < in->req->tmpfs_n; i++) {
		const struct request_tmpfs *t = &in->req->tmpfs[i];
		autofree char *dst = path_normalise(t->dst);
		struct spec_mount *m = spec_add_mount(spec, SPEC_MOUNT_TMPFS, dst);

		m->size = t->size;
		m->mode = 01777;
		m->exec_ok = true;
	}
}

/* Does a mount of the request take the place of one that osbx adds itself? Below a volume of the
 * request nothing is added: it would need a mount point in the user's own files. */
static bool is_taken(const struct spec_mount *own, const struct spec_mount *wanted)
{
	return str_eq(own->dst, wanted->dst) ||
	       (wanted->kind == SPEC_MOUNT_BIND && path_is_below(own->dst, wanted->dst));
}

static void mount_done(struct spec_mount *m)
{
	free(m->dst);
	free(m->path);
	free(m->content);
}

/* Drop what is taken among the first own_n mounts. */
static void drop_taken(struct spec *spec, size_t own_n)
{
	for (size_t i = own_n; i > 0; i--) {
		struct spec_mount *own = &spec->mounts[i - 1];
		bool taken = false;

		for (size_t j = own_n; j < spec->mounts_n && !taken; j++) {
			taken = is_taken(own, &spec->mounts[j]);
		}
		if (taken) {
			mount_done(own);
			memmove(own, own + 1, (spec->mounts_n - i) * sizeof(*own));
			spec->mounts_n--;
			own_n--;
		}
	}
}

static size_t path_depth(const char *path)
{
	size_t depth = 0;

	for (; *path; path++) {
		depth += *path == '/';
	}
	return depth;
}

/* Insertion sort: stable, and there are few. */
static void sort_by_depth(struct spec *spec)
{
	for (size_t i = 1; i < spec->mounts_n; i++) {
		struct spec_mount m = spec->mounts[i];
		size_t depth = path_depth(m.dst);
		size_t at = i;

		while (at > 0 && path_depth(spec->mounts[at - 1].dst) > depth) {
			spec->mounts[at] = spec->mounts[at - 1];
			at--;
		}
		spec->mounts[at] = m;
	}
}

/* A mount at dst hides those above it. */
static void look_at_mount(
		const char *path, const char *dst, bool is_tmpfs, size_t *depth, bool *out_is_tmpfs)
{
	autofree char *normal = path_normalise(dst);

	if (path_is_below(path, normal) && strlen(normal) >= *depth) {
		*depth = strlen(normal);
		*out_is_tmpfs = is_tmpfs;
	}
}

bool plan_is_in_tmpfs(const struct plan_input *in, const char *path)
{
	autofree char *normal = path_normalise(path);
	size_t depth = 0;
	bool is_tmpfs = false;

	for (size_t i = 0; in->req->read_only && i < ARRAY_SIZE(read_only_tmpfs); i++) {
		look_at_mount(normal, read_only_tmpfs[i].dst, true, &depth, &is_tmpfs);
	}
	for (size_t i = 0; i < in->req->volumes_n; i++) {
		look_at_mount(normal, in->req->volumes[i].dst, false, &depth, &is_tmpfs);
	}
	for (size_t i = 0; i < in->req->tmpfs_n; i++) {
		look_at_mount(normal, in->req->tmpfs[i].dst, true, &depth, &is_tmpfs);
	}
	return is_tmpfs;
}

int plan_mounts(const struct plan_input *in, struct spec *spec, struct error *e)
{
	size_t own_n = spec->mounts_n;

	add_volumes(in, spec);
	add_tmpfs(in, spec);
	for (size_t i = own_n; i < spec->mounts_n; i++) {
		if (str_eq(spec->mounts[i].dst, "/")) {
			return error_set(e, ERRC_INVALID, "mount destination /: the root itself");
		}
	}
	drop_taken(spec, own_n);
	sort_by_depth(spec);
	return 0;
}
