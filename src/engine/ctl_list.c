/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A sandbox is one directory below RUNTIME; one that was kept and has ended is one below ROOT with
 * its last state in it. After a restart of the machine RUNTIME is empty: what was to be kept has
 * its request.json still, and is shown as Failed.
 *
 * A state that cannot be read is that of a sandbox which is being made or removed: it is not there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/json.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/record.h>
#include <osbx/request.h>
#include <osbx/str.h>

#include "dead.h"

#define REQUEST_BYTES_MAX (8U << 20)
#define PREFIX_MIN        4

void sandbox_info_done(struct sandbox_info *info)
{
	if (info) {
		state_done(&info->state);
	}
}

void sandbox_list_done(struct sandbox_list *l)
{
	if (!l) {
		return;
	}
	for (size_t i = 0; i < l->n; i++) {
		sandbox_info_done(&l->v[i]);
	}
	free(TAKE_PTR(l->v));
	l->n = 0;
}

/* What request.json says of a sandbox of which nothing else is left. */
static int info_from_request(int dir_fd, const struct id *id, struct sandbox_info *out)
{
	AUTO(buf) struct buf text = BUF_INIT(REQUEST_BYTES_MAX);
	AUTO(request) struct sandbox_request req = { .volumes_n = 0 };
	struct error e = ERROR_INIT;
	uint64_t created_ms = 0;

	if (file_read_at(dir_fd, "request.json", &text) < 0) {
		return -ENOENT;
	}
	AUTO(json) struct json *root = json_parse(buf_span(&text), &e);

	if (!root || request_parse(json_get(root, "request"), &req, &e) < 0 || !req.keep) {
		return -ENOENT;
	}
	state_init(&out->state, id, req.name, req.image);
	state_end(&out->state, SANDBOX_FAILED, STATE_REASON_LOST, "the machine was restarted");
	out->state.kept = true;
	out->state.labels = TAKE(req.labels, (struct strv)STRV_INIT);
	if (json_u64(json_get(root, "createdMs"), INT64_MAX, &created_ms) == 0) {
		out->state.created_ms = (int64_t)created_ms;
	}
	out->state.ended_ms = 0;
	return 0;
}

