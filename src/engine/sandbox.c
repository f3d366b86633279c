/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * sandbox_run goes through phases[] and then through sandbox_clean, whatever happened. Locks are
 * taken in the order of architecture: the store's (shared, while the image is looked up and until
 * request.json names it) before the sandbox's own.
 *
 * What the child does not wait for is done on its way (struct launch_ops), on the other core: what
 * it will execute is written while it mounts, request.json and the console's pipes while execd
 * starts.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/cgroup.h>
#include <osbx/clock.h>
#include <osbx/config.h>
#include <osbx/events.h>
#include <osbx/fd.h>
#include <osbx/host.h>
#include <osbx/launch.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/plan.h>
#include <osbx/program.h>
#include <osbx/registry.h>
#include <osbx/sandbox.h>
#include <osbx/str.h>

#include "deny_hook.h"
#include "publish.h"
#include "sandbox_internal.h"

/* The time since the last stage's end was for this one. */
static void stage_end(struct sandbox *s, enum state_stage stage)
{
	int64_t now_us = clock_boot_us();

	s->stage_us[stage] += now_us - s->stage_begin_us;
	s->stage_begin_us = now_us;
}

static int phase_dirs(struct sandbox *s, struct error *e)
{
	/* Mount points that are made in the sandbox must not depend on the caller's. */
	(void)umask(022);
	return dirs_open(&s->dirs, e);
}

static int phase_store(struct sandbox *s, struct error *e)
{
	if (ref_parse(s->req->image, &s->ref, e) < 0 || idmap_choose(&s->map, e) < 0) {
		return -1;
	}
	s->store = store_open(s->dirs.root, e);
	if (!s->store || store_settle_mode(s->store, &s->map, e) < 0) {
		return -1;
	}
	s->hold_fd = store_hold(s->store, LOCK_MODE_SHARED, e);
	return s->hold_fd < 0 ? -1 : 0;
}

/* A pull takes long: meanwhile the sandbox is to be found. */
static int pending_record(struct sandbox *s, struct error *e)
{
	if (!s->opts->on_pending) {
		return 0;
	}
	/* A pull needs libraries: what begins anew then would make a second record, and tell of it.
	 */
	if (program_full(e) < 0 || record_make(&s->dirs, &s->record, s->req->name, e) < 0) {
		return -1;
	}
	s->state.message = mem_printf("pulling %s", s->req->image);
	if (record_save(&s->record, s->req, NULL, &s->map, e) < 0 ||
			state_save(&s->state, s->record.live_fd, false, e) < 0) {
		return -1;
	}
	/* Clients ask for the token while it is pending. */
	if (s->req->network == SPEC_NETWORK_PRIVATE &&
			egress_save(&s->egress, s->record.live_fd, e) < 0) {
		return -1;
	}
	return s->opts->on_pending(s->opts->ctx, &s->record.id, e);
}

/* Only here the configuration is needed: a start of what is there does not wait for it. */
static int image_fetch(struct sandbox *s, const struct image_opts *image, struct error *e)
{
	AUTO(config) struct config config = { .unpack_max = 0 };
	AUTO(pull_result) struct pull_result result = { .image = NULL };
	struct pull_opts opts = {
		.image = *image,
		.config = &config.registries,
		.policy = s->req->pull,
		.tls_verify = s->req->tls_verify,
		.credential = s->opts->credential,
	};

	config_init(&config);
	if (config_load(&config, e) < 0) {
		return -1;
	}
	opts.image.unpack_max = image->unpack_max ? image->unpack_max : config.unpack_max;
	if (pending_record(s, e) < 0) {
		return -1;
	}
	if (image_pull(s->store, &s->ref, &opts, &result, e) < 0) {
		return -1;
	}
	s->img = TAKE_PTR(result.image);
	return 0;
}

static int image_get(struct sandbox *s, struct error *e)
{
	const struct image_opts opts = {
		.map = &s->map,
		.platform = s->req->platform,
		.unpack_max = s->req->unpack_max,
		.progress = s->opts->progress,
	};
	bool is_name = s->ref.transport == REF_NAME;

	if (!is_name || s->req->pull != PULL_ALWAYS) {
		s->img = image_open(s->store, &s->ref, &opts, e);
	}
	if (s->img || (e->code != ERRC_OK && !(is_name && image_may_be_pulled(e)))) {
		return s->img ? 0 : -1;
	}
	error_clear(e);
	return image_fetch(s, &opts, e);
}

