/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan - what json.c, json_scan.c and json_write.c share.
 */
#ifndef OSBX_BASE_JSON_SCAN_H
#define OSBX_BASE_JSON_SCAN_H

#include <stddef.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/json.h>
#include <osbx/span.h>

/* Largest integer up to which all are exact in a double: 2^53 - 1. */
#define JSON_U64_MAX UINT64_C(9007199254740991)

enum json_type {
	JSON_NULL,
	JSON_FALSE,
	JSON_TRUE,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};

struct json {
	enum json_type type;
	double number;
	const char *name; /* of a member of an object */
	const char *string;
	struct json *child; /* the first one */
	struct json *next;  /* sibling */
};

/* A document is one block of memory: this, its nodes in their order, the root first, its text. */
struct json_document {
	size_t bytes; /* of the whole block */
	size_t nodes_n;
	struct json nodes[];
};

/* Is text one JSON document by RFC 8259 within our limits? The document, to be freed with free(),
 * or NULL with the offset in the text of the error. */
struct json_document *json_scan(struct span text, struct error *e) MUST_CHECK NONNULL(2);
/* Add a token that is JSON already. */
void json_add_raw(struct json_writer *w, const char *name, const char *token) NONNULL(1, 3);

#endif
