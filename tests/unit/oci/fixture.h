/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture - OCI layouts and stores made for a test.
 */
#ifndef OSBX_TESTS_OCI_FIXTURE_H
#define OSBX_TESTS_OCI_FIXTURE_H

#include <osbx/fd.h>
#include <osbx/image.h>
#include <osbx/mem.h>

#include "../../../oci/store_internal.h"
#include "../unit.h"
#include "documents.h"

#define FIXTURE_LAYERS 3

/* An image as a layout holds it. */
struct made {
	struct digest manifest;
	struct digest config;
	struct digest layers[FIXTURE_LAYERS];
	size_t layers_n;
	size_t manifest_size;
};

static inline void put_file(int dir_fd, const char *name, const char *text)
{
	ck_assert_int_eq(file_write_at(dir_fd, name, span_of(text), false), 0);
}

static inline struct digest digest_text(const char *text)
{
	struct digest d = { .text = "" };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(digest_of(span_of(text), &d, &e), 0);
	return d;
}

/* Write a blob into blobs/sha256 of a layout. */
static inline struct digest put_blob(int layout_fd, const char *text)
{
	struct digest d = digest_text(text);
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(&d));

	put_file(layout_fd, path, text);
	return d;
}

/* An empty layout below the test's directory. The caller closes the descriptor. */
static inline int layout_new(const char *name)
{
	int fd = -1;

	ck_assert_int_eq(mkdirat(unit_fd, name, 0700), 0);
	fd = openat(unit_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(mkdirat(fd, "blobs", 0700), 0);
	ck_assert_int_eq(mkdirat(fd, "blobs/sha256", 0700), 0);
	put_file(fd, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}");
	return fd;
}

static inline char *config_text(const char *architecture, const char *seed, const struct made *m)
{
	AUTO(buf) struct buf b = BUF_INIT(1U << 16);

	ck_assert_int_eq(buf_appendf(&b,
					 "{\"os\":\"linux\",\"architecture\":\"%s\",\"created\":"
					 "\"%s\",\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[",
					 architecture, seed),
			0);
	for (size_t i = 0; i < m->layers_n; i++) {
		ck_assert_int_eq(buf_appendf(&b, "%s\"%s\"", i ? "," : "", m->layers[i].text), 0);
	}
	ck_assert_int_eq(buf_append_str(&b, "]}}"), 0);
	return buf_take(&b);
}

static inline char *manifest_text(const struct made *m, size_t config_size, const size_t *sizes)
{
	AUTO(buf) struct buf b = BUF_INIT(1U << 16);

	ck_assert_int_eq(buf_appendf(&b,
					 "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
					 "\",\"config\":{\"mediaType\":\"" MEDIA_OCI_CONFIG
					 "\",\"digest\":\"%s\",\"size\":%zu},\"layers\":[",
					 m->config.text, config_size),
			0);
	for (size_t i = 0; i < m->layers_n; i++) {
		ck_assert_int_eq(buf_appendf(&b,
						 "%s{\"mediaType\":\"" MEDIA_OCI_LAYER
						 "\",\"digest\":\"%s\",\"size\":%zu}",
						 i ? "," : "", m->layers[i].text, sizes[i]),
				0);
	}
	ck_assert_int_eq(buf_append_str(&b, "]}"), 0);
	return buf_take(&b);
}

/* An image of n layers whose bytes depend on seed (so plain "layers" that the mock takes); the
 * lowest is shared by all images. */
static inline struct made put_image(
		int layout_fd, const char *architecture, const char *seed, size_t n)
{
	struct made m = { .layers_n = n };
	size_t sizes[FIXTURE_LAYERS] = { 0 };
	autofree char *config = NULL;
	autofree char *manifest = NULL;

	for (size_t i = 0; i < n; i++) {
		autofree char *bytes = i == 0 ? mem_strdup("the lowest layer")
					      : mem_printf("layer %zu of %s", i, seed);

		sizes[i] = strlen(bytes);
		m.layers[i] = put_blob(layout_fd, bytes);
	}
	config = config_text(architecture, seed, &m);
	m.config = put_blob(layout_fd, config);
	manifest = manifest_text(&m, strlen(config), sizes);
	m.manifest_size = strlen(manifest);
	m.manifest = put_blob(layout_fd, manifest);
	return m;
}

/* An entry of an index. more: further members (",\"platform\":…"), or "". Caller frees. */
static inline char *entry(const char *type, const struct digest *d, size_t size, const char *more)
{
	return mem_printf("{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%zu%s}", type, d->text,
			size, more);
}

static inline char *named(const char *tag)
{
	return mem_printf(",\"annotations\":{\"" ANNOTATION_REF_NAME "\":\"%s\"}", tag);
}

static inline char *entry_named(const struct made *m, const char *tag)
{
	autofree char *more = tag ? named(tag) : mem_strdup("");

	return entry(MEDIA_OCI_MANIFEST, &m->manifest, m->manifest_size, more);
}

/* The text of an index. Caller frees. */
static inline char *index_text(const char *a, const char *b, const char *c)
{
	return mem_printf("{\"schemaVersion\":2,\"manifests\":[%s%s%s%s%s]}", a, b ? "," : "",
			b ? b : "", c ? "," : "", c ? c : "");
}

static inline void put_index(int layout_fd, const char *a, const char *b, const char *c)
{
	autofree char *text = index_text(a, b, c);

	put_file(layout_fd, "index.json", text);
}

/* A store in the test's directory, and a map that needs no privilege. */
static inline struct store *store_new(void)
{
	struct error e = ERROR_INIT;
	autofree char *path = mem_printf("%s/store", unit_path);
	struct store *st = store_open(path, &e);

	ck_assert_msg(st != NULL, "%s", e.text);
	return st;
}

static inline struct idmap map_single(void)
{
	return (struct idmap){
		.mode = IDMAP_SINGLE,
		.uids_n = 1,
		.gids_n = 1,
		.uids = { { .outside = geteuid(), .count = 1 } },
		.gids = { { .outside = getegid(), .count = 1 } },
	};
}

static inline struct ref ref_of(const char *format, ...) PRINTF_LIKE(1, 2);

static inline struct ref ref_of(const char *format, ...)
{
	struct ref r = REF_INIT;
	struct error e = ERROR_INIT;
	va_list ap;
	autofree char *text = NULL;

	va_start(ap, format);
	text = mem_vprintf(format, ap);
	va_end(ap);
	ck_assert_msg(ref_parse(text, &r, &e) == 0, "%s", e.text);
	return r;
}

#endif
