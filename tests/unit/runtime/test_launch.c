/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real launches of the real execd: as root with id-mapped trees, as root with one shared range, as
 * an ordinary user with one id; whoever else runs the tests has his own mode. The programs inside
 * are the host's, bound.
 */
#include <errno.h>
#include <grp.h>
#include <poll.h>

#include <osbx/cgroup.h>
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

static void give(const char *path, uid_t uid)
{
	if (uid != geteuid()) {
		ck_assert_int_eq(fchownat(unit_fd, path, uid, uid, AT_SYMLINK_NOFOLLOW), 0);
	}
}

static void make_dir(const char *path, uid_t uid)
{
	ck_assert_msg(mkdirat(unit_fd, path, 0755) == 0, "%s", path);
	give(path, uid);
}

static void make_file(const char *path, const char *text, uid_t uid)
{
	ck_assert_int_eq(file_write_at(unit_fd, path, span_of(text), false), 0);
	ck_assert_int_eq(fchmodat(unit_fd, path, 0644, 0), 0);
	give(path, uid);
}

static char *below(const char *name)
{
	return mem_printf("%s/%s", unit_path, name);
}

static uint32_t add_tree(struct spec *s, const char *name, enum spec_tree_ids ids, bool recursive)
{
	autofree char *path = name[0] == '/' ? mem_strdup(name) : below(name);

	return spec_add_tree(s, path, ids, recursive);
}

static struct spec_mount *add_bind(struct spec *s, const char *src, const char *dst)
{
	uint32_t tree = add_tree(s, src, src[0] == '/' ? SPEC_TREE_AS_IS : SPEC_TREE_OWNER, true);
	struct spec_mount *m = spec_add_mount(s, SPEC_MOUNT_BIND, dst);

	m->tree = tree;
	return m;
}

static void spec_fill(struct spec *s)
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
static uid_t root_on_disk(const struct idmap *map)
{
	return map->mode == IDMAP_MAPPED ? 0 : idmap_outside(map->uids, map->uids_n, 0);
}

static void become_outsider(void)
{
	ck_assert_int_eq(fchown(unit_fd, OUTSIDER, OUTSIDER), 0);
	ck_assert_int_eq(setgroups(0, NULL), 0);
	ck_assert_int_eq(setresgid(OUTSIDER, OUTSIDER, OUTSIDER), 0);
	ck_assert_int_eq(setresuid(OUTSIDER, OUTSIDER, OUTSIDER), 0);
	/* As if it had been executed by that user: /proc/self belongs to it. */
	ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1), 0);
}

/* The store, the spec and execd. */
static void world_make(struct world *w, enum surrounding as)
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

static void world_end(struct world *w)
{
	launch_done(&w->l);
	close(w->spec.config_fd);
	close(w->spec.execd_fd);
	spec_done(&w->spec);
}

static void expect_no_child(void)
{
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}

static void world_launch(struct world *w)
{
	struct error e = ERROR_INIT;
	int r = launch_start(&w->spec, &no_ops, &w->l, &e);

	ck_assert_msg(r == 0, "%s (%s)", e.text, strerror(e.sysno));
	w->s.control = w->l.control_fd;
}

static void world_fails(struct world *w, struct error *e)
{
	ck_assert_int_eq(launch_start(&w->spec, &no_ops, &w->l, e), -1);
	ck_assert_int_eq(w->l.pid, 0);
	ck_assert_int_eq(w->l.control_fd, -1);
	expect_no_child();
}

/* Output of a script. Caller frees. */
static char *world_run(struct world *w, const char *script)
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

static int surroundings(void)
{
	return geteuid() == 0 && idmap_is_initial_userns() ? SURROUNDING_COUNT : 1;
}

