/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include <osbx/fd.h>
#include <osbx/logfile.h>
#include <osbx/mem.h>

#include "../unit.h"

static void add(struct logfile *l, enum log_stream stream, const char *text)
{
	logfile_add(l, stream, span_of(text));
}

/* A file of the log; freed by the caller. */
static char *file_text(const char *name)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);

	ck_assert_int_eq(file_read_at(unit_fd, name, &text), 0);
	return buf_take(&text);
}

static bool exists(const char *name)
{
	return faccessat(unit_fd, name, F_OK, 0) == 0;
}

/* All records as "1F:text|2P:text|"; freed by the caller. */
static char *records(void)
{
	AUTO(line_reader) struct line_reader r = { .fd = -1 };
	AUTO(buf) struct buf out = BUF_INIT(1U << 20);
	struct log_record rec;
	int n = 0;

	line_reader_init(&r, unit_fd, LOG_FILE, LOG_FILES);
	while ((n = log_record_next(&r, &rec)) > 0) {
		ck_assert_int_eq(buf_appendf(&out, "%d%c:%.*s|", rec.stream == LOG_STDERR ? 2 : 1,
						 rec.is_partial ? 'P' : 'F', (int)rec.text.n,
						 rec.text.p),
				0);
	}
	ck_assert_int_eq(n, 0);
	return buf_take(&out);
}

START_TEST(writes_lines_and_parts)
{
	AUTO(logfile) struct logfile l = LOGFILE_INIT;
	struct log_record r;

	ck_assert_int_eq(logfile_start(&l, unit_fd, LOG_FILE_BYTES), 0);
	add(&l, LOG_STDOUT, "one\ntwo\npart");
	add(&l, LOG_STDERR, "err\n");
	add(&l, LOG_STDOUT, "ed\n\nlast");
	autofree char *text = file_text("log");
	autofree char *got = records();
	char *end = strchr(text, '\n');

	ck_assert_str_eq(got, "1F:one|1F:two|1P:part|2F:err|1F:ed|1F:|1P:last|");
	*end = '\0';
	ck_assert_int_eq(log_record_parse(span_of(text), &r), 0);
	/* 2026-01-02T03:04:05.123456789Z */
	ck_assert_uint_eq(r.time.n, 30);
	ck_assert_int_eq(r.time.p[29], 'Z');
	ck_assert_int_eq(r.time.p[10], 'T');
}
END_TEST

START_TEST(splits_what_is_too_long)
{
	AUTO(logfile) struct logfile l = LOGFILE_INIT;
	AUTO(line_reader) struct line_reader r = { .fd = -1 };
	struct log_record rec;
	size_t n = 3 * (size_t)LOG_TEXT_BYTES;
	autofree char *text = mem_array(n + 2, 1);
	size_t sum = 0;

	memset(text, 'x', n);
	text[n] = '\n';
	ck_assert_int_eq(logfile_start(&l, unit_fd, LOG_FILE_BYTES), 0);
	add(&l, LOG_STDOUT, text);
	line_reader_init(&r, unit_fd, LOG_FILE, LOG_FILES);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(log_record_next(&r, &rec), 1);
		ck_assert_int_eq(rec.is_partial, i < 2);
		sum += rec.text.n;
	}
	ck_assert_uint_eq(sum, n);
	ck_assert_int_eq(log_record_next(&r, &rec), 0);
}
END_TEST

START_TEST(any_byte_survives)
{
	AUTO(logfile) struct logfile l = LOGFILE_INIT;
	AUTO(line_reader) struct line_reader r = { .fd = -1 };
	struct log_record rec;
	char text[257];

	for (int i = 0; i < 256; i++) {
		text[i] = (char)i;
	}
	text['\n'] = '-';
	text[256] = '\n';
	ck_assert_int_eq(logfile_start(&l, unit_fd, LOG_FILE_BYTES), 0);
	logfile_add(&l, LOG_STDOUT, (struct span){ .p = text, .n = 257 });
	line_reader_init(&r, unit_fd, LOG_FILE, LOG_FILES);
	ck_assert_int_eq(log_record_next(&r, &rec), 1);
	ck_assert_uint_eq(rec.text.n, 256);
	ck_assert_int_eq(memcmp(rec.text.p, text, 256), 0);
}
END_TEST

