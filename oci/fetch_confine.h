/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_confine - what the fetch helper gives up before its first byte from the network.
 */
#ifndef OSBX_OCI_FETCH_CONFINE_H
#define OSBX_OCI_FETCH_CONFINE_H

#include <linux/filter.h>
#include <stddef.h>

#include <osbx/compiler.h>
#include <osbx/error.h>

#include "curl_lib.h"

/* Resource limits, and no death by a closed pipe; before anything else. */
int confine_limits(struct error *e) MUST_CHECK NONNULL(1);
/* Load the modules by which the C library resolves names: later no code can be loaded. */
void confine_preload(void);
/* Give up ids (root), dumpability, capabilities, files but those of name resolution and
 * certificates, and all system calls that the filter has not. control_fd tells whether the parent
 * is still there, with which it ends; -1: it has still something to do then. */
int confine(const struct curl_lib *lib, const struct sock_filter *insns, size_t n, int control_fd,
		struct error *e) MUST_CHECK NONNULL(1, 5);

#endif
