/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "credential.h"

#define HUB "docker.io"

/* Docker writes the first, the others are what people and other tools write. */
static const char *const hub_keys[] = {
	"https://index.docker.io/v1/",
	HUB,
	"index.docker.io",
	"registry-1.docker.io",
};

const char *credential_key(const char *domain, size_t i)
{
	if (!str_eq(domain, HUB)) {
		return i == 0 ? domain : NULL;
	}
	return i < ARRAY_SIZE(hub_keys) ? hub_keys[i] : NULL;
}

void credential_places_done(struct credential_places *p)
{
	if (!p) {
		return;
	}
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].path);
	}
	p->n = 0;
}

/* A directory of the environment; a relative one depends on where we are, and is ignored. */
static const char *env_dir(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] == '/' ? value : NULL;
}

static void place_add(struct credential_places *p, char *path)
{
	p->v[p->n++] = (struct credential_place){
		.path = path,
		.is_docker = str_eq(path_last(path), "config.json"),
	};
}

static char *path_absolute(const char *path)
{
	autofree char *here = path[0] == '/' ? NULL : realpath(".", NULL);

	return here ? mem_printf("%s/%s", here, path) : mem_strdup(path);
}

void credential_places_find(struct credential_places *out_places)
{
	struct credential_places p = { .n = 0 };
	const char *only = getenv("REGISTRY_AUTH_FILE");
	const char *runtime = env_dir("XDG_RUNTIME_DIR");
	const char *config = env_dir("XDG_CONFIG_HOME");
	const char *docker = env_dir("DOCKER_CONFIG");
	const char *home = env_dir("HOME");

	if (only && only[0] != '\0') {
		place_add(&p, path_absolute(only));
		*out_places = p;
		return;
	}
	if (runtime) {
		place_add(&p, mem_printf("%s/containers/auth.json", runtime));
	}
	if (config || home) {
		p.fallback = p.n;
		place_add(&p, config ? mem_printf("%s/containers/auth.json", config)
				     : mem_printf("%s/.config/containers/auth.json", home));
	}
	if (docker || home) {
		place_add(&p, docker ? mem_printf("%s/config.json", docker)
				     : mem_printf("%s/.docker/config.json", home));
	}
	*out_places = p;
}
