/* SPDX-License-Identifier: Apache-2.0 */
/* Input: the user's text, /etc/passwd and /etc/group, separated by NUL bytes. */
#include <assert.h>
#include <stdint.h>

#include "../../execd/passwd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = { .p = (const char *)data, .n = size };
	struct span user_text = { .n = 0 };
	struct passwd_files files = { .passwd = { .absent = NULL } };
	struct strv groups = STRV_INIT;
	struct passwd_user u = { .uid = 0 };
	struct error e = ERROR_INIT;

	if (!span_next(&rest, '\0', &user_text) || !span_next(&rest, '\0', &files.passwd.text)) {
		return 0;
	}
	files.group.text = rest;
	autofree char *user = span_dup(user_text);
	const struct passwd_query q = {
		.user = user,
		.groups = &groups,
		.ids_max = 1000,
		.has_setgroups = true,
	};

	if (passwd_lookup(&q, &files, &u, &e) == 0) {
		assert(u.uid < 1000 && u.gid < 1000 && u.home[0] == '/');
		for (size_t i = 0; i < u.groups_n; i++) {
			assert(u.groups[i] < 1000);
		}
		passwd_user_done(&u);
	} else {
		assert(e.code != ERRC_OK && e.text[0]);
	}
	return 0;
}
