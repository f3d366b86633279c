/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client - a yardstick of the execution API: what a client of a sandbox waits for.
 *
 * usage: client SOCKET[:/PREFIX] FIGURE N
 *                                    against the Unix socket of a sandbox; one number is printed
 *        client floor FIGURE N SH    the same work without an API: fork, execve of SH, wait
 *        client print N | flood MIB LINE    what runs in the sandbox, where this is /bench/client
 *
 *   done, end    POST /command `true`: ms to its last event, to the end of the response (median)
 *   many         N commands at once: ms until the last one is complete
 *   tick         ms from the printing of a line to its event: 95 of 100 took no longer
 *   lines        MB/s of N MiB of output in lines of 80 bytes
 *   endless      MB/s of N MiB of output in one line
 *   upload, download    MB/s of a file of N MiB in /data
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES_MAX 1000
#define MANY_MAX    1000
#define IN_BYTES    (256U << 10)
#define BOUNDARY    "f8ea83857c6047689f01588e1822289c"

static const char *socket_path;
static const char *prefix = ""; /* of every target */

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "client: %s%s%s\n", what, errno ? ": " : "",
			errno ? strerror(errno) : "");
	_exit(1);
}

static double now_ms(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Decimal digits up to the first byte that is none. */
static double number_of(const char *s)
{
	double v = 0;

	for (; *s >= '0' && *s <= '9'; s++) {
		v = v * 10 + (*s - '0');
	}
	return v;
}

static size_t count_parse(const char *text, size_t max)
{
	double v = number_of(text);

	if (v < 1 || v > (double)max) {
		errno = 0;
		die("N is no number, or too large");
	}
	return (size_t)v;
}

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

/* percent of 100 are no larger. */
static double quantile(double *v, size_t n, size_t percent)
{
	qsort(v, n, sizeof(v[0]), double_compare);
	return v[(n * percent + 99) / 100 - 1];
}

/* -- HTTP -------------------------------------------------------------------------------------- */

enum framing {
	FRAMING_HEAD,
	FRAMING_LENGTH,
	FRAMING_SIZE, /* line of a chunk's size */
	FRAMING_DATA,
	FRAMING_DATA_END, /* CR LF behind it */
	FRAMING_LAST,     /* CR LF behind the last one */
	FRAMING_END,
};

struct client {
	int fd;
	enum framing framing;
	size_t left;
	char line[8192]; /* head, or size */
	size_t line_n;
	bool is_chunked;
	/* What was seen in the body. */
	size_t bytes;
	size_t lines;
	char tail[1024]; /* its last bytes */
	size_t tail_n;
	double complete_ms; /* when the last event came, 0: it has not */
};

static void client_open(struct client *c)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	*c = (struct client){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", socket_path);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		die(socket_path);
	}
}

static void send_bytes(const struct client *c, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(c->fd, p, n, MSG_NOSIGNAL);

		if (sent < 0) {
			die("send");
		}
		p += sent;
		n -= (size_t)sent;
	}
}

static void request(struct client *c, const char *method, const char *target, const char *body)
{
	char text[2048];
	int n = snprintf(text, sizeof(text),
			"%s %s%s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s", method,
			prefix, target, strlen(body), body);

	if (n < 0 || (size_t)n >= sizeof(text)) {
		die("the request is too long");
	}
	*c = (struct client){ .fd = c->fd };
	send_bytes(c, text, (size_t)n);
}

static void command(struct client *c, const char *words)
{
	char body[1024];

	(void)snprintf(body, sizeof(body), "{\"command\":\"%s\"}", words);
	request(c, "POST", "/command", body);
}

static void body_see(struct client *c, const char *p, size_t n)
{
	size_t keep = n < sizeof(c->tail) - 1 ? n : sizeof(c->tail) - 1;
	size_t old = c->tail_n < sizeof(c->tail) - 1 - keep ? c->tail_n
							    : sizeof(c->tail) - 1 - keep;

	memmove(c->tail, c->tail + c->tail_n - old, old);
	memcpy(c->tail + old, p + n - keep, keep);
	c->tail_n = old + keep;
	c->tail[c->tail_n] = '\0';
	c->bytes += n;
	for (const char *end = p + n; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++) {
		c->lines++;
	}
	/* Behind it only the ends of the body and of the event are to come. */
	if (c->complete_ms == 0 && strstr(c->tail, "\"execution_complete\"")) {
		c->complete_ms = now_ms();
	}
}

