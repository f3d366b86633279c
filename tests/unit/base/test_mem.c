/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/mem.h>

#include "../unit.h"

START_TEST(array_is_zero)
{
	autofree unsigned int *p = mem_array(100, sizeof(*p));

	for (int i = 0; i < 100; i++) {
		ck_assert_uint_eq(p[i], 0);
	}
}
END_TEST

START_TEST(nothing_is_no_failure)
{
	autofree char *a = mem_array(0, 8);
	autofree char *b = mem_array(8, 0);
	autofree char *c = mem_resize(NULL, 0, 0, 4);
	autofree char *d = mem_dup(NULL, 0);

	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(b);
	ck_assert_ptr_nonnull(c);
	ck_assert_str_eq(d, "");
	ck_assert_ptr_null(mem_strdup(NULL));
}
END_TEST

START_TEST(resize_keeps_and_zeroes)
{
	uint16_t *p = mem_array(2, sizeof(*p));

	p[0] = 1;
	p[1] = 2;
	p = mem_resize(p, 2, 1000, sizeof(*p));
	ck_assert_uint_eq(p[0], 1);
	ck_assert_uint_eq(p[1], 2);
	for (int i = 2; i < 1000; i++) {
		ck_assert_uint_eq(p[i], 0);
	}
	p = mem_resize(p, 1000, 1, sizeof(*p));
	ck_assert_uint_eq(p[0], 1);
	free(p);
}
END_TEST

START_TEST(dup_takes_any_byte)
{
	autofree char *p = mem_dup("a\0b", 3);
	autofree char *s = mem_strdup("text");

	ck_assert_mem_eq(p, "a\0b", 4);
	ck_assert_str_eq(s, "text");
}
END_TEST

START_TEST(printf_formats)
{
	autofree char *s = mem_printf("%s-%05d", "a", 42);

	ck_assert_str_eq(s, "a-00042");
}
END_TEST

/* AddressSanitizer's allocator ends the process itself unless told to return NULL. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* The optimizer must not know the numbers. */
static volatile size_t huge = SIZE_MAX / 4;

START_TEST(product_overflow_aborts)
{
	free(mem_array(huge, 8));
}
END_TEST

START_TEST(resize_overflow_aborts)
{
	free(mem_resize(NULL, 0, huge, 8));
}
END_TEST

START_TEST(exhausted_memory_aborts)
{
	free(mem_array(huge, 1));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("mem");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, array_is_zero);
	tcase_add_test(tc, nothing_is_no_failure);
	tcase_add_test(tc, resize_keeps_and_zeroes);
	tcase_add_test(tc, dup_takes_any_byte);
	tcase_add_test(tc, printf_formats);
	tcase_add_test_raise_signal(tc, product_overflow_aborts, SIGABRT);
	tcase_add_test_raise_signal(tc, resize_overflow_aborts, SIGABRT);
	tcase_add_test_raise_signal(tc, exhausted_memory_aborts, SIGABRT);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
