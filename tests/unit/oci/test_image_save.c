/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include <osbx/str.h>

#include "../../../oci/ustar.h"
#include "fixture.h"
#include "mock_unpack.h"

#define BLOCK 512

/* A header as a reader sees it. */
static void header_is(const char *h, const char *name, char type, uint64_t size)
{
	unsigned int sum = 0;
	char field[12];

	ck_assert_str_eq(h, name);
	ck_assert_int_eq(h[156], type);
	ck_assert_int_eq(memcmp(h + 257, "ustar\00000", 8), 0);
	(void)snprintf(field, sizeof(field), "%011llo", (unsigned long long)size);
	ck_assert_str_eq(h + 124, field);
	for (int i = 0; i < BLOCK; i++) {
		sum += i >= 148 && i < 156 ? ' ' : (unsigned char)h[i];
	}
	(void)snprintf(field, sizeof(field), "%06o", sum);
	ck_assert_str_eq(h + 148, field);
	ck_assert_int_eq(h[155], ' ');
}

static int file_of(const char *bytes)
{
	int fd = memfd_create("x", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_all(fd, bytes, strlen(bytes)), 0);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static char *bytes_of(int fd, size_t *out_n)
{
	AUTO(buf) struct buf b = BUF_INIT(1U << 20);

	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(fd_read_all(fd, &b), 0);
	*out_n = b.n;
	return buf_take(&b);
}

START_TEST(ustar_members)
{
	autoclose int fd = file_of("");
	autoclose int from = file_of("hello");
	autofree char *bytes = NULL;
	size_t n = 0;

	ck_assert_int_eq(ustar_dir(fd, "d/"), 0);
	ck_assert_int_eq(ustar_bytes(fd, "d/a", span_of("abc")), 0);
	ck_assert_int_eq(ustar_file(fd, "d/b", from, 5), 0);
	ck_assert_int_eq(ustar_bytes(fd, "empty", span_of("")), 0);
	ck_assert_int_eq(ustar_end(fd), 0);
	bytes = bytes_of(fd, &n);
	ck_assert_uint_eq(n, 8 * BLOCK);
	header_is(bytes, "d/", '5', 0);
	header_is(bytes + BLOCK, "d/a", '0', 3);
	ck_assert_str_eq(bytes + 2 * BLOCK, "abc");
	header_is(bytes + 3 * BLOCK, "d/b", '0', 5);
	ck_assert_str_eq(bytes + 4 * BLOCK, "hello");
	header_is(bytes + 5 * BLOCK, "empty", '0', 0);
	for (size_t i = 6 * BLOCK; i < n; i++) {
		ck_assert_int_eq(bytes[i], 0);
	}
}
END_TEST

START_TEST(ustar_sizes_must_be_true)
{
	autoclose int fd = file_of("");
	autoclose int from = file_of("hello");
	autoclose int longer = file_of("hello");

	ck_assert_int_eq(ustar_file(fd, "x", from, 6), -EIO);
	ck_assert_int_eq(ustar_file(fd, "x", longer, 4), -EFBIG);
}
END_TEST

/* Eleven octal digits end at 8 GiB. */
START_TEST(ustar_large_sizes)
{
	static const char record[] = "19 size=8589934592\n";
	autoclose int from = memfd_create("x", MFD_CLOEXEC);
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	char records[2 * BLOCK];
	int fds[2];

	/* The reader takes the header and goes. */
	ck_assert_int_eq(sigaction(SIGPIPE, &ignore, NULL), 0);
	ck_assert_int_eq(fd_pipe(fds, 0), 0);
	ck_assert_int_eq(ustar_file(fds[1], "big", from, 8ULL << 30), -EIO);
	ck_assert_int_eq(fd_read(fds[0], records, sizeof(records)), sizeof(records));
	ck_assert_int_eq(records[156], 'x');
	ck_assert_int_eq(memcmp(records + BLOCK, record, sizeof(record)), 0);
	(void)close(fds[0]);
	ck_assert_int_eq(ustar_end(fds[1]), -EPIPE);
	(void)close(fds[1]);
}
END_TEST

static struct store *store;
static struct made x;
static struct made y;

static void begin(void)
{
	struct idmap map = map_single();
	struct image_opts opts = { .map = &map, .platform = "linux/amd64" };
	autoclose int layout_fd = layout_new("lay");
	AUTO(strv) struct strv names = STRV_INIT;
	AUTO(ref) struct ref ref = ref_of("oci:%s/lay", unit_path);
	struct error e = ERROR_INIT;

	store = store_new();
	x = put_image(layout_fd, "amd64", "x", 2);
	y = put_image(layout_fd, "amd64", "y", 2);
	{
		autofree char *a = entry_named(&x, "x:1");
		autofree char *b = entry_named(&x, "x:2");
		autofree char *c = entry_named(&y, "ghcr.io/a/y:1");

		put_index(layout_fd, a, b, c);
	}
	ck_assert_msg(image_load(store, &ref, &opts, &names, &e) == 0, "%s", e.text);
}

static void end(void)
{
	store_free(store);
}

/* Unpack a tar of ours into a directory; the number of its members. */
static size_t untar(const char *bytes, size_t n, const char *dir)
{
	autoclose int fd = -1;
	size_t members = 0;

	ck_assert_int_eq(mkdirat(unit_fd, dir, 0700), 0);
	fd = openat(unit_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t at = 0; at < n && bytes[at]; members++) {
		const char *name = bytes + at;
		size_t size = 0;

		for (int i = 0; i < 11; i++) {
			size = size * 8 + (size_t)(bytes[at + 124 + (size_t)i] - '0');
		}
		header_is(bytes + at, name, bytes[at + 156], size);
		at += BLOCK;
		if (bytes[at - BLOCK + 156] == '5') {
			ck_assert_int_eq(mkdirat(fd, name, 0700), 0);
		} else {
			const struct span text = { .p = bytes + at, .n = size };

			ck_assert_int_eq(file_write_at(fd, name, text, false), 0);
		}
		at += (size + BLOCK - 1) / BLOCK * BLOCK;
	}
	return members;
}

static int save(const char *const *what, size_t n, int fd, struct error *e)
{
	struct ref refs[3];
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		refs[i] = ref_of("%s", what[i]);
	}
	r = image_save(store, refs, n, fd, e);
	for (size_t i = 0; i < n; i++) {
		ref_done(&refs[i]);
	}
	return r;
}

