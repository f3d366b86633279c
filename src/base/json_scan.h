/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan - what json.c needs from its two neighbours.
 */
#ifndef OSBX_BASE_JSON_SCAN_H
#define OSBX_BASE_JSON_SCAN_H

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/json.h>
#include <osbx/span.h>

/* Largest integer up to which all are exact in a double: 2^53 - 1. */
#define JSON_U64_MAX UINT64_C(9007199254740991)

/* Is text one JSON document by RFC 8259 within our limits? cJSON alone takes more: control bytes in
 * strings, "01", "+1", any byte up to 32 as white space, invalid UTF-8. 0, or -1 with the offset
 * in the text of the error. */
int json_scan(struct span text, struct error *e) MUST_CHECK NONNULL(2);
/* Add a token that is JSON already. */
void json_add_raw(struct json_writer *w, const char *name, const char *token) NONNULL(1, 3);

#endif
