/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A child makes, runs and removes a sandbox of @host by sandbox_run, as "osbx run" would: in this
 * user's directories, with whatever rights and filters this process has. It tells by packets which
 * phase it is in and how it ended; a death without a word is a failure in the last phase. The
 * sandbox has to write a random word, and to find itself under a filter without new privileges:
 * doctors of other programs said "ok" of sandboxes that were none.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/id.h>
#include <osbx/mem.h>
#include <osbx/sandbox.h>
#include <osbx/spawn.h>
#include <osbx/str.h>
#include <osbx/strv.h>
#include <osbx/sys.h>

#include "doctor_internal.h"

#define TRIAL_MS     60000
#define END_MS       5000
#define ANSWER_BYTES 4096
#define WORD_BYTES   8

/* Only what every shell has built in. */
#define SCRIPT                                                                           \
	"while read -r k v; do case $k in NoNewPrivs:|Seccomp:) echo $k$v;; esac; done " \
	"</proc/self/status; echo word:$1"
#define ANSWER "NoNewPrivs:1\nSeccomp:2\nword:%s\n"

/* One packet of the child, which is a copy of this process. */
struct trial_news {
	const char *phase; /* that begins, a constant of this program; NULL: the end */
	int64_t at_us;     /* when it was sent */
	struct error e;    /* at the end; ERRC_OK: it worked */
	int status;        /* of the command */
};

struct trial {
	int sock;   /* packets of the child */
	int out_fd; /* what the sandbox writes */
	int pidfd;
	char word[2 * WORD_BYTES + 1];
	int64_t phase_us; /* when the last phase began */
	struct doctor_lines *steps;
};

/* The child's ends. */
struct trial_child {
	int sock;
	int out_fd;
	const char *word;
};

static void child_tell(int sock, const struct trial_news *news)
{
	(void)!fd_write_all(sock, news, sizeof(*news));
}

static void child_on_phase(void *ctx, const char *name)
{
	const struct trial_child *c = ctx;
	const struct trial_news news = { .phase = name, .at_us = clock_boot_us() };

	child_tell(c->sock, &news);
}

static int request_fill(struct sandbox_request *req, const char *word, struct error *e)
{
	static const char *const command[] = { "/bin/sh", "-c", SCRIPT, "sh" };

	req->image = mem_strdup("@host");
	req->name = mem_printf("doctor-%s", word);
	for (size_t i = 0; i < ARRAY_SIZE(command); i++) {
		if (strv_add(&req->command, command[i]) < 0) {
			return error_set(e, ERRC_INTERNAL, "command of the trial");
		}
	}
	if (strv_add(&req->command, word) < 0) {
		return error_set(e, ERRC_INTERNAL, "command of the trial");
	}
	return request_validate(req, e);
}

static NORETURN void child_run(struct trial_child *c)
{
	AUTO(request) struct sandbox_request req = { .image = NULL };
	AUTO(sandbox_end) struct sandbox_end end = { .kept = NULL };
	struct trial_news news = { .status = 0 };
	int null_fd = fd_open("/dev/null", O_RDWR, 0);
	const struct sandbox_opts opts = {
		.in_fd = null_fd,
		.out_fd = c->out_fd,
		.err_fd = null_fd,
		.on_phase = child_on_phase,
		.ctx = c,
	};

	request_init(&req);
	if (null_fd < 0) {
		(void)error_sys(&news.e, -null_fd, "open /dev/null");
	} else if (request_fill(&req, c->word, &news.e) == 0 &&
			sandbox_run(&req, &opts, &end, &news.e) == 0) {
		news.status = end.status;
	}
	news.at_us = clock_boot_us();
	child_tell(c->sock, &news);
	_exit(0);
}

static int child_start(struct trial *t, struct error *e)
{
	int socks[2] = { -1, -1 };
	int outs[2] = { -1, -1 };
	int r = fd_seqpacket_pair(socks);

	if (r == 0) {
		r = fd_pipe(outs, 0);
	}
	autoclose int child_sock = socks[1];
	autoclose int child_out = outs[1];

	t->sock = socks[0];
	t->out_fd = outs[0];
	if (r < 0) {
		return error_sys(e, -r, "channels of the trial");
	}
	struct trial_child c = { .sock = child_sock, .out_fd = child_out, .word = t->word };
	pid_t pid = sys_clone(0, -1, &t->pidfd);

	if (pid < 0) {
		return error_sys(e, -pid, "start the trial");
	}
	if (pid == 0) {
		/* Else its own packets would keep the channel open. */
		fd_close(&t->sock);
		child_run(&c);
	}
	return 0;
}

