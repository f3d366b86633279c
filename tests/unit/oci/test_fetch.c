/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parent against its helper (this program, started as "fetch"), and the helper against a
 * server of canned answers. A file "helper" in the working directory makes the helper misbehave.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/packet.h>
#include <osbx/secfilter.h>
#include <osbx/str.h>

#include "../../../oci/fetch.h"
#include "../../../oci/fetch_proto.h"
#include "../../../oci/fetch_setup.h"
#include "../unit.h"

#define BLOB_SIZE 100000
#define HEX       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define REQUEST   4096

static struct error e = ERROR_INIT;
static pid_t server = -1;
static uint16_t port;
static struct fetch *fetch;

static char letter(size_t i)
{
	return (char)('a' + i % 26);
}

static void answer(int fd, const char *status, const char *more, const char *body)
{
	autofree char *text = mem_printf("HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status,
			more, strlen(body), body);

	if (fd_write_all(fd, text, strlen(text)) < 0) {
		_exit(1);
	}
}

static void answer_blob(int fd, const char *request)
{
	const char *range = strstr(request, "Range: bytes=");
	autofree char *body = mem_array(BLOB_SIZE + 1, 1);
	uint64_t from = 0;

	if (range) {
		char digits[16] = "";

		memcpy(digits, range + 13, strspn(range + 13, "0123456789"));
		ck_assert_int_eq(str_to_u64(digits, BLOB_SIZE, &from), 0);
	}
	autofree char *more = mem_printf(
			"Content-Range: bytes %d-%d/%d\r\n", (int)from, BLOB_SIZE - 1, BLOB_SIZE);

	for (size_t i = from; i < BLOB_SIZE; i++) {
		body[i - from] = letter(i);
	}
	answer(fd, range ? "206 Partial" : "200 OK", range ? more : "", body);
}

static void answer_one(int fd, const char *request)
{
	if (strstr(request, " /v2/ ")) {
		answer(fd, "200 OK", "", "{}");
	} else if (strstr(request, "/manifests/1 ")) {
		answer(fd, "200 OK",
				"Content-Type: application/x; charset=utf-8\r\n"
				"Docker-Content-Digest: sha256:" HEX "\r\n",
				"a manifest");
	} else if (strstr(request, "/manifests/slow ")) {
		(void)usleep(400000);
		answer(fd, "200 OK", "Content-Type: application/x\r\n", "slow");
	} else if (strstr(request, "/manifests/never ")) {
		(void)pause();
	} else if (strstr(request, "/blobs/")) {
		answer_blob(fd, request);
	} else {
		answer(fd, "404 Not Found", "",
				"{\"errors\":[{\"code\":\"MANIFEST_UNKNOWN\",\"message\":\"unknown\"}]}");
	}
}

/* One process a connection; the first byte of TLS hangs up. */
static void serve_connection(int fd)
{
	char request[REQUEST];
	size_t n = 0;

	for (;;) {
		ssize_t got = read(fd, request + n, sizeof(request) - 1 - n);

		if (got <= 0 || request[0] == 0x16) {
			return;
		}
		n += (size_t)got;
		request[n] = '\0';
		if (strstr(request, "\r\n\r\n")) {
			answer_one(fd, request);
			n = 0;
		}
	}
}

static void serve(int listener)
{
	struct sigaction act = { .sa_handler = SIG_IGN };

	(void)sigaction(SIGCHLD, &act, NULL);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			serve_connection(fd);
			_exit(0);
		}
		close(fd);
	}
}

