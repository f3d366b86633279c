/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: policy
 * sniff - the name that a client says it talks to: TLS SNI and HTTP Host, from the first bytes of a
 * connection. Bytes go in as they come, in pieces of any size; nothing is decrypted, answered or
 * changed, and no byte is looked at twice.
 *
 * What could be read in two ways is refused, for the server may read it in the other one: two SNI
 * or Host, folded or bare-LF lines, a length beside a coding, a target that names another host.
 */
#ifndef OSBX_POLICY_SNIFF_H
#define OSBX_POLICY_SNIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/compiler.h>
#include <osbx/netpolicy.h>
#include <osbx/span.h>

#define SNIFF_HELLO_MAX (64U << 10) /* of a ClientHello with its records */
#define SNIFF_HEAD_MAX  (32U << 10) /* of one request */

enum sniff {
	SNIFF_MORE, /* the hello or head goes on: hold all bytes back, and come again */
	SNIFF_NAME, /* it is whole: .name */
	SNIFF_PASS, /* HTTP only: bytes of a request that was let through (or of what it became) */
	SNIFF_NONE, /* no name, and never will be: .why; feed nothing more */
};

/* What a client's first bytes are, where the port does not tell. */
enum sniff_proto {
	SNIFF_PROTO_MORE, /* cannot be told yet, at most 8 bytes are needed */
	SNIFF_PROTO_TLS,  /* a handshake record */
	SNIFF_PROTO_HTTP, /* a method of RFC 9110 */
	SNIFF_PROTO_OTHER,
};
enum sniff_proto sniff_guess(struct span first);

/* A ClientHello over any number of records (RFC 8446 section 5.1). */
struct sniff_tls {
	const char *why;                   /* SNIFF_NONE: words for the log, of static duration */
	char name[NETPOLICY_NAME_MAX + 1]; /* SNIFF_NAME: normal form */
	bool has_ech;                      /* a real or a GREASE Encrypted Client Hello */
	/* private */
	enum sniff result;
	bool has_name;
	uint8_t step;
	uint8_t name_n;
	uint8_t head_n;
	uint8_t head[5]; /* of a record */
	uint16_t record_left;
	uint16_t ext_left;
	uint16_t ext_type;
	uint16_t list_left;
	uint32_t total;
	uint32_t left;      /* of the message */
	uint32_t part_left; /* of the number or run that is being read */
	uint32_t number;
};

void sniff_tls_init(struct sniff_tls *s) NONNULL(1);
/* SNIFF_MORE, SNIFF_NAME or SNIFF_NONE; all bytes are taken, those behind the hello too. */
enum sniff sniff_tls_feed(struct sniff_tls *s, struct span bytes) NONNULL(1);

/* All requests of one connection (RFC 9112). After a request with Upgrade the client's next byte
 * decides: one that can begin a request begins one, with any other the rest is opaque (a WebSocket
 * frame never begins as a method, and a server that did not switch takes it for no request). */
struct sniff_http {
	const char *why;                   /* SNIFF_NONE */
	char name[NETPOLICY_NAME_MAX + 1]; /* SNIFF_NAME: of this request, "" for an address */
	bool is_address;                   /* Host is an address: no name to allow it by */
	/* private */
	uint8_t step;
	uint8_t field;
	uint8_t digits;
	bool is_10;
	bool has_host;
	bool has_length;
	bool is_chunked;
	bool may_switch;
	bool is_whole;      /* the head */
	bool is_cut;        /* text has not all of the line, … */
	bool is_target_cut; /* target not all of the target */
	uint16_t text_n;
	uint16_t target_n;
	uint32_t head_n;
	uint32_t extra_n;
	uint64_t body_left; /* of a body, or of a chunk */
	char text[300];
	char target[300];
};

void sniff_http_init(struct sniff_http *s) NONNULL(1);
/* Read on; *out_n of the bytes were taken, the rest is to be fed again. SNIFF_MORE takes all.
 * SNIFF_NAME: the head ends with the last byte taken; let it and all that was held back go on if
 * the name is allowed, then feed the rest. SNIFF_PASS: the bytes taken (>= 1) may go on at once. */
enum sniff sniff_http_feed(struct sniff_http *s, struct span bytes, size_t *out_n) NONNULL(1, 3);

#endif
