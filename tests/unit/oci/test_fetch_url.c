/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../../oci/fetch_url.h"
#include "../unit.h"

static const struct curl_lib *lib;

static void load(void)
{
	struct error e = ERROR_INIT;

	lib = curl_lib_load(&e);
	ck_assert_msg(lib != NULL, "%s", e.text);
}

#define BASE "https://reg.example:5000/v2/a/b/blobs/sha256:1"

static const struct {
	const char *base;
	const char *location;
	int rc;
	const char *url;
} steps[] = {
	{ BASE, "https://cdn.example/x?sig=a%2Fb&c", 0, "https://cdn.example/x?sig=a%2Fb&c" },
	{ BASE, "/v2/other", 0, "https://reg.example:5000/v2/other" },
	{ BASE, "other", 0, "https://reg.example:5000/v2/a/b/blobs/other" },
	{ BASE, "//cdn.example/y", 0, "https://cdn.example/y" },
	{ BASE, "https://cdn.example/x#fragment", 0, "https://cdn.example/x" },
	{ BASE, "https://[2001:db8::1]:8443/x", 0, "https://[2001:db8::1]:8443/x" },
	{ "http://localhost:5000/v2/", "http://localhost:9000/x", 0, "http://localhost:9000/x" },
	{ "http://localhost:5000/v2/", "https://cdn.example/x", 0, "https://cdn.example/x" },
	{ BASE, "http://cdn.example/x", -EPERM, NULL },
	{ BASE, "HTTP://cdn.example/x", -EPERM, NULL },
	{ BASE, "https://user@cdn.example/x", -EACCES, NULL },
	{ BASE, "https://user:pw@cdn.example/x", -EACCES, NULL },
	{ BASE, "//user:pw@cdn.example/x", -EACCES, NULL },
	{ BASE, "ftp://cdn.example/x", -EINVAL, NULL },
	{ BASE, "file:///etc/passwd", -EINVAL, NULL },
	{ BASE, "gopher://cdn.example/x", -EINVAL, NULL },
	{ BASE, "https://cdn.example/a b", -EINVAL, NULL },
	{ BASE, "https://cdn.example/a\r\nHost: x", -EINVAL, NULL },
	{ BASE, "https://cdn.example:99999/", -EINVAL, NULL },
	{ BASE, "https://", -EINVAL, NULL },
	{ "not an address", "https://cdn.example/", -EINVAL, NULL },
};

START_TEST(redirects_are_followed)
{
	autofree char *url = NULL;
	int rc = url_follow(lib, steps[_i].base, steps[_i].location, &url);

	ck_assert_msg(rc == steps[_i].rc, "%s: %d %s", steps[_i].location, rc, url ? url : "");
	ck_assert_msg(rc < 0 ? !url : str_eq(url, steps[_i].url), "%s", url ? url : "none");
}
END_TEST

START_TEST(redirects_are_bounded)
{
	autofree char *far = mem_array(FETCH_URL_MAX + 2, 1);
	autofree char *url = NULL;

	memset(far, 'a', FETCH_URL_MAX + 1);
	ck_assert_int_eq(url_follow(lib, BASE, far, &url), -E2BIG);
	ck_assert_int_eq(url_follow(lib, BASE, far + 1, &url), -E2BIG);
	ck_assert_int_eq(url_follow(lib, BASE, far + 100, &url), 0);
}
END_TEST

static const struct {
	const char *a;
	const char *b;
	bool same;
} origins[] = {
	{ "https://reg.example/a", "https://reg.example/b?c", true },
	{ "https://reg.example/a", "https://REG.example:443/b", true },
	{ "http://reg.example/a", "http://reg.example:80/b", true },
	{ "https://reg.example/a", "https://reg.example:444/b", false },
	{ "https://reg.example/a", "http://reg.example/b", false },
	{ "https://reg.example:80/a", "http://reg.example/b", false },
	{ "https://reg.example/a", "https://reg.example.evil/b", false },
	{ "https://reg.example/a", "https://sub.reg.example/b", false },
	{ "https://reg.example/a", "", false },
	{ "", "", false },
};

