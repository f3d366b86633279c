/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * The helper sees every hostile byte of a layer, so it gives up what it does not need before the
 * first of them: it takes its job, loads its libraries while the host's are in view, becomes root
 * of a user namespace that has only the store's ids, makes the layer's directory its root, keeps
 * four capabilities and installs the syscall filter. What is left to it: the layers below (as
 * directories, to link to their files), the blob, its copy, a page of counters and the socket.
 *
 * Four capabilities: CHOWN and FOWNER for owners, modes and times of files of other ids,
 * DAC_OVERRIDE for directories whose mode shuts out their owner, FSETID so that set-id bits
 * survive. Device nodes are not made, file capabilities are dropped: no MKNOD, no SETFCAP.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <osbx/caps.h>
#include <osbx/fd.h>
#include <osbx/image.h>
#include <osbx/path.h>
#include <osbx/sys.h>

#include "libs.h"
#include "unpack_proto.h"
#include "userns.h"

#define HELPER_CAPS                                                                \
	(CAPS_BIT(CAP_CHOWN) | CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_FOWNER) | \
			CAPS_BIT(CAP_FSETID))
/* Far above need (a zstd window of 128 MiB, the records of a layer), far below what hurts. */
#define HELPER_MEMORY_BYTES (UINT64_C(2) << 30)
#define HELPER_FILES_MAX    8192

struct helper {
	struct unpack_job job;
	int fds[UNPACK_FD_COUNT];
	int dir_fd;
	size_t lowers_n; /* opened */
	int lowers[LIMIT_LAYERS];
	char names[LIMIT_LAYERS][UNPACK_NAME_MAX];
	struct unpack_usage *usage;
};

static const struct sock_filter *filter_insns;
static size_t filter_n;

void unpack_set_filter(const struct sock_filter *insns, size_t n)
{
	filter_insns = insns;
	filter_n = n;
}

static int receive(uint16_t type, struct packet *out_p, struct error *e)
{
	int rc = packet_recv(UNPACK_CONTROL_FD, out_p, -1);

	if (rc < 0) {
		return error_sys(e, -rc, "receive job");
	}
	if (rc == 0 || out_p->type != type) {
		return error_set(e, ERRC_INTERNAL, "receive job: message %d instead of %d",
				rc == 0 ? -1 : (int)out_p->type, (int)type);
	}
	return 0;
}

static int take_job(struct helper *h, struct error *e)
{
	struct packet p = { 0 };

	if (receive(UNPACK_MSG_JOB, &p, e) < 0) {
		return -1;
	}
	if (p.len != sizeof(h->job) || p.fds_n < UNPACK_FD_COPY || p.fds_n > UNPACK_FD_COUNT) {
		packet_done(&p);
		return error_set(e, ERRC_INTERNAL, "receive job: wrong size");
	}
	memcpy(&h->job, p.payload, sizeof(h->job));
	for (uint32_t i = 0; i < p.fds_n; i++) {
		h->fds[i] = p.fds[i];
	}
	if (h->job.lowers_n >= LIMIT_LAYERS || h->job.index >= LIMIT_LAYERS ||
			h->job.kind >= UNPACK_KIND_COUNT) {
		return error_set(e, ERRC_INTERNAL, "receive job: out of range");
	}
	for (uint32_t i = 0; i < h->job.lowers_n; i++) {
		if (receive(UNPACK_MSG_LOWER, &p, e) < 0) {
			return -1;
		}
		if (p.len >= UNPACK_NAME_MAX) {
			return error_set(e, ERRC_INTERNAL, "receive job: wrong size");
		}
		memcpy(h->names[i], p.payload, p.len);
	}
	return 0;
}

static int limit_to(int resource, rlim_t max)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0) {
		return -errno;
	}
	limit.rlim_max = limit.rlim_max > max ? max : limit.rlim_max;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

static int limit_resources(struct error *e)
{
	int rc = limit_to(RLIMIT_CORE, 0);

	rc = rc < 0 ? rc : limit_to(RLIMIT_NOFILE, HELPER_FILES_MAX);
#if !OSBX_SANITIZED /* whose shadow is terabytes of address space */
	rc = rc < 0 ? rc : limit_to(RLIMIT_AS, HELPER_MEMORY_BYTES);
#endif
	return rc < 0 ? error_sys(e, -rc, "limit resources") : 0;
}