static void server_start(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t n = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, n), 0);
	ck_assert_int_eq(listen(listener, 16), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &n), 0);
	port = ntohs(address.sin_port);
	server = fork();
	ck_assert_int_ge(server, 0);
	if (server == 0) {
		/* A test that fails does not come to its end. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)setpgid(0, 0);
		serve(listener);
	}
	(void)setpgid(server, server);
	close(listener);
}

static void make(void)
{
	unit_dir_make();
	ck_assert_int_eq(fchdir(unit_fd), 0);
	server_start();
}

static void done(void)
{
	fetch_stop(fetch);
	fetch = NULL;
	if (server > 0) {
		(void)kill(-server, SIGKILL);
		(void)waitpid(server, NULL, 0);
	}
	unit_dir_close();
}

static int start_port(uint16_t to)
{
	autofree char *name = mem_printf("127.0.0.1:%d/t/image:1", (int)to);
	AUTO(ref) struct ref ref = REF_INIT;
	struct pull_opts opts = { .tls_verify = -1 };
	AUTO(fetch_setup) struct fetch_setup setup = FETCH_SETUP_INIT;

	ck_assert_int_eq(ref_parse(name, &ref, &e), 0);
	ck_assert_int_eq(fetch_setup_make(&ref, &opts, NULL, &setup, &e), 0);
	setup.timing.backoff_min_ms = 10;
	setup.timing.backoff_max_ms = 50;
	fetch = fetch_start_setup(&setup, &e);
	return fetch ? 0 : -1;
}

static void start(void)
{
	ck_assert_msg(start_port(port) == 0, "%s", e.text);
}

static int manifest(const char *name, struct buf *body, char **type, struct digest *digest)
{
	return fetch_manifest(fetch, name, body, type, digest, &e);
}

START_TEST(ping)
{
	start();
	ck_assert_msg(fetch_ping(fetch, &e) == 0, "%s", e.text);
	ck_assert_msg(fetch_ping(fetch, &e) == 0, "%s", e.text);
}
END_TEST

START_TEST(nobody_is_there)
{
	ck_assert_int_eq(start_port(1), 0);
	ck_assert_int_eq(fetch_ping(fetch, &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNAVAILABLE);
	ck_assert_int_eq(e.sysno, ECONNREFUSED);
	error_clear(&e);
	/* The helper goes on. */
	ck_assert_int_eq(fetch_ping(fetch, &e), -1);
	ck_assert_int_eq(e.code, ERRC_UNAVAILABLE);
}
END_TEST

START_TEST(manifest_is_handed_over)
{
	AUTO(buf) struct buf body = BUF_INIT(LIMIT_MANIFEST_BYTES);
	autofree char *type = NULL;
	struct digest digest = { "" };

	start();
	ck_assert_msg(manifest("1", &body, &type, &digest) == 0, "%s", e.text);
	ck_assert(span_eq(buf_span(&body), span_of("a manifest")));
	ck_assert_str_eq(type, "application/x");
	ck_assert_str_eq(digest.text, "sha256:" HEX);
}
END_TEST

START_TEST(manifest_that_is_not_there)
{
	AUTO(buf) struct buf body = BUF_INIT(LIMIT_MANIFEST_BYTES);
	autofree char *type = NULL;
	autofree char *label = mem_printf("127.0.0.1:%d/t/image:2: not found", (int)port);
	struct digest digest = { "" };

	start();
	ck_assert_int_eq(manifest("2", &body, &type, &digest), -1);
	ck_assert_int_eq(e.code, ERRC_NOT_FOUND);
	ck_assert_msg(str_after(e.text, label) != NULL, "%s", e.text);
	ck_assert_ptr_null(type);
}
END_TEST

START_TEST(manifest_larger_than_the_buffer)
{
	AUTO(buf) struct buf body = BUF_INIT(5);
	autofree char *type = NULL;
	struct digest digest = { "" };

	start();
	ck_assert_int_eq(manifest("1", &body, &type, &digest), -1);
	ck_assert_int_eq(e.sysno, EMSGSIZE);
	error_clear(&e);
	ck_assert_int_eq(fetch_ping(fetch, &e), 0);
}
END_TEST

