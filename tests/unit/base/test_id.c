/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/id.h>
#include <osbx/str.h>

#include "../unit.h"

START_TEST(new_is_valid_and_new)
{
	struct id ids[64];

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		id_new(&ids[i]);
		ck_assert_uint_eq(strlen(ids[i].text), ID_LEN);
		ck_assert(id_is_valid(ids[i].text));
		for (size_t k = 0; k < i; k++) {
			ck_assert_str_ne(ids[i].text, ids[k].text);
		}
	}
}
END_TEST

START_TEST(new_varies_in_each_digit)
{
	struct id first;
	bool has_varied[ID_LEN] = { false };

	id_new(&first);
	for (int i = 0; i < 200; i++) {
		struct id id;

		id_new(&id);
		for (size_t k = 0; k < ID_LEN; k++) {
			has_varied[k] |= id.text[k] != first.text[k];
		}
	}
	for (size_t k = 0; k < ID_LEN; k++) {
		bool is_fixed = k == 8 || k == 13 || k == 14 || k == 18 || k == 23;

		ck_assert_int_eq(has_varied[k], !is_fixed);
	}
}
END_TEST

static const struct {
	const char *text;
	bool is_valid;
} forms[] = {
	{ "01234567-89ab-4cde-8f01-23456789abcd", true },
	{ "01234567-89ab-4cde-bf01-23456789abcd", true },
	{ "01234567-89ab-4cde-cf01-23456789abcd", false },
	{ "01234567-89ab-4cde-7f01-23456789abcd", false },
	{ "01234567-89ab-1cde-8f01-23456789abcd", false },
	{ "01234567-89AB-4cde-8f01-23456789abcd", false },
	{ "01234567-89ab-4cde-8f01-23456789abcg", false },
	{ "01234567-89ab-4cde-8f01-23456789abc", false },
	{ "01234567-89ab-4cde-8f01-23456789abcde", false },
	{ "01234567089ab-4cde-8f01-23456789abcd", false },
	{ "../../../../../../../etc/passwd12345", false },
	{ "01234567", false },
	{ "", false },
};

START_TEST(valid_is_strict)
{
	ck_assert_int_eq(id_is_valid(forms[_i].text), forms[_i].is_valid);
}
END_TEST

START_TEST(short_skips_the_dash)
{
	const struct id id = { .text = "01234567-89ab-4cde-8f01-23456789abcd" };
	char out[13];

	id_short(&id, out);
	ck_assert_str_eq(out, "0123456789ab");
}
END_TEST

START_TEST(random_hex_fills)
{
	char a[65];
	char b[65];
	char none[1] = { 'x' };

	id_random_hex(a, 32);
	id_random_hex(b, 32);
	ck_assert_uint_eq(strlen(a), 64);
	ck_assert(str_is_made_of(a, "0123456789abcdef"));
	ck_assert_str_ne(a, b);
	id_random_hex(none, 0);
	ck_assert_str_eq(none, "");
}
END_TEST

START_TEST(random_hex_varies_in_each_digit)
{
	bool has_varied[16] = { false };
	char first[17];

	id_random_hex(first, 8);
	for (int i = 0; i < 200; i++) {
		char other[17];

		id_random_hex(other, 8);
		for (size_t k = 0; k < 16; k++) {
			has_varied[k] |= other[k] != first[k];
		}
	}
	for (size_t k = 0; k < 16; k++) {
		ck_assert(has_varied[k]);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("id");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, new_is_valid_and_new);
	tcase_add_test(tc, new_varies_in_each_digit);
	tcase_add_loop_test(tc, valid_is_strict, 0, ARRAY_SIZE(forms));
	tcase_add_test(tc, short_skips_the_dash);
	tcase_add_test(tc, random_hex_fills);
	tcase_add_test(tc, random_hex_varies_in_each_digit);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
