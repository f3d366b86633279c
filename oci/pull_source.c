/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/json.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "pull.h"

/* Of the configuration's download: no layer has it. */
#define TAG_DOCUMENT UINT32_MAX

/* What servers say that do not know. */
static const char *const unsure_types[] = {
	"",
	"application/json",
	"application/octet-stream",
	"text/plain",
};

static bool is_unsure(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(unsure_types); i++) {
		if (str_eq(type, unsure_types[i])) {
			return true;
		}
	}
	return false;
}

static bool is_document(const char *type)
{
	enum media_kind kind = media_find(type, NULL);

	return kind == MEDIA_INDEX || kind == MEDIA_MANIFEST || kind == MEDIA_SCHEMA1;
}

/* What a document is that does not say so, as OCI allows: by what it holds, if that is clear. */
static const char *type_guess(const struct json *root)
{
	const bool has_layers = json_get(root, "layers") != NULL;
	const bool has_manifests = json_get(root, "manifests") != NULL;

	if (json_get(root, "mediaType") || has_layers == has_manifests) {
		return NULL;
	}
	return has_layers ? MEDIA_OCI_MANIFEST : MEDIA_OCI_INDEX;
}

/* Media type of what came: the server's word, or where it has none the document's own. If they
 * contradict each other it is refused when it is read. Caller frees; NULL: no image. */
static char *type_find(const struct pull *p, const char *said, struct error *e)
{
	struct error ignored = ERROR_INIT;
	AUTO(json)
	struct json *root = is_unsure(said) ? json_parse(buf_span(&p->top_text), &ignored) : NULL;
	const char *guess = type_guess(root);
	const char *own = guess ? guess : json_string(json_get(root, "mediaType"));
	char shown[80];

	if (is_document(said)) {
		return mem_strdup(said);
	}
	if (is_document(own)) {
		return mem_strdup(own);
	}
	str_printable(said, shown, sizeof(shown));
	error_set(e, ERRC_INVALID,
			"%s: %s answers with a document of type \"%s\", which is no image",
			p->label, p->ref->domain, shown);
	return NULL;
}

static int top_verify(struct pull *p, const struct digest *claimed, struct error *e)
{
	struct digest got = { .text = "" };

	if (digest_of(buf_span(&p->top_text), &got, e) < 0) {
		return -1;
	}
	if (p->ref->digest.text[0] && !digest_eq(&got, &p->ref->digest)) {
		return error_set(e, ERRC_INVALID, "%s: %s answers with a manifest of digest %s",
				p->label, p->ref->domain, got.text);
	}
	if (claimed->text[0] && !digest_eq(&got, claimed)) {
		return error_set(e, ERRC_INVALID,
				"%s: the manifest has the digest %s, but %s says %.19s…", p->label,
				got.text, p->ref->domain, claimed->text);
	}
	p->top.digest = got;
	p->top.size = p->top_text.n;
	return 0;
}

int pull_top(struct pull *p, struct error *e)
{
	const char *name = p->ref->digest.text[0] ? p->ref->digest.text : p->ref->tag;
	autofree char *said = NULL;
	struct digest claimed = { .text = "" };

	if (fetch_manifest(p->fetch, name, &p->top_text, &said, &claimed, e) < 0 ||
			top_verify(p, &claimed, e) < 0) {
		return -1;
	}
	p->top.media_type = type_find(p, said, e);
	return p->top.media_type ? 0 : -1;
}

static int wait_for_document(struct pull *p, struct error *e)
{
	for (;;) {
		struct fetch_event event;

		if (fetch_next(p->fetch, &event, -1, e) < 0) {
			return -1;
		}
		if (event.tag == TAG_DOCUMENT && event.kind == FETCH_EVENT_FAILED) {
			*e = event.error;
			return -1;
		}
		if (event.tag == TAG_DOCUMENT && event.kind == FETCH_EVENT_DONE) {
			return 0;
		}
	}
}

/* Configurations are blobs; too small to be worth a part file. */
static int config_read(
		struct pull *p, const struct descriptor *d, struct buf *out_text, struct error *e)
{
	autoclose int fd = memfd_create("osbx-config", MFD_CLOEXEC);
	const struct fetch_blob blob = {
		.tag = TAG_DOCUMENT,
		.digest = d->digest,
		.size = d->size,
		.part_fd = fd,
		.out_fd = -1,
	};
	int r = 0;

	if (fd < 0) {
		return error_sys(e, errno, "make a file for the configuration");
	}
	if (fetch_blob_begin(p->fetch, &blob, e) < 0 || wait_for_document(p, e) < 0) {
		return -1;
	}
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(fd, out_text);
	return r < 0 ? error_sys(e, -r, "read the configuration") : 0;
}

static int top_read(const struct pull *p, struct buf *out_text, struct error *e)
{
	struct span text = buf_span(&p->top_text);

	return buf_append(out_text, text.p, text.n) < 0
			       ? error_set(e, ERRC_LIMIT, "%s: document is too large", p->label)
			       : 0;
}

int pull_read(void *ctx, const struct descriptor *d, struct buf *out_text, struct error *e)
{
	struct pull *p = ctx;
	autofree char *said = NULL;
	struct digest claimed = { .text = "" };

	p->has_fetched = true;
	if (digest_eq(&d->digest, &p->top.digest)) {
		return top_read(p, out_text, e);
	}
	if (media_find(d->media_type, NULL) == MEDIA_CONFIG) {
		return config_read(p, d, out_text, e);
	}
	/* The digest says all that is to be known about it. */
	return fetch_manifest(p->fetch, d->digest.text, out_text, &said, &claimed, e);
}
