/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/program.h>
#include <osbx/str.h>

#include "layout.h"
#include "unpack.h"

#define TAGS_MAX 200 /* bytes of a list of tags for people */

static const char *const transport_prefixes[] = {
	[REF_NAME] = "",
	[REF_OCI] = "oci:",
	[REF_OCI_ARCHIVE] = "oci-archive:",
	[REF_DOCKER_ARCHIVE] = "docker-archive:",
	[REF_DIR] = "dir:",
	[REF_HOST] = "@host",
};
_Static_assert(ARRAY_SIZE(transport_prefixes) == REF_TRANSPORT_COUNT, "a prefix each");

static void layout_image_done(struct layout_image *img)
{
	free(img->tag);
	free(img->alias);
	strv_done(&img->names);
	descriptors_done(&img->candidates);
}

void layout_done(struct layout *l)
{
	if (!l) {
		return;
	}
	for (size_t i = 0; i < l->images_n; i++) {
		layout_image_done(&l->images[i]);
	}
	free(l->images);
	free(l->label);
	fd_close(&l->dir_fd);
	staging_done(&l->staging);
	pull_signals_release(&l->signals);
	*l = (struct layout)LAYOUT_INIT;
}

struct layout_image *layout_add(struct layout *l)
{
	l->images = mem_resize(l->images, l->images_n, l->images_n + 1, sizeof(*l->images));
	return &l->images[l->images_n++];
}

static int open_failed(const struct ref *ref, int r, struct error *e)
{
	if (r == -ENOENT || r == -ENOTDIR) {
		return error_set(e, ERRC_NOT_FOUND, "there is no %s",
				r == -ENOENT ? "such file or directory" : "such directory");
	}
	return error_sys(e, -r, "open %s", ref->path);
}

static int layout_dir_open(const struct ref *ref, struct layout *l, struct error *e)
{
	int fd = fd_open(ref->path, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0) {
		return open_failed(ref, fd, e);
	}
	l->dir_fd = fd;
	pull_signals_hold(&l->signals);
	return oci_layout_read(l, ref, e);
}

/* A regular file, or a pipe named as /dev/fd/N or /dev/stdin. */
static int archive_file_open(const struct ref *ref, struct error *e)
{
	autoclose int fd = fd_open(ref->path, O_RDONLY, 0);
	struct stat s;

	if (fd < 0) {
		return open_failed(ref, fd, e);
	}
	if (fstat(fd, &s) < 0) {
		return error_sys(e, errno, "open %s", ref->path);
	}
	if (S_ISDIR(s.st_mode)) {
		error_set(e, ERRC_INVALID, "it is a directory");
		return error_hint(e, "a directory is named oci:DIR");
	}
	return TAKE_FD(fd);
}

static int archive_open(struct store *st, const struct ref *ref, uint64_t max, struct layout *l,
		struct error *e)
{
	if (program_full(e) < 0) {
		return -1;
	}
	autoclose int archive = archive_file_open(ref, e);
	int r = 0;

	if (archive < 0) {
		return -1;
	}
	/* Not before: to open a named pipe may take for ever. */
	pull_signals_hold(&l->signals);
	if (store_staging(st, &l->staging, e) < 0) {
		return -1;
	}
	r = file_mkdir_at(l->staging.dir_fd, "archive", 0700);
	if (r == 0) {
		l->dir_fd = fd_open_at(l->staging.dir_fd, "archive",
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		r = l->dir_fd < 0 ? l->dir_fd : 0;
	}
	if (r < 0) {
		l->dir_fd = -1;
		return error_sys(e, -r, "make a directory for the archive");
	}
	if (unpack_archive(archive, l->dir_fd, max, e) < 0) {
		return -1;
	}
	l->is_ours = true;
	return ref->transport == REF_DOCKER_ARCHIVE ? docker_archive_read(l, e)
						    : oci_layout_read(l, ref, e);
}

int layout_open(struct store *st, const struct ref *ref, uint64_t max, struct layout *out_layout,
		struct error *e)
{
	AUTO(layout) struct layout l = LAYOUT_INIT;
	int r = 0;

	l.label = mem_printf("%s%s", transport_prefixes[ref->transport], ref->path);
	r = ref->transport == REF_OCI ? layout_dir_open(ref, &l, e)
				      : archive_open(st, ref, max, &l, e);
	if (r < 0) {
		return error_wrap(e, "%s", l.label);
	}
	*out_layout = l;
	l = (struct layout)LAYOUT_INIT;
	return 0;
}

char *layout_full_name(const char *text)
{
	AUTO(ref) struct ref ref = REF_INIT;
	struct error ignored = ERROR_INIT;

	if (ref_parse(text, &ref, &ignored) < 0 || ref.transport != REF_NAME || !ref.repository ||
			ref.digest.text[0]) {
		return NULL;
	}
	return ref_full_name(&ref);
}

/* What a user writes behind the path to name this image; NULL if it has no name. */
static const char *image_tag_text(const struct layout_image *img)
{
	if (img->tag) {
		return img->tag;
	}
	return img->names.n > 0 ? img->names.v[0] : NULL;
}

static bool image_is_named(const struct layout_image *img, const char *wanted)
{
	if ((img->tag && str_eq(img->tag, wanted)) || (img->alias && str_eq(img->alias, wanted))) {
		return true;
	}
	strv_for_each(&img->names, i) {
		if (str_eq(img->names.v[i], wanted)) {
			return true;
		}
	}
	return false;
}

static int pick_failed(const struct layout *l, const char *wanted, struct error *e)
{
	AUTO(buf) struct buf tags = BUF_INIT(TAGS_MAX);
	size_t left_out = 0;

	for (size_t i = 0; i < l->images_n; i++) {
		const char *tag = image_tag_text(&l->images[i]);

		if (buf_appendf(&tags, "%s%s", tags.n ? ", " : "", tag ? tag : "<none>") < 0) {
			left_out++;
		}
	}
	if (wanted) {
		error_set(e, ERRC_NOT_FOUND, "%s holds no image %s, but %s%s", l->label, wanted,
				tags.n ? tags.p : "none at all", left_out ? ", …" : "");
	} else {
		error_set(e, ERRC_INVALID, "%s holds several images: %s%s", l->label,
				tags.n ? tags.p : "", left_out ? ", …" : "");
		return error_hint(e, "name one: %s:TAG", l->label);
	}
	return -1;
}

static bool image_find_named(const struct layout *l, const char *wanted, size_t *out_i)
{
	for (size_t i = 0; wanted && i < l->images_n; i++) {
		if (image_is_named(&l->images[i], wanted)) {
			*out_i = i;
			return true;
		}
	}
	return false;
}

int layout_pick(const struct layout *l, const struct ref *ref, size_t *out_i, struct error *e)
{
	autofree char *full = ref_full_name(ref);
	const char *wanted = full ? full : ref->tag;
	bool may_be_name = !full && wanted && strpbrk(wanted, ":/");
	autofree char *meant = may_be_name ? layout_full_name(wanted) : NULL;

	if (image_find_named(l, wanted, out_i) || image_find_named(l, meant, out_i)) {
		return 0;
	}
	if (wanted || l->images_n > 1) {
		return pick_failed(l, wanted, e);
	}
	if (l->images_n == 0) {
		return error_set(e, ERRC_NOT_FOUND, "%s holds no image", l->label);
	}
	*out_i = 0;
	return 0;
}
