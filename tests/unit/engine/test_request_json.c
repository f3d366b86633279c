/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/caps.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/request.h>

#include "../unit.h"

/* Bytes that are no text, and those that JSON escapes. */
#define ODD "a\xc3\xa9\xff\xfe \"\\\n\001"

static char *text_of(const struct sandbox_request *req)
{
	struct buf out = BUF_INIT(8U << 20);
	struct json_writer w = JSON_WRITER(&out);

	request_format(req, &w, NULL);
	ck_assert(!w.failed);
	return buf_take(&out);
}

static int parse(const char *text, struct sandbox_request *out, struct error *e)
{
	AUTO(json) struct json *root = json_parse(span_of(text), e);

	ck_assert_msg(root != NULL, "%s", e->text);
	return request_parse(root, out, e);
}

static void fill(struct sandbox_request *r)
{
	struct error e = ERROR_INIT;

	request_init(r);
	r->image = mem_strdup("busybox:1");
	ck_assert_int_eq(strv_add(&r->command, "sh"), 0);
	ck_assert_int_eq(strv_add(&r->command, ODD), 0);
	ck_assert_int_eq(strv_add(&r->command, ""), 0);
	r->entrypoint = mem_strdup("");
	ck_assert_int_eq(strv_add(&r->env, "V=" ODD), 0);
	r->workdir = mem_strdup("/w");
	r->user = mem_strdup("1:2");
	ck_assert_int_eq(strv_add(&r->groups, "3"), 0);
	r->hostname = mem_strdup("host");
	r->name = mem_strdup("name");
	ck_assert_int_eq(strv_add(&r->labels, "a=b"), 0);
	ck_assert_int_eq(request_add_volume(r, "/src\xff:/dst\xff:ro", &e), 0);
	ck_assert_int_eq(request_add_volume(r, "/src2:/dst2", &e), 0);
	ck_assert_int_eq(request_add_tmpfs(r, "/t:1m", &e), 0);
	r->read_only = true;
	r->interactive = true;
	r->tty = true;
	r->keep = true;
	r->detach = true;
	r->remove = true;
	r->isolation = true;
	r->network = SPEC_NETWORK_PRIVATE;
	ck_assert_int_eq(request_add_port(r, "[::1]:8080:80", &e), 0);
	ck_assert_int_eq(request_add_rule(r, NETPOLICY_DENY, "*", &e), 0);
	ck_assert_int_eq(request_add_rule(r, NETPOLICY_ALLOW, "*.a.test", &e), 0);
	r->any_name = true;
	r->caps = CAPS_BIT(0) | CAPS_BIT(13);
	r->seccomp = mem_strdup("unconfined");
	r->platform = mem_strdup("linux/arm64");
	r->pull = PULL_NEVER;
	r->tls_verify = 0;
	r->unpack_max = 123;
	r->shm_bytes = 456;
	r->timeout_ms = 789;
}

/* Whatever is written is read back: the second text is the first. */
START_TEST(everything_comes_back)
{
	AUTO(request) struct sandbox_request in = { .volumes_n = 0 };
	AUTO(request) struct sandbox_request out = { .volumes_n = 0 };
	struct error e = ERROR_INIT;

	fill(&in);
	autofree char *first = text_of(&in);

	ck_assert_msg(parse(first, &out, &e) == 0, "%s", e.text);
	autofree char *second = text_of(&out);

	ck_assert_str_eq(first, second);
	ck_assert_str_eq(out.command.v[1], ODD);
	ck_assert_str_eq(out.env.v[0], "V=" ODD);
	ck_assert_str_eq(out.volumes[0].src, "/src\xff");
	ck_assert(out.volumes[0].read_only && !out.volumes[1].read_only);
	ck_assert_uint_eq(out.tmpfs[0].size, 1U << 20);
	ck_assert_str_eq(out.entrypoint, "");
	ck_assert(out.detach && out.remove && out.keep);
	ck_assert_uint_eq(out.caps, in.caps);
	ck_assert_int_eq(out.network, SPEC_NETWORK_PRIVATE);
	ck_assert_uint_eq(out.ports_n, 1);
	ck_assert(out.ports[0].outside == 8080 && out.ports[0].inside == 80);
	ck_assert(out.has_policy && out.any_name);
	ck_assert_int_eq(out.policy.fallback, NETPOLICY_DENY);
	ck_assert_str_eq(out.policy.rules[0].target, "*.a.test");
	ck_assert_int_eq(out.pull, PULL_NEVER);
	ck_assert_int_eq(out.tls_verify, 0);
	ck_assert_int_eq(out.timeout_ms, 789);
}
END_TEST

