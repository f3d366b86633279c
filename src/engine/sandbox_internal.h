/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_internal - a sandbox that is being made, run and removed, between its phases.
 */
#ifndef OSBX_ENGINE_SANDBOX_INTERNAL_H
#define OSBX_ENGINE_SANDBOX_INTERNAL_H

#include <osbx/cgroup.h>
#include <osbx/dirs.h>
#include <osbx/egress.h>
#include <osbx/error.h>
#include <osbx/execd_proto.h>
#include <osbx/idmap.h>
#include <osbx/image.h>
#include <osbx/keeper.h>
#include <osbx/launch.h>
#include <osbx/record.h>
#include <osbx/ref.h>
#include <osbx/request.h>
#include <osbx/sandbox.h>
#include <osbx/secfilter.h>
#include <osbx/spec.h>
#include <osbx/state.h>
#include <osbx/store.h>

struct sandbox {
	const struct sandbox_request *req;
	const struct sandbox_opts *opts;
	struct dirs dirs;
	struct ref ref;
	struct idmap map;
	struct store *store;
	int hold_fd;     /* of the store's content, until request.json names it */
	int *volume_fds; /* by index of req->volumes, O_PATH */
	struct image *img;
	struct record record;
	struct sandbox_state state;
	struct spec spec;
	struct execd_process process;
	char *token;             /* of the execution API; NULL: none was asked for */
	struct secfilter filter; /* of --seccomp FILE */
	struct cgroup cgroup;
	struct launch launch;
	struct publish *publish; /* NULL: no ports */
	struct keeper *keeper;
	struct keeper_net *net; /* of a private network */
	struct deny_hook *deny_hook;
	struct netd_denied denied; /* the last one */
	uint64_t denied_n;
	struct egress egress; /* as it begins; its policy is the request's, borrowed */
	int64_t stage_begin_us;
	int64_t stage_us[STATE_STAGE_COUNT]; /* before there is a state, and until it runs */
	bool best_effort;                    /* limits that cannot be enforced are left out */
	struct error scope_error;            /* why systemd gave no scope */
	bool was_oom;                        /* the main process was killed for want of memory */
	bool expired;
	bool is_known; /* somebody was told of it while it was pending */
	bool holds_signals;
	sigset_t mask_before; /* while signals are held */
};

/* Open the sources of all volumes, once: what was checked is what will be mounted. */
int sources_open(struct sandbox *s, struct error *e) MUST_CHECK NONNULL(1, 2);
void sources_close(struct sandbox *s);
/* A dir: image must belong to somebody who exists inside. */
int sources_check_rootfs(struct sandbox *s, struct error *e) MUST_CHECK NONNULL(1, 2);
/* The filter of --seccomp FILE; early, because compiling one may begin the program anew. */
int filter_compile(struct sandbox *s, struct error *e) MUST_CHECK NONNULL(1, 2);
/* The memfds of execd and of its configuration, into s->spec: empty, for the child to inherit. */
int programs_make(struct sandbox *s, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Fill and seal them, before the child may execute the one. */
int programs_write(struct sandbox *s, struct error *e) MUST_CHECK NONNULL(1, 2);

/* What becomes of limits that cannot be enforced; early, because reading the configuration may
 * begin the program anew, and with another id. */
int limits_policy(struct sandbox *s, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Under systemd, go where controllers are and where neither unit nor session ends the sandbox. */
void limits_prepare(struct sandbox *s) NONNULL(1);
/* Set the limits that were asked for, into s->state what is not in force of them. */
int limits_apply(struct sandbox *s, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Did the memory limit end the main process? Before the cgroup is gone. */
bool limits_killed(const struct sandbox *s, int status) NONNULL(1);

/* What a sandbox in the host's network resolves names with. */
struct host_network {
	char *hosts;
	char *resolv_conf;
};

int host_network_read(struct host_network *out_net, struct error *e) MUST_CHECK NONNULL(1, 2);
void host_network_done(struct host_network *net);
AUTO_DEFINE(host_network, struct host_network, host_network_done);

#endif
