/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * secfilter - syscall filters as BPF instructions, ready to install.
 *
 * The default filters are compiled at build time (libseccomp knows the numbers of each machine) and
 * are part of the program; custom profiles (--seccomp FILE) load libseccomp on demand and are kept
 * in a cache that holds the profile beside its instructions.
 * Allow-list in the spirit of the container ecosystem's default profile; clone3 and io_uring give
 * ENOSYS, keyrings, nested user namespaces, TIOCSTI/TIOCLINUX (32-bit compare), unusual socket
 * families EPERM or EAFNOSUPPORT; foreign ABIs are killed.
 */
#ifndef OSBX_SECFILTER_H
#define OSBX_SECFILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>

enum secfilter_kind {
	SECFILTER_WORKLOAD,           /* every process of a sandbox but PID 1 */
	SECFILTER_WORKLOAD_ISOLATION, /* the same with --isolation: mounts and user namespaces */
	SECFILTER_INIT,               /* execd itself, after enter(); inherited by its children, so
				       * never narrower than WORKLOAD. None (an empty one) when the
				       * workload has a profile of its own or is unconfined. */
	SECFILTER_INIT_ISOLATION,     /* the same for WORKLOAD_ISOLATION */
	SECFILTER_CHILD,              /* with an INIT filter inherited: together they are WORKLOAD.
				       * A few instructions, so that it costs next to nothing. */
	SECFILTER_UNPACK,             /* osbx unpack, once its libraries are loaded */
	SECFILTER_FETCH,              /* osbx fetch, the same */
	SECFILTER_NETD,               /* osbx netd, once it listens */
	SECFILTER_KIND_COUNT,
};

struct secfilter {
	const struct sock_filter *insns;
	size_t n;
	struct sock_filter *owned; /* heap, or NULL when built in */
};

/* A built-in filter; never fails, borrowed from the program. */
void secfilter_builtin(enum secfilter_kind kind, struct secfilter *out_f) NONNULL(2);
/* Compile a profile in the container ecosystem's JSON form (defaultAction, archMap, syscalls[]
 * with names, action, args, includes/excludes by caps). caps is the capability mask of the
 * workload. ERRC_INVALID with the place in the document, ERRC_NOT_FOUND, ERRC_UNSUPPORTED when
 * libseccomp cannot be loaded. cache_dir_fd may be -1. */
int secfilter_compile_file(const char *path, uint64_t caps, int cache_dir_fd,
		struct secfilter *out_f, struct error *e) MUST_CHECK NONNULL(1, 4, 5);
void secfilter_done(struct secfilter *f);
AUTO_DEFINE(secfilter, struct secfilter, secfilter_done);

#endif
