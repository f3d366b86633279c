/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * One table, the same for every sandbox, in one transaction: a few hundred bytes of netlink that
 * are written here from a table, so that neither nft(8) nor its library is needed to run or to
 * build osbx.
 *
 *     chain own        destination 127.0.0.0/8, ::1 or the sandbox's own addresses: accept
 *     chain nat        (nat, output) jump own; DNS to netd's resolver; all TCP to netd's relay
 *     chain out        (filter, output, policy drop) jump own; what nat has led to netd, UDP and
 *                      echo requests: accept; TCP: reset; all else: ICMP "administratively
 *                      prohibited", which a program sees as EPERM or EHOSTUNREACH at once
 *     chain in         (filter, prerouting, policy accept) jump own; what nat has led to netd:
 *                      accept; UDP: to netd's socket, its destination as it is (tproxy), which a
 *                      nat of UDP would not tell, and while there is none it is prohibited, too
 *                      (reject before routing: Linux 5.9); echo requests, of which netd has a
 *                      copy by then: drop, for the kernel would answer for all the world
 *
 * The reply of a connection that was led to netd has the same mark in conntrack (IPS_DST_NAT), so
 * both ways are accepted by one rule. There is no rule for "established" connections: none begins
 * that is not own or led to netd.
 *
 * While netd is down its ports are closed, so connections are refused: the rules fail closed, and
 * without any rules nothing leads out of the namespace either (netd_links.c).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include <osbx/netaddr.h>
#include <osbx/netd.h>

#include "netd_links.h"
#include "netd_netlink.h"

/* linux/netfilter.h does not go together with the headers of every C library. */
#define FAMILY_INET     1 /* NFPROTO_INET */
#define FAMILY_IPV4     2
#define FAMILY_IPV6     10
#define VERDICT_DROP    0   /* NF_DROP */
#define VERDICT_OK      1   /* NF_ACCEPT */
#define HOOK_INPUT      0   /* NF_INET_PRE_ROUTING */
#define HOOK_OUTPUT     3   /* NF_INET_LOCAL_OUT */
#define ECHO4           8   /* ICMP_ECHO */
#define ECHO6           128 /* ICMPV6_ECHO_REQUEST */
#define ANY             0
#define PRIORITY_NAT    (-100)
#define PRIORITY_MANGLE (-150)

#define TABLE     "osbx"
#define CHAIN_OWN "own"
#define CHAIN_NAT "nat"
#define CHAIN_OUT "out"
#define CHAIN_IN  "in"

enum action {
	ACTION_ACCEPT,
	ACTION_JUMP_OWN,
	ACTION_RELAY,
	ACTION_DNS,
	ACTION_UDP,
	ACTION_DROP,
	ACTION_RESET,
	ACTION_PROHIBIT,
	ACTION_COUNT,
};

struct rule {
	const char *chain;
	uint8_t family;   /* FAMILY_IPV4 …, ANY */
	uint8_t protocol; /* IPPROTO_*, ANY */
	uint16_t port;    /* destination, ANY */
	uint8_t icmp;     /* type, ANY */
	const char *to;   /* destination "ADDR/BITS", NULL: any */
	bool is_led_here; /* conntrack knows it as one that was led elsewhere */
	enum action action;
};

