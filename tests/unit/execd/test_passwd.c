/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>

#include "../../../execd/passwd.h"
#include "../unit.h"

static const char passwd_text[] = "# comment\n"
				  "root:x:0:0:root:/root:/bin/sh\n"
				  "+nis::::::\n"
				  "\n"
				  "short:x\n"
				  "app:x:1000:1001:App:/home/app:/bin/sh\n"
				  "app:x:5:5:second of its name:/second:/bin/sh\n"
				  "nohome:x:1002:1002\n"
				  "relative:x:1003:1003::home/relative:\n"
				  "badid:x:1e3:5::/:\n"
				  "badgid:x:1004:-1::/:\n"
				  "huge:x:4294967296:0::/:\n"
				  "minusone:x:4294967295:0::/:\n"
				  "far:x:70000:70000::/far:\n"
				  "1234:x:0:0:a name of digits:/root:\n"
				  ":x:77:77:no name:/noname:\n"
				  "last:x:1009:1009::/last:/bin/sh";
static const char group_text[] = "root:x:0:\n"
				 "app:x:1001:\n"
				 "wheel:x:10:root,app\n"
				 "video:x:44:app,other\n"
				 "again:x:44:app\n"
				 "prefix:x:45:apples,xapp\n"
				 "none:x:46:\n"
				 "badgid:x:x:badmember\n"
				 "far:x:70000:farmember\n"
				 "999:x:1:\n"
				 "empty:x:47:,";

static struct strv no_groups = STRV_INIT;

static struct passwd_query query_of(const char *user)
{
	return (struct passwd_query){
		.user = user,
		.groups = &no_groups,
		.ids_max = 65536,
		.has_setgroups = true,
	};
}

static const struct passwd_files files = {
	.passwd = { .text = { passwd_text, sizeof(passwd_text) - 1 } },
	.group = { .text = { group_text, sizeof(group_text) - 1 } },
};

static const struct passwd_files no_files = {
	.passwd = { .absent = "does not exist" },
	.group = { .absent = "does not exist" },
};

struct row {
	const char *user;
	uint32_t uid;
	uint32_t gid;
	const char *groups;
	const char *home;
};

static void check_row(const struct row *row, const struct passwd_files *from)
{
	struct passwd_query q = query_of(row->user);
	AUTO(passwd_user) struct passwd_user u = { .uid = 99 };
	struct error e = ERROR_INIT;
	char groups[256] = "";

	ck_assert_msg(passwd_lookup(&q, from, &u, &e) == 0, "%s: %s", row->user, e.text);
	for (size_t i = 0; i < u.groups_n; i++) {
		size_t n = strlen(groups);

		snprintf(groups + n, sizeof(groups) - n, "%s%u", n ? " " : "", u.groups[i]);
	}
	ck_assert_msg(u.uid == row->uid && u.gid == row->gid, "%s: %u:%u", row->user, u.uid, u.gid);
	ck_assert_msg(strcmp(groups, row->groups) == 0, "%s: groups %s", row->user, groups);
	ck_assert_msg(strcmp(u.home, row->home) == 0, "%s: home %s", row->user, u.home);
}