START_TEST(rotates_and_forgets_the_oldest)
{
	AUTO(logfile) struct logfile l = LOGFILE_INIT;
	struct stat st;

	/* One record has 42 bytes: two fit. */
	ck_assert_int_eq(logfile_start(&l, unit_fd, 90), 0);
	for (char c = 'a'; c <= 'i'; c++) {
		char line[] = { c, '\n', '\0' };

		add(&l, LOG_STDOUT, line);
	}
	autofree char *got = records();

	ck_assert_str_eq(got, "1F:e|1F:f|1F:g|1F:h|1F:i|");
	ck_assert(exists("log") && exists("log.1") && exists("log.2") && !exists("log.3"));
	ck_assert_int_eq(fstatat(unit_fd, "log.2", &st, 0), 0);
	ck_assert_int_le(st.st_size, 90);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
}
END_TEST

START_TEST(a_reader_follows_the_rotation)
{
	AUTO(logfile) struct logfile l = LOGFILE_INIT;
	AUTO(line_reader) struct line_reader r = { .fd = -1 };
	struct log_record rec;
	char last = 'a' - 1;

	line_reader_init(&r, unit_fd, LOG_FILE, LOG_FILES);
	ck_assert_int_eq(log_record_next(&r, &rec), 0);
	ck_assert_int_eq(logfile_start(&l, unit_fd, 90), 0);
	for (char c = 'a'; c <= 'z'; c++) {
		char line[] = { c, '\n', '\0' };

		add(&l, LOG_STDOUT, line);
		/* It looks at each fourth: what it has open has been renamed meanwhile. */
		while ((c - 'a') % 4 == 3 && log_record_next(&r, &rec) > 0) {
			ck_assert_int_eq(rec.text.p[0], last + 1);
			last = rec.text.p[0];
		}
	}
	ck_assert_int_eq(last, 'x');
}
END_TEST

START_TEST(a_reader_that_was_overtaken_goes_on)
{
	AUTO(logfile) struct logfile l = LOGFILE_INIT;
	AUTO(line_reader) struct line_reader r = { .fd = -1 };
	struct log_record rec;

	ck_assert_int_eq(logfile_start(&l, unit_fd, 90), 0);
	add(&l, LOG_STDOUT, "first\n");
	line_reader_init(&r, unit_fd, LOG_FILE, LOG_FILES);
	ck_assert_int_eq(log_record_next(&r, &rec), 1);
	for (int i = 0; i < 100; i++) {
		add(&l, LOG_STDOUT, "x\n");
	}
	add(&l, LOG_STDOUT, "last\n");
	int n = 0;
	char seen = 0;

	while (log_record_next(&r, &rec) > 0) {
		n++;
		seen = rec.text.p[0];
	}
	ck_assert_int_le(n, 7);
	ck_assert_int_eq(seen, 'l');
}
END_TEST

START_TEST(a_full_disk_loses_whole_records)
{
	AUTO(logfile) struct logfile l = LOGFILE_INIT;
	struct rlimit limit = { .rlim_cur = 100, .rlim_max = RLIM_INFINITY };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	/* The third record would cross the limit half-way. */
	ck_assert_int_eq(sigaction(SIGXFSZ, &ignore, NULL), 0);
	ck_assert_int_eq(logfile_start(&l, unit_fd, LOG_FILE_BYTES), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	add(&l, LOG_STDOUT, "a\n");
	add(&l, LOG_STDOUT, "b\n");
	add(&l, LOG_STDOUT, "c\n");
	limit.rlim_cur = RLIM_INFINITY;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_uint_eq(l.lost, 42);
	add(&l, LOG_STDOUT, "d\n");
	autofree char *got = records();

	ck_assert_str_eq(got, "1F:a|1F:b|1F:d|");
}
END_TEST

static const char *const bad[] = {
	"",
	"x",
	"2026-01-02T03:04:05.123456789Z",
	"2026-01-02T03:04:05.123456789Z stdout",
	"2026-01-02T03:04:05.123456789Z stdout F",
	"2026-01-02T03:04:05.123456789Z stdin F text",
};

START_TEST(other_lines_are_no_records)
{
	struct log_record r;

	ck_assert_int_eq(log_record_parse(span_of(bad[_i]), &r), -EBADMSG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("logfile");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, writes_lines_and_parts);
	tcase_add_test(tc, splits_what_is_too_long);
	tcase_add_test(tc, any_byte_survives);
	tcase_add_test(tc, rotates_and_forgets_the_oldest);
	tcase_add_test(tc, a_reader_follows_the_rotation);
	tcase_add_test(tc, a_reader_that_was_overtaken_goes_on);
	tcase_add_test(tc, a_full_disk_loses_whole_records);
	tcase_add_loop_test(tc, other_lines_are_no_records, 0, ARRAY_SIZE(bad));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
