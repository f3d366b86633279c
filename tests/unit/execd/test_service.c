/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <sys/un.h>

#include "sandbox.h"

#define WAIT_S 20

/* A listener as the keeper's, by the name of an abstract address that only this process knows. */
static int listener(struct sockaddr_un *out_address, socklen_t *out_n)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*out_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	*out_n = sizeof(sa_family_t);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (const void *)out_address, *out_n), 0);
	*out_n = sizeof(*out_address);
	ck_assert_int_eq(getsockname(fd, (void *)out_address, out_n), 0);
	ck_assert_int_eq(listen(fd, 16), 0);
	return fd;
}

struct service {
	struct sandbox box;
	struct sandbox_run run;
	struct sockaddr_un address;
	socklen_t address_n;
};

static int dial(const struct service *s)
{
	const struct timeval patience = { .tv_sec = WAIT_S };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	ck_assert_int_eq(connect(fd, (const void *)&s->address, s->address_n), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* Everything until the end, without the date. Caller frees. */
static char *hear(int fd)
{
	struct buf b = BUF_INIT(1 << 20);
	char bytes[4096];
	ssize_t n = 0;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		ck_assert_int_eq(buf_append(&b, bytes, (size_t)n), 0);
	}
	close(fd);
	ck_assert_int_eq(n, 0);
	char *text = buf_take(&b);
	char *date = strstr(text, "Date: ");

	while (date) {
		char *end = strstr(date, "\r\n") + 2;

		memmove(date, end, strlen(end) + 1);
		date = strstr(date, "Date: ");
	}
	return text;
}

static void expect(const struct service *s, const char *request, const char *answer)
{
	int fd = dial(s);

	say(fd, request);
	autofree char *text = hear(fd);

	ck_assert_str_eq(text, answer);
}

static void send_listen(const struct sandbox *box, uint32_t flags, const int *fds, uint32_t n)
{
	const struct execd_listen l = { .flags = flags };

	ck_assert_int_eq(execd_send(box->control, EXECD_MSG_LISTEN, &l, sizeof(l), fds, n), 0);
}

static void begin(struct service *s, const char *token, uint32_t flags, const char *script)
{
	sandbox_init(&s->box);
	s->box.config.token = mem_strdup(token);
	int fd = listener(&s->address, &s->address_n);

	sandbox_launch(&s->box);
	send_listen(&s->box, flags, &fd, 1);
	close(fd);
	RUN_SHELL(&s->run, script);
	(void)run_start(&s->box, &s->run);
}

/* Close the shell's standard input, which scripts wait for. Its output; caller frees. */
static char *end(struct service *s)
{
	close(s->run.in);
	s->run.in = -1;
	(void)run_wait(&s->box, &s->run);
	char *out = run_output(&s->run);

	free(s->box.config.token);
	(void)sandbox_end(&s->box);
	return out;
}

#define CLOSE "Host: x\r\nConnection: close\r\n\r\n"

START_TEST(health)
{
	struct service s;

	begin(&s, NULL, 0, "cat >/dev/null");
	expect(&s, "GET /ping HTTP/1.1\r\n" CLOSE,
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	expect(&s, "GET /ready HTTP/1.1\r\n" CLOSE,
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	free(end(&s));
}
END_TEST

/* Who connects before PID 1 can serve is served then. */
START_TEST(waits_in_the_kernel)
{
	struct service s;

	sandbox_init(&s.box);
	int listen_fd = listener(&s.address, &s.address_n);
	int fd = dial(&s);

	say(fd, "GET /ping HTTP/1.1\r\n" CLOSE);
	sandbox_launch(&s.box);
	send_listen(&s.box, 0, &listen_fd, 1);
	close(listen_fd);
	autofree char *text = hear(fd);

	ck_assert_str_eq(text, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	ck_assert_int_eq(shutdown(s.box.control, SHUT_RDWR), 0);
	ck_assert_int_eq(sandbox_end(&s.box), 125);
}
END_TEST

START_TEST(token)
{
	static const char unauthorized[] =
			"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\n"
			"Content-Length: 72\r\nConnection: close\r\n\r\n"
			"{\"error\":\"Unauthorized: invalid or missing header "
			"X-EXECD-ACCESS-TOKEN\"}";
	static const char *const refused[] = {
		"GET /metrics HTTP/1.1\r\n" CLOSE,
		"GET /metrics HTTP/1.1\r\nX-EXECD-ACCESS-TOKEN: Sesame\r\n" CLOSE,
		"GET /metrics HTTP/1.1\r\nX-EXECD-ACCESS-TOKEN: sesame1\r\n" CLOSE,
		"GET /metrics HTTP/1.1\r\nX-EXECD-ACCESS-TOKEN: sesam\r\n" CLOSE,
		"GET /metrics HTTP/1.1\r\nX-EXECD-ACCESS-TOKEN:\r\n" CLOSE,
		"GET /nothing HTTP/1.1\r\n" CLOSE,
		"DELETE /ping HTTP/1.1\r\n" CLOSE,
	};
	struct service s;

	begin(&s, "sesame", 0, "cat >/dev/null; env; cat /proc/[0-9]*/environ /proc/1/mem");
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		expect(&s, refused[i], unauthorized);
	}
	expect(&s, "GET /nothing HTTP/1.1\r\nX-Execd-Access-Token: sesame\r\n" CLOSE,
			"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n"
			"Content-Length: 54\r\nConnection: close\r\n\r\n"
			"{\"code\":\"NOT_FOUND\",\"message\":\"there is nothing here\"}");
	expect(&s, "GET /ping HTTP/1.1\r\n" CLOSE,
			"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	autofree char *out = end(&s);

	ck_assert_ptr_null(strstr(out, "sesame"));
}
END_TEST

/* The shell's own words, through the port inside: with and without it. */
START_TEST(inside)
{
	static const char script[] =
			"read x; exec 2>&1; python3 -c 'import socket\n"
			"try:\n"
			" s = socket.create_connection((\"127.0.0.1\", 44772), 20)\n"
			" s.sendall(b\"GET /ping HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n\")\n"
			" print(s.recv(12).decode())\n"
			"except ConnectionRefusedError:\n"
			" print(\"refused\")'";
	struct service s;

	begin(&s, NULL, _i ? EXECD_LISTEN_INSIDE : 0, script);
	autofree char *out = end(&s);

	ck_assert_str_eq(out, _i ? "HTTP/1.1 200\n" : "refused\n");
}
END_TEST

START_TEST(nonsense_ends_it)
{
	struct sandbox box;
	struct sockaddr_un address;
	socklen_t n = 0;
	int fd = listener(&address, &n);
	int fds[2] = { fd, fd };
	const struct execd_tag tag = { .tag = 1 };

	sandbox_init(&box);
	sandbox_start(&box);
	switch (_i) {
	case 0: /* a second one */
		send_listen(&box, 0, fds, 1);
		send_listen(&box, 0, fds, 1);
		break;
	case 1:
		send_listen(&box, 0, fds, 0);
		break;
	case 2:
		send_listen(&box, 0, fds, 2);
		break;
	default: /* a short one */
		ck_assert_int_eq(execd_send(box.control, EXECD_MSG_LISTEN, &tag, sizeof(tag), fds,
						 1),
				0);
		break;
	}
	ck_assert_int_eq(sandbox_end(&box), 125);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("service");
	TCase *tc = tcase_create("all");

	if (!sandbox_is_possible()) {
		return getenv("OSBX_TESTS_MUST_RUN") ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	unit_with_dir(tc);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, health);
	tcase_add_test(tc, waits_in_the_kernel);
	tcase_add_test(tc, token);
	tcase_add_loop_test(tc, inside, 0, 2);
	tcase_add_loop_test(tc, nonsense_ends_it, 0, 4);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