static int phase_image(struct sandbox *s, struct error *e)
{
	int r = image_get(s, e);

	if (s->opts->on_image) {
		s->opts->on_image(s->opts->ctx);
	}
	if (r < 0) {
		e->api_code = SANDBOX_ERROR_IMAGE;
		return -1;
	}
	if (s->img->is_host) {
		return host_skeleton(s->dirs.root_fd, &s->map, e);
	}
	return s->img->layers_n > 0 ? host_points(s->dirs.root_fd, &s->map, e) : 0;
}

static int phase_name(struct sandbox *s, struct error *e)
{
	record_init(&s->dirs, &s->record);
	state_init(&s->state, &s->record.id, s->req->name, s->req->image);
	s->state.retained = s->req->detach && !s->req->remove;
	s->state.kept = s->req->keep;
	s->state.renew_ms = s->req->renew_ms;
	s->state.network = s->req->network;
	s->egress.policy = s->req->policy;
	s->egress.binds_names = !s->req->any_name;
	egress_set_token(&s->egress);
	s->state.keeper_pid = getpid();
	return strv_add_all(&s->state.labels, strv_get(&s->req->labels)) < 0
			       ? error_set(e, ERRC_LIMIT, "more than %d labels", LIMIT_LABELS)
			       : 0;
}

static int phase_ports(struct sandbox *s, struct error *e)
{
	if (s->req->ports_n == 0) {
		return 0;
	}
	s->publish = publish_new(s->req->ports, s->req->ports_n, &s->state.ports, e);
	return s->publish ? 0 : -1;
}

/* What the user gives by the environment is for PID 1; no process of the sandbox may see it. */
static int token_take(struct sandbox *s, struct error *e)
{
	if (!strv_env_find(&s->req->env, EXECD_TOKEN_ENV)) {
		return 0;
	}
	s->token = strv_env_remove(&s->process.env, EXECD_TOKEN_ENV);
	return s->token && strlen(s->token) > EXECD_TOKEN_MAX
			       ? error_set(e, ERRC_LIMIT, EXECD_TOKEN_ENV " of more than %d bytes",
						 EXECD_TOKEN_MAX)
			       : 0;
}

static int phase_plan(struct sandbox *s, struct error *e)
{
	autofree char *layers =
			mem_printf("%s/layers/%s", s->dirs.root, idmap_mode_name(s->map.mode));
	struct plan_input in = {
		.req = s->req,
		.img = s->img,
		.id = &s->record.id,
		.map = &s->map,
		.layers = layers,
		.record = s->record.path,
		.volume_fds = s->volume_fds,
		.term = getenv("TERM"),
	};
	AUTO(host_network) struct host_network net = { .hosts = NULL };
	autofree char *resolv_conf = NULL;

	if (s->req->network == SPEC_NETWORK_HOST) {
		if (host_network_read(&net, e) < 0) {
			return -1;
		}
		in.hosts = net.hosts;
		in.resolv_conf = net.resolv_conf;
	} else if (s->req->network == SPEC_NETWORK_PRIVATE) {
		resolv_conf = plan_resolv_conf(s->req, &s->record.id);
		in.resolv_conf = resolv_conf;
	}
	if (plan_process(&in, &s->process, e) < 0 || token_take(s, e) < 0 ||
			plan_spec(&in, &s->spec, e) < 0 ||
			(s->img->is_host && host_mounts(&s->spec, e) < 0) ||
			plan_mounts(&in, &s->spec, e) < 0) {
		return -1;
	}
	return 0;
}

/* The overlay's root looks like the one of its uppermost lower directory. */
static int root_copy(const struct sandbox *s, struct error *e)
{
	const struct spec_lower *top = &s->spec.lowers[s->spec.lowers_n - 1];
	autofree char *path = mem_printf("%s/%s", s->spec.trees[top->tree].path, top->path);
	autoclose int fd = fd_open(path, O_PATH | O_DIRECTORY, 0);

	return fd < 0 ? error_sys(e, -fd, "root of the image %s", s->req->image)
		      : record_set_root(&s->record, fd, e);
}

/* While helpers write the id maps. */
static int launch_on_clone(void *ctx, struct error *e)
{
	struct sandbox *s = ctx;

	/* One that was pending has its record already. */
	if ((s->record.lock_fd < 0 && record_make(&s->dirs, &s->record, s->req->name, e) < 0) ||
			(s->map.mode == IDMAP_MAPPED &&
					record_take_ids(&s->dirs, &s->record, &s->map, e) < 0) ||
			record_give(&s->record, &s->map, e) < 0) {
		return -1;
	}
	s->spec.map = s->map;
	return root_copy(s, e);
}

