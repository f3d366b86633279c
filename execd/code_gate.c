/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients take for the sign that code can be run: that something listens at CODE_GATE_PORT of
 * the sandbox's loopback, where upstream's image has its Jupyter server. Nothing is said there.
 *
 * The port is taken a moment after the main process has been started, or with the first connection
 * to the API: sandboxes that live for a moment only do not pay for it.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "code_internal.h"
#include "service.h"

#define ARM_MS      50
#define BACKLOG     128
#define ARGS_LOOKED 4 /* an interpreter and its options may stand before the script */

/* Upstream's image begins with it. */
#define JUPYTER_SCRIPT "code-interpreter.sh"

struct code_gate {
	struct execd *execd;
	int fd; /* -1: none */
	struct loop_source listener;
	struct loop_source timer;
	bool is_open;
};

static bool brings_jupyter(const struct execd_process *main)
{
	static const char *const variables[] = { "JUPYTER_HOST", "JUPYTER_PORT" };

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		if (strv_env_find(&main->env, variables[i])) {
			return true;
		}
	}
	for (size_t i = 0; i < main->argv.n && i < ARGS_LOOKED; i++) {
		if (str_eq(path_last(main->argv.v[i]), JUPYTER_SCRIPT)) {
			return true;
		}
	}
	return false;
}

static bool has_interpreter(const struct execd *x)
{
	for (size_t i = 0; i < code_langs_n; i++) {
		if (code_lang_is_there(x, &code_langs[i])) {
			return true;
		}
	}
	return false;
}

static void on_connection(struct loop *loop, struct loop_source *src, uint32_t events)
{
	autoclose int fd = accept4(src->fd, NULL, NULL, SOCK_CLOEXEC);

	(void)loop;
	(void)events;
	(void)fd; /* closed at once: whoever connects has learnt what there is to learn */
}

static void gate_listen(struct code_gate *g)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(CODE_GATE_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	g->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (g->fd >= 0 && bind(g->fd, (const void *)&address, sizeof(address)) == 0 &&
			listen(g->fd, BACKLOG) == 0 &&
			loop_add(g->execd->loop, &g->listener, g->fd, EPOLLIN, on_connection) ==
					0) {
		return;
	}
	fd_close(&g->fd); /* somebody inside was faster: then that is what clients find */
}

/* Interpreters that are to be warm before the first run. */
static void prestart(struct execd *x, const struct execd_process *main)
{
	const char *list = strv_env_find(&main->env, CODE_PRESTART_VARIABLE);
	struct span rest = span_of(list ? list : "");
	struct span piece;

	while (span_next(&rest, ',', &piece)) {
		autofree char *name = piece.n > 0 ? span_dup(piece) : NULL;
		const struct code_lang *lang = name ? code_lang_find(name) : NULL;

		if (lang) {
			code_spare_add(codes_of(x), lang->language);
		}
	}
}

void code_gate_open(struct execd *x)
{
	struct code_gate *g = x->gate;
	const struct execd_process *main = api_main(x);

	if (!g || g->is_open || !main) {
		return;
	}
	g->is_open = true;
	loop_remove(x->loop, &g->timer);
	if (brings_jupyter(main)) {
		return;
	}
	prestart(x, main);
	if (service_is_inside(x) && has_interpreter(x)) {
		gate_listen(g);
	}
}

static void arm_on_time(struct loop *loop, struct loop_source *src, uint32_t events)
{
	(void)loop;
	(void)events;
	code_gate_open(container_of(src, struct code_gate, timer)->execd);
}

void code_gate_arm(struct execd *x)
{
	if (x->gate) {
		return;
	}
	x->gate = mem_new(struct code_gate);
	x->gate->execd = x;
	x->gate->fd = -1;
	loop_timer(x->loop, &x->gate->timer, clock_boot_ms() + ARM_MS, arm_on_time);
}
