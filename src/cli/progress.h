/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress - what a person sees while layers arrive: a bar a layer on a terminal, a line a layer
 * elsewhere, nothing when quiet. Everything goes to standard error.
 */
#ifndef OSBX_CLI_PROGRESS_H
#define OSBX_CLI_PROGRESS_H

#include <stdbool.h>

#include <osbx/image.h>

struct progress;

/* New display; quiet shows nothing. Never NULL. */
struct progress *progress_new(bool quiet) MUST_CHECK;
/* The callbacks to hand to oci; borrowed, valid until progress_free. */
const struct image_progress *progress_callbacks(struct progress *p) NONNULL(1);
/* Leave the cursor below the bars and free. */
void progress_free(struct progress *p);
AUTO_DEFINE_PTR(progress, struct progress, progress_free);

#endif
