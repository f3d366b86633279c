/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>

#include "auth.h"
#include "fetch_setup.h"

#define STRING_MAX FETCH_CA_BYTES_MAX
#define ABSENT     UINT32_MAX

const struct fetch_timing fetch_timing_default = {
	.connect_ms = 15000,
	.probe_ms = 5000,
	.stall_s = 30,
	.stall_bytes = 1024,
	.small_ms = 120000,
	.backoff_min_ms = 500,
	.backoff_max_ms = 30000,
	.retry_after_max_ms = 60000,
	.tries_max = 5,
	.tries_first_max = 3,
	.transfers_max = 6,
	.transfers_host_max = 4,
};

static void host_done(struct fetch_host *h)
{
	free(h->host);
	free(h->repository);
	free(h->ca);
	credential_done(&h->credential);
}

void fetch_setup_done(struct fetch_setup *s)
{
	if (!s) {
		return;
	}
	for (size_t i = 0; i < s->hosts_n; i++) {
		host_done(&s->hosts[i]);
	}
	free(s->domain);
	free(s->name);
	/* They may hold a password. */
	auth_secret_free(s->http_proxy);
	auth_secret_free(s->https_proxy);
	free(s->no_proxy);
	*s = (struct fetch_setup)FETCH_SETUP_INIT;
}

/* One walk over all members serves all three. */
enum codec_way {
	CODEC_SIZE,
	CODEC_WRITE,
	CODEC_READ,
	CODEC_WAY_COUNT,
};

struct codec {
	enum codec_way way;
	size_t size;
	struct buf *out;
	struct span in;
	int failed;
};

static void code_bytes(struct codec *c, void *p, size_t n)
{
	if (c->failed < 0) {
		return;
	}
	if (c->way == CODEC_SIZE) {
		c->size += n;
	} else if (c->way == CODEC_WRITE) {
		c->failed = buf_append(c->out, p, n);
	} else if (c->in.n < n) {
		c->failed = -EBADMSG;
	} else {
		memcpy(p, c->in.p, n);
		c->in = span_from(c->in, n);
	}
}

static void code_string(struct codec *c, char **s)
{
	uint32_t n = c->way != CODEC_READ && *s ? (uint32_t)strlen(*s) : ABSENT;

	code_bytes(c, &n, sizeof(n));
	if (c->failed < 0 || n == ABSENT) {
		return;
	}
	if (c->way == CODEC_READ) {
		if (n > STRING_MAX || n > c->in.n) {
			c->failed = -EBADMSG;
			return;
		}
		*s = mem_array((size_t)n + 1, 1);
	}
	code_bytes(c, *s, n);
}

static void code_host(struct codec *c, struct fetch_host *h)
{
	char **const strings[] = { &h->host, &h->repository, &h->ca, &h->credential.user,
		&h->credential.password, &h->credential.identity_token };

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
		code_string(c, strings[i]);
	}
	code_bytes(c, &h->verify, sizeof(h->verify));
	code_bytes(c, &h->may_http, sizeof(h->may_http));
}

static int code_setup(struct codec *c, struct fetch_setup *s)
{
	char **const strings[] = { &s->domain, &s->name, &s->http_proxy, &s->https_proxy,
		&s->no_proxy };

	code_bytes(c, &s->timing, sizeof(s->timing));
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
		code_string(c, strings[i]);
	}
	code_bytes(c, &s->hosts_n, sizeof(s->hosts_n));
	if (c->failed == 0 && s->hosts_n > FETCH_HOSTS_MAX) {
		s->hosts_n = 0;
		c->failed = -EBADMSG;
	}
	for (size_t i = 0; i < s->hosts_n; i++) {
		code_host(c, &s->hosts[i]);
	}
	return c->failed;
}

int fetch_setup_write(const struct fetch_setup *s, struct buf *out)
{
	struct codec size = { .way = CODEC_SIZE };
	struct codec c = { .way = CODEC_WRITE, .out = out };
	struct fetch_setup view = *s;
	int rc = code_setup(&size, &view);

	/* At once, so that no growing leaves copies of secrets behind. */
	rc = rc < 0 ? rc : buf_reserve(out, size.size);
	return rc < 0 ? rc : code_setup(&c, &view);
}

int fetch_setup_read(struct span bytes, struct fetch_setup *out_setup)
{
	struct codec c = { .way = CODEC_READ, .in = bytes };
	AUTO(fetch_setup) struct fetch_setup s = FETCH_SETUP_INIT;
	int rc = code_setup(&c, &s);

	if (rc < 0 || c.in.n > 0) {
		return -EBADMSG;
	}
	*out_setup = s;
	s = (struct fetch_setup)FETCH_SETUP_INIT;
	return 0;
}

void fetch_buf_wipe(struct buf *b)
{
	if (b->p) {
		explicit_bzero(b->p, b->cap);
	}
	buf_done(b);
}
