/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "fetch_setup.h"

#define HOST_MAX 300 /* a DNS name, brackets, a port */

/* The part before the port; false when that is no valid host. */
static bool host_name(const char *host, char *out, size_t out_size)
{
	const char *end = host[0] == '[' ? strchr(host, ']') : strchr(host, ':');
	size_t n = end ? (size_t)(end - host) : strlen(host);

	if (host[0] == '[') {
		host++;
		n -= end ? 1 : 0;
	}
	if (n >= out_size) {
		return false;
	}
	memcpy(out, host, n);
	out[n] = '\0';
	return true;
}

bool fetch_host_is_local(const char *host)
{
	char name[HOST_MAX];
	struct in_addr v4;
	struct in6_addr v6;

	if (!host_name(host, name, sizeof(name))) {
		return false;
	}
	if (host[0] == '[') {
		return inet_pton(AF_INET6, name, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
	}
	return str_eq(name, "localhost") ||
	       (inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
}

/* It becomes part of URLs and of the name of a directory. */
static bool host_is_valid(const char *host)
{
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789.-:[]_";

	return strlen(host) < HOST_MAX && host[0] != '.' && host[0] != ':' &&
	       str_is_made_of(host, bytes);
}

static const struct registry_host *config_find(
		const struct registry_config *config, const char *host)
{
	for (size_t i = 0; config && i < config->hosts_n; i++) {
		if (str_eq(config->hosts[i].host, host)) {
			return &config->hosts[i];
		}
	}
	return NULL;
}

static void credential_copy(struct credential *out, const struct credential *c)
{
	if (c) {
		out->user = mem_strdup(c->user);
		out->password = mem_strdup(c->password);
		out->identity_token = mem_strdup(c->identity_token);
	}
}

/* Rules of a host by its own section; takes repository over. The new row, or NULL. */
static struct fetch_host *host_add(struct fetch_setup *s, const char *name,
		const struct pull_opts *opts, char *repository, struct error *e)
{
	const struct registry_host *rules = config_find(opts->config, name);
	struct fetch_host *h = &s->hosts[s->hosts_n];

	if (s->hosts_n == FETCH_HOSTS_MAX) {
		free(repository);
		(void)error_set(e, ERRC_LIMIT, "%s: more than %d mirrors", s->domain,
				FETCH_HOSTS_MAX - 1);
		return NULL;
	}
	s->hosts_n++;
	h->repository = repository;
	if (!host_is_valid(name)) {
		(void)error_set(e, ERRC_INVALID, "%s: mirror \"%s\" is not a host", s->domain,
				name);
		return NULL;
	}
	h->host = mem_strdup(registry_wire_host(name));
	h->verify = rules ? rules->tls_verify : true;
	if (opts->tls_verify >= 0) {
		h->verify = opts->tls_verify != 0;
	}
	h->may_http = !h->verify || fetch_host_is_local(name);
	if (h->verify && fetch_ca_read(name, rules ? rules->ca_file : NULL, &h->ca, e) < 0) {
		return NULL;
	}
	return h;
}

/* "host[:port][/prefix]" */
static int mirror_add(struct fetch_setup *s, const char *mirror, const struct ref *ref,
		const struct pull_opts *opts, struct error *e)
{
	const char *slash = strchr(mirror, '/');
	autofree char *host = mem_dup(mirror, slash ? (size_t)(slash - mirror) : strlen(mirror));
	const char *prefix = slash && slash[1] != '\0' ? slash + 1 : NULL;
	struct fetch_host *h = NULL;
	char *repository = NULL;

	if (ref->repository) {
		repository = prefix ? mem_printf("%s/%s", prefix, ref->repository)
				    : mem_strdup(ref->repository);
	}
	h = host_add(s, host, opts, repository, e);
	/* The registry's credentials are not for its mirrors: they have their own, or none. */
	return h ? credential_find(host, h->repository, &h->credential, e) : -1;
}

static int registry_add(struct fetch_setup *s, const struct ref *ref, const struct pull_opts *opts,
		const struct credential *credential, struct error *e)
{
	struct fetch_host *h = host_add(s, ref->domain, opts, mem_strdup(ref->repository), e);

	if (!h) {
		return -1;
	}
	credential_copy(&h->credential, credential);
	return 0;
}

/* The first of these variables that is set to something. */
static char *variable(const char *const *names)
{
	for (; *names; names++) {
		const char *value = getenv(*names);

		if (value && value[0] != '\0') {
			return mem_strdup(value);
		}
	}
	return NULL;
}

/* HTTP_PROXY is left out: a server running CGI programs sets it from a request. */
static void proxies_add(struct fetch_setup *s)
{
	static const char *const http[] = { "http_proxy", "all_proxy", "ALL_PROXY", NULL };
	static const char *const https[] = { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
		NULL };
	static const char *const none[] = { "no_proxy", "NO_PROXY", NULL };

	s->http_proxy = variable(http);
	s->https_proxy = variable(https);
	s->no_proxy = variable(none);
}

/* "python" of docker.io/library/python. */
static char *display_name(const struct ref *ref)
{
	static const char tag[] = ":tag";
	autofree char *full = NULL;
	autofree char *shown = NULL;

	if (!ref->repository) {
		return mem_strdup(ref->domain);
	}
	full = mem_printf("%s/%s%s", ref->domain, ref->repository, tag);
	shown = ref_familiar(full);
	return mem_dup(shown, strlen(shown) - strlen(tag));
}

int fetch_setup_make(const struct ref *ref, const struct pull_opts *opts,
		const struct credential *credential, struct fetch_setup *out_setup, struct error *e)
{
	AUTO(fetch_setup) struct fetch_setup s = { .timing = fetch_timing_default };
	const struct registry_host *rules = config_find(opts->config, ref->domain);
	struct pull_opts mirror_opts = *opts;

	/* Who gives up verification of one host has not given it up for others. */
	mirror_opts.tls_verify = opts->tls_verify == 1 ? 1 : -1;
	s.domain = mem_strdup(ref->domain);
	s.name = display_name(ref);
	for (size_t i = 0; rules && ref->repository && i < rules->mirrors.n; i++) {
		if (mirror_add(&s, rules->mirrors.v[i], ref, &mirror_opts, e) < 0) {
			return -1;
		}
	}
	if (registry_add(&s, ref, opts, credential, e) < 0) {
		return -1;
	}
	proxies_add(&s);
	*out_setup = s;
	s = (struct fetch_setup)FETCH_SETUP_INIT;
	return 0;
}
