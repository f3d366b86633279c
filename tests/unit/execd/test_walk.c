/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>

#include <osbx/mem.h>

#include "../../../execd/walk.h"
#include "../unit.h"

/* Paths that were told, one after the other. */
struct told {
	struct buf text;
	size_t n;
	const char *link_at; /* exchange "b" for a link when this one is told */
};

static void tell(void *ctx, const char *path, const struct fileinfo *info)
{
	struct told *t = ctx;

	ck_assert_uint_ne(info->mode, 0);
	if (buf_appendf(&t->text, "%s%c ", path, S_ISDIR(info->mode) ? '/' : '-') < 0) {
		ck_abort_msg("too long");
	}
	t->n++;
	if (t->link_at && strcmp(path, t->link_at) == 0) {
		ck_assert_int_eq(renameat(unit_fd, "b", unit_fd, "moved"), 0);
		ck_assert_int_eq(symlinkat("moved", unit_fd, "b"), 0);
	}
}

static bool wants_txt(void *ctx, const char *name, bool is_dir)
{
	const size_t n = strlen(name);

	(void)ctx;
	return !is_dir && n > 4 && strcmp(name + n - 4, ".txt") == 0;
}

static void make(const char *path)
{
	int fd = openat(unit_fd, path, O_WRONLY | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void tree(void)
{
	ck_assert_int_eq(mkdirat(unit_fd, "b", 0700), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "b/c", 0700), 0);
	ck_assert_int_eq(mkdirat(unit_fd, "B", 0700), 0);
	make("b/z.txt");
	make("b/c/1.txt");
	make("b/c/10");
	make("a");
	make(".hidden.txt");
	make("b-");
	ck_assert_int_eq(symlinkat("b", unit_fd, "link"), 0);
}

static char *walk(const char *path, uint64_t depth,
		bool (*wants)(void *ctx, const char *name, bool is_dir), const char *link_at)
{
	struct told t = { .text = BUF_INIT(1 << 20), .link_at = link_at };
	const struct walk_opts opts = {
		.dir_fd = unit_fd,
		.path = path,
		.depth = depth,
		.wants = wants,
		.tell = tell,
		.ctx = &t,
	};
	struct error e = ERROR_INIT;

	ck_assert_int_eq(walk_tree(&opts, &e), 0);
	return buf_take(&t.text);
}

START_TEST(order_and_depth)
{
	tree();
	autofree char *one = walk("/x", 1, NULL, NULL);
	autofree char *two = walk("/x", 2, NULL, NULL);
	autofree char *all = walk("/", UINT64_MAX, NULL, NULL);
	autofree char *none = walk("/x", 0, NULL, NULL);

	ck_assert_str_eq(one, "/x/.hidden.txt- /x/B/ /x/a- /x/b/ /x/b-- /x/link- ");
	ck_assert_str_eq(two, "/x/.hidden.txt- /x/B/ /x/a- /x/b/ /x/b/c/ /x/b/z.txt- /x/b-- "
			      "/x/link- ");
	ck_assert_str_eq(all, "/.hidden.txt- /B/ /a- /b/ /b/c/ /b/c/1.txt- /b/c/10- /b/z.txt- "
			      "/b-- /link- ");
	ck_assert_str_eq(none, "");
}
END_TEST

START_TEST(only_what_is_wanted)
{
	tree();
	autofree char *some = walk("/x", UINT64_MAX, wants_txt, NULL);

	ck_assert_str_eq(some, "/x/.hidden.txt- /x/b/c/1.txt- /x/b/z.txt- ");
}
END_TEST

START_TEST(links_are_not_entered)
{
	tree();
	/* "b" was a directory when it was read, and is a link when it is to be entered. */
	autofree char *all = walk("/x", UINT64_MAX, NULL, "/x/b");

	ck_assert_str_eq(all, "/x/.hidden.txt- /x/B/ /x/a- /x/b/ /x/b-- /x/link- ");
}
END_TEST

/* As deep as paths go, and no deeper. */
START_TEST(deep)
{
	char name[] = "0123456789012345678901234567890123456789012345678";
	int fd = dup(unit_fd);

	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(mkdirat(fd, name, 0700), 0);
		int next = openat(fd, name, O_RDONLY | O_DIRECTORY);

		ck_assert_int_ge(next, 0);
		close(fd);
		fd = next;
	}
	close(fd);
	struct told t = { .text = BUF_INIT(1 << 20) };
	const struct walk_opts opts = {
		.dir_fd = unit_fd, .path = "/", .depth = UINT64_MAX, .tell = tell, .ctx = &t
	};
	struct error e = ERROR_INIT;

	ck_assert_int_eq(walk_tree(&opts, &e), 0);
	/* 50 bytes each, 4096 with the NUL */
	ck_assert_uint_ge(t.n, 81);
	ck_assert_uint_le(t.n, 82);
	buf_done(&t.text);
}
END_TEST

START_TEST(many)
{
	struct told t = { .text = BUF_INIT(1 << 20) };
	const struct walk_opts opts = {
		.dir_fd = unit_fd, .path = "", .depth = 1, .tell = tell, .ctx = &t
	};
	struct error e = ERROR_INIT;

	for (int i = 0; i < 3000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%04d", (i * 7919) % 3000);
		make(name);
	}
	ck_assert_int_eq(walk_tree(&opts, &e), 0);
	ck_assert_uint_eq(t.n, 3000);
	for (int i = 0; i < 3000; i++) {
		char entry[16];

		snprintf(entry, sizeof(entry), "/%04d- ", i);
		ck_assert_int_eq(memcmp(t.text.p + (size_t)i * 7, entry, 7), 0);
	}
	buf_done(&t.text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("walk");
	TCase *t = tcase_create("walk");

	unit_with_dir(t);
	tcase_add_test(t, order_and_depth);
	tcase_add_test(t, only_what_is_wanted);
	tcase_add_test(t, links_are_not_entered);
	tcase_add_test(t, deep);
	tcase_add_test(t, many);
	suite_add_tcase(s, t);
	return unit_run(s);
}
