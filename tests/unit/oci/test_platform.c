/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../oci/platform.h"
#include "../unit.h"

struct wish {
	const char *text;
	const char *os;
	const char *architecture;
	const char *variant;
};

static const struct wish wishes[] = {
	{ "linux/amd64", "linux", "amd64", "" },
	{ "linux/arm/v7", "linux", "arm", "v7" },
	{ "linux/x86_64", "linux", "amd64", "" },
	{ "linux/aarch64", "linux", "arm64", "" },
	{ "linux/armhf", "linux", "arm", "v7" },
	{ "linux/armel", "linux", "arm", "v6" },
	{ "linux/armhf/v5", "linux", "arm", "v5" },
	{ "linux/i686", "linux", "386", "" },
	{ "linux/wasm", "linux", "wasm", "" },
};

START_TEST(parses)
{
	struct platform_wish w = { .variant = "" };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(platform_parse(wishes[_i].text, &w, &e), 0);
	ck_assert_str_eq(w.os, wishes[_i].os);
	ck_assert_str_eq(w.architecture, wishes[_i].architecture);
	ck_assert_str_eq(w.variant, wishes[_i].variant);
}
END_TEST

START_TEST(null_is_this_machine)
{
	struct platform_wish w = { .variant = "" };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(platform_parse(NULL, &w, &e), 0);
	ck_assert_str_eq(w.os, "linux");
	ck_assert_str_ne(w.architecture, "");
}
END_TEST

struct bad {
	const char *text;
	enum errc code;
};

static const struct bad bad[] = {
	{ "", ERRC_INVALID },
	{ "linux", ERRC_INVALID },
	{ "linux/", ERRC_INVALID },
	{ "/amd64", ERRC_INVALID },
	{ "linux/amd64/v1/x", ERRC_INVALID },
	{ "linux/amd64/", ERRC_INVALID },
	{ "Linux/amd64", ERRC_INVALID },
	{ "linux/am d64", ERRC_INVALID },
	{ "linux/abcdefghijklmnopqrstuvwxyzabcdef", ERRC_INVALID },
	{ "windows/amd64", ERRC_UNSUPPORTED },
};

START_TEST(refuses)
{
	struct platform_wish w = { .os = "untouched" };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(platform_parse(bad[_i].text, &w, &e), -1);
	ck_assert_int_eq(e.code, bad[_i].code);
	ck_assert_str_eq(w.os, "untouched");
}
END_TEST

/* Offers from the least to the best, "" where the field is absent. */
struct order {
	const char *wish;
	const char *unfit;
	const char *fit[4];
};

static const struct order orders[] = {
	{ "linux/amd64", "linux/arm64", { "linux//", "linux/amd64/v1", NULL, NULL } },
	{ "linux/amd64", "linux/amd64/v2", { "//", "linux/amd64/", NULL, NULL } },
	{ "linux/amd64/v3", "linux/amd64/v4",
			{ "linux/amd64/", "linux/amd64/v2", "linux/amd64/v3", NULL } },
	{ "linux/arm", "linux/arm/v8", { "linux/arm/v5", "linux/arm/v6", "linux/arm/v7", NULL } },
	{ "linux/arm/v6", "linux/arm/v7", { "linux/arm/v5", "linux/arm/v6", NULL, NULL } },
	{ "linux/arm/v6", "linux/arm/", { "linux/arm/v6", NULL, NULL, NULL } },
	{ "linux/arm64", "linux/arm/v7", { "linux/arm64/v8", NULL, NULL, NULL } },
	{ "linux/arm64", "linux/arm64/v9", { "linux/arm64/", NULL, NULL, NULL } },
	{ "linux/arm64/v9", "linux/arm/v8", { "linux/arm64/v8.2", "linux/arm64/v9", NULL, NULL } },
	{ "linux/amd64", "windows/amd64/", { "/amd64/", NULL, NULL, NULL } },
	{ "linux/amd64", "unknown/unknown/", { "linux/amd64/", NULL, NULL, NULL } },
	{ "linux/amd64", "linux/amd64/v99999999999", { "linux/amd64/v1", NULL, NULL, NULL } },
	{ "linux/amd64", "linux/amd64/vx", { "linux/amd64/v1", NULL, NULL, NULL } },
	{ "linux/amd64", "linux/i686", { "linux/x86_64", NULL, NULL, NULL } },
	{ "linux/amd64/v2", "linux/x86-64/v3", { "linux/x86-64", "linux/x86_64/v2", NULL, NULL } },
	{ "linux/arm64", "linux/armhf", { "linux/aarch64", NULL, NULL, NULL } },
	{ "linux/arm/v6", "linux/armhf", { "linux/armel", NULL, NULL, NULL } },
	{ "linux/riscv64", "linux/riscv64/rva22", { "linux/riscv64/", NULL, NULL, NULL } },
	{ "linux/riscv64/rva22", "linux/riscv64/", { "linux/riscv64/rva22", NULL, NULL, NULL } },
};

static unsigned int score(const struct platform_wish *w, const char *offer)
{
	char os[32] = "";
	char architecture[32] = "";
	char variant[32] = "";
	const char *slash = strchr(offer, '/');
	const char *second = strchr(slash + 1, '/');
	struct platform p = { .os = os[0] ? os : NULL };

	memcpy(os, offer, (size_t)(slash - offer));
	memcpy(architecture, slash + 1,
			(size_t)((second ? second : offer + strlen(offer)) - slash - 1));
	if (second) {
		memcpy(variant, second + 1, strlen(second + 1));
	}
	p = (struct platform){
		.os = os[0] ? os : NULL,
		.architecture = architecture[0] ? architecture : NULL,
		.variant = variant[0] ? variant : NULL,
	};
	return platform_score(w, &p);
}

START_TEST(orders_offers)
{
	const struct order *o = &orders[_i];
	struct platform_wish w = { .variant = "" };
	struct error e = ERROR_INIT;
	unsigned int last = 0;

	ck_assert_int_eq(platform_parse(o->wish, &w, &e), 0);
	ck_assert_msg(score(&w, o->unfit) == 0, "%s took %s", o->wish, o->unfit);
	for (size_t i = 0; i < ARRAY_SIZE(o->fit) && o->fit[i]; i++) {
		unsigned int now = score(&w, o->fit[i]);

		ck_assert_msg(now > last, "%s: %s is %u after %u", o->wish, o->fit[i], now, last);
		last = now;
	}
}
END_TEST

START_TEST(shows)
{
	autofree char *full = platform_text("linux", "arm", "v7");
	autofree char *none = platform_text(NULL, NULL, NULL);
	autofree char *plain = platform_text("linux", "amd64", "");

	ck_assert_str_eq(full, "linux/arm/v7");
	ck_assert_str_eq(none, "linux/unknown");
	ck_assert_str_eq(plain, "linux/amd64");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("platform");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, parses, 0, ARRAY_SIZE(wishes));
	tcase_add_test(tc, null_is_this_machine);
	tcase_add_loop_test(tc, refuses, 0, ARRAY_SIZE(bad));
	tcase_add_loop_test(tc, orders_offers, 0, ARRAY_SIZE(orders));
	tcase_add_test(tc, shows);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
