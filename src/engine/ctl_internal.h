/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_internal - the control socket of a keeper: its clients (keeper_ctl.c), and the processes they
 * started (keeper_exec.c).
 */
#ifndef OSBX_ENGINE_CTL_INTERNAL_H
#define OSBX_ENGINE_CTL_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/ctl_proto.h>
#include <osbx/loop.h>

#include "keeper_internal.h"

enum client_stage {
	CLIENT_NEW,     /* its request has not come yet */
	CLIENT_STOPPER, /* gets OK at the end */
	CLIENT_WAITER,  /* gets ENDED at the end */
	CLIENT_EXEC,    /* has a process */
	CLIENT_STAGE_COUNT,
};

struct client {
	struct loop_source src;
	struct loop_source patience; /* until its request is there */
	int fd;
	enum client_stage stage;
	struct exec *exec;
	struct ctl *ctl;
	struct client *next;
};

/* A process started by EXEC, until it has ended; or a connection that DIAL makes, or a count. */
struct exec {
	uint32_t tag;
	struct ctl_stats stats; /* of a count, but for the processes */
	bool detached;          /* lives on without its client */
	bool doomed; /* its client is gone: it gets SIGKILL, as soon as it can get anything */
	struct client *client;
	void (*done)(void *ctx, int fd); /* of a connection for this process itself, else NULL */
	void *ctx;
	struct exec *next;
};

struct ctl {
	struct keeper *keeper;
	struct loop_source listener;
	struct loop_source retry; /* accept again */
	int listen_fd;
	unsigned int clients_n;
	struct client *clients;
	struct exec *execs;
	uint32_t last_tag;
};

/* Send an answer with a descriptor (-1: none). The last one of a connection closes it. */
void client_answer(struct client *c, enum ctl_msg type, const void *payload, uint32_t n, int fd)
		NONNULL(1);
void client_fail(struct client *c, const struct error *e) NONNULL(1, 2);
void client_close(struct client *c) NONNULL(1);

/* Start what the client asks for; its answers come by exec_on_packet. */
int exec_start(struct client *c, const struct packet *p, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Connect to what the client asks for; likewise. */
int dial_start(struct client *c, const struct packet *p, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Let PID 1 count the processes, and answer with stats; likewise. */
int count_start(struct client *c, const struct ctl_stats *stats, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* A packet of the client of a process. 0, or -EPROTO. */
int exec_on_request(struct client *c, const struct packet *p) NONNULL(1, 2) MUST_CHECK;
/* The client is gone. */
void exec_on_hangup(struct exec *x, struct ctl *ctl) NONNULL(1, 2);
/* The sandbox is thawed: send what had to wait. */
void exec_on_resume(struct ctl *ctl) NONNULL(1);
/* PID 1 is dead, and so is every process. */
void exec_on_death(struct ctl *ctl) NONNULL(1);

/* The numbers of the sandbox's cgroup. */
void stats_read(int cgroup_fd, struct ctl_stats *out) NONNULL(2);

/* Labels as LABELS carries them: the descriptor is borrowed. At most LIMIT_LABELS of the form
 * KEY=VALUE. */
int labels_take(int fd, struct strv *out_labels, struct error *e) MUST_CHECK NONNULL(2, 3);

#endif
