/* SPDX-License-Identifier: Apache-2.0 */
/* What is particular to each kind of operation. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "fetch_op.h"
#include "fetch_retry.h"
#include "media.h"

#define SMALL_BYTES_MAX    (64U << 10) /* of errors, pings, tokens */
#define STATUS_OK          200
#define STATUS_PARTIAL     206
#define DIGEST_SHOWN_CHARS 19

/* Schema 1 is not asked for; what sends it all the same is refused by the reader. */
static const char accept_manifests[] =
		MEDIA_OCI_INDEX ", " MEDIA_OCI_MANIFEST
				", application/vnd.docker.distribution.manifest.list.v2+json"
				", application/vnd.docker.distribution.manifest.v2+json";

static const char *scheme_of(const struct op *op)
{
	return op_host(op)->plain ? "http" : "https";
}

static char *ping_address(const struct op *op)
{
	return mem_printf("%s://%s/v2/", scheme_of(op), op_host(op)->rules->host);
}

static char *object_address(const struct op *op, const char *collection)
{
	const struct fetch_host *rules = op_host(op)->rules;

	return mem_printf("%s://%s/v2/%s/%s/%s", scheme_of(op), rules->host, rules->repository,
			collection, op->name);
}

static char *manifest_address(const struct op *op)
{
	return object_address(op, "manifests");
}

static char *blob_address(const struct op *op)
{
	return object_address(op, "blobs");
}

static enum op_verdict ping_done(struct op *op)
{
	(void)op;
	return OP_VERDICT_DONE;
}

/* "type/subtype; parameters": the type alone, "" if it is none. */
static void type_take(struct op *op, const char *field)
{
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789!#$&-^_.+/";
	size_t n = field ? strcspn(field, "; \t") : 0;

	if (n > 0 && n < sizeof(op->type) && strspn(field, bytes) >= n) {
		memcpy(op->type, field, n);
	}
}

static enum op_verdict manifest_done(struct op *op)
{
	struct exchange *x = op->x;

	if (x->status != STATUS_OK) {
		(void)op_refuse(op);
		return OP_VERDICT_FAIL;
	}
	if (x->full) {
		(void)op_fail(op, ERRC_LIMIT, "the manifest is too large");
		return OP_VERDICT_FAIL;
	}
	type_take(op, x->head.content_type);
	if (x->head.digest && digest_parse(x->head.digest, &op->digest) < 0) {
		op->digest = (struct digest){ "" };
	}
	op->body = x->body;
	x->body = (struct buf)BUF_INIT(0);
	return OP_VERDICT_DONE;
}

static int size_fail(struct op *op, uint64_t theirs)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "it has %" PRIu64 " bytes there, not %" PRIu64, theirs,
			op->blob.size);
	return op_fail(op, ERRC_INVALID, text);
}

static int whole_begin(struct op *op, const struct exchange *x)
{
	int64_t length = exchange_length(x);

	if (length >= 0 && (uint64_t)length != op->blob.size) {
		return size_fail(op, (uint64_t)length);
	}
	blob_begin(&op->blob, 0);
	return 0;
}

/* Where the answer begins is what counts; a wrong one is asked for again from the start. */
static int part_begin(struct op *op, const struct exchange *x)
{
	struct retry_range range;

	if (op->offset == 0 || !x->head.content_range ||
			retry_range_parse(x->head.content_range, &range) < 0 ||
			range.first != op->offset) {
		op->no_range = true;
		return op_fail(op, ERRC_UNAVAILABLE, "the answer is not the part asked for");
	}
	if (range.total != RETRY_RANGE_UNKNOWN && range.total != op->blob.size) {
		return size_fail(op, range.total);
	}
	blob_begin(&op->blob, op->offset);
	return 0;
}

static int blob_on_head(struct op *op, const struct exchange *x)
{
	if (x->status == STATUS_OK) {
		return whole_begin(op, x);
	}
	if (x->status == STATUS_PARTIAL) {
		return part_begin(op, x);
	}
	return x->status / 100 == 2 ? op_fail(op, ERRC_UNAVAILABLE, "the answer is not a blob") : 0;
}

static int blob_on_body(struct op *op, struct span piece)
{
	if (blob_write(&op->blob, piece, &op->error) < 0 || blob_feed(&op->blob, &op->error) < 0) {
		return error_wrap(&op->error, "%s", op->label);
	}
	return 0;
}

static enum op_verdict blob_done(struct op *op)
{
	if (blob_is_complete(&op->blob)) {
		return OP_VERDICT_DONE;
	}
	(void)op_fail(op, ERRC_UNAVAILABLE, "the answer ended early");
	return OP_VERDICT_RETRY;
}

const struct op_class op_classes[OP_KIND_COUNT] = {
	[OP_PING] = {
		.body_max = SMALL_BYTES_MAX,
		.is_small = true,
		.address = ping_address,
		.on_success = ping_done,
	},
	[OP_MANIFEST] = {
		.accept = accept_manifests,
		.body_max = LIMIT_MANIFEST_BYTES,
		.is_small = true,
		.address = manifest_address,
		.on_success = manifest_done,
	},
	[OP_BLOB] = {
		.body_max = SMALL_BYTES_MAX,
		.address = blob_address,
		.on_head = blob_on_head,
		.on_body = blob_on_body,
		.on_success = blob_done,
	},
	[OP_TOKEN] = {
		.accept = "application/json",
		.body_max = SMALL_BYTES_MAX,
		.is_small = true,
		.on_success = token_take,
	},
};

void op_begin_ping(struct fetcher *f)
{
	struct op *op = op_new(f, OP_PING);

	/* Credentials are checked with the registry itself. */
	op->host = f->setup.hosts_n - 1;
	op->label = mem_strdup(f->setup.domain);
}

void op_begin_manifest(struct fetcher *f, const char *name)
{
	struct op *op = op_new(f, OP_MANIFEST);

	op->scope = FETCH_SCOPE_PULL;
	op->name = mem_strdup(name);
	op->label = mem_printf("%s%s%s", f->setup.name, strchr(name, ':') ? "@" : ":", name);
}

void op_begin_blob(struct fetcher *f, const struct fetch_blob_request *request, int part_fd,
		int out_fd)
{
	struct op *op = op_new(f, OP_BLOB);

	op->scope = FETCH_SCOPE_PULL;
	op->name = mem_strdup(request->digest.text);
	op->label = mem_printf("%s: blob %.*s…", f->setup.name, DIGEST_SHOWN_CHARS, op->name);
	op->tag = request->tag;
	if (blob_open(&op->blob, part_fd, out_fd, request->size, &op->error) < 0) {
		(void)error_wrap(&op->error, "%s", op->label);
	}
}
