/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/mem.h>
#include <osbx/netpolicy.h>
#include <osbx/str.h>

#include "../unit.h"

/* "deny: +allowed.test -other.test …": the fallback and rules. */
static void policy_of(const char *text, struct netpolicy *out)
{
	struct span rest = span_of(text);
	struct span word = { .p = NULL };

	netpolicy_init(out);
	while (span_next(&rest, ' ', &word)) {
		struct error e = ERROR_INIT;
		autofree char *rule = span_dup(word);

		if (word.n == 0) {
			continue;
		}
		ck_assert_msg(netpolicy_add(out, rule[0] == '+' ? NETPOLICY_ALLOW : NETPOLICY_DENY,
					      rule + 1, &e) == 0,
				"%s: %s", rule, e.text);
	}
}

static const struct {
	const char *text;
	enum netpolicy_kind kind;
	const char *what; /* name, or prefix as text */
	uint8_t bits;
	uint16_t port;
	enum netpolicy_proto proto;
} targets[] = {
	{ "host.test", NETPOLICY_NAME, "host.test", 0, 0, NETPOLICY_ANY },
	{ "HOST.Test.", NETPOLICY_NAME, "host.test", 0, 0, NETPOLICY_ANY },
	{ " host.test\t", NETPOLICY_NAME, "host.test", 0, 0, NETPOLICY_ANY },
	{ "*.host.test", NETPOLICY_BELOW, "host.test", 0, 0, NETPOLICY_ANY },
	{ "*.BÜCHER.test", NETPOLICY_BELOW, "xn--bcher-kva.test", 0, 0, NETPOLICY_ANY },
	{ "*.test:80", NETPOLICY_BELOW, "test", 0, 80, NETPOLICY_ANY },
	{ "host.test:443", NETPOLICY_NAME, "host.test", 0, 443, NETPOLICY_ANY },
	{ "host.test:443/tcp", NETPOLICY_NAME, "host.test", 0, 443, NETPOLICY_TCP },
	{ "host.test:53/UDP", NETPOLICY_NAME, "host.test", 0, 53, NETPOLICY_UDP },
	{ "host.test:65535", NETPOLICY_NAME, "host.test", 0, 65535, NETPOLICY_ANY },
	{ "192.0.2.1", NETPOLICY_PREFIX, "192.0.2.1", 32, 0, NETPOLICY_ANY },
	{ "192.0.2.1:8080", NETPOLICY_PREFIX, "192.0.2.1", 32, 8080, NETPOLICY_ANY },
	{ "192.0.2.0/24", NETPOLICY_PREFIX, "192.0.2.0", 24, 0, NETPOLICY_ANY },
	{ "192.0.2.0/24:443/tcp", NETPOLICY_PREFIX, "192.0.2.0", 24, 443, NETPOLICY_TCP },
	{ "0.0.0.0/0", NETPOLICY_PREFIX, "0.0.0.0", 0, 0, NETPOLICY_ANY },
	{ "2001:DB8::1", NETPOLICY_PREFIX, "2001:db8::1", 128, 0, NETPOLICY_ANY },
	{ "[2001:db8::1]", NETPOLICY_PREFIX, "2001:db8::1", 128, 0, NETPOLICY_ANY },
	{ "[2001:db8::1]:22", NETPOLICY_PREFIX, "2001:db8::1", 128, 22, NETPOLICY_ANY },
	{ "[2001:db8::/32]:22/tcp", NETPOLICY_PREFIX, "2001:db8::", 32, 22, NETPOLICY_TCP },
	{ "2001:db8::/32", NETPOLICY_PREFIX, "2001:db8::", 32, 0, NETPOLICY_ANY },
	{ "::/0", NETPOLICY_PREFIX, "::", 0, 0, NETPOLICY_ANY },
	{ "::ffff:192.0.2.1", NETPOLICY_PREFIX, "192.0.2.1", 32, 0, NETPOLICY_ANY },
	{ "::ffff:10.0.0.0/104", NETPOLICY_PREFIX, "10.0.0.0", 8, 0, NETPOLICY_ANY },
};

