/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/str.h>

#include "../../oci/auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void param_write(struct buf *out, const char *name, const char *value)
{
	int rc = value ? buf_appendf(out, ", %s=\"", name) : 0;

	for (const char *p = value; p && *p && rc == 0; p++) {
		assert(*p >= ' ' && *p <= '~');
		rc = buf_appendf(out, "%s%c", *p == '"' || *p == '\\' ? "\\" : "", *p);
	}
	rc = rc == 0 && value ? buf_append_str(out, "\"") : rc;
	assert(rc == 0);
}

static void check_same(const char *a, const char *b)
{
	assert(a ? b && str_eq(a, b) : !b);
}

/* What was understood is printable, and is understood the same when it is written in full. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auth_challenge) struct auth_challenge c = { .n = 0 };
	AUTO(auth_challenge) struct auth_challenge again = { .n = 0 };
	AUTO(buf) struct buf text = BUF_INIT(1U << 16);

	if (auth_challenge_add(&c, (struct span){ .p = (const char *)data, .n = size }) < 0) {
		return 0;
	}
	assert(c.n <= AUTH_CHALLENGES_MAX);
	assert(c.bearer || (!c.realm && !c.service && !c.error));
	if (!c.bearer || buf_append_str(&text, "Bearer x=y") < 0) {
		return 0;
	}
	param_write(&text, "realm", c.realm);
	param_write(&text, "service", c.service);
	param_write(&text, "error", c.error);
	if (auth_challenge_add(&again, buf_span(&text)) == 0) {
		assert(again.bearer);
		check_same(c.realm, again.realm);
		check_same(c.service, again.service);
		check_same(c.error, again.error);
	} else {
		/* Escapes made it longer than a field may be. */
		assert(text.n > AUTH_HEADER_MAX);
	}
	return 0;
}
