/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * event - events of a command as clients read them: a JSON object in one line and an empty line.
 *
 * Anything else between two objects, or a "data:" before one, makes clients lose events. All
 * functions append to one buffer, so that what was read at once can be sent at once.
 */
#ifndef OSBX_EXECD_EVENT_H
#define OSBX_EXECD_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/span.h>

#define EVENT_LINE_MAX (256U << 10) /* bytes of a line without its end that are kept */

#define EVENT_TAIL_ROOM 48

/* Events of one command at one moment. */
struct events {
	struct buf *out;            /* borrowed, large enough by construction */
	uint64_t eid;               /* of the last event; 1 is the first */
	char tail[EVENT_TAIL_ROOM]; /* ,"timestamp":…,"eid": */
	size_t tail_n;
};

/* Begin to append to out; eid is that of the last event, 0 before the first. */
struct events events_of(struct buf *out, uint64_t eid, int64_t wall_ms) NONNULL(1) MUST_CHECK;

/* {"type":"init","text":id} */
void event_init(struct events *ev, const char *id) NONNULL(1, 2);
void event_ping(struct events *ev) NONNULL(1);
void event_complete(struct events *ev, int64_t execution_ms) NONNULL(1);
/* evalue is a number as text for commands: clients make their exit code of it. */
void event_error(struct events *ev, const char *ename, const char *evalue, const char *trace)
		NONNULL(1, 2, 3, 4);

/* Text on its way into a JSON string: a character may be cut between two pieces. */
struct event_text {
	unsigned char cut[4];
	uint8_t cut_n;
};
/* Append bytes as JSON: '"', '\\', control characters, '<', '>', '&', U+0085, U+2028 and U+2029 are
 * escaped (readers of lines break at some of them), each maximal part of what is not UTF-8 becomes
 * one U+FFFD. */
void event_text_put(struct event_text *t, struct span bytes, struct buf *out) NONNULL(1, 3);
/* The text ends here: a character that was cut is not one. */
void event_text_end(struct event_text *t, struct buf *out) NONNULL(1, 2);

/* Text as it came, which may be a part of a line or several lines: {"type":TYPE,"text":…}. A
 * character that is cut goes into the next piece of the same t. Nothing when there is nothing. */
void event_piece(struct events *ev, const char *type, struct event_text *t, struct span bytes)
		NONNULL(1, 2, 3);
/* No piece follows: what was cut is a piece. */
void event_piece_end(struct events *ev, const char *type, struct event_text *t) NONNULL(1, 2, 3);
/* {"type":"status","text":…} */
void event_status(struct events *ev, const char *status) NONNULL(1, 2);
/* {"type":"execution_count","execution_count":n} */
void event_count(struct events *ev, uint64_t n) NONNULL(1);
/* {"type":TYPE,MEMBER:JSON}: a document of one line; characters at which readers of lines break are
 * escaped. */
void event_json(struct events *ev, const char *type, const char *member, struct span json)
		NONNULL(1, 2, 3);

/*
 * Lines of one stream (stdout, stderr) as events: one for each line, without its end, which is LF,
 * CR or CR LF. An empty line is "\n". A line of more than EVENT_LINE_MAX bytes is not kept until
 * its end: its event is begun, and stays open over several calls; no other event may come between.
 */
#define EVENT_HEAD_ROOM 32

struct lines {
	char head[EVENT_HEAD_ROOM]; /* {"type":"stdout","text":" */
	size_t head_n;
	struct buf part; /* of a line without its end */
	struct event_text text;
	bool after_cr;
	bool is_open; /* in the events' buffer stands the beginning of an event */
};

/* Lines of a type of event, "stdout" or "stderr". */
struct lines lines_of(const char *type) NONNULL(1) MUST_CHECK;
void lines_done(struct lines *l);
/* Read bytes until ev->out has out_max bytes or more. How many were taken. */
size_t lines_feed(struct lines *l, struct span data, struct events *ev, size_t out_max)
		NONNULL(1, 3) MUST_CHECK;
/* Begin the event of a line that has not ended (its memory is needed). */
void lines_open(struct lines *l, struct events *ev) NONNULL(1, 2);
/* The stream has ended, or the open event must: what is left is a line. */
void lines_end(struct lines *l, struct events *ev) NONNULL(1, 2);

#endif
