/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit is a file of a controller, which is there when the directory above has the controller in
 * its cgroup.subtree_control, which that of the directory above it must have in turn.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/cgroup.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/oom.h>
#include <osbx/str.h>

#include "cgroup_internal.h"

#define CONTROLLERS   "cgroup.controllers"
#define SUBTREE       "cgroup.subtree_control"
#define VALUE_BYTES   4096
#define LEVELS_MAX    32
#define CPU_PERIOD_US 100000U

struct rule {
	const char *controller;
	const char *option; /* as the user knows it */
	const char *file;
	/* The text to write; false: no limit was asked for. */
	bool (*format)(const struct cgroup_limits *l, char *text, size_t n);
};

static bool format_cpu(const struct cgroup_limits *l, char *text, size_t n)
{
	(void)snprintf(text, n, "%" PRIu64 " %u", l->cpu_milli * (CPU_PERIOD_US / 1000),
			CPU_PERIOD_US);
	return l->cpu_milli > 0;
}

/* The kernel counts whole pages. */
static bool format_memory(const struct cgroup_limits *l, char *text, size_t n)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	(void)snprintf(text, n, "%" PRIu64, l->memory_bytes / page * page);
	return l->memory_bytes > 0;
}

static bool format_pids(const struct cgroup_limits *l, char *text, size_t n)
{
	(void)snprintf(text, n, "%" PRIu64, l->pids + 1);
	return l->pids > 0;
}

static const struct rule rules[] = {
	[CGROUP_LIMIT_CPU] = { "cpu", "--cpus", "cpu.max", format_cpu },
	[CGROUP_LIMIT_MEMORY] = { "memory", "--memory", "memory.max", format_memory },
	[CGROUP_LIMIT_PIDS] = { "pids", "--pids-limit", "pids.max", format_pids },
};
_Static_assert(ARRAY_SIZE(rules) == CGROUP_LIMIT_COUNT, "one rule a limit");

const char *cgroup_limit_name(enum cgroup_limit limit)
{
	assert((unsigned int)limit < CGROUP_LIMIT_COUNT);
	return rules[limit].controller;
}

/* Does the file have this word? */
static bool has_word(int dir_fd, const char *file, const char *word)
{
	AUTO(buf) struct buf b = BUF_INIT(VALUE_BYTES);
	struct span rest = { .n = 0 };
	struct span one;

	if (file_read_at(dir_fd, file, &b) < 0) {
		return false;
	}
	rest = buf_span(&b);
	while (rest.n > 0 && rest.p[rest.n - 1] == '\n') {
		rest.n--;
	}
	while (span_next(&rest, ' ', &one)) {
		if (span_eq(one, span_of(word))) {
			return true;
		}
	}
	return false;
}

/* A directory as messages name it. Caller frees. */
static char *path_of(int dir_fd)
{
	char link[32];
	char path[LIMIT_PATH_BYTES];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	ssize_t n = readlink(link, path, sizeof(path));

	return n > 0 ? mem_dup(path, (size_t)n) : mem_strdup("its cgroup");
}

/* Directories from BASE/osbx upwards. */
struct levels {
	int fds[LEVELS_MAX];
	size_t n;
};

static void levels_done(struct levels *l)
{
	while (l->n > 0) {
		fd_close(&l->fds[--l->n]);
	}
}
AUTO_DEFINE(levels, struct levels, levels_done);

/* Above a delegated subtree systemd is the one that writes. */
static bool may_climb(void)
{
	return geteuid() == 0 && access("/run/systemd/system", F_OK) < 0;
}

/* From BASE/osbx up to the first directory that offers the controller. 0, -ENOENT: none does. */
static int levels_open(const struct cgroup *cg, const char *controller, struct levels *l)
{
	size_t max = may_climb() ? LEVELS_MAX : 2;
	int fd = fd_dup(cg->base_fd, 0);

	while (fd >= 0 && faccessat(fd, CONTROLLERS, F_OK, 0) == 0) {
		l->fds[l->n++] = fd;
		if (has_word(fd, CONTROLLERS, controller)) {
			return 0;
		}
		fd = l->n == max ? -1 : fd_open_at(fd, "..", O_RDONLY | O_DIRECTORY, 0);
	}
	fd_close(&fd);
	return -ENOENT;
}

/* 0: it may offer controllers to those below. A process of its own would make it a threaded domain
 * when cpu or pids is enabled, which the kernel does not refuse, and then nothing may be cloned
 * below (cgroups(7)). Here only this process can be sent away; the root may have any. */
