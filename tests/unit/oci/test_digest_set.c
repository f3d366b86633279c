/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../oci/digest_set.h"
#include "../unit.h"

/* Digests that differ late, so that some hash alike. */
static struct digest number(int i)
{
	struct digest d = { .text = "" };

	(void)snprintf(d.text, sizeof(d.text), "sha256:%064x", i);
	if (i % 2) {
		memcpy(d.text + 7, "fedcba9876543210", 16);
	}
	return d;
}

START_TEST(empty_has_nothing)
{
	AUTO(digest_set) struct digest_set s = DIGEST_SET_INIT;
	struct digest d = number(1);

	ck_assert(!digest_set_has(&s, &d));
}
END_TEST

START_TEST(has_what_was_added)
{
	AUTO(digest_set) struct digest_set s = DIGEST_SET_INIT;

	for (int i = 0; i < 1000; i++) {
		struct digest d = number(2 * i + i % 2);

		ck_assert(digest_set_add(&s, &d));
		ck_assert(!digest_set_add(&s, &d));
	}
	ck_assert_uint_eq(s.n, 1000);
	for (int i = 0; i < 1000; i++) {
		struct digest in = number(2 * i + i % 2);
		struct digest out = number(2 * i + !(i % 2));

		ck_assert(digest_set_has(&s, &in));
		ck_assert(!digest_set_has(&s, &out));
	}
}
END_TEST

START_TEST(done_twice)
{
	struct digest_set s = DIGEST_SET_INIT;
	struct digest d = number(3);

	ck_assert(digest_set_add(&s, &d));
	digest_set_done(&s);
	digest_set_done(&s);
	ck_assert(!digest_set_has(&s, &d));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("digest_set");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, empty_has_nothing);
	tcase_add_test(tc, has_what_was_added);
	tcase_add_test(tc, done_twice);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
