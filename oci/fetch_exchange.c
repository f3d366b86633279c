/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "fetch_exchange.h"
#include "fetch_url.h"

#define HEAD_BYTES_MAX  (128U << 10) /* of all answers to one request, interim ones included */
#define FIELD_BYTES_MAX FETCH_URL_MAX
#define BUFFER_BYTES    (256L << 10)
#define KEEP_MAX        8L /* connections */

static const char user_agent[] = "osbx/" OSBX_VERSION;

static void head_done(struct exchange_head *h)
{
	free(h->location);
	free(h->content_type);
	free(h->content_range);
	free(h->digest);
	free(h->limit);
	free(h->remaining);
	auth_challenge_done(&h->challenge);
	*h = (struct exchange_head){ .location = NULL };
}

/* Fields of which the first is kept. */
static const struct {
	const char *name;
	size_t offset;
} kept_fields[] = {
	{ "location", offsetof(struct exchange_head, location) },
	{ "content-type", offsetof(struct exchange_head, content_type) },
	{ "content-range", offsetof(struct exchange_head, content_range) },
	{ "docker-content-digest", offsetof(struct exchange_head, digest) },
	{ "ratelimit-limit", offsetof(struct exchange_head, limit) },
	{ "ratelimit-remaining", offsetof(struct exchange_head, remaining) },
};

static struct span trim(struct span s)
{
	while (s.n > 0 && strchr(" \t\r\n", s.p[s.n - 1])) {
		s.n--;
	}
	while (s.n > 0 && strchr(" \t", *s.p)) {
		s = span_from(s, 1);
	}
	return s;
}

static bool is_field(struct span name, const char *wanted)
{
	return name.n == strlen(wanted) && strncasecmp(name.p, wanted, name.n) == 0;
}

static void field_keep(struct exchange_head *h, struct span name, struct span value)
{
	if (is_field(name, "www-authenticate")) {
		h->bad_challenge |= auth_challenge_add(&h->challenge, value) < 0;
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(kept_fields); i++) {
		char **slot = (char **)(void *)((char *)h + kept_fields[i].offset);

		if (is_field(name, kept_fields[i].name) && !*slot) {
			*slot = span_dup(value);
		}
	}
}

/* One line; the first of each answer is its status line. */
static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
	struct exchange *x = ctx;
	struct span line = { .p = p, .n = size * n };
	const char *colon = memchr(line.p, ':', line.n);

	x->head_bytes += line.n;
	if (x->head_bytes > HEAD_BYTES_MAX || line.n > FIELD_BYTES_MAX) {
		return 0;
	}
	if (span_has_prefix(line, span_of("HTTP/"))) {
		head_done(&x->head);
	} else if (colon) {
		size_t name_n = (size_t)(colon - line.p);

		field_keep(&x->head, (struct span){ .p = line.p, .n = name_n },
				trim(span_from(line, name_n + 1)));
	}
	return line.n;
}

static void status_take(struct exchange *x)
{
	(void)x->client->lib->curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &x->status);
}

static int head_tell(struct exchange *x)
{
	if (x->head_told) {
		return 0;
	}
	x->head_told = true;
	status_take(x);
	return x->opts.on_head ? x->opts.on_head(x->opts.ctx, x) : 0;
}

static size_t on_data(char *p, size_t size, size_t n, void *ctx)
{
	struct exchange *x = ctx;
	struct span piece = { .p = p, .n = size * n };

	if (head_tell(x) < 0) {
		return 0;
	}
	if (x->opts.on_body && x->status / 100 == 2) {
		return x->opts.on_body(x->opts.ctx, piece) < 0 ? 0 : piece.n;
	}
	if (buf_append(&x->body, piece.p, piece.n) < 0) {
		x->full = true;
		return 0;
	}
	return piece.n;
}

static bool field_add(struct exchange *x, const char *name, const char *value)
{
	AUTO(auth_secret) char *line = mem_printf("%s: %s", name, value);
	struct curl_slist *more = x->client->lib->curl_slist_append(x->fields, line);

	x->fields = more ? more : x->fields;
	return more != NULL;
}

static bool fields_add(struct exchange *x)
{
	const struct exchange_opts *o = &x->opts;
	char range[40];
	bool ok = true;

	(void)snprintf(range, sizeof(range), "bytes=%" PRIu64 "-", o->offset);
	ok = ok && (!o->accept || field_add(x, "Accept", o->accept));
	ok = ok && (!o->authorization || field_add(x, "Authorization", o->authorization));
	ok = ok && (o->offset == 0 || field_add(x, "Range", range));
	return ok;
}

