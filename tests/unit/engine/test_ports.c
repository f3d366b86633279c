/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/ports.h>

#include "../unit.h"

struct port_case {
	const char *text;
	const char *normal; /* NULL: refused */
	enum errc code;     /* then */
};

static const struct port_case cases[] = {
	{ "80", "127.0.0.1:0:80", ERRC_OK },
	{ ":80", "127.0.0.1:0:80", ERRC_OK },
	{ "0:80", "127.0.0.1:0:80", ERRC_OK },
	{ "80/tcp", "127.0.0.1:0:80", ERRC_OK },
	{ "8080:80", "127.0.0.1:8080:80", ERRC_OK },
	{ "8080:80/tcp", "127.0.0.1:8080:80", ERRC_OK },
	{ "65535:65535", "127.0.0.1:65535:65535", ERRC_OK },
	{ "0.0.0.0:8080:80", "0.0.0.0:8080:80", ERRC_OK },
	{ "10.1.2.3::80", "10.1.2.3:0:80", ERRC_OK },
	{ "[::1]:8080:80", "[::1]:8080:80", ERRC_OK },
	{ "[::]::80", "[::]:0:80", ERRC_OK },
	{ "[2001:DB8:0::1]:1:2/tcp", "[2001:db8::1]:1:2", ERRC_OK },
	{ "", NULL, ERRC_INVALID },
	{ ":", NULL, ERRC_INVALID },
	{ "8080:", NULL, ERRC_INVALID },
	{ "0", NULL, ERRC_INVALID },
	{ "8080:0", NULL, ERRC_INVALID },
	{ "65536", NULL, ERRC_INVALID },
	{ "65536:80", NULL, ERRC_INVALID },
	{ "-1:80", NULL, ERRC_INVALID },
	{ "+80", NULL, ERRC_INVALID },
	{ " 80", NULL, ERRC_INVALID },
	{ "0x50", NULL, ERRC_INVALID },
	{ "http", NULL, ERRC_INVALID },
	{ "8000-8010:80", NULL, ERRC_INVALID },
	{ "80/", NULL, ERRC_INVALID },
	{ "80/TCP", NULL, ERRC_INVALID },
	{ "80/tcp/tcp", NULL, ERRC_INVALID },
	{ "80/udp", NULL, ERRC_UNSUPPORTED },
	{ "80/sctp", NULL, ERRC_UNSUPPORTED },
	{ "localhost:8080:80", NULL, ERRC_INVALID },
	{ "::1:8080:80", NULL, ERRC_INVALID },
	{ "[::1]:80", NULL, ERRC_INVALID },
	{ "[::1", NULL, ERRC_INVALID },
	{ "[]:8080:80", NULL, ERRC_INVALID },
	{ "[127.0.0.1]:8080:80", NULL, ERRC_INVALID },
	{ "[::1%lo]:8080:80", NULL, ERRC_INVALID },
	{ ":8080:80", NULL, ERRC_INVALID },
	{ "1.2.3:8080:80", NULL, ERRC_INVALID },
	{ "01.2.3.4:8080:80", NULL, ERRC_INVALID },
	{ "1.2.3.4:5:6:7", NULL, ERRC_INVALID },
};

START_TEST(reads_ports)
{
	const struct port_case *c = &cases[_i];
	struct port_map map = { .outside = 7, .inside = 7 };
	struct error e = ERROR_INIT;
	char text[PORTS_TEXT_MAX];

	if (!c->normal) {
		ck_assert_int_eq(ports_parse(c->text, &map, &e), -1);
		ck_assert_int_eq(e.code, c->code);
		ck_assert(strstr(e.text, c->text));
		ck_assert(map.outside == 7 && map.inside == 7);
		return;
	}
	ck_assert_msg(ports_parse(c->text, &map, &e) == 0, "%s: %s", c->text, e.text);
	ports_format(&map, text);
	ck_assert_str_eq(text, c->normal);
	/* What was written is read again as it was. */
	struct port_map again = { .outside = 7, .inside = 7 };

	ck_assert_int_eq(ports_parse(text, &again, &e), 0);
	ck_assert(netaddr_eq(&again.addr, &map.addr));
	ck_assert(again.outside == map.outside && again.inside == map.inside);
}
END_TEST

START_TEST(writes_the_place_outside)
{
	struct port_map map;
	struct error e = ERROR_INIT;
	char text[PORTS_TEXT_MAX];

	ck_assert_int_eq(ports_parse("[fd00::ffff:ffff:ffff:ffff]:65535:65535", &map, &e), 0);
	ports_format_outside(&map, text);
	ck_assert_str_eq(text, "[fd00::ffff:ffff:ffff:ffff]:65535");
	ck_assert_int_eq(ports_parse("8080:80", &map, &e), 0);
	ports_format_outside(&map, text);
	ck_assert_str_eq(text, "127.0.0.1:8080");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ports");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, reads_ports, 0, ARRAY_SIZE(cases));
	tcase_add_test(tc, writes_the_place_outside);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
