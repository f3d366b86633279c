/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * secfilter_doc - the JSON document of a syscall profile, member by member, nothing decided yet.
 */
#ifndef OSBX_POLICY_SECFILTER_DOC_H
#define OSBX_POLICY_SECFILTER_DOC_H

#include <stddef.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/span.h>
#include <osbx/strv.h>

#include "secfilter_profile.h"

/* What the ecosystem calls this machine. */
#if defined(__x86_64__)
#	define DOC_GO_ARCH     "amd64"
#	define DOC_NATIVE_ARCH "SCMP_ARCH_X86_64"
#elif defined(__aarch64__)
#	define DOC_GO_ARCH     "arm64"
#	define DOC_NATIVE_ARCH "SCMP_ARCH_AARCH64"
#else
#	define DOC_GO_ARCH     "riscv64"
#	define DOC_NATIVE_ARCH "SCMP_ARCH_RISCV64"
#endif

#define DOC_ERRNO_NONE UINT64_MAX

struct doc_condition {
	struct strv caps;
	struct strv arches;
	char *min_kernel;
};

struct doc_rule {
	struct strv names;
	char *name; /* old form */
	char *action;
	char *comment;
	char *errno_name;
	uint64_t errno_ret;
	struct doc_condition includes;
	struct doc_condition excludes;
	size_t args_n;
	struct profile_arg args[PROFILE_ARGS_MAX];
};

struct doc_arch {
	char *architecture;
	struct strv sub;
};

struct doc {
	char *default_action;
	char *default_errno_name;
	uint64_t default_errno_ret;
	char *listener_path;
	char *listener_metadata;
	struct strv flags;
	struct strv architectures; /* all of them, archMap resolved */
	size_t rules_n;
	struct doc_rule *rules;
};

void doc_done(struct doc *d);
AUTO_DEFINE(doc, struct doc, doc_done);
/* Decode; unknown members are errors. ERRC_INVALID or ERRC_LIMIT with the place in the text. What
 * was decoded before a failure stays in out and is freed by its owner. */
int doc_parse(struct span text, struct doc *out, struct error *e) MUST_CHECK NONNULL(2, 3);

#endif