START_TEST(looks_as_promised)
{
	struct world w;

	world_make(&w, (enum surrounding)_i);
	EXPECT_RUN(&w,
			"id -u; hostname; cat /both /below; echo new > /both; cat /both; pwd\n"
			"cat /proc/1/comm; cat /sys/class/net/lo/operstate; ls /sys/class/net\n"
			"stat -c '%u %a' / /tmp 2>&1 | head -1; tty; ps >/dev/null; echo $$ \n"
			"grep -c ' / / ' /proc/self/mountinfo; ls -d /proc/self/ns/cgroup\n"
			"cat /etc/hosts 2>&1 | head -1",
			"0\ninside\nhigh\nlow\nnew\n/\nosbx-execd\nunknown\nlo\n0 755\nnot a tty\n2\n"
			"1\n/proc/self/ns/cgroup\ncat: /etc/hosts: No such file or directory\n");
	autofree char *both = below("layers/high/both");
	AUTO(buf) struct buf b = BUF_INIT(64);

	ck_assert_int_eq(file_read_at(AT_FDCWD, both, &b), 0);
	ck_assert_str_eq(b.p, "high\n");
	world_end(&w);
}
END_TEST

/* All of the host's mounts are gone, also above the root (the stack of mounts at "/"). */
START_TEST(nothing_of_the_host_is_left)
{
	struct world w;
	struct stat st;
	char want[64];

	world_make(&w, (enum surrounding)_i);
	ck_assert_int_eq(stat("/", &st), 0);
	autofree char *out = world_run(&w, "stat -c %d:%i / /..\n"
					   "cut -d' ' -f5 /proc/self/mountinfo | sort\n"
					   "cat /proc/self/mountinfo | grep -c osbx-unit");
	const char *line = strchr(out, '\n') + 1;

	ck_assert(strncmp(out, line, (size_t)(line - out)) == 0);
	snprintf(want, sizeof(want), "%lu:%lu\n", (unsigned long)st.st_dev,
			(unsigned long)st.st_ino);
	ck_assert_ptr_null(str_after(out, want));
	ck_assert_ptr_nonnull(strstr(line, "\n/\n"));
	ck_assert_ptr_null(strstr(line, "/home"));
	ck_assert_ptr_null(strstr(line, "/tmp"));
	ck_assert(str_has_suffix(out, "\n0\n"));
	world_end(&w);
}
END_TEST

START_TEST(devices_and_kernel_files)
{
	struct world w;

	world_make(&w, (enum surrounding)_i);
	EXPECT_RUN(&w,
			"ls /dev | tr '\\n' ' '; echo\n"
			"stat -c '%n %t:%T' /dev/null /dev/zero /dev/full /dev/random /dev/urandom\n"
			"echo x > /dev/null; head -c 2 /dev/zero | wc -c; readlink /dev/ptmx /dev/fd\n"
			"ls -A /sys/firmware | wc -l; cat /proc/keys /proc/timer_list | wc -c\n"
			"(echo 1 > /proc/sys/kernel/domainname) 2>&1 | grep -c 'Read-only'\n"
			"(echo b > /proc/sysrq-trigger) 2>&1 | grep -c 'Read-only\\|denied\\|nonexist'\n"
			"mkdir /sys/x 2>&1 | grep -c 'Read-only\\|not permitted'\n"
			"stat -f -c %T /dev/shm /dev/mqueue /proc /sys | tr '\\n' ' '",
			"fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero \n"
			"/dev/null 1:3\n/dev/zero 1:5\n/dev/full 1:7\n/dev/random 1:8\n"
			"/dev/urandom 1:9\n2\npts/ptmx\n/proc/self/fd\n0\n0\n1\n1\n1\n"
			"tmpfs mqueue proc sysfs ");
	world_end(&w);
}
END_TEST

START_TEST(small_mounts)
{
	struct world w;

	world_make(&w, (enum surrounding)_i);
	struct spec_mount *m = spec_add_mount(&w.spec, SPEC_MOUNT_FILE, "/etc/resolv.conf");

	m->content = mem_strdup("nameserver 192.0.2.1\n");
	m->mode = 0644;
	m = spec_add_mount(&w.spec, SPEC_MOUNT_TMPFS, "/scratch/deep");
	m->mode = 01777;
	m->size = 65536;
	w.spec.read_only = true;
	EXPECT_RUN(&w,
			"cat /etc/resolv.conf; stat -c %a /etc/resolv.conf /scratch/deep\n"
			"(echo x > /file) 2>&1 | grep -c Read-only\n"
			"head -c 100000 /dev/zero > /scratch/deep/x 2>/dev/null\n"
			"stat -c %s /scratch/deep/x; echo more >> /etc/resolv.conf && echo written\n"
			"umount /etc/resolv.conf 2>&1 | grep -c .",
			"nameserver 192.0.2.1\n644\n1777\n1\n65536\nwritten\n1\n");
	world_end(&w);
}
END_TEST

