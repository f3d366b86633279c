/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <seccomp.h>

#include <osbx/caps.h>

#include "../../../policy/secfilter_profile.h"
#include "../unit.h"

#define RELEASE "6.1.0-13-amd64"

#if defined(__x86_64__)
#	define GO_ARCH "amd64"
#elif defined(__aarch64__)
#	define GO_ARCH "arm64"
#else
#	define GO_ARCH "riscv64"
#endif

static const uint64_t caps = CAPS_BIT(0) | CAPS_BIT(18); /* CHOWN, SYS_CHROOT */

static void good(const char *text, struct profile *p)
{
	struct error e = ERROR_INIT;

	*p = (struct profile){ .rules_n = 99 };
	ck_assert_msg(profile_parse(span_of(text), caps, RELEASE, p, &e) == 0, "%s: %s", text,
			e.text);
}

START_TEST(whole_document)
{
	struct profile p;

	good("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 38,"
	     "\"defaultErrno\": \"ENOSYS\", \"flags\": [\"SECCOMP_FILTER_FLAG_LOG\"],"
	     "\"archMap\": [{\"architecture\": \"SCMP_ARCH_X86_64\","
	     "               \"subArchitectures\": [\"SCMP_ARCH_X86\", \"SCMP_ARCH_X32\"]},"
	     "              {\"architecture\": \"SCMP_ARCH_AARCH64\","
	     "               \"subArchitectures\": [\"SCMP_ARCH_ARM\"]}],"
	     "\"syscalls\": [{\"names\": [\"read\", \"write\"], \"action\": \"SCMP_ACT_ALLOW\","
	     "                \"args\": null, \"comment\": \"\", \"includes\": {}, \"excludes\": {}},"
	     "               {\"name\": \"clone\", \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 5,"
	     "                \"errno\": \"EPERM\", \"args\": [{\"index\": 0, \"value\": 2114060288,"
	     "                \"valueTwo\": 7, \"op\": \"SCMP_CMP_MASKED_EQ\"}]}]}",
			&p);
	ck_assert_uint_eq(p.default_action, SCMP_ACT_ERRNO(38));
#if defined(__x86_64__)
	ck_assert_uint_eq(p.arches_n, 2);
	ck_assert_uint_eq(p.arches[0], SCMP_ARCH_X86);
	ck_assert_uint_eq(p.arches[1], SCMP_ARCH_X32);
#endif
	ck_assert_uint_eq(p.rules_n, 2);
	ck_assert_uint_eq(p.rules[0].names.n, 2);
	ck_assert_uint_eq(p.rules[0].action, SCMP_ACT_ALLOW);
	ck_assert_str_eq(p.rules[1].names.v[0], "clone");
	ck_assert_uint_eq(p.rules[1].action, SCMP_ACT_ERRNO(5));
	ck_assert_uint_eq(p.rules[1].args_n, 1);
	ck_assert_uint_eq(p.rules[1].args[0].value, 2114060288);
	ck_assert_uint_eq(p.rules[1].args[0].value_two, 7);
	ck_assert_int_eq(p.rules[1].args[0].op, SCMP_CMP_MASKED_EQ);
	ck_assert(!p.rules[1].is_alternative);
	profile_done(&p);
}
END_TEST

START_TEST(default_errors)
{
	struct profile p;

	good("{\"defaultAction\": \"SCMP_ACT_ERRNO\"}", &p);
	ck_assert_uint_eq(p.default_action, SCMP_ACT_ERRNO(EPERM));
	profile_done(&p);
	good("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrno\": \"ENOSYS\"}", &p);
	ck_assert_uint_eq(p.default_action, SCMP_ACT_ERRNO(ENOSYS));
	profile_done(&p);
	good("{\"defaultAction\": \"SCMP_ACT_KILL_PROCESS\", \"defaultErrnoRet\": 3}", &p);
	ck_assert_uint_eq(p.default_action, SCMP_ACT_KILL_PROCESS);
	profile_done(&p);
}
END_TEST

/* runc's reading: an argument that is named twice makes alternatives. */
START_TEST(repeated_argument)
{
	struct profile p;

	good("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [{\"names\": [\"socket\"],"
	     "\"action\": \"SCMP_ACT_ALLOW\", \"args\": ["
	     "{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"},"
	     "{\"index\": 0, \"value\": 2, \"op\": \"SCMP_CMP_EQ\"}]}]}",
			&p);
	ck_assert(p.rules[0].is_alternative);
	profile_done(&p);
}
END_TEST

START_TEST(conditions)
{
	static const struct {
		const char *condition;
		size_t rules;
	} rows[] = {
		{ "\"includes\": {\"caps\": [\"CAP_CHOWN\"]}", 1 },
		{ "\"includes\": {\"caps\": [\"CAP_CHOWN\", \"CAP_SYS_CHROOT\"]}", 1 },
		{ "\"includes\": {\"caps\": [\"CAP_CHOWN\", \"CAP_SYS_ADMIN\"]}", 0 },
		{ "\"includes\": {\"caps\": [\"CAP_OF_TOMORROW\"]}", 0 },
		{ "\"excludes\": {\"caps\": [\"CAP_SYS_ADMIN\"]}", 1 },
		{ "\"excludes\": {\"caps\": [\"CAP_SYS_ADMIN\", \"CAP_CHOWN\"]}", 0 },
		{ "\"includes\": {\"arches\": [\"" GO_ARCH "\", \"s390x\"]}", 1 },
		{ "\"includes\": {\"arches\": [\"s390x\"]}", 0 },
		{ "\"includes\": {\"arches\": []}", 1 },
		{ "\"excludes\": {\"arches\": [\"" GO_ARCH "\"]}", 0 },
		{ "\"excludes\": {\"arches\": [\"s390x\"]}", 1 },
		{ "\"includes\": {\"minKernel\": \"4.8\"}", 1 },
		{ "\"includes\": {\"minKernel\": \"6.1\"}", 1 },
		{ "\"includes\": {\"minKernel\": \"6.2\"}", 0 },
		{ "\"includes\": {\"minKernel\": \"10.0\"}", 0 },
		{ "\"excludes\": {\"minKernel\": \"4.8\"}", 0 },
		{ "\"excludes\": {\"minKernel\": \"7.0\"}", 1 },
		{ "\"includes\": {\"caps\": [\"CAP_CHOWN\"]}, \"excludes\": {\"caps\": [\"CAP_CHOWN\"]}",
				0 },
	};
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct profile p;

		snprintf(text, sizeof(text),
				"{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [{\"names\": "
				"[\"read\"], \"action\": \"SCMP_ACT_ALLOW\", %s}]}",
				rows[i].condition);
		good(text, &p);
		ck_assert_msg(p.rules_n == rows[i].rules, "%s: %zu", text, p.rules_n);
		profile_done(&p);
	}
}
END_TEST

