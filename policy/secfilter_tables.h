/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * secfilter_tables - the built-in filters as tables; compiled by secfilter_gen at build time.
 *
 * All comparisons of arguments look at the low 32 bits: that is what the kernel uses of an int or
 * unsigned int. A comparison of all 64 bits lets TIOCSTI with a bit set above them pass
 * (CVE-2019-7303, CVE-2019-10063), and a filter library cannot say "not equal under a mask"; hence
 * a compiler of our own for these tables.
 */
#ifndef OSBX_POLICY_SECFILTER_TABLES_H
#define OSBX_POLICY_SECFILTER_TABLES_H

#include <stddef.h>
#include <stdint.h>

#define TABLES_CONDS_MAX 2

/* (low 32 bits of args[arg] & mask) == value; mask 0: no condition. */
struct filter_cond {
	unsigned int arg;
	uint32_t mask;
	uint32_t value;
};

struct filter_case {
	struct filter_cond conds[TABLES_CONDS_MAX]; /* all must hold */
	uint32_t action;                            /* SECCOMP_RET_* */
};

struct filter_rule {
	/* Blank-separated. "name=number" for what libseccomp may not know yet; such numbers are the
	 * same on every machine. Names that a machine does not have are skipped. */
	const char *names;
	const struct filter_case *cases; /* first match wins; NULL without conditions */
	size_t cases_n;
	uint32_t action; /* when no case matches */
};

struct filter_profile {
	const char *name;               /* of the C array and of the golden file */
	const struct filter_rule *over; /* looked at before rules; may be NULL */
	size_t over_n;
	const struct filter_rule *rules;
	size_t rules_n;
	uint32_t action; /* for every other system call of this machine */
};

extern const struct filter_profile filter_profiles[];
extern const size_t filter_profiles_n;

#endif