START_TEST(volumes)
{
	struct world w;
	struct stat st;
	uid_t me = 0;

	world_make(&w, (enum surrounding)_i);
	/* Elsewhere another owner has no place inside but as nobody. */
	me = w.spec.map.mode == IDMAP_MAPPED ? 1234 : geteuid();
	make_dir("vol", me);
	make_dir("vol/sub", me);
	make_file("vol/sub/f", "text\n", me);
	ck_assert_int_eq(fchmodat(unit_fd, "vol", 0777, 0), 0);
	(void)add_bind(&w.spec, "vol", "/vol");
	add_bind(&w.spec, "vol", "/read/only")->read_only = true;
	struct spec_mount *m = add_bind(&w.spec, "vol", "/part");

	m->path = mem_strdup("sub");
	add_bind(&w.spec, "vol/sub/f", "/etc/f")->read_only = true;
	EXPECT_RUN(&w,
			"echo hi > /vol/new; cat /part/f /etc/f /read/only/new\n"
			"(echo x > /read/only/x) 2>&1 | grep -c Read-only\n"
			"(echo x > /etc/f) 2>&1 | grep -c Read-only",
			"text\ntext\nhi\n1\n1\n");
	ck_assert_int_eq(fstatat(unit_fd, "vol/new", &st, 0), 0);
	ck_assert_uint_eq(st.st_uid, me == 1234 ? me : idmap_outside(w.spec.map.uids, 1, 0));
	ck_assert_int_eq(fstatat(unit_fd, "vol/x", &st, 0), -1);
	world_end(&w);
}
END_TEST

/* "-v /:/host": nothing of the sandbox's own making is in it. */
START_TEST(volume_of_everything)
{
	struct world w;

	if (_i == AS_MAPPED && surroundings() > 1) {
		return; /* procfs and sysfs cannot be mapped: refusal_names_the_volume */
	}
	world_make(&w, (enum surrounding)_i);
	(void)add_bind(&w.spec, "/", "/host");
	EXPECT_RUN(&w, "ls -d /host/usr; ls /host/sys | grep -c 'tree\\|root\\|mask'",
			"/host/usr\n0\n");
	world_end(&w);
}
END_TEST

START_TEST(refusal_names_the_volume)
{
	struct world w;
	struct error e = ERROR_INIT;

	world_make(&w, AS_MAPPED);
	if (w.spec.map.mode != IDMAP_MAPPED) {
		return;
	}
	uint32_t tree = spec_add_tree(&w.spec, "/proc", SPEC_TREE_OWNER, true);
	struct spec_mount *m = spec_add_mount(&w.spec, SPEC_MOUNT_BIND, "/p");

	m->tree = tree;
	world_fails(&w, &e);
	ck_assert_ptr_nonnull(strstr(e.text, "/proc or a file system mounted below it"));
	world_end(&w);
}
END_TEST

START_TEST(mount_point_in_a_volume_is_not_made)
{
	struct world w;
	struct error e = ERROR_INIT;
	struct stat st;

	world_make(&w, (enum surrounding)_i);
	make_dir("vol", geteuid());
	(void)add_bind(&w.spec, "vol", "/vol");
	(void)add_bind(&w.spec, "vol", "/vol/missing/deep");
	world_fails(&w, &e);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_ptr_nonnull(strstr(e.text, "mount /vol/missing/deep (tree): "));
	ck_assert_int_eq(fstatat(unit_fd, "vol/missing", &st, 0), -1);
	world_end(&w);
}
END_TEST

