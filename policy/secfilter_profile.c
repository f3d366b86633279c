/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/caps.h>
#include <osbx/errnos.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "secfilter_doc.h"
#include "secfilter_profile.h"

static const struct {
	const char *name;
	uint32_t arch;
} arches[] = {
#if defined(__x86_64__)
	{ "SCMP_ARCH_X86", SCMP_ARCH_X86 }, { "SCMP_ARCH_X32", SCMP_ARCH_X32 },
#elif defined(__aarch64__)
	{ "SCMP_ARCH_ARM", SCMP_ARCH_ARM },
#endif
	{ DOC_NATIVE_ARCH, 0 }, /* is in every filter */
};

void profile_done(struct profile *p)
{
	for (size_t i = 0; i < p->rules_n; i++) {
		strv_done(&p->rules[i].names);
	}
	free(p->rules);
	*p = (struct profile){ .rules_n = 0 };
}

static const struct {
	const char *name;
	uint32_t action;
} actions[] = {
	{ "SCMP_ACT_KILL", SCMP_ACT_KILL_THREAD },
	{ "SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD },
	{ "SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS },
	{ "SCMP_ACT_TRAP", SCMP_ACT_TRAP },
	{ "SCMP_ACT_ERRNO", SCMP_ACT_ERRNO(0) },
	{ "SCMP_ACT_TRACE", SCMP_ACT_TRACE(0) },
	{ "SCMP_ACT_ALLOW", SCMP_ACT_ALLOW },
	{ "SCMP_ACT_LOG", SCMP_ACT_LOG },
};

static int errno_find(const char *name, uint64_t *out_errno)
{
	int number = errno_from_name(name);

	if (number < 0) {
		return number;
	}
	*out_errno = (uint64_t)number;
	return 0;
}

/* The number wins over the name, as the profile's own readers have it. */
static int action_parse(const char *text, uint64_t errno_ret, const char *errno_name, uint32_t *out,
		struct error *e)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(actions) && !str_eq(actions[i].name, text)) {
		i++;
	}
	if (i == ARRAY_SIZE(actions)) {
		return error_set(e,
				str_eq(text, "SCMP_ACT_NOTIFY") ? ERRC_UNSUPPORTED : ERRC_INVALID,
				"action \"%s\" is not supported", text);
	}
	uint32_t action = actions[i].action;

	if (action == SCMP_ACT_ERRNO(0) || action == SCMP_ACT_TRACE(0)) {
		if (errno_ret == DOC_ERRNO_NONE && errno_name &&
				errno_find(errno_name, &errno_ret) < 0) {
			return error_set(e, ERRC_INVALID, "error \"%s\" is unknown", errno_name);
		}
		action |= errno_ret == DOC_ERRNO_NONE ? EPERM : (uint32_t)errno_ret;
	}
	*out = action;
	return 0;
}

static int release_parse(const char *text, unsigned long out[2])
{
	for (size_t i = 0; i < 2; i++) {
		size_t n = strspn(text, "0123456789");
		autofree char *number = mem_dup(text, n);
		uint64_t v = 0;

		if (str_to_u64(number, 10000, &v) < 0 || (i == 0 && text[n] != '.')) {
			return -EINVAL;
		}
		out[i] = v;
		text += n + 1;
	}
	return 0;
}

/* Is the running kernel at least this one? */
static int kernel_is_at_least(const char *want, const char *release, bool *out, struct error *e)
{
	unsigned long w[2];
	unsigned long r[2];

	if (release_parse(want, w) < 0 || release_parse(release, r) < 0) {
		return error_set(e, ERRC_INVALID, "minKernel \"%s\" is not of the form 4.8", want);
	}
	*out = r[0] > w[0] || (r[0] == w[0] && r[1] >= w[1]);
	return 0;
}

static size_t caps_held(const struct strv *names, uint64_t caps)
{
	size_t n = 0;

	strv_for_each(names, i) {
		int cap = caps_from_name(names->v[i]);

		n += cap >= 0 && (caps & CAPS_BIT(cap)) != 0;
	}
	return n;
}

static bool has_native(const struct strv *names)
{
	strv_for_each(names, i) {
		if (str_eq(names->v[i], DOC_GO_ARCH)) {
			return true;
		}
	}
	return false;
}

