/* SPDX-License-Identifier: Apache-2.0 */
/* The end of whole trees: rounds, each of which kills what there is, until nothing is left. */
#include <signal.h>

#include <osbx/clock.h>

#include "execd.h"

#define KILL_MS 2

/* Once more, for what was forked meanwhile. True when it has to be repeated. */
static bool kill_below(struct process *p)
{
	if (p->pid == 0 && !p->has_ended) {
		return true; /* its subreaper is about to fork */
	}
	int n = proc_kill(p->execd->root_fd, p->reaper_pid, p->has_ended ? 0 : p->pid);
	siginfo_t end = p->end;

	if (n > 0) {
		return true;
	}
	p->killing = false;
	if (p->has_ended) {
		process_end_below(p, &end);
	} else {
		(void)kill(p->pid, SIGKILL);
	}
	return false;
}

static void kill_round(struct loop *loop, struct loop_source *src, uint32_t events)
{
	struct execd *x = container_of(src, struct execd, kill_timer);
	struct process *next = NULL;
	bool again = false;

	(void)events;
	for (struct leaf *leaf = x->leaves; leaf; leaf = leaf->next) {
		leaf->killing = leaf->killing && leaf_kill(leaf);
		again = again || leaf->killing;
	}
	for (struct process *p = x->processes; p; p = next) {
		next = p->next;
		again = (p->killing && kill_below(p)) || again;
	}
	if (again) {
		loop_timer(loop, src, clock_boot_ms() + KILL_MS, kill_round);
	}
}

void process_kill(struct execd *x, uint32_t tag)
{
	struct process *p = process_find(x, tag);

	if (!p) {
		return;
	}
	if (p->flags & EXECD_START_MAIN) {
		(void)kill(-1, SIGKILL); /* all but ourselves */
		return;
	}
	if (p->leaf) {
		p->leaf->killing = true;
	} else {
		p->killing = true;
	}
	/* Not at once: a round may be under way, and who is called from it may call this. */
	loop_timer(x->loop, &x->kill_timer, clock_boot_ms(), kill_round);
}

void process_take_tree(struct execd *x, uint32_t tag)
{
	struct process *p = process_find(x, tag);

	if (p && !(p->flags & EXECD_START_MAIN)) {
		p->takes_tree = true;
	}
}
