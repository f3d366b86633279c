/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock_fetch - stands in for the fetch helper: a registry in memory whose blobs are those of a
 * layout. Downloads are over when fetch_blob_begin returns; their events wait for fetch_next.
 */
#ifndef OSBX_TESTS_MOCK_FETCH_H
#define OSBX_TESTS_MOCK_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/digest.h>
#include <osbx/error.h>

#define MOCK_TAGS 8

/* What a tag stands for at a registry. */
struct mock_tag {
	const char *domain;
	const char *name;
	const char *text;   /* the document; NULL: refused with this code */
	const char *type;   /* media type; NULL: that of an OCI manifest */
	const char *claims; /* digest that the registry claims; NULL: none */
	enum errc refused;
};

enum mock_fault {
	MOCK_FAULT_NONE,
	MOCK_FAULT_CUT,     /* after .at bytes */
	MOCK_FAULT_CORRUPT, /* byte .at is another one */
	MOCK_FAULT_SHORT,   /* done, but there are only .at bytes */
};

struct mock_fetch {
	int layout_fd; /* holds blobs/sha256 */
	struct mock_tag tags[MOCK_TAGS];
	/* What goes wrong with one blob. */
	struct digest fault_of;
	enum mock_fault fault;
	size_t fault_at;
	bool is_late; /* events come only to whoever waits for them */
	/* What happened: */
	size_t started;
	size_t manifests;
	size_t pings;
	size_t blobs;
	uint64_t bytes; /* that came from the registry */
	char user[32];  /* of the credential of the last start */
	char domain[64];
};

extern struct mock_fetch mock_fetch;

#endif
