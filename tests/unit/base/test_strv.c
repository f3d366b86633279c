/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/strv.h>

#include "../unit.h"

START_TEST(empty_is_usable)
{
	AUTO(strv) struct strv sv = STRV_INIT;

	ck_assert_ptr_nonnull(strv_get(&sv));
	ck_assert_ptr_null(strv_get(&sv)[0]);
	ck_assert_uint_eq(strv_bytes(&sv), 0);
	ck_assert_ptr_null(strv_env_find(&sv, "A"));
	ck_assert_int_eq(strv_add_all(&sv, NULL), 0);
	strv_done(&sv);
	strv_done(NULL);
}
END_TEST

START_TEST(add_keeps_order_and_end)
{
	AUTO(strv) struct strv sv = STRV_INIT;

	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(strv_addf(&sv, "s%d", i), 0);
		ck_assert_uint_eq(sv.n, i + 1);
		ck_assert_ptr_null(sv.v[sv.n]);
	}
	ck_assert_str_eq(strv_get(&sv)[0], "s0");
	ck_assert_str_eq(strv_get(&sv)[99], "s99");
	ck_assert_uint_eq(strv_bytes(&sv), 10 * 3 + 90 * 4);
	strv_done(&sv);
	ck_assert_uint_eq(sv.n, 0);
	ck_assert_int_eq(strv_add(&sv, "again"), 0);
	ck_assert_str_eq(sv.v[0], "again");
}
END_TEST

START_TEST(is_bounded)
{
	AUTO(strv) struct strv sv = STRV_INIT;
	char word[] = "x";
	char *const more[] = { word, word, NULL };

	for (int i = 0; i < LIMIT_ARGS - 1; i++) {
		ck_assert_int_eq(strv_add(&sv, ""), 0);
	}
	ck_assert_int_eq(strv_add_all(&sv, more), -E2BIG);
	ck_assert_uint_eq(sv.n, LIMIT_ARGS);
	ck_assert_int_eq(strv_add(&sv, ""), -E2BIG);
	/* Freed by take: the leak check would say so. */
	ck_assert_int_eq(strv_take(&sv, mem_strdup("mine")), -E2BIG);
	ck_assert_int_eq(strv_env_set(&sv, "A=1"), -E2BIG);
	ck_assert_uint_eq(sv.n, LIMIT_ARGS);
	ck_assert_ptr_null(sv.v[LIMIT_ARGS]);
}
END_TEST

START_TEST(an_environment_is_bounded)
{
	AUTO(strv) struct strv env = STRV_INIT;

	for (int i = 0; i < LIMIT_ENV; i++) {
		ck_assert_int_eq(strv_addf(&env, "V%d=", i), 0);
	}
	ck_assert_int_eq(strv_env_set(&env, "W="), -E2BIG);
	ck_assert_int_eq(strv_env_set(&env, "V1=new"), 0);
	ck_assert_uint_eq(env.n, LIMIT_ENV);
}
END_TEST

START_TEST(env_replaces_by_name)
{
	AUTO(strv) struct strv env = STRV_INIT;

	ck_assert_int_eq(strv_env_set(&env, "A=1"), 0);
	ck_assert_int_eq(strv_env_set(&env, "AB=2"), 0);
	ck_assert_int_eq(strv_env_set(&env, "A=3=4"), 0);
	ck_assert_int_eq(strv_env_set(&env, "C="), 0);
	ck_assert_uint_eq(env.n, 3);
	ck_assert_str_eq(env.v[0], "A=3=4");
	ck_assert_str_eq(strv_env_find(&env, "A"), "3=4");
	ck_assert_str_eq(strv_env_find(&env, "AB"), "2");
	ck_assert_str_eq(strv_env_find(&env, "C"), "");
	ck_assert_ptr_null(strv_env_find(&env, "B"));
	ck_assert_ptr_null(strv_env_find(&env, ""));
	ck_assert_ptr_null(strv_env_find(&env, "AB=2"));
}
END_TEST

START_TEST(env_replaces_by_its_own_entry)
{
	AUTO(strv) struct strv env = STRV_INIT;

	ck_assert_int_eq(strv_env_set(&env, "A=1"), 0);
	ck_assert_int_eq(strv_env_set(&env, env.v[0]), 0);
	ck_assert_str_eq(env.v[0], "A=1");
}
END_TEST

START_TEST(env_refuses_no_entry)
{
	AUTO(strv) struct strv env = STRV_INIT;

	ck_assert_int_eq(strv_env_set(&env, ""), -EINVAL);
	ck_assert_int_eq(strv_env_set(&env, "A"), -EINVAL);
	ck_assert_int_eq(strv_env_set(&env, "=1"), -EINVAL);
	ck_assert_uint_eq(env.n, 0);
}
END_TEST

START_TEST(env_removes_by_name)
{
	AUTO(strv) struct strv env = STRV_INIT;

	ck_assert_ptr_null(strv_env_remove(&env, "A"));
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(strv_addf(&env, i % 2 ? "K%d=v" : "A=%d", i), 0);
	}
	ck_assert_int_eq(strv_add(&env, "AB=c"), 0);
	autofree char *value = strv_env_remove(&env, "A");

	ck_assert_str_eq(value, "0");
	ck_assert_uint_eq(env.n, 11);
	ck_assert_ptr_null(strv_env_find(&env, "A"));
	ck_assert_str_eq(env.v[0], "K1=v");
	ck_assert_str_eq(env.v[10], "AB=c");
	ck_assert_ptr_null(env.v[11]);
	ck_assert_ptr_null(strv_env_remove(&env, "A"));
	/* It can grow again. */
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(strv_addf(&env, "L%d=w", i), 0);
	}
	ck_assert_str_eq(env.v[30], "L19=w");
	ck_assert_ptr_null(env.v[31]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("strv");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, empty_is_usable);
	tcase_add_test(tc, add_keeps_order_and_end);
	tcase_add_test(tc, is_bounded);
	tcase_add_test(tc, an_environment_is_bounded);
	tcase_add_test(tc, env_replaces_by_name);
	tcase_add_test(tc, env_replaces_by_its_own_entry);
	tcase_add_test(tc, env_refuses_no_entry);
	tcase_add_test(tc, env_removes_by_name);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
