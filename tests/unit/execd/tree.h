/* SPDX-License-Identifier: Apache-2.0 */
/* tree - what KILL owes a process, however its descendants are kept together. */
#ifndef OSBX_TESTS_TREE_H
#define OSBX_TESTS_TREE_H

#include <poll.h>

#include <osbx/secfilter.h>

#include "sandbox.h"

static struct sandbox tree_box;
static struct sandbox_run tree_main;
static const struct secfilter *tree_filter; /* of PID 1; NULL: none */

static inline void tree_send(enum execd_msg type, uint32_t tag)
{
	const struct execd_tag t = { .tag = tag };

	ck_assert_int_eq(execd_send(tree_box.control, type, &t, sizeof(t), NULL, 0), 0);
}

/* A sandbox whose main process waits for the end of its input. */
static inline void tree_begin(int cgroup_fd)
{
	sandbox_init(&tree_box);
	tree_box.cgroup_fd = cgroup_fd;
	if (tree_filter) {
		tree_box.config.own_filter_n = (uint32_t)tree_filter->n;
		tree_box.config.own_filter = (void *)mem_dup(
				tree_filter->insns, tree_filter->n * sizeof(*tree_filter->insns));
	}
	sandbox_start(&tree_box);
	execd_config_done(&tree_box.config);
	RUN_INIT(&tree_main, "cat");
	(void)run_start(&tree_box, &tree_main);
}

static inline void tree_end(void)
{
	close(tree_main.in);
	tree_main.in = -1;
	ck_assert_int_eq(run_wait(&tree_box, &tree_main).status, 0);
	free(run_output(&tree_main));
	ck_assert_int_eq(sandbox_end(&tree_box), 0);
}

/* Start a second process and wait for its line "ready". */
static inline pid_t tree_run(struct sandbox_run *r, const char *script)
{
	char line[8] = "";
	size_t n = 0;

	RUN_SHELL(r, script);
	r->tag = 2;
	r->flags = 0;
	pid_t pid = run_start(&tree_box, r);

	while (n < 6 && read(r->out, line + n, 1) == 1) {
		n++;
	}
	ck_assert_str_eq(line, "ready\n");
	return pid;
}

static inline uint32_t tree_count(void)
{
	struct packet p;

	tree_send(EXECD_MSG_STAT, 99);
	sandbox_expect(&tree_box, EXECD_MSG_STATS, &p);
	const struct execd_stats *stats = execd_payload(&p, sizeof(*stats));

	ck_assert_ptr_nonnull(stats);
	ck_assert_uint_eq(stats->tag, 99);
	return stats->processes;
}

/* Only the main process and PID 1 are there after a while. */
static inline void tree_expect_alone(void)
{
	for (int i = 0; i < 200 && tree_count() > 1; i++) {
		usleep(10000);
	}
	ck_assert_uint_eq(tree_count(), 1);
}

/* Whatever holds the pipe, in whatever session, ignoring whatever: it ends. */
static inline void tree_kill_reaches_all(void)
{
	static const char *const scripts[] = {
		"echo ready; sleep 1000",
		"sleep 1000 & sleep 1000 & echo ready; wait",
		"trap '' TERM HUP INT; (trap '' TERM; setsid sleep 1000) & echo ready; sleep 1000",
		/* Orphans, in a session of their own, of a parent that has gone. */
		"setsid sh -c 'setsid sleep 1000 & setsid sleep 1000 &' ; echo ready; sleep 1000",
		"sh -c 'sh -c \"setsid sleep 1000 & echo ready; sleep 1000\"'",
		/* Stopped ones. */
		"sleep 1000 & kill -STOP $!; echo ready; sleep 1000",
		/* Forks as long as it lives. */
		"f() { while :; do sleep 0.001 & done; }; f & f & echo ready; f",
	};

	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		struct sandbox_run r;

		(void)tree_run(&r, scripts[i]);
		tree_send(EXECD_MSG_KILL, 2);
		struct execd_exited exited = run_wait(&tree_box, &r);

		ck_assert_int_eq(exited.status, 137);
		ck_assert_int_eq(exited.signal, SIGKILL);
		free(run_output(&r));
		tree_expect_alone();
	}
}

/* What a process leaves behind goes on. */
static inline void tree_survivors_live(void)
{
	struct sandbox_run r;
	char byte;

	(void)tree_run(&r, "setsid sleep 1000 & echo ready; exit 6");
	ck_assert_int_eq(run_wait(&tree_box, &r).status, 6);
	tree_send(EXECD_MSG_KILL, 2); /* the tag means nobody any more */
	struct pollfd end = { .fd = r.out, .events = POLLIN };

	ck_assert_int_eq(poll(&end, 1, 200), 0);
	ck_assert_uint_eq(tree_count(), 2);
	/* Signals of the whole sandbox still reach it. */
	sandbox_signal(&tree_box, 0, SIGINT);
	(void)!read(r.out, &byte, 1);
}

static inline void tree_statuses_are_exact(void)
{
	static const struct {
		const char *script;
		int status;
		int signal;
	} rows[] = {
		{ "exit 0", 0, 0 },
		{ "exit 41", 41, 0 },
		{ "kill -TERM $$", 143, SIGTERM },
		{ "for i in 1 2 3 4 5; do setsid sh -c 'exit 3' & done; exit 7", 7, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sandbox_run r;

		RUN_SHELL(&r, rows[i].script);
		r.tag = 5;
		r.flags = 0;
		ck_assert_int_gt(run_start(&tree_box, &r), 1);
		struct execd_exited exited = run_wait(&tree_box, &r);

		ck_assert_int_eq(exited.status, rows[i].status);
		ck_assert_int_eq(exited.signal, rows[i].signal);
		free(run_output(&r));
	}
	struct sandbox_run r;

	RUN_INIT(&r, "/nonexistent");
	r.tag = 6;
	r.flags = 0;
	ck_assert_int_eq(run_fails(&tree_box, &r).code, ERRC_NO_COMMAND);
	tree_expect_alone();
}

#endif
