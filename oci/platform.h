/* SPDX-License-Identifier: Apache-2.0 */
/*
 * platform - which image of an index is the one for this machine, or for --platform.
 */
#ifndef OSBX_OCI_PLATFORM_H
#define OSBX_OCI_PLATFORM_H

#include <stdbool.h>

#include <osbx/compiler.h>
#include <osbx/error.h>

#include "manifest.h"

#define PLATFORM_WORD_MAX 31

/* A wish, in Go's words (GOOS, GOARCH). */
struct platform_wish {
	char os[PLATFORM_WORD_MAX + 1];
	char architecture[PLATFORM_WORD_MAX + 1];
	char variant[PLATFORM_WORD_MAX + 1]; /* "" if none */
};

/* Read "os/arch[/variant]"; NULL is this machine. Names of uname(2) become Go's. ERRC_INVALID, or
 * ERRC_UNSUPPORTED for another os than linux. */
int platform_parse(const char *text, struct platform_wish *out_wish, struct error *e) MUST_CHECK
		NONNULL(2, 3);
/* Go's word for an architecture that may be one of uname(2)'s, as some build tools write; text
 * itself otherwise. */
const char *platform_architecture(const char *text) NONNULL(1);
/* How well an image suits, above 0; 0 if not at all. Variants that are numbers ("v7") suit upwards:
 * a v7 machine runs v6. An absent architecture (NULL) suits anything, least. */
unsigned int platform_score(const struct platform_wish *wish, const struct platform *p)
		NONNULL(1, 2);
/* "linux/arm/v7" of a wish or an image; absent words are left out. Caller frees. */
char *platform_text(const char *os, const char *architecture, const char *variant) MUST_CHECK;

#endif
