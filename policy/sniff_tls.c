/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. Bytes pass two small machines. The outer one takes record headers away and
 * counts what is left of a record; the inner one sees the handshake message as if it were in one
 * piece. That one reads numbers of known width and runs of bytes of a length that a number told;
 * after each of them next_part() decides what comes. Every length is checked against what is left
 * of the part that surrounds it (message, extensions, extension) before it is used, so nothing is
 * kept but the name itself.
 */
#include <string.h>

#include "sniff.h"

#define RECORD_HANDSHAKE   22
#define RECORD_HEAD_SIZE   5
#define RECORD_BYTES_MAX   (1U << 14)
#define MESSAGE_HELLO      1
#define VERSION_AND_RANDOM 34
#define SESSION_ID_MAX     32

#define EXT_SERVER_NAME 0
#define EXT_ESNI        0xffce /* what ECH was in its drafts */
#define EXT_ECH         0xfe0d

enum step {
	STEP_TYPE,
	STEP_LENGTH,
	STEP_RANDOM,
	STEP_SESSION_LENGTH,
	STEP_SESSION,
	STEP_CIPHERS_LENGTH,
	STEP_CIPHERS,
	STEP_METHODS_LENGTH,
	STEP_METHODS,
	STEP_EXTS_LENGTH,
	STEP_EXT_TYPE,
	STEP_EXT_LENGTH,
	STEP_EXT,
	STEP_NAMES_LENGTH,
	STEP_NAME_TYPE,
	STEP_NAME_LENGTH,
	STEP_NAME,
	STEP_COUNT,
};

/* Bytes of a number, 0: a run of .part_left bytes. */
static const uint8_t widths[STEP_COUNT] = {
	[STEP_TYPE] = 1,
	[STEP_LENGTH] = 3,
	[STEP_SESSION_LENGTH] = 1,
	[STEP_CIPHERS_LENGTH] = 2,
	[STEP_METHODS_LENGTH] = 1,
	[STEP_EXTS_LENGTH] = 2,
	[STEP_EXT_TYPE] = 2,
	[STEP_EXT_LENGTH] = 2,
	[STEP_NAMES_LENGTH] = 2,
	[STEP_NAME_TYPE] = 1,
	[STEP_NAME_LENGTH] = 2,
};

static void refuse(struct sniff_tls *s, const char *why)
{
	s->result = SNIFF_NONE;
	s->why = why;
}

/* Come to a step; runs may be empty, and then the next step comes at once. */
static void go(struct sniff_tls *s, enum step step, uint32_t run)
{
	s->step = (uint8_t)step;
	s->part_left = widths[step] > 0 ? widths[step] : run;
	s->number = 0;
}

static void finish(struct sniff_tls *s)
{
	if (!s->has_name) {
		refuse(s, "a ClientHello without server name");
	} else if (netpolicy_name((struct span){ .p = s->name, .n = s->name_n }, s->name) < 0) {
		refuse(s, "a server name that is no host name");
	} else {
		s->result = SNIFF_NAME;
	}
}

/* To the next extension, or the end of the message behind the last one. */
static void next_ext(struct sniff_tls *s)
{
	if (s->ext_left > 0) {
		go(s, STEP_EXT_TYPE, 0);
	} else {
		finish(s);
	}
}

/* A run of as many bytes as the number says, if the message has them. */
static void run_of_number(struct sniff_tls *s, enum step step)
{
	if (s->number > s->left) {
		refuse(s, "a ClientHello that is shorter than its parts");
		return;
	}
	go(s, step, s->number);
}

static void begin_message(struct sniff_tls *s)
{
	if (s->number < VERSION_AND_RANDOM) {
		refuse(s, "a ClientHello that is too short");
	} else if (s->number > SNIFF_HELLO_MAX) {
		refuse(s, "a ClientHello that is too long");
	} else {
		s->left = s->number;
		go(s, STEP_RANDOM, VERSION_AND_RANDOM);
	}
}

static void begin_exts(struct sniff_tls *s)
{
	if (s->number != s->left) {
		refuse(s, "a ClientHello whose extensions do not end with it");
		return;
	}
	s->ext_left = (uint16_t)s->number;
	next_ext(s);
}

/* Type and length of an extension are known. */
static void begin_ext(struct sniff_tls *s)
{
	const uint16_t n = (uint16_t)s->number;

	if (s->ext_left < 4 || n > s->ext_left - 4) {
		refuse(s, "an extension that is longer than all of them");
		return;
	}
	s->ext_left = (uint16_t)(s->ext_left - 4 - n);
	s->has_ech = s->has_ech || s->ext_type == EXT_ECH || s->ext_type == EXT_ESNI;
	if (s->ext_type != EXT_SERVER_NAME) {
		go(s, STEP_EXT, n);
		return;
	}
	/* A list of one: its length, a type, the length of the name. Two readers of two names would
	 * not see the same one. */
	if (s->has_name || n < 6) {
		refuse(s, s->has_name ? "two server names" : "an empty server name");
		return;
	}
	s->list_left = (uint16_t)(n - 2);
	go(s, STEP_NAMES_LENGTH, 0);
}

