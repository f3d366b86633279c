/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/record.h>

#include "../unit.h"

#define HEX_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define HEX_2 "2222222222222222222222222222222222222222222222222222222222222222"

struct fixture {
	struct sandbox_request req;
	struct image_layer layers[2];
	struct image img;
	struct idmap map;
	struct record record;
};

static void fixture_done(struct fixture *f)
{
	request_done(&f->req);
	free(f->record.path);
}
AUTO_DEFINE(fixture, struct fixture, fixture_done);

static void fixture_init(struct fixture *f)
{
	struct error e = ERROR_INIT;

	*f = (struct fixture){
		.layers = { { .chain = { "sha256:" HEX_1 } }, { .chain = { "sha256:" HEX_2 } } },
		.img = { .manifest = { "sha256:" HEX_2 }, .layers_n = 2 },
		.map = { .mode = IDMAP_MAPPED,
				.uids_n = 1,
				.uids = { { .outside = 700000, .count = 65536 } } },
		.record = RECORD_INIT,
	};
	f->img.layers = f->layers;
	f->record.dir_fd = unit_fd;
	f->record.path = mem_strdup(unit_path);
	id_new(&f->record.id);
	request_init(&f->req);
	f->req.image = mem_strdup("busybox:1");
	ck_assert_int_eq(strv_add(&f->req.command, "echo"), 0);
	ck_assert_int_eq(strv_add(&f->req.env, "A=\"quoted\"\n"), 0);
	ck_assert_int_eq(request_add_volume(&f->req, "/src:/dst:ro", &e), 0);
	ck_assert_int_eq(request_add_tmpfs(&f->req, "/t:1m", &e), 0);
}

static struct json *document_read(void)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);
	struct error e = ERROR_INIT;

	ck_assert_int_eq(file_read_at(unit_fd, "request.json", &text), 0);
	struct json *root = json_parse(buf_span(&text), &e);

	ck_assert_ptr_nonnull(root);
	return root;
}

