/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * features - the libraries that osbx loads on demand: which of them are there, and what works
 * without them.
 */
#ifndef OSBX_FEATURES_H
#define OSBX_FEATURES_H

#include <stdbool.h>
#include <stddef.h>

#include <osbx/compiler.h>

#define FEATURES_MAX     8
#define FEATURE_TEXT_MAX 32

struct feature {
	const char *name;    /* "archive" */
	const char *soname;  /* what is loaded, the first of several */
	const char *package; /* Debian's */
	const char *without; /* what does not work without it, as a sentence */
	bool found;
	char version[FEATURE_TEXT_MAX]; /* "" when it is absent or does not tell */
};

/* Load each of them and ask for its version; they stay loaded. Returns their number. */
size_t features_find(struct feature out_features[FEATURES_MAX]) NONNULL(1);

#endif