START_TEST(target_is_read)
{
	AUTO(netpolicy) struct netpolicy p = { .fallback = NETPOLICY_DENY };
	struct error e = ERROR_INIT;
	char text[NETADDR_TEXT_MAX];

	ck_assert_msg(netpolicy_add(&p, NETPOLICY_ALLOW, targets[_i].text, &e) == 0, "%s: %s",
			targets[_i].text, e.text);
	ck_assert_uint_eq(p.n, 1);
	const struct netpolicy_rule *r = &p.rules[0];

	ck_assert_int_eq(r->action, NETPOLICY_ALLOW);
	ck_assert_int_eq(r->kind, targets[_i].kind);
	ck_assert_uint_eq(r->port, targets[_i].port);
	ck_assert_int_eq(r->proto, targets[_i].proto);
	if (r->kind == NETPOLICY_PREFIX) {
		netaddr_format(&r->prefix.addr, text);
		ck_assert_str_eq(text, targets[_i].what);
		ck_assert_uint_eq(r->prefix.bits, targets[_i].bits);
		ck_assert_ptr_null(r->name);
	} else {
		ck_assert_str_eq(r->name, targets[_i].what);
	}
}
END_TEST

START_TEST(target_is_kept_as_written)
{
	AUTO(netpolicy) struct netpolicy p = { .fallback = NETPOLICY_DENY };

	policy_of("+HOST.Test.:443", &p);
	ck_assert_str_eq(p.rules[0].target, "HOST.Test.:443");
}
END_TEST

/* Target, and a word of what is said about it. */
static const char *const no_targets[][2] = {
	{ "", "empty" },
	{ " \t", "empty" },
	{ "https://host.test/", "URL" },
	{ "host.test/path", "address" },
	{ "host test", "host name" },
	{ "host..test", "host name" },
	{ "*host.test", "host name" },
	{ "a.*.test", "host name" },
	{ "*.*.test", "host name" },
	{ "*.", "host name" },
	{ "**", "host name" },
	{ "*:443", "port" },
	{ "host.test:", "port" },
	{ "host.test:0", "port" },
	{ "host.test:00443", "port" },
	{ "host.test:65536", "port" },
	{ "host.test:99999999999", "port" },
	{ "host.test:-1", "port" },
	{ "host.test:443/", "port" },
	{ "host.test:443/sctp", "port" },
	{ "host.test:443/tcp/udp", "port" },
	{ "host.test:443/tc", "port" },
	{ "host.test/tcp", "address" },
	{ ":443", "host name" },
	{ "1.2.3", "address" },
	{ "1.2.3.4.5", "address" },
	{ "1.2.3.256", "address" },
	{ "*.1.2.3.4", "host name" },
	{ "10.0.0.1/8", "bits behind" },
	{ "10.0.0.0/33", "address" },
	{ "2001:db8::1/32", "bits behind" },
	{ "2001:db8::1:443:", "address" },
	{ "fe80::1%eth0", "address" },
	{ "[2001:db8::1", "brackets" },
	{ "[2001:db8::1]443", "brackets" },
	{ "[192.0.2.1]:443", "brackets" },
	{ "[host.test]:443", "brackets" },
	{ "[]:443", "brackets" },
	{ "\xff", "host name" },
};

START_TEST(no_target)
{
	AUTO(netpolicy) struct netpolicy p = { .fallback = NETPOLICY_DENY };
	struct error e = ERROR_INIT;

	policy_of("+a.test", &p);
	ck_assert_int_eq(netpolicy_add(&p, NETPOLICY_ALLOW, no_targets[_i][0], &e), -1);
	ck_assert_int_eq(e.code, ERRC_INVALID);
	ck_assert_msg(strstr(e.text, no_targets[_i][1]), "%s: %s", no_targets[_i][0], e.text);
	ck_assert_uint_eq(p.n, 1);
}
END_TEST

