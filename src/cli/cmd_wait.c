/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>

#include <osbx/fd.h>

#include "cli.h"
#include "sandboxes.h"

static const struct args_option wait_options[] = { { .name = NULL } };

static int wait_for_end(
		const struct dirs *dirs, const struct id *id, int *out_status, struct error *e)
{
	autoclose int sock = ctl_connect(dirs, id, e);
	struct ctl_ended ended;
	struct packet p;

	if (sock < 0 || ctl_send(sock, CTL_MSG_WAIT, NULL, 0, e) < 0 ||
			ctl_expect(sock, CTL_MSG_ENDED, &p, -1, e) < 0) {
		return -1;
	}
	if (p.len == sizeof(ended)) {
		memcpy(&ended, p.payload, sizeof(ended));
		*out_status = ended.status;
	}
	packet_done(&p);
	return 0;
}

/* What its record says of the end. */
static int status_of(const struct sandbox_info *info, int *out_status, struct error *e)
{
	const struct sandbox_state *s = &info->state;

	if (s->exit_status >= 0) {
		*out_status = s->exit_status;
		return 0;
	}
	return error_set(e, ERRC_UNAVAILABLE, "sandbox %s: %s", s->id.text,
			s->message ? s->message : "it ended without an exit status");
}

static int wait_one(const struct dirs *dirs, const struct sandbox_info *info, void *ctx,
		struct error *e)
{
	AUTO(sandbox_info) struct sandbox_info now = { .is_kept = false };

	if (state_is_final(&info->state)) {
		return status_of(info, ctx, e);
	}
	if (wait_for_end(dirs, &info->state.id, ctx, e) == 0) {
		return 0;
	}
	if (e->code != ERRC_UNAVAILABLE && e->code != ERRC_CONFLICT) {
		return -1;
	}
	/* It ended just now, or its keeper was lost. */
	error_clear(e);
	return sandbox_find(dirs, info->state.id.text, &now, e) < 0 ? -1 : status_of(&now, ctx, e);
}

static int wait_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	char **operands = NULL;
	int none = 0;
	int r = args_parse(&cmd_wait, argc, argv, &none, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	int status = 128 + SIGKILL;
	const struct each_opts opts = { .run = wait_one, .ctx = &status, .quiet = true };

	r = sandboxes_each(operands, &opts);
	return r ? r : status;
}

const struct args_command cmd_wait = {
	.name = "wait",
	.synopsis = "SANDBOX",
	.summary = "wait for the end of a sandbox; the exit status is its main process's",
	.options = wait_options,
	.operands_min = 1,
	.operands_max = 1,
	.run = wait_run,
};