/* The value of a list like "FIELD: secret" outlives its use in freed memory otherwise. */
static void fields_wipe(struct exchange *x)
{
	for (struct curl_slist *s = x->fields; s; s = s->next) {
		explicit_bzero(s->data, strlen(s->data));
	}
	x->client->lib->curl_slist_free_all(x->fields);
	x->fields = NULL;
}

#define SET(x, option, value) \
	((x)->client->lib->curl_easy_setopt((x)->easy, (option), (value)) == CURLE_OK)

static bool set_proxy(struct exchange *x, const struct url_proxy *proxy)
{
	const struct fetch_setup *setup = x->client->setup;

	if (!proxy->url || fetch_host_is_local(x->opts.rules->host)) {
		return SET(x, CURLOPT_PROXY, "");
	}
	return SET(x, CURLOPT_PROXY, proxy->url) &&
	       SET(x, CURLOPT_NOPROXY, setup->no_proxy ? setup->no_proxy : "") &&
	       SET(x, CURLOPT_PROXYUSERNAME, proxy->user) &&
	       SET(x, CURLOPT_PROXYPASSWORD, proxy->password) &&
	       SET(x, CURLOPT_PROXYAUTH, (long)CURLAUTH_BASIC) &&
	       SET(x, CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) &&
	       SET(x, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
}

/* The directory of hashed certificates is left out where there is a file: it adds nothing, and
 * only with a file alone does libcurl keep what it read for the next connection. */
static bool set_tls(struct exchange *x)
{
	const struct curl_lib *lib = x->client->lib;
	const long verify = x->opts.rules->verify ? 1L : 0L;
	const char *ca = x->opts.ca_path ? x->opts.ca_path : lib->cainfo;
	bool ok = SET(x, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) &&
		  SET(x, CURLOPT_SSL_VERIFYPEER, verify) &&
		  SET(x, CURLOPT_SSL_VERIFYHOST, verify * 2);

	if (ok && ca) {
		ok = SET(x, CURLOPT_CAINFO, ca) && SET(x, CURLOPT_CAPATH, (const char *)NULL);
	}
	return ok;
}

static bool set_times(struct exchange *x)
{
	const struct fetch_timing *t = &x->client->setup->timing;

	return SET(x, CURLOPT_CONNECTTIMEOUT_MS, (long)x->opts.connect_ms) &&
	       SET(x, CURLOPT_TIMEOUT_MS, (long)x->opts.total_ms) &&
	       SET(x, CURLOPT_LOW_SPEED_LIMIT, (long)t->stall_bytes) &&
	       SET(x, CURLOPT_LOW_SPEED_TIME, (long)t->stall_s) &&
	       SET(x, CURLOPT_TCP_KEEPALIVE, 1L);
}

static bool set_request(struct exchange *x)
{
	/* Redirects are followed by hand: libcurl would take credentials of ours to another port.
	 */
	return SET(x, CURLOPT_URL, x->opts.url) && SET(x, CURLOPT_FOLLOWLOCATION, 0L) &&
	       SET(x, CURLOPT_NOSIGNAL, 1L) && SET(x, CURLOPT_USERAGENT, user_agent) &&
	       SET(x, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS) &&
	       SET(x, CURLOPT_BUFFERSIZE, BUFFER_BYTES) && SET(x, CURLOPT_PRIVATE, x) &&
	       SET(x, CURLOPT_ERRORBUFFER, x->detail) &&
	       SET(x, CURLOPT_HEADERFUNCTION, on_header) && SET(x, CURLOPT_HEADERDATA, x) &&
	       SET(x, CURLOPT_WRITEFUNCTION, on_data) && SET(x, CURLOPT_WRITEDATA, x) &&
	       (!x->opts.form || SET(x, CURLOPT_POSTFIELDS, x->opts.form)) && fields_add(x) &&
	       SET(x, CURLOPT_HTTPHEADER, x->fields);
}

static int prepare(struct exchange *x, struct error *e)
{
	const struct fetch_setup *setup = x->client->setup;
	bool https = url_is_https(x->opts.url);
	const char *variable = https ? setup->https_proxy : setup->http_proxy;
	AUTO(url_proxy) struct url_proxy proxy = { .url = NULL };

	if (variable && url_proxy_parse(x->client->lib, variable, &proxy) < 0) {
		return error_set(e, ERRC_INVALID, "%s_proxy: not the address of a proxy",
				https ? "https" : "http");
	}
	x->easy = x->client->lib->curl_easy_init();
	if (!x->easy || !set_request(x) || !set_tls(x) || !set_times(x) || !set_proxy(x, &proxy)) {
		return error_set(e, ERRC_UNSUPPORTED, "libcurl does not take a request of ours");
	}
	if (x->client->lib->curl_multi_add_handle(x->client->multi, x->easy) != CURLM_OK) {
		return error_set(e, ERRC_INTERNAL, "libcurl does not start a request");
	}
	return 0;
}

struct exchange *exchange_start(struct client *c, const struct exchange_opts *opts, struct error *e)
{
	struct exchange *x = mem_new(struct exchange);

	assert(opts->on_end);
	*x = (struct exchange){
		.opts = *opts,
		.client = c,
		.body = BUF_INIT(opts->body_max),
	};
	if (prepare(x, e) < 0) {
		exchange_free(x);
		return NULL;
	}
	/* libcurl has copies. */
	x->opts.url = NULL;
	x->opts.ca_path = NULL;
	x->opts.authorization = NULL;
	x->opts.accept = NULL;
	return x;
}

void exchange_free(struct exchange *x)
{
	if (!x) {
		return;
	}
	if (x->easy) {
		/* Removing what is not there is an error without effect. */
		(void)x->client->lib->curl_multi_remove_handle(x->client->multi, x->easy);
		x->client->lib->curl_easy_cleanup(x->easy);
	}
	fields_wipe(x);
	head_done(&x->head);
	fetch_buf_wipe(&x->body);
	free(x);
}

int64_t exchange_length(const struct exchange *x)
{
	curl_off_t n = -1;

	(void)x->client->lib->curl_easy_getinfo(x->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &n);
	return n;
}

int64_t exchange_retry_after_ms(const struct exchange *x)
{
	curl_off_t s = 0;

	(void)x->client->lib->curl_easy_getinfo(x->easy, CURLINFO_RETRY_AFTER, &s);
	return s < 0 || s > INT32_MAX ? (int64_t)INT32_MAX * 1000 : s * 1000;
}

static long info_long(const struct exchange *x, CURLINFO what)
{
	long v = 0;

	(void)x->client->lib->curl_easy_getinfo(x->easy, what, &v);
	return v;
}

int exchange_errno(const struct exchange *x)
{
	return (int)info_long(x, CURLINFO_OS_ERRNO);
}

long exchange_verify_result(const struct exchange *x)
{
	return info_long(x, CURLINFO_SSL_VERIFYRESULT);
}

long exchange_proxy_status(const struct exchange *x)
{
	return info_long(x, CURLINFO_HTTP_CONNECTCODE);
}

int client_init(struct client *c, const struct curl_lib *lib, const struct fetch_setup *setup,
		struct error *e)
{
	*c = (struct client){ .lib = lib, .setup = setup, .multi = lib->curl_multi_init() };
	if (!c->multi || lib->curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, KEEP_MAX) !=
					 CURLM_OK) {
		return error_set(e, ERRC_UNSUPPORTED, "libcurl cannot do several requests at once");
	}
	return 0;
}

void client_wait(struct client *c, struct curl_waitfd *fds, unsigned int n, int timeout_ms)
{
	(void)c->lib->curl_multi_poll(c->multi, fds, n, timeout_ms, NULL);
}

static void message_take(struct client *c, const CURLMsg *m)
{
	struct exchange *x = NULL;
	CURLcode code = m->data.result;

	/* m is gone after the removal. */
	(void)c->lib->curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x);
	(void)c->lib->curl_multi_remove_handle(c->multi, x->easy);
	status_take(x);
	x->code = code == CURLE_WRITE_ERROR && x->full ? CURLE_OK : code;
	if (x->code == CURLE_OK && head_tell(x) < 0) {
		x->code = CURLE_WRITE_ERROR;
	}
	x->opts.on_end(x->opts.ctx);
}

void client_run(struct client *c)
{
	int running = 0;
	int left = 0;
	const CURLMsg *m = NULL;

	(void)c->lib->curl_multi_perform(c->multi, &running);
	do {
		m = c->lib->curl_multi_info_read(c->multi, &left);
		if (m && m->msg == CURLMSG_DONE) {
			message_take(c, m);
		}
	} while (m);
}
