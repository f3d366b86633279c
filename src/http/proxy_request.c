/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <strings.h>

#include "proxy_internal.h"

static void put(struct buf *b, struct span s)
{
	int r = buf_append(b, s.p, s.n);

	/* A head is bounded, and so is what is added to it; the maximum is above both. */
	assert(r == 0);
	(void)r;
}

static void put_field(struct buf *b, const char *name, struct span value)
{
	put(b, span_of(name));
	put(b, span_of(": "));
	put(b, value);
	put(b, span_of("\r\n"));
}

static bool is_listed(const char *const *names, struct span name)
{
	for (; names && *names; names++) {
		if (parse_same_name(name, *names)) {
			return true;
		}
	}
	return false;
}

/* Another HTTP within the tunnel would be one whose requests nobody looks at (h2c smuggling). */
static bool may_upgrade_to(struct span protocol)
{
	static const char *const never[] = { "h2c", "http/", "tls/" };

	for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
		if (protocol.n >= strlen(never[i]) &&
				strncasecmp(protocol.p, never[i], strlen(never[i])) == 0) {
			return false;
		}
	}
	return protocol.n > 0 && !memchr(protocol.p, ',', protocol.n);
}

static void put_framing(struct proxy *p, const struct exchange *x)
{
	uint64_t length = http_body_length(p->rq);
	struct span upgrade = proxy_field(x->fields, x->fields_n, "upgrade");
	char digits[24];

	p->is_chunked = length == UINT64_MAX;
	p->wants_upgrade =
			length == 0 && may_upgrade_to(upgrade) &&
			proxy_field_has(x->fields, x->fields_n, "connection", span_of("upgrade"));
	if (p->is_chunked) {
		put_field(&p->out, "Transfer-Encoding", span_of("chunked"));
	} else if (proxy_field(x->fields, x->fields_n, "content-length").p) {
		(void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)length);
		put_field(&p->out, "Content-Length", span_of(digits));
	}
	if (p->wants_upgrade) {
		put_field(&p->out, "Connection", span_of("Upgrade"));
		put_field(&p->out, "Upgrade", upgrade);
	} else {
		put_field(&p->out, "Connection", span_of("close"));
	}
}

void proxy_request_build(struct proxy *p, const struct http_proxy_opts *opts)
{
	/* Host is ours, and the server has answered Expect. */
	static const char *const ours[] = { "host", "expect", NULL };
	const struct exchange *x = exchange_of(p->rq);

	put(&p->out, p->rq->method_text);
	put(&p->out, span_of(" "));
	put(&p->out, opts->target);
	put(&p->out, span_of(" HTTP/1.1\r\n"));
	put_field(&p->out, "Host", span_of(opts->host));
	for (size_t i = 0; i < x->fields_n; i++) {
		struct span name = x->fields[i].name;

		if (proxy_is_hop(x->fields, x->fields_n, name) || is_listed(ours, name) ||
				is_listed(opts->drop, name)) {
			continue;
		}
		put(&p->out, name);
		put_field(&p->out, "", x->fields[i].value);
	}
	put_framing(p, x);
	put(&p->out, span_of(opts->add_request ? opts->add_request : ""));
	put(&p->out, span_of("\r\n"));
	p->is_head = p->rq->method == HTTP_HEAD;
}
