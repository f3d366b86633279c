/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify - what a service tells its manager (sd_notify(3)).
 */
#ifndef OSBX_API_NOTIFY_H
#define OSBX_API_NOTIFY_H

#include <stdint.h>

#include <osbx/compiler.h>

/* Send "READY=1" and the like; nobody there is no error. */
void notify_send(const char *state) NONNULL(1);
/* How often "WATCHDOG=1" is wanted, 0: never. */
int64_t notify_watchdog_ms(void);

#endif
