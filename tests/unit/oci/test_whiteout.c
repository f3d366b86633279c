/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/compiler.h>

#include "../../../oci/whiteout.h"
#include "../unit.h"

static const struct {
	const char *path;
	enum whiteout kind;
	const char *name;
} rows[] = {
	{ "", WHITEOUT_NONE, NULL },
	{ "a", WHITEOUT_NONE, NULL },
	{ "a.wh.b", WHITEOUT_NONE, NULL },
	{ "x.wh./b", WHITEOUT_NONE, NULL },
	{ ".wh", WHITEOUT_NONE, NULL },
	{ ".wh.a", WHITEOUT_PLAIN, "a" },
	{ "d/e/.wh.a", WHITEOUT_PLAIN, "a" },
	{ ".wh..a", WHITEOUT_PLAIN, ".a" },
	{ ".wh....", WHITEOUT_PLAIN, "..." },
	{ ".wh..wh.a", WHITEOUT_IGNORED, NULL },
	{ ".wh..wh..opq", WHITEOUT_OPAQUE, NULL },
	{ "d/.wh..wh..opq", WHITEOUT_OPAQUE, NULL },
	{ ".wh..wh..opq.x", WHITEOUT_IGNORED, NULL },
	{ ".wh..wh.plnk", WHITEOUT_IGNORED, NULL },
	{ ".wh..wh.plnk/1.2", WHITEOUT_IGNORED, NULL },
	{ "d/.wh..wh.aufs", WHITEOUT_IGNORED, NULL },
	{ ".wh.", WHITEOUT_INVALID, NULL },
	{ "d/.wh.", WHITEOUT_INVALID, NULL },
	{ ".wh..", WHITEOUT_INVALID, NULL },
	{ ".wh...", WHITEOUT_INVALID, NULL },
	{ ".wh.d/x", WHITEOUT_INVALID, NULL },
	{ "a/.wh.d/.wh.x", WHITEOUT_INVALID, NULL },
};

START_TEST(names)
{
	const char *name = NULL;

	ck_assert_msg(whiteout_of(rows[_i].path, &name) == rows[_i].kind, "%s", rows[_i].path);
	if (rows[_i].name) {
		ck_assert_str_eq(name, rows[_i].name);
	} else {
		ck_assert_ptr_null(name);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("whiteout");
	TCase *tc = tcase_create("names");

	tcase_add_loop_test(tc, names, 0, (int)ARRAY_SIZE(rows));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
