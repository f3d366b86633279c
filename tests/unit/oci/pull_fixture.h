/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pull_fixture - a store, a registry in memory (mock_fetch), and an unpacker that only verifies
 * (mock_unpack).
 */
#ifndef OSBX_TESTS_OCI_PULL_FIXTURE_H
#define OSBX_TESTS_OCI_PULL_FIXTURE_H

#include <osbx/limits.h>
#include <osbx/registry.h>
#include <osbx/str.h>

#include "fixture.h"
#include "mock_fetch.h"
#include "mock_unpack.h"

#define REG "reg.example"

static struct store *store;
static struct idmap map;
static struct pull_opts opts;
static struct registry_config config;
static struct strv texts; /* of blobs, for the life of the test */

static inline void begin(void)
{
	/* No credential file of the machine's is looked at. */
	ck_assert_int_eq(setenv("HOME", unit_path, 1), 0);
	ck_assert_int_eq(unsetenv("XDG_RUNTIME_DIR"), 0);
	ck_assert_int_eq(unsetenv("XDG_CONFIG_HOME"), 0);
	ck_assert_int_eq(unsetenv("DOCKER_CONFIG"), 0);
	ck_assert_int_eq(unsetenv("REGISTRY_AUTH_FILE"), 0);
	store = store_new();
	map = map_single();
	config = (struct registry_config){ .hosts_n = 0 };
	opts = (struct pull_opts){
		.image = { .map = &map, .platform = "linux/amd64" },
		.config = &config,
		.policy = PULL_ALWAYS,
		.tls_verify = -1,
	};
	mock_unpack = (struct mock_unpack){ .calls = 0 };
	mock_fetch = (struct mock_fetch){ .layout_fd = layout_new("registry") };
}

static inline void end(void)
{
	store_free(store);
	registry_config_done(&config);
	strv_done(&texts);
	(void)close(mock_fetch.layout_fd);
}

/* Text of a blob of the registry. */
static inline const char *blob_text(const struct digest *d)
{
	struct buf b = BUF_INIT(LIMIT_MANIFEST_BYTES);
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(d));

	ck_assert_int_eq(file_read_at(mock_fetch.layout_fd, path, &b), 0);
	ck_assert_int_eq(strv_take(&texts, buf_take(&b)), 0);
	return texts.v[texts.n - 1];
}

static inline struct mock_tag *tag_new(const char *domain, const char *name)
{
	size_t i = 0;

	while (mock_fetch.tags[i].name) {
		i++;
	}
	mock_fetch.tags[i] = (struct mock_tag){ .domain = domain, .name = name };
	return &mock_fetch.tags[i];
}

/* An image of n layers under a tag of REG. */
static inline struct made serve(const char *tag, const char *seed, size_t n)
{
	struct made m = put_image(mock_fetch.layout_fd, "amd64", seed, n);

	tag_new(REG, tag)->text = blob_text(&m.manifest);
	return m;
}

static inline int try_pull(const char *name, struct pull_result *out_result, struct error *e)
{
	AUTO(ref) struct ref ref = ref_of("%s", name);

	return image_pull(store, &ref, &opts, out_result, e);
}

/* Was something fetched? */
static inline bool pull(const char *name, const char *stored)
{
	struct error e = ERROR_INIT;
	AUTO(pull_result) struct pull_result r = { .image = NULL };

	ck_assert_msg(try_pull(name, &r, &e) == 0, "%s", e.text);
	ck_assert_int_eq(e.code, ERRC_OK);
	ck_assert_ptr_nonnull(r.image);
	ck_assert_str_eq(r.name, stored);
	return r.pulled;
}

static inline void pull_fails(const char *name, enum errc code, const char *says)
{
	struct error e = ERROR_INIT;
	AUTO(pull_result) struct pull_result r = { .image = NULL };

	ck_assert_int_eq(try_pull(name, &r, &e), -1);
	ck_assert_msg(e.code == code, "%d: %s", (int)e.code, e.text);
	ck_assert_msg(strstr(e.text, says), "%s", e.text);
	ck_assert_ptr_null(r.image);
}

static inline bool is_named(const char *name, const struct digest *manifest)
{
	struct error e = ERROR_INIT;
	AUTO(descriptors) struct descriptors l = DESCRIPTORS_INIT;

	ck_assert_int_eq(store_index_load(store, &l, &e), 0);
	for (size_t i = 0; i < l.n; i++) {
		const char *is = l.v[i].annotations.ref_name;

		if (is && str_eq(is, name)) {
			return digest_eq(&l.v[i].digest, manifest);
		}
	}
	return false;
}

static inline char *part_path(const struct digest *d)
{
	return mem_printf("%s/%s", STORE_PARTIAL, digest_hex(d));
}

/* Bytes of a part file, -1 if there is none. */
static inline long part_bytes(const struct digest *d)
{
	autofree char *path = part_path(d);
	struct stat s;

	return fstatat(store_root_fd(store), path, &s, 0) < 0 ? -1 : (long)s.st_size;
}

static inline void part_put(const struct digest *d, const char *bytes, size_t n)
{
	autofree char *path = part_path(d);

	ck_assert_int_eq(file_mkdir_at(store_root_fd(store), STORE_PARTIAL, 0700), 0);
	ck_assert_int_eq(file_write_at(store_root_fd(store), path,
					 (struct span){ .p = bytes, .n = n }, false),
			0);
}

static inline void is_complete(const struct made *m)
{
	ck_assert(store_has_any_blob(store, &m->manifest));
	ck_assert(store_has_any_blob(store, &m->config));
	for (size_t i = 0; i < m->layers_n; i++) {
		ck_assert(store_has_any_blob(store, &m->layers[i]));
		ck_assert_int_eq(part_bytes(&m->layers[i]), -1);
	}
}

static inline void is_absent(const char *name)
{
	struct error e = ERROR_INIT;
	AUTO(ref) struct ref ref = ref_of("%s", name);
	AUTO(image) struct image *img = image_open(store, &ref, &opts.image, &e);

	ck_assert_ptr_null(img);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
}

#endif
