/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead - sandboxes whose keeper is gone.
 */
#ifndef OSBX_ENGINE_DEAD_H
#define OSBX_ENGINE_DEAD_H

#include <osbx/compiler.h>
#include <osbx/ctl.h>

/* Look after one sandbox: when nobody holds its lock any more and it has not ended as it should,
 * say so in its record and remove what it left; remove it altogether when it is not to stay. No
 * effect on a live one, and on one that does not exist. */
int dead_settle(const struct dirs *dirs, const struct id *id, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);

#endif