/* A part that holds the first bytes; returns its descriptor. */
static int part_open(size_t held)
{
	int fd = open("part", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (size_t i = 0; i < held; i++) {
		char c = letter(i);

		ck_assert_int_eq(fd_write_all(fd, &c, 1), 0);
	}
	return fd;
}

static void check_part(int fd)
{
	char *bytes = mem_array(BLOB_SIZE + 1, 1);

	ck_assert_int_eq(pread(fd, bytes, BLOB_SIZE + 1, 0), BLOB_SIZE);
	for (size_t i = 0; i < BLOB_SIZE; i++) {
		ck_assert_int_eq(bytes[i], letter(i));
	}
	free(bytes);
}

static int begin(uint32_t tag, uint64_t size, int part_fd, int out_fd)
{
	struct fetch_blob blob = {
		.tag = tag,
		.digest = { "sha256:" HEX },
		.size = size,
		.part_fd = part_fd,
		.out_fd = out_fd,
	};

	return fetch_blob_begin(fetch, &blob, &e);
}

/* The last event of a blob, with the steps before it checked. */
static struct fetch_event last_event(uint32_t tag)
{
	struct fetch_event event;
	uint64_t done_before = 0;

	for (;;) {
		int rc = fetch_next(fetch, &event, clock_boot_ms() + 20000, &e);

		ck_assert_msg(rc == 1, "%d %s", rc, e.text);
		ck_assert_uint_eq(event.tag, tag);
		ck_assert_uint_ge(event.done, done_before);
		done_before = event.done;
		if (event.kind != FETCH_EVENT_PROGRESS) {
			return event;
		}
	}
}

static const size_t held[] = { 0, 1, 50000, BLOB_SIZE };

START_TEST(blob_comes_whole)
{
	autoclose int fd = part_open(held[_i]);
	struct fetch_event event;
	int pair[2] = { -1, -1 };
	char byte = 0;
	size_t n = 0;

	start();
	ck_assert_int_eq(fd_pipe(pair, 0), 0);
	ck_assert_int_eq(begin(7, BLOB_SIZE, fd, pair[1]), 0);
	close(pair[1]);
	while (fd_read(pair[0], &byte, 1) == 1) {
		ck_assert_int_eq(byte, letter(n));
		n++;
	}
	ck_assert_uint_eq(n, BLOB_SIZE);
	event = last_event(7);
	ck_assert_msg(event.kind == FETCH_EVENT_DONE, "%s", event.error.text);
	ck_assert_uint_eq(event.done, BLOB_SIZE);
	ck_assert_uint_eq(event.resumed, held[_i]);
	check_part(fd);
	close(pair[0]);
}
END_TEST

START_TEST(blob_of_another_size)
{
	autoclose int fd = part_open(0);
	struct fetch_event event;

	start();
	ck_assert_int_eq(begin(7, BLOB_SIZE - 1, fd, -1), 0);
	event = last_event(7);
	ck_assert_int_eq(event.kind, FETCH_EVENT_FAILED);
	ck_assert_int_eq(event.error.code, ERRC_INVALID);
}
END_TEST

START_TEST(blob_larger_than_any_image)
{
	autoclose int fd = part_open(0);

	start();
	ck_assert_int_eq(begin(7, LIMIT_UNPACK_BYTES + 1, fd, -1), -1);
	ck_assert_int_eq(e.code, ERRC_LIMIT);
}
END_TEST

/* A blob ends while the answer to something else is waited for. */
START_TEST(events_wait_for_their_reader)
{
	AUTO(buf) struct buf body = BUF_INIT(LIMIT_MANIFEST_BYTES);
	struct digest digest = { "" };
	autofree char *type = NULL;
	autoclose int fd = part_open(0);
	struct fetch_event event;
	struct pollfd readable = { .fd = -1, .events = POLLIN };

	start();
	ck_assert_int_eq(fetch_next(fetch, &event, 0, &e), 0);
	for (uint32_t tag = 0; tag < 3; tag++) {
		ck_assert_int_eq(begin(tag, tag == 2 ? 1 : 0, fd, -1), 0);
	}
	ck_assert_msg(manifest("slow", &body, &type, &digest) == 0, "%s", e.text);
	for (uint32_t tag = 0; tag < 3; tag++) {
		ck_assert_int_eq(fetch_next(fetch, &event, 0, &e), 1);
		ck_assert_int_eq(
				event.kind, event.tag == 2 ? FETCH_EVENT_FAILED : FETCH_EVENT_DONE);
	}
	ck_assert_int_eq(fetch_next(fetch, &event, 0, &e), 0);
	ck_assert_int_eq(fetch_next(fetch, &event, clock_boot_ms() + 50, &e), 0);
	readable.fd = fetch_fd(fetch);
	ck_assert_int_eq(poll(&readable, 1, 0), 0);
}
END_TEST

/* More blobs than transfers, and than a socket's buffer of answers that nobody reads. */
START_TEST(many_blobs)
{
	struct fetch_event event;
	unsigned int ended = 0;

	start();
	for (uint32_t tag = 0; tag < LIMIT_LAYERS; tag++) {
		autofree char *name = mem_printf("part%u", tag);
		autoclose int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		ck_assert_int_eq(begin(tag, BLOB_SIZE, fd, -1), 0);
	}
	(void)usleep(500000);
	ck_assert_msg(fetch_ping(fetch, &e) == 0, "%s", e.text);
	while (ended < LIMIT_LAYERS) {
		ck_assert_int_eq(fetch_next(fetch, &event, clock_boot_ms() + 20000, &e), 1);
		ck_assert_int_ne(event.kind, FETCH_EVENT_FAILED);
		ended += event.kind == FETCH_EVENT_DONE ? 1 : 0;
	}
}
END_TEST

START_TEST(stop_ends_the_helper_at_work)
{
	autoclose int fd = part_open(0);
	int pair[2] = { -1, -1 };
	char byte = 0;

	start();
	ck_assert_int_eq(fd_pipe(pair, 0), 0);
	ck_assert_int_eq(begin(7, BLOB_SIZE, fd, pair[1]), 0);
	close(pair[1]);
	ck_assert_int_eq(fd_read(pair[0], &byte, 1), 1);
	fetch_stop(fetch);
	fetch = NULL;
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), 0);
	fetch_stop(NULL);
	close(pair[0]);
}
END_TEST

static void misbehave(const char *how)
{
	ck_assert_int_eq(file_write_at(unit_fd, "helper", span_of(how), false), 0);
}