/* The last step ended, well or with an error. */
static void step_end(struct trial *t, int64_t at_us, const struct error *failure)
{
	char text[ERROR_TEXT_MAX + 128];

	if (t->steps->n == 0) {
		return;
	}
	struct doctor_line *step = &t->steps->v[t->steps->n - 1];

	free(step->detail);
	if (failure) {
		error_render(failure, text, sizeof(text));
		step->level = DOCTOR_FAIL;
		step->detail = mem_strdup(text);
	} else {
		step->detail = mem_printf("%.1f ms", (double)(at_us - t->phase_us) / 1000);
	}
}

static void step_begin(struct trial *t, const struct trial_news *news)
{
	const struct doctor_line line = { .level = DOCTOR_OK, .name = news->phase };

	step_end(t, news->at_us, NULL);
	t->phase_us = news->at_us;
	doctor_lines_add(t->steps, &line);
}

/* What the sandbox wrote. The child is dead; a process that outlived it is not waited for. */
static void answer_read(int fd, char out[ANSWER_BYTES])
{
	size_t n = 0;
	ssize_t r = 0;

	out[0] = '\0';
	if (fd_set_nonblock(fd, true) < 0) {
		return;
	}
	while (n < ANSWER_BYTES - 1 && (r = fd_read(fd, out + n, ANSWER_BYTES - 1 - n)) > 0) {
		n += (size_t)r;
	}
	out[n] = '\0';
}

static int answer_check(const struct trial *t, int status, struct error *e)
{
	char answer[ANSWER_BYTES];
	char shown[128];
	autofree char *wanted = mem_printf(ANSWER, t->word);

	answer_read(t->out_fd, answer);
	if (status == 0 && str_eq(answer, wanted)) {
		return 0;
	}
	answer[strcspn(answer, "\n")] = '\0';
	str_printable(answer, shown, sizeof(shown));
	return error_set(e, ERRC_INTERNAL,
			"the sandbox ended with status %d and not the right answer: \"%s\"", status,
			shown);
}

/* Packets until the end. 0 with the last one; -1 with the reason. */
static int news_read(struct trial *t, struct trial_news *out_news, struct error *e)
{
	const int64_t deadline_ms = clock_boot_ms() + TRIAL_MS;

	for (;;) {
		struct pollfd p = { .fd = t->sock, .events = POLLIN };
		int64_t left = deadline_ms - clock_boot_ms();
		int r = left > 0 ? poll(&p, 1, (int)left) : 0;

		if (r < 0 && errno == EINTR) {
			continue;
		}
		if (r == 0) {
			return error_set(e, ERRC_TIMEOUT, "no end within %d s", TRIAL_MS / 1000);
		}
		ssize_t n = r < 0 ? -errno : fd_read(t->sock, out_news, sizeof(*out_news));

		if (n != (ssize_t)sizeof(*out_news)) {
			return error_set(e, ERRC_INTERNAL, "osbx died while it made the sandbox");
		}
		if (!out_news->phase) {
			return 0;
		}
		step_begin(t, out_news);
	}
}

/* Reap the child, whatever it does. */
static void child_end(struct trial *t)
{
	int status = 0;

	if (t->pidfd >= 0 && spawn_wait(t->pidfd, END_MS, &status) == -ETIMEDOUT &&
			sys_pidfd_kill(t->pidfd, SIGKILL) == 0) {
		(void)!spawn_wait(t->pidfd, -1, &status);
	}
}

static int trial_run(struct trial *t, struct error *e)
{
	struct trial_news news = { .status = 0 };

	if (child_start(t, e) < 0) {
		return -1;
	}
	int r = news_read(t, &news, e);

	if (r < 0) {
		(void)!sys_pidfd_kill(t->pidfd, SIGKILL);
	}
	child_end(t);
	if (r == 0 && news.e.code != ERRC_OK) {
		*e = news.e;
		r = -1;
	}
	return r < 0 ? r : answer_check(t, news.status, e);
}

int doctor_trial(struct doctor_lines *out_steps, int64_t *out_took_us, struct error *e)
{
	const int64_t begin_us = clock_boot_us();
	struct trial t = { .sock = -1, .out_fd = -1, .pidfd = -1, .steps = out_steps };

	id_random_hex(t.word, WORD_BYTES);
	int r = trial_run(&t, e);

	const int64_t end_us = clock_boot_us();

	step_end(&t, end_us, r < 0 ? e : NULL);
	*out_took_us = end_us - begin_us;
	fd_close(&t.sock);
	fd_close(&t.out_fd);
	fd_close(&t.pidfd);
	return r;
}
