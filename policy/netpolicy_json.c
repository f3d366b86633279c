/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "netpolicy_internal.h"

static const char *const action_names[NETPOLICY_ACTION_COUNT] = {
	[NETPOLICY_DENY] = "deny",
	[NETPOLICY_ALLOW] = "allow",
};

/* Member name of an object; absent is deny. */
static int read_action(const struct json *object, const char *name, enum netpolicy_action *out,
		struct error *e)
{
	const struct json *v = json_get(object, name);
	const char *text = json_string(v);

	if (!v) {
		*out = NETPOLICY_DENY;
		return 0;
	}
	for (size_t i = 0; text && i < NETPOLICY_ACTION_COUNT; i++) {
		if (str_eq(text, action_names[i])) {
			*out = (enum netpolicy_action)i;
			return 0;
		}
	}
	return error_set(e, ERRC_INVALID, "%s: must be \"allow\" or \"deny\"", name);
}

static int add_rule(struct netpolicy *p, const struct json *v, struct error *e)
{
	const char *target = json_string(json_get(v, "target"));
	enum netpolicy_action action = NETPOLICY_DENY;

	if (!json_is_object(v)) {
		return error_set(e, ERRC_INVALID, "must be an object with action and target");
	}
	if (read_action(v, "action", &action, e) < 0) {
		return -1;
	}
	if (!target) {
		return error_set(e, ERRC_INVALID, "target: must be a string");
	}
	if (netpolicy_add(p, action, target, e) < 0) {
		return error_wrap(e, "target");
	}
	return 0;
}

/* path is what the array is called, "" for the document itself. */
static int add_rules(
		struct netpolicy *p, const struct json *array, const char *path, struct error *e)
{
	size_t i = 0;

	json_for_each(v, array) {
		if (add_rule(p, v, e) < 0) {
			/* "egress[2].target: …", but "egress[2]: must be …". */
			const bool is_member = json_is_object(v);
			struct error inner = *e;

			error_clear(e);
			return error_set(e, inner.code, "%s[%zu]%s%s", path, i,
					is_member ? "." : ": ", inner.text);
		}
		i++;
	}
	return 0;
}

int netpolicy_parse(const struct json *v, struct netpolicy *out, struct error *e)
{
	AUTO(netpolicy) struct netpolicy p = { .fallback = NETPOLICY_DENY };
	const struct json *rules = json_get(v, "egress");

	if (!json_is_null(v) && !json_is_object(v)) {
		return error_set(e, ERRC_INVALID,
				"a network policy must be an object with defaultAction and egress");
	}
	if (read_action(v, "defaultAction", &p.fallback, e) < 0) {
		return -1;
	}
	if (rules && !json_is_array(rules)) {
		return error_set(e, ERRC_INVALID, "egress: must be an array");
	}
	if (add_rules(&p, rules, "egress", e) < 0) {
		return -1;
	}
	*out = p;
	p = (struct netpolicy){ .n = 0 };
	return 0;
}

void netpolicy_format(const struct netpolicy *p, struct json_writer *w, const char *name)
{
	json_object_begin(w, name);
	json_add_string(w, "defaultAction", action_names[p->fallback]);
	json_array_begin(w, "egress");
	for (size_t i = 0; i < p->n; i++) {
		json_object_begin(w, NULL);
		json_add_string(w, "action", action_names[p->rules[i].action]);
		json_add_string(w, "target", p->rules[i].target);
		json_object_end(w);
	}
	json_array_end(w);
	json_object_end(w);
}

/* FNV-1a: most rules that differ are told apart without a look at their names. */
static uint32_t rule_hash(const struct netpolicy_rule *r)
{
	const struct span bytes =
			r->kind == NETPOLICY_PREFIX
					? (struct span){ .p = (const char *)r->prefix.addr.bytes,
						  .n = 16 }
					: span_of(r->name);
	uint32_t hash = 2166136261U ^ r->port;

	for (size_t i = 0; i < bytes.n; i++) {
		hash = (hash ^ (uint8_t)bytes.p[i]) * 16777619U;
	}
	return hash;
}

/* Add copies of the rules that have no equal in p yet. */
static void push_new(struct netpolicy *p, const struct netpolicy *from)
{
	autofree uint32_t *hashes = mem_array(p->n + from->n + 1, sizeof(*hashes));

	for (size_t i = 0; i < p->n; i++) {
		hashes[i] = rule_hash(&p->rules[i]);
	}
	for (size_t i = 0; i < from->n; i++) {
		const struct netpolicy_rule *r = &from->rules[i];
		const uint32_t hash = rule_hash(r);
		size_t k = 0;

		while (k < p->n && (hashes[k] != hash || !netpolicy_rule_same(&p->rules[k], r))) {
			k++;
		}
		if (k == p->n) {
			hashes[k] = hash;
			netpolicy_push_copy(p, r);
		}
	}
}

int netpolicy_patch(struct netpolicy *p, const struct json *v, struct error *e)
{
	AUTO(netpolicy) struct netpolicy incoming = { .fallback = p->fallback };
	AUTO(netpolicy) struct netpolicy merged = { .n = 0 };

	if (!json_is_array(v) || json_size(v) == 0) {
		return error_set(e, ERRC_INVALID, "a patch must be an array of at least one rule");
	}
	if (add_rules(&incoming, v, "", e) < 0) {
		return -1;
	}
	push_new(&merged, &incoming);
	push_new(&merged, p);
	if (merged.n > NETPOLICY_RULES_MAX) {
		return error_set(e, ERRC_LIMIT, "more than %d rules", NETPOLICY_RULES_MAX);
	}
	const struct netpolicy old = *p;

	merged.fallback = incoming.fallback;
	*p = merged;
	merged = old;
	return 0;
}

static void delete_target(struct netpolicy *p, const struct netpolicy_rule *like)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (netpolicy_rule_same(&p->rules[i], like)) {
			netpolicy_rule_done(&p->rules[i]);
		} else {
			p->rules[kept++] = p->rules[i];
		}
	}
	p->n = kept;
}

int netpolicy_delete(struct netpolicy *p, const struct json *v, size_t *out_n, struct error *e)
{
	const size_t n = p->n;

	if (!json_is_array(v) || json_size(v) == 0) {
		return error_set(e, ERRC_INVALID, "what to delete must be an array of targets");
	}
	if (json_size(v) > NETPOLICY_RULES_MAX) {
		return error_set(e, ERRC_LIMIT, "more than %d targets", NETPOLICY_RULES_MAX);
	}
	json_for_each(target, v) {
		if (!json_is_string(target)) {
			return error_set(e, ERRC_INVALID, "a target to delete must be a string");
		}
	}
	json_for_each(target, v) {
		struct error none = ERROR_INIT;
		struct netpolicy_rule like;

		/* What cannot be the target of a rule is that of none. */
		if (netpolicy_target(json_string(target), &like, &none) == 0) {
			delete_target(p, &like);
			netpolicy_rule_done(&like);
		}
	}
	*out_n = n - p->n;
	return 0;
}
