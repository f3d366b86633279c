/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_keeper - a sandbox whose keeper is a child of the test: what a command asks it for comes to
 * a function of the test's.
 */
#ifndef OSBX_TESTS_ENGINE_FAKE_KEEPER_H
#define OSBX_TESTS_ENGINE_FAKE_KEEPER_H

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <osbx/ctl.h>
#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/packet.h>

#include "../unit.h"

/* In the child: 0 when all was as it should be, else the number of a line. */
#define CHECK(expr)                      \
	do {                             \
		if (!(expr)) {           \
			_exit(__LINE__); \
		}                        \
	} while (0)

struct fake {
	struct dirs dirs;
	struct id id;
	pid_t pid;
};

/* The request and its descriptors are the function's; what it returns closes the connection. */
typedef void (*fake_fn)(int sock, struct packet *p);

static inline void fake_answer(int sock, enum ctl_msg type, const void *payload, uint32_t n)
{
	struct packet p;

	packet_init(&p, (uint16_t)type);
	CHECK(packet_put(&p, payload, n) == 0);
	CHECK(packet_send(sock, &p) == 0);
}

static inline void fake_started(int sock)
{
	const struct ctl_started started = { .pid = 7 };

	fake_answer(sock, CTL_MSG_STARTED, &started, sizeof(started));
}

static inline void fake_ended(int sock, int status)
{
	const struct ctl_ended ended = { .status = status };

	fake_answer(sock, CTL_MSG_ENDED, &ended, sizeof(ended));
}

static inline void fake_process(const struct packet *p, struct execd_process *out)
{
	AUTO(buf) struct buf text = BUF_INIT(1U << 20);

	CHECK(p->type == CTL_MSG_EXEC && p->fds_n >= 1);
	CHECK(lseek(p->fds[0], 0, SEEK_SET) == 0 && fd_read_all(p->fds[0], &text) == 0);
	CHECK(execd_process_decode(buf_span(&text), out) == 0);
}

static inline void fake_serve(int listen_fd, fake_fn fn)
{
	struct packet p;
	int sock = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

	CHECK(sock >= 0);
	CHECK(packet_recv(sock, &p, -1) == 1);
	fn(sock, &p);
	_exit(0);
}

/* A sandbox that serves one connection. */
static inline void fake_start(struct fake *f, fake_fn fn)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct error e = ERROR_INIT;

	*f = (struct fake){ .dirs = DIRS_INIT };
	setenv("OSBX_ROOT", unit_path, 1);
	setenv("OSBX_RUNTIME", unit_path, 1);
	ck_assert_int_eq(dirs_open(&f->dirs, &e), 0);
	id_new(&f->id);
	autofree char *path = mem_printf("sandboxes/%s", f->id.text);

	(void)mkdirat(unit_fd, "sandboxes", 0700);
	ck_assert_int_eq(mkdirat(unit_fd, path, 0700), 0);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	autofree char *name = mem_printf("%s/sandboxes/%s/" CTL_SOCKET, unit_path, f->id.text);

	ck_assert_uint_lt(strlen(name), sizeof(addr.sun_path));
	memcpy(addr.sun_path, name, strlen(name) + 1);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	f->pid = fork();
	ck_assert_int_ge(f->pid, 0);
	if (f->pid == 0) {
		fake_serve(fd, fn);
	}
	close(fd);
}

/* All was as the keeper expected. */
static inline void fake_end(struct fake *f)
{
	int status = -1;

	ck_assert_int_eq(waitpid(f->pid, &status, 0), f->pid);
	ck_assert_int_eq(status, 0);
	dirs_done(&f->dirs);
}

#endif