/* While PID 1 and its namespaces end. */
static void main_on_exited(void *ctx)
{
	const struct sandbox *s = ctx;

	if (!s->req->keep && !s->state.retained) {
		record_begin_remove(&s->record);
	}
}

/* The last state, in memory. */
static void state_close(struct sandbox *s, const struct error *failure)
{
	char text[ERROR_TEXT_MAX + 128];

	if (state_is_final(&s->state)) {
		return;
	}
	if (failure) {
		error_render(failure, text, sizeof(text));
		state_end(&s->state, SANDBOX_FAILED, STATE_REASON_ERROR, text);
	} else {
		state_end(&s->state, SANDBOX_TERMINATED,
				s->was_oom ? STATE_REASON_OOM : keeper_reason(s->keeper), NULL);
	}
	events_add(s->dirs.runtime_fd, EVENT_END, &s->state);
}

static void status_take(struct sandbox *s, int status)
{
	s->state.exit_status = status;
	s->was_oom = limits_killed(s, status);
	s->state.oom_killed = cgroup_oom_kills(&s->cgroup) > 0;
}

/* While PID 1 alone is still ending: where directories are freed slowly that takes as long as the
 * removal. */
static void main_on_quiet(void *ctx)
{
	struct sandbox *s = ctx;

	if (!s->req->keep) {
		record_clear_files(&s->dirs, &s->record);
	}
	/* A record that stays is to say it before everybody is told. */
	if (!s->req->keep && !s->state.retained) {
		status_take(s, keeper_status(s->keeper));
		state_close(s, NULL);
	}
}

static int state_run(struct sandbox *s, struct error *e)
{
	/* A stop may have come before. */
	if (s->state.code == SANDBOX_PENDING) {
		free(TAKE_PTR(s->state.message));
		state_go(&s->state, SANDBOX_RUNNING);
	}
	stage_end(s, STATE_STAGE_START);
	memcpy(s->state.stage_us, s->stage_us, sizeof(s->stage_us));
	/* Here, and not with the pid: the main process is being started meanwhile. */
	s->state.pid_start = state_pid_start(s->state.pid);
	s->state.expires_ms = s->req->timeout_ms > 0 ? s->state.started_ms + s->req->timeout_ms : 0;
	if (state_save(&s->state, s->record.live_fd, false, e) < 0) {
		return -1;
	}
	events_add(s->dirs.runtime_fd, EVENT_START, &s->state);
	return 0;
}

/* Detached: whoever asked for the sandbox waits for this. */
static int keeper_on_started(void *ctx, struct error *e)
{
	struct sandbox *s = ctx;

	if (!s->req->detach) {
		return 0;
	}
	if (state_run(s, e) < 0) {
		return -1;
	}
	int r = s->opts->on_running ? s->opts->on_running(s->opts->ctx, &s->record.id, e) : 0;

	/* Nobody knows of it. */
	s->state.retained &= r == 0;
	return r;
}

/* While netd starts, the child goes on. */
static int launch_attach_net(void *ctx, int userns_fd, int netns_fd, struct error *e)
{
	const struct sandbox *s = ctx;

	return s->net ? keeper_net_begin(s->net, s->record.live_fd, userns_fd, netns_fd, e) : 0;
}

/* While the child mounts. */
static int launch_record_pid(void *ctx, pid_t pid, struct error *e)
{
	struct sandbox *s = ctx;

	if (programs_write(s, e) < 0) {
		return -1;
	}
	s->state.pid = pid;
	return state_save(&s->state, s->record.live_fd, false, e);
}

/* While execd starts. */
static int launch_before_up(void *ctx, int control_fd, struct error *e)
{
	struct sandbox *s = ctx;
	const struct keeper_opts opts = {
		.detached = s->req->detach,
		.interactive = s->req->interactive,
		.tty = s->req->tty,
		.own_network = s->req->network != SPEC_NETWORK_HOST,
		.net = s->net,
		.in_fd = s->opts->in_fd,
		.out_fd = s->opts->out_fd,
		.err_fd = s->opts->err_fd,
		.stop_signal = plan_stop_signal(s->img->config.stop_signal),
		.process = &s->process,
		.map = &s->map,
		.cgroup = &s->cgroup,
		.on_exited = main_on_exited,
		.on_quiet = main_on_quiet,
		.state = &s->state,
		.live_fd = s->record.live_fd,
		.runtime_fd = s->dirs.runtime_fd,
		.publish = s->publish,
		.on_started = keeper_on_started,
		.ctx = s,
	};

	if (record_save(&s->record, s->req, s->img, &s->map, e) < 0) {
		return -1;
	}
	/* From here on the record keeps the image. */
	fd_close(&s->hold_fd);
	s->keeper = keeper_new(&opts, e);
	if (!s->keeper || (s->net && keeper_net_wait(s->net, e) < 0)) {
		return -1;
	}
	return keeper_queue(s->keeper, control_fd, e);
}

