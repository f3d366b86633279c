/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "../../../oci/pull.h"
#include "fixture.h"

static const char bytes[] = "the bytes of a layer";

static struct store *store;
static struct image_layer layer;
static int dir_fd = -1;

static void begin(void)
{
	store = store_new();
	dir_fd = part_dir_open(store);
	ck_assert_int_ge(dir_fd, 0);
	layer = (struct image_layer){ .blob = digest_text(bytes), .size = sizeof(bytes) - 1 };
}

static void end(void)
{
	(void)close(dir_fd);
	store_free(store);
}

static struct part open_ok(void)
{
	struct part p = PART_INIT;

	ck_assert_int_eq(part_open(store, dir_fd, &layer, &p), 0);
	return p;
}

static void append(const struct part *p, const char *text)
{
	ck_assert_int_eq(pwrite(p->fd, text, strlen(text), (off_t)part_size(p)),
			(ssize_t)strlen(text));
}

static bool is_there(void)
{
	return faccessat(dir_fd, digest_hex(&layer.blob), F_OK, 0) == 0;
}

START_TEST(has_one_writer)
{
	struct part a = open_ok();
	struct part b = PART_INIT;
	struct stat s;

	ck_assert(a.is_locked && !a.is_blob);
	ck_assert_int_eq(fstat(a.fd, &s), 0);
	ck_assert_int_eq(s.st_mode & 07777, 0600);
	ck_assert_int_eq(part_open(store, dir_fd, &layer, &b), -EWOULDBLOCK);
	append(&a, "the ");
	part_unlock(&a);
	b = open_ok();
	ck_assert_uint_eq(part_size(&b), 4);
	part_close(&a);
	part_close(&b);
	ck_assert(is_there());
}
END_TEST

/* The lock is the open file's: a copy of the descriptor, the fetch helper's, keeps it. */
START_TEST(unlocks_all_copies)
{
	struct part a = open_ok();
	struct part b = PART_INIT;
	int copy = fcntl(a.fd, F_DUPFD_CLOEXEC, 0);

	part_close(&a);
	ck_assert_int_eq(part_open(store, dir_fd, &layer, &b), -EWOULDBLOCK);
	a = (struct part){ .fd = copy, .is_locked = true };
	part_unlock(&a);
	b = open_ok();
	part_close(&a);
	part_close(&b);
}
END_TEST

START_TEST(becomes_the_blob)
{
	struct part a = open_ok();
	struct part b = PART_INIT;

	append(&a, bytes);
	part_unlock(&a);
	/* Two that verified the same file. */
	b = open_ok();
	part_unlock(&b);
	ck_assert_int_eq(part_publish(store, dir_fd, &a, &layer.blob), 0);
	ck_assert(store_has_blob(store, &layer.blob, layer.size));
	ck_assert(!is_there());
	ck_assert_int_eq(part_publish(store, dir_fd, &b, &layer.blob), 0);
	part_close(&a);
	part_close(&b);
}
END_TEST

START_TEST(does_not_publish_another_file)
{
	struct part a = open_ok();
	struct part b = PART_INIT;

	append(&a, bytes);
	part_unlock(&a);
	ck_assert_int_eq(unlinkat(dir_fd, digest_hex(&layer.blob), 0), 0);
	b = open_ok();
	append(&b, "not all");
	ck_assert_int_eq(part_publish(store, dir_fd, &a, &layer.blob), -ENOENT);
	ck_assert(!store_has_any_blob(store, &layer.blob));
	ck_assert(is_there());
	part_close(&a);
	part_close(&b);
}
END_TEST

START_TEST(is_not_made_beside_the_blob)
{
	struct part a = open_ok();
	struct part b = PART_INIT;

	append(&a, bytes);
	ck_assert_int_eq(part_publish(store, dir_fd, &a, &layer.blob), 0);
	part_close(&a);
	b = open_ok();
	ck_assert(b.is_blob && !b.is_locked);
	ck_assert_uint_eq(part_size(&b), layer.size);
	ck_assert(!is_there());
	ck_assert_int_eq(part_publish(store, dir_fd, &b, &layer.blob), 0);
	part_remove(dir_fd, &b, &layer.blob);
	ck_assert(store_has_any_blob(store, &layer.blob));
	part_close(&b);
}
END_TEST

START_TEST(is_removed)
{
	struct part a = open_ok();

	append(&a, "wrong");
	part_remove(dir_fd, &a, &layer.blob);
	ck_assert(!is_there());
	part_close(&a);
	a = open_ok();
	append(&a, "wrong");
	part_unlock(&a);
	part_remove(dir_fd, &a, &layer.blob);
	ck_assert(!is_there());
	/* Again: neither an error nor a new file. */
	part_remove(dir_fd, &a, &layer.blob);
	ck_assert(!is_there());
	part_close(&a);
}
END_TEST

START_TEST(another_ones_is_not_removed)
{
	struct part a = open_ok();
	struct part b = PART_INIT;

	append(&a, "wrong");
	part_unlock(&a);
	part_remove(dir_fd, &a, &layer.blob);
	b = open_ok();
	append(&b, "the ");
	/* Whether it is being written or not. */
	part_remove(dir_fd, &a, &layer.blob);
	ck_assert(is_there());
	part_unlock(&b);
	part_remove(dir_fd, &a, &layer.blob);
	ck_assert(is_there());
	part_close(&a);
	part_close(&b);
}
END_TEST

START_TEST(is_begun_anew_when_it_is_too_long)
{
	struct part a = open_ok();

	append(&a, bytes);
	append(&a, "x");
	part_close(&a);
	a = open_ok();
	ck_assert_uint_eq(part_size(&a), 0);
	part_close(&a);
}
END_TEST

START_TEST(has_a_digest)
{
	struct error e = ERROR_INIT;
	struct digest got = { .text = "" };
	struct part a = open_ok();

	append(&a, bytes);
	ck_assert_int_eq(part_digest(&a, &got, &e), 0);
	ck_assert_str_eq(got.text, layer.blob.text);
	append(&a, "x");
	ck_assert_int_eq(part_digest(&a, &got, &e), 0);
	ck_assert_str_ne(got.text, layer.blob.text);
	part_close(&a);
}
END_TEST

START_TEST(follows_no_link)
{
	struct part p = PART_INIT;

	ck_assert_int_eq(symlinkat("/etc/passwd", dir_fd, digest_hex(&layer.blob)), 0);
	ck_assert_int_eq(part_open(store, dir_fd, &layer, &p), -ELOOP);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("pull_part");
	TCase *tc = tcase_create("pull_part");

	unit_with_dir(tc);
	tcase_add_checked_fixture(tc, begin, end);
	tcase_add_test(tc, has_one_writer);
	tcase_add_test(tc, unlocks_all_copies);
	tcase_add_test(tc, becomes_the_blob);
	tcase_add_test(tc, does_not_publish_another_file);
	tcase_add_test(tc, is_not_made_beside_the_blob);
	tcase_add_test(tc, is_removed);
	tcase_add_test(tc, another_ones_is_not_removed);
	tcase_add_test(tc, is_begun_anew_when_it_is_too_long);
	tcase_add_test(tc, has_a_digest);
	tcase_add_test(tc, follows_no_link);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