START_TEST(target_too_long)
{
	AUTO(netpolicy) struct netpolicy p = { .fallback = NETPOLICY_DENY };
	struct error e = ERROR_INIT;
	char text[NETPOLICY_TARGET_MAX + 2];

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(netpolicy_add(&p, NETPOLICY_ALLOW, text, &e), -1);
	ck_assert_ptr_nonnull(strstr(e.text, "too long"));
}
END_TEST

START_TEST(too_many_rules)
{
	AUTO(netpolicy) struct netpolicy p = { .fallback = NETPOLICY_DENY };
	struct error e = ERROR_INIT;

	for (int i = 0; i < NETPOLICY_RULES_MAX; i++) {
		ck_assert_int_eq(netpolicy_add(&p, NETPOLICY_ALLOW, "a.test", &e), 0);
	}
	ck_assert_int_eq(netpolicy_add(&p, NETPOLICY_ALLOW, "a.test", &e), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
	ck_assert_uint_eq(p.n, NETPOLICY_RULES_MAX);
	error_clear(&e);
	ck_assert_int_eq(netpolicy_add(&p, NETPOLICY_ALLOW, "*", &e), 0);
	ck_assert_int_eq(p.fallback, NETPOLICY_ALLOW);
}
END_TEST

static const char *const modes[][2] = {
	{ "", "allow_all" },
	{ "-*", "deny_all" },
	{ "+*", "allow_all" },
	{ "-* +a.test", "enforcing" },
	{ "-* -a.test", "deny_all" },
	{ "+a.test", "allow_all" },
	{ "-a.test", "enforcing" },
	{ "-a.test -*", "deny_all" },
	{ "-* -a.test +b.test", "enforcing" },
};

START_TEST(mode_of)
{
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };

	policy_of(modes[_i][0], &p);
	ck_assert_str_eq(netpolicy_mode(&p), modes[_i][1]);
}
END_TEST

static const struct {
	const char *policy, *name;
	bool allowed;
	int rule;
} asks[] = {
	{ "", "a.test", true, NETPOLICY_BY_DEFAULT },
	{ "-*", "a.test", false, NETPOLICY_BY_DEFAULT },
	{ "-* +a.test", "a.test", true, 0 },
	{ "-* +a.test", "b.a.test", false, NETPOLICY_BY_DEFAULT },
	{ "-* +a.test", "aa.test", false, NETPOLICY_BY_DEFAULT },
	{ "-* +*.a.test", "a.test", false, NETPOLICY_BY_DEFAULT },
	{ "-* +*.a.test", "b.a.test", true, 0 },
	{ "-* +*.a.test", "c.b.a.test", true, 0 },
	{ "-* +*.a.test", "ba.test", false, NETPOLICY_BY_DEFAULT },
	{ "-* +*.a.test", "xa.test", false, NETPOLICY_BY_DEFAULT },
	{ "-b.test +*.test -*", "b.test", false, 0 },
	{ "+*.test -b.test -*", "b.test", true, 0 },
	{ "-b.test", "b.test", false, 0 },
	{ "-b.test", "a.test", true, NETPOLICY_BY_DEFAULT },
	/* Ports: one that is open is enough, one that is closed is not all. */
	{ "-* +a.test:443", "a.test", true, 0 },
	{ "-a.test:80", "a.test", true, NETPOLICY_BY_DEFAULT },
	{ "-* -a.test:80 +a.test", "a.test", true, 1 },
	{ "-* -a.test:80", "a.test", false, NETPOLICY_BY_DEFAULT },
	{ "-a.test +a.test:443", "a.test", false, 0 },
	/* Addresses say nothing about names. */
	{ "-* +0.0.0.0/0", "a.test", false, NETPOLICY_BY_DEFAULT },
	{ "-0.0.0.0/0", "a.test", true, NETPOLICY_BY_DEFAULT },
};

