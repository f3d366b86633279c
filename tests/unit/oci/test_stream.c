/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/fd.h>
#include <osbx/image.h>

#include "../../../oci/stream.h"
#include "tarmake.h"

#define MAX (4U << 20)

static struct unpack_usage usage;

static struct stream_opts opts_of(int fd, uint64_t size)
{
	return (struct stream_opts){
		.fd = fd,
		.copy_fd = -1,
		.size = size,
		.verify = true,
		.budget = MAX,
		.usage = &usage,
		.index = 3,
	};
}

static int read_all(struct stream *s, struct buf *out, struct error *e)
{
	struct span plain = { .n = 0 };

	do {
		if (stream_next(s, &plain, e) < 0) {
			return -1;
		}
		tarmake_put(out, plain.p, plain.n);
	} while (plain.n > 0);
	return 0;
}

static void pack(int kind, struct buf *out, struct span data)
{
	if (kind == IMAGE_GZIP) {
		tarmake_gzip(out, data);
	} else if (kind == IMAGE_ZSTD) {
		tarmake_zstd(out, data);
	} else {
		tarmake_put(out, data.p, data.n);
	}
}

START_TEST(hashes_copies_and_counts)
{
	AUTO(buf) struct buf plain = BUF_INIT(MAX);
	AUTO(buf) struct buf blob = BUF_INIT(MAX);
	AUTO(buf) struct buf got = BUF_INIT(MAX);
	AUTO(buf) struct buf copied = BUF_INIT(MAX);
	struct error e = ERROR_INIT;
	struct digest want[2];
	struct digest have[2];
	struct stream_opts opts;

	for (int i = 0; i < 300000; i++) {
		tarmake_put(&plain, &"0123456789"[i % 10], 1);
	}
	pack(_i, &blob, buf_span(&plain));
	ck_assert_int_eq(digest_of(buf_span(&blob), &want[0], &e), 0);
	ck_assert_int_eq(digest_of(buf_span(&plain), &want[1], &e), 0);
	autoclose int fd = tarmake_fd(buf_span(&blob));
	autoclose int copy = tarmake_fd(span_of(""));

	opts = opts_of(fd, blob.n);
	opts.copy_fd = copy;
	AUTO(stream) struct stream *s = stream_new(&opts, &e);

	ck_assert_ptr_nonnull(s);
	ck_assert_int_eq(read_all(s, &got, &e), 0);
	stream_end(s, &have[0], &have[1]);
	ck_assert(span_eq(buf_span(&got), buf_span(&plain)));
	ck_assert_str_eq(have[0].text, want[0].text);
	ck_assert_str_eq(have[1].text, want[1].text);
	ck_assert_int_eq(lseek(copy, 0, SEEK_SET), 0);
	ck_assert_int_eq(fd_read_all(copy, &copied), 0);
	ck_assert(span_eq(buf_span(&copied), buf_span(&blob)));
	ck_assert_uint_eq(usage.bytes, plain.n);
	ck_assert_uint_eq(usage.done[3], blob.n);
}
END_TEST

START_TEST(a_pipe_will_do)
{
	AUTO(buf) struct buf blob = BUF_INIT(MAX);
	AUTO(buf) struct buf got = BUF_INIT(MAX);
	struct error e = ERROR_INIT;
	int ends[2];

	tarmake_gzip(&blob, span_of("through a pipe"));
	ck_assert_int_eq(fd_pipe(ends, 0), 0);
	ck_assert_int_eq(fd_write_all(ends[1], blob.p, blob.n), 0);
	fd_close(&ends[1]);
	struct stream_opts opts = opts_of(ends[0], blob.n);
	AUTO(stream) struct stream *s = stream_new(&opts, &e);

	ck_assert_int_eq(read_all(s, &got, &e), 0);
	ck_assert(span_eq(buf_span(&got), span_of("through a pipe")));
	fd_close(&ends[0]);
}
END_TEST

