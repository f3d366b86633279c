/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/mem.h>

#include "../../../execd/ring.h"
#include "../unit.h"

/* The byte that stands at an offset of the stream. */
static char byte_at(uint64_t offset)
{
	return (char)('a' + offset % 23);
}

static void add(struct ring *r, size_t n)
{
	autofree char *bytes = mem_array(n + 1, 1);

	for (size_t i = 0; i < n; i++) {
		bytes[i] = byte_at(r->end + i);
	}
	ring_add(r, (struct span){ .p = bytes, .n = n });
}

/* What is there from since on begins at from, goes to the end, and is the stream's. */
static void expect(const struct ring *r, uint64_t since, uint64_t from)
{
	struct span parts[2];

	ck_assert_uint_eq(ring_since(r, since, parts), from);
	ck_assert_uint_eq(parts[0].n + parts[1].n, r->end - from);
	size_t wrong = 0;

	for (size_t i = 0; i < parts[0].n + parts[1].n; i++) {
		char got = i < parts[0].n ? parts[0].p[i] : parts[1].p[i - parts[0].n];

		wrong += got != byte_at(from + i);
	}
	ck_assert_uint_eq(wrong, 0);
}

START_TEST(nothing_yet)
{
	AUTO(ring) struct ring r = { .end = 0 };

	expect(&r, 0, 0);
	expect(&r, 7, 0);
}
END_TEST

START_TEST(all_of_a_short_stream)
{
	AUTO(ring) struct ring r = { .end = 0 };

	add(&r, 0);
	add(&r, 10);
	add(&r, 5000);
	expect(&r, 0, 0);
	expect(&r, 9, 9);
	expect(&r, 5010, 5010);
	expect(&r, 99999, 5010);
}
END_TEST

START_TEST(the_last_mebibyte)
{
	static const size_t pieces[] = { 1, 4095, 4096, 65537, 300000, 1048575, 1048576 };
	AUTO(ring) struct ring r = { .end = 0 };

	for (size_t i = 0; i < 40; i++) {
		add(&r, pieces[i % ARRAY_SIZE(pieces)]);
		uint64_t oldest = r.end > RING_BYTES_MAX ? r.end - RING_BYTES_MAX : 0;

		expect(&r, 0, oldest);
		expect(&r, r.end - r.end / 3,
				r.end - r.end / 3 < oldest ? oldest : r.end - r.end / 3);
	}
	ck_assert_uint_eq(r.room, RING_BYTES_MAX);
}
END_TEST

START_TEST(more_than_a_mebibyte_at_once)
{
	AUTO(ring) struct ring r = { .end = 0 };

	add(&r, 77);
	add(&r, 3U << 20);
	expect(&r, 0, r.end - RING_BYTES_MAX);
	add(&r, 5);
	expect(&r, 0, r.end - RING_BYTES_MAX);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ring");
	TCase *tc = tcase_create("all");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, nothing_yet);
	tcase_add_test(tc, all_of_a_short_stream);
	tcase_add_test(tc, the_last_mebibyte);
	tcase_add_test(tc, more_than_a_mebibyte_at_once);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