/* Links of the image: CVE-2019-18837, CVE-2019-19921, CVE-2021-30465. */
static const struct {
	const char *link; /* in the image */
	const char *target;
	const char *dst;   /* where a volume goes; NULL: none */
	const char *error; /* part of the text; NULL: it starts */
} links[] = {
	{ "proc", "/etc", NULL, "mount /proc (fs)" },
	{ "sys", "/", NULL, "mount /sys (fs)" },
	{ "dev", "../../../..", NULL, "mount /dev (fs)" },
	{ "out", "/proc", "/out/sys", "file system of the kernel" },
	{ "out", "/dev", "/out/pts", "file system of the kernel" },
	{ "out", "../../../../../../..", "/out/canary", NULL },
	{ "out", "/nowhere/else", "/out/canary", NULL },
};

START_TEST(links_of_the_image)
{
	struct world w;
	struct error e = ERROR_INIT;
	autofree char *path = mem_printf("layers/high/%s", links[_i].link);

	world_make(&w, AS_MAPPED);
	ck_assert_int_eq(symlinkat(links[_i].target, unit_fd, path), 0);
	give(path, root_on_disk(&w.spec.map));
	make_dir("vol", geteuid());
	if (links[_i].dst) {
		(void)add_bind(&w.spec, "vol", links[_i].dst);
	}
	if (links[_i].error) {
		world_fails(&w, &e);
		ck_assert_msg(strstr(e.text, links[_i].error) != NULL, "%s", e.text);
	} else {
		world_launch(&w);
		ck_assert_int_ne(access("/canary", F_OK), 0);
		ck_assert_int_ne(access("/nowhere", F_OK), 0);
	}
	world_end(&w);
}
END_TEST

START_TEST(host_network)
{
	struct world w;

	world_make(&w, (enum surrounding)_i);
	w.spec.network = SPEC_NETWORK_HOST;
	autofree char *out = world_run(&w,
			"ls /sys/fs/cgroup | wc -l; mkdir /sys/x 2>&1 | grep -c . \n"
			"(echo x > /sys/kernel/uevent_helper) 2>/dev/null || echo refused\n"
			"readlink /proc/self/ns/net");
	char net[64] = "";

	ck_assert_int_gt(readlink("/proc/self/ns/net", net, sizeof(net) - 1), 0);
	autofree char *want = mem_printf("0\n1\nrefused\n%s\n", net);

	ck_assert_str_eq(out, want);
	world_end(&w);
}
END_TEST

START_TEST(isolation_shows_procfs)
{
	struct world w;

	world_make(&w, AS_MAPPED);
	w.spec.isolation = true;
	EXPECT_RUN(&w, "grep -c ' /proc/' /proc/self/mountinfo", "0\n");
	world_end(&w);
}
END_TEST

START_TEST(as_many_layers_as_allowed)
{
	struct world w;
	char name[32];
	char path[64];

	world_make(&w, AS_MAPPED);
	for (int i = 0; i < LIMIT_LAYERS - 1; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		snprintf(path, sizeof(path), "layers/%s", name);
		make_dir(path, root_on_disk(&w.spec.map));
		snprintf(path, sizeof(path), "layers/%s/both", name);
		make_file(path, name, root_on_disk(&w.spec.map));
		spec_add_lower(&w.spec, 0, name);
	}
	ck_assert_uint_eq(w.spec.lowers_n, LIMIT_LAYERS + 1);
	EXPECT_RUN(&w, "cat /both /below", "l126low\n");
	spec_add_lower(&w.spec, 0, name);
	struct error e = ERROR_INIT;

	world_fails(&w, &e);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	world_end(&w);
}
END_TEST

START_TEST(more_trees_than_a_packet_holds)
{
	struct world w;
	char dst[32];

	world_make(&w, AS_MAPPED);
	make_dir("vol", geteuid());
	ck_assert_int_eq(fchmodat(unit_fd, "vol", 0777, 0), 0);
	for (int i = 0; i < 20; i++) {
		snprintf(dst, sizeof(dst), "/v%d", i);
		(void)add_bind(&w.spec, "vol", dst);
	}
	EXPECT_RUN(&w, "echo x > /v0/x; cat /v19/x; ls -d /v* | wc -l", "x\n20\n");
	world_end(&w);
}
END_TEST