/* includes: everything must hold. excludes: nothing may. */
static int rule_applies(const struct doc_rule *r, uint64_t caps, const char *release, bool *out,
		struct error *e)
{
	bool included = caps_held(&r->includes.caps, caps) == r->includes.caps.n &&
			(r->includes.arches.n == 0 || has_native(&r->includes.arches));
	bool excluded = caps_held(&r->excludes.caps, caps) > 0 || has_native(&r->excludes.arches);
	bool new_enough = true;
	bool too_new = false;

	if (r->includes.min_kernel &&
			kernel_is_at_least(r->includes.min_kernel, release, &new_enough, e) < 0) {
		return -1;
	}
	if (r->excludes.min_kernel &&
			kernel_is_at_least(r->excludes.min_kernel, release, &too_new, e) < 0) {
		return -1;
	}
	*out = included && new_enough && !excluded && !too_new;
	return 0;
}

static bool index_repeats(const struct profile_arg *args, size_t n)
{
	unsigned int seen = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned int bit = 1U << args[i].index;

		if (seen & bit) {
			return true;
		}
		seen |= bit;
	}
	return false;
}

static int rule_take(struct doc_rule *from, struct profile_rule *to, struct error *e)
{
	if (action_parse(from->action, from->errno_ret, from->errno_name, &to->action, e) < 0) {
		return -1;
	}
	if (from->name && (from->names.n > 0 || strv_add(&from->names, from->name) < 0)) {
		return error_set(e, ERRC_INVALID, "both \"name\" and \"names\"");
	}
	if (from->names.n == 0) {
		return error_set(e, ERRC_INVALID, "no names");
	}
	to->names = from->names;
	from->names = (struct strv)STRV_INIT;
	to->args_n = from->args_n;
	memcpy(to->args, from->args, sizeof(to->args));
	to->is_alternative = index_repeats(to->args, to->args_n);
	return 0;
}

static int arches_take(const struct strv *names, struct profile *p, struct error *e)
{
	strv_for_each(names, i) {
		for (size_t k = 0; k < ARRAY_SIZE(arches); k++) {
			if (!str_eq(arches[k].name, names->v[i]) || arches[k].arch == 0) {
				continue;
			}
			if (p->arches_n == PROFILE_ARCHES_MAX) {
				return error_set(e, ERRC_LIMIT, "architectures: named repeatedly");
			}
			p->arches[p->arches_n++] = arches[k].arch;
		}
	}
	return 0;
}

static int rules_take(struct doc *doc, uint64_t caps, const char *release, struct profile *p,
		struct error *e)
{
	p->rules = mem_array(doc->rules_n + 1, sizeof(*p->rules));
	for (size_t i = 0; i < doc->rules_n; i++) {
		bool applies = false;

		if (rule_applies(&doc->rules[i], caps, release, &applies, e) < 0) {
			return error_wrap(e, "syscalls[%zu]", i);
		}
		if (!applies) {
			continue;
		}
		if (rule_take(&doc->rules[i], &p->rules[p->rules_n], e) < 0) {
			return error_wrap(e, "syscalls[%zu]", i);
		}
		p->rules_n++;
	}
	return 0;
}

int profile_parse(struct span text, uint64_t caps, const char *release, struct profile *out_p,
		struct error *e)
{
	AUTO(doc) struct doc doc = { .rules_n = 0 };
	AUTO(profile) struct profile p = { .rules_n = 0 };

	if (doc_parse(text, &doc, e) < 0) {
		return -1;
	}
	if (doc.listener_path || doc.listener_metadata) {
		return error_set(e, ERRC_UNSUPPORTED, "listenerPath: listeners are not supported");
	}
	if (action_parse(doc.default_action, doc.default_errno_ret, doc.default_errno_name,
			    &p.default_action, e) < 0) {
		return error_wrap(e, "defaultAction");
	}
	if (arches_take(&doc.architectures, &p, e) < 0 ||
			rules_take(&doc, caps, release, &p, e) < 0) {
		return -1;
	}
	*out_p = p;
	p = (struct profile){ .rules_n = 0 };
	return 0;
}
