/* SPDX-License-Identifier: Apache-2.0 */
/* Input: the file that EXECD_ENVS names. */
#include <assert.h>
#include <stdint.h>

#include <osbx/limits.h>

#include "../../execd/envfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(strv) struct strv env = STRV_INIT;
	int r = strv_add(&env, "HOME=/root");

	assert(r == 0);
	r = envfile_apply((struct span){ .p = (const char *)data, .n = size }, &env);
	assert(r <= 0 && env.n >= 1 && env.n <= LIMIT_ENV);
	assert(strv_bytes(&env) <= LIMIT_ARGS_BYTES + sizeof("HOME=/root"));
	strv_for_each(&env, i) {
		const char *eq = strchr(env.v[i], '=');

		assert(eq && eq > env.v[i]);
	}
	return 0;
}