static void begin_name(struct sniff_tls *s)
{
	if (s->number != s->list_left - 3U) {
		refuse(s, "more than one server name");
	} else if (s->number > NETPOLICY_NAME_MAX) {
		refuse(s, "a server name that is too long");
	} else {
		s->has_name = true;
		go(s, STEP_NAME, s->number);
	}
}

/* A number or a run is whole. */
static void next_part(struct sniff_tls *s)
{
	switch ((enum step)s->step) {
	case STEP_TYPE:
		if (s->number != MESSAGE_HELLO) {
			refuse(s, "a handshake that does not begin with a ClientHello");
			return;
		}
		go(s, STEP_LENGTH, 0);
		return;
	case STEP_LENGTH:
		begin_message(s);
		return;
	case STEP_RANDOM:
		go(s, STEP_SESSION_LENGTH, 0);
		return;
	case STEP_SESSION_LENGTH:
		run_of_number(s, STEP_SESSION);
		return;
	case STEP_SESSION:
		go(s, STEP_CIPHERS_LENGTH, 0);
		return;
	case STEP_CIPHERS_LENGTH:
		run_of_number(s, STEP_CIPHERS);
		return;
	case STEP_CIPHERS:
		go(s, STEP_METHODS_LENGTH, 0);
		return;
	case STEP_METHODS_LENGTH:
		run_of_number(s, STEP_METHODS);
		return;
	case STEP_METHODS:
		if (s->left == 0) {
			finish(s);
		} else {
			go(s, STEP_EXTS_LENGTH, 0);
		}
		return;
	case STEP_EXTS_LENGTH:
		begin_exts(s);
		return;
	case STEP_EXT_TYPE:
		s->ext_type = (uint16_t)s->number;
		go(s, STEP_EXT_LENGTH, 0);
		return;
	case STEP_EXT_LENGTH:
		begin_ext(s);
		return;
	case STEP_NAMES_LENGTH:
		if (s->number != s->list_left) {
			refuse(s, "more than a list of server names");
			return;
		}
		go(s, STEP_NAME_TYPE, 0);
		return;
	case STEP_NAME_TYPE:
		if (s->number != 0) {
			refuse(s, "a server name that is no host name");
			return;
		}
		go(s, STEP_NAME_LENGTH, 0);
		return;
	case STEP_NAME_LENGTH:
		begin_name(s);
		return;
	case STEP_EXT:
	case STEP_NAME:
		next_ext(s);
		return;
	case STEP_COUNT:
		return;
	}
}

/* One byte of the handshake message. */
static void take(struct sniff_tls *s, uint8_t c)
{
	const bool is_of_message = s->step != STEP_TYPE && s->step != STEP_LENGTH;

	if (is_of_message && s->left == 0) {
		refuse(s, "a ClientHello that is shorter than its parts");
		return;
	}
	s->left -= is_of_message;
	s->part_left--;
	if (widths[s->step] > 0) {
		s->number = s->number << 8 | c;
	} else if (s->step == STEP_NAME) {
		s->name[s->name_n++] = (char)c;
	}
	while (s->result == SNIFF_MORE && s->part_left == 0) {
		next_part(s);
	}
}

/* One byte of a record's header. */
static void take_head(struct sniff_tls *s, uint8_t c)
{
	s->head[s->head_n++] = c;
	if (s->head_n == 1 && c != RECORD_HANDSHAKE) {
		refuse(s, "no TLS");
	} else if (s->head_n == 2 && c != 3) {
		refuse(s, "no version of TLS");
	} else if (s->head_n == RECORD_HEAD_SIZE) {
		s->record_left = (uint16_t)(s->head[3] << 8 | s->head[4]);
		s->head_n = 0;
		if (s->record_left == 0 || s->record_left > RECORD_BYTES_MAX) {
			refuse(s, "a record of a forbidden size");
		}
	}
}

void sniff_tls_init(struct sniff_tls *s)
{
	*s = (struct sniff_tls){ .result = SNIFF_MORE };
	go(s, STEP_TYPE, 0);
}

enum sniff sniff_tls_feed(struct sniff_tls *s, struct span bytes)
{
	for (size_t i = 0; i < bytes.n && s->result == SNIFF_MORE; i++) {
		const uint8_t c = (uint8_t)bytes.p[i];

		if (++s->total > SNIFF_HELLO_MAX) {
			refuse(s, "a ClientHello that is too long");
		} else if (s->record_left == 0) {
			take_head(s, c);
		} else {
			s->record_left--;
			take(s, c);
		}
	}
	return s->result;
}