static const struct rule rules[] = {
	{ CHAIN_OWN, FAMILY_IPV4, .to = "127.0.0.0/8", .action = ACTION_ACCEPT },
	{ CHAIN_OWN, FAMILY_IPV4, .to = NETD_SELF4, .action = ACTION_ACCEPT },
	{ CHAIN_OWN, FAMILY_IPV6, .to = "::1", .action = ACTION_ACCEPT },
	{ CHAIN_OWN, FAMILY_IPV6, .to = NETD_SELF6, .action = ACTION_ACCEPT },
	{ CHAIN_NAT, .action = ACTION_JUMP_OWN },
	{ CHAIN_NAT, FAMILY_IPV4, IPPROTO_UDP, 53, .action = ACTION_DNS },
	{ CHAIN_NAT, FAMILY_IPV4, IPPROTO_TCP, 53, .action = ACTION_DNS },
	{ CHAIN_NAT, FAMILY_IPV4, IPPROTO_TCP, .action = ACTION_RELAY },
	{ CHAIN_NAT, FAMILY_IPV6, IPPROTO_UDP, 53, .action = ACTION_DNS },
	{ CHAIN_NAT, FAMILY_IPV6, IPPROTO_TCP, 53, .action = ACTION_DNS },
	{ CHAIN_NAT, FAMILY_IPV6, IPPROTO_TCP, .action = ACTION_RELAY },
	{ CHAIN_OUT, .action = ACTION_JUMP_OWN },
	{ CHAIN_OUT, .is_led_here = true, .action = ACTION_ACCEPT },
	/* To many at once, and what is no address of anybody. */
	{ CHAIN_OUT, FAMILY_IPV4, .to = "224.0.0.0/3", .action = ACTION_PROHIBIT },
	{ CHAIN_OUT, FAMILY_IPV6, .to = "ff00::/8", .action = ACTION_PROHIBIT },
	{ CHAIN_OUT, ANY, IPPROTO_UDP, .action = ACTION_ACCEPT },
	{ CHAIN_OUT, FAMILY_IPV4, IPPROTO_ICMP, .icmp = ECHO4, .action = ACTION_ACCEPT },
	{ CHAIN_OUT, FAMILY_IPV6, IPPROTO_ICMPV6, .icmp = ECHO6, .action = ACTION_ACCEPT },
	{ CHAIN_OUT, ANY, IPPROTO_TCP, .action = ACTION_RESET },
	{ CHAIN_OUT, .action = ACTION_PROHIBIT },
	{ CHAIN_IN, .action = ACTION_JUMP_OWN },
	{ CHAIN_IN, .is_led_here = true, .action = ACTION_ACCEPT },
	{ CHAIN_IN, FAMILY_IPV4, IPPROTO_UDP, .action = ACTION_UDP },
	{ CHAIN_IN, FAMILY_IPV6, IPPROTO_UDP, .action = ACTION_UDP },
	{ CHAIN_IN, ANY, IPPROTO_UDP, .action = ACTION_PROHIBIT },
	{ CHAIN_IN, FAMILY_IPV4, IPPROTO_ICMP, .icmp = ECHO4, .action = ACTION_DROP },
	{ CHAIN_IN, FAMILY_IPV6, IPPROTO_ICMPV6, .icmp = ECHO6, .action = ACTION_DROP },
};

struct chain {
	const char *name;
	const char *type; /* NULL: only jumped to */
	uint32_t hook;
	int32_t priority;
	uint32_t policy;
};

static const struct chain chains[] = {
	{ .name = CHAIN_OWN },
	{ CHAIN_NAT, "nat", HOOK_OUTPUT, PRIORITY_NAT, VERDICT_OK },
	{ CHAIN_OUT, "filter", HOOK_OUTPUT, 0, VERDICT_DROP },
	{ CHAIN_IN, "filter", HOOK_INPUT, PRIORITY_MANGLE, VERDICT_OK },
};

static void begin(struct netlink *nl, uint16_t type, uint16_t flags)
{
	const struct nfgenmsg head = { .nfgen_family = FAMILY_INET };

	netlink_begin(nl, (NFNL_SUBSYS_NFTABLES << 8) | type, flags, &head, sizeof(head));
}

static void batch_mark(struct netlink *nl, uint16_t type)
{
	const struct nfgenmsg head = { .res_id = htons(NFNL_SUBSYS_NFTABLES) };

	netlink_begin(nl, type, 0, &head, sizeof(head));
	netlink_end(nl);
}