START_TEST(good_users)
{
	static const struct row rows[] = {
		{ "", 0, 0, "10", "/root" },
		{ "0", 0, 0, "10", "/root" },
		{ "root", 0, 0, "10", "/root" },
		{ "app", 1000, 1001, "10 44", "/home/app" },
		{ "1000", 1000, 1001, "10 44", "/home/app" },
		{ "01000", 1000, 1001, "10 44", "/home/app" },
		/* An explicit group replaces the user's own. */
		{ "app:none", 1000, 46, "", "/home/app" },
		{ "app:5", 1000, 5, "", "/home/app" },
		{ "1000:wheel", 1000, 10, "", "/home/app" },
		{ "4321:1234", 4321, 1234, "", "/" },
		{ "4321", 4321, 0, "", "/" },
		{ "65535:65535", 65535, 65535, "", "/" },
		{ "nohome", 1002, 1002, "", "/" },
		{ "relative", 1003, 1003, "", "/" },
		/* Digits are an id, not the name that somebody planted (CVE-2024-40635). */
		{ "1234", 1234, 0, "", "/" },
		{ "app:999", 1000, 999, "", "/home/app" },
		/* A line without a name is nobody, and no member of "empty". */
		{ "77", 77, 0, "", "/" },
		{ "last", 1009, 1009, "", "/last" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		check_row(&rows[i], &files);
	}
}
END_TEST

START_TEST(good_users_without_files)
{
	static const struct row rows[] = {
		{ "", 0, 0, "", "/" },
		{ "0", 0, 0, "", "/" },
		{ "1000", 1000, 0, "", "/" },
		{ "1000:1000", 1000, 1000, "", "/" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		check_row(&rows[i], &no_files);
	}
}
END_TEST

static struct error bad(const struct passwd_query *q, const struct passwd_files *from)
{
	struct passwd_user u = { .uid = 99 };
	struct error e = ERROR_INIT;

	ck_assert_msg(passwd_lookup(q, from, &u, &e) == -1, "\"%s\" is accepted", q->user);
	ck_assert_uint_eq(u.uid, 99);
	ck_assert_ptr_null(u.home);
	return e;
}

START_TEST(bad_users)
{
	static const struct {
		const char *user;
		const char *text;
	} rows[] = {
		{ "nobody", "user \"nobody\" is not in /etc/passwd of the image" },
		{ "App", "user \"App\" is not in /etc/passwd of the image" },
		{ "app:nogroup", "group \"nogroup\" is not in /etc/group of the image" },
		{ ":5", "user \":5\" is not of the form USER[:GROUP]" },
		{ ":", "user \":\" is not of the form USER[:GROUP]" },
		{ "app:", "user \"app:\" is not of the form USER[:GROUP]" },
		{ "1:2:3", "user \"1:2:3\" is not of the form USER[:GROUP]" },
		/* CVE-2026-30892 and the like: none of these is root. */
		{ "4294967295", "user id \"4294967295\" is not a number from 0 to 4294967294" },
		{ "4294967296", "user id \"4294967296\" is not a number from 0 to 4294967294" },
		{ "18446744073709551616",
				"user id \"18446744073709551616\" is not a number from 0 to "
				"4294967294" },
		{ "0:4294967296", "group id \"4294967296\" is not a number from 0 to 4294967294" },
		{ "-1", "user \"-1\" is not in /etc/passwd of the image" },
		{ "+0", "user \"+0\" is not in /etc/passwd of the image" },
		{ "0x0", "user \"0x0\" is not in /etc/passwd of the image" },
		{ " 0", "user \" 0\" is not in /etc/passwd of the image" },
		{ "0 ", "user \"0 \" is not in /etc/passwd of the image" },
		{ "1e3", "user \"1e3\" is not in /etc/passwd of the image" },
		{ "+nis", "user \"+nis\" is not in /etc/passwd of the image" },
		{ "short", "user \"short\" is not in /etc/passwd of the image" },
		{ "badid", "/etc/passwd of the image has no valid ids for user \"badid\"" },
		{ "badgid", "/etc/passwd of the image has no valid ids for user \"badgid\"" },
		{ "huge", "/etc/passwd of the image has no valid ids for user \"huge\"" },
		{ "minusone", "/etc/passwd of the image has no valid ids for user \"minusone\"" },
		{ "0:badgid", "/etc/group of the image has no valid id for group \"badgid\"" },
		/* Ids that this sandbox does not have. */
		{ "far", "user id 70000: this sandbox has the ids 0 to 65535 only" },
		{ "65536", "user id 65536: this sandbox has the ids 0 to 65535 only" },
		{ "0:far", "group id 70000: this sandbox has the ids 0 to 65535 only" },
		{ "0:65536", "group id 65536: this sandbox has the ids 0 to 65535 only" },
		{ "a\033[31m", "user \"a?[31m\" is not in /etc/passwd of the image" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct passwd_query q = query_of(rows[i].user);
		struct error e = bad(&q, &files);

		ck_assert_str_eq(e.text, rows[i].text);
		ck_assert_int_eq(e.code, ERRC_INVALID);
	}
}
END_TEST

START_TEST(names_need_files)
{
	struct passwd_query q = query_of("app");
	struct error e = bad(&q, &no_files);

	ck_assert_str_eq(e.text, "user \"app\": /etc/passwd of the image does not exist");
	ck_assert_str_eq(e.hint, "use a number instead of the name");
	q.user = "0:app";
	e = bad(&q, &no_files);
	ck_assert_str_eq(e.text, "group \"app\": /etc/group of the image does not exist");
}
END_TEST

START_TEST(additional_groups)
{
	AUTO(strv) struct strv groups = STRV_INIT;
	struct passwd_query q = query_of("app");
	AUTO(passwd_user) struct passwd_user u = { .uid = 99 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(strv_add(&groups, "none"), 0);
	ck_assert_int_eq(strv_add(&groups, "3000"), 0);
	ck_assert_int_eq(strv_add(&groups, "44"), 0); /* is there already */
	q.groups = &groups;
	ck_assert_int_eq(passwd_lookup(&q, &files, &u, &e), 0);
	ck_assert_uint_eq(u.groups_n, 4);
	ck_assert_uint_eq(u.groups[2], 46);
	ck_assert_uint_eq(u.groups[3], 3000);
	ck_assert_int_eq(strv_add(&groups, "unknown"), 0);
	ck_assert_str_eq(bad(&q, &files).text,
			"group \"unknown\" is not in /etc/group of the image");
	strv_done(&groups);
	ck_assert_int_eq(strv_add(&groups, "65536"), 0);
	ck_assert_str_eq(bad(&q, &files).text,
			"group id 65536: this sandbox has the ids 0 to 65535 only");
	strv_done(&groups);
	for (int i = 0; i <= LIMIT_GROUPS; i++) {
		ck_assert_int_eq(strv_addf(&groups, "%d", 100 + i), 0);
	}
	ck_assert_int_eq(bad(&q, &files).code, ERRC_LIMIT);
}
END_TEST

/* Membership in a group that does not exist here, or has no id, is not passed over in silence. */
START_TEST(member_of_bad_groups)
{
	static const char text[] = "badmember:x:5:5::/:\nfarmember:x:6:6::/:\n";
	struct passwd_files from = files;
	struct passwd_query q = query_of("badmember");

	from.passwd.text = span_of(text);
	ck_assert_str_eq(bad(&q, &from).text,
			"/etc/group of the image has no valid id for group \"badgid\"");
	q.user = "farmember";
	ck_assert_str_eq(bad(&q, &from).text,
			"group id 70000: this sandbox has the ids 0 to 65535 only");
}
END_TEST

START_TEST(single_id)
{
	AUTO(strv) struct strv groups = STRV_INIT;
	struct passwd_query q = query_of("");
	AUTO(passwd_user) struct passwd_user u = { .uid = 99 };
	struct error e = ERROR_INIT;

	q.ids_max = 1;
	q.has_setgroups = false;
	/* Groups that cannot be set are not asked for. */
	ck_assert_int_eq(passwd_lookup(&q, &files, &u, &e), 0);
	ck_assert_uint_eq(u.groups_n, 0);
	ck_assert_str_eq(u.home, "/root");
	q.user = "app";
	e = bad(&q, &files);
	ck_assert_str_eq(e.text, "user id 1000: this sandbox has the id 0 only");
	ck_assert_ptr_nonnull(strstr(e.hint, "usermod --add-subuids"));
	q.user = "0:10";
	ck_assert_str_eq(bad(&q, &files).text, "group id 10: this sandbox has the id 0 only");
	q.user = "";
	ck_assert_int_eq(strv_add(&groups, "0"), 0);
	q.groups = &groups;
	ck_assert_int_eq(bad(&q, &files).code, ERRC_UNSUPPORTED);
}
END_TEST

START_TEST(long_lines)
{
	AUTO(buf) struct buf b = BUF_INIT(LIMIT_PASSWD_BYTES);
	struct passwd_files from = files;
	struct passwd_query q = query_of("app");

	ck_assert_int_eq(buf_append_str(&b, "app:x:1:1:"), 0);
	while (b.n <= LIMIT_PASSWD_LINE) {
		ck_assert_int_eq(buf_append_str(&b, "x"), 0);
	}
	ck_assert_int_eq(buf_append_str(&b, ":/:\n"), 0);
	from.passwd.text = buf_span(&b);
	ck_assert_int_eq(bad(&q, &from).code, ERRC_LIMIT);
	from = files;
	from.group.text = buf_span(&b);
	ck_assert_int_eq(bad(&q, &from).code, ERRC_LIMIT);
	/* A file that is not needed does no harm. */
	q.user = "app:0";
	AUTO(passwd_user) struct passwd_user u = { .uid = 99 };
	struct error e = ERROR_INIT;

	ck_assert_int_eq(passwd_lookup(&q, &from, &u, &e), 0);
}
END_TEST

START_TEST(zero_bytes)
{
	static const char text[] =
			"ro\0ot:x:0:0::/root:\nuser:x:1\0:1::/:\nnulhome:x:5:5::/h\0me:\n";
	struct passwd_files from = files;
	struct passwd_query q = query_of("ro");

	from.passwd.text = (struct span){ text, sizeof(text) - 1 };
	(void)bad(&q, &from);
	q.user = "user";
	(void)bad(&q, &from);
	check_row(&(struct row){ "nulhome", 5, 5, "", "/" }, &from);
}
END_TEST

static void etc_put(const char *name, const char *text)
{
	int fd = openat(unit_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static int resolve(const char *user, struct passwd_user *u, struct error *e)
{
	struct passwd_query q = query_of(user);

	*e = (struct error)ERROR_INIT;
	return passwd_resolve(unit_fd, &q, u, e);
}

/* Whatever stands at /etc/passwd: it is read if it is a file of the image's own, and nothing
 * blocks, grows or leads elsewhere. */
START_TEST(files_of_an_image)
{
	AUTO(passwd_user) struct passwd_user u = { .uid = 99 };
	struct error e;

	ck_assert_int_eq(resolve("app", &u, &e), -1);
	ck_assert_str_eq(e.text, "user \"app\": /etc/passwd of the image does not exist");
	ck_assert_int_eq(mkdirat(unit_fd, "etc", 0755), 0);
	etc_put("etc/passwd", "app:x:7:8::/h:\n");
	etc_put("etc/group", "g:x:9:app\n");
	ck_assert_int_eq(resolve("app", &u, &e), 0);
	ck_assert_uint_eq(u.uid, 7);
	ck_assert_uint_eq(u.groups[0], 9);
	passwd_user_done(&u);
	/* a FIFO (CVE-2024-9407) */
	ck_assert_int_eq(unlinkat(unit_fd, "etc/passwd", 0), 0);
	ck_assert_int_eq(mkfifoat(unit_fd, "etc/passwd", 0644), 0);
	ck_assert_int_eq(resolve("app", &u, &e), -1);
	ck_assert_str_eq(e.text, "user \"app\": /etc/passwd of the image is not a regular file");
	ck_assert_int_eq(resolve("7", &u, &e), 0);
	passwd_user_done(&u);
	/* links, to a file and through a directory */
	ck_assert_int_eq(unlinkat(unit_fd, "etc/passwd", 0), 0);
	etc_put("etc/real", "app:x:0:0::/h:\n");
	ck_assert_int_eq(symlinkat("real", unit_fd, "etc/passwd"), 0);
	ck_assert_int_eq(resolve("app", &u, &e), -1);
	ck_assert_str_eq(e.text,
			"user \"app\": /etc/passwd of the image is a symbolic link or behind one");
	ck_assert_int_eq(renameat(unit_fd, "etc", unit_fd, "other"), 0);
	ck_assert_int_eq(unlinkat(unit_fd, "other/passwd", 0), 0);
	etc_put("other/passwd", "app:x:0:0::/h:\n");
	ck_assert_int_eq(symlinkat("other", unit_fd, "etc"), 0);
	ck_assert_int_eq(resolve("app", &u, &e), -1);
	ck_assert_int_eq(resolve("0", &u, &e), 0);
	ck_assert_str_eq(u.home, "/");
}
END_TEST

START_TEST(endless_files)
{
	AUTO(passwd_user) struct passwd_user u = { .uid = 99 };
	struct error e;

	ck_assert_int_eq(mkdirat(unit_fd, "etc", 0755), 0);
	etc_put("etc/passwd", "app:x:7:8::/h:\n");
	etc_put("etc/group", "g:x:9:app\n");
	int fd = openat(unit_fd, _i ? "etc/passwd" : "etc/group", O_RDWR | O_CLOEXEC);

	ck_assert_int_eq(ftruncate(fd, (off_t)1 << 40), 0);
	close(fd);
	ck_assert_int_eq(resolve("app", &u, &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	/* Whom nobody asked for is root, whatever lies there. */
	error_clear(&e);
	ck_assert_int_eq(resolve("", &u, &e), 0);
	ck_assert_uint_eq(u.uid, 0);
	ck_assert_uint_eq(u.gid, 0);
	ck_assert_uint_eq(u.groups_n, 0);
	ck_assert_str_eq(u.home, "/");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("passwd");
	TCase *tc = tcase_create("lookup");
	TCase *files_tc = tcase_create("files");

	tcase_add_test(tc, good_users);
	tcase_add_test(tc, good_users_without_files);
	tcase_add_test(tc, bad_users);
	tcase_add_test(tc, names_need_files);
	tcase_add_test(tc, additional_groups);
	tcase_add_test(tc, member_of_bad_groups);
	tcase_add_test(tc, single_id);
	tcase_add_test(tc, long_lines);
	tcase_add_test(tc, zero_bytes);
	suite_add_tcase(s, tc);
	unit_with_dir(files_tc);
	tcase_add_test(files_tc, files_of_an_image);
	tcase_add_loop_test(files_tc, endless_files, 0, 2);
	suite_add_tcase(s, files_tc);
	return unit_run(s);
}
