/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world - real launches of the real execd, for unit tests: as root with id-mapped trees, as root
 * with one shared range, as an ordinary user with one id; whoever else runs the tests has his own
 * mode. A store of two layers lies in the test's directory; the programs inside are the host's,
 * bound.
 */
#ifndef OSBX_TESTS_WORLD_H
#define OSBX_TESTS_WORLD_H

#include <errno.h>
#include <grp.h>

#include <osbx/file.h>
#include <osbx/launch.h>
#include <osbx/str.h>

#include "../execd/sandbox.h"

#define OUTSIDER 65534

enum surrounding {
	AS_MAPPED,
	AS_SHARED,
	AS_SINGLE,
	SURROUNDING_COUNT,
};

struct world {
	struct spec spec;
	struct launch l;
	struct sandbox s; /* for the helpers of sandbox.h: its control channel */
};

static const struct launch_ops no_ops = { .ctx = NULL };

static inline void give(const char *path, uid_t uid)
{
	if (uid != geteuid()) {
		ck_assert_int_eq(fchownat(unit_fd, path, uid, uid, AT_SYMLINK_NOFOLLOW), 0);
	}
}

static inline void make_dir(const char *path, uid_t uid)
{
	ck_assert_msg(mkdirat(unit_fd, path, 0755) == 0, "%s", path);
	give(path, uid);
}

static inline void make_file(const char *path, const char *text, uid_t uid)
{
	ck_assert_int_eq(file_write_at(unit_fd, path, span_of(text), false), 0);
	ck_assert_int_eq(fchmodat(unit_fd, path, 0644, 0), 0);
	give(path, uid);
}

static inline char *below(const char *name)
{
	return mem_printf("%s/%s", unit_path, name);
}

static inline uint32_t add_tree(
		struct spec *s, const char *name, enum spec_tree_ids ids, bool recursive)
{
	autofree char *path = name[0] == '/' ? mem_strdup(name) : below(name);

	return spec_add_tree(s, path, ids, recursive);
}

static inline struct spec_mount *add_bind(struct spec *s, const char *src, const char *dst)
{
	uint32_t tree = add_tree(s, src, src[0] == '/' ? SPEC_TREE_AS_IS : SPEC_TREE_OWNER, true);
	struct spec_mount *m = spec_add_mount(s, SPEC_MOUNT_BIND, dst);

	m->tree = tree;
	return m;
}

static inline void spec_fill(struct spec *s)
{
	static const char *const binds[] = { "/usr", "/bin", "/lib", "/lib64", "/sbin" };

	(void)add_tree(s, "layers", SPEC_TREE_CONTAINER, false);
	(void)add_tree(s, "sandbox", SPEC_TREE_CONTAINER, false);
	spec_add_lower(s, 0, "low");
	spec_add_lower(s, 0, "high");
	s->hostname = mem_strdup("inside");
	s->is_ephemeral = true;
	s->timeout_ms = SANDBOX_WAIT_MS;
	for (size_t i = 0; i < ARRAY_SIZE(binds); i++) {
		if (access(binds[i], F_OK) == 0) {
			add_bind(s, binds[i], binds[i])->read_only = true;
		}
	}
}

/* Who owns on disk what is root's inside? */
static inline uid_t root_on_disk(const struct idmap *map)
{
	return map->mode == IDMAP_MAPPED ? 0 : idmap_outside(map->uids, map->uids_n, 0);
}

static inline void become_outsider(void)
{
	ck_assert_int_eq(fchown(unit_fd, OUTSIDER, OUTSIDER), 0);
	ck_assert_int_eq(setgroups(0, NULL), 0);
	ck_assert_int_eq(setresgid(OUTSIDER, OUTSIDER, OUTSIDER), 0);
	ck_assert_int_eq(setresuid(OUTSIDER, OUTSIDER, OUTSIDER), 0);
	/* As if it had been executed by that user: /proc/self belongs to it. */
	ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1), 0);
}

/* The store, the spec and execd. */
static inline void world_make(struct world *w, enum surrounding as)
{
	struct error e = ERROR_INIT;
	AUTO(buf) struct buf b = BUF_INIT(1 << 20);

	*w = (struct world){ .l = LAUNCH_INIT };
	if (as == AS_SINGLE && geteuid() == 0) {
		become_outsider();
	}
	spec_init(&w->spec);
	ck_assert_msg(idmap_choose(&w->spec.map, &e) == 0, "%s", e.text);
	if (as == AS_SHARED) {
		w->spec.map.mode = IDMAP_SHARED;
	}
	const struct idmap *map = &w->spec.map;
	const uid_t root = root_on_disk(map);
	struct execd_config config = {
		.has_setgroups = map->setgroups,
		.ids_max = map->mode == IDMAP_SINGLE ? 1 : 65536,
		.caps = caps_workload_default,
	};

	make_dir("layers", geteuid());
	make_dir("layers/low", root);
	make_dir("layers/high", root);
	make_dir("sandbox", geteuid());
	make_dir("sandbox/upper", root);
	make_dir("sandbox/work", root);
	make_file("layers/low/both", "low\n", root);
	make_file("layers/low/below", "low\n", root);
	make_file("layers/high/both", "high\n", root);
	spec_fill(&w->spec);
	ck_assert_int_eq(execd_config_encode(&config, &b), 0);
	w->spec.config_fd = fd_memfd_sealed("config", b.p, b.n, false);
	w->spec.execd_fd = fd_memfd_sealed("osbx-execd", execd_image, execd_image_size, true);
	ck_assert_int_ge(w->spec.config_fd, 0);
	ck_assert_int_ge(w->spec.execd_fd, 0);
}

static inline void world_end(struct world *w)
{
	launch_done(&w->l);
	close(w->spec.config_fd);
	close(w->spec.execd_fd);
	spec_done(&w->spec);
}

static inline void expect_no_child(void)
{
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}

static inline void world_launch(struct world *w)
{
	struct error e = ERROR_INIT;
	int r = launch_start(&w->spec, &no_ops, &w->l, &e);

	ck_assert_msg(r == 0, "%s (%s)", e.text, strerror(e.sysno));
	w->s.control = w->l.control_fd;
}

static inline void world_fails(struct world *w, struct error *e)
{
	ck_assert_int_eq(launch_start(&w->spec, &no_ops, &w->l, e), -1);
	ck_assert_int_eq(w->l.pid, 0);
	ck_assert_int_eq(w->l.control_fd, -1);
	expect_no_child();
}

/* Output of a script. Caller frees. */
static inline char *world_run(struct world *w, const char *script)
{
	struct sandbox_run r;

	world_launch(w);
	RUN_SHELL(&r, script);
	ck_assert_int_eq(strv_add(&r.process.env, "PATH=/usr/bin:/bin:/usr/sbin:/sbin"), 0);
	(void)run_start(&w->s, &r);
	char *out = run_output(&r);

	(void)run_wait(&w->s, &r);
	launch_done(&w->l);
	expect_no_child();
	return out;
}

#define EXPECT_RUN(w, script, want)                             \
	do {                                                    \
		autofree char *out_ = world_run((w), (script)); \
		ck_assert_str_eq(out_, (want));                 \
	} while (0)

static inline int surroundings(void)
{
	return geteuid() == 0 && idmap_is_initial_userns() ? SURROUNDING_COUNT : 1;
}

#endif
