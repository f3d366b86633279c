/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * secfilter_profile - a syscall profile in the container ecosystem's JSON form, decoded and reduced
 * to what applies on this machine and with these capabilities.
 *
 * Members that nobody knows are errors: a misspelt condition must not widen a filter. "flags" and
 * "comment" are accepted and have no effect; a listener is not supported.
 */
#ifndef OSBX_POLICY_SECFILTER_PROFILE_H
#define OSBX_POLICY_SECFILTER_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/span.h>
#include <osbx/strv.h>

#define PROFILE_ARGS_MAX   6
#define PROFILE_ARCHES_MAX 4

struct profile_arg {
	uint64_t index; /* below PROFILE_ARGS_MAX */
	uint64_t value; /* MASKED_EQ: the mask */
	uint64_t value_two;
	int op; /* enum scmp_compare */
};

struct profile_rule {
	struct strv names;
	uint32_t action; /* SCMP_ACT_* */
	size_t args_n;
	struct profile_arg args[PROFILE_ARGS_MAX]; /* all must hold */
	bool is_alternative; /* an argument is named twice: any of args is enough (as runc reads it)
			      */
};

struct profile {
	uint32_t default_action;
	size_t arches_n; /* besides the machine's own */
	uint32_t arches[PROFILE_ARCHES_MAX];
	size_t rules_n;
	struct profile_rule *rules; /* those that apply */
};

void profile_done(struct profile *p);
AUTO_DEFINE(profile, struct profile, profile_done);
/* Decode. caps: the workload's mask; release: of the kernel ("6.1.0-13-amd64"), for minKernel.
 * ERRC_INVALID with the place in the document, ERRC_LIMIT, ERRC_UNSUPPORTED (an action that needs
 * a supervisor). */
int profile_parse(struct span text, uint64_t caps, const char *release, struct profile *out_p,
		struct error *e) MUST_CHECK NONNULL(3, 4, 5);

#endif
