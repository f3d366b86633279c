/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/buf.h>
#include <osbx/clock.h>
#include <osbx/json.h>
#include <osbx/notify.h>
#include <osbx/packet.h>
#include <osbx/str.h>

#include "curl_lib.h"
#include "fetch_confine.h"

#define IDLE_MS   60000
#define TRY_MS    5000L
#define TRIES     4
#define PAUSE_MS  1000 /* doubled each time */
#define BODY_MAX  4096
#define SOURCE    "opensandbox-egress" /* what tools of OpenSandbox look for */
#define NO_ANSWER 0

static const struct sock_filter *filter_insns;
static size_t filter_n;

void notify_set_filter(const struct sock_filter *insns, size_t n)
{
	filter_insns = insns;
	filter_n = n;
}

bool notify_url_is_valid(const char *url)
{
	const struct span s = span_of(url);
	const char *host = str_after(url, "http://");

	host = host ? host : str_after(url, "https://");
	if (!host || host[0] == '\0' || host[0] == '/' || s.n > NOTIFY_URL_MAX) {
		return false;
	}
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] <= ' ' || s.p[i] > '~') {
			return false;
		}
	}
	return true;
}

static size_t discard(char *p, size_t size, size_t n, void *ctx)
{
	(void)p;
	(void)ctx;
	return size * n;
}

struct hook {
	const struct curl_lib *lib;
	CURL *curl;
	struct notify_begin begin;
	int64_t until_ms; /* the keeper is gone; 0: it is there */
	char why[CURL_ERROR_SIZE];
};

/* Everything but the body, which differs. 0 or -1. */
static int hook_open(struct hook *h)
{
	const struct curl_lib *lib = h->lib;
	struct curl_slist *fields = lib->curl_slist_append(NULL, "Content-Type: application/json");

	h->curl = lib->curl_easy_init();
	return h->curl && fields &&
					       lib->curl_easy_setopt(h->curl, CURLOPT_URL,
							       h->begin.url) == 0 &&
					       lib->curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER,
							       fields) == 0 &&
					       lib->curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS,
							       TRY_MS) == 0 &&
					       lib->curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL,
							       1L) == 0 &&
					       lib->curl_easy_setopt(h->curl, CURLOPT_USERAGENT,
							       "osbx/" OSBX_VERSION) == 0 &&
					       lib->curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER,
							       h->why) == 0 &&
					       lib->curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION,
							       discard) == 0
			       ? 0
			       : -1;
}

/* The status of its answer, NO_ANSWER. */
static long post(struct hook *h, struct span body)
{
	const struct curl_lib *lib = h->lib;
	long status = NO_ANSWER;

	h->why[0] = '\0';
	if (lib->curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE, (long)body.n) != 0 ||
			lib->curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, body.p) != 0 ||
			lib->curl_easy_perform(h->curl) != CURLE_OK ||
			lib->curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status) != 0) {
		return NO_ANSWER;
	}
	return status;
}

/* False: the keeper is gone. */
static bool pause_for(int ms)
{
	struct pollfd keeper = { .fd = NOTIFY_CONTROL_FD };

	return poll(&keeper, 1, ms) == 0;
}

/* Without a keeper what waits is still delivered, once, in the time that one try has. */
static bool is_over(struct hook *h)
{
	if (h->until_ms == 0 && !pause_for(0)) {
		h->until_ms = clock_boot_ms() + TRY_MS;
	}
	return h->until_ms != 0 && clock_boot_ms() >= h->until_ms;
}

static int body_write(const struct hook *h, const struct notify_denied *d, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	char time[40];

	clock_rfc3339(d->time_ms, time, sizeof(time));
	json_object_begin(&w, NULL);
	json_add_string(&w, "hostname", d->what);
	json_add_string(&w, "timestamp", time);
	json_add_string(&w, "source", SOURCE);
	json_add_string(&w, "sandboxId", h->begin.sandbox.text);
	if (d->port != 0) {
		json_add_u64(&w, "port", d->port);
	}
	if (d->dropped > 0) {
		json_add_u64(&w, "dropped", d->dropped);
	}
	json_object_end(&w);
	return w.failed ? -1 : 0;
}

static void report(const char *why)
{
	struct packet p;

	packet_init(&p, NOTIFY_MSG_FAILED);
	if (packet_put(&p, why, (uint32_t)strlen(why) + 1) == 0) {
		(void)!packet_send(NOTIFY_CONTROL_FD, &p);
	}
}

static void report_status(const struct hook *h, long status)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "status %ld", status);
	report(status != NO_ANSWER ? text : h->why[0] ? h->why : "no answer");
}

static void deliver(struct hook *h, const struct notify_denied *d)
{
	AUTO(buf) struct buf body = BUF_INIT(BODY_MAX);
	long status = NO_ANSWER;

	if (body_write(h, d, &body) < 0) {
		return;
	}
	for (int i = 0; i < TRIES; i++) {
		if (i > 0 && !pause_for(PAUSE_MS << (i - 1))) {
			break;
		}
		status = post(h, buf_span(&body));
		if (status >= 200 && status < 500) {
			break;
		}
	}
	if (status < 200 || status > 299) {
		report_status(h, status);
	}
}

static int begin(struct hook *h, struct error *e)
{
	struct packet p;

	if (packet_recv(NOTIFY_CONTROL_FD, &p, clock_boot_ms() + IDLE_MS) != 1 ||
			p.type != NOTIFY_MSG_BEGIN || p.len != sizeof(h->begin)) {
		return error_set(e, ERRC_INTERNAL, "notify: not the packet that was expected");
	}
	memcpy(&h->begin, p.payload, sizeof(h->begin));
	packet_done(&p);
	h->begin.url[NOTIFY_URL_MAX] = '\0';
	h->begin.sandbox.text[ID_LEN] = '\0';
	if (confine_limits(e) < 0) {
		return -1;
	}
	h->lib = curl_lib_load(e);
	if (!h->lib) {
		return -1;
	}
	confine_preload();
	if (confine(h->lib, filter_insns, filter_n, -1, e) < 0) {
		return -1;
	}
	return hook_open(h) < 0 ? error_set(e, ERRC_INTERNAL, "notify: libcurl refuses") : 0;
}

int notify_main(int argc, char **argv)
{
	static struct hook h;
	struct error e = ERROR_INIT;
	struct packet p;

	(void)argc;
	(void)argv;
	if (begin(&h, &e) < 0) {
		report(e.text);
		_exit(EXIT_FAILURE);
	}
	while (!is_over(&h) && packet_recv(NOTIFY_CONTROL_FD, &p, clock_boot_ms() + IDLE_MS) == 1) {
		struct notify_denied d;

		if (p.type == NOTIFY_MSG_DENIED && p.len == sizeof(d)) {
			memcpy(&d, p.payload, sizeof(d));
			d.what[sizeof(d.what) - 1] = '\0';
			deliver(&h, &d);
		}
		packet_done(&p);
	}
	/* Handlers of libraries at exit would want what was given up. */
	_exit(EXIT_SUCCESS);
}
