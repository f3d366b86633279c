/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "netpolicy_internal.h"

static int refuse(struct error *e, const char *target, const char *what)
{
	char shown[120];

	str_printable(target, shown, sizeof(shown));
	return error_set(e, ERRC_INVALID, "\"%s\" %s", shown, what);
}

static const char *const protos[NETPOLICY_PROTO_COUNT] = {
	[NETPOLICY_TCP] = "tcp",
	[NETPOLICY_UDP] = "udp",
};

const char *netpolicy_proto_name(enum netpolicy_proto proto)
{
	return protos[proto];
}

/* "PORT" or "PORT/tcp". */
static int parse_port(struct span text, struct netpolicy_rule *r)
{
	struct span digits = { .p = NULL };
	uint32_t port = 0;

	(void)span_next(&text, '/', &digits);
	if (digits.n == 0 || digits.n > 5 || digits.p[0] == '0') {
		return -EINVAL;
	}
	for (size_t i = 0; i < digits.n; i++) {
		if (digits.p[i] < '0' || digits.p[i] > '9') {
			return -EINVAL;
		}
		port = port * 10 + (uint32_t)(digits.p[i] - '0');
	}
	if (port > UINT16_MAX) {
		return -EINVAL;
	}
	r->port = (uint16_t)port;
	if (!text.p) {
		return 0;
	}
	for (size_t i = NETPOLICY_TCP; i < NETPOLICY_PROTO_COUNT; i++) {
		if (text.n == 3 && strncasecmp(text.p, protos[i], 3) == 0) {
			r->proto = (enum netpolicy_proto)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Cut text into where and, if there is one, the port: out_port->p is NULL without. */
static int split(struct span text, struct span *out_where, struct span *out_port)
{
	const char *colon = memchr(text.p, ':', text.n);

	*out_port = (struct span){ .p = NULL };
	if (text.n > 0 && text.p[0] == '[') {
		const char *end = memchr(text.p, ']', text.n);

		if (!end || !colon || colon > end) {
			return -EINVAL;
		}
		const struct span rest = span_from(text, (size_t)(end - text.p) + 1);

		if (rest.n > 0 && rest.p[0] != ':') {
			return -EINVAL;
		}
		*out_where = (struct span){ .p = text.p + 1, .n = (size_t)(end - text.p) - 1 };
		if (rest.n > 0) {
			*out_port = span_from(rest, 1);
		}
		return 0;
	}
	*out_where = text;
	/* Two colons and no bracket: an IPv6 address. */
	if (colon && !memchr(colon + 1, ':', text.n - (size_t)(colon - text.p) - 1)) {
		out_where->n = (size_t)(colon - text.p);
		*out_port = span_from(text, out_where->n + 1);
	}
	return 0;
}

/* Connections are known by the address that is meant, never by a mapped one. */
static void unmap(struct netprefix *p)
{
	struct netaddr a = p->addr;

	netaddr_unmap(&a);
	if (a.family != p->addr.family && p->bits >= 96) {
		p->addr = a;
		p->bits -= 96;
	}
}

static bool is_address_like(struct span where)
{
	if (memchr(where.p, ':', where.n) || memchr(where.p, '/', where.n)) {
		return true;
	}
	for (size_t i = 0; i < where.n; i++) {
		if (where.p[i] != '.' && (where.p[i] < '0' || where.p[i] > '9')) {
			return false;
		}
	}
	return where.n > 0;
}

static int parse_where(struct span where, struct netpolicy_rule *r)
{
	static const char below[] = "*.";
	char name[NETPOLICY_NAME_MAX + 1];

	if (netprefix_parse(where, &r->prefix) == 0) {
		unmap(&r->prefix);
		r->kind = NETPOLICY_PREFIX;
		return 0;
	}
	r->kind = NETPOLICY_NAME;
	if (span_has_prefix(where, span_of(below))) {
		r->kind = NETPOLICY_BELOW;
		where = span_from(where, sizeof(below) - 1);
	}
	if (netpolicy_name(where, name) < 0) {
		return -EINVAL;
	}
	r->name = mem_strdup(name);
	return 0;
}

int netpolicy_target(const char *target, struct netpolicy_rule *out, struct error *e)
{
	struct netpolicy_rule r = { .action = NETPOLICY_DENY };
	struct span text = span_of(target);
	struct span where = { .p = NULL };
	struct span port = { .p = NULL };

	while (text.n > 0 && strchr(" \t", text.p[0])) {
		text = span_from(text, 1);
	}
	while (text.n > 0 && strchr(" \t", text.p[text.n - 1])) {
		text.n--;
	}
	if (text.n == 0) {
		return error_set(e, ERRC_INVALID, "is empty");
	}
	if (text.n > NETPOLICY_TARGET_MAX) {
		return refuse(e, target, "is too long");
	}
	if (memmem(text.p, text.n, "://", 3)) {
		return refuse(e, target, "is a URL: give its host name alone");
	}
	if (split(text, &where, &port) < 0) {
		return refuse(e, target, "has brackets that are not those of [IPV6-ADDRESS]:PORT");
	}
	if (port.p && parse_port(port, &r) < 0) {
		return refuse(e, target,
				"has no port 1 to 65535, with /tcp or /udp or nothing behind");
	}
	if (span_eq(where, span_of("*"))) {
		return refuse(e, target, "stands for all, which has no port");
	}
	if (parse_where(where, &r) < 0) {
		return refuse(e, target,
				is_address_like(where)
						? "is no address, and no prefix without bits "
						  "behind its length"
						: "is no host name");
	}
	r.target = mem_dup(text.p, text.n);
	*out = r;
	return 0;
}
