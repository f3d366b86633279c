/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/mem.h>

#include "../../../policy/sniff.h"
#include "../unit.h"

#define EXT(type, data) type, data, sizeof(data) - 1

/* A ClientHello in the making: the message, then its records. */
struct hello {
	uint8_t p[80000];
	size_t n;
};

static void put(struct hello *h, const void *p, size_t n)
{
	ck_assert_uint_le(h->n + n, sizeof(h->p));
	memcpy(h->p + h->n, p, n);
	h->n += n;
}

static void put16(struct hello *h, size_t v)
{
	const uint8_t bytes[] = { (uint8_t)(v >> 8), (uint8_t)v };

	put(h, bytes, 2);
}

static void put_ext(struct hello *h, unsigned int type, const void *data, size_t n)
{
	put16(h, type);
	put16(h, n);
	put(h, data, n);
}

static void put_name(struct hello *h, const char *name)
{
	uint8_t data[600] = { 0 };
	const size_t n = strlen(name);

	data[0] = (uint8_t)((n + 3) >> 8);
	data[1] = (uint8_t)(n + 3);
	data[3] = (uint8_t)(n >> 8);
	data[4] = (uint8_t)n;
	memcpy(data + 5, name, n);
	put_ext(h, 0, data, n + 5);
}

/* Up to the length of the extensions. */
static void begin(struct hello *h)
{
	static const uint8_t zero[32];

	h->n = 0;
	put(h, "\1\0\0\0\3\3", 6);
	put(h, zero, 32);
	put(h, "\40", 1);
	put(h, zero, 32);
	put(h, "\0\4\x13\1\x13\2\1\0\0\0", 10);
}

/* All lengths as they are. */
static void end(struct hello *h)
{
	const size_t exts_at = 6 + 32 + 33 + 8;
	const size_t message_n = h->n - 4;

	h->p[exts_at] = (uint8_t)((h->n - exts_at - 2) >> 8);
	h->p[exts_at + 1] = (uint8_t)(h->n - exts_at - 2);
	h->p[1] = (uint8_t)(message_n >> 16);
	h->p[2] = (uint8_t)(message_n >> 8);
	h->p[3] = (uint8_t)message_n;
}

/* The message in records of some bytes each. */
static void records(const struct hello *h, size_t size, struct hello *out)
{
	out->n = 0;
	for (size_t at = 0; at < h->n; at += size) {
		const size_t n = h->n - at < size ? h->n - at : size;

		put(out, "\x16\3\1", 3);
		put16(out, n);
		put(out, h->p + at, n);
	}
}

/* In pieces of some bytes. */
static enum sniff feed(struct sniff_tls *s, const struct hello *bytes, size_t piece)
{
	enum sniff result = SNIFF_MORE;

	sniff_tls_init(s);
	for (size_t at = 0; at < bytes->n; at += piece) {
		const size_t n = bytes->n - at < piece ? bytes->n - at : piece;

		ck_assert_int_eq(result, SNIFF_MORE);
		result = sniff_tls_feed(
				s, (struct span){ .p = (const char *)bytes->p + at, .n = n });
	}
	return result;
}

static enum sniff feed_message(struct sniff_tls *s, const struct hello *h)
{
	static struct hello out;

	records(h, 16384, &out);
	return feed(s, &out, out.n);
}

static struct hello h, out;

START_TEST(name_in_all_fragments)
{
	static const size_t sizes[] = { 1, 2, 3, 5, 7, 60, 16384 };
	struct sniff_tls s;

	begin(&h);
	put_ext(&h, EXT(43, "\2\3\4"));
	put_name(&h, "Host.TEST");
	put_ext(&h, EXT(16, "\0\3\2h2"));
	end(&h);
	records(&h, sizes[_i], &out);
	for (size_t piece = 1; piece < 20; piece++) {
		ck_assert_int_eq(feed(&s, &out, piece), SNIFF_NAME);
		ck_assert_str_eq(s.name, "host.test");
		ck_assert(!s.has_ech);
	}
	/* Bytes behind it are somebody else's: early data. */
	put(&out, "\x17\3\3\0\1x", 6);
	ck_assert_int_eq(feed(&s, &out, out.n), SNIFF_NAME);
	/* Cut anywhere, it goes on. */
	for (size_t n = 0; n < out.n - 6; n++) {
		sniff_tls_init(&s);
		ck_assert_int_eq(sniff_tls_feed(&s, (struct span){ .p = (const char *)out.p, n }),
				SNIFF_MORE);
	}
}
END_TEST

START_TEST(a_large_hello)
{
	static const uint8_t key[20000];
	struct sniff_tls s;

	begin(&h);
	put_ext(&h, 51, key, sizeof(key));
	put_name(&h, "host.test");
	put_ext(&h, 21, key, sizeof(key));
	put_ext(&h, 22, key, 10000);
	end(&h);
	records(&h, 16384, &out);
	ck_assert_int_eq(feed(&s, &out, 1400), SNIFF_NAME);
	ck_assert_str_eq(s.name, "host.test");
	/* In records of one byte it is six times as long. */
	records(&h, 10, &out);
	sniff_tls_init(&s);
	ck_assert_int_eq(sniff_tls_feed(&s, (struct span){ .p = (const char *)out.p, out.n }),
			SNIFF_NONE);
	ck_assert_ptr_nonnull(strstr(s.why, "too long"));
}
END_TEST

