/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child half of a launch: what the new process does between its birth and execd, as a table of
 * steps. It is a copy of the keeper's memory, single-threaded, and never returns to the keeper's
 * code.
 */
#ifndef OSBX_RUNTIME_INIT_INTERNAL_H
#define OSBX_RUNTIME_INIT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/initproto.h>
#include <osbx/mountplan.h>
#include <osbx/spec.h>

/* Trees of a spec with a fixed place. */
#define SPEC_LAYERS_TREE  0U
#define SPEC_SANDBOX_TREE 1U

struct init_ctx {
	const struct spec *spec;
	const struct mountplan *plan;
	int64_t deadline_ms;
	enum init_stage stage;
	bool unshare_cgroup; /* was not born in its cgroup, but moved there */
	int sock;            /* handshake channel */
	int control_fd;      /* of execd */
	int staging_fd;      /* root of a private tmpfs */
	int sys_fd;          /* network host: detached clone of the host's /sys */
	int root_fd;         /* root of the overlay */
	int upper_fd;
	int work_fd;
	int *tree_fds;  /* by index of spec.trees */
	int *lower_fds; /* by index of spec.lowers */
};

struct init_step {
	const char *name; /* as errors say it */
	int (*run)(struct init_ctx *c, struct error *e);
};

extern const struct init_step init_steps[];
extern const size_t init_steps_n;

/* Run all steps; on failure tell the parent and end. */
NORETURN void init_run(struct init_ctx *c) NONNULL(1);

int init_step_namespaces(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_private(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_hostname(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_session(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_maps(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_sources(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_ids(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_parent(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_cgroup(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_staging(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_trees(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_root(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_mounts(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_go(struct init_ctx *c, struct error *e) MUST_CHECK;
int init_step_execd(struct init_ctx *c, struct error *e) MUST_CHECK;

#endif