static int load_libraries(const struct helper *h, struct error *e)
{
	if (h->job.kind != UNPACK_KIND_ARCHIVE && digest_load_library(e) < 0) {
		return -1;
	}
	return h->job.kind == UNPACK_KIND_VERIFY ? 0 : libs_load(e);
}

static int map_usage(struct helper *h, struct error *e)
{
	void *p = mmap(NULL, sizeof(*h->usage), PROT_READ | PROT_WRITE, MAP_SHARED,
			h->fds[UNPACK_FD_USAGE], 0);

	if (p == MAP_FAILED) {
		return error_sys(e, errno, "map counters");
	}
	h->usage = p;
	fd_close(&h->fds[UNPACK_FD_USAGE]);
	return 0;
}

/* Before the change of root: the layer's own directory, and those below. */
static int open_dirs(struct helper *h, struct error *e)
{
	int tree = h->fds[UNPACK_FD_TREE];

	h->dir_fd = path_open_nolink(tree, h->job.dir, O_RDONLY | O_DIRECTORY, 0);
	if (h->dir_fd < 0) {
		return error_sys(e, -h->dir_fd, "open %s", h->job.dir);
	}
	for (uint32_t i = 0; i < h->job.lowers_n; i++) {
		int fd = path_open_nolink(tree, h->names[i], O_PATH | O_DIRECTORY, 0);

		if (fd < 0) {
			return error_sys(e, -fd, "open layer %s", h->names[i]);
		}
		h->lowers[h->lowers_n++] = fd;
	}
	fd_close(&h->fds[UNPACK_FD_TREE]);
	return 0;
}

static int enter_namespace(struct helper *h, struct error *e)
{
	struct pollfd parent = { .fd = UNPACK_CONTROL_FD };
	int rc = userns_enter(h->fds[UNPACK_FD_USERNS], &h->job.map);

	if (rc < 0) {
		return error_sys(e, -rc, "become root of the user namespace");
	}
	fd_close(&h->fds[UNPACK_FD_USERNS]);
	/* A change of ids clears it. */
	rc = sys_prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (rc < 0) {
		return error_sys(e, -rc, "arm the parent-death signal");
	}
	if (poll(&parent, 1, 0) < 0 || (parent.revents & (POLLHUP | POLLERR)) != 0) {
		return error_set(e, ERRC_INTERNAL, "parent is gone");
	}
	return 0;
}

static int change_root(const struct helper *h, struct error *e)
{
	if (fchdir(h->dir_fd) < 0 || chroot(".") < 0) {
		return error_sys(e, errno, "make the layer the root directory");
	}
	return 0;
}

static int drop_privileges(struct error *e)
{
	int rc = caps_bound(HELPER_CAPS);

	rc = rc < 0 ? rc : caps_set(HELPER_CAPS);
	if (rc < 0) {
		return error_sys(e, -rc, "drop capabilities");
	}
	rc = sys_prctl(PR_SET_NO_NEW_PRIVS, 1);
	if (rc < 0) {
		return error_sys(e, -rc, "set no_new_privs");
	}
	if (!filter_insns) {
		return error_set(e, ERRC_INTERNAL, "unpack: no syscall filter was given");
	}
	rc = sys_seccomp(filter_insns, filter_n);
	return rc < 0 ? error_sys(e, -rc, "install syscall filter") : 0;
}

static int check_digest(const char *what, const struct digest *want, const struct digest *got,
		struct error *e)
{
	if (digest_eq(want, got)) {
		return 0;
	}
	return error_set(e, ERRC_INVALID, "%s digest is %.19s…, not %.19s…", what, got->text,
			want->text);
}

static int check_digests(const struct helper *h, struct stream *stream, struct error *e)
{
	struct digest blob = { "" };
	struct digest plain = { "" };

	stream_end(stream, &blob, &plain);
	if (check_digest("blob", &h->job.blob, &blob, e) < 0) {
		return -1;
	}
	return h->job.kind == UNPACK_KIND_VERIFY ? 0
						 : check_digest("diff", &h->job.diff, &plain, e);
}

