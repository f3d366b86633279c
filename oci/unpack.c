/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * One helper a layer, as many at once as there are processors (2 to 8). Entries need nothing of
 * other layers; what does (layer_finish) waits until all layers below are complete. Layers start
 * lowest first, so the lowest that is not complete always runs and nothing waits for ever.
 *
 *   staging directory .staging-R (locked)      0/ 1/ 2/ …  one directory a layer
 *   NEW ─▶ UNPACKING ─▶ UNPACKED ─▶ FINISHING ─▶ DONE      of each layer
 *   all DONE: syncfs once, then rename N to CHAIN, lowest first
 *
 * Killed at any point, the staging directory is all that is left, without a lock; helpers die with
 * their parent. A directory CHAIN is complete whenever it is there.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/sys.h>

#include "store_internal.h"
#include "unpack.h"
#include "unpack_worker.h"
#include "userns.h"

#define WORKERS_MIN 2
#define WORKERS_MAX 8
#define PROGRESS_MS 50
#define NUMBER_MAX  24
#define DIRS_MODE   0700

struct batch {
	struct store *st;
	const struct unpack_opts *opts;
	struct unpack_layer *layers;
	size_t n;
	struct worker *workers; /* one a layer */
	int layers_fd;          /* layers/MODE; the store's */
	struct staging staging;
	int tree_fd;
	int userns_fd;
	int usage_fd;
	struct unpack_usage *usage;
	size_t started; /* layers below this have a helper or need none */
	size_t done;    /* layers below this are complete */
	int64_t told_ms;
};

static uint64_t budget_of(uint64_t max)
{
	return max > 0 ? max : LIMIT_UNPACK_BYTES;
}

static size_t workers_max(void)
{
	cpu_set_t set;
	int n = 0;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) == 0) {
		n = CPU_COUNT(&set);
	}
	return n < WORKERS_MIN ? WORKERS_MIN : n > WORKERS_MAX ? WORKERS_MAX : (size_t)n;
}