START_TEST(origins_are_compared)
{
	ck_assert_int_eq(url_same_origin(lib, origins[_i].a, origins[_i].b), origins[_i].same);
	ck_assert_int_eq(url_same_origin(lib, origins[_i].b, origins[_i].a), origins[_i].same);
}
END_TEST

static const struct {
	const char *url;
	const char *place;
} places[] = {
	{ "https://reg.example/v2/?secret=1", "reg.example" },
	{ "https://reg.example:5000/v2/", "reg.example:5000" },
	{ "https://user:pw@reg.example/v2/", "reg.example" },
	{ "https://[::1]:5000/", "[::1]:5000" },
	{ "", "an address that is not valid" },
};

START_TEST(only_the_place_is_shown)
{
	autofree char *place = url_place(lib, places[_i].url);

	ck_assert_str_eq(place, places[_i].place);
}
END_TEST

START_TEST(queries_are_encoded)
{
	const struct url_pair pairs[] = {
		{ "service", "a b&c" },
		{ "scope", "repository:x/y:pull" },
		{ "absent", NULL },
	};
	autofree char *plain = url_add_query(lib, "https://auth.example/token", pairs, 3);
	autofree char *more = url_add_query(lib, "https://auth.example/token?x=1", pairs, 1);
	autofree char *none = url_add_query(lib, "https://auth.example/token", pairs, 0);
	autofree char *form = url_form(lib, pairs, 3);

	/* The case of the digits is that of libcurl's version. */
	ck_assert_int_eq(strcasecmp(plain, "https://auth.example/token?service=a+b%26c"
					   "&scope=repository%3Ax%2Fy%3Apull"),
			0);
	ck_assert_str_eq(more, "https://auth.example/token?x=1&service=a+b%26c");
	ck_assert_str_eq(none, "https://auth.example/token");
	ck_assert_int_eq(strcasecmp(form, "service=a+b%26c&scope=repository%3Ax%2Fy%3Apull"), 0);
	ck_assert_ptr_null(url_add_query(lib, "", pairs, 1));
}
END_TEST

static const struct {
	const char *text;
	int rc;
	const char *url;
	const char *user;
	const char *password;
} proxies[] = {
	{ "http://proxy.example:3128", 0, "http://proxy.example:3128/", NULL, NULL },
	{ "proxy.example:3128", 0, "http://proxy.example:3128/", NULL, NULL },
	{ "http://bob:p%40ss@proxy.example:3128/x?y#z", 0, "http://proxy.example:3128/", "bob",
			"p@ss" },
	{ "bob:pw@proxy.example", 0, "http://proxy.example/", "bob", "pw" },
	{ "https://proxy.example", 0, "https://proxy.example/", NULL, NULL },
	{ "socks5h://bob:pw@[::1]:1080", 0, "socks5h://[::1]:1080/", "bob", "pw" },
	{ "ftp://bob:pw@proxy.example", -EINVAL, NULL, NULL, NULL },
	{ "http://bob:pw@", -EINVAL, NULL, NULL, NULL },
	{ "http://bob:pw@[proxy", -EINVAL, NULL, NULL, NULL },
	{ "", -EINVAL, NULL, NULL, NULL },
};

static void same(const char *got, const char *want)
{
	ck_assert_msg(want ? got && str_eq(got, want) : !got, "got %s, not %s", got ? got : "none",
			want ? want : "none");
}

START_TEST(proxies_are_split)
{
	AUTO(url_proxy) struct url_proxy p = { .url = NULL };

	ck_assert_int_eq(url_proxy_parse(lib, proxies[_i].text, &p), proxies[_i].rc);
	same(p.url, proxies[_i].url);
	same(p.user, proxies[_i].user);
	same(p.password, proxies[_i].password);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fetch_url");
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, load, NULL);
	tcase_add_loop_test(tc, redirects_are_followed, 0, (int)ARRAY_SIZE(steps));
	tcase_add_test(tc, redirects_are_bounded);
	tcase_add_loop_test(tc, origins_are_compared, 0, (int)ARRAY_SIZE(origins));
	tcase_add_loop_test(tc, only_the_place_is_shown, 0, (int)ARRAY_SIZE(places));
	tcase_add_test(tc, queries_are_encoded);
	tcase_add_loop_test(tc, proxies_are_split, 0, (int)ARRAY_SIZE(proxies));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
