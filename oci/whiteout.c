/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <osbx/str.h>

#include "whiteout.h"

static const char prefix[] = ".wh.";
static const char meta_prefix[] = ".wh..wh.";
static const char opaque_name[] = ".wh..wh..opq";

static enum whiteout last_component(const char *last, const char **out_name)
{
	const char *name = str_after(last, prefix);

	if (!name) {
		return WHITEOUT_NONE;
	}
	if (str_eq(last, opaque_name)) {
		return WHITEOUT_OPAQUE;
	}
	if (str_after(last, meta_prefix)) {
		return WHITEOUT_IGNORED;
	}
	if (name[0] == '\0' || str_eq(name, ".") || str_eq(name, "..")) {
		return WHITEOUT_INVALID;
	}
	*out_name = name;
	return WHITEOUT_PLAIN;
}

enum whiteout whiteout_of(const char *path, const char **out_name)
{
	const char *p = path;
	const char *slash = NULL;

	if (!strstr(path, prefix)) {
		return WHITEOUT_NONE;
	}
	while ((slash = strchr(p, '/'))) {
		if (str_after(p, meta_prefix)) {
			return WHITEOUT_IGNORED;
		}
		if (str_after(p, prefix)) {
			return WHITEOUT_INVALID;
		}
		p = slash + 1;
	}
	return last_component(p, out_name);
}