START_TEST(writes_request_and_what_it_became)
{
	AUTO(fixture) struct fixture f = { .record = RECORD_INIT };
	struct error e = ERROR_INIT;
	uint64_t first = 0;
	struct stat st;

	fixture_init(&f);
	ck_assert_int_eq(record_save(&f.record, &f.req, &f.img, &f.map, &e), 0);
	ck_assert_int_eq(fstatat(unit_fd, "request.json", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	AUTO(json) struct json *root = document_read();
	const struct json *req = json_get(root, "request");
	const struct json *resolved = json_get(root, "resolved");

	ck_assert_str_eq(json_string(json_get(root, "id")), f.record.id.text);
	ck_assert_str_eq(json_string(json_get(req, "image")), "busybox:1");
	ck_assert_str_eq(json_string(json_first(json_get(req, "env"))), "A=\"quoted\"\n");
	ck_assert_str_eq(json_string(json_get(json_first(json_get(req, "volumes")), "source")),
			"/src");
	ck_assert_str_eq(json_string(json_first(json_get(req, "capabilities"))), "CAP_CHOWN");
	ck_assert_str_eq(json_string(json_get(req, "network")), "none");
	ck_assert_str_eq(json_string(json_get(resolved, "manifest")), "sha256:" HEX_2);
	ck_assert_uint_eq(json_size(json_get(resolved, "layers")), 2);
	ck_assert_str_eq(json_string(json_get(resolved, "idMode")), "mapped");
	ck_assert_int_eq(json_u64(json_get(resolved, "firstId"), UINT32_MAX, &first), 0);
	ck_assert_uint_eq(first, 700000);
}
END_TEST

/* A pending sandbox has a record before its image is known. */
START_TEST(is_written_anew)
{
	AUTO(fixture) struct fixture f = { .record = RECORD_INIT };
	AUTO(strv) struct strv refs = STRV_INIT;
	struct error e = ERROR_INIT;
	bool keep = false;

	fixture_init(&f);
	ck_assert_int_eq(record_save(&f.record, &f.req, NULL, &f.map, &e), 0);
	ck_assert_int_eq(record_load_refs(f.record.dir_fd, &keep, &refs), 0);
	ck_assert_uint_eq(refs.n, 0);
	ck_assert_int_eq(record_save(&f.record, &f.req, &f.img, &f.map, &e), 0);
	ck_assert_int_eq(record_load_refs(f.record.dir_fd, &keep, &refs), 0);
	ck_assert_uint_gt(refs.n, 0);
}
END_TEST

START_TEST(bounds_the_document)
{
	AUTO(fixture) struct fixture f = { .record = RECORD_INIT };
	struct error e = ERROR_INIT;
	autofree char *big = mem_array(LIMIT_ARGS_BYTES, 1);

	fixture_init(&f);
	/* Each byte becomes six. */
	memset(big, '\001', LIMIT_ARGS_BYTES - 1);
	ck_assert_int_eq(strv_add(&f.req.command, big), 0);
	ck_assert_int_eq(strv_add(&f.req.command, big), 0);
	ck_assert_int_eq(record_save(&f.record, &f.req, &f.img, &f.map, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	ck_assert_int_eq(faccessat(unit_fd, "request.json", F_OK, 0), -1);
}
END_TEST

START_TEST(reads_what_the_store_must_keep)
{
	AUTO(fixture) struct fixture f = { .record = RECORD_INIT };
	AUTO(strv) struct strv refs = STRV_INIT;
	struct error e = ERROR_INIT;
	bool keep = false;

	fixture_init(&f);
	f.req.keep = true;
	ck_assert_int_eq(record_save(&f.record, &f.req, &f.img, &f.map, &e), 0);
	ck_assert_int_eq(record_load_refs(unit_fd, &keep, &refs), 0);
	ck_assert(keep);
	ck_assert_uint_eq(refs.n, 3);
	ck_assert_str_eq(refs.v[0], "sha256:" HEX_2);
	ck_assert_str_eq(refs.v[1], "sha256:" HEX_1);
	ck_assert_str_eq(refs.v[2], "sha256:" HEX_2);
}
END_TEST

START_TEST(the_host_keeps_nothing)
{
	AUTO(fixture) struct fixture f = { .record = RECORD_INIT };
	AUTO(strv) struct strv refs = STRV_INIT;
	struct error e = ERROR_INIT;
	bool keep = true;

	fixture_init(&f);
	f.img = (struct image){ .is_host = true };
	ck_assert_int_eq(record_save(&f.record, &f.req, &f.img, &f.map, &e), 0);
	ck_assert_int_eq(record_load_refs(unit_fd, &keep, &refs), 0);
	ck_assert(!keep);
	ck_assert_uint_eq(refs.n, 0);
}
END_TEST

static const char *const bad[] = {
	"",
	"{",
	"[]",
	"{\"version\":1,\"keep\":true}",
	"{\"version\":2,\"keep\":true,\"resolved\":{\"layers\":[]}}",
	"{\"version\":1,\"keep\":1,\"resolved\":{\"layers\":[]}}",
	"{\"version\":1,\"keep\":true,\"resolved\":{\"layers\":[1]}}",
	"{\"version\":1,\"keep\":true,\"resolved\":[]}",
};

START_TEST(refuses_other_documents)
{
	AUTO(strv) struct strv refs = STRV_INIT;
	bool keep = false;

	ck_assert_int_eq(record_load_refs(unit_fd, &keep, &refs), -ENOENT);
	ck_assert_int_eq(file_write_at(unit_fd, "request.json", span_of(bad[_i]), false), 0);
	ck_assert_int_eq(record_load_refs(unit_fd, &keep, &refs), -EBADMSG);
	ck_assert_uint_eq(refs.n, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("record_json");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, writes_request_and_what_it_became);
	tcase_add_test(tc, is_written_anew);
	tcase_add_test(tc, bounds_the_document);
	tcase_add_test(tc, reads_what_the_store_must_keep);
	tcase_add_test(tc, the_host_keeps_nothing);
	tcase_add_loop_test(tc, refuses_other_documents, 0, ARRAY_SIZE(bad));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
