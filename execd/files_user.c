/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <osbx/caps.h>
#include <osbx/sys.h>

#include "api.h"
#include "child.h"
#include "files.h"
#include "shown.h"

#define ID_LAST     4294967294ULL /* 4294967295 is "no id" to the kernel */
#define ID_TEXT_MAX 16

/* An id of the path's prefix. */
static int id_parse(const struct files *f, size_t param, uint32_t *out_id, struct error *e)
{
	autofree char *text = http_param(f->rq, param);
	uint64_t id = 0;

	if (!text || str_to_u64(text, ID_LAST, &id) < 0) {
		return error_set(e, ERRC_INVALID, "%s \"%s\" is not a number from 0 to %llu",
				param == 0 ? "user id" : "group id", text ? shown(text).text : "",
				ID_LAST);
	}
	if (id >= f->ids_max) {
		return error_set(e, ERRC_INVALID, "%s %llu: this sandbox has the ids 0 to %u only",
				param == 0 ? "user id" : "group id", (unsigned long long)id,
				f->ids_max - 1);
	}
	*out_id = (uint32_t)id;
	return 0;
}

/* The groups of an account are the ones that list it and its own one. */
static int account_groups(struct passwd_user *u, uint32_t gid, struct error *e)
{
	if (u->is_listed) {
		if (u->groups_n == ARRAY_SIZE(u->groups)) {
			return error_set(e, ERRC_LIMIT, "the user is in more than %d groups",
					LIMIT_GROUPS);
		}
		u->groups[u->groups_n++] = u->gid;
	}
	u->gid = gid;
	return 0;
}

/* Act as the account of the prefix. */
static int take_prefix(struct files *f, const struct passwd_query *main, struct error *e)
{
	const struct strv none = STRV_INIT;
	struct passwd_query q = *main;
	uint32_t uid = 0;
	uint32_t gid = 0;
	char text[ID_TEXT_MAX];

	if (id_parse(f, 0, &uid, e) < 0 || id_parse(f, 1, &gid, e) < 0) {
		f->invalid_code = API_INVALID_QUERY;
		return -1;
	}
	/* Whoever is in the sandbox reaches us there: nobody becomes another user through PID 1. */
	if (api_is_inside(f->rq) && (uid != f->user.uid || gid != f->user.gid)) {
		return error_set(e, ERRC_DENIED,
				"from inside the sandbox files are served as user %u:%u only",
				f->user.uid, f->user.gid);
	}
	passwd_user_done(&f->user);
	(void)snprintf(text, sizeof(text), "%u", uid);
	q.user = text;
	q.groups = &none;
	f->cwd = "/";
	f->env = NULL;
	return passwd_lookup(&q, &f->names.files, &f->user, e) < 0
			       ? -1
			       : account_groups(&f->user, gid, e);
}

static int find_user(struct files *f, const struct execd *x, const struct execd_process *p,
		struct error *e)
{
	struct passwd_query q = {
		.user = p->user ? p->user : "",
		.groups = &p->groups,
		.ids_max = x->config.ids_max,
		.has_setgroups = x->config.has_setgroups != 0,
	};

	f->ids_max = x->config.ids_max;
	f->cwd = p->cwd && p->cwd[0] == '/' ? p->cwd : "/";
	f->env = &p->env;
	if (passwd_lookup(&q, &f->names.files, &f->user, e) < 0) {
		/* Not the client's mistake. */
		e->code = ERRC_SYSTEM;
		return -1;
	}
	return f->rq->params[0].p ? take_prefix(f, &q, e) : 0;
}

/* As child_run does for processes: the bounding set needs CAP_SETPCAP, hence first. */
static int set_user(const struct passwd_user *u, const struct execd *x, uint64_t caps)
{
	int r = (x->caps & ~caps) != 0 ? caps_bound(caps) : 0;

	if (r == 0 && x->config.has_setgroups) {
		r = sys_setgroups(u->groups_n, u->groups);
	}
	if (r == 0) {
		r = sys_setresgid(u->gid);
	}
	if (r == 0) {
		r = sys_setresuid(u->uid);
	}
	if (r == 0) {
		r = caps_set(u->uid == 0 ? caps : 0);
	}
	/* A change of ids may have set it, and our memory is a copy of PID 1's. */
	return r < 0 ? r : sys_prctl(PR_SET_DUMPABLE, 0);
}

int files_become(struct files *f, struct error *e)
{
	const struct execd *x = api_execd(f->rq);
	const struct execd_process *p = f->main;

	if (!p) {
		return error_set(e, ERRC_UNAVAILABLE, "the sandbox is still being started");
	}
	child_victim(f->root_fd);
	passwd_book_load(f->root_fd, &f->names);
	if (find_user(f, x, p, e) < 0) {
		return -1;
	}
	int r = set_user(&f->user, x, p->caps & x->caps);

	(void)umask(022);
	return r < 0 ? error_sys(e, -r, "become user %u:%u", f->user.uid, f->user.gid) : 0;
}
