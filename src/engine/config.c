/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <osbx/conf.h>
#include <osbx/config.h>
#include <osbx/idmap.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/notify.h>
#include <osbx/request.h>
#include <osbx/str.h>

static int set_limits(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;

	(void)arg;
	if (!str_eq(value, "enforce") && !str_eq(value, "best-effort")) {
		return error_set(e, ERRC_INVALID, "limits: expected enforce or best-effort");
	}
	c->limits_best_effort = str_eq(value, "best-effort");
	return 0;
}

static int set_network(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;

	(void)arg;
	return request_network_from_name(value, &c->network) < 0
			       ? error_set(e, ERRC_INVALID,
						 "network: expected private, none or host")
			       : 0;
}

/* There is one kind, for root and for users. */
static int set_rootless(void *out, const char *arg, const char *value, struct error *e)
{
	(void)out;
	(void)arg;
	if (str_eq(value, "pasta")) {
		return error_set(e, ERRC_UNSUPPORTED,
				"rootless: pasta is not used: the relay carries what it would, "
				"TCP, UDP and ping, under the policy");
	}
	return str_eq(value, "relay") ? 0 : error_set(e, ERRC_INVALID, "rootless: expected relay");
}

static int set_deny_webhook(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;

	(void)arg;
	if (!notify_url_is_valid(value)) {
		return error_set(e, ERRC_INVALID, "deny_webhook: expected http://… or https://…");
	}
	free(c->deny_webhook);
	c->deny_webhook = mem_strdup(value);
	return 0;
}

static int set_range(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;
	autofree char *first = mem_strdup(value);
	char *dash = strchr(first, '-');
	uint64_t from = 0;
	uint64_t to = 0;

	(void)arg;
	if (dash) {
		*dash = '\0';
	}
	if (!dash || str_to_u64(first, UINT32_MAX - 1, &from) < 0 ||
			str_to_u64(dash + 1, UINT32_MAX - 1, &to) < 0 || from == 0 || to < from ||
			to - from + 1 < IDMAP_SANDBOX_IDS) {
		return error_set(e, ERRC_INVALID,
				"range: expected FIRST-LAST with at least 65536 ids, none of them 0");
	}
	c->ids_first = (uint32_t)from;
	c->ids_count = (uint32_t)(to - from + 1);
	return 0;
}

static int set_unpack_max(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;

	(void)arg;
	if (str_to_size(value, &c->unpack_max) < 0 || c->unpack_max == 0) {
		return error_set(e, ERRC_INVALID, "unpack_max: expected a size such as 64g");
	}
	return 0;
}

/* Words between spaces, in place of what was said before. */
static int set_words(struct strv *out, const char *key, const char *value, struct error *e)
{
	struct span rest = span_of(value);
	struct span word;

	strv_done(out);
	while (span_next(&rest, ' ', &word)) {
		autofree char *text = span_dup(word);

		if (text && text[0] != '\0' && strv_add(out, text) < 0) {
			return error_set(e, ERRC_LIMIT, "%s: too many", key);
		}
	}
	return out->n > 0 ? 0 : error_set(e, ERRC_INVALID, "%s: expected something", key);
}

static int set_timeout_max(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;

	(void)arg;
	return str_to_duration(value, &c->timeout_max_ms) < 0
			       ? error_set(e, ERRC_INVALID,
						 "timeout_max: expected a duration such as 24h")
			       : 0;
}

static int set_listen(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;

	(void)arg;
	return set_words(&c->serve_listen, "listen", value, e);
}

static int set_host_paths(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;

	(void)arg;
	if (set_words(&c->serve_host_paths, "host_paths", value, e) < 0) {
		return -1;
	}
	strv_for_each(&c->serve_host_paths, i) {
		if (c->serve_host_paths.v[i][0] != '/') {
			return error_set(e, ERRC_INVALID, "host_paths: expected absolute paths");
		}
	}
	return 0;
}

static int set_key_file(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;

	(void)arg;
	if (value[0] != '/') {
		return error_set(e, ERRC_INVALID, "api_key_file: expected an absolute path");
	}
	free(c->serve_key_file);
	c->serve_key_file = mem_strdup(value);
	return 0;
}

static int set_create_wait(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;

	(void)arg;
	return str_to_duration(value, &c->serve_create_wait_ms) < 0
			       ? error_set(e, ERRC_INVALID,
						 "create_wait: expected a duration such as 20s")
			       : 0;
}

static int set_max_sandboxes(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;

	(void)arg;
	return str_to_u64(value, UINT32_MAX, &c->serve_sandboxes_max) < 0
			       ? error_set(e, ERRC_INVALID, "max_sandboxes: expected a number")
			       : 0;
}

