/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>
#include <osbx/netpolicy.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Who opens sockets agrees with whatever is allowed. */
static void check(const struct netpolicy *p)
{
	static const char *const where[] = { "203.0.113.1", "10.0.0.1", "127.0.0.1", "2001:db8::1",
		"::ffff:169.254.169.254", "0.0.0.0" };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(where); i++) {
		const char *names[] = { "a.test", p->n > 0 ? p->rules[0].name : NULL };
		struct netpolicy_flow flow = { .port = i % 2 ? 443 : 80,
			.proto = NETPOLICY_TCP,
			.names = names,
			.names_n = names[1] ? 2 : 1 };

		if (netaddr_parse(span_of(where[i / 2]), &flow.addr) < 0) {
			abort();
		}
		if (netpolicy_check(p, &flow).allowed &&
				(!netpolicy_may_dial(
						 p, &flow.addr, false, flow.port, NETPOLICY_TCP) ||
						!netpolicy_may_resolve(p, &flow.addr))) {
			abort();
		}
	}
	(void)netpolicy_ask(p, "a.test");
	(void)netpolicy_mode(p);
}

static char *format(const struct netpolicy *p)
{
	AUTO(buf) struct buf b = BUF_INIT(16U << 20);
	struct json_writer w = JSON_WRITER(&b);

	netpolicy_format(p, &w, NULL);
	if (w.failed) {
		abort();
	}
	return buf_take(&b);
}

/* What is written is read again as the same. */
static void there_and_back(const struct netpolicy *p)
{
	AUTO(netpolicy) struct netpolicy again = { .n = 0 };
	autofree char *text = format(p);
	struct error e = ERROR_INIT;
	AUTO(json) struct json *v = json_parse(span_of(text), &e);

	if (!v || netpolicy_parse(v, &again, &e) < 0) {
		abort();
	}
	autofree char *second = format(&again);

	if (strcmp(text, second) != 0) {
		abort();
	}
}

/* A document as a policy, as a patch, as targets to delete, and its bytes as a target. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(netpolicy) struct netpolicy p = { .n = 0 };
	autofree char *text = mem_dup(data, size);
	struct error e = ERROR_INIT;
	size_t n = 0;

	if (netpolicy_add(&p, NETPOLICY_ALLOW, text, &e) == 0) {
		check(&p);
		there_and_back(&p);
	}
	error_clear(&e);
	AUTO(json) struct json *v = json_parse((struct span){ .p = text, .n = size }, &e);

	if (!v) {
		return 0;
	}
	netpolicy_done(&p);
	if (netpolicy_parse(v, &p, &e) == 0) {
		check(&p);
		there_and_back(&p);
	}
	error_clear(&e);
	if (netpolicy_patch(&p, v, &e) == 0) {
		check(&p);
		there_and_back(&p);
	}
	error_clear(&e);
	if (netpolicy_delete(&p, v, &n, &e) == 0) {
		there_and_back(&p);
	}
	return 0;
}