/* Born in its cgroup, which is the root of what it sees, and of which it can change nothing. */
START_TEST(own_cgroup)
{
	struct world w;
	AUTO(cgroup) struct cgroup cg = CGROUP_INIT;
	struct error e = ERROR_INIT;
	struct id id;

	world_make(&w, (enum surrounding)_i);
	id_new(&id);
	ck_assert_int_eq(cgroup_start(&id, &cg, &e), 0);
	w.spec.cgroup_fd = cg.dir_fd;
	if (cg.dir_fd < 0) {
		EXPECT_RUN(&w, "ls /sys/fs/cgroup | wc -l", "0\n");
	} else {
		EXPECT_RUN(&w,
				"grep ^0:: /proc/self/cgroup; grep -c '^1$' /sys/fs/cgroup/cgroup.procs\n"
				"mkdir /sys/fs/cgroup/x 2>&1 | grep -c Read-only",
				"0::/\n1\n1\n");
	}
	world_end(&w);
}
END_TEST

START_TEST(failure_names_step_and_object)
{
	struct world w;
	struct error e = ERROR_INIT;

	world_make(&w, (enum surrounding)_i);
	spec_add_lower(&w.spec, 0, "gone");
	world_fails(&w, &e);
	ck_assert_int_eq(e.sysno, ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "/layers/gone"));
	world_end(&w);
}
END_TEST

struct ops_seen {
	struct error *fail; /* what to fail with */
	pid_t net;
	pid_t recorded;
};

static int attach_net(void *ctx, pid_t pid, struct error *e)
{
	struct ops_seen *seen = ctx;

	seen->net = pid;
	return seen->fail ? error_set(e, ERRC_UNAVAILABLE, "no network") : 0;
}

static int record_pid(void *ctx, pid_t pid, struct error *e)
{
	struct ops_seen *seen = ctx;

	seen->recorded = pid;
	return seen->fail ? error_set(e, ERRC_LIMIT, "no record") : 0;
}

START_TEST(callers_have_their_say)
{
	struct world w;
	struct error e = ERROR_INIT;
	struct error fail = ERROR_INIT;
	struct ops_seen seen = { .fail = NULL };
	struct launch_ops ops = {
		.attach_net = attach_net,
		.record_pid = record_pid,
		.ctx = &seen,
	};

	world_make(&w, AS_MAPPED);
	ck_assert_msg(launch_start(&w.spec, &ops, &w.l, &e) == 0, "%s", e.text);
	ck_assert_int_eq(seen.net, w.l.pid);
	ck_assert_int_eq(seen.recorded, w.l.pid);
	ck_assert_int_ge(w.l.userns_fd, 0);
	launch_done(&w.l);
	w.spec.is_ephemeral = false;
	seen = (struct ops_seen){ .fail = &fail };
	ck_assert_int_eq(launch_start(&w.spec, &ops, &w.l, &e), -1);
	ck_assert_str_eq(e.text, "no network");
	ck_assert_int_eq(seen.recorded, 0);
	expect_no_child();
	ops.attach_net = NULL;
	error_clear(&e);
	ck_assert_int_eq(launch_start(&w.spec, &ops, &w.l, &e), -1);
	ck_assert_str_eq(e.text, "no record");
	expect_no_child();
	world_end(&w);
}
END_TEST

static int memfd_of(const char *path)
{
	AUTO(buf) struct buf b = BUF_INIT(16U << 20);

	ck_assert_int_eq(file_read_at(AT_FDCWD, path, &b), 0);
	return fd_memfd_sealed("other", b.p, b.n, true);
}

/* Another program in execd's place. */
static const struct {
	const char *path;
	int64_t timeout_ms;
	enum errc code;
	const char *text;
} others[] = {
	{ "/usr/bin/true", 20000, ERRC_INTERNAL, "ended with status 0" },
	{ "/usr/bin/false", 20000, ERRC_INTERNAL, "ended with status 1" },
	{ "/usr/bin/yes", 300, ERRC_TIMEOUT, "no UP in time" },
	{ "/etc/passwd", 20000, ERRC_SYSTEM, "execd: execute it" },
};

