/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is accepted can be written, read again and written the same.
 */
#include <assert.h>
#include <stdint.h>

#include <osbx/json.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Escapes take up to six bytes for one, numbers up to 24 for three. */
static void write_value(const struct json *v, struct buf *b)
{
	struct json_writer w = JSON_WRITER(b);

	json_add_value(&w, NULL, v);
	assert(!w.failed);
	assert(w.depth == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error e = ERROR_INIT;
	AUTO(json)
	struct json *v = json_parse((struct span){ .p = (const char *)data, .n = size }, &e);
	AUTO(json) struct json *again = NULL;
	AUTO(buf) struct buf first = BUF_INIT(size * 24 + 64);
	AUTO(buf) struct buf second = BUF_INIT(size * 24 + 64);

	if (!v) {
		assert(e.code == ERRC_INVALID);
		return 0;
	}
	write_value(v, &first);
	again = json_parse(buf_span(&first), &e);
	assert(again);
	write_value(again, &second);
	assert(span_eq(buf_span(&first), buf_span(&second)));
	return 0;
}
