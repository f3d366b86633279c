/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/limits.h>
#include <osbx/mem.h>

#include "../../../oci/config.h"
#include "../unit.h"
#include "documents.h"

#define ROOTFS  "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"" SHA_A "\",\"" SHA_B "\"]}"
#define WITH(m) "{\"os\":\"linux\",\"architecture\":\"amd64\",\"config\":{" m "}," ROOTFS "}"

static void read_ok(const char *text, struct config_doc *doc)
{
	struct error e = ERROR_INIT;

	ck_assert_msg(config_parse(span_of(text), doc, &e) == 0, "%s: %s", text, e.text);
}

/* docker build */
START_TEST(reads_docker)
{
	static const char text[] =
			"{\"architecture\":\"amd64\",\"config\":{\"Hostname\":\"\",\"Domainname\":\"\","
			"\"User\":\"app:staff\",\"AttachStdin\":false,\"Tty\":false,"
			"\"ExposedPorts\":{\"80/tcp\":{}},\"Env\":[\"PATH=/bin\",\"EMPTY=\",\"A=b=c\"],"
			"\"Cmd\":[\"-c\",\"true\"],\"Image\":\"sha256:x\","
			"\"Volumes\":{\"/var/lib/b/\":{},\"/a\":{},\"/a/\":{},\"rel\":{},\"/\":{}},"
			"\"WorkingDir\":\"/srv\",\"Entrypoint\":[\"/bin/sh\"],\"OnBuild\":null,"
			"\"Labels\":{\"k\":\"v\"},\"StopSignal\":\"SIGQUIT\"},"
			"\"container_config\":{\"Cmd\":\"ignored\"},"
			"\"created\":\"2024-01-27T00:30:48.743965523Z\",\"docker_version\":\"20.10\","
			"\"history\":[{\"created\":\"x\",\"created_by\":\"y\"}],"
			"\"os\":\"linux\",\"variant\":\"v1\"," ROOTFS "}";
	AUTO(config_doc) struct config_doc doc = CONFIG_DOC_INIT;
	const struct image_config *c = &doc.config;

	read_ok(text, &doc);
	ck_assert_uint_eq(doc.diffs_n, 2);
	ck_assert_str_eq(doc.diffs[1].text, SHA_B);
	ck_assert_str_eq(c->user, "app:staff");
	ck_assert_str_eq(c->working_dir, "/srv");
	ck_assert_str_eq(c->stop_signal, "SIGQUIT");
	ck_assert_str_eq(c->architecture, "amd64");
	ck_assert_str_eq(c->variant, "v1");
	ck_assert_str_eq(c->created, "2024-01-27T00:30:48.743965523Z");
	ck_assert_uint_eq(c->entrypoint.n, 1);
	ck_assert_str_eq(c->cmd.v[1], "true");
	ck_assert_uint_eq(c->env.n, 3);
	ck_assert_str_eq(c->env.v[2], "A=b=c");
	ck_assert_uint_eq(c->volumes.n, 3);
	ck_assert_str_eq(c->volumes.v[0], "/a");
	ck_assert_str_eq(c->volumes.v[1], "/rel");
	ck_assert_str_eq(c->volumes.v[2], "/var/lib/b");
	ck_assert_ptr_null(c->volumes.v[3]);
}
END_TEST

/* All that may be missing or null, as minimal builders write it. */
static const char *const bare[] = {
	"{\"rootfs\":{\"diff_ids\":[]}}",
	"{\"rootfs\":{}}",
	"{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":null},\"config\":null}",
	"{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[]},\"config\":{}}",
	"{\"os\":\"\",\"architecture\":\"\",\"variant\":\"\",\"created\":\"\","
	"\"config\":{\"User\":\"\",\"Env\":null,\"Cmd\":null,\"Entrypoint\":null,\"Volumes\":null,"
	"\"WorkingDir\":\"\",\"StopSignal\":\"\"},\"rootfs\":{\"diff_ids\":[]}}",
};