static void net_on_denied(void *ctx, const struct netd_denied *denied)
{
	struct sandbox *s = ctx;

	s->denied = *denied;
	if (s->deny_hook) {
		deny_hook_tell(s->deny_hook, denied);
	}
}

/* Early: it starts beside the sandbox. */
static int net_prepare(struct sandbox *s, struct error *e)
{
	const struct keeper_net_opts opts = {
		.policy = &s->egress.policy,
		.binds_names = s->egress.binds_names,
		.token = s->egress.token,
		.on_denied = net_on_denied,
		.ctx = s,
	};

	if (s->req->network != SPEC_NETWORK_PRIVATE) {
		return 0;
	}
	if (s->req->deny_webhook) {
		s->deny_hook = deny_hook_new(s->req->deny_webhook, &s->record.id);
	}
	s->net = keeper_net_new(&opts, e);
	return s->net ? 0 : -1;
}

static int phase_launch(struct sandbox *s, struct error *e)
{
	int r = keeper_hold_signals(&s->mask_before);

	if (r < 0) {
		return error_sys(e, -r, "block signals");
	}
	s->holds_signals = true;
	const struct launch_ops ops = {
		.on_clone = launch_on_clone,
		.attach_net = launch_attach_net,
		.record_pid = launch_record_pid,
		.before_up = launch_before_up,
		.ctx = s,
	};

	limits_prepare(s);
	/* netd is born where this process stands then: no control group with controllers holds one.
	 */
	if (programs_make(s, e) < 0 || cgroup_start(&s->record.id, &s->cgroup, e) < 0 ||
			limits_apply(s, e) < 0 || net_prepare(s, e) < 0) {
		return -1;
	}
	s->state.cgroup = cgroup_path(&s->cgroup);
	s->spec.cgroup_fd = s->cgroup.dir_fd;
	return launch_start(&s->spec, &ops, &s->launch, e);
}

static int phase_run(struct sandbox *s, struct error *e)
{
	int status = 0;

	if (keeper_start(s->keeper, &s->launch, e) < 0) {
		return -1;
	}
	if ((!s->req->detach && state_run(s, e) < 0) || keeper_run(s->keeper, &status, e) < 0) {
		return -1;
	}
	status_take(s, status);
	return 0;
}

struct phase {
	const char *name; /* as the state's reason says it */
	int (*run)(struct sandbox *s, struct error *e);
	enum state_stage stage; /* that its time is counted for */
};

static const struct phase phases[] = {
	{ "directories", phase_dirs, STATE_STAGE_PLAN },
	{ "limits", limits_policy, STATE_STAGE_PLAN },
	{ "filter", filter_compile, STATE_STAGE_PLAN },
	{ "volumes", sources_open, STATE_STAGE_PLAN },
	{ "store", phase_store, STATE_STAGE_IMAGE },
	{ "name", phase_name, STATE_STAGE_PLAN },
	{ "ports", phase_ports, STATE_STAGE_PLAN },
	{ "image", phase_image, STATE_STAGE_IMAGE },
	{ "sources", sources_check_rootfs, STATE_STAGE_PLAN },
	{ "plan", phase_plan, STATE_STAGE_PLAN },
	{ "launch", phase_launch, STATE_STAGE_LAUNCH },
	{ "run", phase_run, STATE_STAGE_START },
};

static bool is_expired(const struct sandbox *s)
{
	return s->keeper && str_eq(keeper_reason(s->keeper), STATE_REASON_EXPIRED);
}

/* A sandbox that never ran has nothing worth keeping. */
static bool is_kept(const struct sandbox *s)
{
	return s->req->keep && s->state.started_ms != 0;
}

/* Does the record stay until somebody removes it? */
static bool is_retained(const struct sandbox *s)
{
	return s->state.retained && (s->state.started_ms != 0 || s->is_known) && !is_expired(s);
}

/* The last state, for those who look at a sandbox that has ended. */
static int state_finish(const struct sandbox *s, struct error *e)
{
	if (is_kept(s) && state_save(&s->state, s->record.dir_fd, true, e) < 0) {
		return -1;
	}
	return is_retained(s) ? state_save(&s->state, s->record.live_fd, false, e) : 0;
}

