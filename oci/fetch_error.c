/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <osbx/json.h>
#include <osbx/str.h>

#include "fetch_error.h"
#include "fetch_retry.h"

#define STATUS_TIMEOUT  408
#define STATUS_RATE     429
#define STATUS_NEVER    501 /* not implemented */
#define WAIT_TEXT_MAX   48
#define DETAIL_MAX      120
#define HTTP_SERVER_ERR 5

/* Numbers of X509_verify_cert_error_string(3) of OpenSSL, and bits of GnuTLS's
 * gnutls_certificate_status_t. */
enum certificate_fault {
	CERTIFICATE_UNTRUSTED,
	CERTIFICATE_EXPIRED,
	CERTIFICATE_EARLY,
	CERTIFICATE_NAME,
	CERTIFICATE_FAULT_COUNT,
};

#define OPENSSL_EARLY   9
#define OPENSSL_EXPIRED 10
#define OPENSSL_UNSAID  1 /* nothing was found wrong when libcurl compared the names */
#define OPENSSL_NAME    62
#define OPENSSL_ADDRESS 64
#define GNUTLS_EARLY    (1L << 9)
#define GNUTLS_EXPIRED  (1L << 10)
#define GNUTLS_NAME     (1L << 14)

static const struct {
	const char *text;
	const char *hint;
} certificate_texts[] = {
	[CERTIFICATE_UNTRUSTED] = { "its certificate is from an issuer that is not trusted here",
			"put the issuer's certificate into /etc/docker/certs.d/HOST/ca.crt with "
			"the registry's HOST" },
	[CERTIFICATE_EXPIRED] = { "its certificate has expired",
			"whoever runs it must renew it, unless the clock of this machine is wrong" },
	[CERTIFICATE_EARLY] = { "its certificate is not valid yet",
			"the clock of this machine may be wrong" },
	[CERTIFICATE_NAME] = { "its certificate is for another name",
			"use a name that the certificate is for" },
};
_Static_assert(sizeof(certificate_texts) / sizeof(certificate_texts[0]) == CERTIFICATE_FAULT_COUNT,
		"one text per fault");

static const struct {
	CURLcode code;
	bool may_pass;
	bool more; /* libcurl's own words say more */
	const char *text;
} network_texts[] = {
	{ CURLE_COULDNT_RESOLVE_PROXY, true, false, "the name of its proxy cannot be resolved" },
	{ CURLE_COULDNT_RESOLVE_HOST, true, false, "the name cannot be resolved" },
	{ CURLE_COULDNT_CONNECT, true, false, "cannot connect" },
	{ CURLE_OPERATION_TIMEDOUT, true, false, "no answer in time, or too slow a one" },
	{ CURLE_PARTIAL_FILE, true, false, "the connection was cut" },
	{ CURLE_GOT_NOTHING, true, false, "the connection was cut" },
	{ CURLE_SEND_ERROR, true, true, "the connection was cut" },
	{ CURLE_RECV_ERROR, true, true, "the connection was cut" },
	{ CURLE_HTTP2, true, true, "the connection was cut" },
	{ CURLE_HTTP2_STREAM, true, true, "the connection was cut" },
	{ CURLE_PROXY, true, true, "its proxy does not connect" },
	{ CURLE_SSL_CONNECT_ERROR, true, true, "cannot agree on TLS" },
	{ CURLE_WEIRD_SERVER_REPLY, false, false, "the answer is not HTTP" },
	{ CURLE_UNSUPPORTED_PROTOCOL, false, false, "the answer is not HTTP" },
	{ CURLE_WRITE_ERROR, false, false, "the answer is too large" },
};

/* Rows for refusals that say their reason better than the status does. */
static const struct {
	const char *code;
	enum errc errc;
} answer_codes[] = {
	{ "MANIFEST_UNKNOWN", ERRC_NOT_FOUND },
	{ "NAME_UNKNOWN", ERRC_NOT_FOUND },
	{ "BLOB_UNKNOWN", ERRC_NOT_FOUND },
	{ "NAME_INVALID", ERRC_INVALID },
	{ "TAG_INVALID", ERRC_INVALID },
	{ "DIGEST_INVALID", ERRC_INVALID },
	{ "UNAUTHORIZED", ERRC_UNAUTHENTICATED },
	{ "DENIED", ERRC_DENIED },
	{ "UNSUPPORTED", ERRC_UNSUPPORTED },
};

