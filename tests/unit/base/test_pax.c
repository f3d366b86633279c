/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/mman.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/pax.h>

#include "../../../src/base/pax.h"
#include "../unit.h"

static int stream_fd = -1;
static struct pax_reader reader;
static struct pax_entry entry;

static void stream_open(void)
{
	stream_fd = memfd_create("stream", MFD_CLOEXEC);
	ck_assert_int_ge(stream_fd, 0);
}

static void stream_close(void)
{
	close(stream_fd);
}

static void rewind_stream(void)
{
	ck_assert_int_eq(lseek(stream_fd, 0, SEEK_SET), 0);
	pax_reader_init(&reader, stream_fd);
}

static void put(const void *p, size_t n)
{
	ck_assert_int_eq(fd_write_all(stream_fd, p, n), 0);
}

/* A header with a right checksum. */
static struct pax_header header(char type, const char *name, const char *size)
{
	struct pax_header h = { .type = type, .mode = "0000644", .uid = "0000000" };

	memcpy(h.gid, "0000000", 8);
	memcpy(h.mtime, "00000000000", 12);
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	memcpy(h.name, name, strlen(name));
	memcpy(h.size, size, strlen(size));
	return h;
}

static void header_put(struct pax_header h)
{
	char text[16];

	snprintf(text, sizeof(text), "%06o", pax_checksum(&h));
	memcpy(h.checksum, text, 7);
	h.checksum[7] = ' ';
	put(&h, sizeof(h));
}

static void data_put(const char *text, size_t n)
{
	static const char zeros[PAX_BLOCK];

	put(text, n);
	put(zeros, (PAX_BLOCK - n % PAX_BLOCK) % PAX_BLOCK);
}

/* A header of that type with data. */
static void member_put(char type, const char *name, const char *text)
{
	char size[32];

	snprintf(size, sizeof(size), "%011zo", strlen(text));
	size[11] = '\0';
	header_put(header(type, name, size));
	data_put(text, strlen(text));
}

static void next(void)
{
	struct error e = ERROR_INIT;

	ck_assert_msg(pax_next(&reader, &entry, &e) == 1, "%s", e.text);
}

static struct error refused(void)
{
	struct error e = ERROR_INIT;

	rewind_stream();
	ck_assert_int_eq(pax_next(&reader, &entry, &e), -1);
	ck_assert_int_ne(e.code, ERRC_OK);
	return e;
}

START_TEST(round_trip)
{
	struct pax_entry out = {
		.type = PAX_FILE,
		.mode = 04755,
		.uid = 1000,
		.gid = 4294967294U,
		.size = 5,
		.mtime = { .tv_sec = 1000000000 },
		.name = "dir/file",
	};
	struct error e = ERROR_INIT;
	char text[8];

	ck_assert_int_eq(pax_write_header(stream_fd, &out), 0);
	put("hello", 5);
	ck_assert_int_eq(pax_write_padding(stream_fd, 5), 0);
	out = (struct pax_entry){ .type = PAX_SYMLINK, .mode = 0777, .name = "l", .target = "to" };
	ck_assert_int_eq(pax_write_header(stream_fd, &out), 0);
	ck_assert_int_eq(pax_write_end(stream_fd), 0);
	rewind_stream();
	next();
	ck_assert_int_eq(entry.type, PAX_FILE);
	ck_assert_uint_eq(entry.mode, 04755);
	ck_assert_uint_eq(entry.uid, 1000);
	ck_assert_uint_eq(entry.gid, 4294967294U);
	ck_assert_uint_eq(entry.size, 5);
	ck_assert_int_eq(entry.mtime.tv_sec, 1000000000);
	ck_assert_str_eq(entry.name, "dir/file");
	ck_assert_int_eq(pax_read(&reader, text, sizeof(text), &e), 5);
	ck_assert_mem_eq(text, "hello", 5);
	ck_assert_int_eq(pax_read(&reader, text, sizeof(text), &e), 0);
	next();
	ck_assert_int_eq(entry.type, PAX_SYMLINK);
	ck_assert_str_eq(entry.target, "to");
	ck_assert_int_eq(pax_next(&reader, &entry, &e), 0);
	ck_assert_int_eq(pax_drain(&reader, &e), 0);
	ck_assert(!reader.failed);
}
END_TEST

