/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <seccomp.h>
#include <stdlib.h>

#include <osbx/json.h>
#include <osbx/jsondec.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "secfilter_doc.h"

#define ERRNO_MAX  4095 /* MAX_ERRNO of the kernel */
#define RULES_MAX  1024
#define NAME_BYTES 64

static void doc_condition_done(struct doc_condition *c)
{
	strv_done(&c->caps);
	strv_done(&c->arches);
	free(c->min_kernel);
}

static void doc_rule_done(struct doc_rule *r)
{
	strv_done(&r->names);
	free(r->name);
	free(r->action);
	free(r->comment);
	free(r->errno_name);
	doc_condition_done(&r->includes);
	doc_condition_done(&r->excludes);
}

static void doc_arch_done(struct doc_arch *a)
{
	free(a->architecture);
	strv_done(&a->sub);
}
AUTO_DEFINE(doc_arch, struct doc_arch, doc_arch_done);

void doc_done(struct doc *d)
{
	free(d->default_action);
	free(d->default_errno_name);
	free(d->listener_path);
	free(d->listener_metadata);
	strv_done(&d->flags);
	strv_done(&d->architectures);
	for (size_t i = 0; i < d->rules_n; i++) {
		doc_rule_done(&d->rules[i]);
	}
	free(d->rules);
}