START_TEST(saves_a_layout)
{
	static const char *const what[] = { "x:1", "x:2", "ghcr.io/a/y:1" };
	autoclose int fd = file_of("");
	autofree char *bytes = NULL;
	struct error e = ERROR_INIT;
	struct idmap map = map_single();
	struct image_opts opts = { .map = &map, .platform = "linux/amd64" };
	AUTO(strv) struct strv names = STRV_INIT;
	AUTO(ref) struct ref ref = ref_of("oci:%s/out", unit_path);
	size_t n = 0;

	ck_assert_msg(save(what, 3, fd, &e) == 0, "%s", e.text);
	bytes = bytes_of(fd, &n);
	/* Two files and two directories; two manifests, two configurations, three layers. */
	ck_assert_uint_eq(untar(bytes, n, "out"), 4 + 7);
	ck_assert_msg(image_load(store, &ref, &opts, &names, &e) == 0, "%s", e.text);
	ck_assert_uint_eq(names.n, 3);
	ck_assert_str_eq(names.v[0], "docker.io/library/x:1");
	ck_assert_str_eq(names.v[1], "docker.io/library/x:2");
	ck_assert_str_eq(names.v[2], "ghcr.io/a/y:1");
}
END_TEST

START_TEST(same_image_same_bytes)
{
	static const char *const what[] = { "x:1" };
	autoclose int a_fd = file_of("");
	autoclose int b_fd = file_of("");
	struct error e = ERROR_INIT;
	size_t a_n = 0;
	size_t b_n = 0;

	ck_assert_int_eq(save(what, 1, a_fd, &e), 0);
	ck_assert_int_eq(save(what, 1, b_fd, &e), 0);
	{
		autofree char *a = bytes_of(a_fd, &a_n);
		autofree char *b = bytes_of(b_fd, &b_n);

		ck_assert_uint_eq(a_n, b_n);
		ck_assert_int_eq(memcmp(a, b, a_n), 0);
	}
}
END_TEST

START_TEST(by_digest_without_a_name)
{
	const char *const what[] = { x.manifest.text };
	autoclose int fd = file_of("");
	struct error e = ERROR_INIT;
	autofree char *bytes = NULL;
	size_t n = 0;

	ck_assert_int_eq(save(what, 1, fd, &e), 0);
	bytes = bytes_of(fd, &n);
	ck_assert_ptr_null(memmem(bytes, n, "ref.name", 8));
	ck_assert_ptr_nonnull(memmem(bytes, n, x.manifest.text, strlen(x.manifest.text)));
}
END_TEST

START_TEST(missing_blob_writes_nothing)
{
	static const char *const what[] = { "x:1" };
	autofree char *path = mem_printf("blobs/sha256/%s", digest_hex(&x.layers[1]));
	autoclose int fd = file_of("");
	struct error e = ERROR_INIT;

	ck_assert_int_eq(unlinkat(store_root_fd(store), path, 0), 0);
	ck_assert_int_eq(save(what, 1, fd, &e), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	ck_assert_ptr_nonnull(strstr(e.text, x.layers[1].text));
	ck_assert_int_eq(lseek(fd, 0, SEEK_END), 0);
}
END_TEST

START_TEST(full_disk_is_said)
{
	static const char *const what[] = { "x:1" };
	autoclose int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct error e = ERROR_INIT;

	ck_assert_int_eq(save(what, 1, fd, &e), -1);
	ck_assert_int_eq(e.code, ERRC_SYSTEM);
	ck_assert_int_eq(e.sysno, ENOSPC);
}
END_TEST

static const char *const bad[] = { "none", "oci:x:1", "@host" };

START_TEST(only_what_is_stored)
{
	autoclose int fd = file_of("");
	struct error e = ERROR_INIT;

	ck_assert_int_eq(save(&bad[_i], 1, fd, &e), -1);
	ck_assert_int_eq(e.code, _i == 0 ? ERRC_NOT_FOUND : ERRC_INVALID);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("image_save");
	TCase *format = tcase_create("ustar");
	TCase *tc = tcase_create("save");

	tcase_add_test(format, ustar_members);
	tcase_add_test(format, ustar_sizes_must_be_true);
	tcase_add_test(format, ustar_large_sizes);
	suite_add_tcase(s, format);
	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, saves_a_layout);
	tcase_add_test(tc, same_image_same_bytes);
	tcase_add_test(tc, by_digest_without_a_name);
	tcase_add_test(tc, missing_blob_writes_nothing);
	tcase_add_test(tc, full_disk_is_said);
	tcase_add_loop_test(tc, only_what_is_stored, 0, ARRAY_SIZE(bad));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
