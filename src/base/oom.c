/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <osbx/buf.h>
#include <osbx/file.h>
#include <osbx/oom.h>
#include <osbx/str.h>

#define EVENTS_BYTES 4096

uint64_t oom_kills(int cgroup_fd)
{
	AUTO(buf) struct buf b = BUF_INIT(EVENTS_BYTES);
	struct span rest = { .n = 0 };
	struct span line;
	uint64_t n = 0;

	if (cgroup_fd < 0 || file_read_at(cgroup_fd, "memory.events", &b) < 0) {
		return 0;
	}
	rest = buf_span(&b);
	while (span_next(&rest, '\n', &line)) {
		autofree char *text = span_dup(line);
		const char *value = text ? str_after(text, "oom_kill ") : NULL;

		if (value && str_to_u64(value, UINT64_MAX, &n) < 0) {
			return 0;
		}
	}
	return n;
}