/* Files, name and record, as far as they are not to stay. */
static int record_finish(struct sandbox *s, int userns_fd, struct error *e)
{
	unsigned int keep = (is_kept(s) ? RECORD_KEEP_FILES : 0) |
			    (is_retained(s) ? RECORD_KEEP_LIVE : 0);

	if (keep != 0 && state_finish(s, e) < 0) {
		return -1;
	}
	return record_remove(&s->dirs, &s->record, &s->map, userns_fd, keep, e);
}

/* Everything that is not memory. The first error is told, the rest goes on. */
static int sandbox_clean(struct sandbox *s, const struct error *failure, struct error *e)
{
	int userns_fd = TAKE_FD(s->launch.userns_fd);
	int r = 0;

	launch_done(&s->launch);
	cgroup_stop(&s->cgroup);
	if (s->record.lock_fd >= 0) {
		/* What never ran is no event: its failure is told to whoever asked for it. */
		s->is_known = s->opts->is_known && s->opts->is_known(s->opts->ctx);
		if (s->state.started_ms != 0 || s->is_known) {
			state_close(s, failure);
		}
		r = record_finish(s, userns_fd, e);
		/* Whoever waits for the end may go on with what is left. */
		fd_close(&s->record.lock_fd);
		sandbox_glance(&s->dirs, &s->map, record_number(&s->record));
	}
	fd_close(&userns_fd);
	if (s->keeper) {
		keeper_end(s->keeper);
	}
	/* Last: until here no signal ends this process half-way. */
	s->expired = is_expired(s);
	keeper_free(TAKE_PTR(s->keeper));
	s->denied_n = s->net ? keeper_net_denied(s->net) : 0;
	keeper_net_free(TAKE_PTR(s->net));
	deny_hook_free(TAKE_PTR(s->deny_hook));
	if (s->holds_signals) {
		(void)sigprocmask(SIG_SETMASK, &s->mask_before, NULL);
	}
	return r;
}

static void sandbox_done(struct sandbox *s)
{
	publish_free(s->publish);
	sources_close(s);
	secfilter_done(&s->filter);
	fd_close(&s->spec.execd_fd);
	fd_close(&s->spec.config_fd);
	spec_done(&s->spec);
	execd_process_done(&s->process);
	if (s->token) {
		explicit_bzero(s->token, strlen(s->token));
	}
	free(s->token);
	explicit_bzero(s->egress.token, sizeof(s->egress.token));
	state_done(&s->state);
	record_done(&s->record);
	image_free(s->img);
	fd_close(&s->hold_fd);
	store_free(s->store);
	ref_done(&s->ref);
	dirs_done(&s->dirs);
}
AUTO_DEFINE(sandbox, struct sandbox, sandbox_done);

void sandbox_end_done(struct sandbox_end *end)
{
	if (end) {
		free(TAKE_PTR(end->kept));
		free(TAKE_PTR(end->denied_last));
	}
}

int sandbox_run(const struct sandbox_request *req, const struct sandbox_opts *opts,
		struct sandbox_end *out_end, struct error *e)
{
	AUTO(sandbox)
	struct sandbox s = {
		.req = req,
		.opts = opts,
		.dirs = DIRS_INIT,
		.ref = REF_INIT,
		.hold_fd = -1,
		.record = RECORD_INIT,
		.cgroup = CGROUP_INIT,
		.launch = LAUNCH_INIT,
		.stage_begin_us = clock_boot_us(),
	};
	struct error second = ERROR_INIT;
	int r = 0;

	spec_init(&s.spec);
	for (size_t i = 0; i < ARRAY_SIZE(phases) && r == 0; i++) {
		if (opts->on_phase) {
			opts->on_phase(opts->ctx, phases[i].name);
		}
		r = phases[i].run(&s, e);
		stage_end(&s, phases[i].stage);
	}
	int cleaned = sandbox_clean(&s, r < 0 ? e : NULL, &second);

	if (r < 0) {
		return -1;
	}
	if (cleaned < 0) {
		*e = second;
		return -1;
	}
	out_end->status = s.state.exit_status;
	out_end->expired = s.expired;
	out_end->oom = s.was_oom;
	out_end->denied = s.denied_n;
	out_end->denied_last = s.denied_n == 0      ? NULL
			       : s.denied.port == 0 ? mem_strdup(s.denied.what)
						    : mem_printf("%s port %u", s.denied.what,
								      s.denied.port);
	out_end->kept = is_kept(&s) ? mem_strdup(s.record.path) : NULL;
	return 0;
}
