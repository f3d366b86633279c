/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <osbx/mem.h>

#include "../../../src/api/api_internal.h"
#include "../unit.h"

static int parsed(const struct api_opts *opts, const char *text, struct create *out,
		struct refusal *why)
{
	struct error e = ERROR_INIT;
	AUTO(json) struct json *v = json_parse(span_of(text), &e);

	ck_assert_msg(v != NULL, "%s: %s", text, e.text);
	*why = (struct refusal){ .status = 0 };
	return create_parse(opts, v, out, why);
}

#define IMAGE  "\"image\":{\"uri\":\"alpine\"},"
#define LIMITS "\"resourceLimits\":{\"cpu\":\"1\",\"memory\":\"2Gi\"},"
#define ENTRY  "\"entrypoint\":[\"tail\",\"-f\",\"/dev/null\"]"

/* As the newest client of Python sends it. */
START_TEST(usual)
{
	AUTO(create) struct create c = { .has_credential = false };
	struct api_opts opts;
	struct refusal why;

	api_opts_init(&opts);
	int r = parsed(&opts,
			"{\"image\":{\"uri\":\"python:3.12\",\"auth\":{\"username\":\"u\","
			"\"password\":\"p\"}},\"timeout\":600," LIMITS
			"\"env\":{\"A\":\"1\",\"B\":null,\"OPENSANDBOX_EGRESS_LOG_LEVEL\":\"x\"},"
			"\"metadata\":{\"k\":\"v\"},\"secureAccess\":false,\"extensions\":{},"
			"\"platform\":{\"os\":\"linux\",\"arch\":\"amd64\"},\"new\":1," ENTRY "}",
			&c, &why);

	ck_assert_msg(r == 0, "%s", why.text);
	ck_assert_str_eq(c.request.image, "python:3.12");
	ck_assert_str_eq(c.request.entrypoint, "");
	ck_assert_uint_eq(c.request.command.n, 3);
	ck_assert_str_eq(c.request.command.v[0], "tail");
	ck_assert_int_eq(c.request.timeout_ms, 600000);
	ck_assert_uint_eq(c.request.limits.cpu_milli, 1000);
	ck_assert_uint_eq(c.request.limits.memory_bytes, 2ULL << 30);
	ck_assert_uint_eq(c.request.env.n, 1);
	ck_assert_str_eq(c.request.env.v[0], "A=1");
	ck_assert_str_eq(c.request.labels.v[0], "k=v");
	ck_assert_str_eq(c.request.platform, "linux/amd64");
	ck_assert(c.request.detach && c.request.sets_id);
	ck_assert(c.has_credential);
	ck_assert_str_eq(c.credential.user, "u");
	ck_assert_str_eq(c.credential.password, "p");
}
END_TEST

START_TEST(never_expires)
{
	AUTO(create) struct create c = { .has_credential = false };
	struct api_opts opts;
	struct refusal why;

	api_opts_init(&opts);
	ck_assert_int_eq(
			parsed(&opts, "{" IMAGE LIMITS "\"timeout\":null," ENTRY "}", &c, &why), 0);
	ck_assert_int_eq(c.request.timeout_ms, 0);
}
END_TEST