START_TEST(takes_bare_ones)
{
	AUTO(config_doc) struct config_doc doc = CONFIG_DOC_INIT;

	read_ok(bare[_i], &doc);
	ck_assert_uint_eq(doc.diffs_n, 0);
	ck_assert_uint_eq(doc.config.cmd.n + doc.config.entrypoint.n + doc.config.env.n, 0);
	ck_assert_ptr_null(doc.config.user);
	ck_assert_ptr_null(doc.config.os);
	ck_assert_ptr_null(doc.config.architecture);
	ck_assert_ptr_null(doc.config.working_dir);
	ck_assert_ptr_null(doc.config.stop_signal);
	ck_assert_ptr_null(doc.config.created);
}
END_TEST

START_TEST(empty_entrypoint_is_none)
{
	AUTO(config_doc) struct config_doc doc = CONFIG_DOC_INIT;

	read_ok(WITH("\"Entrypoint\":[\"\"],\"Cmd\":[\"x\"]"), &doc);
	ck_assert_uint_eq(doc.config.entrypoint.n, 0);
	ck_assert_uint_eq(doc.config.cmd.n, 1);
	config_doc_done(&doc);
	read_ok(WITH("\"Entrypoint\":[],\"Cmd\":[]"), &doc);
	ck_assert_uint_eq(doc.config.entrypoint.n + doc.config.cmd.n, 0);
	config_doc_done(&doc);
	read_ok(WITH("\"Entrypoint\":[\"\",\"x\"]"), &doc);
	ck_assert_uint_eq(doc.config.entrypoint.n, 2);
}
END_TEST

START_TEST(env_is_made_uniform)
{
	AUTO(config_doc) struct config_doc doc = CONFIG_DOC_INIT;

	read_ok(WITH("\"Env\":[\"NAME\",\"=x\",\"\",\"A=\",\"B=1\"]"), &doc);
	ck_assert_uint_eq(doc.config.env.n, 3);
	ck_assert_str_eq(doc.config.env.v[0], "NAME=");
	ck_assert_str_eq(doc.config.env.v[1], "A=");
	ck_assert_str_eq(doc.config.env.v[2], "B=1");
}
END_TEST

struct bad {
	const char *text;
	const char *reason;
	enum errc code;
};

static const struct bad bad[] = {
	{ "", "json", ERRC_INVALID },
	{ "[]", "expected an object", ERRC_INVALID },
	{ "{}", "rootfs: missing", ERRC_INVALID },
	{ "{\"rootfs\":[]}", "rootfs: expected an object", ERRC_INVALID },
	{ WITH("\"Cmd\":\"sh\""), "config.Cmd: expected an array of strings", ERRC_INVALID },
	{ WITH("\"Entrypoint\":\"sh\""), "config.Entrypoint", ERRC_INVALID },
	{ WITH("\"Cmd\":[\"sh\",1]"), "config.Cmd[1]: expected a string", ERRC_INVALID },
	{ WITH("\"Cmd\":[null]"), "config.Cmd[0]: expected a string", ERRC_INVALID },
	{ WITH("\"Env\":{\"A\":\"b\"}"), "config.Env", ERRC_INVALID },
	{ WITH("\"Volumes\":[\"/a\"]"), "config.Volumes: expected an object", ERRC_INVALID },
	{ WITH("\"User\":0"), "config.User: expected a string", ERRC_INVALID },
	{ WITH("\"cmd\":[\"sh\"]"), "config.cmd", ERRC_INVALID },
	{ "{\"os\":\"windows\"," ROOTFS "}", "for windows", ERRC_UNSUPPORTED },
	{ "{\"os\":\"Linux\"," ROOTFS "}", "for Linux", ERRC_UNSUPPORTED },
	{ "{\"os\":1," ROOTFS "}", "os: expected a string", ERRC_INVALID },
	{ "{\"rootfs\":{\"type\":\"base\",\"diff_ids\":[]}}", "rootfs.type", ERRC_UNSUPPORTED },
	{ "{\"rootfs\":{\"diff_ids\":\"" SHA_A "\"}}", "expected an array", ERRC_INVALID },
	{ "{\"rootfs\":{\"diff_ids\":[1]}}", "rootfs.diff_ids[0]: expected a digest",
			ERRC_INVALID },
	{ "{\"rootfs\":{\"diff_ids\":[\"sha256:\"]}}", "expected a digest", ERRC_INVALID },
	{ "{\"rootfs\":{\"diff_ids\":[\"" SHA_A "\",\"sha256:../x\"]}}", "diff_ids[1]",
			ERRC_INVALID },
	{ "{\"rootfs\":{\"diff_ids\":[\"" SHA512 "\"]}}", "only sha256", ERRC_UNSUPPORTED },
};

