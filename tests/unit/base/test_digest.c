/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>

#include <osbx/digest.h>
#include <osbx/str.h>

#include "../unit.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define LONG  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
#define MANY  "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
#define CHAIN "dd8ddd90bdf3ccbd91abd3f399218c9d93e91246734fab743933f42048ac3e2c"

static const struct {
	const char *text;
	int result;
} texts[] = {
	{ "sha256:" ABC, 0 },
	{ "sha256:" ABC "0", -EINVAL },
	{ "sha256:ba7816", -EINVAL },
	{ "sha256:", -EINVAL },
	{ "sha256", -EINVAL },
	{ "", -EINVAL },
	{ ABC, -EINVAL },
	{ ":" ABC, -EINVAL },
	{ " sha256:" ABC, -EINVAL },
	{ "sha256:" ABC " ", -EINVAL },
	{ "sha256:" ABC "\n", -EINVAL },
	{ "SHA256:" ABC, -EINVAL },
	{ "sha256:BA7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", -EINVAL },
	{ "sha256:ga7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", -EINVAL },
	{ "sha256:../../../../../../../../../../../../../../../../../../etc/passwd", -EINVAL },
	{ "sha256-" ABC, -EINVAL },
	{ "sha512:" ABC ABC, -ENOTSUP },
	{ "sha384:" ABC, -ENOTSUP },
	{ "sha256+b64u:LCa0a2j_xo_5m0U8HTBBNBNCLXBkg7-g-YpeiGJm564", -ENOTSUP },
	{ "sha512:../x", -EINVAL },
	{ "sha512:", -EINVAL },
};

START_TEST(parse_is_strict)
{
	struct digest d = { .text = "untouched" };

	ck_assert_int_eq(digest_parse(texts[_i].text, &d), texts[_i].result);
	ck_assert_str_eq(d.text, texts[_i].result == 0 ? texts[_i].text : "untouched");
	if (texts[_i].result == 0) {
		ck_assert_str_eq(digest_hex(&d), ABC);
	}
}
END_TEST

static struct digest digest_make(const char *hex)
{
	struct digest d = { .text = "" };

	snprintf(d.text, sizeof(d.text), "sha256:%s", hex);
	ck_assert_uint_eq(strlen(d.text), DIGEST_TEXT_LEN);
	return d;
}

START_TEST(equality)
{
	struct digest a = digest_make(ABC);
	struct digest b = digest_make(ABC);
	struct digest c = digest_make(EMPTY);
	struct digest unset = { .text = "" };

	ck_assert(digest_eq(&a, &b));
	ck_assert(!digest_eq(&a, &c));
	ck_assert(!digest_eq(&a, &unset));
	ck_assert(digest_eq(&unset, &unset));
}
END_TEST

/* FIPS 180-2, appendix B. */
static const struct {
	const char *data;
	const char *hex;
} answers[] = {
	{ "", EMPTY },
	{ "abc", ABC },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", LONG },
};

START_TEST(known_answers)
{
	struct error e = ERROR_INIT;
	struct digest d;

	ck_assert_int_eq(digest_of(span_of(answers[_i].data), &d, &e), 0);
	ck_assert_str_eq(digest_hex(&d), answers[_i].hex);
	ck_assert_int_eq(digest_parse(d.text, &d), 0);
}
END_TEST

START_TEST(pieces_make_the_whole)
{
	struct error e = ERROR_INIT;
	AUTO(digest_hash) struct digest_hash *h = NULL;
	struct digest d;
	char block[1000];
	size_t done = 0;

	memset(block, 'a', sizeof(block));
	ck_assert_int_eq(digest_load_library(&e), 0);
	ck_assert_int_eq(digest_load_library(&e), 0);
	h = digest_hash_new(&e);
	ck_assert_ptr_nonnull(h);
	/* A million times 'a', in pieces of all sizes. */
	for (size_t n = 0; done < 1000000; n = (n + 7) % 1000) {
		size_t piece = n < 1000000 - done ? n : 1000000 - done;

		digest_hash_add(h, block, piece);
		done += piece;
	}
	digest_hash_end(h, &d);
	ck_assert_str_eq(digest_hex(&d), MANY);
}
END_TEST

START_TEST(hashes_do_not_share_state)
{
	struct error e = ERROR_INIT;
	AUTO(digest_hash) struct digest_hash *a = digest_hash_new(&e);
	AUTO(digest_hash) struct digest_hash *b = digest_hash_new(&e);
	AUTO(digest_hash) struct digest_hash *unused = digest_hash_new(&e);
	struct digest d;

	digest_hash_add(a, "ab", 2);
	digest_hash_end(b, &d);
	ck_assert_str_eq(digest_hex(&d), EMPTY);
	digest_hash_add(a, "c", 1);
	digest_hash_end(a, &d);
	ck_assert_str_eq(digest_hex(&d), ABC);
	ck_assert_ptr_nonnull(unused);
	digest_hash_free(NULL);
}
END_TEST

START_TEST(add_after_the_end_aborts)
{
	struct error e = ERROR_INIT;
	struct digest_hash *h = digest_hash_new(&e);
	struct digest d;

	digest_hash_end(h, &d);
	digest_hash_add(h, "x", 1);
}
END_TEST

START_TEST(end_after_the_end_aborts)
{
	struct error e = ERROR_INIT;
	struct digest_hash *h = digest_hash_new(&e);
	struct digest d;

	digest_hash_end(h, &d);
	digest_hash_end(h, &d);
}
END_TEST

START_TEST(chain_of_layers)
{
	struct error e = ERROR_INIT;
	struct digest lowest = digest_make(ABC);
	struct digest second = digest_make(EMPTY);
	struct digest unset = { .text = "" };
	struct digest chain;

	ck_assert_int_eq(digest_chain(NULL, &lowest, &chain, &e), 0);
	ck_assert(digest_eq(&chain, &lowest));
	ck_assert_int_eq(digest_chain(&unset, &lowest, &chain, &e), 0);
	ck_assert(digest_eq(&chain, &lowest));
	ck_assert_int_eq(digest_chain(&chain, &second, &chain, &e), 0);
	/* printf '%s %s' sha256:ba78... sha256:e3b0... | sha256sum */
	ck_assert_str_eq(digest_hex(&chain), CHAIN);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("digest");
	TCase *tc = tcase_create("all");

	tcase_add_loop_test(tc, parse_is_strict, 0, ARRAY_SIZE(texts));
	tcase_add_test(tc, equality);
	tcase_add_loop_test(tc, known_answers, 0, ARRAY_SIZE(answers));
	tcase_add_test(tc, pieces_make_the_whole);
	tcase_add_test(tc, hashes_do_not_share_state);
	tcase_add_test_raise_signal(tc, add_after_the_end_aborts, SIGABRT);
	tcase_add_test_raise_signal(tc, end_after_the_end_aborts, SIGABRT);
	tcase_add_test(tc, chain_of_layers);
	suite_add_tcase(s, tc);
	return unit_run(s);
}
