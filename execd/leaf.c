/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leaf outlives its process while descendants of it live. It is looked at again whenever
 * something was reaped: what is left of a leaf's processes becomes a child of PID 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "execd.h"

#define PROCS_BYTES (1U << 20)

struct leaf *leaf_new(struct execd *x)
{
	if (x->cgroup_fd < 0) {
		return NULL;
	}
	struct leaf leaf = { .fd = -1, .is_used = true, .next = x->leaves };

	(void)snprintf(leaf.name, sizeof(leaf.name), "cmd-%u", x->leaves_made + 1);
	if (mkdirat(x->cgroup_fd, leaf.name, 0755) < 0) {
		return NULL;
	}
	leaf.fd = fd_open_at(x->cgroup_fd, leaf.name, O_RDONLY | O_DIRECTORY, 0);
	if (leaf.fd < 0) {
		(void)unlinkat(x->cgroup_fd, leaf.name, AT_REMOVEDIR);
		return NULL;
	}
	x->leaves_made++;
	x->leaves = mem_new(struct leaf);
	*x->leaves = leaf;
	return x->leaves;
}

pid_t leaf_fork(const struct leaf *leaf)
{
	autoclose int pidfd = -1;

	return sys_clone(0, leaf->fd, &pidfd);
}

void leaves_sweep(struct execd *x)
{
	struct leaf **at = &x->leaves;

	while (*at) {
		struct leaf *leaf = *at;

		if (leaf->is_used || (unlinkat(x->cgroup_fd, leaf->name, AT_REMOVEDIR) < 0 &&
						     errno != ENOENT)) {
			at = &leaf->next;
			continue;
		}
		*at = leaf->next;
		fd_close(&leaf->fd);
		free(leaf);
	}
}

/* Every process of it that this pid namespace sees. */
static bool members_kill(const struct leaf *leaf)
{
	AUTO(buf) struct buf b = BUF_INIT(PROCS_BYTES);
	struct span rest = { .n = 0 };
	struct span line;
	bool any = false;

	if (file_read_at(leaf->fd, "cgroup.procs", &b) < 0) {
		return false;
	}
	rest = buf_span(&b);
	while (span_next(&rest, '\n', &line)) {
		autofree char *text = span_dup(line);
		uint64_t pid = 0;

		if (text && str_to_u64(text, INT32_MAX, &pid) == 0 && pid > 1) {
			any = true;
			(void)kill((pid_t)pid, SIGKILL);
		}
	}
	return any;
}

bool leaf_kill(const struct leaf *leaf)
{
	/* Linux 5.14; also reaches what is being forked. */
	return file_put_at(leaf->fd, "cgroup.kill", "1") < 0 && members_kill(leaf);
}
