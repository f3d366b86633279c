/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/buf.h>
#include <osbx/mem.h>
#include <osbx/netd.h>
#include <osbx/plan.h>

#define TEXT_BYTES_MAX 65536
#define RULES_SHOWN    64

/* A comment: one line, whatever stands in a target. */
static int add_rule(struct buf *text, const struct netpolicy_rule *rule)
{
	return buf_appendf(text, "#   %s %s\n", rule->action == NETPOLICY_ALLOW ? "allow" : "deny",
			rule->target);
}

char *plan_resolv_conf(const struct sandbox_request *req, const struct id *id)
{
	const struct netpolicy *policy = &req->policy;
	AUTO(buf) struct buf text = BUF_INIT(TEXT_BYTES_MAX);
	char name[ID_LEN + 1];

	id_short(id, name);
	int r = buf_appendf(&text,
			"# The network of this sandbox is private (osbx): TCP, UDP, ping and DNS go out, by a policy.\n"
			"# As it was at the start, the first rule that fits counts:\n");

	for (size_t i = 0; i < policy->n && i < RULES_SHOWN && r == 0; i++) {
		r = add_rule(&text, &policy->rules[i]);
	}
	if (r == 0 && policy->n > RULES_SHOWN) {
		r = buf_append_str(&text, "#   ...\n");
	}
	if (r == 0) {
		r = buf_appendf(&text,
				"#   %s\n"
				"# What is not allowed is refused at once: a name does not exist (DNS error 15 or "
				"17,\n"
				"# Blocked), a connection is reset. From outside, osbx policy log %s says what "
				"was\n"
				"# refused, osbx policy allow %s TARGET allows it.\n",
				policy->fallback == NETPOLICY_ALLOW ? "allow all public addresses"
								    : "deny everything else",
				name, name);
	}
	if (r < 0) {
		buf_reset(&text);
	}
	return mem_printf("%snameserver " NETD_RESOLVER4 "\n", text.n > 0 ? text.p : "");
}