static void chain_add(struct netlink *nl, const struct chain *c)
{
	begin(nl, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	netlink_put_str(nl, NFTA_CHAIN_TABLE, TABLE);
	netlink_put_str(nl, NFTA_CHAIN_NAME, c->name);
	if (c->type) {
		size_t hook = netlink_nest(nl, NFTA_CHAIN_HOOK);

		netlink_put_be32(nl, NFTA_HOOK_HOOKNUM, c->hook);
		netlink_put_be32(nl, NFTA_HOOK_PRIORITY, (uint32_t)c->priority);
		netlink_nest_end(nl, hook);
		netlink_put_be32(nl, NFTA_CHAIN_POLICY, c->policy);
		netlink_put_str(nl, NFTA_CHAIN_TYPE, c->type);
	}
	netlink_end(nl);
}

/* An expression of a rule: two nests. */
struct expr {
	size_t element;
	size_t data;
};

static struct expr expr_begin(struct netlink *nl, const char *name)
{
	struct expr x = { .element = netlink_nest(nl, NFTA_LIST_ELEM) };

	netlink_put_str(nl, NFTA_EXPR_NAME, name);
	x.data = netlink_nest(nl, NFTA_EXPR_DATA);
	return x;
}

static void expr_end(struct netlink *nl, struct expr x)
{
	netlink_nest_end(nl, x.data);
	netlink_nest_end(nl, x.element);
}

static void value_put(struct netlink *nl, uint16_t type, const void *value, size_t n)
{
	size_t nest = netlink_nest(nl, type);

	netlink_put(nl, NFTA_DATA_VALUE, value, n);
	netlink_nest_end(nl, nest);
}

static void expr_compare(struct netlink *nl, uint32_t op, const void *value, size_t n)
{
	struct expr x = expr_begin(nl, "cmp");

	netlink_put_be32(nl, NFTA_CMP_SREG, NFT_REG_1);
	netlink_put_be32(nl, NFTA_CMP_OP, op);
	value_put(nl, NFTA_CMP_DATA, value, n);
	expr_end(nl, x);
}

static void expr_mask(struct netlink *nl, const void *mask, size_t n)
{
	static const uint8_t zero[16];
	struct expr x = expr_begin(nl, "bitwise");

	netlink_put_be32(nl, NFTA_BITWISE_SREG, NFT_REG_1);
	netlink_put_be32(nl, NFTA_BITWISE_DREG, NFT_REG_1);
	netlink_put_be32(nl, NFTA_BITWISE_LEN, (uint32_t)n);
	value_put(nl, NFTA_BITWISE_MASK, mask, n);
	value_put(nl, NFTA_BITWISE_XOR, zero, n);
	expr_end(nl, x);
}

/* One byte of what the kernel knows of the packet. */
static void match_meta(struct netlink *nl, uint32_t key, uint8_t value)
{
	struct expr x = expr_begin(nl, "meta");

	netlink_put_be32(nl, NFTA_META_DREG, NFT_REG_1);
	netlink_put_be32(nl, NFTA_META_KEY, key);
	expr_end(nl, x);
	expr_compare(nl, NFT_CMP_EQ, &value, sizeof(value));
}

static void expr_payload(struct netlink *nl, uint32_t base, uint32_t offset, uint32_t n)
{
	struct expr x = expr_begin(nl, "payload");

	netlink_put_be32(nl, NFTA_PAYLOAD_DREG, NFT_REG_1);
	netlink_put_be32(nl, NFTA_PAYLOAD_BASE, base);
	netlink_put_be32(nl, NFTA_PAYLOAD_OFFSET, offset);
	netlink_put_be32(nl, NFTA_PAYLOAD_LEN, n);
	expr_end(nl, x);
}

static void match_port(struct netlink *nl, uint16_t port)
{
	uint16_t be = htons(port);

	expr_payload(nl, NFT_PAYLOAD_TRANSPORT_HEADER, 2, sizeof(be));
	expr_compare(nl, NFT_CMP_EQ, &be, sizeof(be));
}

static void match_icmp(struct netlink *nl, uint8_t type)
{
	expr_payload(nl, NFT_PAYLOAD_TRANSPORT_HEADER, 0, sizeof(type));
	expr_compare(nl, NFT_CMP_EQ, &type, sizeof(type));
}

static void match_destination(struct netlink *nl, const char *prefix)
{
	uint8_t mask[16] = { 0 };
	struct netprefix p = { .bits = 0 };

	/* Constants: the unit test loads them. */
	if (netprefix_parse(span_of(prefix), &p) < 0) {
		return;
	}
	uint32_t n = p.addr.family == 4 ? 4 : 16;

	for (unsigned int i = 0; i < p.bits; i++) {
		mask[i / 8] |= (uint8_t)(0x80 >> (i % 8));
	}
	expr_payload(nl, NFT_PAYLOAD_NETWORK_HEADER, n == 4 ? 16 : 24, n);
	if (p.bits < n * 8) {
		expr_mask(nl, mask, n);
	}
	expr_compare(nl, NFT_CMP_EQ, p.addr.bytes, n);
}

static void match_led_here(struct netlink *nl)
{
	const uint32_t status = IPS_DST_NAT;
	const uint32_t none = 0;
	struct expr x = expr_begin(nl, "ct");

	netlink_put_be32(nl, NFTA_CT_DREG, NFT_REG_1);
	netlink_put_be32(nl, NFTA_CT_KEY, NFT_CT_STATUS);
	expr_end(nl, x);
	expr_mask(nl, &status, sizeof(status));
	expr_compare(nl, NFT_CMP_NEQ, &none, sizeof(none));
}

static void action_verdict(struct netlink *nl, int32_t code, const char *chain)
{
	struct expr x = expr_begin(nl, "immediate");

	netlink_put_be32(nl, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	size_t data = netlink_nest(nl, NFTA_IMMEDIATE_DATA);
	size_t verdict = netlink_nest(nl, NFTA_DATA_VERDICT);

	netlink_put_be32(nl, NFTA_VERDICT_CODE, (uint32_t)code);
	if (chain) {
		netlink_put_str(nl, NFTA_VERDICT_CHAIN, chain);
	}
	netlink_nest_end(nl, verdict);
	netlink_nest_end(nl, data);
	expr_end(nl, x);
}

static void expr_set(struct netlink *nl, uint32_t reg, const void *value, size_t n)
{
	struct expr x = expr_begin(nl, "immediate");

	netlink_put_be32(nl, NFTA_IMMEDIATE_DREG, reg);
	value_put(nl, NFTA_IMMEDIATE_DATA, value, n);
	expr_end(nl, x);
}

/* Registers 1 and 2: netd's address and one of its ports. */
static void expr_home(struct netlink *nl, uint8_t family, uint16_t port)
{
	uint16_t be = htons(port);
	struct netaddr home = { .family = 0 };

	/* A constant: the unit test loads it. */
	if (netaddr_parse(span_of(family == FAMILY_IPV4 ? NETD_HOME4 : NETD_HOME6), &home) == 0) {
		expr_set(nl, NFT_REG_1, home.bytes, family == FAMILY_IPV4 ? 4 : 16);
		expr_set(nl, NFT_REG_2, &be, sizeof(be));
	}
}

/* To netd's socket, past all others. */
static void action_udp(struct netlink *nl, uint8_t family)
{
	expr_home(nl, family, NETD_PORT_UDP);
	struct expr x = expr_begin(nl, "tproxy");

	netlink_put_be32(nl, NFTA_TPROXY_FAMILY, family);
	netlink_put_be32(nl, NFTA_TPROXY_REG_ADDR, NFT_REG_1);
	netlink_put_be32(nl, NFTA_TPROXY_REG_PORT, NFT_REG_2);
	expr_end(nl, x);
	action_verdict(nl, VERDICT_OK, NULL);
}

/* To netd. */
static void action_lead(struct netlink *nl, uint8_t family, uint16_t port)
{
	expr_home(nl, family, port);
	struct expr x = expr_begin(nl, "nat");

	netlink_put_be32(nl, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	netlink_put_be32(nl, NFTA_NAT_FAMILY, family);
	netlink_put_be32(nl, NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
	netlink_put_be32(nl, NFTA_NAT_REG_PROTO_MIN, NFT_REG_2);
	expr_end(nl, x);
}

static void action_reject(struct netlink *nl, uint32_t type, uint8_t code)
{
	struct expr x = expr_begin(nl, "reject");

	netlink_put_be32(nl, NFTA_REJECT_TYPE, type);
	netlink_put(nl, NFTA_REJECT_ICMP_CODE, &code, sizeof(code));
	expr_end(nl, x);
}

static void action_add(struct netlink *nl, const struct rule *r)
{
	switch (r->action) {
	case ACTION_ACCEPT:
		action_verdict(nl, VERDICT_OK, NULL);
		break;
	case ACTION_JUMP_OWN:
		action_verdict(nl, NFT_JUMP, CHAIN_OWN);
		break;
	case ACTION_RELAY:
		action_lead(nl, r->family, NETD_PORT_RELAY);
		break;
	case ACTION_DNS:
		action_lead(nl, r->family, NETD_PORT_DNS);
		break;
	case ACTION_UDP:
		action_udp(nl, r->family);
		break;
	case ACTION_DROP:
		action_verdict(nl, VERDICT_DROP, NULL);
		break;
	case ACTION_RESET:
		action_reject(nl, NFT_REJECT_TCP_RST, 0);
		break;
	case ACTION_PROHIBIT:
		action_reject(nl, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
		break;
	case ACTION_COUNT:
		break;
	}
}

static void rule_add(struct netlink *nl, const struct rule *r, uint16_t flags)
{
	begin(nl, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | flags);
	netlink_put_str(nl, NFTA_RULE_TABLE, TABLE);
	netlink_put_str(nl, NFTA_RULE_CHAIN, r->chain);
	size_t exprs = netlink_nest(nl, NFTA_RULE_EXPRESSIONS);

	if (r->family != ANY) {
		match_meta(nl, NFT_META_NFPROTO, r->family);
	}
	if (r->protocol != ANY) {
		match_meta(nl, NFT_META_L4PROTO, r->protocol);
	}
	if (r->port != ANY) {
		match_port(nl, r->port);
	}
	if (r->icmp != ANY) {
		match_icmp(nl, r->icmp);
	}
	if (r->to) {
		match_destination(nl, r->to);
	}
	if (r->is_led_here) {
		match_led_here(nl);
	}
	action_add(nl, r);
	netlink_nest_end(nl, exprs);
	netlink_end(nl);
}

int rules_load(struct error *e)
{
	struct netlink nl = { .n = 0 };
	uint32_t seq = 0;

	batch_mark(&nl, NFNL_MSG_BATCH_BEGIN);
	begin(&nl, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
	netlink_put_str(&nl, NFTA_TABLE_NAME, TABLE);
	netlink_end(&nl);
	for (size_t i = 0; i < ARRAY_SIZE(chains); i++) {
		chain_add(&nl, &chains[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		rule_add(&nl, &rules[i], i + 1 == ARRAY_SIZE(rules) ? NLM_F_ACK : 0);
	}
	uint32_t acked = nl.seq;

	batch_mark(&nl, NFNL_MSG_BATCH_END);
	int r = netlink_run(&nl, NETLINK_NETFILTER, acked, &seq);

	/* Of an earlier netd: nobody else in the namespace may change them. */
	if (r == 0 || r == -EEXIST) {
		return 0;
	}
	(void)error_sys(e, -r, "load the rules of the private network (message %u)", seq);
	return error_hint(e,
			"the kernel needs nf_tables with nat, conntrack, tproxy and reject for "
			"inet (modules nf_tables, nft_chain_nat, nft_ct, nft_tproxy, "
			"nft_reject_inet); without them use --network none");
}
