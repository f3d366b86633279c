/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "secfilter_build.h"

#define ARG_LOW(arg) ((uint32_t)(offsetof(struct seccomp_data, args) + (size_t)8 * (arg)))
#define RANGES_MAX   (BUILD_SYSCALLS_MAX + 4)
#define JUMP_MAX     255

/* Numbers from first up to the next range are treated alike. */
struct range {
	uint32_t first;
	const struct filter_rule *rule; /* with cases; else NULL */
	uint32_t action;
};

struct ranges {
	struct range v[RANGES_MAX];
	size_t n;
};

/* Names of the tables by number, for the readable form: it does not change with libseccomp. */
static char names[BUILD_SYSCALLS_MAX][64];

static const struct build_arch archs[] = {
	{ "x86_64", AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64, true },
	{ "aarch64", AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64, false },
	{ "riscv64", AUDIT_ARCH_RISCV64, SCMP_ARCH_RISCV64, false },
};

const struct build_arch *build_arch_find(const char *name)
{
	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
		if (strcmp(archs[i].name, name) == 0) {
			return &archs[i];
		}
	}
	return NULL;
}

static _Noreturn void fail(const char *what, const char *name)
{
	fprintf(stderr, "secfilter_gen: %s: %s\n", name, what);
	exit(EXIT_FAILURE);
}

/* Number of "name" or "name=number"; -1 when this machine has no such call. */
static int number_of(const char *word, const struct build_arch *arch)
{
	char name[64];
	const char *equals = strchr(word, '=');
	size_t n = equals ? (size_t)(equals - word) : strlen(word);

	if (n >= sizeof(name)) {
		fail("too long", word);
	}
	memcpy(name, word, n);
	name[n] = '\0';
	int nr = seccomp_syscall_resolve_name_arch(arch->scmp_arch, name);

	if (!equals && nr == __NR_SCMP_ERROR) {
		fail("unknown to libseccomp", word);
	}
	if (equals) {
		int given = 0;

		for (const char *p = equals + 1;
				*p >= '0' && *p <= '9' && given < BUILD_SYSCALLS_MAX; p++) {
			given = given * 10 + (*p - '0');
		}
		if (nr >= 0 && nr != given) {
			fail("another number for libseccomp", word);
		}
		nr = given;
	}
	if (nr >= BUILD_SYSCALLS_MAX) {
		fail("number too large", word);
	}
	if (nr < 0) {
		return -1;
	}
	memcpy(names[nr], name, n + 1);
	return nr;
}

/* Enter the calls of a rule into by_number. Earlier groups of rules win over later ones; within a
 * group a name may stand once. */
static void rule_enter(const struct filter_rule *rule, const struct build_arch *arch, int group,
		const struct filter_rule **by_number, int *group_of)
{
	char word[64];
	const char *p = rule->names;

	while (*(p += strspn(p, " ")) != '\0') {
		size_t n = strcspn(p, " ");

		if (n >= sizeof(word)) {
			fail("too long", p);
		}
		memcpy(word, p, n);
		word[n] = '\0';
		p += n;
		int nr = number_of(word, arch);

		if (nr < 0) {
			continue;
		}
		if (group_of[nr] == group) {
			fail("named twice", word);
		}
		if (group_of[nr] == 0) {
			group_of[nr] = group;
			by_number[nr] = rule;
		}
	}
}

static void range_add(
		struct ranges *r, uint32_t first, const struct filter_rule *rule, uint32_t action)
{
	const struct filter_rule *cases = rule && rule->cases_n > 0 ? rule : NULL;
	uint32_t a = rule ? rule->action : action;

	/* Rules with cases are their own: two calls of one rule may stand side by side. */
	if (r->n > 0 && r->v[r->n - 1].rule == cases && r->v[r->n - 1].action == a) {
		return;
	}
	assert(r->n < RANGES_MAX);
	r->v[r->n++] = (struct range){ .first = first, .rule = cases, .action = a };
}

static void ranges_fill(const struct filter_profile *profile, const struct build_arch *arch,
		struct ranges *r)
{
	const struct filter_rule *by_number[BUILD_SYSCALLS_MAX] = { NULL };
	int group_of[BUILD_SYSCALLS_MAX] = { 0 };

	for (size_t i = 0; i < profile->over_n; i++) {
		rule_enter(&profile->over[i], arch, 1, by_number, group_of);
	}
	for (size_t i = 0; i < profile->rules_n; i++) {
		rule_enter(&profile->rules[i], arch, 2, by_number, group_of);
	}
	for (uint32_t nr = 0; nr < BUILD_SYSCALLS_MAX; nr++) {
		range_add(r, nr, by_number[nr], profile->action);
	}
	range_add(r, BUILD_SYSCALLS_MAX, NULL, profile->action);
	if (arch->has_x32) {
		range_add(r, 0x40000000, NULL, SECCOMP_RET_KILL_PROCESS);
		/* A tracer that cancels a call sets its number to -1. */
		range_add(r, 0xffffffff, NULL, SECCOMP_RET_ERRNO | ENOSYS);
	}
}

static void emit(struct build_program *p, uint16_t code, uint32_t k, size_t jt, size_t jf)
{
	if (p->n == BUILD_INSNS_MAX || jt > JUMP_MAX || jf > JUMP_MAX) {
		fail("program too large", "profile");
	}
	p->insns[p->n++] = (struct sock_filter){ code, (uint8_t)jt, (uint8_t)jf, k };
}

