/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/strv.h>

#define STRV_SLOTS_MIN 8

/* Slots that a vector of n strings has: the vector's size is a function of n, not kept. */
static size_t slots_for(size_t n)
{
	size_t slots = STRV_SLOTS_MIN;

	while (slots < n + 1) {
		slots *= 2;
	}
	return slots;
}

void strv_done(struct strv *sv)
{
	if (!sv) {
		return;
	}
	strv_for_each(sv, i) {
		free(sv->v[i]);
	}
	free(sv->v);
	*sv = (struct strv)STRV_INIT;
}

int strv_take(struct strv *sv, char *s)
{
	if (sv->n >= LIMIT_ARGS) {
		free(s);
		return -E2BIG;
	}
	if (!sv->v || slots_for(sv->n) < slots_for(sv->n + 1)) {
		sv->v = mem_resize(sv->v, sv->v ? slots_for(sv->n) : 0, slots_for(sv->n + 1),
				sizeof(*sv->v));
	}
	sv->v[sv->n++] = s;
	sv->v[sv->n] = NULL;
	return 0;
}

int strv_add(struct strv *sv, const char *s)
{
	return strv_take(sv, mem_strdup(s));
}

int strv_addf(struct strv *sv, const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;

	va_start(ap, fmt);
	s = mem_vprintf(fmt, ap);
	va_end(ap);
	return strv_take(sv, s);
}

int strv_add_all(struct strv *sv, char *const *v)
{
	for (; v && *v; v++) {
		int r = strv_add(sv, *v);

		if (r < 0) {
			return r;
		}
	}
	return 0;
}

char *const *strv_get(const struct strv *sv)
{
	static char *const empty[] = { NULL };

	return sv->v ? sv->v : empty;
}

size_t strv_bytes(const struct strv *sv)
{
	size_t sum = 0;

	strv_for_each(sv, i) {
		sum += strlen(sv->v[i]) + 1;
	}
	return sum;
}

/* Does entry set the variable whose name has n bytes? */
static bool is_entry_of(const char *entry, const char *name, size_t n)
{
	return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

int strv_env_set(struct strv *env, const char *entry)
{
	const char *eq = strchr(entry, '=');

	if (!eq || eq == entry) {
		return -EINVAL;
	}
	strv_for_each(env, i) {
		if (is_entry_of(env->v[i], entry, (size_t)(eq - entry))) {
			char *copy = mem_strdup(entry);

			free(env->v[i]);
			env->v[i] = copy;
			return 0;
		}
	}
	return env->n >= LIMIT_ENV ? -E2BIG : strv_add(env, entry);
}

const char *strv_env_find(const struct strv *env, const char *name)
{
	size_t n = strlen(name);

	strv_for_each(env, i) {
		if (is_entry_of(env->v[i], name, n)) {
			return env->v[i] + n + 1;
		}
	}
	return NULL;
}

char *strv_env_remove(struct strv *env, const char *name)
{
	size_t n = strlen(name);
	size_t kept = 0;
	char *value = NULL;

	strv_for_each(env, i) {
		char *entry = env->v[i];

		if (!is_entry_of(entry, name, n)) {
			env->v[kept++] = entry;
			continue;
		}
		value = value ? value : mem_strdup(entry + n + 1);
		explicit_bzero(entry, strlen(entry));
		free(entry);
	}
	if (env->v) {
		env->v[kept] = NULL;
	}
	env->n = kept;
	return value;
}