START_TEST(asking_for_a_name)
{
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };

	policy_of(asks[_i].policy, &p);
	const struct netpolicy_verdict v = netpolicy_ask(&p, asks[_i].name);

	ck_assert_msg(v.allowed == asks[_i].allowed && v.rule == asks[_i].rule, "%s, %s: %d %d",
			asks[_i].policy, asks[_i].name, v.allowed, v.rule);
}
END_TEST

#define RESERVED NETPOLICY_BY_RESERVED
#define DEFAULT  NETPOLICY_BY_DEFAULT

static const struct check {
	const char *policy;
	const char *where; /* address */
	uint16_t port;
	const char *names; /* of the connection, with blanks between */
	bool allowed;
	int rule;
	bool is_own;
	enum netpolicy_proto proto;
} checks[] = {
	/* the default */
	{ "", "203.0.113.1", 443, NULL, true, DEFAULT },
	{ "", "2001:db8::1", 443, "a.test", true, DEFAULT },
	{ "", "10.0.0.1", 443, NULL, false, RESERVED },
	{ "", "127.0.0.1", 443, "a.test", false, RESERVED },
	{ "", "169.254.169.254", 80, NULL, false, RESERVED },
	{ "", "::ffff:10.0.0.1", 443, NULL, false, RESERVED },
	{ "", "64:ff9b::10.0.0.1", 443, NULL, false, RESERVED },
	{ "", "::ffff:203.0.113.1", 443, NULL, true, DEFAULT },
	{ "", "203.0.113.1", 443, NULL, false, RESERVED, .is_own = true },
	{ "-*", "203.0.113.1", 443, NULL, false, DEFAULT },
	{ "-*", "10.0.0.1", 443, NULL, false, RESERVED },
	/* names */
	{ "-* +a.test", "203.0.113.1", 443, "a.test", true, 0 },
	{ "-* +a.test", "203.0.113.1", 443, "b.test", false, DEFAULT },
	{ "-* +a.test", "203.0.113.1", 443, NULL, false, DEFAULT },
	{ "-* +a.test", "203.0.113.1", 443, "b.test a.test", true, 0 },
	{ "-b.test", "203.0.113.1", 443, "b.test", false, 0 },
	{ "-b.test", "203.0.113.1", 443, "b.test a.test", true, DEFAULT },
	{ "-b.test -a.test", "203.0.113.1", 443, "b.test a.test", false, 0 },
	{ "-a.test +*.test -*", "203.0.113.1", 443, "a.test", false, 0 },
	{ "+*.test -a.test -*", "203.0.113.1", 443, "a.test", true, 0 },
	/* a name never opens what is not public */
	{ "+a.test", "10.0.0.1", 443, "a.test", false, RESERVED },
	{ "+a.test", "127.0.0.1", 443, "a.test", false, RESERVED },
	{ "+a.test", "203.0.113.1", 443, "a.test", false, RESERVED, .is_own = true },
	{ "-* +a.test +10.0.0.0/8", "10.0.0.1", 443, "a.test", true, 1 },
	{ "-a.test +10.0.0.0/8", "10.0.0.1", 443, "a.test", false, 0 },
	/* prefixes */
	{ "-* +203.0.113.0/24", "203.0.113.1", 443, NULL, true, 0 },
	{ "-* +203.0.113.0/24", "203.0.113.1", 443, "b.test", true, 0 },
	{ "-* +203.0.113.0/24", "203.0.114.1", 443, NULL, false, DEFAULT },
	{ "-203.0.113.0/24", "203.0.113.1", 443, NULL, false, 0 },
	{ "-203.0.113.0/24", "::ffff:203.0.113.1", 443, NULL, false, 0 },
	{ "-* +::ffff:203.0.113.1", "203.0.113.1", 443, NULL, true, 0 },
	{ "-203.0.113.1 +203.0.113.0/24 -*", "203.0.113.1", 443, NULL, false, 0 },
	{ "+203.0.113.1 -203.0.113.0/24", "203.0.113.1", 443, NULL, true, 0 },
	{ "+10.0.0.1", "10.0.0.1", 443, NULL, true, 0 },
	{ "+10.0.0.1", "10.0.0.2", 443, NULL, false, RESERVED },
	{ "+fd00::/8", "fd00::1", 443, NULL, true, 0 },
	{ "+127.0.0.1", "127.0.0.1", 5432, NULL, true, 0 },
	{ "+169.254.169.254:80", "169.254.169.254", 80, NULL, true, 0 },
	{ "+169.254.169.254:80", "169.254.169.254", 81, NULL, false, RESERVED },
	{ "-10.0.0.1 +10.0.0.0/8", "10.0.0.1", 443, NULL, false, 0 },
	/* all of the internet is not the host, nor its neighbours */
	{ "-* +0.0.0.0/0", "203.0.113.1", 443, NULL, true, 0 },
	{ "+0.0.0.0/0", "10.0.0.1", 443, NULL, false, RESERVED },
	{ "+0.0.0.0/1 +128.0.0.0/1", "127.0.0.1", 443, NULL, false, RESERVED },
	{ "+::/0", "fd00::1", 443, NULL, false, RESERVED },
	{ "+::/0 +64:ff9b::/96", "64:ff9b::10.0.0.1", 443, NULL, false, RESERVED },
	{ "+0.0.0.0/0", "203.0.113.1", 443, NULL, false, RESERVED, .is_own = true },
	{ "+203.0.113.0/24", "203.0.113.1", 443, NULL, false, RESERVED, .is_own = true },
	{ "+203.0.113.1", "203.0.113.1", 443, NULL, true, 0, .is_own = true },
	{ "+2001:db8::1", "2001:db8::1", 443, NULL, true, 0, .is_own = true },
	{ "+10.0.0.0/8", "10.0.0.1", 443, NULL, true, 0, .is_own = true },
	{ "-0.0.0.0/0", "10.0.0.1", 443, NULL, false, 0 },
	/* nowhere */
	{ "+0.0.0.0/8", "0.0.0.0", 443, NULL, false, RESERVED },
	{ "+0.0.0.0", "0.0.0.0", 443, "a.test", false, RESERVED },
	{ "+::", "::", 443, NULL, false, RESERVED },
	{ "+224.0.0.1", "224.0.0.1", 443, NULL, false, RESERVED },
	{ "+255.255.255.255", "255.255.255.255", 443, NULL, false, RESERVED },
	/* DNS over TLS */
	{ "", "203.0.113.1", 853, NULL, false, NETPOLICY_BY_PORT },
	{ "+203.0.113.1 +a.test", "203.0.113.1", 853, "a.test", false, NETPOLICY_BY_PORT },
	{ "+203.0.113.1 +a.test:853", "203.0.113.1", 853, "a.test", true, 1 },
	{ "-* +203.0.113.1:853", "203.0.113.1", 853, NULL, true, 0 },
	{ "-203.0.113.1", "203.0.113.1", 853, NULL, false, 0 },
	{ "+10.0.0.0/8", "10.0.0.1", 853, NULL, false, RESERVED },
	/* ports */
	{ "-* +a.test:443", "203.0.113.1", 443, "a.test", true, 0 },
	{ "-* +a.test:443", "203.0.113.1", 80, "a.test", false, DEFAULT },
	{ "-* +a.test:443/tcp", "203.0.113.1", 443, "a.test", true, 0, .proto = NETPOLICY_TCP },
	{ "-* +a.test:443/tcp", "203.0.113.1", 443, "a.test", false, DEFAULT,
			.proto = NETPOLICY_UDP },
	{ "-* +a.test:443/udp", "203.0.113.1", 443, "a.test", true, 0, .proto = NETPOLICY_UDP },
	{ "-a.test:80", "203.0.113.1", 80, "a.test", false, 0 },
	{ "-a.test:80", "203.0.113.1", 443, "a.test", true, DEFAULT },
	{ "-203.0.113.1:25 +203.0.113.1 -*", "203.0.113.1", 25, NULL, false, 0 },
	{ "-203.0.113.1:25 +203.0.113.1 -*", "203.0.113.1", 26, NULL, true, 1 },
};