static const struct {
	const char *how;
	const char *text;
} faults[] = {
	{ "nofilter", "fetch: no syscall filter was given" },
	{ "exit", "fetch ended with status 3" },
	{ "abort", "fetch ended with status 134" },
	{ "unknown", "unexpected message 99 from fetch" },
	{ "pong", "unexpected message 2 from fetch" },
	{ "short", "unexpected message 8 from fetch" },
	{ "error", "the network is on fire" },
	{ "noreason", "fetch failed without a reason" },
};

START_TEST(a_helper_that_misbehaves)
{
	AUTO(buf) struct buf body = BUF_INIT(LIMIT_MANIFEST_BYTES);
	struct digest digest = { "" };
	struct fetch_event event;
	char *type = NULL;

	misbehave(faults[_i].how);
	start();
	ck_assert_int_eq(manifest("1", &body, &type, &digest), -1);
	ck_assert_str_eq(e.text, faults[_i].text);
	ck_assert_ptr_null(type);
	error_clear(&e);
	/* Whatever is called then. */
	ck_assert_int_eq(fetch_next(fetch, &event, clock_boot_ms() + 5000, &e), -1);
	error_clear(&e);
	ck_assert_int_eq(fetch_ping(fetch, &e), -1);
}
END_TEST

static int post(uint16_t type, const void *data, uint32_t n)
{
	struct packet p = { 0 };

	packet_init(&p, type);
	return packet_put(&p, data, n) == 0 && packet_send(FETCH_CONTROL_FD, &p) == 0 ? 0 : 1;
}

/* The helper's part of such a test; -1: behave. */
static int helper_misbehave(void)
{
	AUTO(buf) struct buf how = BUF_INIT(64);
	struct packet p = { 0 };
	struct error theirs = ERROR_INIT;

	if (file_read_at(AT_FDCWD, "helper", &how) < 0 || str_eq(how.p, "nofilter")) {
		return -1;
	}
	/* The setup and the request. */
	for (int i = 0; i < 2; i++) {
		if (packet_recv(FETCH_CONTROL_FD, &p, -1) <= 0) {
			return 1;
		}
		packet_done(&p);
	}
	if (str_eq(how.p, "abort")) {
		abort();
	}
	if (str_eq(how.p, "unknown")) {
		return post(99, NULL, 0);
	}
	if (str_eq(how.p, "pong")) {
		return post(FETCH_MSG_PONG, NULL, 0);
	}
	if (str_eq(how.p, "short")) {
		return post(FETCH_MSG_DONE, "x", 1);
	}
	if (str_eq(how.p, "error") || str_eq(how.p, "noreason")) {
		if (str_eq(how.p, "error")) {
			(void)error_set(&theirs, ERRC_UNAVAILABLE, "the network is on fire");
		}
		return post(FETCH_MSG_ERROR, &theirs, sizeof(theirs));
	}
	return 3;
}

static int helper(int argc, char **argv)
{
	AUTO(buf) struct buf how = BUF_INIT(64);
	struct secfilter filter = { .n = 0 };
	int status = helper_misbehave();

	if (status >= 0) {
		return status;
	}
	secfilter_builtin(SECFILTER_FETCH, &filter);
	if (file_read_at(AT_FDCWD, "helper", &how) < 0) {
		fetch_set_filter(filter.insns, filter.n);
	}
	return fetch_main(argc, argv);
}

int main(int argc, char **argv)
{
	Suite *s = NULL;
	TCase *tc = NULL;

	if (argc > 1 && strcmp(argv[1], "fetch") == 0) {
		return helper(argc, argv);
	}
	s = suite_create("fetch");
	tc = tcase_create("all");
	tcase_add_unchecked_fixture(tc, unit_base_make, unit_base_remove);
	tcase_add_checked_fixture(tc, make, done);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, ping);
	tcase_add_test(tc, nobody_is_there);
	tcase_add_test(tc, manifest_is_handed_over);
	tcase_add_test(tc, manifest_that_is_not_there);
	tcase_add_test(tc, manifest_larger_than_the_buffer);
	tcase_add_loop_test(tc, blob_comes_whole, 0, (int)ARRAY_SIZE(held));
	tcase_add_test(tc, blob_of_another_size);
	tcase_add_test(tc, blob_larger_than_any_image);
	tcase_add_test(tc, events_wait_for_their_reader);
	tcase_add_test(tc, many_blobs);
	tcase_add_test(tc, stop_ends_the_helper_at_work);
	tcase_add_loop_test(tc, a_helper_that_misbehaves, 0, (int)ARRAY_SIZE(faults));
	suite_add_tcase(s, tc);
	return unit_run(s);
}
