/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/capability.h>

#include <osbx/caps.h>
#include <osbx/idmap.h>
#include <osbx/mem.h>

#include "../unit.h"

#define ALL_CAPS   ((UINT64_C(1) << 41) - 1)
#define WHOLE      "         0          0 4294967295\n"
#define PASSWD     "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n"
#define FIRST_LINE "osbx:500000:655360\n"

/* Facts in short, and the answer as one line of text. */
static const struct row {
	const char *name;
	uint32_t euid;
	uint32_t egid;
	uint64_t no_caps; /* missing ones of root */
	bool child;
	bool setgroups_denied;
	bool no_helpers;
	const char *uid_map;
	const char *gid_map;
	const char *subuid;
	const char *subgid;
	const char *passwd;
	const char *wanted;
} rows[] = {
	{ .name = "root", .wanted = "mapped s u 0:1879048192:65536 g 0:1879048192:65536" },
	{ .name = "root with a range of its own: set later",
			.subuid = FIRST_LINE,
			.wanted = "mapped s u 0:1879048192:65536 g 0:1879048192:65536" },
	{ .name = "root that cannot mount",
			.no_caps = CAPS_BIT(CAP_SYS_ADMIN),
			.wanted = "shared s u 0:1879048192:65536 g 0:1879048192:65536" },
	{ .name = "root that cannot mount, own range",
			.no_caps = CAPS_BIT(CAP_SYS_ADMIN),
			.subuid = FIRST_LINE,
			.wanted = "shared s u 0:500000:65536 g 0:500000:65536" },
	{ .name = "root without setuid",
			.no_caps = CAPS_BIT(CAP_SETUID),
			.wanted = "single u 0:0:1 g 0:0:1" },
	{ .name = "root without setgid and setfcap",
			.no_caps = CAPS_BIT(CAP_SETGID) | CAPS_BIT(CAP_SETFCAP),
			.wanted = "unsupported" },
	{ .name = "child, everything mapped",
			.child = true,
			.wanted = "shared s u 0:1879048192:65536 g 0:1879048192:65536" },
	{ .name = "child, one id",
			.child = true,
			.setgroups_denied = true,
			.uid_map = "0 1000 1\n",
			.gid_map = "0 1000 1\n",
			.wanted = "single u 0:0:1 g 0:0:1" },
	{ .name = "child, one id, no setfcap",
			.child = true,
			.no_caps = CAPS_BIT(CAP_SETFCAP),
			.uid_map = "0 1000 1\n",
			.gid_map = "0 1000 1\n",
			.wanted = "unsupported" },
	{ .name = "child, two extents in a row",
			.child = true,
			.uid_map = "1 100000 9\n0 1000 1\n",
			.gid_map = "0 1000 1\n1 100000 7\n",
			.wanted = "shared s u 0:0:10 g 0:0:8" },
	{ .name = "child, more than a sandbox needs",
			.child = true,
			.uid_map = "0 1000 1\n1 100000 65536\n",
			.gid_map = "0 1000 1\n1 100000 65536\n",
			.wanted = "shared s u 0:0:65536 g 0:0:65536" },
	{ .name = "child, gap",
			.child = true,
			.uid_map = "0 1000 5\n6 100000 65536\n",
			.gid_map = "0 1000 3\n",
			.wanted = "shared s u 0:0:5 g 0:0:3" },
	{ .name = "child, ids but groups denied",
			.child = true,
			.setgroups_denied = true,
			.uid_map = "0 1000 5\n",
			.gid_map = "0 1000 5\n",
			.wanted = "shared u 0:0:5 g 0:0:5" },
	{ .name = "child, many users but one group",
			.child = true,
			.uid_map = "0 1000 5\n",
			.gid_map = "0 1000 1\n",
			.wanted = "single u 0:0:1 g 0:0:1" },
	{ .name = "child, ids but no setfcap: leave 0 out",
			.child = true,
			.no_caps = CAPS_BIT(CAP_SETFCAP),
			.uid_map = "0 1000 10\n",
			.gid_map = "0 1000 10\n",
			.wanted = "shared s u 0:1:9 g 0:1:9" },
	{ .name = "child, the root range is half there",
			.child = true,
			.uid_map = "0 0 1879048192\n1879048192 1879048192 65535\n",
			.gid_map = WHOLE,
			.wanted = "shared s u 0:0:65536 g 0:0:65536" },
	{ .name = "child, the root range only",
			.child = true,
			.subuid = FIRST_LINE,
			.uid_map = "0 0 1\n500000 500000 65536\n",
			.gid_map = "0 0 1\n500000 500000 65536\n",
			.wanted = "shared s u 0:500000:65536 g 0:500000:65536" },
	{ .name = "user by name",
			.euid = 1000,
			.egid = 1000,
			.subuid = "ann:100000:65536\n",
			.subgid = "ann:200000:65536\n",
			.wanted = "subid h s u 0:1000:1 1:100000:65535 g 0:1000:1 1:200000:65535" },
	{ .name = "user by number",
			.euid = 1001,
			.egid = 100,
			.subuid = "1001:100000:65536\n",
			.subgid = "1001:100000:10\n",
			.wanted = "subid h s u 0:1001:1 1:100000:65535 g 0:100:1 1:100000:10" },
	{ .name = "no final line feed",
			.euid = 1000,
			.egid = 1000,
			.subuid = "ann:100000:10",
			.subgid = "ann:100000:10",
			.wanted = "subid h s u 0:1000:1 1:100000:10 g 0:1000:1 1:100000:10" },
	{ .name = "several ranges",
			.euid = 1000,
			.egid = 1000,
			.subuid = "ann:100000:10\nbob:5000:5\nann:300000:20\n",
			.subgid = "ann:100000:65536\nann:300000:65536\n",
			.wanted = "subid h s u 0:1000:1 1:100000:10 11:300000:20 "
				  "g 0:1000:1 1:100000:65535" },
	{ .name = "overlaps are skipped",
			.euid = 1000,
			.egid = 1000,
			.subuid = "ann:100000:10\nann:100009:5\nann:100010:5\n",
			.subgid = "ann:900:200\nann:100000:10\n",
			.wanted = "subid h s u 0:1000:1 1:100000:10 11:100010:5 "
				  "g 0:1000:1 1:100000:10" },
	{ .name = "more ranges than a map holds",
			.euid = 1000,
			.egid = 1000,
			.subuid = "ann:100:1\nann:110:1\nann:120:1\nann:130:1\nann:140:1\n"
				  "ann:150:1\nann:160:1\nann:170:1\nann:180:1\n",
			.subgid = "ann:100:1\n",
			.wanted = "subid h s u 0:1000:1 1:100:1 2:110:1 3:120:1 4:130:1 5:140:1 "
				  "6:150:1 7:160:1 g 0:1000:1 1:100:1" },
	{ .name = "host root is nobody's",
			.euid = 1000,
			.egid = 1000,
			.subuid = "ann:0:10\n",
			.subgid = "ann:100000:10\n",
			.wanted = "single u 0:1000:1 g 0:1000:1" },
	{ .name = "broken lines",
			.euid = 1000,
			.egid = 1000,
			.subuid = "ann:100000\nann:-5:10\nann: 100000:10\nann:100000:10:\nann:0x10:10\n"
				  "ann:100000:0\nann:4294967290:65536\nann:99999999999:10\n:1:2\n\n"
				  "ann::\nAnn:100000:10\nann:100000:10 \n",
			.subgid = "ann:100000:10\n",
			.wanted = "single u 0:1000:1 g 0:1000:1" },
	{ .name = "no groups",
			.euid = 1000,
			.egid = 1000,
			.subuid = "ann:100000:65536\n",
			.wanted = "single u 0:1000:1 g 0:1000:1" },
	{ .name = "no users",
			.euid = 1000,
			.egid = 1000,
			.subgid = "ann:100000:65536\n",
			.wanted = "single u 0:1000:1 g 0:1000:1" },
	{ .name = "no helpers",
			.euid = 1000,
			.egid = 1000,
			.no_helpers = true,
			.subuid = "ann:100000:65536\n",
			.subgid = "ann:100000:65536\n",
			.wanted = "single u 0:1000:1 g 0:1000:1" },
	{ .name = "groups denied outside",
			.euid = 1000,
			.egid = 1000,
			.setgroups_denied = true,
			.subuid = "ann:100000:65536\n",
			.subgid = "ann:100000:65536\n",
			.wanted = "single u 0:1000:1 g 0:1000:1" },
	{ .name = "ranges that do not exist here",
			.euid = 1000,
			.egid = 1000,
			.child = true,
			.uid_map = "0 0 100005\n",
			.subuid = "ann:100000:10\nann:50000:10\n",
			.subgid = "ann:100000:10\n",
			.wanted = "subid h s u 0:1000:1 1:50000:10 g 0:1000:1 1:100000:10" },
	{ .name = "nobody in passwd",
			.euid = 1002,
			.egid = 1002,
			.subuid = "ann:100000:10\n",
			.subgid = "ann:100000:10\n",
			.wanted = "single u 0:1002:1 g 0:1002:1" },
	{ .name = "lax passwd lines do not count",
			.euid = 1003,
			.egid = 1003,
			.passwd = "eve:x:01003x:1::/:/bin/sh\neve:x:1003\neve:x: 1003:1::/:/bin/sh\n"
				  "eve:x:1003:1::/:/bin/sh:more\n",
			.subuid = "eve:100000:10\n",
			.subgid = "eve:100000:10\n",
			.wanted = "single u 0:1003:1 g 0:1003:1" },
	{ .name = "an empty name is nobody",
			.euid = 1004,
			.egid = 1004,
			.passwd = ":x:1004:1::/:/bin/sh\n",
			.subuid = ":100000:10\n",
			.subgid = ":100000:10\n",
			.wanted = "single u 0:1004:1 g 0:1004:1" },
};

