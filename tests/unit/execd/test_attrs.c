/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "../../../execd/attrs.h"
#include "../unit.h"

static const struct {
	uint64_t digits;
	mode_t mode;
} modes[] = {
	{ 0, 0 },
	{ 7, 07 },
	{ 644, 0644 },
	{ 755, 0755 },
	{ 1777, 01777 },
	{ 4755, 04755 },
	{ 7777, 07777 },
};

START_TEST(good_modes)
{
	mode_t mode = 1;

	ck_assert_int_eq(attrs_mode_parse(modes[_i].digits, &mode), 0);
	ck_assert_uint_eq(mode, modes[_i].mode);
	ck_assert_uint_eq(attrs_mode_digits(mode), modes[_i].digits);
}
END_TEST

START_TEST(bad_modes)
{
	static const uint64_t bad[] = { 8, 9, 80, 789, 888, 7778, 10000, 77777, UINT64_MAX };
	mode_t mode = 1;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ck_assert_int_eq(attrs_mode_parse(bad[i], &mode), -EINVAL);
	}
	ck_assert_uint_eq(mode, 1);
}
END_TEST

static struct files *sandbox(void)
{
	static struct files f = { .ids_max = 1000 };

	f.names.passwd = (struct buf)BUF_INIT(1000);
	f.names.group = (struct buf)BUF_INIT(1000);
	ck_assert_int_eq(buf_append_str(&f.names.passwd, "root:x:0:0::/:/bin/sh\n"
							 "app:x:100:200::/:/bin/sh\n"
							 "far:x:5000:1::/:/bin/sh\n"
							 "7:x:70:70::/:/bin/sh\n"),
			0);
	ck_assert_int_eq(buf_append_str(&f.names.group, "root:x:0:\nstaff:x:50:app\n"), 0);
	f.names.files.passwd.text = buf_span(&f.names.passwd);
	f.names.files.group.text = buf_span(&f.names.group);
	return &f;
}

static struct attrs parse(struct files *f, const char *text, int expected)
{
	AUTO(json) struct json *v = NULL;
	struct error e = ERROR_INIT;
	struct attrs a = ATTRS_INIT;

	v = json_parse(span_of(text), &e);
	ck_assert_ptr_nonnull(v);
	ck_assert_int_eq(attrs_parse(f, v, &a, &e), expected);
	ck_assert_int_eq(e.code, expected ? ERRC_INVALID : ERRC_OK);
	return a;
}

START_TEST(parses)
{
	struct files *f = sandbox();
	struct attrs a = parse(f, "{\"owner\":\"app\",\"group\":\"staff\",\"mode\":644}", 0);

	ck_assert_uint_eq(a.uid, 100);
	ck_assert_uint_eq(a.gid, 50);
	ck_assert(a.has_mode && a.mode == 0644);
	a = parse(f, "{\"owner\":null,\"group\":null,\"mode\":null}", 0);
	ck_assert(a.uid == (uid_t)-1 && a.gid == (gid_t)-1 && !a.has_mode);
	a = parse(f, "{\"owner\":\"\",\"mode\":0}", 0);
	ck_assert(a.uid == (uid_t)-1 && !a.has_mode);
	/* Unknown names, and ids that do not exist here, are left out. */
	a = parse(f, "{\"owner\":\"nosuch\",\"group\":\"nosuch\"}", 0);
	ck_assert(a.uid == (uid_t)-1 && a.gid == (gid_t)-1);
	a = parse(f, "{\"owner\":\"far\",\"group\":\"4294967295\"}", 0);
	ck_assert(a.uid == (uid_t)-1 && a.gid == (gid_t)-1);
	/* A name of digits is a name first. */
	a = parse(f, "{\"owner\":\"7\",\"group\":\"33\"}", 0);
	ck_assert(a.uid == 70 && a.gid == 33);
	passwd_book_done(&f->names);
}
END_TEST

START_TEST(refuses)
{
	static const char *const bad[] = { "[]", "\"755\"", "{\"mode\":\"755\"}", "{\"mode\":789}",
		"{\"mode\":-1}", "{\"mode\":7.5}", "{\"owner\":7}", "{\"group\":{}}" };
	struct files *f = sandbox();

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		(void)parse(f, bad[i], -1);
	}
	passwd_book_done(&f->names);
}
END_TEST

START_TEST(names)
{
	struct files *f = sandbox();
	uint32_t id = 0;

	/* Slots of the cache are shared by 0 and 16, 100 and 4. */
	for (int i = 0; i < 2; i++) {
		ck_assert_str_eq(passwd_book_user(&f->names, 0), "root");
		ck_assert_ptr_null(passwd_book_user(&f->names, 16));
		ck_assert_str_eq(passwd_book_user(&f->names, 100), "app");
		ck_assert_ptr_null(passwd_book_user(&f->names, 4));
		ck_assert_str_eq(passwd_book_group(&f->names, 50), "staff");
		ck_assert_ptr_null(passwd_book_group(&f->names, 100));
	}
	ck_assert_int_eq(passwd_book_uid(&f->names, "far", &id), 0);
	ck_assert_uint_eq(id, 5000);
	ck_assert_int_eq(passwd_book_gid(&f->names, "app", &id), -ENOENT);
	passwd_book_done(&f->names);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attrs");
	TCase *t = tcase_create("attrs");

	tcase_add_loop_test(t, good_modes, 0, ARRAY_SIZE(modes));
	tcase_add_test(t, bad_modes);
	tcase_add_test(t, parses);
	tcase_add_test(t, refuses);
	tcase_add_test(t, names);
	suite_add_tcase(s, t);
	return unit_run(s);
}
