/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
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

static int name_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The name that two members of an object share, or NULL. */
static const char *name_twice(const struct json *object)
{
	size_t n = json_size(object);
	autofree const char **names = mem_array(n, sizeof(*names));
	const struct json *member = object->child;

	for (size_t i = 0; i < n; i++) {
		names[i] = member->name;
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
static const char *name_twice_of_few(const struct json *object)
{
	for (const struct json *a = object->child; a; a = a->next) {
		for (const struct json *b = a->next; b; b = b->next) {
			if (str_eq(a->name, b->name)) {
				return a->name;
			}
		}
	}
	return NULL;
}

static int check_names(const struct json_document *doc, struct error *e)
{
	for (size_t i = 0; i < doc->nodes_n; i++) {
		const struct json *node = &doc->nodes[i];
		const char *name = NULL;

		if (node->type != JSON_OBJECT) {
			continue;
		}
		name = json_size(node) > JSON_FEW_NAMES ? name_twice(node)
							: name_twice_of_few(node);
		if (name) {
			return error_set(e, ERRC_INVALID, "json: duplicate name \"%s\"", name);
		}
	}
	return 0;
}

static struct json_document *document_of(struct json *root)
{
	return container_of(root, struct json_document, nodes);
}

struct json *json_parse(struct span text, struct error *e)
{
	struct json_document *doc = json_scan(text, e);

	if (!doc) {
		return NULL;
	}
	AUTO(json) struct json *root = doc->nodes;

	return check_names(doc, e) < 0 ? NULL : TAKE_PTR(root);
}

void json_free(struct json *root)
{
	if (root) {
		free(document_of(root));
	}
}

void json_free_secret(struct json *root)
{
	if (root) {
		explicit_bzero(document_of(root), document_of(root)->bytes);
		free(document_of(root));
	}
}

static bool is_type(const struct json *v, enum json_type type)
{
	return v && v->type == type;
}

const struct json *json_get(const struct json *v, const char *name)
{
	if (!json_is_object(v)) {
		return NULL;
	}
	json_for_each(member, v) {
		if (str_eq(member->name, name)) {
			return member->type == JSON_NULL ? NULL : member;
		}
	}
	return NULL;
}

bool json_is_object(const struct json *v)
{
	return is_type(v, JSON_OBJECT);
}

bool json_is_array(const struct json *v)
{
	return is_type(v, JSON_ARRAY);
}

bool json_is_null(const struct json *v)
{
	return !v || v->type == JSON_NULL;
}

bool json_is_string(const struct json *v)
{
	return is_type(v, JSON_STRING);
}

const char *json_string(const struct json *v)
{
	return json_is_string(v) ? v->string : NULL;
}

int json_u64(const struct json *v, uint64_t max, uint64_t *out_v)
{
	if (!is_type(v, JSON_NUMBER) || v->number < 0) {
		return -EINVAL;
	}
	if (v->number > (double)JSON_U64_MAX) {
		return -ERANGE;
	}
	if ((double)(uint64_t)v->number != v->number) {
		return -EINVAL;
	}
	if ((uint64_t)v->number > max) {
		return -ERANGE;
	}
	*out_v = (uint64_t)v->number;
	return 0;
}

int json_bool(const struct json *v, bool *out_v)
{
	if (!is_type(v, JSON_TRUE) && !is_type(v, JSON_FALSE)) {
		return -EINVAL;
	}
	*out_v = v->type == JSON_TRUE;
	return 0;
}

const struct json *json_first(const struct json *v)
{
	return v ? v->child : NULL;
}

const struct json *json_next(const struct json *v)
{
	return v ? v->next : NULL;
}

const char *json_name(const struct json *v)
{
	return v ? v->name : NULL;
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

static void value_begin(struct json_writer *w, const char *name, const struct json *node)
{
	switch (node->type) {
	case JSON_OBJECT:
		json_object_begin(w, name);
		break;
	case JSON_ARRAY:
		json_array_begin(w, name);
		break;
	case JSON_NUMBER:
		number_add(w, name, node->number);
		break;
	case JSON_FALSE:
	case JSON_TRUE:
		json_add_bool(w, name, node->type == JSON_TRUE);
		break;
	case JSON_STRING:
	case JSON_NULL:
		json_add_string(w, name, node->string);
		break;
	}
}

static void value_end(struct json_writer *w, const struct json *node)
{
	if (node->type == JSON_OBJECT) {
		json_object_end(w);
	} else if (node->type == JSON_ARRAY) {
		json_array_end(w);
	}
}

void json_add_value(struct json_writer *w, const char *name, const struct json *value)
{
	const struct json *parents[LIMIT_JSON_DEPTH];
	const struct json *node = value;
	size_t depth = 0;

	if (!node) {
		json_add_string(w, name, NULL);
		return;
	}
	for (;;) {
		value_begin(w, depth == 0 ? name : node->name, node);
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
