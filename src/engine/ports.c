/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <osbx/cleanup.h>
#include <osbx/mem.h>
#include <osbx/ports.h>
#include <osbx/span.h>
#include <osbx/str.h>

static const struct netaddr loopback = { .family = 4, .bytes = { 127, 0, 0, 1 } };

static int form_refuse(const char *text, const char *what, struct error *e)
{
	(void)error_set(e, ERRC_INVALID, "port \"%s\": %s", text, what);
	return error_hint(e, "[[IP:]HOST:]PORT, for example 8080:80, :80 or [::1]:8080:80");
}

/* What stands behind the last colon that is not inside brackets; *head ends there. */
static char *piece_cut(char *head)
{
	char *colon = strrchr(head, ':');
	const char *bracket = strrchr(head, ']');

	if (!colon || (bracket && bracket > colon)) {
		return NULL;
	}
	*colon = '\0';
	return colon + 1;
}

static int number_parse(const char *digits, uint16_t *out)
{
	uint64_t v = 0;

	if (str_to_u64(digits, UINT16_MAX, &v) < 0) {
		return -EINVAL;
	}
	*out = (uint16_t)v;
	return 0;
}

static int address_parse(char *text, struct netaddr *out)
{
	size_t n = strlen(text);

	/* Without brackets nobody could tell the address from the port. */
	if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
		return netaddr_parse((struct span){ .p = text + 1, .n = n - 2 }, out) < 0 ||
						       out->family != 6
				       ? -EINVAL
				       : 0;
	}
	return netaddr_parse(span_of(text), out) < 0 || out->family != 4 ? -EINVAL : 0;
}

static int protocol_cut(const char *text, char *copy, struct error *e)
{
	char *slash = strchr(copy, '/');

	if (!slash) {
		return 0;
	}
	*slash = '\0';
	if (str_eq(slash + 1, "udp") || str_eq(slash + 1, "sctp")) {
		return error_set(e, ERRC_UNSUPPORTED, "port \"%s\": only TCP can be published",
				text);
	}
	return str_eq(slash + 1, "tcp") ? 0 : form_refuse(text, "unknown protocol", e);
}

int ports_parse(const char *text, struct port_map *out_map, struct error *e)
{
	struct port_map map = { .addr = loopback };
	autofree char *head = mem_strdup(text);

	if (protocol_cut(text, head, e) < 0) {
		return -1;
	}
	const char *inside = piece_cut(head);
	const char *outside = inside ? piece_cut(head) : NULL;
	const char *address = outside ? head : NULL;

	if (inside && !outside) {
		outside = head;
	} else if (!inside) {
		inside = head;
	}
	if (number_parse(inside, &map.inside) < 0 || map.inside == 0) {
		return form_refuse(text, "no port from 1 to 65535 of the sandbox", e);
	}
	if (outside && outside[0] != '\0' && number_parse(outside, &map.outside) < 0) {
		return form_refuse(text, "no port from 0 to 65535 of the host", e);
	}
	if (address && address_parse(head, &map.addr) < 0) {
		return form_refuse(text, "no IP address", e);
	}
	*out_map = map;
	return 0;
}

void ports_format_outside(const struct port_map *map, char out[PORTS_TEXT_MAX])
{
	char addr[NETADDR_TEXT_MAX];

	netaddr_format(&map->addr, addr);
	(void)snprintf(out, PORTS_TEXT_MAX, map->addr.family == 6 ? "[%s]:%u" : "%s:%u", addr,
			(unsigned int)map->outside);
}

void ports_format(const struct port_map *map, char out[PORTS_TEXT_MAX])
{
	char outside[PORTS_TEXT_MAX];

	ports_format_outside(map, outside);
	(void)snprintf(out, PORTS_TEXT_MAX, "%.*s:%u", PORTS_TEXT_MAX - 8, outside,
			(unsigned int)map->inside);
}