#define RULE(members) "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{" members "}]}"

START_TEST(bad_documents)
{
	static const struct {
		const char *text;
		enum errc code;
		const char *error;
	} rows[] = {
		{ "{}", ERRC_INVALID, "defaultAction: missing" },
		{ "[]", ERRC_INVALID, "expected an object" },
		{ "{\"defaultAction\": 1}", ERRC_INVALID, "defaultAction: expected a string" },
		{ "{\"defaultAction\": \"ALLOW\"}", ERRC_INVALID,
				"defaultAction: action \"ALLOW\" is not supported" },
		{ "{\"defaultAction\": \"SCMP_ACT_NOTIFY\"}", ERRC_UNSUPPORTED,
				"defaultAction: action \"SCMP_ACT_NOTIFY\" is not supported" },
		{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"sycalls\": []}", ERRC_INVALID,
				"sycalls: unknown member" },
		{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"listenerPath\": \"/x\"}",
				ERRC_UNSUPPORTED, "listenerPath: listeners are not supported" },
		{ "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrno\": \"EWHAT\"}",
				ERRC_INVALID, "defaultAction: error \"EWHAT\" is unknown" },
		{ RULE("\"names\": [\"read\"]"), ERRC_INVALID, "syscalls[0]: action: missing" },
		{ RULE("\"action\": \"SCMP_ACT_KILL\""), ERRC_INVALID, "syscalls[0]: no names" },
		{ RULE("\"names\": [\"a\"], \"name\": \"b\", \"action\": \"SCMP_ACT_KILL\""),
				ERRC_INVALID, "syscalls[0]: both \"name\" and \"names\"" },
		{ RULE("\"names\": [\"a\"], \"action\": \"SCMP_ACT_X\""), ERRC_INVALID,
				"syscalls[0]: action \"SCMP_ACT_X\" is not supported" },
		{ RULE("\"names\": [\"a\"], \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 4096"),
				ERRC_LIMIT, "syscalls[0]: errnoRet: larger than 4095" },
		{ RULE("\"names\": [\"a\"], \"action\": \"SCMP_ACT_KILL\", \"include\": {}"),
				ERRC_INVALID, "syscalls[0]: include: unknown member" },
		{ RULE("\"names\": [\"a\"], \"action\": \"SCMP_ACT_KILL\", \"includes\": {\"cap\": []}"),
				ERRC_INVALID, "syscalls[0]: includes.cap: unknown member" },
		{ RULE("\"names\": [\"a\"], \"action\": \"SCMP_ACT_KILL\", "
		       "\"includes\": {\"minKernel\": \"new\"}"),
				ERRC_INVALID,
				"syscalls[0]: minKernel \"new\" is not of the form 4.8" },
		{ RULE("\"names\": [\"a\"], \"action\": \"SCMP_ACT_KILL\", \"args\": [{\"index\": 6, "
		       "\"value\": 0, \"op\": \"SCMP_CMP_EQ\"}]"),
				ERRC_LIMIT, "syscalls[0]: args[0]: index: larger than 5" },
		{ RULE("\"names\": [\"a\"], \"action\": \"SCMP_ACT_KILL\", \"args\": [{\"index\": 0, "
		       "\"op\": \"SCMP_CMP_EQ\"}]"),
				ERRC_INVALID, "syscalls[0]: args[0]: value: missing" },
		{ RULE("\"names\": [\"a\"], \"action\": \"SCMP_ACT_KILL\", \"args\": [{\"index\": 0, "
		       "\"value\": 0, \"op\": \"EQ\"}]"),
				ERRC_INVALID,
				"syscalls[0]: args[0]: op: expected SCMP_CMP_ and NE, LT, LE, EQ, GE, GT "
				"or MASKED_EQ" },
		{ RULE("\"names\": [\"a\"], \"action\": \"SCMP_ACT_KILL\", "
		       "\"args\": [1, 2, 3, 4, 5, 6, 7]"),
				ERRC_INVALID,
				"syscalls[0]: args: expected an array of at most 6 conditions" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct profile p = { .rules_n = 99 };
		struct error e = ERROR_INIT;
		int r = profile_parse(span_of(rows[i].text), caps, RELEASE, &p, &e);

		ck_assert_msg(r == -1, "%s", rows[i].text);
		ck_assert_str_eq(e.text, rows[i].error);
		ck_assert_int_eq(e.code, rows[i].code);
		ck_assert_uint_eq(p.rules_n, 99);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("secfilter_profile");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, whole_document);
	tcase_add_test(tc, default_errors);
	tcase_add_test(tc, repeated_argument);
	tcase_add_test(tc, conditions);
	tcase_add_test(tc, bad_documents);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