static const struct {
	long status;
	enum errc errc;
} status_codes[] = {
	{ 401, ERRC_UNAUTHENTICATED },
	{ 402, ERRC_DENIED },
	{ 403, ERRC_DENIED },
	{ 404, ERRC_NOT_FOUND },
	{ 410, ERRC_NOT_FOUND },
	{ 451, ERRC_DENIED },
};

static void text_take(const struct json *v, char *out, size_t out_size)
{
	const char *s = json_string(v);

	if (s && out[0] == '\0') {
		str_printable(s, out, out_size);
	}
}

void answer_parse(struct span body, struct answer *out_answer)
{
	static const char *const others[] = { "details", "error_description", "message", "error" };
	struct error ignored = ERROR_INIT;
	AUTO(json) struct json *root = json_parse(body, &ignored);
	const struct json *errors = json_get(root, "errors");

	*out_answer = (struct answer){ .code = "" };
	if (json_is_array(errors)) {
		const struct json *first = json_first(errors);

		text_take(json_get(first, "code"), out_answer->code, sizeof(out_answer->code));
		text_take(json_get(first, "message"), out_answer->message,
				sizeof(out_answer->message));
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		text_take(json_get(root, others[i]), out_answer->message,
				sizeof(out_answer->message));
	}
}

static enum certificate_fault certificate_fault(const struct exchange *x)
{
	static const struct {
		long result;
		enum certificate_fault fault;
	} openssl[] = {
		{ 0, CERTIFICATE_NAME },
		{ OPENSSL_UNSAID, CERTIFICATE_NAME },
		{ OPENSSL_NAME, CERTIFICATE_NAME },
		{ OPENSSL_ADDRESS, CERTIFICATE_NAME },
		{ OPENSSL_EXPIRED, CERTIFICATE_EXPIRED },
		{ OPENSSL_EARLY, CERTIFICATE_EARLY },
	};
	long result = exchange_verify_result(x);

	if (!x->client->lib->is_openssl) {
		return result == 0 || (result & GNUTLS_NAME) ? CERTIFICATE_NAME
		       : result & GNUTLS_EXPIRED             ? CERTIFICATE_EXPIRED
		       : result & GNUTLS_EARLY               ? CERTIFICATE_EARLY
							     : CERTIFICATE_UNTRUSTED;
	}
	for (size_t i = 0; i < ARRAY_SIZE(openssl); i++) {
		if (openssl[i].result == result) {
			return openssl[i].fault;
		}
	}
	return CERTIFICATE_UNTRUSTED;
}

static int failure_of_certificate(const struct failure *f, struct error *e)
{
	enum certificate_fault fault = certificate_fault(f->x);

	(void)error_set(e, ERRC_DENIED, "%s: %s: %s", f->label, f->place,
			certificate_texts[fault].text);
	return error_hint(e, "%s", certificate_texts[fault].hint);
}

static int failure_of_proxy(const struct failure *f, long status, struct error *e)
{
	(void)error_set(e, ERRC_UNAVAILABLE, "%s: %s: its proxy answers %ld", f->label, f->place,
			status);
	return error_hint(e, status == 407 ? "the proxy wants a user and password in https_proxy"
					   : "https_proxy and no_proxy choose the proxy");
}

static void detail_add(const struct failure *f, struct error *e)
{
	char detail[DETAIL_MAX];
	size_t n = strlen(e->text);

	str_printable(f->x->detail, detail, sizeof(detail));
	if (detail[0] != '\0' && n < sizeof(e->text)) {
		(void)snprintf(e->text + n, sizeof(e->text) - n, " (%s)", detail);
	}
}

/* Row of a code; ARRAY_SIZE when it has none. */
static size_t network_row(CURLcode code)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(network_texts) && network_texts[i].code != code) {
		i++;
	}
	return i;
}

