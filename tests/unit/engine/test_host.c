/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/host.h>
#include <osbx/mem.h>
#include <osbx/plan.h>

#include "../unit.h"

static const struct spec_mount *find(const struct spec *s, const char *dst)
{
	for (size_t i = 0; i < s->mounts_n; i++) {
		if (strcmp(s->mounts[i].dst, dst) == 0) {
			return &s->mounts[i];
		}
	}
	return NULL;
}

static void mounts_make(struct spec *s)
{
	struct error e = ERROR_INIT;

	spec_init(s);
	ck_assert_int_eq(host_mounts(s, &e), 0);
}

START_TEST(everything_is_a_read_only_bind)
{
	AUTO(spec) struct spec s = { .mounts_n = 0 };

	mounts_make(&s);
	ck_assert_uint_gt(s.mounts_n, 1);
	for (size_t i = 0; i < s.mounts_n; i++) {
		ck_assert_int_eq(s.mounts[i].kind, SPEC_MOUNT_BIND);
		ck_assert(s.mounts[i].read_only);
		ck_assert_uint_lt(s.mounts[i].tree, s.trees_n);
	}
	for (size_t i = 0; i < s.trees_n; i++) {
		ck_assert(s.trees[i].ids_optional);
	}
}
END_TEST

START_TEST(shows_the_own_usr)
{
	AUTO(spec) struct spec s = { .mounts_n = 0 };

	mounts_make(&s);
	const struct spec_mount *usr = find(&s, "/usr");

	ck_assert_ptr_nonnull(usr);
	ck_assert_str_eq(s.trees[usr->tree].path, "/usr");
	ck_assert_str_eq(usr->path, "");
	ck_assert(s.trees[usr->tree].recursive);
}
END_TEST

/* Where /bin is a link, the skeleton has it; else it is bound. */
START_TEST(binds_what_is_not_merged)
{
	static const char *const names[] = { "/bin", "/sbin", "/lib", "/lib64" };
	AUTO(spec) struct spec s = { .mounts_n = 0 };
	struct stat st;

	mounts_make(&s);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		bool is_dir = lstat(names[i], &st) == 0 && S_ISDIR(st.st_mode);

		ck_assert_int_eq(find(&s, names[i]) != NULL, is_dir);
	}
}
END_TEST

START_TEST(shows_of_etc_what_is_listed)
{
	static const char *const listed[] = { "/etc/alternatives", "/etc/ca-certificates",
		"/etc/java-", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/localtime",
		"/etc/mime.types", "/etc/profile", "/etc/python3", "/etc/terminfo",
		"/etc/ssl/certs", "/etc/pki/ca-trust/extracted" };
	AUTO(spec) struct spec s = { .mounts_n = 0 };

	mounts_make(&s);
	for (size_t i = 0; i < s.mounts_n; i++) {
		const char *dst = s.mounts[i].dst;
		bool known = strncmp(dst, "/etc/", 5) != 0;

		for (size_t j = 0; j < ARRAY_SIZE(listed) && !known; j++) {
			known = strncmp(dst, listed[j], strlen(listed[j])) == 0;
		}
		ck_assert_msg(known, "%s", dst);
	}
	ck_assert_ptr_null(find(&s, "/etc/passwd"));
	ck_assert_ptr_null(find(&s, "/etc/shadow"));
	ck_assert_ptr_null(find(&s, "/etc/profile.d"));
	ck_assert_int_eq(find(&s, "/etc/ld.so.cache") != NULL,
			access("/etc/ld.so.cache", F_OK) == 0);
}
END_TEST

START_TEST(shows_nothing_of_anybody)
{
	static const char *const hidden[] = { "/home", "/root", "/var", "/run", "/tmp", "/srv",
		"/opt", "/mnt", "/boot" };
	AUTO(spec) struct spec s = { .mounts_n = 0 };

	mounts_make(&s);
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
		ck_assert_ptr_null(find(&s, hidden[i]));
	}
	for (size_t i = 0; i < s.trees_n; i++) {
		for (size_t j = 0; j < ARRAY_SIZE(hidden); j++) {
			ck_assert_str_ne(s.trees[i].path, hidden[j]);
		}
		ck_assert_str_ne(s.trees[i].path, "/");
	}
}
END_TEST

/* Links are followed here, on the host: beneath a tree only what really lies there is named. */
START_TEST(names_real_places)
{
	AUTO(spec) struct spec s = { .mounts_n = 0 };

	mounts_make(&s);
	for (size_t i = 0; i < s.mounts_n; i++) {
		const struct spec_mount *m = &s.mounts[i];
		autofree char *path = mem_printf("%s/%s", s.trees[m->tree].path, m->path);
		autofree char *real = realpath(path, NULL);
		autofree char *of_dst = realpath(m->dst, NULL);

		ck_assert_ptr_nonnull(real);
		ck_assert_ptr_nonnull(of_dst);
		ck_assert_str_eq(real, of_dst);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("host");
	TCase *tc = tcase_create("all");

	tcase_add_test(tc, everything_is_a_read_only_bind);
	tcase_add_test(tc, shows_the_own_usr);
	tcase_add_test(tc, binds_what_is_not_merged);
	tcase_add_test(tc, shows_of_etc_what_is_listed);
	tcase_add_test(tc, shows_nothing_of_anybody);
	tcase_add_test(tc, names_real_places);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
