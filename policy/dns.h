/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * dns - messages of the domain name system (RFC 1035, 6891, 8914), as far as a resolver under a
 * policy needs them. Knows no socket and no clock.
 *
 * Nothing of an upstream message is passed on as it came. A question is read into a struct and
 * asked anew; an answer is read into records (the aliases that lead from the asked name, then the
 * records of the asked type, or the SOA of a negative answer), and each reply is built from them.
 * So what reaches the sandbox is well formed, and holds no record that nobody asked for.
 */
#ifndef OSBX_POLICY_DNS_H
#define OSBX_POLICY_DNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/netaddr.h>
#include <osbx/netpolicy.h>
#include <osbx/span.h>

#define DNS_MESSAGE_MAX 65535
#define DNS_UDP_MIN     512
#define DNS_UDP_MAX     1232 /* what we ask for, and give at most: no fragments on any path */
#define DNS_WIRE_MAX    255  /* a name in labels */
#define DNS_ADDRS_MAX   256  /* of one answer; more are dropped */
#define DNS_ALIASES_MAX 16   /* CNAME after CNAME; more is DNS_SERVFAIL */
#define DNS_TTL_MAX     86400

enum dns_type {
	DNS_A = 1,
	DNS_NS = 2,
	DNS_CNAME = 5,
	DNS_SOA = 6,
	DNS_PTR = 12,
	DNS_MX = 15,
	DNS_TXT = 16,
	DNS_AAAA = 28,
	DNS_SRV = 33,
	DNS_NAPTR = 35,
	DNS_OPT = 41,
	DNS_SSHFP = 44,
	DNS_TLSA = 52,
	DNS_SVCB = 64,
	DNS_HTTPS = 65,
	DNS_CAA = 257,
};

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16, /* only as an EDNS reply */
};

/* Extended errors, RFC 8914. */
#define DNS_EDE_NONE        0 /* "other": never sent */
#define DNS_EDE_BLOCKED     15
#define DNS_EDE_FILTERED    17
#define DNS_EDE_UNREACHABLE 22 /* no resolver answered */

struct dns_query {
	uint16_t id;
	uint16_t type;
	bool wants_recursion;
	bool is_unchecked; /* the CD bit, only to be given back */
	bool has_edns;
	uint16_t udp_max; /* bytes of a reply by UDP: DNS_UDP_MIN..DNS_UDP_MAX */
	char name[NETPOLICY_NAME_MAX +
			1]; /* normal form, "" when it is no host name (or the root) */
	uint16_t class;
	uint8_t wire_n;
	uint8_t wire[DNS_WIRE_MAX]; /* the name as it was asked, its case kept */
};

/* Read a question. 0; an enum dns_rcode (> 0) that is to be replied with (out is good for that); or
 * -EBADMSG: no question at all, drop it. */
int dns_query_read(struct span message, struct dns_query *out) MUST_CHECK NONNULL(2);
/* Is a type one that is asked upstream? All others (SVCB and HTTPS, which carry addresses, ports
 * and ECH keys past every rule; ANY, transfers, DNSSEC) are answered "no data". */
bool dns_type_is_asked(uint16_t type);
/* The question for upstream, with an id of the caller's choice; without EDNS for a server that does
 * not know it. out is emptied first. The length never passes 300 bytes. */
void dns_ask(const struct dns_query *q, uint16_t id, bool with_edns, struct buf *out) NONNULL(1, 4);

/* An answer that can be kept; made by dns_answer_read, or by hand with rcode and the extended error
 * alone. */
struct dns_answer {
	enum dns_rcode rcode;
	uint16_t ede;          /* DNS_EDE_* */
	const char *ede_text;  /* of static duration, or the caller's for the time of the reply */
	uint32_t ttl;          /* seconds it may be kept: the least of its records, 0: not at all */
	uint16_t answers_n;    /* records of the answer section */
	uint16_t authority_n;  /* behind them: 0 or 1, the SOA */
	size_t records_n;      /* bytes */
	uint8_t *records;      /* owned; the asked name is a pointer to offset 12 */
	size_t addrs_n;        /* what A and AAAA records of the reply hold */
	struct netaddr *addrs; /* owned */
	size_t dropped_n;      /* addresses that keep() did not want */
};
void dns_answer_done(struct dns_answer *a);
AUTO_DEFINE(dns_answer, struct dns_answer, dns_answer_done);

/* Is this address to be in the answer? */
struct dns_filter {
	bool (*keep)(void *ctx, const struct netaddr *a);
	void *ctx;
};

/* Read what a resolver has sent for q, asked with id. 0 (look at rcode: the next resolver may know
 * better than DNS_SERVFAIL, DNS_REFUSED, DNS_NOTIMP and DNS_FORMERR); -EAGAIN: not an answer to
 * this question, wait on; -EMSGSIZE: truncated, ask again by TCP; -EBADMSG: malformed, or more than
 * DNS_ALIASES_MAX aliases. *out is untouched on failure; caller: dns_answer_done. */
int dns_answer_read(const struct dns_query *q, uint16_t id, struct span message,
		const struct dns_filter *filter, struct dns_answer *out) MUST_CHECK
		NONNULL(1, 4, 5);

/* The reply to q: its id and question, records whose TTL are less by age seconds (at least 0), the
 * extended error if q has EDNS. Longer than max bytes (q->udp_max, or DNS_MESSAGE_MAX by TCP): no
 * records and the TC bit. out is emptied first; its maximum must be at least DNS_MESSAGE_MAX. */
void dns_reply(const struct dns_query *q, const struct dns_answer *a, uint32_t age, size_t max,
		struct buf *out) NONNULL(1, 2, 5);

#endif
