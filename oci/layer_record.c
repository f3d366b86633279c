/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>

#include "layer_internal.h"

static int charge(struct layer *l, size_t bytes, struct error *e)
{
	if (bytes > LAYER_RECORDS_BYTES - l->records_bytes) {
		return error_set(e, ERRC_LIMIT,
				"too many directories, links and whiteouts in one layer");
	}
	l->records_bytes += bytes;
	return 0;
}

/* Room for one more object in a list that doubles. */
static void *grow(void *list, size_t n, size_t *cap, size_t size)
{
	size_t old = *cap;

	if (n < old) {
		return list;
	}
	*cap = old == 0 ? 64 : old * 2;
	return mem_resize(list, old, *cap, size);
}

int layer_record_dir(struct layer *l, const char *path, bool implied, const struct layer_attr *attr,
		struct error *e)
{
	if (charge(l, strlen(path) + sizeof(*l->dirs), e) < 0) {
		return -1;
	}
	l->dirs = grow(l->dirs, l->dirs_n, &l->dirs_cap, sizeof(*l->dirs));
	l->dirs[l->dirs_n] = (struct layer_dir){
		.path = mem_strdup(path),
		.implied = implied,
		.seq = l->dirs_n,
		.attr = *attr,
	};
	l->dirs_n++;
	return 0;
}

int layer_record_link(struct layer *l, const char *name, const char *target, struct error *e)
{
	if (charge(l, l->walk.len + strlen(name) + strlen(target) + sizeof(*l->links), e) < 0) {
		return -1;
	}
	l->links = grow(l->links, l->links_n, &l->links_cap, sizeof(*l->links));
	l->links[l->links_n++] = (struct layer_link){
		.path = mem_dup(l->walk.path, l->walk.len),
		.name = mem_strdup(name),
		.target = mem_strdup(target),
	};
	return 0;
}

int layer_record_whiteout(struct layer *l, struct span dir, const char *name, struct error *e)
{
	if (charge(l, dir.n + (name ? strlen(name) : 0) + sizeof(*l->whiteouts), e) < 0) {
		return -1;
	}
	l->whiteouts = grow(l->whiteouts, l->whiteouts_n, &l->whiteouts_cap, sizeof(*l->whiteouts));
	l->whiteouts[l->whiteouts_n++] = (struct layer_whiteout){
		.dir = mem_dup(dir.p, dir.n),
		.name = mem_strdup(name),
	};
	return 0;
}

void layer_records_done(struct layer *l)
{
	for (size_t i = 0; i < l->dirs_n; i++) {
		free(l->dirs[i].path);
	}
	for (size_t i = 0; i < l->links_n; i++) {
		free(l->links[i].path);
		free(l->links[i].name);
		free(l->links[i].target);
	}
	for (size_t i = 0; i < l->whiteouts_n; i++) {
		free(l->whiteouts[i].dir);
		free(l->whiteouts[i].name);
	}
	free(l->dirs);
	free(l->links);
	free(l->whiteouts);
}
