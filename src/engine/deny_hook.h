/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deny_hook - the keeper's half of notify.h: it never waits, and what the other half does not take
 * is counted.
 */
#ifndef OSBX_ENGINE_DENY_HOOK_H
#define OSBX_ENGINE_DENY_HOOK_H

#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/id.h>
#include <osbx/netd.h>

struct deny_hook;

/* url is copied. Nothing is started yet. */
struct deny_hook *deny_hook_new(const char *url, const struct id *sandbox) MUST_CHECK NONNULL(1, 2);
/* Something was refused. */
void deny_hook_tell(struct deny_hook *h, const struct netd_denied *denied) NONNULL(1, 2);
/* The process ends by itself, at the latest when a try of its own ends. */
void deny_hook_free(struct deny_hook *h);
AUTO_DEFINE_PTR(deny_hook, struct deny_hook, deny_hook_free);

#endif
