/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/guess.h>

#include "../unit.h"

static const char *const names[] = {
	"run",
	"load",
	"images",
	"rmi",
	"completion",
	"network",
	"cap-add",
	"cap-drop",
	"an-option-that-is-longer-than-all-others-could-be",
};

static const struct {
	const char *typed;
	const char *meant;
} rows[] = {
	/* one slip of each kind */
	{ "rum", "run" },
	{ "rnu", "run" },
	{ "rn", "run" },
	{ "runn", "run" },
	{ "image", "images" },
	{ "iamges", "images" },
	{ "lod", "load" },
	/* two and three, in longer words */
	{ "imgaess", "images" },
	{ "netwrok", "network" },
	{ "compltoin", "completion" },
	{ "compelitons", "completion" },
	/* a beginning */
	{ "net", "network" },
	{ "comp", "completion" },
	{ "cap", "cap-add" },
	{ "cap-d", "cap-drop" },
	/* the nearest wins over the first */
	{ "cap-drp", "cap-drop" },
	/* nothing is near */
	{ "r", NULL },
	{ "", NULL },
	{ "ps", NULL },
	{ "exec", NULL },
	{ "lxxd", NULL },
	{ "nothing", NULL },
	{ "an-option-that-is-longer-than-all-others-could-be", NULL },
};

START_TEST(nearest)
{
	struct guess g = GUESS_INIT(span_of(rows[_i].typed));

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		guess_add(&g, names[i]);
	}
	ck_assert_pstr_eq(g.best, rows[_i].meant);
}
END_TEST

START_TEST(part_of_a_word)
{
	struct guess g = GUESS_INIT(((struct span){ .p = "netwok=host", .n = 6 }));

	guess_add(&g, "network");
	ck_assert_pstr_eq(g.best, "network");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("guess");
	TCase *tc = tcase_create("guess");

	tcase_add_loop_test(tc, nearest, 0, ARRAY_SIZE(rows));
	tcase_add_test(tc, part_of_a_word);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