/* Around the width of the fields, and around where a record's length gets one more digit. */
static const size_t lengths[] = { 1, 86, 87, 88, 89, 99, 100, 101, 985, 986, 987, 988, 4095 };

START_TEST(names_of_any_length)
{
	struct pax_entry out = { .type = PAX_SYMLINK };
	size_t n = lengths[_i];

	memset(out.name, 'n', n);
	memset(out.target, 't', n);
	ck_assert_int_eq(pax_write_header(stream_fd, &out), 0);
	rewind_stream();
	next();
	ck_assert_str_eq(entry.name, out.name);
	ck_assert_str_eq(entry.target, out.target);
}
END_TEST

START_TEST(size_beyond_octal)
{
	const struct pax_entry out = { .type = PAX_FILE, .size = UINT64_C(1) << 40, .name = "f" };

	ck_assert_int_eq(pax_write_header(stream_fd, &out), 0);
	rewind_stream();
	next();
	ck_assert_uint_eq(entry.size, UINT64_C(1) << 40);
}
END_TEST

START_TEST(base_256)
{
	struct pax_header h = header('0', "f", "");

	h.size[0] = (char)0x80;
	h.size[6] = 2;
	header_put(h);
	rewind_stream();
	next();
	ck_assert_uint_eq(entry.size, UINT64_C(2) << 40);
}
END_TEST

START_TEST(gnu_long_names)
{
	char *name = mem_array(301, 1);
	struct pax_header h = header('2', "short", "00000000000");

	memset(name, 'x', 300);
	member_put('L', "././@LongLink", name);
	member_put('K', "././@LongLink", "target");
	memcpy(h.link, "t", 1);
	header_put(h);
	rewind_stream();
	next();
	ck_assert_str_eq(entry.name, name);
	ck_assert_str_eq(entry.target, "target");
	free(name);
}
END_TEST

START_TEST(prefix_of_posix_only)
{
	struct pax_header h = header('0', "name", "00000000000");

	memcpy(h.prefix, "prefix", 6);
	header_put(h);
	memcpy(h.magic, "ustar ", 6);
	header_put(h);
	rewind_stream();
	next();
	ck_assert_str_eq(entry.name, "prefix/name");
	next();
	ck_assert_str_eq(entry.name, "name");
}
END_TEST

START_TEST(old_directory)
{
	header_put(header('\0', "dir/", "00000000000"));
	rewind_stream();
	next();
	ck_assert_int_eq(entry.type, PAX_DIR);
}
END_TEST

START_TEST(records_apply_once)
{
	member_put('x', "r", "14 path=first\n24 comment=of no import\n");
	member_put('0', "a", "data");
	member_put('g', "g", "14 path=never\n");
	member_put('0', "b", "");
	rewind_stream();
	next();
	ck_assert_str_eq(entry.name, "first");
	next();
	ck_assert_str_eq(entry.name, "b");
}
END_TEST

static const char *const bad_records[] = {
	"x",
	"13",
	"13 ",
	"99999999999999999999 path=x\n",
	"12 path=first\n",
	"15 path=first\n",
	"0 path=x\n",
	"4 =x\n",
	"6 path\n",
	"8 path=\n",
	"10 size=-1\n",
	"10 size=0x\n",
	"29 size=18446744073709551615\n",
	"18 uid=4294967295\n",
	"18 gid=9999999999\n",
	"22 GNU.sparse.major=1\n",
};

START_TEST(bad_record_is_refused)
{
	member_put('x', "r", bad_records[_i]);
	header_put(header('0', "a", "00000000000"));
	(void)refused();
}
END_TEST

START_TEST(record_with_nul_is_refused)
{
	header_put(header('x', "r", "00000000013"));
	data_put("11 path=\0a\n", 11);
	header_put(header('0', "a", "00000000000"));
	(void)refused();
}
END_TEST

START_TEST(descriptions_are_bounded)
{
	for (int i = 0; i < 20; i++) {
		member_put('x', "r", "");
	}
	header_put(header('0', "a", "00000000000"));
	(void)refused();
}
END_TEST

START_TEST(long_description_is_refused)
{
	header_put(header("xLg"[_i], "r", "77777777777"));
	(void)refused();
}
END_TEST

