/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch - the parent's side of "osbx fetch", the one process that speaks to registries.
 *
 * One helper serves one pull: requests and results are packets on a SEQPACKET channel; the helper
 * runs several transfers at once (libcurl multi), authenticates by challenge, retries with
 * back-off, resumes by Range, follows redirects without leaking credentials.
 */
#ifndef OSBX_OCI_FETCH_H
#define OSBX_OCI_FETCH_H

#include <osbx/buf.h>
#include <osbx/registry.h>

struct fetch;
struct fetch_setup;

/* Start the helper for domain/repository with its mirrors, TLS rules, proxies (http_proxy,
 * https_proxy, no_proxy, all_proxy of this process) and credentials. NULL on failure. */
struct fetch *fetch_start(const struct ref *ref, const struct pull_opts *opts,
		const struct credential *credential, struct error *e) MUST_CHECK NONNULL(1, 2, 4);
/* The same from a setup that is made by other means. */
struct fetch *fetch_start_setup(const struct fetch_setup *setup, struct error *e) MUST_CHECK
		NONNULL(1, 2);
/* End the helper; transfers are cut off, what was written stays. */
void fetch_stop(struct fetch *f);
AUTO_DEFINE_PTR(fetch, struct fetch, fetch_stop);
/* GET /v2/ with authentication only. */
int fetch_ping(struct fetch *f, struct error *e) MUST_CHECK NONNULL(1, 2);
/* GET a manifest or index by tag or digest. out receives the bytes, *out_type the media type
 * (Content-Type without parameters; caller frees), *out_digest what the registry claims ("" if
 * nothing); the caller verifies. */
int fetch_manifest(struct fetch *f, const char *tag_or_digest, struct buf *out, char **out_type,
		struct digest *out_digest, struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4, 5, 6);
struct fetch_blob {
	uint32_t tag; /* tells the transfer in fetch_next */
	struct digest digest;
	uint64_t size;
	int part_fd; /* regular file, read and write: what is there already, and what comes */
	int out_fd;  /* pipe that gets all bytes, or -1 */
};

/* Begin the download of a blob: bytes that part_fd already holds are sent to out_fd first, then
 * the rest is appended to the file and sent. The helper closes its copies of both when the blob is
 * complete or has failed. Returns at once. */
int fetch_blob_begin(struct fetch *f, const struct fetch_blob *blob, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);

enum fetch_event_kind {
	FETCH_EVENT_PROGRESS, /* done: bytes of the blob so far, resumed ones included */
	FETCH_EVENT_DONE,     /* all size bytes were written; not verified */
	FETCH_EVENT_FAILED,   /* error says why; what was written stays for the next try */
	FETCH_EVENT_KIND_COUNT,
};

struct fetch_event {
	enum fetch_event_kind kind;
	uint32_t tag;
	uint64_t done;
	uint64_t resumed; /* bytes that were there already */
	struct error error;
};

/* Descriptor to poll for events. Borrowed. */
int fetch_fd(const struct fetch *f) NONNULL(1);
/* Next event, waiting until deadline_ms (clock_boot_ms; -1: for ever, 0: not at all). 1 with an
 * event, 0 when there is none yet, -1 when the helper is gone. */
int fetch_next(struct fetch *f, struct fetch_event *out_event, int64_t deadline_ms,
		struct error *e) MUST_CHECK NONNULL(1, 2, 4);

#endif
