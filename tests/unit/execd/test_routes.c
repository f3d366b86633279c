/* SPDX-License-Identifier: Apache-2.0 */
/* The route table against tests/api/routes.txt, both ways. */
#include "../../../execd/routes.h"
#include "../routes.h"

START_TEST(same_routes)
{
	AUTO(strv) struct strv table = STRV_INIT;
	AUTO(strv) struct strv list = STRV_INIT;

	routes_listed(OSBX_GOLDEN_DIR "/../api/routes.txt", &list);
	routes_in(routes, routes_n, &table);
	ck_assert_uint_gt(list.n, 40);
	routes_same(&table, &list);
}
END_TEST

/* Nothing but health is answered without the token. */
START_TEST(open_ones)
{
	for (size_t i = 0; i < routes_n; i++) {
		bool is_health = strcmp(routes[i].pattern, "/ping") == 0 ||
				 strcmp(routes[i].pattern, "/ready") == 0;

		ck_assert_int_eq((routes[i].flags & HTTP_ROUTE_OPEN) != 0, is_health);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("routes");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, same_routes);
	tcase_add_test(tc, open_ones);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