static int send_message(uint16_t type, const void *data, size_t n)
{
	struct packet p = { 0 };
	int rc = 0;

	packet_init(&p, type);
	rc = packet_put(&p, data, (uint32_t)n);
	return rc < 0 ? rc : packet_send(UNPACK_CONTROL_FD, &p);
}

static int report(uint16_t type, const void *data, size_t n, struct error *e)
{
	int rc = send_message(type, data, n);

	return rc < 0 ? error_sys(e, -rc, "report") : 0;
}

static struct stream *open_stream(const struct helper *h, struct error *e)
{
	struct stream_opts opts = {
		.fd = h->fds[UNPACK_FD_BLOB],
		.copy_fd = h->fds[UNPACK_FD_COPY],
		.size = h->job.size,
		.verify = h->job.kind != UNPACK_KIND_ARCHIVE,
		.budget = h->job.budget,
		.usage = h->usage,
		.index = h->job.index,
	};

	return stream_new(&opts, e);
}

/* What cannot be read may be damaged: the digest of the whole blob says so, if it can be had. */
static int blame_blob(const struct helper *h, struct stream *stream, struct error *e)
{
	struct digest blob = { "" };
	struct digest plain = { "" };
	struct error ours = ERROR_INIT;

	if (e->code != ERRC_INVALID || h->job.kind == UNPACK_KIND_ARCHIVE ||
			stream_copy(stream, &ours) < 0) {
		return -1;
	}
	stream_end(stream, &blob, &plain);
	if (check_digest("blob", &h->job.blob, &blob, &ours) < 0) {
		*e = ours;
	}
	return -1;
}

/* The digests are compared before the parent is told of any success, the layer is published only
 * after that: what a wrong blob left behind is never seen. */
static int run_layer(struct helper *h, struct error *e)
{
	AUTO(stream) struct stream *stream = open_stream(h, e);
	struct layer_opts opts = {
		.root_fd = h->dir_fd,
		.map = &h->job.map,
		.archive = h->job.kind == UNPACK_KIND_ARCHIVE,
		.entries_max = h->job.entries_max,
		.file_max = h->job.budget,
		.usage = h->usage,
	};
	AUTO(layer) struct layer *layer = layer_new(&opts);
	struct packet p = { 0 };

	if (!stream) {
		return -1;
	}
	if (layer_unpack(layer, stream, e) < 0) {
		return blame_blob(h, stream, e);
	}
	if (!opts.archive && check_digests(h, stream, e) < 0) {
		return -1;
	}
	if (report(UNPACK_MSG_UNPACKED, layer_stats(layer), sizeof(struct layer_stats), e) < 0 ||
			receive(UNPACK_MSG_FINISH, &p, e) < 0) {
		return -1;
	}
	return layer_finish(layer, h->lowers, h->lowers_n, e);
}

static int run_verify(struct helper *h, struct error *e)
{
	AUTO(stream) struct stream *stream = open_stream(h, e);

	if (!stream || stream_copy(stream, e) < 0) {
		return -1;
	}
	return check_digests(h, stream, e);
}

static int run(struct helper *h, struct error *e)
{
	if (take_job(h, e) < 0 || limit_resources(e) < 0 || load_libraries(h, e) < 0 ||
			map_usage(h, e) < 0 || enter_namespace(h, e) < 0 || open_dirs(h, e) < 0 ||
			change_root(h, e) < 0 || drop_privileges(e) < 0) {
		return -1;
	}
	return h->job.kind == UNPACK_KIND_VERIFY ? run_verify(h, e) : run_layer(h, e);
}

int unpack_main(int argc, char **argv)
{
	static struct helper h = { .dir_fd = -1, .fds = { -1, -1, -1, -1, -1 } };
	struct error e = ERROR_INIT;

	(void)argc;
	(void)argv;
	if (run(&h, &e) < 0) {
		(void)send_message(UNPACK_MSG_ERROR, &e, sizeof(e));
		return EXIT_FAILURE;
	}
	return send_message(UNPACK_MSG_DONE, NULL, 0) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
