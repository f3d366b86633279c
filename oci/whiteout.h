/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whiteout - the names by which a layer says "removed" (image-spec layer.md "Whiteouts").
 *
 * The type of such an entry does not matter: old engines wrote them as hard links.
 */
#ifndef OSBX_OCI_WHITEOUT_H
#define OSBX_OCI_WHITEOUT_H

#include <osbx/compiler.h>

enum whiteout {
	WHITEOUT_NONE,    /* an ordinary name */
	WHITEOUT_PLAIN,   /* ".wh.NAME": NAME of lower layers is gone */
	WHITEOUT_OPAQUE,  /* ".wh..wh..opq": all of lower layers in this directory is gone */
	WHITEOUT_IGNORED, /* ".wh..wh.…": what aufs kept for itself, also below such a directory */
	WHITEOUT_INVALID, /* ".wh." alone, of "." or "..", or as a directory */
	WHITEOUT_COUNT,
};

/* Of a normalised path without a leading slash. *out_name, inside path, is the name that a plain
 * whiteout removes. */
enum whiteout whiteout_of(const char *path, const char **out_name) NONNULL(1, 2);

#endif