START_TEST(types_that_are_refused)
{
	header_put(header("SVDMA"[_i], "r", "00000000000"));
	ck_assert_int_eq(refused().code, ERRC_UNSUPPORTED);
}
END_TEST

START_TEST(data_where_none_belongs)
{
	struct pax_header h = header("12346"[_i], "r", "00000000001");

	memcpy(h.link, "t", 1);
	header_put(h);
	(void)refused();
}
END_TEST

START_TEST(names_must_be)
{
	header_put(_i == 0 ? header('0', "", "00000000000") : header('2', "l", "00000000000"));
	(void)refused();
}
END_TEST

START_TEST(numbers_must_be)
{
	struct pax_header h = header('0', "f", "00000000000");

	if (_i == 0) {
		memcpy(h.size, "0000000000x", 11);
	} else if (_i == 1) {
		memset(h.size, 0xff, sizeof(h.size));
	} else {
		memcpy(h.uid, "8", 2);
	}
	header_put(h);
	(void)refused();
}
END_TEST

START_TEST(checksum)
{
	struct pax_header h = header('0', "f", "00000000000");

	memcpy(h.checksum, "0000000", 8);
	put(&h, sizeof(h));
	ck_assert_ptr_nonnull(strstr(refused().text, "no tar archive"));
}
END_TEST

static const struct {
	const char *p;
	size_t n;
} magics[] = {
	{ "\x1f\x8b\x08", 3 },
	{ "BZh9", 4 },
	{ "\xfd\x37\x7a\x58\x5a\x00", 6 },
	{ "\x28\xb5\x2f\xfd", 4 },
};

START_TEST(compressed)
{
	put(magics[_i].p, magics[_i].n);
	ck_assert_int_eq(refused().code, ERRC_UNSUPPORTED);
	ck_assert_int_eq(ftruncate(stream_fd, 4096), 0);
	ck_assert_int_eq(refused().code, ERRC_UNSUPPORTED);
}
END_TEST

START_TEST(cut_short)
{
	struct error e = ERROR_INIT;
	char text[8];

	member_put('0', "f", "data");
	ck_assert_int_eq(ftruncate(stream_fd, PAX_BLOCK + 2), 0);
	rewind_stream();
	next();
	ck_assert_int_eq(pax_read(&reader, text, sizeof(text), &e), 2);
	ck_assert_int_eq(pax_read(&reader, text, sizeof(text), &e), -1);
	ck_assert(reader.failed);
	error_clear(&e);
	ck_assert_int_eq(ftruncate(stream_fd, 0), 0);
	rewind_stream();
	ck_assert_int_eq(pax_next(&reader, &entry, &e), -1);
	ck_assert(reader.failed);
}
END_TEST

START_TEST(data_is_skipped)
{
	member_put('0', "a", "some data that nobody reads");
	member_put('0', "b", "");
	rewind_stream();
	next();
	next();
	ck_assert_str_eq(entry.name, "b");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pax");
	TCase *tc = tcase_create("pax");

	tcase_add_checked_fixture(tc, stream_open, stream_close);
	tcase_add_test(tc, round_trip);
	tcase_add_loop_test(tc, names_of_any_length, 0, ARRAY_SIZE(lengths));
	tcase_add_test(tc, size_beyond_octal);
	tcase_add_test(tc, base_256);
	tcase_add_test(tc, gnu_long_names);
	tcase_add_test(tc, prefix_of_posix_only);
	tcase_add_test(tc, old_directory);
	tcase_add_test(tc, records_apply_once);
	tcase_add_loop_test(tc, bad_record_is_refused, 0, ARRAY_SIZE(bad_records));
	tcase_add_test(tc, record_with_nul_is_refused);
	tcase_add_test(tc, descriptions_are_bounded);
	tcase_add_loop_test(tc, long_description_is_refused, 0, 3);
	tcase_add_loop_test(tc, types_that_are_refused, 0, 5);
	tcase_add_loop_test(tc, data_where_none_belongs, 0, 5);
	tcase_add_loop_test(tc, names_must_be, 0, 2);
	tcase_add_loop_test(tc, numbers_must_be, 0, 3);
	tcase_add_test(tc, checksum);
	tcase_add_loop_test(tc, compressed, 0, ARRAY_SIZE(magics));
	tcase_add_test(tc, cut_short);
	tcase_add_test(tc, data_is_skipped);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