START_TEST(making_a_connection)
{
	const struct check *c = &checks[_i];
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };
	const char *names[4];
	autofree char *text = mem_strdup(c->names);
	struct netpolicy_flow flow = { .port = c->port,
		.is_own = c->is_own,
		.proto = c->proto ? c->proto : NETPOLICY_TCP,
		.names = names };

	policy_of(c->policy, &p);
	ck_assert_int_eq(netaddr_parse(span_of(c->where), &flow.addr), 0);
	for (char *word = text; word;) {
		char *blank = strchr(word, ' ');

		names[flow.names_n++] = word;
		word = blank ? blank + 1 : NULL;
		if (blank) {
			*blank = '\0';
		}
	}
	const struct netpolicy_verdict v = netpolicy_check(&p, &flow);

	ck_assert_msg(v.allowed == c->allowed && v.rule == c->rule, "%s, %s %u %s: %d %d",
			c->policy, c->where, c->port, c->names ? c->names : "-", v.allowed, v.rule);
	/* Who opens the socket agrees with all that is allowed. */
	if (v.allowed) {
		ck_assert(netpolicy_may_dial(&p, &flow.addr, c->is_own, c->port, flow.proto));
		ck_assert(c->is_own || netpolicy_may_resolve(&p, &flow.addr));
	}
}
END_TEST