START_TEST(a_hello_that_says_it_is_too_large)
{
	struct sniff_tls s;

	begin(&h);
	h.p[1] = 1;
	h.p[2] = 0;
	h.p[3] = 1;
	ck_assert_int_eq(feed_message(&s, &h), SNIFF_NONE);
	ck_assert_ptr_nonnull(strstr(s.why, "too long"));
}
END_TEST

START_TEST(encrypted_hello)
{
	static const unsigned int types[] = { 0xfe0d, 0xffce };
	struct sniff_tls s;

	begin(&h);
	put_name(&h, "outer.test");
	put_ext(&h, types[_i], "abc", 3);
	end(&h);
	ck_assert_int_eq(feed_message(&s, &h), SNIFF_NAME);
	ck_assert_str_eq(s.name, "outer.test");
	ck_assert(s.has_ech);
}
END_TEST

static const struct {
	const char *data; /* of the extension */
	size_t n;
	const char *why;
} bad_names[] = {
	{ "", 0, "empty" },
	{ "\0\3\0\0\0", 5, "empty" },
	{ "\0\4\1\0\1a", 6, "no host name" }, /* another type */
	{ "\0\5\0\0\1a", 6, "list" },         /* lengths that do not fit */
	{ "\0\4\0\0\2a", 6, "more than one" },
	{ "\0\4\0\0\0a", 6, "more than one" },
	{ "\0\10\0\0\1a\0\0\1b", 10, "more than one" },
	{ "\0\5\0\0\2a\0", 7, "no host name" },
	{ "\0\5\0\0\2a ", 7, "no host name" },
	{ "\0\6\0\0\3*.a", 8, "no host name" },
	{ "\0\12\0\0\7"
	  "1.2.3.4",
			12, "no host name" },
	{ "\0\6\0\0\3::1", 8, "no host name" },
};

START_TEST(a_bad_name)
{
	struct sniff_tls s;

	begin(&h);
	put_ext(&h, 0, bad_names[_i].data, bad_names[_i].n);
	end(&h);
	ck_assert_int_eq(feed_message(&s, &h), SNIFF_NONE);
	ck_assert_msg(strstr(s.why, bad_names[_i].why), "%s", s.why);
}
END_TEST

START_TEST(names_that_are_long)
{
	struct sniff_tls s;
	char name[300] = "";

	for (size_t i = 0; i < 253; i++) {
		name[i] = i % 64 == 63 ? '.' : 'a';
	}
	begin(&h);
	put_name(&h, name);
	end(&h);
	ck_assert_int_eq(feed_message(&s, &h), SNIFF_NAME);
	ck_assert_str_eq(s.name, name);
	name[253] = 'a';
	begin(&h);
	put_name(&h, name);
	end(&h);
	ck_assert_int_eq(feed_message(&s, &h), SNIFF_NONE);
	ck_assert_ptr_nonnull(strstr(s.why, "too long"));
}
END_TEST

START_TEST(two_names)
{
	struct sniff_tls s;

	begin(&h);
	put_name(&h, "a.test");
	put_ext(&h, EXT(43, "\2\3\4"));
	put_name(&h, "a.test");
	end(&h);
	ck_assert_int_eq(feed_message(&s, &h), SNIFF_NONE);
	ck_assert_ptr_nonnull(strstr(s.why, "two server names"));
}
END_TEST

START_TEST(no_name)
{
	struct sniff_tls s;

	begin(&h);
	put_ext(&h, EXT(43, "\2\3\4"));
	end(&h);
	ck_assert_int_eq(feed_message(&s, &h), SNIFF_NONE);
	ck_assert_ptr_nonnull(strstr(s.why, "without server name"));
	/* extensions that are empty, and none at all */
	begin(&h);
	end(&h);
	ck_assert_int_eq(feed_message(&s, &h), SNIFF_NONE);
	ck_assert_ptr_nonnull(strstr(s.why, "without server name"));
	begin(&h);
	h.n -= 2;
	h.p[3] = (uint8_t)(h.n - 4);
	ck_assert_int_eq(feed_message(&s, &h), SNIFF_NONE);
	ck_assert_ptr_nonnull(strstr(s.why, "without server name"));
}
END_TEST

/* One byte of a good hello at a time, set to what it must not be. */
static const struct {
	size_t at;
	uint8_t value;
} bad_bytes[] = {
	{ 0, 2 },  /* a ServerHello */
	{ 3, 33 }, /* length */
	{ 3, 34 },
	{ 3, 35 + 32 },
	{ 3, 0xff },
	{ 6 + 32, 0xff },          /* session */
	{ 6 + 32 + 33, 0xff },     /* ciphers */
	{ 6 + 32 + 33 + 6, 0xff }, /* compression */
	{ 6 + 32 + 33 + 8, 1 },    /* extensions */
	{ 6 + 32 + 33 + 9, 0 },
	{ 6 + 32 + 33 + 9, 3 },
	{ 6 + 32 + 33 + 12, 1 }, /* the first one */
	{ 6 + 32 + 33 + 13, 0xff },
};

