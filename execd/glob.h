/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * glob - file name patterns: '*', '?', '[a-z]', '[!a]', '{a,b}', '\' before any character.
 *
 * Names have no '/'. "**" as a whole component is any number of directories, so "**" alone and a
 * trailing "**" match like '*', and a leading one with its '/' matches nothing at all; any other
 * '/' in a pattern matches no name. Work and memory are bounded by pattern times name: there is no
 * backtracking.
 */
#ifndef OSBX_EXECD_GLOB_H
#define OSBX_EXECD_GLOB_H

#include <stdbool.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>

#define GLOB_BYTES_MAX 1024
#define GLOB_DEPTH_MAX 16 /* braces in braces */

struct glob;

/* ERRC_INVALID: no pattern (an open bracket or brace, a lone '\' at the end); ERRC_LIMIT. */
int glob_new(const char *pattern, struct glob **out_glob, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
void glob_free(struct glob *g);
AUTO_DEFINE_PTR(glob, struct glob, glob_free);
/* Does the name match? Bytes that are no UTF-8 are one character each. */
bool glob_matches(struct glob *g, const char *name) NONNULL(1, 2) MUST_CHECK;

#endif