static int level_clear(const struct cgroup *cg, int dir_fd, bool is_base)
{
	if (faccessat(dir_fd, "cgroup.type", F_OK, 0) < 0) {
		return 0;
	}
	int r = cgroup_others(dir_fd);

	if (r != 0) {
		return r < 0 ? r : -EBUSY;
	}
	if (!is_base) {
		return 0;
	}
	r = file_mkdir_at(cg->base_fd, CGROUP_KEEPER, 0755);
	return r < 0 ? r : file_put_at(cg->base_fd, CGROUP_KEEPER "/cgroup.procs", "0");
}

static int level_enable(const struct cgroup *cg, const struct levels *l, size_t i, const char *word)
{
	int r = i == 0 ? 0 : level_clear(cg, l->fds[i], i == 1);

	return r < 0 ? r : file_put_at(l->fds[i], SUBTREE, word);
}

/* 0 or -errno; *out_where is the directory that lacks it. */
static int controller_enable(const struct cgroup *cg, const char *controller, char **out_where)
{
	AUTO(levels) struct levels l = { .n = 0 };
	autofree char *word = mem_printf("+%s", controller);
	int r = levels_open(cg, controller, &l);

	if (r < 0) {
		*out_where = path_of(l.n > 0 ? l.fds[l.n - 1] : cg->base_fd);
		return r;
	}
	for (size_t i = l.n; i-- > 0;) {
		r = has_word(l.fds[i], SUBTREE, controller) ? 0 : level_enable(cg, &l, i, word);
		if (r < 0) {
			*out_where = path_of(l.fds[i]);
			return r;
		}
	}
	return 0;
}

/* 0, or why not. What was read back is what counts. */
static int value_set(int dir_fd, const char *file, const char *text)
{
	AUTO(buf) struct buf b = BUF_INIT(VALUE_BYTES);
	int r = file_put_at(dir_fd, file, text);

	if (r == 0) {
		r = file_read_at(dir_fd, file, &b);
	}
	if (r < 0) {
		return r;
	}
	struct span now = buf_span(&b);

	while (now.n > 0 && now.p[now.n - 1] == '\n') {
		now.n--;
	}
	return span_eq(now, span_of(text)) ? 0 : -EINVAL;
}

static int refuse(const struct rule *rule, int r, const char *where, struct error *e)
{
	if (!where) {
		(void)error_set(e, ERRC_UNSUPPORTED,
				"the limit %s cannot be enforced: there is no cgroup of version 2 "
				"that this process may write to",
				rule->option);
	} else if (r == -ENOENT) {
		(void)error_set(e, ERRC_UNSUPPORTED,
				"the limit %s cannot be enforced: no controller %s in "
				"%s/" CONTROLLERS,
				rule->option, rule->controller, where);
	} else {
		(void)error_set(e, ERRC_UNSUPPORTED,
				"the limit %s cannot be enforced: controller %s at %s",
				rule->option, rule->controller, where);
		e->sysno = -r;
	}
	return error_hint(e, "osbx doctor says what this machine lacks; --limits best-effort runs "
			     "without");
}

static int limit_set(
		const struct cgroup *cg, const struct rule *rule, const char *text, struct error *e)
{
	autofree char *where = NULL;

	if (cg->dir_fd < 0) {
		return refuse(rule, -ENOENT, NULL, e);
	}
	int r = controller_enable(cg, rule->controller, &where);

	if (r < 0) {
		return refuse(rule, r, where, e);
	}
	r = value_set(cg->dir_fd, rule->file, text);
	if (r == 0 && rule == &rules[CGROUP_LIMIT_MEMORY]) {
		/* Without swap in the kernel the file is not there. */
		r = value_set(cg->dir_fd, "memory.swap.max", "0");
		r = r == -ENOENT ? 0 : r;
	}
	if (r < 0) {
		where = path_of(cg->dir_fd);
		return refuse(rule, r == -ENOENT ? -ENODEV : r, where, e);
	}
	return 0;
}

int cgroup_limit(const struct cgroup *cg, const struct cgroup_limits *l, bool best_effort,
		unsigned int *out_missing, struct error *e)
{
	unsigned int missing = 0;
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (!rules[i].format(l, text, sizeof(text)) ||
				limit_set(cg, &rules[i], text, e) == 0) {
			continue;
		}
		if (!best_effort) {
			return -1;
		}
		error_clear(e);
		missing |= 1U << i;
	}
	*out_missing = missing;
	return 0;
}

uint64_t cgroup_oom_kills(const struct cgroup *cg)
{
	return oom_kills(cg->dir_fd);
}
