/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/digest.h>
#include <osbx/mem.h>
#include <osbx/program.h>
#include <osbx/str.h>

#define SHA256_BYTES 32

/* What is used of <openssl/evp.h>; its types are opaque here. */
struct libcrypto {
	void *(*ctx_new)(void);
	void (*ctx_free)(void *ctx);
	const void *(*sha256)(void);
	int (*init)(void *ctx, const void *type, void *engine);
	int (*update)(void *ctx, const void *p, size_t n);
	int (*final)(void *ctx, unsigned char *out, unsigned int *out_n);
};

static const struct {
	const char *name;
	size_t offset;
} symbols[] = {
	{ "EVP_MD_CTX_new", offsetof(struct libcrypto, ctx_new) },
	{ "EVP_MD_CTX_free", offsetof(struct libcrypto, ctx_free) },
	{ "EVP_sha256", offsetof(struct libcrypto, sha256) },
	{ "EVP_DigestInit_ex", offsetof(struct libcrypto, init) },
	{ "EVP_DigestUpdate", offsetof(struct libcrypto, update) },
	{ "EVP_DigestFinal_ex", offsetof(struct libcrypto, final) },
};

static struct libcrypto lib;
static void *lib_handle;

struct digest_hash {
	void *ctx;
	bool is_ended;
};

int digest_parse(const char *text, struct digest *out_d)
{
	static const char algorithm_set[] = "abcdefghijklmnopqrstuvwxyz0123456789+._-";
	static const char encoded_set[] = "abcdefghijklmnopqrstuvwxyz"
					  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=_-";
	const char *hex = str_after(text, "sha256:");
	size_t n = strspn(text, algorithm_set);

	if (!hex) {
		return n > 0 && text[n] == ':' && str_is_made_of(text + n + 1, encoded_set)
				       ? -ENOTSUP
				       : -EINVAL;
	}
	if (strnlen(hex, DIGEST_HEX_LEN + 1) != DIGEST_HEX_LEN ||
			!str_is_made_of(hex, "0123456789abcdef")) {
		return -EINVAL;
	}
	memcpy(out_d->text, text, DIGEST_TEXT_LEN + 1);
	return 0;
}

bool digest_eq(const struct digest *a, const struct digest *b)
{
	return str_eq(a->text, b->text);
}

int digest_load_library(struct error *e)
{
	/* The second is Debian 11's and RHEL 8's; these six functions are the same. */
	static const char *const names[] = { "libcrypto.so.3", "libcrypto.so.1.1" };
	void *handle = NULL;

	if (lib_handle) {
		return 0;
	}
	if (program_full(e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names) && !handle; i++) {
		handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	}
	if (!handle) {
		error_set(e, ERRC_UNSUPPORTED, "load %s: %s", names[0], dlerror());
		return error_hint(e, "install OpenSSL's library (Debian: libssl3)");
	}
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		void *symbol = dlsym(handle, symbols[i].name);

		if (!symbol) {
			(void)dlclose(handle);
			return error_set(
					e, ERRC_UNSUPPORTED, "libcrypto lacks %s", symbols[i].name);
		}
		memcpy((char *)&lib + symbols[i].offset, &symbol, sizeof(symbol));
	}
	lib_handle = handle;
	return 0;
}

struct digest_hash *digest_hash_new(struct error *e)
{
	AUTO(digest_hash) struct digest_hash *h = NULL;

	if (digest_load_library(e) < 0) {
		return NULL;
	}
	h = mem_new(struct digest_hash);
	h->ctx = lib.ctx_new();
	if (!h->ctx || lib.init(h->ctx, lib.sha256(), NULL) != 1) {
		error_set(e, ERRC_UNSUPPORTED, "libcrypto refuses SHA-256");
		return NULL;
	}
	return TAKE_PTR(h);
}

void digest_hash_free(struct digest_hash *h)
{
	if (h) {
		if (h->ctx) {
			lib.ctx_free(h->ctx);
		}
		free(h);
	}
}

void digest_hash_add(struct digest_hash *h, const void *p, size_t n)
{
	assert(!h->is_ended);

	/* Fails only when memory is exhausted; a digest of other bytes must not come out. */
	if (lib.update(h->ctx, p, n) != 1) {
		abort();
	}
}

void digest_hash_end(struct digest_hash *h, struct digest *out_d)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char raw[64]; /* EVP_MAX_MD_SIZE */
	unsigned int n = 0;
	char *at = out_d->text;

	assert(!h->is_ended);

	if (lib.final(h->ctx, raw, &n) != 1 || n != SHA256_BYTES) {
		abort();
	}
	h->is_ended = true;
	memcpy(at, "sha256:", 7);
	at += 7;
	for (size_t i = 0; i < SHA256_BYTES; i++) {
		*at++ = digits[raw[i] >> 4];
		*at++ = digits[raw[i] & 15U];
	}
	*at = '\0';
}

int digest_of(struct span data, struct digest *out_d, struct error *e)
{
	AUTO(digest_hash) struct digest_hash *h = digest_hash_new(e);

	if (!h) {
		return -1;
	}
	digest_hash_add(h, data.p, data.n);
	digest_hash_end(h, out_d);
	return 0;
}

int digest_chain(const struct digest *parent, const struct digest *diff, struct digest *out_chain,
		struct error *e)
{
	char text[2 * DIGEST_TEXT_LEN + 2];
	char *at = text;

	if (!parent || parent->text[0] == '\0') {
		*out_chain = *diff;
		return 0;
	}
	at = stpcpy(at, parent->text);
	*at++ = ' ';
	at = stpcpy(at, diff->text);
	return digest_of((struct span){ .p = text, .n = (size_t)(at - text) }, out_chain, e);
}