static const struct {
	const char *name;
	int op;
} ops[] = {
	{ "SCMP_CMP_NE", SCMP_CMP_NE },
	{ "SCMP_CMP_LT", SCMP_CMP_LT },
	{ "SCMP_CMP_LE", SCMP_CMP_LE },
	{ "SCMP_CMP_EQ", SCMP_CMP_EQ },
	{ "SCMP_CMP_GE", SCMP_CMP_GE },
	{ "SCMP_CMP_GT", SCMP_CMP_GT },
	{ "SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ },
};

static int decode_op(const struct json *v, void *out, struct error *e)
{
	const char *text = json_string(v);

	for (size_t i = 0; text && i < ARRAY_SIZE(ops); i++) {
		if (str_eq(ops[i].name, text)) {
			*(int *)out = ops[i].op;
			return 0;
		}
	}
	return error_set(e, ERRC_INVALID,
			"expected SCMP_CMP_ and NE, LT, LE, EQ, GE, GT or MASKED_EQ");
}

static const struct jsondec_field arg_fields[] = {
	{ "index", JSONDEC_U64, offsetof(struct profile_arg, index), JSONDEC_REQUIRED,
			.max = PROFILE_ARGS_MAX - 1 },
	{ "value", JSONDEC_U64, offsetof(struct profile_arg, value), JSONDEC_REQUIRED },
	{ "valueTwo", JSONDEC_U64, offsetof(struct profile_arg, value_two), 0 },
	{ "op", JSONDEC_CUSTOM, offsetof(struct profile_arg, op), JSONDEC_REQUIRED | JSONDEC_STRICT,
			.decode = decode_op },
	{ .name = NULL },
};

/* out is the rule's args; their number stands beside them. */
static int decode_args(const struct json *v, void *out, struct error *e)
{
	struct doc_rule *rule = container_of(out, struct doc_rule, args);
	struct profile_arg *args = out;

	if (!json_is_array(v) || json_size(v) > PROFILE_ARGS_MAX) {
		return error_set(e, ERRC_INVALID, "expected an array of at most %d conditions",
				PROFILE_ARGS_MAX);
	}
	json_for_each(child, v) {
		size_t i = rule->args_n;

		if (jsondec_object(child, arg_fields, &args[i], e) < 0) {
			return error_wrap(e, "[%zu]", i);
		}
		rule->args_n++;
	}
	return 0;
}

static const struct jsondec_field condition_fields[] = {
	{ "caps", JSONDEC_STRV, offsetof(struct doc_condition, caps), 0 },
	{ "arches", JSONDEC_STRV, offsetof(struct doc_condition, arches), 0 },
	{ "minKernel", JSONDEC_STRING, offsetof(struct doc_condition, min_kernel), JSONDEC_STRICT,
			.max = NAME_BYTES },
	{ .name = NULL },
};

static const struct jsondec_field rule_fields[] = {
	{ "names", JSONDEC_STRV, offsetof(struct doc_rule, names), 0 },
	{ "name", JSONDEC_STRING, offsetof(struct doc_rule, name), 0, .max = NAME_BYTES },
	{ "action", JSONDEC_STRING, offsetof(struct doc_rule, action), JSONDEC_REQUIRED,
			.max = NAME_BYTES },
	{ "args", JSONDEC_CUSTOM, offsetof(struct doc_rule, args), 0, .decode = decode_args },
	{ "comment", JSONDEC_STRING, offsetof(struct doc_rule, comment), 0 },
	{ "errno", JSONDEC_STRING, offsetof(struct doc_rule, errno_name), 0, .max = NAME_BYTES },
	{ "errnoRet", JSONDEC_U64, offsetof(struct doc_rule, errno_ret), 0, .max = ERRNO_MAX },
	{ "includes", JSONDEC_OBJECT, offsetof(struct doc_rule, includes), 0,
			.fields = condition_fields },
	{ "excludes", JSONDEC_OBJECT, offsetof(struct doc_rule, excludes), JSONDEC_STRICT,
			.fields = condition_fields },
	{ .name = NULL },
};

static int decode_rules(const struct json *v, void *out, struct error *e)
{
	struct doc *doc = container_of(out, struct doc, rules);

	if (!json_is_array(v) || json_size(v) > RULES_MAX || doc->rules) {
		return error_set(e, ERRC_INVALID, "expected an array of at most %d rules",
				RULES_MAX);
	}
	doc->rules = mem_array(json_size(v) + 1, sizeof(*doc->rules));
	json_for_each(child, v) {
		struct doc_rule *rule = &doc->rules[doc->rules_n++];

		rule->errno_ret = DOC_ERRNO_NONE;
		if (jsondec_object(child, rule_fields, rule, e) < 0) {
			return error_wrap(e, "[%zu]", doc->rules_n - 1);
		}
	}
	return 0;
}

static const struct jsondec_field arch_fields[] = {
	{ "architecture", JSONDEC_STRING, offsetof(struct doc_arch, architecture), JSONDEC_REQUIRED,
			.max = NAME_BYTES },
	{ "subArchitectures", JSONDEC_STRV, offsetof(struct doc_arch, sub), JSONDEC_STRICT },
	{ .name = NULL },
};

/* archMap: what may come along with the machine's own architecture. */
static int decode_arch_map(const struct json *v, void *out, struct error *e)
{
	struct strv *all = out;
	size_t i = 0;

	if (!json_is_array(v)) {
		return error_set(e, ERRC_INVALID, "expected an array");
	}
	json_for_each(child, v) {
		AUTO(doc_arch) struct doc_arch arch = { .architecture = NULL };

		if (jsondec_object(child, arch_fields, &arch, e) < 0) {
			return error_wrap(e, "[%zu]", i);
		}
		if (str_eq(arch.architecture, DOC_NATIVE_ARCH) &&
				strv_add_all(all, strv_get(&arch.sub)) < 0) {
			return error_set(e, ERRC_LIMIT, "too many architectures");
		}
		i++;
	}
	return 0;
}

static const struct jsondec_field doc_fields[] = {
	{ "defaultAction", JSONDEC_STRING, offsetof(struct doc, default_action), JSONDEC_REQUIRED,
			.max = NAME_BYTES },
	{ "defaultErrnoRet", JSONDEC_U64, offsetof(struct doc, default_errno_ret), 0,
			.max = ERRNO_MAX },
	{ "defaultErrno", JSONDEC_STRING, offsetof(struct doc, default_errno_name), 0,
			.max = NAME_BYTES },
	{ "architectures", JSONDEC_STRV, offsetof(struct doc, architectures), 0 },
	{ "archMap", JSONDEC_CUSTOM, offsetof(struct doc, architectures), 0,
			.decode = decode_arch_map },
	{ "flags", JSONDEC_STRV, offsetof(struct doc, flags), 0 },
	{ "listenerPath", JSONDEC_STRING, offsetof(struct doc, listener_path), 0 },
	{ "listenerMetadata", JSONDEC_STRING, offsetof(struct doc, listener_metadata), 0 },
	{ "syscalls", JSONDEC_CUSTOM, offsetof(struct doc, rules), JSONDEC_STRICT,
			.decode = decode_rules },
	{ .name = NULL },
};

int doc_parse(struct span text, struct doc *out, struct error *e)
{
	AUTO(json) struct json *root = json_parse(text, e);

	*out = (struct doc){ .default_errno_ret = DOC_ERRNO_NONE };
	return root ? jsondec_object(root, doc_fields, out, e) : -1;
}