static const struct {
	const char *policy, *where;
	uint16_t port;
	bool is_own;
	bool may_dial, may_resolve;
} dials[] = {
	{ "", "203.0.113.1", 443, false, true, true },
	{ "", "203.0.113.1", 443, true, false, true },
	{ "", "10.0.0.1", 443, false, false, false },
	{ "", "0.0.0.0", 443, false, false, false },
	{ "-*", "203.0.113.1", 443, false, false, false },
	/* Somebody else knows which name it is. */
	{ "-* +a.test", "203.0.113.1", 443, false, true, true },
	{ "-* +a.test", "10.0.0.1", 443, false, false, false },
	{ "-* +a.test", "127.0.0.1", 443, false, false, false },
	{ "-* +a.test", "203.0.113.1", 443, true, false, true },
	{ "-* +a.test:443", "203.0.113.1", 80, false, false, true },
	{ "-* -a.test", "203.0.113.1", 443, false, false, false },
	/* Rules for addresses hold for it, too. */
	{ "-203.0.113.1", "203.0.113.1", 443, false, false, false },
	{ "-203.0.113.1:25", "203.0.113.1", 25, false, false, true },
	{ "-203.0.113.1:25", "203.0.113.1", 443, false, true, true },
	{ "+a.test -203.0.113.1", "203.0.113.1", 443, false, true, true },
	{ "-* +10.0.0.0/8", "10.0.0.1", 443, false, true, true },
	{ "-* +10.0.0.0/8:22", "10.0.0.1", 443, false, false, true },
	{ "-* +0.0.0.0/0", "10.0.0.1", 443, false, false, false },
	{ "-* +203.0.113.1", "203.0.113.1", 443, true, true, true },
	{ "+0.0.0.0", "0.0.0.0", 443, false, false, false },
	{ "-b.test +10.0.0.1", "10.0.0.1", 443, false, true, true },
	/* DNS over TLS only by name of its port. */
	{ "", "203.0.113.1", 853, false, false, true },
	{ "-* +a.test", "203.0.113.1", 853, false, false, true },
	{ "-* +203.0.113.1", "203.0.113.1", 853, false, false, true },
	{ "-* +203.0.113.1:853", "203.0.113.1", 853, false, true, true },
	{ "-* +a.test:853", "203.0.113.1", 853, false, true, true },
};

