/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * execd_image - the program of PID 1 (execd/), embedded as bytes by the static library execd_image.
 */
#ifndef OSBX_EXECD_IMAGE_H
#define OSBX_EXECD_IMAGE_H

#include <stddef.h>

/* An ELF program for execveat(2), to be put into a sealed memfd (fd_memfd_sealed). */
extern const unsigned char execd_image[];
extern const size_t execd_image_size;

#endif