int failure_of_network(const struct failure *f, struct error *e)
{
	long proxy = exchange_proxy_status(f->x);
	size_t row = network_row(f->x->code);
	bool known = row < ARRAY_SIZE(network_texts);

	if (f->x->code == CURLE_PEER_FAILED_VERIFICATION) {
		return failure_of_certificate(f, e);
	}
	if (f->x->status == 0 && proxy >= 300) {
		return failure_of_proxy(f, proxy, e);
	}
	(void)error_set(e, ERRC_UNAVAILABLE, "%s: %s: %s", f->label, f->place,
			known ? network_texts[row].text : "the transfer failed");
	if (!known || network_texts[row].more) {
		detail_add(f, e);
	}
	if (f->x->code == CURLE_COULDNT_CONNECT && exchange_errno(f->x) > 0) {
		e->sysno = exchange_errno(f->x);
	}
	if (f->x->code == CURLE_SSL_CONNECT_ERROR) {
		(void)error_hint(e, "a registry without TLS needs --tls-verify=false");
	}
	return -1;
}

static enum errc status_class(long status, const struct answer *answer)
{
	if (status == STATUS_RATE || status / 100 == HTTP_SERVER_ERR) {
		return ERRC_UNAVAILABLE;
	}
	for (size_t i = 0; i < ARRAY_SIZE(status_codes); i++) {
		if (status_codes[i].status == status) {
			return status_codes[i].errc;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(answer_codes); i++) {
		if (str_eq(answer_codes[i].code, answer->code)) {
			return answer_codes[i].errc;
		}
	}
	return ERRC_UNAVAILABLE;
}

static void wait_text(int64_t ms, char out[WAIT_TEXT_MAX])
{
	int64_t s = (ms + 999) / 1000;

	if (s <= 0) {
		(void)snprintf(out, WAIT_TEXT_MAX, "later");
	} else if (s < 120) {
		(void)snprintf(out, WAIT_TEXT_MAX, "in %lld seconds", (long long)s);
	} else {
		(void)snprintf(out, WAIT_TEXT_MAX, "in %lld minutes", (long long)(s + 59) / 60);
	}
}

static int failure_of_rate(const struct failure *f, struct error *e)
{
	char limit[64];
	char when[WAIT_TEXT_MAX];
	bool told = retry_limit_text(f->x->head.limit, limit, sizeof(limit));

	wait_text(exchange_retry_after_ms(f->x), when);
	(void)error_set(e, ERRC_UNAVAILABLE, "%s: the rate limit of %s is reached%s%s%s", f->label,
			f->place, told ? " (" : "", limit, told ? ")" : "");
	if (f->has_credential) {
		return error_hint(e, "try again %s", when);
	}
	return error_hint(e, "try again %s; osbx login %s may raise the limit", when, f->domain);
}

static int status_text(
		const struct failure *f, enum errc errc, const char *message, struct error *e)
{
	const char *open = message[0] != '\0' ? " (" : "";
	const char *close = message[0] != '\0' ? ")" : "";

	if (errc == ERRC_UNAUTHENTICATED) {
		return error_set(e, errc, "%s: %s %s%s%s%s", f->label, f->place,
				f->has_credential ? "refuses the credentials" : "asks for a login",
				open, message, close);
	}
	if (errc == ERRC_DENIED) {
		return error_set(e, errc, "%s: %s denies access%s%s%s", f->label, f->place, open,
				message, close);
	}
	if (errc == ERRC_NOT_FOUND) {
		return error_set(e, errc, "%s: not found at %s%s%s%s", f->label, f->place, open,
				message, close);
	}
	return error_set(e, errc, "%s: %s answers %ld%s%s%s", f->label, f->place, f->x->status,
			open, message, close);
}

int failure_of_status(const struct failure *f, struct error *e)
{
	struct answer answer;
	enum errc errc = ERRC_OK;

	answer_parse(buf_span(&f->x->body), &answer);
	if (f->x->status == STATUS_RATE || str_eq(answer.code, "TOOMANYREQUESTS")) {
		return failure_of_rate(f, e);
	}
	errc = status_class(f->x->status, &answer);
	(void)status_text(f, errc, answer.message, e);
	if (errc == ERRC_UNAUTHENTICATED) {
		(void)error_hint(e,
				f->has_credential ? "osbx login %s stores new ones"
						  : "osbx login %s; some registries say so of "
						    "names that do not exist, too",
				f->domain);
	}
	return -1;
}

bool failure_may_pass(const struct exchange *x)
{
	if (x->code == CURLE_OK) {
		return x->status == STATUS_TIMEOUT || x->status == STATUS_RATE ||
		       (x->status / 100 == HTTP_SERVER_ERR && x->status != STATUS_NEVER);
	}
	size_t row = network_row(x->code);

	return row < ARRAY_SIZE(network_texts) && network_texts[row].may_pass;
}