START_TEST(lengths_that_do_not_fit)
{
	struct sniff_tls s;

	begin(&h);
	put_ext(&h, EXT(43, "\2\3\4"));
	put_name(&h, "host.test");
	end(&h);
	ck_assert_int_eq(feed_message(&s, &h), SNIFF_NAME);
	h.p[bad_bytes[_i].at] = bad_bytes[_i].value;
	ck_assert_msg(feed_message(&s, &h) != SNIFF_NAME, "%zu: %s", bad_bytes[_i].at, s.name);
}
END_TEST

static const struct {
	const char *bytes;
	size_t n;
} no_tls[] = {
	{ "GET / HTTP/1.1\r\n", 16 }, { "SSH-2.0-x\r\n", 11 }, { "\x80\x2e\1\3\1", 5 }, /* SSL 2 */
	{ "\x15\3\1\0\2\1\0", 7 }, /* an alert */
	{ "\x17\3\1\0\1x", 6 }, { "\x16\2\1\0\1\1", 6 }, { "\x16\3\1\0\0", 5 },
	{ "\x16\3\1\x40\1", 5 }, { "\x16\3\1\xff\xff", 5 },
	{ "\x16\3\1\0\1\0", 6 },                /* a HelloRequest */
	{ "\x16\3\1\0\1\1\x17\3\1\0\1\0", 12 }, /* another record within the message */
};

START_TEST(no_hello)
{
	struct sniff_tls s;

	h.n = 0;
	put(&h, no_tls[_i].bytes, no_tls[_i].n);
	sniff_tls_init(&s);
	ck_assert_int_eq(sniff_tls_feed(&s, (struct span){ .p = (const char *)h.p, h.n }),
			SNIFF_NONE);
	ck_assert_ptr_nonnull(s.why);
	/* And remains none. */
	ck_assert_int_eq(sniff_tls_feed(&s, (struct span){ .p = "\x16", .n = 1 }), SNIFF_NONE);
}
END_TEST

static const struct {
	const char *bytes;
	size_t n;
	enum sniff_proto proto;
} guesses[] = {
	{ "", 0, SNIFF_PROTO_MORE },
	{ "\x16", 1, SNIFF_PROTO_MORE },
	{ "\x16\3", 2, SNIFF_PROTO_TLS },
	{ "\x16\2", 2, SNIFF_PROTO_OTHER },
	{ "G", 1, SNIFF_PROTO_MORE },
	{ "GET", 3, SNIFF_PROTO_MORE },
	{ "GET ", 4, SNIFF_PROTO_HTTP },
	{ "GET /", 5, SNIFF_PROTO_HTTP },
	{ "GETX", 4, SNIFF_PROTO_OTHER },
	{ "P", 1, SNIFF_PROTO_MORE },
	{ "PU", 2, SNIFF_PROTO_MORE },
	{ "PUT ", 4, SNIFF_PROTO_HTTP },
	{ "OPTIONS ", 8, SNIFF_PROTO_HTTP },
	{ "OPTION", 6, SNIFF_PROTO_MORE },
	{ "PRI * HTTP/2.0", 14, SNIFF_PROTO_OTHER },
	{ "get /", 5, SNIFF_PROTO_OTHER },
	{ "SSH-2.0", 7, SNIFF_PROTO_OTHER },
	{ "EHLO x", 6, SNIFF_PROTO_OTHER },
	{ "\0", 1, SNIFF_PROTO_OTHER },
};

START_TEST(guess)
{
	ck_assert_int_eq(sniff_guess((struct span){ .p = guesses[_i].bytes, guesses[_i].n }),
			guesses[_i].proto);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sniff_tls");
	TCase *tc = tcase_create("sniff_tls");

	suite_add_tcase(s, tc);
	tcase_add_loop_test(tc, name_in_all_fragments, 0, 7);
	tcase_add_test(tc, a_large_hello);
	tcase_add_test(tc, a_hello_that_says_it_is_too_large);
	tcase_add_loop_test(tc, encrypted_hello, 0, 2);
	tcase_add_loop_test(tc, a_bad_name, 0, ARRAY_SIZE(bad_names));
	tcase_add_test(tc, names_that_are_long);
	tcase_add_test(tc, two_names);
	tcase_add_test(tc, no_name);
	tcase_add_loop_test(tc, lengths_that_do_not_fit, 0, ARRAY_SIZE(bad_bytes));
	tcase_add_loop_test(tc, no_hello, 0, ARRAY_SIZE(no_tls));
	tcase_add_loop_test(tc, guess, 0, ARRAY_SIZE(guesses));
	return unit_run(s);
}
