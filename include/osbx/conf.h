/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * conf - INI files by tables: an unknown section or key is an error with its line.
 */
#ifndef OSBX_CONF_H
#define OSBX_CONF_H

#include <stddef.h>

#include <osbx/compiler.h>
#include <osbx/error.h>

struct conf_key {
	const char *section; /* "sandbox"; NULL ends the table. "registry" also matches [registry
				"ARG"] */
	const char *key;
	/* arg is what the section names in quotes, or NULL. Fails with ERRC_INVALID and what was
	 * expected; file and line are added by conf_parse. */
	int (*set)(void *out, const char *arg, const char *value, struct error *e);
};

/* Read the file at path (bounded by LIMIT_CONF_BYTES) into out. A missing file is success. The
 * text of an error begins with "PATH:LINE: ". libinih does the reading, loaded on demand. */
int conf_parse(const char *path, const struct conf_key *keys, void *out, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3, 4);

#endif