static struct registry_host *host_entry(struct registry_config *c, const char *name)
{
	for (size_t i = 0; i < c->hosts_n; i++) {
		if (str_eq(c->hosts[i].host, name)) {
			return &c->hosts[i];
		}
	}
	c->hosts = mem_resize(c->hosts, c->hosts_n, c->hosts_n + 1, sizeof(*c->hosts));

	struct registry_host *h = &c->hosts[c->hosts_n++];

	h->host = mem_strdup(name);
	h->tls_verify = true;
	return h;
}

/* The entry of a registry section; NULL: a section without a name is the user's mistake. */
static struct registry_host *host_of(struct config *c, const char *arg, struct error *e)
{
	if (!arg) {
		(void)error_set(e, ERRC_INVALID, "[registry]: expected [registry \"HOST\"]");
		return NULL;
	}
	return host_entry(&c->registries, arg);
}

static int set_mirror(void *out, const char *arg, const char *value, struct error *e)
{
	struct registry_host *h = host_of(out, arg, e);

	if (!h) {
		return -1;
	}
	if (value[0] == '\0' || strchr(value, ' ') || strstr(value, "://")) {
		return error_set(e, ERRC_INVALID, "mirror: expected HOST[:PORT][/PREFIX]");
	}
	return strv_add(&h->mirrors, value) < 0 ? error_set(e, ERRC_LIMIT, "mirror: too many") : 0;
}

static int set_tls_verify(void *out, const char *arg, const char *value, struct error *e)
{
	struct registry_host *h = host_of(out, arg, e);

	if (!h) {
		return -1;
	}
	if (!str_eq(value, "true") && !str_eq(value, "false")) {
		return error_set(e, ERRC_INVALID, "tls_verify: expected true or false");
	}
	h->tls_verify = str_eq(value, "true");
	return 0;
}

static int set_ca(void *out, const char *arg, const char *value, struct error *e)
{
	struct registry_host *h = host_of(out, arg, e);

	if (!h) {
		return -1;
	}
	if (value[0] != '/') {
		return error_set(e, ERRC_INVALID, "ca: expected the absolute path of a PEM file");
	}
	free(h->ca_file);
	h->ca_file = mem_strdup(value);
	return 0;
}

static int set_search(void *out, const char *arg, const char *value, struct error *e)
{
	struct config *c = out;

	(void)arg;
	return set_words(&c->registries.search, "search", value, e);
}

static const struct conf_key config_keys[] = {
	{ "sandbox", "limits", set_limits },
	{ "sandbox", "network", set_network },
	{ "sandbox", "timeout_max", set_timeout_max },
	{ "serve", "listen", set_listen },
	{ "serve", "api_key_file", set_key_file },
	{ "serve", "create_wait", set_create_wait },
	{ "serve", "max_sandboxes", set_max_sandboxes },
	{ "serve", "host_paths", set_host_paths },
	{ "ids", "range", set_range },
	{ "network", "rootless", set_rootless },
	{ "network", "deny_webhook", set_deny_webhook },
	{ "store", "unpack_max", set_unpack_max },
	{ "registries", "search", set_search },
	{ "registry", "mirror", set_mirror },
	{ "registry", "tls_verify", set_tls_verify },
	{ "registry", "ca", set_ca },
	{ .section = NULL },
};

void config_init(struct config *c)
{
	*c = (struct config){ .network = SPEC_NETWORK_PRIVATE, .serve_create_wait_ms = -1 };
}

void config_done(struct config *c)
{
	if (c) {
		registry_config_done(&c->registries);
		strv_done(&c->serve_listen);
		strv_done(&c->serve_host_paths);
		free(c->serve_key_file);
		free(c->deny_webhook);
		config_init(c);
	}
}

/* The user's file, NULL for root of the machine or when there is no home. */
static char *user_file(void)
{
	const char *dir = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");

	if (geteuid() == 0 && idmap_is_initial_userns()) {
		return NULL;
	}
	if (dir && dir[0] == '/') {
		return mem_printf("%s/osbx/osbx.conf", dir);
	}
	return home && home[0] == '/' ? mem_printf("%s/.config/osbx/osbx.conf", home) : NULL;
}

int config_load(struct config *out_config, struct error *e)
{
	const char *only = getenv("OSBX_CONFIG");
	autofree char *user = user_file();
	AUTO(config) struct config c = { .network = SPEC_NETWORK_NONE };

	config_init(&c);
	if (only && only[0] != '\0') {
		if (conf_parse(only, config_keys, &c, e) < 0) {
			return -1;
		}
	} else if (conf_parse("/etc/osbx/osbx.conf", config_keys, &c, e) < 0 ||
			(user && conf_parse(user, config_keys, &c, e) < 0)) {
		return -1;
	}
	*out_config = c;
	config_init(&c);
	return 0;
}
