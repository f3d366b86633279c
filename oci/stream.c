/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "inflate.h"
#include "stream.h"

/* Both buffers stay in the second-level cache between inflating, hashing and writing. */
#define STREAM_IN_BYTES  (256U << 10)
#define STREAM_OUT_BYTES (512U << 10)

struct stream {
	struct stream_opts opts;
	struct digest_hash *blob_hash;
	struct digest_hash *plain_hash;
	struct inflater *inflater; /* NULL: plain */
	uint64_t blob_n;
	bool is_recognised;
	bool at_end;
	struct span in; /* what is left of the input buffer */
	char *in_buf;
	char *out_buf;
};

static int check_size(const struct stream *s, bool at_end, struct error *e)
{
	uint64_t size = s->opts.size;

	if (size == UINT64_MAX || (s->blob_n <= size && !at_end) || s->blob_n == size) {
		return 0;
	}
	return error_set(e, ERRC_INVALID,
			"blob has %s bytes than its descriptor says (%" PRIu64 ")",
			at_end ? "fewer" : "more", size);
}

/* Fill the input buffer; s->in is empty at the end of the blob. */
static int fill(struct stream *s, struct error *e)
{
	ssize_t n = 0;
	int rc = 0;

	if (s->at_end) {
		return 0;
	}
	n = fd_read(s->opts.fd, s->in_buf, STREAM_IN_BYTES);
	if (n < 0) {
		return error_sys(e, (int)-n, "read blob");
	}
	s->at_end = n == 0;
	s->blob_n += (uint64_t)n;
	s->in = (struct span){ .p = s->in_buf, .n = (size_t)n };
	if (check_size(s, s->at_end, e) < 0) {
		return -1;
	}
	if (s->blob_hash) {
		digest_hash_add(s->blob_hash, s->in_buf, (size_t)n);
	}
	if (s->opts.copy_fd >= 0) {
		rc = fd_write_all(s->opts.copy_fd, s->in_buf, (size_t)n);
		if (rc < 0) {
			return error_sys(e, -rc, "write blob to the store");
		}
	}
	atomic_store_explicit(&s->opts.usage->done[s->opts.index], s->blob_n, memory_order_relaxed);
	return 0;
}

static int start(struct stream *s, struct error *e)
{
	s->in_buf = mem_array(STREAM_IN_BYTES, 1);
	if (s->opts.verify) {
		s->blob_hash = digest_hash_new(e);
		if (!s->blob_hash) {
			return -1;
		}
		s->plain_hash = digest_hash_new(e);
		if (!s->plain_hash) {
			return -1;
		}
	}
	return fill(s, e);
}

/* Once, before the first plain bytes: a blob that is only copied needs no library. */
static int recognise(struct stream *s, struct error *e)
{
	enum image_compression kind = IMAGE_PLAIN;

	s->is_recognised = true;
	if (inflate_sniff(s->in, &kind, e) < 0) {
		return -1;
	}
	if (kind != IMAGE_PLAIN) {
		s->out_buf = mem_array(STREAM_OUT_BYTES, 1);
		s->inflater = inflater_new(kind, e);
		return s->inflater ? 0 : -1;
	}
	return 0;
}

struct stream *stream_new(const struct stream_opts *opts, struct error *e)
{
	AUTO(stream) struct stream *s = mem_new(struct stream);

	s->opts = *opts;
	return start(s, e) < 0 ? NULL : TAKE_PTR(s);
}

void stream_free(struct stream *s)
{
	if (!s) {
		return;
	}
	digest_hash_free(s->blob_hash);
	digest_hash_free(s->plain_hash);
	inflater_free(s->inflater);
	free(s->in_buf);
	free(s->out_buf);
	free(s);
}

static int charge(struct stream *s, size_t n, struct error *e)
{
	uint64_t before = atomic_fetch_add_explicit(
			&s->opts.usage->bytes, (uint64_t)n, memory_order_relaxed);
	char text[32] = "";

	if (s->opts.budget - n >= before && n <= s->opts.budget) {
		return 0;
	}
	str_from_size(s->opts.budget, text, sizeof(text));
	(void)error_set(e, ERRC_LIMIT, "image is larger than %s when unpacked", text);
	return error_hint(e, "if the image is trusted, raise the limit with --unpack-max SIZE");
}

static int next_inflated(struct stream *s, struct span *out_plain, struct error *e)
{
	size_t n = 0;

	/* The end of the blob is told to the inflater as an empty input, which flushes it. */
	for (;;) {
		bool was_end = s->at_end;

		if (s->in.n == 0 && fill(s, e) < 0) {
			return -1;
		}
		if (inflater_run(s->inflater, &s->in, s->out_buf, STREAM_OUT_BYTES, &n, e) < 0) {
			return -1;
		}
		if (n > 0) {
			break;
		}
		if (s->in.n > 0 || was_end) {
			break;
		}
	}
	if (n == 0 && (s->in.n > 0 || !inflater_is_complete(s->inflater))) {
		return error_set(e, ERRC_INVALID, "compressed data is cut off");
	}
	*out_plain = (struct span){ .p = s->out_buf, .n = n };
	return 0;
}

static int next_plain(struct stream *s, struct span *out_plain, struct error *e)
{
	if (s->in.n == 0 && fill(s, e) < 0) {
		return -1;
	}
	*out_plain = s->in;
	s->in.n = 0;
	return 0;
}

int stream_next(struct stream *s, struct span *out_plain, struct error *e)
{
	struct span plain = { .n = 0 };

	if (!s->is_recognised && recognise(s, e) < 0) {
		return -1;
	}
	if ((s->inflater ? next_inflated(s, &plain, e) : next_plain(s, &plain, e)) < 0) {
		return -1;
	}
	if (s->plain_hash) {
		digest_hash_add(s->plain_hash, plain.p, plain.n);
	}
	if (charge(s, plain.n, e) < 0) {
		return -1;
	}
	*out_plain = plain;
	return 0;
}

int stream_copy(struct stream *s, struct error *e)
{
	do {
		s->in.n = 0;
		if (fill(s, e) < 0) {
			return -1;
		}
	} while (!s->at_end);
	return 0;
}

void stream_end(struct stream *s, struct digest *out_blob, struct digest *out_plain)
{
	digest_hash_end(s->blob_hash, out_blob);
	digest_hash_end(s->plain_hash, out_plain);
}