START_TEST(what_is_not_said_is_default)
{
	AUTO(request) struct sandbox_request out = { .volumes_n = 0 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(parse("{\"image\":\"x\"}", &out, &e), 0);
	ck_assert_uint_eq(out.caps, caps_workload_default);
	ck_assert_int_eq(out.network, SPEC_NETWORK_NONE);
	ck_assert(!out.has_policy && out.policy.fallback == NETPOLICY_ALLOW);
	ck_assert_int_eq(out.tls_verify, -1);
	ck_assert_ptr_null(out.entrypoint);
	ck_assert_int_eq(out.timeout_ms, 0);
}
END_TEST

static const struct {
	const char *text;
	enum errc code;
} bad[] = {
	{ "{}", ERRC_INVALID },
	{ "[]", ERRC_INVALID },
	{ "{\"image\":1}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"ports\":\"80\"}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"ports\":[80]}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"ports\":[\"80\",\"a:80\"]}", ERRC_INVALID },
	{ "{\"image\":{\"hex\":\"6\"}}", ERRC_INVALID },
	{ "{\"image\":{\"hex\":\"6x\"}}", ERRC_INVALID },
	{ "{\"image\":{\"hex\":\"6A\"}}", ERRC_INVALID },
	{ "{\"image\":{\"hex\":\"6100\"}}", ERRC_INVALID },
	{ "{\"image\":{\"octal\":\"61\"}}", ERRC_INVALID },
	{ "{\"image\":\"\"}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"command\":\"sh\"}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"command\":[1]}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"network\":\"bridge\"}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"network\":\"host\",\"policy\":{}}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"policy\":{}}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"network\":\"none\",\"anyName\":true}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"pull\":true}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"tlsVerify\":1}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"capabilities\":[\"CAP_NOTHING\"]}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"capabilities\":{}}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"volumes\":[{\"source\":\"/a\"}]}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"volumes\":{}}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"volumes\":[{\"source\":\"/a\",\"destination\":\"b\"}]}",
			ERRC_INVALID },
	{ "{\"image\":\"x\",\"tmpfs\":[1]}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"timeoutMs\":-1}", ERRC_INVALID },
	{ "{\"image\":\"x\",\"name\":\"a/b\"}", ERRC_INVALID },
};

START_TEST(is_strict)
{
	struct sandbox_request out = { .volumes_n = 77 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(parse(bad[_i].text, &out, &e), -1);
	ck_assert_int_eq(e.code, bad[_i].code);
	ck_assert_uint_eq(out.volumes_n, 77);
}
END_TEST

START_TEST(counts_mounts)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);
	struct sandbox_request out;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(buf_append_str(&text, "{\"image\":\"x\",\"tmpfs\":["), 0);
	for (int i = 0; i <= LIMIT_VOLUMES; i++) {
		ck_assert_int_eq(buf_appendf(&text, "%s{\"destination\":\"/t%d\"}",
						 i > 0 ? "," : "", i),
				0);
	}
	ck_assert_int_eq(buf_append_str(&text, "]}"), 0);
	ck_assert_int_eq(parse(text.p, &out, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("request_json");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, everything_comes_back);
	tcase_add_test(tc, what_is_not_said_is_default);
	tcase_add_loop_test(tc, is_strict, 0, ARRAY_SIZE(bad));
	tcase_add_test(tc, counts_mounts);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