static bool has_live(const struct dirs *dirs, const struct id *id)
{
	autofree char *path = mem_printf("sandboxes/%s", id->text);

	return faccessat(dirs->runtime_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* 0 or -ENOENT. */
static int info_read(const struct dirs *dirs, const struct id *id, struct sandbox_info *out)
{
	autofree char *path = mem_printf("sandboxes/%s", id->text);
	autoclose int live_fd =
			fd_open_at(dirs->runtime_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct error e = ERROR_INIT;

	*out = (struct sandbox_info){ .is_kept = false };
	if (live_fd >= 0) {
		int r = state_load(live_fd, &out->state, &e);

		out->is_kept = r == 0 && out->state.kept;
		return r < 0 ? -ENOENT : 0;
	}
	autoclose int dir_fd =
			fd_open_at(dirs->root_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	out->is_kept = true;
	if (dir_fd < 0) {
		return -ENOENT;
	}
	return state_load(dir_fd, &out->state, &e) == 0 ? 0 : info_from_request(dir_fd, id, out);
}

/* Settle, then read. What cannot be cleared away now is still shown. */
static bool info_get(const struct dirs *dirs, const struct id *id, struct sandbox_info *out)
{
	struct error e = ERROR_INIT;
	char text[ERROR_TEXT_MAX];

	if (dead_settle(dirs, id, &e) < 0) {
		error_render(&e, text, sizeof(text));
		log_debug("sandbox %s: %s", id->text, text);
	}
	return info_read(dirs, id, out) == 0;
}

static void list_add(struct sandbox_list *l, struct sandbox_info *info)
{
	/* Doubling: 1, 2, 4, … */
	if ((l->n & (l->n - 1)) == 0) {
		l->v = mem_resize(l->v, l->n, l->n > 0 ? 2 * l->n : 1, sizeof(*l->v));
	}
	l->v[l->n++] = TAKE(*info, (struct sandbox_info){ .is_kept = false });
}

struct walk {
	const struct dirs *dirs;
	struct sandbox_list *list;
	bool all;
	bool in_root;
};

static void entry_add(const struct walk *w, const struct id *id)
{
	AUTO(sandbox_info) struct sandbox_info info = { .is_kept = false };

	/* What has a live directory was met there. */
	if ((w->in_root && has_live(w->dirs, id)) || !info_get(w->dirs, id, &info)) {
		return;
	}
	/* It was settled just now, and will be met in ROOT. */
	if (!w->in_root && info.is_kept && !has_live(w->dirs, id)) {
		return;
	}
	if (w->all || info.state.code != SANDBOX_TERMINATED) {
		list_add(w->list, &info);
	}
}

static int folder_walk(const struct walk *w, struct error *e)
{
	int root_fd = w->in_root ? w->dirs->root_fd : w->dirs->runtime_fd;
	int fd = fd_open_at(root_fd, "sandboxes", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd == -ENOENT) {
		return 0;
	}
	if (!dir) {
		int r = fd < 0 ? -fd : errno;
		fd_close(&fd);
		return error_sys(e, r, "list the sandboxes");
	}
	for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
		struct id id;

		if (id_is_valid(d->d_name)) {
			memcpy(id.text, d->d_name, sizeof(id.text));
			entry_add(w, &id);
		}
	}
	(void)closedir(dir);
	return 0;
}

static int compare_age(const void *a, const void *b)
{
	const struct sandbox_state *x = &((const struct sandbox_info *)a)->state;
	const struct sandbox_state *y = &((const struct sandbox_info *)b)->state;

	if (x->created_ms != y->created_ms) {
		return x->created_ms < y->created_ms ? -1 : 1;
	}
	return strcmp(x->id.text, y->id.text);
}

int sandbox_list(const struct dirs *dirs, bool all, struct sandbox_list *out_list, struct error *e)
{
	AUTO(sandbox_list) struct sandbox_list l = { .n = 0 };
	struct walk w = { .dirs = dirs, .list = &l, .all = all };

	if (folder_walk(&w, e) < 0) {
		return -1;
	}
	w.in_root = true;
	if (folder_walk(&w, e) < 0) {
		return -1;
	}
	if (l.n > 1) {
		qsort(l.v, l.n, sizeof(*l.v), compare_age);
	}
	*out_list = TAKE(l, (struct sandbox_list){ .n = 0 });
	return 0;
}

int sandbox_sweep_dead(const struct dirs *dirs, struct error *e)
{
	AUTO(sandbox_list) struct sandbox_list l = { .n = 0 };

	return sandbox_list(dirs, true, &l, e);
}

/* The sandbox that has the name now. */
static bool find_by_name(const struct dirs *dirs, const char *name, struct sandbox_info *out)
{
	autofree char *path = mem_printf("names/%s", name);
	struct id id = { "" };
	ssize_t n = strchr(name, '/') ? -1
				      : readlinkat(dirs->runtime_fd, path, id.text, ID_LEN + 1);

	if (n != ID_LEN) {
		return false;
	}
	id.text[ID_LEN] = '\0';
	return id_is_valid(id.text) && info_get(dirs, &id, out);
}

static bool has_name(const struct sandbox_info *info, const char *name)
{
	return info->state.name && str_eq(info->state.name, name);
}

/* The newest with this name; without one, the only one whose id begins so. */
static int find_in_list(
		struct sandbox_list *l, const char *text, struct sandbox_info *out, struct error *e)
{
	struct sandbox_info *named = NULL;
	struct sandbox_info *begun = NULL;
	size_t begun_n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (has_name(&l->v[i], text)) {
			named = &l->v[i];
		} else if (strlen(text) >= PREFIX_MIN && str_after(l->v[i].state.id.text, text)) {
			begun = &l->v[i];
			begun_n++;
		}
	}
	if (!named && begun_n > 1) {
		return error_set(e, ERRC_CONFLICT, "%s: %zu sandboxes begin so", text, begun_n);
	}
	named = named ? named : begun;
	if (!named) {
		(void)error_set(e, ERRC_NOT_FOUND, "no sandbox %s", text);
		return error_hint(e, "osbx ps -a lists them");
	}
	*out = TAKE(*named, (struct sandbox_info){ .is_kept = false });
	return 0;
}

int sandbox_find(const struct dirs *dirs, const char *text, struct sandbox_info *out_info,
		struct error *e)
{
	AUTO(sandbox_list) struct sandbox_list l = { .n = 0 };
	struct id id;

	if (id_is_valid(text)) {
		memcpy(id.text, text, sizeof(id.text));
		if (info_get(dirs, &id, out_info)) {
			return 0;
		}
	} else if (text[0] != '\0' && find_by_name(dirs, text, out_info)) {
		return 0;
	}
	return sandbox_list(dirs, true, &l, e) < 0 ? -1 : find_in_list(&l, text, out_info, e);
}