static void head_end(struct client *c)
{
	const char *length = strcasestr(c->line, "\r\nContent-Length: ");

	if (strncmp(c->line, "HTTP/1.1 200 ", 13) != 0) {
		errno = 0;
		die(c->line);
	}
	c->is_chunked = strcasestr(c->line, "\r\nTransfer-Encoding: chunked\r\n") != NULL;
	c->left = length ? (size_t)number_of(length + 18) : 0;
	c->framing = c->is_chunked ? FRAMING_SIZE : c->left > 0 ? FRAMING_LENGTH : FRAMING_END;
	c->line_n = 0;
}

static size_t hex_of(const char *s)
{
	static const char digits[] = "0123456789abcdef";
	size_t v = 0;

	for (; *s != '\0' && strchr(digits, *s); s++) {
		v = v * 16 + (size_t)(strchr(digits, *s) - digits);
	}
	return v;
}

/* A byte of framing. */
static void line_see(struct client *c, char ch)
{
	if (c->line_n + 1 >= sizeof(c->line)) {
		errno = 0;
		die("a line of the answer is too long");
	}
	c->line[c->line_n++] = ch;
	c->line[c->line_n] = '\0';
	if (ch != '\n') {
		return;
	}
	switch (c->framing) {
	case FRAMING_HEAD:
		if (c->line_n >= 4 && strcmp(c->line + c->line_n - 4, "\r\n\r\n") == 0) {
			head_end(c);
		}
		return;
	case FRAMING_SIZE:
		c->left = hex_of(c->line);
		c->framing = c->left > 0 ? FRAMING_DATA : FRAMING_LAST;
		break;
	case FRAMING_DATA_END:
		c->framing = FRAMING_SIZE;
		break;
	case FRAMING_LAST:
		c->framing = FRAMING_END;
		break;
	case FRAMING_LENGTH:
	case FRAMING_DATA:
	case FRAMING_END:
		break;
	}
	c->line_n = 0;
}

/* Read once. */
static void answer_read(struct client *c)
{
	static char in[IN_BYTES];
	ssize_t n = recv(c->fd, in, sizeof(in), 0);
	size_t at = 0;

	if (n <= 0) {
		die("the answer is cut");
	}
	while (at < (size_t)n) {
		if (c->framing != FRAMING_LENGTH && c->framing != FRAMING_DATA) {
			line_see(c, in[at++]);
			continue;
		}
		size_t piece = (size_t)n - at < c->left ? (size_t)n - at : c->left;

		body_see(c, in + at, piece);
		at += piece;
		c->left -= piece;
		if (c->left == 0) {
			c->framing = c->is_chunked ? FRAMING_DATA_END : FRAMING_END;
		}
	}
}

static void answer_finish(struct client *c)
{
	while (c->framing != FRAMING_END) {
		answer_read(c);
	}
}

static void complete_check(const struct client *c)
{
	if (c->complete_ms == 0) {
		errno = 0;
		die(c->tail);
	}
}

/* -- figures ----------------------------------------------------------------------------------- */

static double figure_command(size_t n, bool to_the_end)
{
	static double v[SAMPLES_MAX];
	struct client c;

	client_open(&c);
	for (size_t i = 0; i < n; i++) {
		double begin = now_ms();

		command(&c, "true");
		answer_finish(&c);
		complete_check(&c);
		v[i] = (to_the_end ? now_ms() : c.complete_ms) - begin;
	}
	return quantile(v, n, 50);
}

static double figure_many(size_t n)
{
	static struct client clients[MANY_MAX];
	static struct pollfd polls[MANY_MAX];
	size_t open = n;

	for (size_t i = 0; i < n; i++) {
		client_open(&clients[i]);
		polls[i] = (struct pollfd){ .fd = clients[i].fd, .events = POLLIN };
	}
	double begin = now_ms();

	for (size_t i = 0; i < n; i++) {
		command(&clients[i], "true");
	}
	while (open > 0) {
		if (poll(polls, n, -1) < 0) {
			die("poll");
		}
		for (size_t i = 0; i < n; i++) {
			if (polls[i].revents == 0) {
				continue;
			}
			answer_read(&clients[i]);
			if (clients[i].framing == FRAMING_END) {
				complete_check(&clients[i]);
				polls[i].fd = -1;
				open--;
			}
		}
	}
	return now_ms() - begin;
}