/* Sealed, so that no helper can shrink it under the others. */
static int usage_open(int *out_fd, struct unpack_usage **out_usage, struct error *e)
{
	autoclose int fd = memfd_create("osbx-unpack", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p = MAP_FAILED;

	if (fd < 0 || ftruncate(fd, sizeof(struct unpack_usage)) < 0 ||
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		return error_sys(e, errno, "make counters");
	}
	p = mmap(NULL, sizeof(struct unpack_usage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		return error_sys(e, errno, "map counters");
	}
	*out_fd = TAKE_FD(fd);
	*out_usage = p;
	return 0;
}

static void usage_close(struct unpack_usage *usage)
{
	if (usage) {
		(void)munmap(usage, sizeof(*usage));
	}
}

/* With a shared range, its root is no one we know: it may pass through our directories (those above
 * are ours alone), and owns those of the layers. Passing only: the keeper's own ids must be able to
 * do so too, before they change. */
static int let_pass(const struct batch *b, int fd)
{
	return b->opts->map->mode == IDMAP_SHARED && fchmod(fd, DIRS_MODE | 0011) < 0 ? -errno : 0;
}

static int give_to_root(const struct batch *b, int fd)
{
	const struct idmap *map = b->opts->map;

	if (map->mode != IDMAP_SHARED) {
		return 0;
	}
	return fchown(fd, idmap_outside(map->uids, map->uids_n, 0),
			       idmap_outside(map->gids, map->gids_n, 0)) < 0
			       ? -errno
			       : 0;
}

/* All helpers see the store's layers through one mount: a hard link cannot cross two. */
static int layers_tree_open(struct batch *b)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	autoclose int fd = -1;
	int rc = 0;

	if (b->opts->map->mode != IDMAP_MAPPED) {
		return fd_dup(b->layers_fd, 0);
	}
	fd = sys_open_tree(b->layers_fd, "", OPEN_TREE_CLONE | AT_EMPTY_PATH);
	if (fd < 0) {
		return fd;
	}
	attr.userns_fd = (uint64_t)b->userns_fd;
	rc = sys_mount_setattr(fd, AT_EMPTY_PATH, &attr);
	return rc < 0 ? rc : TAKE_FD(fd);
}

static int make_dirs(struct batch *b)
{
	int rc = let_pass(b, b->layers_fd);

	rc = rc < 0 ? rc : let_pass(b, b->staging.dir_fd);
	for (size_t i = 0; rc == 0 && i < b->n; i++) {
		char name[NUMBER_MAX];
		autoclose int fd = -1;

		if (b->layers[i].present) {
			continue;
		}
		(void)snprintf(name, sizeof(name), "%zu", i);
		rc = mkdirat(b->staging.dir_fd, name, DIRS_MODE) < 0 ? -errno : 0;
		if (rc == 0) {
			fd = fd_open_at(b->staging.dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
			rc = fd < 0 ? fd : give_to_root(b, fd);
		}
	}
	return rc;
}

static int prepare(struct batch *b, struct error *e)
{
	int rc = 0;

	b->layers_fd = store_layers_fd(b->st, b->opts->map->mode);
	if (b->layers_fd < 0) {
		return error_sys(e, -b->layers_fd, "open layers/%s",
				idmap_mode_name(b->opts->map->mode));
	}
	rc = staging_open(b->layers_fd, STAGING_PREFIX, &b->staging);
	rc = rc < 0 ? rc : make_dirs(b);
	if (rc < 0) {
		return error_sys(e, -rc, "make staging directory");
	}
	if (idmap_userns_open(b->opts->map, &b->userns_fd, e) < 0) {
		return -1;
	}
	b->tree_fd = layers_tree_open(b);
	if (b->tree_fd < 0) {
		return error_sys(e, -b->tree_fd, "map the owners of layers/%s",
				idmap_mode_name(b->opts->map->mode));
	}
	return usage_open(&b->usage_fd, &b->usage, e);
}

/* Where the directory of a layer is, beneath layers/MODE. */
static void name_of(const struct batch *b, size_t index, char out[UNPACK_NAME_MAX])
{
	if (b->layers[index].present) {
		(void)snprintf(out, UNPACK_NAME_MAX, "%s",
				digest_hex(&b->layers[index].layer->chain));
	} else {
		(void)snprintf(out, UNPACK_NAME_MAX, "%s/%zu", b->staging.name, index);
	}
}

static int wrap(const struct batch *b, size_t index, struct error *e)
{
	b->layers[index].failed = true;
	return error_wrap(e, "layer %zu of %zu (%.19s…)", index + 1, b->n,
			b->layers[index].layer->blob.text);
}

static void tell(const struct batch *b, size_t index, enum image_phase phase)
{
	const struct image_progress *p = b->opts->progress;
	const struct image_layer *layer = b->layers[index].layer;

	if (p && p->on_layer) {
		uint64_t done = atomic_load_explicit(&b->usage->done[index], memory_order_relaxed);

		p->on_layer(p->ctx, index, layer, phase, done, layer->size);
	}
}

static int start_layer(struct batch *b, size_t index, struct error *e)
{
	const struct unpack_layer *u = &b->layers[index];
	struct unpack_job job = {
		.kind = u->present ? UNPACK_KIND_VERIFY : UNPACK_KIND_LAYER,
		.index = (uint32_t)index,
		.lowers_n = u->present ? 0 : (uint32_t)index,
		.size = u->layer->size,
		.budget = budget_of(b->opts->unpack_max),
		.entries_max = LIMIT_UNPACK_ENTRIES,
		.blob = u->layer->blob,
		.diff = u->layer->diff,
		.map = *b->opts->map,
	};
	const int fds[UNPACK_FD_COUNT] = { u->blob_fd, b->tree_fd, b->userns_fd, b->usage_fd,
		u->copy_fd };
	char(*lowers)[UNPACK_NAME_MAX] = mem_array(index + 1, UNPACK_NAME_MAX);
	int rc = 0;

	name_of(b, index, job.dir);
	for (size_t i = 0; i < index; i++) {
		name_of(b, index - 1 - i, lowers[i]);
	}
	rc = worker_start(&b->workers[index], &job, fds, lowers, e);
	free(lowers);
	if (rc < 0) {
		return wrap(b, index, e);
	}
	tell(b, index, IMAGE_PHASE_COPYING);
	return 0;
}

/* A layer that is there and has nothing to be verified needs no helper. */
static bool is_settled(const struct unpack_layer *u)
{
	return u->present && u->blob_fd < 0;
}

static bool is_busy(const struct worker *w)
{
	return w->stage == WORKER_UNPACKING || w->stage == WORKER_FINISHING;
}

static int start_more(struct batch *b, struct error *e)
{
	size_t busy = 0;

	for (size_t i = 0; i < b->started; i++) {
		busy += is_busy(&b->workers[i]) ? 1 : 0;
	}
	while (b->started < b->n && busy < workers_max()) {
		if (is_settled(&b->layers[b->started])) {
			b->workers[b->started].stage = WORKER_DONE;
		} else if (start_layer(b, b->started, e) < 0) {
			return -1;
		} else {
			busy++;
		}
		b->started++;
	}
	return 0;
}

/* Go past complete layers; let the lowest of the others finish if its entries are there. */
static int settle(struct batch *b, struct error *e)
{
	while (b->done < b->n && b->workers[b->done].stage == WORKER_DONE) {
		b->done++;
	}
	if (b->done < b->n && b->workers[b->done].stage == WORKER_UNPACKED) {
		if (worker_finish(&b->workers[b->done], e) < 0) {
			return wrap(b, b->done, e);
		}
		tell(b, b->done, IMAGE_PHASE_LINKING);
	}
	return 0;
}

static int receive(struct batch *b, size_t index, struct error *e)
{
	struct worker *w = &b->workers[index];

	if (worker_receive(w, e) < 0) {
		return wrap(b, index, e);
	}
	if (w->stage == WORKER_UNPACKED && (w->stats.devices > 0 || w->stats.xattrs > 0)) {
		log_debug("layer %s: %llu device nodes and %llu attributes left out",
				b->layers[index].layer->blob.text,
				(unsigned long long)w->stats.devices,
				(unsigned long long)w->stats.xattrs);
	}
	if (w->stage == WORKER_DONE) {
		worker_done(w);
		tell(b, index, b->layers[index].present ? IMAGE_PHASE_PRESENT : IMAGE_PHASE_DONE);
	}
	return 0;
}

static void tell_all(struct batch *b)
{
	int64_t now = clock_boot_ms();

	if (now - b->told_ms < PROGRESS_MS) {
		return;
	}
	b->told_ms = now;
	for (size_t i = b->done; i < b->started; i++) {
		if (b->workers[i].stage == WORKER_UNPACKING) {
			tell(b, i, IMAGE_PHASE_COPYING);
		}
	}
}

/* Has a signal come that the caller holds back (pull_signals_hold) until all is undone? */
static bool is_interrupted(void)
{
	sigset_t set;

	return sigpending(&set) == 0 &&
	       (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1 ||
			       sigismember(&set, SIGHUP) == 1);
}

/* A moment at most, so that a signal is noticed. */
static int wait_a_moment(struct pollfd *fds, size_t n, struct error *e)
{
	if (poll(fds, n, PROGRESS_MS) < 0 && errno != EINTR) {
		return error_sys(e, errno, "wait for unpack");
	}
	return 0;
}

static int interrupted(struct error *e)
{
	return error_set(e, ERRC_UNAVAILABLE, "interrupted");
}

static int wait_for_helpers(struct batch *b, struct error *e)
{
	const struct unpack_feed *feed = b->opts->feed;
	struct pollfd fds[LIMIT_LAYERS + 1];
	size_t index[LIMIT_LAYERS];
	size_t n = 0;

	for (size_t i = b->done; i < b->started; i++) {
		if (b->workers[i].sock >= 0) {
			fds[n] = (struct pollfd){ .fd = b->workers[i].sock, .events = POLLIN };
			index[n++] = i;
		}
	}
	assert(n > 0);
	fds[n] = (struct pollfd){ .fd = feed ? feed->fd : -1, .events = POLLIN };
	if (wait_a_moment(fds, n + 1, e) < 0) {
		return -1;
	}
	/* Whoever feeds looks himself. */
	if (feed ? feed->pump(feed->ctx, e) < 0 : is_interrupted() && interrupted(e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		if (fds[i].revents != 0 && receive(b, index[i], e) < 0) {
			return -1;
		}
	}
	tell_all(b);
	return 0;
}

static int run_all(struct batch *b, struct error *e)
{
	while (b->done < b->n) {
		if (start_more(b, e) < 0 || settle(b, e) < 0) {
			return -1;
		}
		if (b->done < b->n && b->workers[b->done].stage != WORKER_NEW &&
				wait_for_helpers(b, e) < 0) {
			return -1;
		}
	}
	return 0;
}

struct renaming {
	int from_fd;
	int to_fd;
	const char *from;
	const char *to;
};

static int rename_new(void *ctx)
{
	const struct renaming *r = ctx;

	int n = sys_rename_new(r->from_fd, r->from, r->to_fd, r->to);

	/* Some file systems (and NFS) have no flags; a rename over a directory that is not empty
	 * fails by itself. */
	if (n == -EINVAL) {
		n = renameat(r->from_fd, r->from, r->to_fd, r->to) < 0 ? -errno : 0;
	}
	return n == -EEXIST || n == -ENOTEMPTY ? 0 : n;
}

/* Someone else may have been first, with the same content. Moving a directory needs permission to
 * write to it, which an ordinary user lacks when the image gives its root to another id. */
static int publish_layer(struct batch *b, size_t index, struct error *e)
{
	char from[NUMBER_MAX];
	struct renaming r = {
		.from_fd = b->staging.dir_fd,
		.to_fd = b->layers_fd,
		.from = from,
		.to = digest_hex(&b->layers[index].layer->chain),
	};
	int rc = 0;

	(void)snprintf(from, sizeof(from), "%zu", index);
	rc = rename_new(&r);
	if ((rc == -EACCES || rc == -EPERM) && b->opts->map->mode == IDMAP_SUBID) {
		rc = userns_run(b->opts->map, rename_new, &r);
	}
	return rc < 0 ? error_sys(e, -rc, "publish layer %s", r.to) : 0;
}

static int publish(struct batch *b, struct error *e)
{
	bool is_new = false;

	for (size_t i = 0; i < b->n; i++) {
		is_new = is_new || !b->layers[i].present || b->layers[i].copy_fd >= 0;
	}
	if (!is_new) {
		return 0;
	}
	if (syncfs(b->layers_fd) < 0) {
		return error_sys(e, errno, "sync the store");
	}
	for (size_t i = 0; i < b->n; i++) {
		if (!b->layers[i].present && publish_layer(b, i, e) < 0) {
			return -1;
		}
	}
	return 0;
}

static void batch_done(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		worker_done(&b->workers[i]);
	}
	free(b->workers);
	usage_close(b->usage);
	fd_close(&b->usage_fd);
	fd_close(&b->userns_fd);
	fd_close(&b->tree_fd);
	if (b->staging.dir_fd >= 0 &&
			store_remove_tree(b->opts->map, b->layers_fd, b->staging.name) < 0) {
		log_debug("remove %s: left for gc", b->staging.name);
	}
	staging_done(&b->staging);
}
AUTO_DEFINE(batch, struct batch, batch_done);

int unpack_layers(struct store *st, const struct unpack_opts *opts, struct unpack_layer *layers,
		size_t n, struct error *e)
{
	AUTO(batch)
	struct batch b = {
		.st = st,
		.opts = opts,
		.layers = layers,
		.n = n,
		.workers = mem_array(n + 1, sizeof(struct worker)),
		.layers_fd = -1,
		.staging = STAGING_INIT,
		.tree_fd = -1,
		.userns_fd = -1,
		.usage_fd = -1,
	};

	for (size_t i = 0; i < n; i++) {
		b.workers[i] = (struct worker)WORKER_INIT;
	}
	if (n > LIMIT_LAYERS) {
		return error_set(e, ERRC_LIMIT, "%zu layers", n);
	}
	if (prepare(&b, e) < 0 || run_all(&b, e) < 0) {
		return -1;
	}
	return publish(&b, e);
}

static int run_archive(struct worker *w, struct error *e)
{
	while (w->stage != WORKER_DONE) {
		struct pollfd p = { .fd = w->sock, .events = POLLIN };

		if (wait_a_moment(&p, 1, e) < 0 || (is_interrupted() && interrupted(e) < 0)) {
			return -1;
		}
		if (p.revents == 0) {
			continue;
		}
		if (worker_receive(w, e) < 0 ||
				(w->stage == WORKER_UNPACKED && worker_finish(w, e) < 0)) {
			return -1;
		}
	}
	return 0;
}

int unpack_archive(int archive_fd, int dir_fd, uint64_t max, struct error *e)
{
	AUTO(worker) struct worker w = WORKER_INIT;
	autoclose int userns_fd = -1;
	autoclose int usage_fd = -1;
	struct unpack_usage *usage = NULL;
	struct unpack_job job = {
		.kind = UNPACK_KIND_ARCHIVE,
		.size = UINT64_MAX,
		.budget = budget_of(max),
		.entries_max = LIMIT_ARCHIVE_MEMBERS,
		.map = {
			.mode = IDMAP_SINGLE,
			.uids_n = 1,
			.gids_n = 1,
			.uids = { { .outside = geteuid(), .count = 1 } },
			.gids = { { .outside = getegid(), .count = 1 } },
		},
		.dir = ".",
	};
	int rc = 0;

	if (idmap_userns_open(&job.map, &userns_fd, e) < 0 ||
			usage_open(&usage_fd, &usage, e) < 0) {
		return -1;
	}
	const int fds[UNPACK_FD_COUNT] = { archive_fd, dir_fd, userns_fd, usage_fd, -1 };

	rc = worker_start(&w, &job, fds, NULL, e) < 0 ? -1 : run_archive(&w, e);
	usage_close(usage);
	return rc;
}
