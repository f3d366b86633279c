/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * service - the execution API's listeners.
 */
#ifndef OSBX_EXECD_SERVICE_H
#define OSBX_EXECD_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/compiler.h>

struct execd;
struct service;

/* Take a listener of the keeper over, and open the port inside if flags say so (EXECD_LISTEN_*).
 * A port that cannot be had is none: the sandbox is reached from outside all the same. 0, or -errno
 * with fd still the caller's. */
int service_listen(struct execd *x, uint32_t flags, int fd) NONNULL(1) MUST_CHECK;
/* Serve one connection more, taken over, from within a handler. 0 or -errno. */
int service_adopt(const struct execd *x, int fd, uint32_t tag) NONNULL(1) MUST_CHECK;
/* Has the sandbox a loopback of its own, with the API on it? */
bool service_is_inside(const struct execd *x) NONNULL(1) MUST_CHECK;

#endif
