/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include <osbx/cgroup.h>
#include <osbx/config.h>
#include <osbx/mem.h>
#include <osbx/scope.h>

#include "sandbox_internal.h"

static bool limits_are_asked(const struct cgroup_limits *l)
{
	return l->cpu_milli > 0 || l->memory_bytes > 0 || l->pids > 0;
}

/* Only where limits are asked for the configuration is needed. */
static int policy_find(const struct sandbox_request *req, bool *out_best_effort, struct error *e)
{
	AUTO(config) struct config config = { .unpack_max = 0 };

	*out_best_effort = req->best_effort > 0;
	if (req->best_effort >= 0) {
		return 0;
	}
	config_init(&config);
	if (config_load(&config, e) < 0) {
		return -1;
	}
	*out_best_effort = config.limits_best_effort;
	return 0;
}

int limits_policy(struct sandbox *s, struct error *e)
{
	return limits_are_asked(&s->req->limits) ? policy_find(s->req, &s->best_effort, e) : 0;
}

void limits_prepare(struct sandbox *s)
{
	if ((limits_are_asked(&s->req->limits) || s->req->detach) && scope_is_wanted()) {
		/* Without a scope, limits may still be possible where this process is. */
		(void)!scope_enter(&s->record.id, &s->scope_error);
	}
}

int limits_apply(struct sandbox *s, struct error *e)
{
	unsigned int missing = 0;

	if (!limits_are_asked(&s->req->limits)) {
		return 0;
	}
	if (cgroup_limit(&s->cgroup, &s->req->limits, s->best_effort, &missing, e) < 0) {
		if (s->scope_error.code != ERRC_OK) {
			/* That is what to look at first. */
			e->hint[0] = '\0';
			(void)error_hint(e, "%s%s%s", s->scope_error.text,
					s->scope_error.hint[0] ? "; " : "", s->scope_error.hint);
		}
		return -1;
	}
	for (unsigned int i = 0; i < CGROUP_LIMIT_COUNT; i++) {
		if ((missing & 1U << i) &&
				strv_add(&s->state.limits_missing,
						cgroup_limit_name((enum cgroup_limit)i)) < 0) {
			return error_set(e, ERRC_LIMIT, "limits of sandbox %s", s->record.id.text);
		}
	}
	return 0;
}

bool limits_killed(const struct sandbox *s, int status)
{
	return s->req->limits.memory_bytes > 0 && status == 128 + SIGKILL &&
	       cgroup_oom_kills(&s->cgroup) > 0;
}

int sandbox_scope_main(int argc, char **argv)
{
	return scope_main(argc, argv);
}
