/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/mem.h>

#include "net_internal.h"

#define DNS_PORT   53
#define FILE_BYTES (64U << 10)

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct span word_next(struct span *rest)
{
	size_t n = 0;

	while (rest->n > 0 && is_blank(rest->p[0])) {
		*rest = span_from(*rest, 1);
	}
	while (n < rest->n && !is_blank(rest->p[n])) {
		n++;
	}
	struct span word = { .p = rest->p, .n = n };

	*rest = span_from(*rest, n);
	return word;
}

/* "fe80::1%eth0": a link-local one says on which link. */
static uint32_t zone_take(struct span *addr)
{
	const char *percent = memchr(addr->p, '%', addr->n);

	if (!percent) {
		return 0;
	}
	size_t n = (size_t)(percent - addr->p);
	autofree char *name = span_dup(span_from(*addr, n + 1));

	addr->n = n;
	return name ? if_nametoindex(name) : 0;
}

static void resolver_add(struct net_resolvers *r, struct span text)
{
	uint32_t zone = zone_take(&text);
	struct sockaddr_storage *sa = &r->addrs[r->n];
	struct netaddr addr;

	if (text.n == 0 || netaddr_parse(text, &addr) < 0) {
		return;
	}
	*sa = (struct sockaddr_storage){ .ss_family = AF_UNSPEC };
	r->lens[r->n] = netaddr_to_sock(&addr, DNS_PORT, sa);
	if (sa->ss_family == AF_INET6) {
		((struct sockaddr_in6 *)sa)->sin6_scope_id = zone;
	}
	r->n++;
}

void net_resolvers_parse(struct span text, struct net_resolvers *out_r)
{
	struct span line;

	*out_r = (struct net_resolvers){ .n = 0 };
	while (out_r->n < NETD_RESOLVERS_MAX && span_next(&text, '\n', &line)) {
		if (span_eq(word_next(&line), span_of("nameserver"))) {
			resolver_add(out_r, word_next(&line));
		}
	}
}

void net_resolvers_read(const char *path, struct net_resolvers *out_r)
{
	AUTO(buf) struct buf text = BUF_INIT(FILE_BYTES);

	*out_r = (struct net_resolvers){ .n = 0 };
	if (file_read_at(AT_FDCWD, path, &text) == 0) {
		net_resolvers_parse(buf_span(&text), out_r);
	}
}

bool net_resolvers_eq(const struct net_resolvers *a, const struct net_resolvers *b)
{
	for (uint32_t i = 0; i < a->n && a->n == b->n; i++) {
		if (a->lens[i] != b->lens[i] ||
				memcmp(&a->addrs[i], &b->addrs[i], a->lens[i]) != 0) {
			return false;
		}
	}
	return a->n == b->n;
}

uint32_t net_resolvers_open(struct net_resolvers *r, int out_fds[NETD_RESOLVERS_MAX])
{
	struct net_resolvers there = { .n = 0 };

	for (uint32_t i = 0; i < r->n; i++) {
		autoclose int fd = socket(r->addrs[i].ss_family,
				SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0 || connect(fd, (const struct sockaddr *)&r->addrs[i], r->lens[i]) < 0) {
			continue;
		}
		there.addrs[there.n] = r->addrs[i];
		there.lens[there.n] = r->lens[i];
		out_fds[there.n++] = TAKE_FD(fd);
	}
	*r = there;
	return r->n;
}
