/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "../../oci/fetch.h"
#include "../../oci/media.h"
#include "mock_fetch.h"

#define EVENTS_MAX 16
#define BLOB_MAX   (1U << 20)

struct mock_fetch mock_fetch;

struct fetch {
	char *domain;
	int fd; /* always readable */
	struct fetch_event events[EVENTS_MAX];
	size_t n;
};

struct fetch *fetch_start(const struct ref *ref, const struct pull_opts *opts,
		const struct credential *credential, struct error *e)
{
	struct fetch *f = mem_new(struct fetch);

	(void)opts;
	(void)e;
	f->domain = mem_strdup(ref->domain);
	f->fd = eventfd(1, EFD_CLOEXEC);
	mock_fetch.started++;
	(void)snprintf(mock_fetch.user, sizeof(mock_fetch.user), "%s",
			credential && credential->user ? credential->user : "");
	(void)snprintf(mock_fetch.domain, sizeof(mock_fetch.domain), "%s", ref->domain);
	return f;
}

void fetch_stop(struct fetch *f)
{
	if (f) {
		free(f->domain);
		(void)close(f->fd);
		free(f);
	}
}

int fetch_ping(struct fetch *f, struct error *e)
{
	mock_fetch.pings++;
	return str_eq(f->domain, "closed.example")
			       ? error_set(e, ERRC_UNAUTHENTICATED, "%s: wrong", f->domain)
			       : 0;
}

static int blob_bytes(const char *hex, struct buf *out, struct error *e)
{
	char path[128];
	int r = 0;

	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", hex);
	r = file_read_at(mock_fetch.layout_fd, path, out);
	return r < 0 ? error_set(e, ERRC_NOT_FOUND, "%.12s is not in the registry", hex) : 0;
}

static const struct mock_tag *tag_find(const struct fetch *f, const char *name)
{
	for (size_t i = 0; i < MOCK_TAGS; i++) {
		const struct mock_tag *t = &mock_fetch.tags[i];

		if (t->name && str_eq(t->name, name) && str_eq(t->domain, f->domain)) {
			return t;
		}
	}
	return NULL;
}

int fetch_manifest(struct fetch *f, const char *tag_or_digest, struct buf *out, char **out_type,
		struct digest *out_digest, struct error *e)
{
	const char *hex = str_after(tag_or_digest, "sha256:");
	const struct mock_tag *t = tag_find(f, tag_or_digest);
	int r = 0;

	mock_fetch.manifests++;
	if (!t && !hex) {
		return error_set(e, ERRC_NOT_FOUND, "%s has no %s", f->domain, tag_or_digest);
	}
	if (t && !t->text) {
		return error_set(e, t->refused, "%s refuses %s", f->domain, t->name);
	}
	r = t ? buf_append_str(out, t->text) : blob_bytes(hex, out, e);
	if (r == 0 && t && t->claims && digest_parse(t->claims, out_digest) < 0) {
		r = -1;
	}
	*out_type = mem_strdup(t && t->type ? t->type : MEDIA_OCI_MANIFEST);
	return r;
}

static void event_add(struct fetch *f, enum fetch_event_kind kind, uint32_t tag, uint64_t done)
{
	f->events[f->n++] = (struct fetch_event){ .kind = kind, .tag = tag, .done = done };
	if (kind == FETCH_EVENT_FAILED) {
		(void)error_set(&f->events[f->n - 1].error, ERRC_UNAVAILABLE, "%s: connection lost",
				f->domain);
	}
}

/* The bytes as they come. true: all of them. */
static bool damage(struct buf *bytes, const struct digest *digest, uint64_t have)
{
	if (mock_fetch.fault == MOCK_FAULT_NONE || !digest_eq(digest, &mock_fetch.fault_of)) {
		return true;
	}
	if (mock_fetch.fault == MOCK_FAULT_CORRUPT) {
		bytes->p[mock_fetch.fault_at] ^= mock_fetch.fault_at >= have ? 1 : 0;
		return true;
	}
	bytes->n = mock_fetch.fault_at;
	return mock_fetch.fault == MOCK_FAULT_SHORT;
}

int fetch_blob_begin(struct fetch *f, const struct fetch_blob *blob, struct error *e)
{
	const struct digest *digest = &blob->digest;
	AUTO(buf) struct buf bytes = BUF_INIT(BLOB_MAX);
	char all[4096];
	struct stat s;
	ssize_t n = 0;
	bool whole = false;

	mock_fetch.blobs++;
	if (fstat(blob->part_fd, &s) < 0 || blob_bytes(digest_hex(digest), &bytes, e) < 0) {
		return -1;
	}
	whole = damage(&bytes, digest, (uint64_t)s.st_size);
	if (bytes.n > (size_t)s.st_size) {
		mock_fetch.bytes += bytes.n - (size_t)s.st_size;
		if (pwrite(blob->part_fd, bytes.p + s.st_size, bytes.n - (size_t)s.st_size,
				    s.st_size) < 0) {
			return error_set(e, ERRC_INTERNAL, "write part");
		}
	}
	n = pread(blob->part_fd, all, sizeof(all), 0);
	if (n < 0 || (blob->out_fd >= 0 && fd_write_all(blob->out_fd, all, (size_t)n) < 0)) {
		return error_set(e, ERRC_INTERNAL, "write pipe");
	}
	event_add(f, FETCH_EVENT_PROGRESS, blob->tag, (uint64_t)n);
	event_add(f, whole ? FETCH_EVENT_DONE : FETCH_EVENT_FAILED, blob->tag, (uint64_t)n);
	return 0;
}

int fetch_fd(const struct fetch *f)
{
	return f->fd;
}

int fetch_next(struct fetch *f, struct fetch_event *out_event, int64_t deadline_ms, struct error *e)
{
	(void)e;
	if (f->n == 0 || (mock_fetch.is_late && deadline_ms == 0)) {
		return 0;
	}
	*out_event = f->events[0];
	f->n--;
	memmove(f->events, f->events + 1, f->n * sizeof(*f->events));
	return 1;
}
