/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * digest - SHA-256 digests of content (OCI image-spec, descriptor.md "Digests").
 *
 * Grammar is checked before any use as a path (CVE-2024-3727): "sha256:" and 64 lower-case
 * hexadecimal digits, nothing else. Hashing loads libcrypto on demand (dlopen), so that programs
 * that only compare digests do not pay for it.
 */
#ifndef OSBX_DIGEST_H
#define OSBX_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/span.h>

#define DIGEST_HEX_LEN  64
#define DIGEST_TEXT_LEN 71

struct digest {
	char text[DIGEST_TEXT_LEN + 1]; /* "sha256:…"; "" when unset */
};

struct digest_hash; /* a running hash */

/* Take a digest from text if it is one. 0, -EINVAL (not a digest) or -ENOTSUP (another algorithm,
 * e.g. sha512). */
int digest_parse(const char *text, struct digest *out_d) NONNULL(1, 2) MUST_CHECK;
/* The 64 hexadecimal digits. */
static inline const char *digest_hex(const struct digest *d)
{
	return d->text + (DIGEST_TEXT_LEN - DIGEST_HEX_LEN);
}
/* Same digest? */
bool digest_eq(const struct digest *a, const struct digest *b) NONNULL(1, 2);
/* Load libcrypto now (before a syscall filter or chroot). 0 or ERRC_UNSUPPORTED. */
int digest_load_library(struct error *e) MUST_CHECK NONNULL(1);
/* Start a hash. NULL when the library cannot be loaded. */
struct digest_hash *digest_hash_new(struct error *e) MUST_CHECK NONNULL(1);
void digest_hash_free(struct digest_hash *h);
AUTO_DEFINE_PTR(digest_hash, struct digest_hash, digest_hash_free);
void digest_hash_add(struct digest_hash *h, const void *p, size_t n) NONNULL(1);
/* Result so far; the hash is finished. */
void digest_hash_end(struct digest_hash *h, struct digest *out_d) NONNULL(1, 2);
/* Digest of bytes in memory. */
int digest_of(struct span data, struct digest *out_d, struct error *e) MUST_CHECK NONNULL(2, 3);
/* Chain id of a layer on top of its parent's (image-spec config.md "Layer ChainID"): parent NULL
 * or unset for the lowest layer. */
int digest_chain(const struct digest *parent, const struct digest *diff, struct digest *out_chain,
		struct error *e) MUST_CHECK NONNULL(2, 3, 4);

#endif
