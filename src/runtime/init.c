/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/initproto.h>
#include <osbx/mem.h>

#include "init_internal.h"

/*
 * The order of what matters to security, on one screen. "private mounts" before any mount. Up to
 * "ids" the process has the capabilities of its new namespaces and still the ids of the keeper: so
 * it reaches what the keeper's user reaches ("sources"). "id maps" waits for the maps, the
 * directories and the trees; "mounts", before /sys, for the network namespace.
 * "parent" behind the last change of credentials, which would undo it. The pid is on record before
 * "go"; nothing of the guest runs before "execd".
 */
const struct init_step init_steps[] = {
	{ "namespaces", init_step_namespaces },
	{ "private mounts", init_step_private },
	{ "host name", init_step_hostname },
	{ "session", init_step_session },
	{ "id maps", init_step_maps },
	{ "sources", init_step_sources },
	{ "ids", init_step_ids },
	{ "parent", init_step_parent },
	{ "cgroup", init_step_cgroup },
	{ "staging", init_step_staging },
	{ "trees", init_step_trees },
	{ "root", init_step_root },
	{ "mounts", init_step_mounts },
	{ "go", init_step_go },
	{ "execd", init_step_execd },
};
const size_t init_steps_n = ARRAY_SIZE(init_steps);

static int *descriptors_new(size_t n)
{
	int *fds = mem_array(n + 1, sizeof(*fds));

	for (size_t i = 0; i < n; i++) {
		fds[i] = -1;
	}
	return fds;
}

void init_run(struct init_ctx *c)
{
	struct error e = ERROR_INIT;

	/* Modes are meant as they are written. */
	(void)umask(0);
	c->tree_fds = descriptors_new(c->spec->trees_n);
	c->lower_fds = descriptors_new(c->spec->lowers_n);
	for (size_t i = 0; i < init_steps_n; i++) {
		if (init_steps[i].run(c, &e) < 0) {
			/* What the user can mend reads better without our word for it. */
			if (e.code == ERRC_SYSTEM || e.code == ERRC_INTERNAL) {
				(void)error_wrap(&e, "%s", init_steps[i].name);
			}
			/* If nobody is there to be told, the end of the channel tells it. */
			int r = init_send_error(c->sock, &e);

			_exit(r < 0 ? 1 : error_exit_status(e.code));
		}
	}
	/* The last step does not return when it succeeds. */
	assert(!"no step executed execd");
	_exit(1);
}
