/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_error - why a registry did not give what was asked for, in words for people.
 */
#ifndef OSBX_OCI_FETCH_ERROR_H
#define OSBX_OCI_FETCH_ERROR_H

#include <stdbool.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/span.h>

#include "fetch_exchange.h"

#define ANSWER_CODE_MAX    32
#define ANSWER_MESSAGE_MAX 128

/* What the body of a refusal says: "" where it does not. */
struct answer {
	char code[ANSWER_CODE_MAX];       /* "MANIFEST_UNKNOWN" */
	char message[ANSWER_MESSAGE_MAX]; /* printable */
};

/* Read a body: the errors[] of registries, or the other forms that token servers use. Anything
 * else says nothing. */
void answer_parse(struct span body, struct answer *out_answer) NONNULL(2);

/* Who failed at what. */
struct failure {
	const struct exchange *x;
	const char *label;   /* what was asked for: "localhost:5000/name:tag" */
	const char *place;   /* whom: "localhost:5000" */
	const char *domain;  /* for osbx login */
	bool has_credential; /* of ours was sent or could be */
};

/* The exchange had no answer, or not a whole one. Returns -1. */
int failure_of_network(const struct failure *f, struct error *e) NONNULL(1, 2);
/* It had one that is no success. Returns -1. */
int failure_of_status(const struct failure *f, struct error *e) NONNULL(1, 2);
/* May the same request succeed later? */
bool failure_may_pass(const struct exchange *x) NONNULL(1);

#endif
