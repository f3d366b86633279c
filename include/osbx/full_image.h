/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * full_image - the full program (program.h), embedded in the static one as bytes.
 */
#ifndef OSBX_FULL_IMAGE_H
#define OSBX_FULL_IMAGE_H

#include <stddef.h>

/* An ELF program for execveat(2), to be put into a sealed memfd (fd_memfd_sealed). */
extern const unsigned char full_image[];
extern const size_t full_image_size;

#endif