START_TEST(network_policies)
{
	static const struct {
		const char *text;
		bool has_policy;
		size_t rules;
	} rows[] = {
		{ "null", false, 0 },
		{ "{}", false, 0 },
		{ "{\"defaultAction\":\"deny\"}", true, 0 },
		{ "{\"egress\":[{\"action\":\"allow\",\"target\":\"*.a.test\"},{\"action\":"
		  "\"deny\",\"target\":\"b.test\"}]}",
				true, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		autofree char *text = mem_printf(
				"{" IMAGE LIMITS "\"networkPolicy\":%s," ENTRY "}", rows[i].text);
		AUTO(create) struct create c = { .has_credential = false };
		struct api_opts opts;
		struct refusal why;

		api_opts_init(&opts);
		opts.network = SPEC_NETWORK_PRIVATE;
		ck_assert_msg(parsed(&opts, text, &c, &why) == 0, "%s", why.text);
		ck_assert_int_eq(c.request.network, SPEC_NETWORK_PRIVATE);
		ck_assert_int_eq(c.request.has_policy, rows[i].has_policy);
		ck_assert_uint_eq(c.request.policy.n, rows[i].rules);
		ck_assert_int_eq(c.request.policy.fallback,
				rows[i].has_policy ? NETPOLICY_DENY : NETPOLICY_ALLOW);
	}
}
END_TEST

START_TEST(network_policies_that_cannot_be)
{
	static const struct {
		const char *text;
		enum spec_network network;
		int status;
		const char *field;
	} rows[] = {
		{ "\"networkPolicy\":7,", SPEC_NETWORK_PRIVATE, 422, "networkPolicy" },
		{ "\"networkPolicy\":{\"egress\":[{\"action\":\"allow\"}]},", SPEC_NETWORK_PRIVATE,
				422, "networkPolicy.egress[0].target" },
		{ "\"networkPolicy\":{\"defaultAction\":\"deny\"},", SPEC_NETWORK_NONE, 400, "" },
		{ "\"networkPolicy\":{\"defaultAction\":\"deny\"},", SPEC_NETWORK_HOST, 400, "" },
		{ "\"env\":{\"OPENSANDBOX_EGRESS_NEW\":\"x\"},\"networkPolicy\":{\"defaultAction\":"
		  "\"deny\"},",
				SPEC_NETWORK_PRIVATE, 400, "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		autofree char *text = mem_printf("{" IMAGE LIMITS "%s" ENTRY "}", rows[i].text);
		AUTO(create) struct create c = { .has_credential = false };
		struct api_opts opts;
		struct refusal why;

		api_opts_init(&opts);
		opts.network = rows[i].network;
		ck_assert_int_eq(parsed(&opts, text, &c, &why), -1);
		ck_assert_msg(why.status == rows[i].status, "%s: %d", text, why.status);
		ck_assert_str_eq(why.field, rows[i].field);
	}
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		const char *text;
		int status;
		const char *code;  /* NULL: that of 422 */
		const char *field; /* of a 422 */
	} rows[] = {
		{ "{" LIMITS ENTRY "}", 422, NULL, "image" },
		{ "{\"image\":{\"uri\":\" \"}," LIMITS ENTRY "}", 422, NULL, "image" },
		{ "{" IMAGE "\"snapshotId\":\"s\"," LIMITS ENTRY "}", 422, NULL, "image" },
		{ "{\"image\":{}," LIMITS ENTRY "}", 422, NULL, "image.uri" },
		{ "{\"image\":{\"uri\":1}," LIMITS ENTRY "}", 422, NULL, "image.uri" },
		{ "{\"image\":{\"uri\":\"a\",\"auth\":{\"username\":\"u\"}}," LIMITS ENTRY "}", 422,
				NULL, "image.auth.password" },
		{ "{" IMAGE LIMITS "\"entrypoint\":[]}", 422, NULL, "entrypoint" },
		{ "{" IMAGE LIMITS "\"entrypoint\":\"x\"}", 422, NULL, "entrypoint" },
		{ "{" IMAGE LIMITS "\"entrypoint\":[1]}", 422, NULL, "entrypoint[0]" },
		{ "{" IMAGE ENTRY "}", 422, NULL, "resourceLimits" },
		{ "{" IMAGE LIMITS "\"timeout\":59," ENTRY "}", 422, NULL, "timeout" },
		{ "{" IMAGE LIMITS "\"timeout\":\"60\"," ENTRY "}", 422, NULL, "timeout" },
		{ "{" IMAGE LIMITS "\"env\":{\"A\":1}," ENTRY "}", 422, NULL, "env" },
		{ "{" IMAGE LIMITS "\"env\":{\"OPENSANDBOX_LIFECYCLE\":\"1\"}," ENTRY "}", 422,
				NULL, "env.OPENSANDBOX_LIFECYCLE" },
		{ "{" IMAGE LIMITS "\"metadata\":{\"a b\":\"v\"}," ENTRY "}", 400,
				"SANDBOX::INVALID_METADATA_LABEL", NULL },
		{ "{" IMAGE LIMITS "\"metadata\":{\"opensandbox.io/a\":\"v\"}," ENTRY "}", 400,
				"SANDBOX::INVALID_METADATA_LABEL", NULL },
		{ "{" IMAGE "\"resourceLimits\":{\"cpu\":\"lots\"}," ENTRY "}", 400,
				"SANDBOX::INVALID_PARAMETER", NULL },
		{ "{" IMAGE "\"resourceLimits\":{\"memory\":\"1.5Gi\"}," ENTRY "}", 400,
				"SANDBOX::INVALID_PARAMETER", NULL },
		{ "{" IMAGE "\"resourceLimits\":{\"memory\":\"1Mi\"}," ENTRY "}", 400,
				"SANDBOX::INVALID_PARAMETER", NULL },
		{ "{" IMAGE "\"resourceLimits\":{\"gpu\":\"1\"}," ENTRY "}", 400,
				"SANDBOX::INVALID_PARAMETER", NULL },
		{ "{" IMAGE LIMITS "\"networkPolicy\":{\"defaultAction\":\"deny\"}," ENTRY "}", 400,
				"SANDBOX::INVALID_PARAMETER", NULL },
		{ "{" IMAGE LIMITS "\"credentialProxy\":{\"enabled\":true}," ENTRY "}", 400,
				"SANDBOX::INVALID_PARAMETER", NULL },
		{ "{" IMAGE LIMITS "\"secureAccess\":true," ENTRY "}", 400,
				"SANDBOX::INVALID_PARAMETER", NULL },
		{ "{" IMAGE LIMITS "\"lifecycle\":{\"preStart\":{}}," ENTRY "}", 400,
				"SANDBOX::INVALID_PARAMETER", NULL },
		{ "{\"snapshotId\":\"s\"," LIMITS ENTRY "}", 400, "SANDBOX::API_NOT_SUPPORTED",
				NULL },
		{ "{" IMAGE LIMITS "\"extensions\":{\"poolRef\":\"p\"}," ENTRY "}", 400,
				"SANDBOX::UNSUPPORTED_POOL_REF", NULL },
		{ "{" IMAGE LIMITS "\"extensions\":{\"access.renew.extend.seconds\":\"299\"}," ENTRY
		  "}",
				400, "SANDBOX::INVALID_PARAMETER", NULL },
		{ "{" IMAGE LIMITS "\"platform\":{\"os\":\"windows\",\"arch\":\"amd64\"}," ENTRY
		  "}",
				400, "SANDBOX::INVALID_PARAMETER", NULL },
		{ "{\"image\":{\"uri\":\"dir:/etc\"}," LIMITS ENTRY "}", 400,
				"VOLUME::HOST_PATH_NOT_ALLOWED", NULL },
		{ "{\"image\":{\"uri\":\"UPPER\"}," LIMITS ENTRY "}", 400,
				"SANDBOX::INVALID_PARAMETER", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(create) struct create c = { .has_credential = false };
		struct api_opts opts;
		struct refusal why;

		api_opts_init(&opts);
		ck_assert_msg(parsed(&opts, rows[i].text, &c, &why) == -1, "%s", rows[i].text);
		ck_assert_msg(why.status == rows[i].status, "%s: %d %s", rows[i].text, why.status,
				why.text);
		ck_assert_str_eq(why.code,
				rows[i].code ? rows[i].code : "GENERAL::VALIDATION_ERROR");
		if (rows[i].field) {
			ck_assert_msg(strcmp(why.field, rows[i].field) == 0, "%s: \"%s\"",
					rows[i].text, why.field);
		}
	}
}
END_TEST

START_TEST(longest)
{
	AUTO(create) struct create c = { .has_credential = false };
	struct api_opts opts;
	struct refusal why;

	api_opts_init(&opts);
	opts.timeout_max_ms = 3600 * 1000;
	ck_assert_int_eq(parsed(&opts, "{" IMAGE LIMITS "\"timeout\":3601," ENTRY "}", &c, &why),
			-1);
	ck_assert_int_eq(why.status, 400);
	ck_assert_int_eq(
			parsed(&opts, "{" IMAGE LIMITS "\"timeout\":3600," ENTRY "}", &c, &why), 0);
}
END_TEST

static int volumes(struct api_opts *opts, const char *list, struct create *c, struct refusal *why)
{
	autofree char *text = mem_printf("{" IMAGE LIMITS "\"volumes\":%s," ENTRY "}", list);

	return parsed(opts, text, c, why);
}

START_TEST(host_volumes)
{
	static const struct {
		const char *list;
		const char *code;
	} rows[] = {
		{ "[{\"name\":\"A\",\"mountPath\":\"/m\",\"host\":{\"path\":\"/x\"}}]",
				"VOLUME::INVALID_NAME" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\",\"host\":{\"path\":\"/x\"}},"
		  "{\"name\":\"a\",\"mountPath\":\"/n\",\"host\":{\"path\":\"/x\"}}]",
				"VOLUME::DUPLICATE_NAME" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\"}]", "VOLUME::INVALID_BACKEND" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\",\"host\":{\"path\":\"/x\"},\"pvc\":{}}]",
				"VOLUME::INVALID_BACKEND" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\",\"pvc\":{\"claimName\":\"c\"}}]",
				"VOLUME::UNSUPPORTED_BACKEND" },
		{ "[{\"name\":\"a\",\"mountPath\":\"m\",\"host\":{\"path\":\"/x\"}}]",
				"VOLUME::INVALID_MOUNT_PATH" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\",\"subPath\":\"../y\",\"host\":{\"path\":\"/"
		  "x\"}}]",
				"VOLUME::INVALID_SUB_PATH" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\",\"subPath\":\"/y\",\"host\":{\"path\":\"/"
		  "x\"}}]",
				"VOLUME::INVALID_SUB_PATH" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\",\"host\":{\"path\":\"x\"}}]",
				"VOLUME::INVALID_HOST_PATH" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\",\"host\":{\"path\":\"/x/../etc\"}}]",
				"VOLUME::INVALID_HOST_PATH" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\",\"host\":{\"path\":\"/x//y\"}}]",
				"VOLUME::INVALID_HOST_PATH" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\",\"host\":{\"path\":\"/x/\"}}]",
				"VOLUME::INVALID_HOST_PATH" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\",\"host\":{\"path\":\"/etc\"}}]",
				"VOLUME::HOST_PATH_NOT_ALLOWED" },
		{ "[{\"name\":\"a\",\"mountPath\":\"/m\",\"host\":{\"path\":\"/allowedx\"}}]",
				"VOLUME::HOST_PATH_NOT_ALLOWED" },
	};
	AUTO(strv) struct strv allowed = STRV_INIT;

	ck_assert_int_eq(strv_add(&allowed, "/allowed"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(create) struct create c = { .has_credential = false };
		struct api_opts opts;
		struct refusal why;

		api_opts_init(&opts);
		opts.host_paths = allowed;
		ck_assert_msg(volumes(&opts, rows[i].list, &c, &why) == -1, "%s", rows[i].list);
		ck_assert_msg(strcmp(why.code, rows[i].code) == 0, "%s: %s", rows[i].list,
				why.code);
		ck_assert_int_eq(why.status, 400);
	}
}
END_TEST

/* A directory that is missing is made; a link does not lead out of what is allowed. */
START_TEST(host_directory)
{
	AUTO(create) struct create c = { .has_credential = false };
	const char *dir = unit_path;
	AUTO(strv) struct strv allowed = STRV_INIT;
	struct api_opts opts;
	struct refusal why;

	ck_assert_int_eq(strv_add(&allowed, dir), 0);
	api_opts_init(&opts);
	opts.host_paths = allowed;
	autofree char *list = mem_printf("[{\"name\":\"a\",\"mountPath\":\"/m\",\"readOnly\":true,"
					 "\"subPath\":\"s/t\",\"host\":{\"path\":\"%s/new\"}}]",
			dir);

	ck_assert_msg(volumes(&opts, list, &c, &why) == 0, "%s", why.text);
	ck_assert_uint_eq(c.request.volumes_n, 1);
	ck_assert_str_eq(c.request.volumes[0].beneath, dir);
	ck_assert_str_eq(c.request.volumes[0].sub, "s/t");
	ck_assert(c.request.volumes[0].read_only);
	autofree char *made = mem_printf("%s/new/s/t", dir);
	autofree char *link = mem_printf("%s/out", dir);

	ck_assert_int_eq(access(made, F_OK), 0);
	ck_assert_int_eq(symlink("/etc", link), 0);
	autofree char *out = mem_printf("[{\"name\":\"a\",\"mountPath\":\"/m\","
					"\"host\":{\"path\":\"%s/out/passwd\"}}]",
			dir);

	ck_assert_int_eq(volumes(&opts, out, &c, &why), -1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("create");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, usual);
	tcase_add_test(tc, never_expires);
	tcase_add_test(tc, network_policies);
	tcase_add_test(tc, network_policies_that_cannot_be);
	tcase_add_test(tc, refusals);
	tcase_add_test(tc, longest);
	tcase_add_test(tc, host_volumes);
	unit_with_dir(tc);
	tcase_add_test(tc, host_directory);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
