/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net - both ends of the figures of private networks. Static: one of them runs in a sandbox.
 *
 * net serve ADDR                 a TCP and a UDP server at PORT, a resolver at port 53; says
 * "ready" net connect ADDR N             connections with a byte there and back: median in
 * microseconds net datagram ADDR N            datagrams there and back, likewise net lookup ADDR N
 * new|known    questions for another name each time, or for one: likewise net get|put ADDR MIB one
 * connection: MB/s
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT  7001
#define PIECE (256 << 10)

static char piece[PIECE];

static void must(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int socket_to(const char *addr, int port, int type, bool is_server)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	const int yes = 1;

	must(fd >= 0 && inet_pton(AF_INET, addr, &sa.sin_addr) == 1, addr);
	if (is_server) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
		must(bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0, "bind");
	} else {
		must(connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0, "connect");
	}
	return fd;
}

/* "e": that byte; "g" and a number: so many bytes; "p" and a number: a byte when they are there. */
static void serve_one(int fd)
{
	struct {
		char what;
		uint64_t n;
	} ask = { .what = 0 };

	if (recv(fd, &ask, sizeof(ask), 0) < 1) {
		return;
	}
	while (ask.what == 'g' && ask.n > 0) {
		ssize_t n = write(fd, piece, ask.n < PIECE ? ask.n : PIECE);

		if (n <= 0) {
			return;
		}
		ask.n -= (uint64_t)n;
	}
	while (ask.what == 'p' && ask.n > 0) {
		ssize_t n = read(fd, piece, PIECE);

		if (n <= 0) {
			return;
		}
		ask.n -= (uint64_t)n;
	}
	if (ask.what != 'g') {
		must(write(fd, &ask, 1) == 1, "write");
	}
}

static void serve_tcp(int fd)
{
	for (;;) {
		int one = accept(fd, NULL, NULL);

		if (one >= 0) {
			serve_one(one);
			close(one);
		}
	}
}

/* The same datagram; of a question its answer, an address that is kept for a minute. */
static void serve_udp(int fd, bool is_resolver)
{
	static const char answer[] = "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x33\x64\x07";

	for (;;) {
		struct sockaddr_in from;
		socklen_t from_n = sizeof(from);
		ssize_t n = recvfrom(fd, piece, 512, 0, (struct sockaddr *)&from, &from_n);

		if (n > 12 && is_resolver) {
			char *end = memchr(piece + 12, 0, (size_t)n - 12);

			if (!end) {
				continue;
			}
			n = end + 5 - piece;
			memcpy(piece + 2, "\x81\x80\0\1\0\1\0\0\0\0", 10);
			memcpy(piece + n, answer, sizeof(answer) - 1);
			n += (ssize_t)sizeof(answer) - 1;
		}
		if (n >= 0) {
			sendto(fd, piece, (size_t)n, 0, (struct sockaddr *)&from, from_n);
		}
	}
}

static void serve(const char *addr)
{
	int tcp = socket_to(addr, PORT, SOCK_STREAM, true);
	int udp = socket_to(addr, PORT, SOCK_DGRAM, true);
	int dns = socket_to(addr, 53, SOCK_DGRAM, true);

	must(listen(tcp, 1024) == 0, "listen");
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve_udp(udp, false);
	}
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve_udp(dns, true);
	}
	must(write(1, "ready\n", 6) == 6, "write");
	serve_tcp(tcp);
}

static void once_connect(const char *addr, int i)
{
	int fd = socket_to(addr, PORT, SOCK_STREAM, false);
	char byte = 'e';

	(void)i;
	must(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1, "echo");
	close(fd);
}

static void ask(int fd, const void *message, size_t n)
{
	char answer[512];

	must(send(fd, message, n, 0) == (ssize_t)n && recv(fd, answer, sizeof(answer), 0) > 0,
			"udp");
}

static void once_datagram(const char *addr, int i)
{
	static int fd = -1;

	fd = fd < 0 ? socket_to(addr, PORT, SOCK_DGRAM, false) : fd;
	ask(fd, &i, sizeof(i));
}

static bool is_known;

static void once_lookup(const char *addr, int i)
{
	static int fd = -1;
	char m[64] = "\0\7\1\0\0\1\0\0\0\0\0\0\7";
	size_t n = 13;

	fd = fd < 0 ? socket_to(addr, 53, SOCK_DGRAM, false) : fd;
	n += (size_t)snprintf(m + n, 8, "n%06d", is_known ? 0 : i);
	memcpy(m + n, "\5bench\4test\0\0\1\0\1", 16);
	ask(fd, m, n + 16);
}

static int compare(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return d < 0 ? -1 : d > 0;
}

static void median(void (*once)(const char *addr, int i), const char *addr, int n)
{
	double *took = calloc((size_t)n, sizeof(*took));

	once(addr, n);
	for (int i = 0; i < n; i++) {
		double begin = now_us();

		once(addr, i);
		took[i] = now_us() - begin;
	}
	qsort(took, (size_t)n, sizeof(*took), compare);
	printf("%.2f\n", took[n / 2]);
}

static void transfer(const char *addr, char what, uint64_t bytes)
{
	struct {
		char what;
		uint64_t n;
	} head = { .what = what, .n = bytes };
	int fd = socket_to(addr, PORT, SOCK_STREAM, false);
	double begin = now_us();
	uint64_t left = bytes;

	must(write(fd, &head, sizeof(head)) == sizeof(head), "write");
	while (left > 0) {
		ssize_t n = what == 'g' ? read(fd, piece, PIECE)
					: write(fd, piece, left < PIECE ? left : PIECE);

		must(n > 0, "transfer");
		left -= (uint64_t)n;
	}
	if (what == 'p') {
		must(read(fd, piece, 1) == 1, "read");
	}
	printf("%.2f\n", (double)bytes / (now_us() - begin));
}

static int number(const char *text)
{
	int n = 0;

	for (; *text >= '0' && *text <= '9'; text++) {
		n = n * 10 + *text - '0';
	}
	return n;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *addr = argc > 2 ? argv[2] : "";
	int n = argc > 3 ? number(argv[3]) : 0;

	is_known = argc > 4 && strcmp(argv[4], "known") == 0;
	if (strcmp(what, "serve") == 0) {
		serve(addr);
	} else if (strcmp(what, "connect") == 0) {
		median(once_connect, addr, n);
	} else if (strcmp(what, "datagram") == 0) {
		median(once_datagram, addr, n);
	} else if (strcmp(what, "lookup") == 0) {
		median(once_lookup, addr, n);
	} else if (strcmp(what, "get") == 0 || strcmp(what, "put") == 0) {
		transfer(addr, what[0], (uint64_t)n << 20);
	} else {
		return 2;
	}
	return 0;
}
