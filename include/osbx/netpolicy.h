/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * netpolicy - where a sandbox may connect to: a default action and ordered rules, the first match
 * decides.
 *
 * A target is a name ("host.test": itself alone), "*.name" (any depth below, not name itself), an
 * address, or a prefix, each with an optional
 * ":PORT[/tcp|udp]" ("[v6]:port"). Names are compared without case and trailing dot, in their ASCII
 * form (IDNA 2008 through punycode; what is no host name is refused). "*" sets the default action
 * and is no rule.
 *
 * An address that is not public (netaddr_kind) or the host's own is reached only by a rule with an
 * address or prefix that allows it, whatever names or the default action say. So a name that
 * answers with 10.0.0.1 needs two rules: users.md's DNS rebinding is closed by default. Such a rule
 * is meant for such addresses: no prefix that holds a public one ("0.0.0.0/0") allows a private
 * one, and one of the host's own that is public must be given itself. NETADDR_NOWHERE is never
 * allowed.
 */
#ifndef OSBX_NETPOLICY_H
#define OSBX_NETPOLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/json.h>
#include <osbx/netaddr.h>
#include <osbx/span.h>

#define NETPOLICY_RULES_MAX  4096
#define NETPOLICY_NAME_MAX   253
#define NETPOLICY_TARGET_MAX 280 /* as written: a name, port and protocol */

enum netpolicy_action {
	NETPOLICY_DENY,
	NETPOLICY_ALLOW,
	NETPOLICY_ACTION_COUNT
};
enum netpolicy_proto {
	NETPOLICY_ANY,
	NETPOLICY_TCP,
	NETPOLICY_UDP,
	NETPOLICY_PROTO_COUNT
};
enum netpolicy_kind {
	NETPOLICY_NAME,
	NETPOLICY_BELOW,
	NETPOLICY_PREFIX,
	NETPOLICY_KIND_COUNT
};

struct netpolicy_rule {
	enum netpolicy_action action;
	enum netpolicy_kind kind;
	enum netpolicy_proto proto; /* ANY unless a port is given with one */
	uint16_t port;              /* 0: all */
	char *target;               /* as written, for people and for replies; owned */
	char *name;                 /* NAME, BELOW ("name" of "*.name"): normal form; owned */
	struct netprefix prefix;    /* PREFIX */
};

struct netpolicy {
	enum netpolicy_action fallback; /* defaultAction */
	size_t n;
	struct netpolicy_rule *rules;
};

/* Why something is refused or let through, for logs. */
#define NETPOLICY_BY_DEFAULT  (-1)
#define NETPOLICY_BY_RESERVED (-2) /* not a public address, and no rule of its own */
#define NETPOLICY_BY_PORT     (-3) /* NETPOLICY_DOT, and no rule with that port */

/* DNS over TLS (RFC 7858): a resolver past the one that knows the policy. Closed unless a rule
 * names the port. */
#define NETPOLICY_DOT 853

struct netpolicy_verdict {
	bool allowed;
	int rule; /* index, or NETPOLICY_BY_* */
};

/* Allow all that is public: what a sandbox has that asks for nothing. */
void netpolicy_init(struct netpolicy *p) NONNULL(1);
void netpolicy_done(struct netpolicy *p);
AUTO_DEFINE(netpolicy, struct netpolicy, netpolicy_done);
void netpolicy_copy(const struct netpolicy *from, struct netpolicy *out) NONNULL(1, 2);

/* Append a rule; "*" sets the fallback instead. ERRC_INVALID names the target and what is wrong
 * with it, ERRC_LIMIT. */
int netpolicy_add(struct netpolicy *p, enum netpolicy_action action, const char *target,
		struct error *e) MUST_CHECK NONNULL(1, 3, 4);
/* From the contract's {"defaultAction":…,"egress":[{"action","target"}]}: a missing defaultAction
 * is deny, a missing action is deny, unknown fields are ignored; null and {} are deny without
 * rules. The error begins with the JSON path ("egress[2].target: …"). *out is untouched on failure.
 */
int netpolicy_parse(const struct json *v, struct netpolicy *out, struct error *e) MUST_CHECK
		NONNULL(2, 3);
/* The same object; "egress" is always an array. */
void netpolicy_format(const struct netpolicy *p, struct json_writer *w, const char *name)
		NONNULL(1, 2);
/* PATCH: v is an array of rules; they come first, duplicates by target (its normal form) drop out,
 * the first one stays; fallback is kept. "*" sets it. An empty array is ERRC_INVALID. */
int netpolicy_patch(struct netpolicy *p, const struct json *v, struct error *e) MUST_CHECK
		NONNULL(1, 3);
/* DELETE: v is an array of at least one target. *out_n: how many rules went. */
int netpolicy_delete(struct netpolicy *p, const struct json *v, size_t *out_n,
		struct error *e) MUST_CHECK NONNULL(1, 3, 4);
/* "allow_all" (nothing is denied), "deny_all" (nothing is allowed), else "enforcing". */
const char *netpolicy_mode(const struct netpolicy *p) NONNULL(1);

/* The normal form of a name: lower case, no trailing dot, IDN to "xn--". 0, or -EINVAL for what is
 * no host name ('_' is taken, RFC 2782). */
int netpolicy_name(struct span text, char out[NETPOLICY_NAME_MAX + 1]) MUST_CHECK;

/* May this name (normal form) be asked for? True as soon as an allow rule could let a connection to
 * it through: port rules count. */
struct netpolicy_verdict netpolicy_ask(const struct netpolicy *p, const char *name) NONNULL(1, 2);

struct netpolicy_flow {
	struct netaddr addr;
	uint16_t port;
	enum netpolicy_proto proto;
	bool is_own;              /* an address of the host itself */
	const char *const *names; /* normal forms that count for this connection: those learned for
				     addr, or the one the client named; may be NULL */
	size_t names_n;
};

/* May this connection be made? Of several names each is judged alone, and one is enough. */
struct netpolicy_verdict netpolicy_check(
		const struct netpolicy *p, const struct netpolicy_flow *flow) NONNULL(1, 2);
/* May this address be reached by its rules alone (names do not count): for the one who opens the
 * socket, and does not trust who knows the names. Wherever netpolicy_check allows something this
 * does; a rule that allows a name is one that allows it for all public addresses. */
bool netpolicy_may_dial(const struct netpolicy *p, const struct netaddr *a, bool is_own,
		uint16_t port, enum netpolicy_proto proto) NONNULL(1, 2);
/* May this address be in an answer to the sandbox: could a connection to it be allowed, on some
 * port? */
bool netpolicy_may_resolve(const struct netpolicy *p, const struct netaddr *a) NONNULL(1, 2);

#endif
