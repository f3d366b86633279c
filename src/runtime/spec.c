/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include <osbx/mem.h>
#include <osbx/spec.h>

#define TIMEOUT_DEFAULT_MS 30000

void spec_init(struct spec *s)
{
	*s = (struct spec){
		.cgroup_fd = -1,
		.execd_fd = -1,
		.config_fd = -1,
		.timeout_ms = TIMEOUT_DEFAULT_MS,
	};
}

void spec_done(struct spec *s)
{
	if (!s) {
		return;
	}
	for (size_t i = 0; i < s->trees_n; i++) {
		free(s->trees[i].path);
	}
	for (size_t i = 0; i < s->lowers_n; i++) {
		free(s->lowers[i].path);
	}
	for (size_t i = 0; i < s->mounts_n; i++) {
		free(s->mounts[i].dst);
		free(s->mounts[i].path);
		free(s->mounts[i].content);
	}
	free(s->trees);
	free(s->lowers);
	free(s->mounts);
	free(s->hostname);
	spec_init(s);
}

uint32_t spec_add_tree(struct spec *s, const char *path, enum spec_tree_ids ids, bool recursive)
{
	assert(path[0] == '/');

	s->trees = mem_resize(s->trees, s->trees_n, s->trees_n + 1, sizeof(*s->trees));
	s->trees[s->trees_n] = (struct spec_tree){
		.path = mem_strdup(path),
		.ids = ids,
		.recursive = recursive,
		.fd = -1,
	};
	return (uint32_t)s->trees_n++;
}

void spec_add_lower(struct spec *s, uint32_t tree, const char *path)
{
	assert(tree < s->trees_n);

	s->lowers = mem_resize(s->lowers, s->lowers_n, s->lowers_n + 1, sizeof(*s->lowers));
	s->lowers[s->lowers_n++] = (struct spec_lower){
		.tree = tree,
		.path = mem_strdup(path),
	};
}

struct spec_mount *spec_add_mount(struct spec *s, enum spec_mount_kind kind, const char *dst)
{
	s->mounts = mem_resize(s->mounts, s->mounts_n, s->mounts_n + 1, sizeof(*s->mounts));
	struct spec_mount *m = &s->mounts[s->mounts_n++];

	*m = (struct spec_mount){ .kind = kind, .dst = mem_strdup(dst) };
	return m;
}
