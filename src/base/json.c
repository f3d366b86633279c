/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "json_scan.h"

/* Above, names of an object are sorted to find equal ones. */
#define JSON_FEW_NAMES 16

static const cJSON *node_of(const struct json *v)
{
	return (const cJSON *)(const void *)v;
}

static const struct json *json_of(const cJSON *node)
{
	return (const struct json *)(const void *)node;
}

static int name_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The name that two members of an object share, or NULL. */
static const char *name_twice(const cJSON *object)
{
	size_t n = json_size(json_of(object));
	autofree const char **names = mem_array(n, sizeof(*names));
	const cJSON *member = object->child;

	for (size_t i = 0; i < n; i++) {
		names[i] = member->string;
		member = member->next;
	}
	qsort(names, n, sizeof(*names), name_compare);
	for (size_t i = 1; i < n; i++) {
		if (str_eq(names[i - 1], names[i])) {
			return names[i];
		}
	}
	return NULL;
}

/* The same for few members, without memory. */
static const char *name_twice_of_few(const cJSON *object)
{
	for (const cJSON *a = object->child; a; a = a->next) {
		for (const cJSON *b = a->next; b; b = b->next) {
			if (str_eq(a->string, b->string)) {
				return a->string;
			}
		}
	}
	return NULL;
}

/* Go through all nodes below root in document order, with a stack of parents. */
struct json_walk {
	const cJSON *parents[LIMIT_JSON_DEPTH];
	size_t depth;
};

/* The node behind `node` whose children were dealt with; NULL at the end. */
static const cJSON *walk_next(struct json_walk *w, const cJSON *node)
{
	while (w->depth > 0) {
		if (node->next) {
			return node->next;
		}
		node = w->parents[--w->depth];
	}
	return NULL;
}

static const cJSON *walk_down(struct json_walk *w, const cJSON *node)
{
	if (!node->child) {
		return walk_next(w, node);
	}
	assert(w->depth < LIMIT_JSON_DEPTH);
	w->parents[w->depth++] = node;
	return node->child;
}

static int check_names(const cJSON *root, struct error *e)
{
	struct json_walk w = { .depth = 0 };

	for (const cJSON *node = root; node; node = walk_down(&w, node)) {
		const char *name = NULL;

		if (!cJSON_IsObject(node)) {
			continue;
		}
		name = json_size(json_of(node)) > JSON_FEW_NAMES ? name_twice(node)
								 : name_twice_of_few(node);
		if (name) {
			return error_set(e, ERRC_INVALID, "json: duplicate name \"%s\"", name);
		}
	}
	return 0;
}

struct json *json_parse(struct span text, struct error *e)
{
	AUTO(json) struct json *root = NULL;

	if (json_scan(text, e) < 0) {
		return NULL;
	}
	root = (struct json *)(void *)cJSON_ParseWithLengthOpts(text.p, text.n, NULL, 0);
	if (!root) {
		error_set(e, ERRC_INVALID, "json: not accepted by the parser");
		return NULL;
	}
	if (check_names(node_of(root), e) < 0) {
		return NULL;
	}
	return TAKE_PTR(root);
}

void json_free(struct json *root)
{
	cJSON_Delete((cJSON *)(void *)root);
}

void json_free_secret(struct json *root)
{
	struct json_walk w = { .depth = 0 };

	for (const cJSON *node = node_of(root); node; node = walk_down(&w, node)) {
		if (cJSON_IsString(node)) {
			explicit_bzero(node->valuestring, strlen(node->valuestring));
		}
	}
	json_free(root);
}

const struct json *json_get(const struct json *v, const char *name)
{
	const cJSON *member = NULL;

	if (!json_is_object(v)) {
		return NULL;
	}
	/* The other lookup of cJSON ignores case: a second reader would see another member. */
	member = cJSON_GetObjectItemCaseSensitive(node_of(v), name);
	return cJSON_IsNull(member) ? NULL : json_of(member);
}

bool json_is_object(const struct json *v)
{
	return cJSON_IsObject(node_of(v)) != 0;
}

bool json_is_array(const struct json *v)
{
	return cJSON_IsArray(node_of(v)) != 0;
}

bool json_is_string(const struct json *v)
{
	return cJSON_IsString(node_of(v)) != 0;
}

const char *json_string(const struct json *v)
{
	return cJSON_GetStringValue(node_of(v));
}

int json_u64(const struct json *v, uint64_t max, uint64_t *out_v)
{
	double d = 0;

	if (!cJSON_IsNumber(node_of(v))) {
		return -EINVAL;
	}
	d = node_of(v)->valuedouble;
	if (d < 0) {
		return -EINVAL;
	}
	if (d > (double)JSON_U64_MAX) {
		return -ERANGE;
	}
	if ((double)(uint64_t)d != d) {
		return -EINVAL;
	}
	if ((uint64_t)d > max) {
		return -ERANGE;
	}
	*out_v = (uint64_t)d;
	return 0;
}

int json_bool(const struct json *v, bool *out_v)
{
	if (!cJSON_IsBool(node_of(v))) {
		return -EINVAL;
	}
	*out_v = cJSON_IsTrue(node_of(v)) != 0;
	return 0;
}

const struct json *json_first(const struct json *v)
{
	return v ? json_of(node_of(v)->child) : NULL;
}

const struct json *json_next(const struct json *v)
{
	return v ? json_of(node_of(v)->next) : NULL;
}

const char *json_name(const struct json *v)
{
	return v ? node_of(v)->string : NULL;
}

size_t json_size(const struct json *v)
{
	size_t n = 0;

	json_for_each(child, v) {
		n++;
	}
	return n;
}

/* The text of a number: an integer as such, else the shortest form that reads back the same. */
static void number_add(struct json_writer *w, const char *name, double d)
{
	char text[32];

	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof(text), "%.*g", digits, d);
		if (strtod(text, NULL) == d) {
			break;
		}
	}
	json_add_raw(w, name, text);
}

static void value_begin(struct json_writer *w, const char *name, const cJSON *node)
{
	if (cJSON_IsObject(node)) {
		json_object_begin(w, name);
	} else if (cJSON_IsArray(node)) {
		json_array_begin(w, name);
	} else if (cJSON_IsString(node)) {
		json_add_string(w, name, node->valuestring);
	} else if (cJSON_IsNumber(node)) {
		number_add(w, name, node->valuedouble);
	} else if (cJSON_IsBool(node)) {
		json_add_bool(w, name, cJSON_IsTrue(node) != 0);
	} else {
		json_add_string(w, name, NULL);
	}
}

static void value_end(struct json_writer *w, const cJSON *node)
{
	if (cJSON_IsObject(node)) {
		json_object_end(w);
	} else if (cJSON_IsArray(node)) {
		json_array_end(w);
	}
}

void json_add_value(struct json_writer *w, const char *name, const struct json *value)
{
	const cJSON *parents[LIMIT_JSON_DEPTH];
	const cJSON *node = node_of(value);
	size_t depth = 0;

	if (!node) {
		json_add_string(w, name, NULL);
		return;
	}
	for (;;) {
		value_begin(w, depth == 0 ? name : node->string, node);
		if (node->child) {
			assert(depth < LIMIT_JSON_DEPTH);
			parents[depth++] = node;
			node = node->child;
			continue;
		}
		value_end(w, node);
		while (depth > 0 && !node->next) {
			node = parents[--depth];
			value_end(w, node);
		}
		if (depth == 0) {
			return;
		}
		node = node->next;
	}
}
