/* SPDX-License-Identifier: Apache-2.0 */
#include "http_internal.h"

struct span http_field(const struct http_req *rq, const char *name)
{
	const struct exchange *x = exchange_of(rq);

	for (size_t i = 0; i < x->fields_n; i++) {
		if (parse_same_name(x->fields[i].name, name)) {
			return x->fields[i].value;
		}
	}
	return (struct span){ .p = NULL };
}

bool http_field_at(
		const struct http_req *rq, size_t i, struct span *out_name, struct span *out_value)
{
	const struct exchange *x = exchange_of(rq);

	if (i >= x->fields_n) {
		return false;
	}
	*out_name = x->fields[i].name;
	*out_value = x->fields[i].value;
	return true;
}

bool http_field_has(const struct http_req *rq, const char *name, const char *token)
{
	const struct exchange *x = exchange_of(rq);

	for (size_t i = 0; i < x->fields_n; i++) {
		struct span rest = x->fields[i].value;
		struct span piece = { .p = NULL };

		if (!parse_same_name(x->fields[i].name, name)) {
			continue;
		}
		while (span_next(&rest, ',', &piece)) {
			if (parse_same_name(parse_trim(piece), token)) {
				return true;
			}
		}
	}
	return false;
}