/* Times of the lines in whole events of the tail, which are dropped from it. */
static size_t ticks_take(struct client *c, double *v, size_t max)
{
	static const char event[] = "\"stdout\",\"text\":\"";
	double seen = now_ms();
	char *end = memrchr(c->tail, '\n', c->tail_n);
	size_t n = 0;

	if (!end) {
		return 0;
	}
	*end++ = '\0';
	for (const char *p = c->tail; (p = strstr(p, event)) != NULL && n < max; n++) {
		p += sizeof(event) - 1;
		v[n] = seen - number_of(p) / 1e6;
	}
	c->tail_n -= (size_t)(end - c->tail);
	memmove(c->tail, end, c->tail_n + 1);
	return n;
}

static double figure_tick(size_t n)
{
	static double v[SAMPLES_MAX];
	char words[64];
	struct client c;
	size_t got = 0;

	client_open(&c);
	(void)snprintf(words, sizeof(words), "/bench/client print %zu", n);
	command(&c, words);
	while (c.framing != FRAMING_END) {
		answer_read(&c);
		got += ticks_take(&c, v + got, n - got);
	}
	complete_check(&c);
	if (got != n) {
		errno = 0;
		die("lines are missing");
	}
	return quantile(v, n, 95);
}

static double figure_flood(size_t mib, size_t line)
{
	char words[64];
	struct client c;
	size_t bytes = mib << 20;

	client_open(&c);
	(void)snprintf(words, sizeof(words), "/bench/client flood %zu %zu", mib, line);
	double begin = now_ms();

	command(&c, words);
	answer_finish(&c);
	complete_check(&c);
	double took = now_ms() - begin;

	/* Two line ends an event; there are a few others, and one each three seconds. */
	if (c.bytes < bytes || (line > 0 && (c.lines / 2 < bytes / line ||
							    c.lines / 2 > bytes / line + 1000))) {
		errno = 0;
		die("output is missing");
	}
	return (double)bytes / 1e3 / took;
}

static double figure_upload(size_t mib)
{
	static char zeros[1U << 16];
	static const char meta[] =
			"--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"metadata\"; "
			"filename=\"metadata\"\r\nContent-Type: application/json\r\n\r\n"
			"{\"path\":\"/data/file\",\"mode\":644}\r\n--" BOUNDARY
			"\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n"
			"Content-Type: application/octet-stream\r\n\r\n";
	static const char last[] = "\r\n--" BOUNDARY "--\r\n";
	char head[512];
	struct client c;

	client_open(&c);
	(void)snprintf(head, sizeof(head),
			"POST %s/files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; "
			"boundary=" BOUNDARY "\r\nContent-Length: %zu\r\n\r\n",
			prefix, sizeof(meta) - 1 + (mib << 20) + sizeof(last) - 1);
	double begin = now_ms();

	send_bytes(&c, head, strlen(head));
	send_bytes(&c, meta, sizeof(meta) - 1);
	for (size_t i = 0; i < mib << 4; i++) {
		send_bytes(&c, zeros, sizeof(zeros));
	}
	send_bytes(&c, last, sizeof(last) - 1);
	answer_finish(&c);
	return (double)(mib << 20) / 1e3 / (now_ms() - begin);
}

static double figure_download(size_t mib)
{
	struct client c;

	(void)figure_upload(mib);
	client_open(&c);
	double begin = now_ms();

	request(&c, "GET", "/files/download?path=/data/file", "");
	answer_finish(&c);
	if (c.bytes != mib << 20) {
		errno = 0;
		die("bytes of the file are missing");
	}
	return (double)c.bytes / 1e3 / (now_ms() - begin);
}

/* -- floors ------------------------------------------------------------------------------------ */

static pid_t start(const char *sh)
{
	char *const argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "true" }, NULL };
	char *const envp[] = { NULL };
	pid_t pid = fork();

	if (pid == 0) {
		(void)execve(sh, argv, envp);
		_exit(127);
	}
	return pid;
}

