/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <osbx/mem.h>

#include "netd_flow.h"

static bool release(struct flow *f, size_t n)
{
	if (buf_append(&f->out, f->held.p, n) < 0) {
		return false; /* cannot be: the sum of both is bounded where they are read */
	}
	buf_consume(&f->held, n);
	f->fed -= n < f->fed ? n : f->fed;
	return true;
}

static bool go_opaque(struct flow *f)
{
	f->is_decided = true;
	f->stage = FLOW_OPAQUE;
	free(TAKE_PTR(f->sniff));
	return release(f, f->held.n);
}

static bool no_name(struct flow *f, const char *why)
{
	return verdict_no_name(f, why) && go_opaque(f);
}

/* The program sends nothing more, or more than is held back for a name. */
static bool is_cut_short(const struct flow *f)
{
	return f->client_ended || f->held.n + f->out.n >= FLOW_HELD_MAX;
}

static bool guess(struct flow *f)
{
	switch (sniff_guess(buf_span(&f->held))) {
	case SNIFF_PROTO_MORE:
		return !f->client_ended || no_name(f, "the client said nothing");
	case SNIFF_PROTO_TLS:
		f->stage = FLOW_TLS;
		f->sniff = mem_array(1, sizeof(*f->sniff));
		sniff_tls_init(&f->sniff->tls);
		return true;
	case SNIFF_PROTO_HTTP:
		f->stage = FLOW_HTTP;
		f->sniff = mem_array(1, sizeof(*f->sniff));
		sniff_http_init(&f->sniff->http);
		return true;
	case SNIFF_PROTO_OTHER:
		break;
	}
	return no_name(f, "the client named no host");
}

static bool look_tls(struct flow *f)
{
	struct sniff_tls *s = &f->sniff->tls;
	struct span news = span_from(buf_span(&f->held), f->fed);

	f->fed = f->held.n;
	switch (sniff_tls_feed(s, news)) {
	case SNIFF_NAME:
		return verdict_name(f, s->name) && go_opaque(f);
	case SNIFF_NONE:
		return no_name(f, s->why);
	case SNIFF_MORE:
	case SNIFF_PASS:
		break;
	}
	return !is_cut_short(f) || no_name(f, "the hello of the client is cut short or too long");
}

static bool look_http(struct flow *f)
{
	struct sniff_http *s = &f->sniff->http;

	while (f->fed < f->held.n) {
		struct span news = span_from(buf_span(&f->held), f->fed);
		size_t taken = 0;

		switch (sniff_http_feed(s, news, &taken)) {
		case SNIFF_NAME:
			if (!verdict_name(f, s->name)) {
				return false;
			}
			f->is_decided = true;
			f->fed += taken;
			if (!release(f, f->fed)) {
				return false;
			}
			break;
		case SNIFF_PASS:
			f->fed += taken;
			if (!release(f, f->fed)) {
				return false;
			}
			break;
		case SNIFF_NONE:
			return no_name(f, s->why);
		case SNIFF_MORE:
			f->fed = f->held.n;
			break;
		}
	}
	return f->held.n == 0 || !is_cut_short(f) ||
	       no_name(f, "the request of the client is cut short or too long");
}

bool inspect(struct flow *f)
{
	if (f->stage == FLOW_GUESS && !guess(f)) {
		return false;
	}
	switch (f->stage) {
	case FLOW_TLS:
		return look_tls(f);
	case FLOW_HTTP:
		return look_http(f);
	case FLOW_OPAQUE:
		return release(f, f->held.n);
	case FLOW_GUESS:
	case FLOW_STAGE_COUNT:
		break;
	}
	return true;
}
