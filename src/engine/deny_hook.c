/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/log.h>
#include <osbx/mem.h>
#include <osbx/notify.h>
#include <osbx/packet.h>
#include <osbx/spawn.h>
#include <osbx/sys.h>

#include "deny_hook.h"

#define AGAIN_MS 1000 /* between two starts */
#define LOG_MS   60000

struct deny_hook {
	struct notify_begin begin;
	int sock; /* -1: it does not run */
	int pidfd;
	uint64_t dropped;
	int64_t started_ms;
	int64_t logged_ms;
};

static void hook_end(struct deny_hook *h)
{
	int status = 0;

	fd_close(&h->sock);
	if (h->pidfd >= 0) {
		(void)!sys_pidfd_kill(h->pidfd, SIGKILL);
		(void)!spawn_wait(h->pidfd, -1, &status);
		fd_close(&h->pidfd);
	}
}

static int hook_spawn(struct deny_hook *h, struct error *e)
{
	const struct spawn_part part = {
		.command = "notify",
		.control_fd = NOTIFY_CONTROL_FD,
		.new_session = true,
	};

	if (spawn_part(&part, &h->sock, &h->pidfd, e) < 0) {
		return -1;
	}
	int r = fd_set_nonblock(h->sock, true);

	return r < 0 ? error_sys(e, -r, "channel of the web hook") : 0;
}

static void say(struct deny_hook *h, const char *why)
{
	int64_t now_ms = clock_boot_ms();

	if (h->logged_ms == 0 || now_ms - h->logged_ms >= LOG_MS) {
		h->logged_ms = now_ms;
		log_warn("network policy: the web hook was not told: %s", why);
	}
}

/* What it says of failures; its end. */
static void hook_hear(struct deny_hook *h)
{
	struct packet p;
	int r = 1;

	while (h->sock >= 0 && (r = packet_recv(h->sock, &p, 0)) == 1) {
		if (p.type == NOTIFY_MSG_FAILED && p.len > 0) {
			p.payload[p.len - 1] = '\0';
			say(h, p.payload);
		}
		packet_done(&p);
	}
	if (h->sock >= 0 && r != -EAGAIN) {
		hook_end(h);
	}
}

static int send_packet(
		const struct deny_hook *h, enum notify_msg type, const void *data, uint32_t n)
{
	struct packet p;

	packet_init(&p, (uint16_t)type);
	int r = packet_put(&p, data, n);

	return r < 0 ? r : packet_send(h->sock, &p);
}

/* False: not now. */
static bool hook_start(struct deny_hook *h)
{
	struct error e = ERROR_INIT;
	int64_t now_ms = clock_boot_ms();

	if (h->sock >= 0) {
		return true;
	}
	if (h->started_ms != 0 && now_ms - h->started_ms < AGAIN_MS) {
		return false;
	}
	h->started_ms = now_ms;
	if (hook_spawn(h, &e) < 0 ||
			send_packet(h, NOTIFY_MSG_BEGIN, &h->begin, sizeof(h->begin)) < 0) {
		say(h, e.code != ERRC_OK ? e.text : "its process takes nothing");
		hook_end(h);
		return false;
	}
	return true;
}

struct deny_hook *deny_hook_new(const char *url, const struct id *sandbox)
{
	struct deny_hook *h = mem_new(struct deny_hook);

	(void)snprintf(h->begin.url, sizeof(h->begin.url), "%s", url);
	h->begin.sandbox = *sandbox;
	h->sock = -1;
	h->pidfd = -1;
	return h;
}

void deny_hook_tell(struct deny_hook *h, const struct netd_denied *denied)
{
	struct notify_denied d = {
		.time_ms = clock_wall_ms(),
		.dropped = h->dropped,
		.port = denied->port,
	};

	memcpy(d.what, denied->what, sizeof(d.what));
	hook_hear(h);
	if (hook_start(h) && send_packet(h, NOTIFY_MSG_DENIED, &d, sizeof(d)) == 0) {
		h->dropped = 0;
	} else {
		h->dropped++;
	}
}

void deny_hook_free(struct deny_hook *h)
{
	if (h) {
		/* It delivers what it has, and ends. */
		hook_hear(h);
		fd_close(&h->sock);
		fd_close(&h->pidfd);
		free(h);
	}
}