static void emit_load(struct build_program *p, size_t offset)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void emit_return(struct build_program *p, uint32_t action)
{
	emit(p, BPF_RET | BPF_K, action, 0, 0);
}

/* Conditions of a case that exist. */
static size_t conds_of(const struct filter_case *c)
{
	size_t n = 0;

	while (n < TABLES_CONDS_MAX && c->conds[n].mask != 0) {
		n++;
	}
	return n;
}

/* Instructions of one condition. */
static size_t cond_size(const struct filter_cond *c)
{
	return c->mask == UINT32_MAX ? 2 : 3;
}

/* Test the conditions of a case, return its action, or fall behind it. */
static void emit_case(struct build_program *p, const struct filter_case *c)
{
	size_t conds = conds_of(c);
	size_t left = 1; /* the return */

	for (size_t i = 0; i < conds; i++) {
		left += cond_size(&c->conds[i]);
	}
	for (size_t i = 0; i < conds; i++) {
		const struct filter_cond *cond = &c->conds[i];

		left -= cond_size(cond);
		emit_load(p, ARG_LOW(cond->arg));
		if (cond->mask != UINT32_MAX) {
			emit(p, BPF_ALU | BPF_AND | BPF_K, cond->mask, 0, 0);
		}
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, cond->value, 0, left);
	}
	emit_return(p, c->action);
}

static void emit_leaf(struct build_program *p, const struct range *r)
{
	for (size_t i = 0; r->rule && i < r->rule->cases_n; i++) {
		emit_case(p, &r->rule->cases[i]);
	}
	emit_return(p, r->action);
}

/* The tree over ranges lo..hi-1, left half first; its depth is the logarithm of their number. */
static void emit_tree(struct build_program *p, const struct ranges *r, size_t lo, size_t hi)
{
	if (hi - lo == 1) {
		emit_leaf(p, &r->v[lo]);
		return;
	}
	size_t mid = lo + (hi - lo) / 2;
	size_t at = p->n;

	/* The right half may lie further than a conditional jump reaches. */
	emit(p, BPF_JMP | BPF_JGE | BPF_K, r->v[mid].first, 0, 1);
	emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
	emit_tree(p, r, lo, mid);
	size_t right = p->n - (at + 2);

	if (right <= JUMP_MAX) {
		/* It does not: take the long jump out again. All jumps are relative. */
		memmove(&p->insns[at + 1], &p->insns[at + 2], right * sizeof(p->insns[0]));
		p->n--;
		p->insns[at].jt = (uint8_t)right;
		p->insns[at].jf = 0;
	} else {
		p->insns[at + 1].k = (uint32_t)right;
	}
	emit_tree(p, r, mid, hi);
}

void build_program(const struct filter_profile *profile, const struct build_arch *arch,
		struct build_program *out)
{
	static struct ranges ranges;

	ranges.n = 0;
	ranges_fill(profile, arch, &ranges);
	out->n = 0;
	emit_load(out, offsetof(struct seccomp_data, arch));
	emit(out, BPF_JMP | BPF_JEQ | BPF_K, arch->audit_arch, 1, 0);
	emit_return(out, SECCOMP_RET_KILL_PROCESS);
	emit_load(out, offsetof(struct seccomp_data, nr));
	emit_tree(out, &ranges, 0, ranges.n);
}

static void print_action(uint32_t action, FILE *out)
{
	switch (action & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
		fprintf(out, "allow\n");
		break;
	case SECCOMP_RET_KILL_PROCESS:
		fprintf(out, "kill process\n");
		break;
	case SECCOMP_RET_ERRNO:
		fprintf(out, "errno %s\n", strerrorname_np((int)(action & SECCOMP_RET_DATA)));
		break;
	default:
		fprintf(out, "%#x\n", action);
		break;
	}
}

static void print_load(uint32_t offset, FILE *out)
{
	if (offset == offsetof(struct seccomp_data, nr)) {
		fprintf(out, "load number\n");
	} else if (offset == offsetof(struct seccomp_data, arch)) {
		fprintf(out, "load arch\n");
	} else {
		fprintf(out, "load low half of argument %zu\n",
				(offset - offsetof(struct seccomp_data, args)) / 8);
	}
}

static void print_jump(const struct sock_filter *in, size_t at, FILE *out)
{
	bool is_number = BPF_OP(in->code) == BPF_JGE;
	const char *name = is_number && in->k < BUILD_SYSCALLS_MAX ? names[in->k] : "";

	fprintf(out, "%s %#x ? %zu : %zu%s%s\n", is_number ? ">=" : "==", in->k, at + 1 + in->jt,
			at + 1 + in->jf, name[0] ? "   " : "", name);
}

void build_print(const struct build_program *program, FILE *out)
{
	for (size_t i = 0; i < program->n; i++) {
		const struct sock_filter *in = &program->insns[i];

		fprintf(out, "%4zu  ", i);
		switch (in->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			print_load(in->k, out);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			fprintf(out, "& %#x\n", in->k);
			break;
		case BPF_JMP | BPF_JA:
			fprintf(out, "goto %zu\n", i + 1 + in->k);
			break;
		case BPF_RET | BPF_K:
			print_action(in->k, out);
			break;
		default:
			print_jump(in, i, out);
			break;
		}
	}
}
