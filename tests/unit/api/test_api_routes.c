/* SPDX-License-Identifier: Apache-2.0 */
/* The route table against tests/api/lifecycle.txt, both ways. */
#include "../../../src/api/api_internal.h"
#include "../../../src/api/api_routes.h"
#include "../routes.h"

/* The list has each route once; what does not stand at the root alone, or below /v1 alone, is in
 * the table twice. */
static void mounts_add(struct strv *list)
{
	size_t n = list->n;

	for (size_t i = 0; i < n; i++) {
		const char *space = strchr(list->v[i], ' ');
		bool is_single = strcmp(space, " /health") == 0 ||
				 strcmp(space, " /version") == 0 ||
				 strcmp(space, " /metrics") == 0 || strncmp(space, " /v1/", 5) == 0;

		if (!is_single) {
			ck_assert_int_eq(strv_addf(list, "%.*s /v1%s", (int)(space - list->v[i]),
							 list->v[i], space + 1),
					0);
		}
	}
}

START_TEST(same_routes)
{
	AUTO(strv) struct strv table = STRV_INIT;
	AUTO(strv) struct strv list = STRV_INIT;

	routes_listed(OSBX_GOLDEN_DIR "/../api/lifecycle.txt", &list);
	ck_assert_uint_gt(list.n, 25);
	mounts_add(&list);
	routes_in(api_routes, api_routes_n, &table);
	routes_same(&table, &list);
}
END_TEST

/* Without a key: health, version, and what is passed on. */
START_TEST(open_ones)
{
	for (size_t i = 0; i < api_routes_n; i++) {
		const char *pattern = api_routes[i].pattern;
		bool may_be_open = strcmp(pattern, "/health") == 0 ||
				   strcmp(pattern, "/version") == 0 || strstr(pattern, "/proxy/");

		ck_assert_int_eq((api_routes[i].flags & HTTP_ROUTE_OPEN) != 0, may_be_open);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("api_routes");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, same_routes);
	tcase_add_test(tc, open_ones);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
