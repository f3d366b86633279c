/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A line is one write to a file that was opened with O_APPEND: the kernel holds the inode's lock
 * over it, so lines of many processes do not mix. Whoever sees the file full renames it, one at a
 * time; a line of somebody who had it open before goes to the end of the old one, where a reader
 * still looks.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/events.h>
#include <osbx/fd.h>
#include <osbx/json.h>
#include <osbx/lock.h>

#define LINE_BYTES_MAX (64U << 10)
#define FILE_BYTES_MAX (4U << 20)

static const char *const type_names[] = {
	[EVENT_START] = "start",
	[EVENT_PAUSE] = "pause",
	[EVENT_RESUME] = "resume",
	[EVENT_RENEW] = "renew",
	[EVENT_STOP] = "stop",
	[EVENT_END] = "end",
	[EVENT_REMOVE] = "remove",
};
_Static_assert(ARRAY_SIZE(type_names) == EVENT_TYPE_COUNT, "type_names is complete");

static bool is_full(int dir_fd)
{
	struct stat st;

	return fstatat(dir_fd, EVENTS_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_size > FILE_BYTES_MAX;
}

static void rotate(int dir_fd)
{
	autoclose int lock_fd = lock_try_at(dir_fd, EVENTS_FILE ".lock", LOCK_MODE_EXCLUSIVE);

	/* Another may have done it just now. */
	if (lock_fd >= 0 && is_full(dir_fd)) {
		(void)renameat(dir_fd, EVENTS_FILE, dir_fd, EVENTS_FILE ".1");
	}
}

static int line_make(enum event_type type, const struct sandbox_state *s, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	char now[CLOCK_RFC3339_MAX];
	char expires[CLOCK_RFC3339_MAX];

	clock_rfc3339(clock_wall_ms(), now, sizeof(now));
	json_object_begin(&w, NULL);
	json_add_string(&w, "time", now);
	json_add_string(&w, "type", type_names[type]);
	json_add_string(&w, "id", s->id.text);
	json_add_string(&w, "name", s->name);
	json_add_string(&w, "image", s->image);
	if (type == EVENT_END || type == EVENT_STOP) {
		json_add_string(&w, "reason", s->reason);
	}
	if (type == EVENT_END && s->exit_status >= 0) {
		json_add_i64(&w, "exitStatus", s->exit_status);
	}
	if (type == EVENT_END && s->message) {
		json_add_string(&w, "message", s->message);
	}
	if ((type == EVENT_START || type == EVENT_RENEW) && s->expires_ms != 0) {
		clock_rfc3339(s->expires_ms, expires, sizeof(expires));
		json_add_string(&w, "expiresAt", expires);
	}
	json_object_end(&w);
	return w.failed ? -1 : buf_append(out, "\n", 1);
}

void events_add(int runtime_fd, enum event_type type, const struct sandbox_state *state)
{
	AUTO(buf) struct buf line = BUF_INIT(LINE_BYTES_MAX);
	struct stat st;

	assert((unsigned int)type < EVENT_TYPE_COUNT);
	autoclose int fd = fd_open_at(
			runtime_fd, EVENTS_FILE, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);

	if (fd < 0 || line_make(type, state, &line) < 0 ||
			write(fd, line.p, line.n) != (ssize_t)line.n) {
		return;
	}
	if (fstat(fd, &st) == 0 && st.st_size > FILE_BYTES_MAX) {
		rotate(runtime_fd);
	}
}