START_TEST(size_must_be_right)
{
	static const struct {
		int delta;
		const char *text;
	} rows[] = { { -1, "more bytes" }, { 1, "fewer bytes" }, { 1000000, "fewer bytes" } };
	AUTO(buf) struct buf blob = BUF_INIT(MAX);
	AUTO(buf) struct buf got = BUF_INIT(MAX);
	struct error e = ERROR_INIT;

	pack(_i % IMAGE_COMPRESSION_COUNT, &blob, span_of("some data"));
	autoclose int fd = tarmake_fd(buf_span(&blob));
	struct stream_opts opts =
			opts_of(fd, blob.n + (uint64_t)rows[_i / IMAGE_COMPRESSION_COUNT].delta);
	AUTO(stream) struct stream *s = stream_new(&opts, &e);

	ck_assert(!s || read_all(s, &got, &e) < 0);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, rows[_i / IMAGE_COMPRESSION_COUNT].text));
}
END_TEST

START_TEST(copy_reads_to_the_end)
{
	AUTO(buf) struct buf blob = BUF_INIT(MAX);
	struct error e = ERROR_INIT;
	struct digest want;
	struct digest have[2];

	for (int i = 0; i < 100000; i++) {
		tarmake_put(&blob, "no compressed data ", 19);
	}
	ck_assert_int_eq(digest_of(buf_span(&blob), &want, &e), 0);
	autoclose int fd = tarmake_fd(buf_span(&blob));
	struct stream_opts opts = opts_of(fd, blob.n);
	AUTO(stream) struct stream *s = stream_new(&opts, &e);

	ck_assert_int_eq(stream_copy(s, &e), 0);
	stream_end(s, &have[0], &have[1]);
	ck_assert_str_eq(have[0].text, want.text);
}
END_TEST

START_TEST(budget_is_of_all_streams)
{
	AUTO(buf) struct buf blob = BUF_INIT(MAX);
	struct error e = ERROR_INIT;

	tarmake_gzip(&blob, span_of("0123456789"));
	usage.bytes = 0;
	for (int i = 0; i < 3; i++) {
		AUTO(buf) struct buf got = BUF_INIT(MAX);
		autoclose int fd = tarmake_fd(buf_span(&blob));
		struct stream_opts opts = opts_of(fd, blob.n);

		opts.budget = 20;
		AUTO(stream) struct stream *s = stream_new(&opts, &e);

		ck_assert_ptr_nonnull(s);
		ck_assert_int_eq(read_all(s, &got, &e), i < 2 ? 0 : -1);
	}
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	ck_assert_ptr_nonnull(strstr(e.hint, "--unpack-max"));
}
END_TEST

START_TEST(cut_off)
{
	AUTO(buf) struct buf blob = BUF_INIT(MAX);
	AUTO(buf) struct buf got = BUF_INIT(MAX);
	struct error e = ERROR_INIT;

	pack(_i, &blob, span_of("some data"));
	blob.n -= 2;
	autoclose int fd = tarmake_fd(buf_span(&blob));
	struct stream_opts opts = opts_of(fd, blob.n);
	AUTO(stream) struct stream *s = stream_new(&opts, &e);

	ck_assert_int_eq(read_all(s, &got, &e), -1);
	ck_assert_str_eq(e.text, "compressed data is cut off");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("stream");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, hashes_copies_and_counts, 0, IMAGE_COMPRESSION_COUNT);
	tcase_add_test(tc, a_pipe_will_do);
	tcase_add_loop_test(tc, size_must_be_right, 0, 3 * IMAGE_COMPRESSION_COUNT);
	tcase_add_test(tc, copy_reads_to_the_end);
	tcase_add_test(tc, budget_is_of_all_streams);
	tcase_add_loop_test(tc, cut_off, IMAGE_GZIP, IMAGE_COMPRESSION_COUNT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