static struct span span_or_empty(const char *s)
{
	return s ? span_of(s) : (struct span){ .p = "", .n = 0 };
}

static void ranges_print(struct buf *b, const struct idmap_range *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ck_assert_int_eq(buf_appendf(b, " %u:%u:%u", r[i].inside, r[i].outside, r[i].count),
				0);
	}
}

START_TEST(modes)
{
	const struct row *row = &rows[_i];
	struct idmap_facts facts = {
		.euid = row->euid,
		.egid = row->egid,
		.caps = row->euid == 0 ? ALL_CAPS & ~row->no_caps : 0,
		.initial = !row->child,
		.setgroups = !row->setgroups_denied,
		.helpers = !row->no_helpers,
		.uid_map = span_of(row->uid_map ? row->uid_map : WHOLE),
		.gid_map = span_of(row->gid_map ? row->gid_map : WHOLE),
		.subuid = span_or_empty(row->subuid),
		.subgid = span_or_empty(row->subgid),
		.passwd = span_of(row->passwd ? row->passwd : PASSWD),
	};
	struct idmap map = { .mode = IDMAP_MODE_COUNT };
	struct error e = ERROR_INIT;
	AUTO(buf) struct buf b = BUF_INIT(1024);

	if (idmap_decide(&facts, &map, &e) < 0) {
		ck_assert_int_eq(e.code, ERRC_UNSUPPORTED);
		ck_assert_ptr_nonnull(strstr(e.text, "SETFCAP"));
		ck_assert_uint_gt(strlen(e.hint), 0);
		ck_assert_int_eq(e.truncated, 0);
		ck_assert_int_eq(map.mode, IDMAP_MODE_COUNT);
		ck_assert_msg(strcmp(row->wanted, "unsupported") == 0, "%s", row->name);
		return;
	}
	ck_assert_int_eq(buf_appendf(&b, "%s%s%s u", idmap_mode_name(map.mode),
					 map.helpers ? " h" : "", map.setgroups ? " s" : ""),
			0);
	ranges_print(&b, map.uids, map.uids_n);
	ck_assert_int_eq(buf_append_str(&b, " g"), 0);
	ranges_print(&b, map.gids, map.gids_n);
	ck_assert_msg(strcmp(b.p, row->wanted) == 0, "%s: %s", row->name, b.p);
}
END_TEST

