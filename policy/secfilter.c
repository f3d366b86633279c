/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include <osbx/secfilter.h>

#include "secfilter_data.h" /* made by secfilter_gen */

struct builtin {
	const struct sock_filter *insns;
	size_t n;
};

#define BUILTIN(filter)                                    \
	{                                                  \
		.insns = (filter), .n = ARRAY_SIZE(filter) \
	}

static const struct builtin builtins[] = {
	[SECFILTER_WORKLOAD] = BUILTIN(filter_workload),
	[SECFILTER_WORKLOAD_ISOLATION] = BUILTIN(filter_workload_isolation),
	[SECFILTER_INIT] = BUILTIN(filter_init),
	[SECFILTER_INIT_ISOLATION] = BUILTIN(filter_init_isolation),
	[SECFILTER_CHILD] = BUILTIN(filter_child),
	[SECFILTER_UNPACK] = BUILTIN(filter_unpack),
	[SECFILTER_FETCH] = BUILTIN(filter_fetch),
	[SECFILTER_NETD] = BUILTIN(filter_netd),
};
_Static_assert(ARRAY_SIZE(builtins) == SECFILTER_KIND_COUNT, "one program per kind");

void secfilter_builtin(enum secfilter_kind kind, struct secfilter *out_f)
{
	assert((unsigned int)kind < SECFILTER_KIND_COUNT);
	*out_f = (struct secfilter){ .insns = builtins[kind].insns, .n = builtins[kind].n };
}

void secfilter_done(struct secfilter *f)
{
	free(f->owned);
	*f = (struct secfilter){ .n = 0 };
}