START_TEST(something_else_than_execd)
{
	struct world w;
	struct error e = ERROR_INIT;

	world_make(&w, AS_MAPPED);
	close(w.spec.execd_fd);
	w.spec.execd_fd = memfd_of(others[_i].path);
	w.spec.timeout_ms = others[_i].timeout_ms;
	world_fails(&w, &e);
	ck_assert_int_eq(e.code, others[_i].code);
	ck_assert_msg(strstr(e.text, others[_i].text) != NULL, "%s", e.text);
	world_end(&w);
}
END_TEST

/* Kill -9 of the keeper ends the sandbox, and a pid that was recorded ends with it. */
START_TEST(dies_with_its_keeper)
{
	struct world w;
	struct pollfd p = { .events = POLLIN };
	int pipe_fds[2];
	int status = 0;
	pid_t pid = 0;

	world_make(&w, (enum surrounding)_i);
	ck_assert_int_eq(fd_pipe(pipe_fds, 0), 0);
	/* Orphans come to us, so that the pid stays ours to look at. */
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	pid_t keeper = fork();

	if (keeper == 0) {
		world_launch(&w);
		if (write(pipe_fds[1], &w.l.pid, sizeof(w.l.pid)) < 0) {
			_exit(1);
		}
		pause();
		_exit(0);
	}
	ck_assert_int_eq(read(pipe_fds[0], &pid, sizeof(pid)), sizeof(pid));
	p.fd = sys_pidfd_open(pid);
	ck_assert_int_ge(p.fd, 0);
	ck_assert_int_eq(kill(keeper, SIGKILL), 0);
	ck_assert_int_eq(waitpid(keeper, &status, 0), keeper);
	ck_assert_int_eq(poll(&p, 1, SANDBOX_WAIT_MS), 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	/* By the signal, or by execd itself, which saw the end of its channel first. */
	ck_assert(WIFSIGNALED(status) || WIFEXITED(status));
	close(p.fd);
	world_end(&w);
}
END_TEST

START_TEST(no_descriptor_stays)
{
	struct world w;
	struct error e = ERROR_INIT;
	size_t before = 0;
	size_t after = 0;

	world_make(&w, (enum surrounding)_i);
	w.spec.is_ephemeral = false;
	for (int fd = 0; fd < 256; fd++) {
		before += fcntl(fd, F_GETFD) >= 0;
	}
	world_launch(&w);
	launch_done(&w.l);
	launch_done(&w.l);
	spec_add_lower(&w.spec, 0, "gone");
	world_fails(&w, &e);
	for (int fd = 0; fd < 256; fd++) {
		after += fcntl(fd, F_GETFD) >= 0;
	}
	ck_assert_uint_eq(before, after);
	launch_done(NULL);
	world_end(&w);
}
END_TEST

/* A mount namespace of the test's own. A descriptor of before belongs to the other one. */
static void private_mounts(void)
{
	ck_assert_int_eq(sys_unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(sys_mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	close(unit_fd);
	unit_fd = open(unit_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(unit_fd, 0);
}

/* A host with an odd mount table: many lines, a bound namespace, a mount on a deleted directory.
 * In a mount namespace of the test's own that still propagates, as hosts do. */
static void odd_mounts(void)
{
	autofree char *odd = below("odd");
	autofree char *ns = below("odd/ns");
	autofree char *gone = below("odd/gone");
	char name[32];

	make_dir("odd", 0);
	private_mounts();
	ck_assert_int_eq(sys_mount("none", "/", NULL, MS_REC | MS_SHARED, NULL), 0);
	ck_assert_int_eq(sys_mount("odd", odd, "tmpfs", 0, NULL), 0);
	for (int i = 0; i < 1500; i++) {
		snprintf(name, sizeof(name), "odd/%d", i);
		autofree char *path = below(name);

		make_dir(name, 0);
		ck_assert_int_eq(sys_mount(path, path, NULL, MS_BIND, NULL), 0);
	}
	make_file("odd/ns", "", 0);
	ck_assert_int_eq(sys_mount("/proc/self/ns/net", ns, NULL, MS_BIND, NULL), 0);
	make_dir("odd/gone", 0);
	make_dir("odd/0/x", 0);
	autofree char *x = below("odd/0/x");

	ck_assert_int_eq(sys_mount(x, gone, NULL, MS_BIND, NULL), 0);
	ck_assert_int_eq(rmdir(x), 0);
}

static size_t mounts_now(void)
{
	AUTO(buf) struct buf b = BUF_INIT(4U << 20);
	size_t n = 0;

	ck_assert_int_eq(file_read_at(AT_FDCWD, "/proc/self/mountinfo", &b), 0);
	for (size_t i = 0; i < b.n; i++) {
		n += b.p[i] == '\n';
	}
	return n;
}

START_TEST(odd_mount_tables)
{
	struct world w;
	size_t before = 0;

	odd_mounts();
	world_make(&w, (enum surrounding)_i);
	make_dir("vol", geteuid());
	make_dir("vol/in", geteuid());
	(void)add_bind(&w.spec, "vol", "/vol");
	(void)add_bind(&w.spec, "vol", "/vol/in");
	before = mounts_now();
	EXPECT_RUN(&w, "grep -c odd /proc/self/mountinfo", "0\n");
	/* Nothing that the sandbox mounted came back by propagation. */
	ck_assert_uint_eq(mounts_now(), before);
	world_end(&w);
}
END_TEST

/* A volume with mounts below it: read-only is all of it. */
START_TEST(read_only_with_submounts)
{
	struct world w;
	autofree char *sub = below("vol/sub");

	private_mounts();
	make_dir("vol", 0);
	make_dir("vol/sub", 0);
	ck_assert_int_eq(sys_mount("sub", sub, "tmpfs", 0, "mode=777"), 0);
	world_make(&w, (enum surrounding)_i);
	(void)add_bind(&w.spec, "vol", "/rw");
	add_bind(&w.spec, "vol", "/ro")->read_only = true;
	EXPECT_RUN(&w,
			"echo x > /rw/sub/x && echo written\n"
			"(echo y > /ro/sub/y) 2>&1 | grep -c Read-only\n"
			"grep ' /r[ow]/sub ' /proc/self/mountinfo | grep -c nosuid,nodev",
			"written\n1\n2\n");
	world_end(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("launch");
	TCase *tc = tcase_create("all");
	const int n = surroundings();

	if (!sandbox_is_possible()) {
		return 77;
	}
	unit_with_dir(tc);
	tcase_add_loop_test(tc, looks_as_promised, 0, n);
	tcase_add_loop_test(tc, nothing_of_the_host_is_left, 0, n);
	tcase_add_loop_test(tc, devices_and_kernel_files, 0, n);
	tcase_add_loop_test(tc, small_mounts, 0, n);
	tcase_add_loop_test(tc, volumes, 0, n);
	tcase_add_loop_test(tc, volume_of_everything, 0, n);
	tcase_add_test(tc, refusal_names_the_volume);
	tcase_add_loop_test(tc, mount_point_in_a_volume_is_not_made, 0, n);
	tcase_add_loop_test(tc, links_of_the_image, 0, ARRAY_SIZE(links));
	tcase_add_loop_test(tc, host_network, 0, n);
	tcase_add_test(tc, isolation_shows_procfs);
	tcase_add_test(tc, as_many_layers_as_allowed);
	tcase_add_test(tc, more_trees_than_a_packet_holds);
	tcase_add_loop_test(tc, own_cgroup, 0, n);
	tcase_add_loop_test(tc, failure_names_step_and_object, 0, n);
	tcase_add_test(tc, callers_have_their_say);
	tcase_add_loop_test(tc, something_else_than_execd, 0, ARRAY_SIZE(others));
	tcase_add_loop_test(tc, dies_with_its_keeper, 0, n);
	tcase_add_loop_test(tc, no_descriptor_stays, 0, n);
	if (geteuid() == 0) {
		tcase_add_loop_test(tc, odd_mount_tables, 0, n);
		tcase_add_loop_test(tc, read_only_with_submounts, 0, n);
	}
	tcase_set_timeout(tc, 60);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