START_TEST(refuses)
{
	AUTO(config_doc) struct config_doc doc = CONFIG_DOC_INIT;
	struct error e = ERROR_INIT;

	ck_assert_msg(config_parse(span_of(bad[_i].text), &doc, &e) == -1, "%s", bad[_i].text);
	ck_assert_msg(e.code == bad[_i].code, "%s: %s", bad[_i].text, e.text);
	ck_assert_msg(strstr(e.text, bad[_i].reason) != NULL, "%s: %s", bad[_i].text, e.text);
	ck_assert_ptr_null(doc.diffs);
}
END_TEST

/* Lists of n elements: one within each bound, one beyond. */
struct bound {
	const char *head;
	const char *element; /* with %d for the number */
	const char *tail;
	int max;
};

static const struct bound bounds[] = {
	{ "{\"rootfs\":{\"diff_ids\":[", "\"" SHA_A "\"", "]}}", LIMIT_LAYERS },
	{ "{\"rootfs\":{},\"config\":{\"Env\":[", "\"A=1\"", "]}}", LIMIT_ARGS },
	{ "{\"rootfs\":{},\"config\":{\"Cmd\":[", "\"x\"", "]}}", LIMIT_ARGS },
};

START_TEST(lists_are_bounded)
{
	const struct bound *b = &bounds[_i / 2];
	int n = b->max + _i % 2;
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);
	AUTO(config_doc) struct config_doc doc = CONFIG_DOC_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(buf_append_str(&text, b->head), 0);
	for (int i = 0; i < n; i++) {
		ck_assert_int_eq(buf_append_str(&text, i ? "," : ""), 0);
		ck_assert_int_eq(buf_append_str(&text, b->element), 0);
	}
	ck_assert_int_eq(buf_append_str(&text, b->tail), 0);
	ck_assert_int_eq(config_parse(buf_span(&text), &doc, &e), _i % 2 ? -1 : 0);
	ck_assert_int_eq(e.code, _i % 2 ? ERRC_LIMIT : ERRC_OK);
}
END_TEST

START_TEST(volumes_are_bounded)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);
	AUTO(config_doc) struct config_doc doc = CONFIG_DOC_INIT;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(buf_append_str(&text, "{\"rootfs\":{},\"config\":{\"Volumes\":{"), 0);
	for (int i = 0; i < LIMIT_VOLUMES + _i; i++) {
		ck_assert_int_eq(buf_appendf(&text, "%s\"/v%d\":{}", i ? "," : "", i), 0);
	}
	ck_assert_int_eq(buf_append_str(&text, "}}}"), 0);
	ck_assert_int_eq(config_parse(buf_span(&text), &doc, &e), _i ? -1 : 0);
	ck_assert_int_eq(e.code, _i ? ERRC_LIMIT : ERRC_OK);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("config");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, reads_docker);
	tcase_add_loop_test(tc, takes_bare_ones, 0, ARRAY_SIZE(bare));
	tcase_add_test(tc, empty_entrypoint_is_none);
	tcase_add_test(tc, env_is_made_uniform);
	tcase_add_loop_test(tc, refuses, 0, ARRAY_SIZE(bad));
	tcase_add_loop_test(tc, lists_are_bounded, 0, 2 * ARRAY_SIZE(bounds));
	tcase_add_loop_test(tc, volumes_are_bounded, 0, 2);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
