/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/errnos.h>

#include "../unit.h"

START_TEST(known_ones)
{
	ck_assert_str_eq(errno_name(ENOENT), "ENOENT");
	ck_assert_str_eq(errno_text(ENOENT), "No such file or directory");
	ck_assert_int_eq(errno_from_name("EWOULDBLOCK"), -EINVAL);
	ck_assert_int_eq(errno_from_name("EAGAIN"), EAGAIN);
	ck_assert_int_eq(errno_from_name(""), -EINVAL);
	ck_assert_int_eq(errno_from_name("enoent"), -EINVAL);
}
END_TEST

START_TEST(numbers_without_a_name)
{
	static const int numbers[] = { -1, 0, 41, 58, EHWPOISON + 1, 4096 };

	ck_assert_ptr_null(errno_name(numbers[_i]));
	ck_assert_ptr_null(errno_text(numbers[_i]));
}
END_TEST

#ifdef __GLIBC__
START_TEST(as_glibc_has_them)
{
	const char *name = strerrorname_np(_i);

	if (!name) {
		ck_assert_ptr_null(errno_name(_i));
		return;
	}
	ck_assert_str_eq(errno_name(_i), name);
	ck_assert_str_eq(errno_text(_i), strerrordesc_np(_i));
	ck_assert_int_eq(errno_from_name(name), _i);
}
END_TEST
#endif

int main(void)
{
	Suite *s = suite_create("errnos");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, known_ones);
	tcase_add_loop_test(tc, numbers_without_a_name, 0, 6);
#ifdef __GLIBC__
	tcase_add_loop_test(tc, as_glibc_has_them, 1, 200);
#endif
	suite_add_tcase(s, tc);
	return unit_run(s);
}
