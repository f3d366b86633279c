/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * ports - TCP ports of a sandbox that are published at addresses of the host.
 *
 * "[[IP:]HOST:]PORT[/tcp]": PORT inside at HOST outside, which is any free one when it is 0, empty
 * or missing; IP is 127.0.0.1 unless one is given ("[::1]:8080:80").
 */
#ifndef OSBX_PORTS_H
#define OSBX_PORTS_H

#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/netaddr.h>

#define PORTS_TEXT_MAX (NETADDR_TEXT_MAX + 24) /* with the NUL */

struct port_map {
	struct netaddr addr; /* of the host */
	uint16_t outside;    /* 0: any free one */
	uint16_t inside;
};

/* ERRC_INVALID names the text and what is wrong with it; ERRC_UNSUPPORTED: not TCP. */
int ports_parse(const char *text, struct port_map *out_map, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* "127.0.0.1:8080:80", which ports_parse takes. */
void ports_format(const struct port_map *map, char out[PORTS_TEXT_MAX]) NONNULL(1, 2);
/* "127.0.0.1:8080" */
void ports_format_outside(const struct port_map *map, char out[PORTS_TEXT_MAX]) NONNULL(1, 2);

#endif
