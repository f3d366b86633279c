/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>

#include <osbx/clock.h>
#include <osbx/mem.h>

#include "../../../src/engine/net_internal.h"
#include "../unit.h"

#define LIMIT_MS 60000

struct fixture {
	struct loop *loop;
	struct loop_source limit;
	struct net_watch watch;
	char *path;
};

static void changed(void *ctx)
{
	struct fixture *f = ctx;

	loop_stop(f->loop, 0);
}

static void limit_on_end(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)src;
	(void)events;
	loop_stop(loop, 1);
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

/* conf is a link to real/conf. */
static void fixture_make(struct fixture *f)
{
	*f = (struct fixture){ .path = mem_printf("%s/etc/conf", unit_path) };
	ck_assert_int_eq(chdir(unit_path), 0);
	ck_assert(mkdir("etc", 0700) == 0 && mkdir("real", 0700) == 0);
	put("real/conf", "a");
	ck_assert_int_eq(symlink("../real/conf", "etc/conf"), 0);
	f->loop = loop_new();
	ck_assert_ptr_nonnull(f->loop);
	loop_timer(f->loop, &f->limit, clock_boot_ms() + LIMIT_MS, limit_on_end);
	f->watch = (struct net_watch){
		.loop = f->loop,
		.path = f->path,
		.look_ms = 50,
		.on_change = changed,
		.ctx = f,
	};
	net_watch_start(&f->watch);
}

static void in_place(void)
{
	put("real/conf", "longer");
}

static void replaced(void)
{
	put("real/new", "b");
	ck_assert_int_eq(rename("real/new", "real/conf"), 0);
}

static void relinked(void)
{
	put("other", "c");
	ck_assert(symlink("../other", "etc/new") == 0 && rename("etc/new", "etc/conf") == 0);
}

static void removed(void)
{
	ck_assert_int_eq(unlink("real/conf"), 0);
}

static void (*const changes[])(void) = { in_place, replaced, relinked, removed };

/* One after the other: what is watched changes with it. */
START_TEST(every_change_is_heard)
{
	struct fixture f;

	fixture_make(&f);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		changes[i]();
		ck_assert_int_eq(loop_run(f.loop), 0);
		if (changes[i] == relinked) {
			ck_assert(unlink("etc/conf") == 0 &&
					symlink("../real/conf", "etc/conf") == 0);
			ck_assert_int_eq(loop_run(f.loop), 0);
		}
	}
	net_watch_stop(&f.watch);
	net_watch_stop(&f.watch);
	loop_free(f.loop);
	free(f.path);
}
END_TEST

/* No descriptor for inotify: it is looked at now and then. */
START_TEST(without_inotify_too)
{
	struct rlimit before;
	struct rlimit none = { .rlim_cur = 0 };
	struct fixture f;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	fixture_make(&f);
	net_watch_stop(&f.watch);
	none.rlim_max = before.rlim_max;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	f.watch.loop = f.loop;
	net_watch_start(&f.watch);
	ck_assert_int_eq(f.watch.fd, -1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	in_place();
	ck_assert_int_eq(loop_run(f.loop), 0);
	net_watch_stop(&f.watch);
	loop_free(f.loop);
	free(f.path);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("net_watch");
	TCase *tc = tcase_create("all");

	unit_with_dir(tc);
	tcase_add_test(tc, every_change_is_heard);
	tcase_add_test(tc, without_inotify_too);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