static void end(void)
{
	int status = 0;

	if (wait(&status) < 0 || status != 0) {
		die("the shell failed");
	}
}

static double floor_command(size_t n, const char *sh)
{
	static double v[SAMPLES_MAX];

	for (size_t i = 0; i < n; i++) {
		double begin = now_ms();

		(void)start(sh);
		end();
		v[i] = now_ms() - begin;
	}
	return quantile(v, n, 50);
}

static double floor_many(size_t n, const char *sh)
{
	double begin = now_ms();

	for (size_t i = 0; i < n; i++) {
		(void)start(sh);
	}
	for (size_t i = 0; i < n; i++) {
		end();
	}
	return now_ms() - begin;
}

/* -- in the sandbox ---------------------------------------------------------------------------- */

static int print(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct timespec pause = { .tv_nsec = 10000000 };
		struct timespec t = { 0 };
		char line[32];

		(void)nanosleep(&pause, NULL);
		(void)clock_gettime(CLOCK_MONOTONIC, &t);
		int line_n = snprintf(line, sizeof(line), "%llu\n",
				(unsigned long long)t.tv_sec * 1000000000U +
						(unsigned long long)t.tv_nsec);

		if (write(STDOUT_FILENO, line, (size_t)line_n) != line_n) {
			die("write");
		}
	}
	return 0;
}

static int flood(size_t mib, size_t line)
{
	/* Whole lines of 80 bytes. */
	static char out[5U << 16];
	size_t left = mib << 20;

	memset(out, 'x', sizeof(out));
	for (size_t i = line; line > 0 && i <= sizeof(out); i += line) {
		out[i - 1] = '\n';
	}
	while (left > 0) {
		size_t n = left < sizeof(out) ? left : sizeof(out);
		ssize_t done = 0;

		for (size_t at = 0; at < n; at += (size_t)done) {
			done = write(STDOUT_FILENO, out + at, n - at);
			if (done < 0) {
				die("write");
			}
		}
		left -= n;
	}
	return 0;
}

static double against_socket(const char *figure, const char *count)
{
	static const struct {
		const char *name;
		size_t max;
	} figures[] = { { "done", SAMPLES_MAX }, { "end", SAMPLES_MAX }, { "many", MANY_MAX },
		{ "tick", SAMPLES_MAX }, { "lines", 1U << 20 }, { "endless", 1U << 20 },
		{ "upload", 1U << 20 }, { "download", 1U << 20 } };
	size_t which = 0;

	while (strcmp(figures[which].name, figure) != 0) {
		if (++which == sizeof(figures) / sizeof(figures[0])) {
			errno = 0;
			die("no such figure");
		}
	}
	size_t n = count_parse(count, figures[which].max);

	switch (which) {
	case 0:
	case 1:
		return figure_command(n, which == 1);
	case 2:
		return figure_many(n);
	case 3:
		return figure_tick(n);
	case 4:
		return figure_flood(n, 80);
	case 5:
		return figure_flood(n, 0);
	case 6:
		return figure_upload(n);
	default:
		return figure_download(n);
	}
}

int main(int argc, char **argv)
{
	double value = 0;

	if (argc == 3 && strcmp(argv[1], "print") == 0) {
		return print(count_parse(argv[2], SAMPLES_MAX));
	}
	if (argc == 4 && strcmp(argv[1], "flood") == 0) {
		return flood(count_parse(argv[2], 1U << 20), (size_t)number_of(argv[3]));
	}
	if (argc == 5 && strcmp(argv[1], "floor") == 0) {
		size_t n = count_parse(argv[3], SAMPLES_MAX);

		value = strcmp(argv[2], "many") == 0 ? floor_many(n, argv[4])
						     : floor_command(n, argv[4]);
	} else if (argc == 4) {
		char *colon = strstr(argv[1], ":/");

		if (colon) {
			*colon = '\0';
			prefix = colon + 1;
		}
		socket_path = argv[1];
		value = against_socket(argv[2], argv[3]);
	} else {
		(void)fprintf(stderr,
				"usage: client SOCKET[:/PREFIX] FIGURE N | client floor FIGURE N SH\n");
		return 2;
	}
	(void)printf("%.4f\n", value);
	return 0;
}