START_TEST(opening_a_socket)
{
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };
	struct netaddr a;

	policy_of(dials[_i].policy, &p);
	ck_assert_int_eq(netaddr_parse(span_of(dials[_i].where), &a), 0);
	ck_assert_msg(netpolicy_may_dial(&p, &a, dials[_i].is_own, dials[_i].port, NETPOLICY_TCP) ==
					dials[_i].may_dial,
			"%s: dial %s", dials[_i].policy, dials[_i].where);
	ck_assert_msg(netpolicy_may_resolve(&p, &a) == dials[_i].may_resolve, "%s: resolve %s",
			dials[_i].policy, dials[_i].where);
}
END_TEST

/* Whatever the rules, what is allowed may be dialled. */
START_TEST(all_short_policies)
{
	static const char *const rules[] = { "+a.test", "-a.test", "+*.test", "-*.test:443",
		"+203.0.113.0/24", "-203.0.113.1", "+10.0.0.0/8:443", "-10.0.0.1", "+0.0.0.0/0" };
	static const char *const where[] = { "203.0.113.1", "203.0.114.1", "10.0.0.1", "0.0.0.0" };
	static const char *const names[] = { "a.test", "b.test", "c.other" };
	const size_t n = ARRAY_SIZE(rules);
	size_t allowed = 0;

	for (size_t k = 0; k < n * n * n * 2; k++) {
		AUTO(netpolicy) struct netpolicy p = { .n = 0 };
		autofree char *text = mem_printf("%s %s %s %s", k % 2 ? "-*" : "", rules[k / 2 % n],
				rules[k / 2 / n % n], rules[k / 2 / n / n]);

		policy_of(text, &p);
		for (size_t i = 0; i < ARRAY_SIZE(where) * 4 * 2; i++) {
			struct netpolicy_flow flow = { .port = i % 2 ? 443 : 80,
				.proto = NETPOLICY_TCP,
				.names = &names[i / 2 % 4 % 3],
				.names_n = i / 2 % 4 < 3 };

			ck_assert_int_eq(netaddr_parse(span_of(where[i / 8]), &flow.addr), 0);
			if (!netpolicy_check(&p, &flow).allowed) {
				continue;
			}
			allowed++;
			ck_assert(netpolicy_may_dial(
					&p, &flow.addr, false, flow.port, NETPOLICY_TCP));
			ck_assert(netpolicy_may_resolve(&p, &flow.addr));
		}
	}
	ck_assert_uint_gt(allowed, 1000);
}
END_TEST

START_TEST(a_copy_is_its_own)
{
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };
	AUTO(netpolicy) struct netpolicy copy = { .n = 0 };

	policy_of("-* +a.test +10.0.0.0/8:22", &p);
	netpolicy_copy(&p, &copy);
	netpolicy_done(&p);
	ck_assert_int_eq(copy.fallback, NETPOLICY_DENY);
	ck_assert_uint_eq(copy.n, 2);
	ck_assert_str_eq(copy.rules[0].name, "a.test");
	ck_assert_str_eq(copy.rules[1].target, "10.0.0.0/8:22");
	ck_assert_ptr_null(copy.rules[1].name);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy");
	TCase *tc = tcase_create("netpolicy");

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, target_is_read, 0, ARRAY_SIZE(targets));
	tcase_add_test(tc, target_is_kept_as_written);
	tcase_add_loop_test(tc, no_target, 0, ARRAY_SIZE(no_targets));
	tcase_add_test(tc, target_too_long);
	tcase_add_test(tc, too_many_rules);
	tcase_add_loop_test(tc, mode_of, 0, ARRAY_SIZE(modes));
	tcase_add_loop_test(tc, asking_for_a_name, 0, ARRAY_SIZE(asks));
	tcase_add_loop_test(tc, making_a_connection, 0, ARRAY_SIZE(checks));
	tcase_add_loop_test(tc, opening_a_socket, 0, ARRAY_SIZE(dials));
	tcase_add_test(tc, all_short_policies);
	tcase_add_test(tc, a_copy_is_its_own);
	return unit_run(s);
}