START_TEST(as_many_extents_as_the_kernel_has)
{
	AUTO(buf) struct buf map_text = BUF_INIT(1U << 20);
	struct idmap map;
	struct error e = ERROR_INIT;

	for (unsigned int i = 0; i < 400; i++) {
		ck_assert_int_eq(buf_appendf(&map_text, "%10u %10u %10u\n", i, 1000 + 2 * i, 1), 0);
	}
	struct idmap_facts facts = {
		.caps = ALL_CAPS,
		.setgroups = true,
		.uid_map = buf_span(&map_text),
		.gid_map = buf_span(&map_text),
	};

	ck_assert_int_eq(idmap_decide(&facts, &map, &e), 0);
	ck_assert_int_eq(map.mode, IDMAP_SHARED);
	/* Linux's maximum is 340; what is behind does not exist. */
	ck_assert_uint_eq(map.uids[0].count, 340);
}
END_TEST

START_TEST(garbage_in_a_map)
{
	static const char text[] = "0 0\n0 0 1 1\nx 0 1\n0 0 4294967296\n 0 7 3\0\n";
	struct idmap_facts facts = {
		.caps = ALL_CAPS,
		.uid_map = { .p = text, .n = sizeof(text) - 1 },
		.gid_map = { .p = text, .n = sizeof(text) - 1 },
	};
	struct idmap map;
	struct error e = ERROR_INIT;

	ck_assert_int_eq(idmap_decide(&facts, &map, &e), 0);
	ck_assert_int_eq(map.mode, IDMAP_SINGLE);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("idmap_decide");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, modes, 0, ARRAY_SIZE(rows));
	tcase_add_test(tc, as_many_extents_as_the_kernel_has);
	tcase_add_test(tc, garbage_in_a_map);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
