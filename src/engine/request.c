/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include <osbx/caps.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/request.h>
#include <osbx/span.h>
#include <osbx/str.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

void request_init(struct sandbox_request *r)
{
	*r = (struct sandbox_request){
		.network = SPEC_NETWORK_NONE,
		.caps = caps_workload_default,
		.pull = PULL_MISSING,
		.tls_verify = -1,
		.best_effort = -1,
	};
	netpolicy_init(&r->policy);
}

void request_done(struct sandbox_request *r)
{
	if (!r) {
		return;
	}
	for (size_t i = 0; i < r->volumes_n; i++) {
		free(r->volumes[i].src);
		free(r->volumes[i].dst);
		free(r->volumes[i].beneath);
		free(r->volumes[i].sub);
	}
	for (size_t i = 0; i < r->tmpfs_n; i++) {
		free(r->tmpfs[i].dst);
	}
	free(r->volumes);
	free(r->tmpfs);
	free(r->ports);
	free(r->image);
	free(r->entrypoint);
	free(r->workdir);
	free(r->user);
	free(r->hostname);
	free(r->name);
	free(r->seccomp);
	free(r->deny_webhook);
	free(r->platform);
	strv_done(&r->command);
	strv_done(&r->env);
	strv_done(&r->groups);
	strv_done(&r->labels);
	strv_done(&r->extensions);
	netpolicy_done(&r->policy);
	*r = (struct sandbox_request){ .volumes_n = 0 };
}

/* A path of the host as the user wrote it: relative to the working directory, links and ".." left
 * to the kernel. NULL with *e set. */
static char *host_path(const char *text, struct error *e)
{
	if (text[0] == '/') {
		return mem_strdup(text);
	}
	/* "./" reads badly in the middle of a path that an error names. */
	while (text[0] == '.' && (text[1] == '/' || text[1] == '\0')) {
		text += text[1] == '/' ? 1 + strspn(text + 1, "/") : 1;
	}
	autofree char *cwd = getcwd(NULL, 0);

	/* "(unreachable)/…" when the directory is outside the caller's root. */
	if (!cwd || cwd[0] != '/') {
		(void)error_sys(e, cwd ? ENOENT : errno, "working directory");
		return NULL;
	}
	return text[0] == '\0' ? mem_strdup(cwd)
			       : mem_printf("%s/%s", str_eq(cwd, "/") ? "" : cwd, text);
}

static int volume_check_source(const char *text, const char *src, struct error *e)
{
	if (src[0] == '\0') {
		return error_set(e, ERRC_INVALID, "%s: empty source", text);
	}
	if (src[0] != '/' && src[0] != '.' && !strchr(src, '/')) {
		(void)error_set(e, ERRC_INVALID, "%s: named volumes do not exist yet", text);
		return error_hint(e, "a directory here is written ./%s", src);
	}
	return 0;
}

/* "ro" or "rw" behind the destination. */
static int volume_mode(const char *text, const char *mode, bool *out_read_only, struct error *e)
{
	if (mode && !str_eq(mode, "ro") && !str_eq(mode, "rw")) {
		(void)error_set(e, ERRC_INVALID, "%s: unknown mount option \"%s\"", text, mode);
		return error_hint(e, "\"ro\" and \"rw\" are known");
	}
	*out_read_only = mode && str_eq(mode, "ro");
	return 0;
}

int request_add_volume(struct sandbox_request *r, const char *text, struct error *e)
{
	autofree char *copy = mem_strdup(text);
	char *dst = strchr(copy, ':');
	char *mode = dst ? strchr(dst + 1, ':') : NULL;
	bool read_only = false;

	if (!dst) {
		return error_set(e, ERRC_INVALID, "%s: not of the form SRC:DST[:ro]", text);
	}
	*dst++ = '\0';
	if (mode) {
		*mode++ = '\0';
	}
	if (volume_check_source(text, copy, e) < 0 || volume_mode(text, mode, &read_only, e) < 0) {
		return -1;
	}
	if (r->volumes_n >= LIMIT_VOLUMES) {
		return error_set(e, ERRC_LIMIT, "more than %d volumes", LIMIT_VOLUMES);
	}
	char *src = host_path(copy, e);

	if (!src) {
		return -1;
	}
	r->volumes = mem_resize(r->volumes, r->volumes_n, r->volumes_n + 1, sizeof(*r->volumes));
	r->volumes[r->volumes_n++] = (struct request_volume){
		.src = src,
		.dst = mem_strdup(dst),
		.read_only = read_only,
	};
	return 0;
}

int request_add_tmpfs(struct sandbox_request *r, const char *text, struct error *e)
{
	const char *colon = strchr(text, ':');
	const char *size_text = colon ? colon + 1 : NULL;
	uint64_t size = 0;

	if (size_text) {
		const char *named = str_after(size_text, "size=");

		if (str_to_size(named ? named : size_text, &size) < 0 || size == 0) {
			(void)error_set(e, ERRC_INVALID, "%s: not of the form DST[:SIZE]", text);
			return error_hint(e, "for example /tmp:64m");
		}
	}
	if (r->tmpfs_n >= LIMIT_VOLUMES) {
		return error_set(e, ERRC_LIMIT, "more than %d tmpfs", LIMIT_VOLUMES);
	}
	r->tmpfs = mem_resize(r->tmpfs, r->tmpfs_n, r->tmpfs_n + 1, sizeof(*r->tmpfs));
	r->tmpfs[r->tmpfs_n++] = (struct request_tmpfs){
		.dst = mem_dup(text, colon ? (size_t)(colon - text) : strlen(text)),
		.size = size,
	};
	return 0;
}

static int env_room(const struct sandbox_request *r, struct error *e)
{
	if (strv_bytes(&r->env) > LIMIT_ARGS_BYTES) {
		return error_set(e, ERRC_LIMIT, "environment of more than %u bytes",
				LIMIT_ARGS_BYTES);
	}
	return 0;
}

int request_add_env(struct sandbox_request *r, const char *text, struct error *e)
{
	autofree char *entry = NULL;

	if (text[0] == '\0' || text[0] == '=') {
		return error_set(e, ERRC_INVALID, "\"%s\": a variable without a name", text);
	}
	if (strchr(text, '=')) {
		entry = mem_strdup(text);
	} else {
		const char *value = getenv(text);

		if (!value) {
			return 0;
		}
		entry = mem_printf("%s=%s", text, value);
	}
	if (strv_env_set(&r->env, entry) < 0) {
		return error_set(e, ERRC_LIMIT, "more than %d environment variables", LIMIT_ENV);
	}
	return env_room(r, e);
}

/* One line of an environment file; number counts from 1. */
static int env_line(struct sandbox_request *r, struct span line, unsigned int number,
		const char *path, struct error *e)
{
	while (line.n > 0 && (line.p[0] == ' ' || line.p[0] == '\t')) {
		line = span_from(line, 1);
	}
	if (line.n > 0 && line.p[line.n - 1] == '\r') {
		line.n--;
	}
	if (line.n == 0 || line.p[0] == '#') {
		return 0;
	}
	autofree char *text = span_dup(line);

	if (!text) {
		return error_set(e, ERRC_INVALID, "%s:%u: NUL byte", path, number);
	}
	/* docker refuses it too: "export A=b" is a shell's line, not a variable's. */
	if (strcspn(text, " \t") < strcspn(text, "=")) {
		return error_set(e, ERRC_INVALID, "%s:%u: white space in a variable's name", path,
				number);
	}
	if (request_add_env(r, text, e) < 0) {
		return error_wrap(e, "%s:%u", path, number);
	}
	return 0;
}

int request_add_env_file(struct sandbox_request *r, const char *path, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_ARGS_BYTES);
	autoclose int fd = fd_open(path, O_RDONLY, 0);
	unsigned int number = 0;
	struct span line;
	int n = fd < 0 ? fd : fd_read_all(fd, &text);

	if (n == -EMSGSIZE) {
		return error_set(e, ERRC_LIMIT, "%s: larger than %u bytes", path, LIMIT_ARGS_BYTES);
	}
	if (n < 0) {
		return error_sys(e, -n, "%s", path);
	}
	struct span rest = buf_span(&text);

	/* Editors of Windows write one; it is no part of the first name. */
	if (rest.n >= strlen(BYTE_ORDER_MARK) &&
			memcmp(rest.p, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0) {
		rest = span_from(rest, strlen(BYTE_ORDER_MARK));
	}
	while (span_next(&rest, '\n', &line)) {
		if (env_line(r, line, ++number, path, e) < 0) {
			return -1;
		}
	}
	return 0;
}

int request_add_port(struct sandbox_request *r, const char *text, struct error *e)
{
	size_t n = r->ports_n;

	if (n == LIMIT_PORTS) {
		return error_set(e, ERRC_LIMIT, "more than %d published ports", LIMIT_PORTS);
	}
	r->ports = mem_resize(r->ports, n, n + 1, sizeof(*r->ports));
	if (ports_parse(text, &r->ports[n], e) < 0) {
		return -1;
	}
	r->ports_n++;
	return 0;
}

static const char *const network_names[] = {
	[SPEC_NETWORK_NONE] = "none",
	[SPEC_NETWORK_HOST] = "host",
	[SPEC_NETWORK_PRIVATE] = "private",
};
_Static_assert(ARRAY_SIZE(network_names) == SPEC_NETWORK_COUNT, "network_names is complete");

const char *request_network_name(enum spec_network network)
{
	assert((unsigned int)network < SPEC_NETWORK_COUNT);
	return network_names[network];
}

int request_network_from_name(const char *name, enum spec_network *out_network)
{
	for (size_t i = 0; i < ARRAY_SIZE(network_names); i++) {
		if (str_eq(network_names[i], name)) {
			*out_network = (enum spec_network)i;
			return 0;
		}
	}
	return -EINVAL;
}

int request_set_network(struct sandbox_request *r, const char *text, struct error *e)
{
	if (request_network_from_name(text, &r->network) < 0) {
		(void)error_set(e, ERRC_INVALID, "%s: unknown network", text);
		return error_hint(e, "\"private\", \"none\" and \"host\" are known");
	}
	return 0;
}

int request_add_rule(struct sandbox_request *r, enum netpolicy_action action, const char *target,
		struct error *e)
{
	if (netpolicy_add(&r->policy, action, target, e) < 0) {
		return -1;
	}
	r->has_policy = true;
	return 0;
}

/* What a workload may hold without a hold over PID 1, the network rules or the kernel. In a user
 * namespace most of the others have no effect at all. */
static const uint64_t caps_holdable =
		CAPS_BIT(CAP_CHOWN) | CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_FOWNER) |
		CAPS_BIT(CAP_FSETID) | CAPS_BIT(CAP_KILL) | CAPS_BIT(CAP_NET_BIND_SERVICE) |
		CAPS_BIT(CAP_SETFCAP) | CAPS_BIT(CAP_SETGID) | CAPS_BIT(CAP_SETPCAP) |
		CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SYS_CHROOT) | CAPS_BIT(CAP_AUDIT_WRITE) |
		CAPS_BIT(CAP_IPC_LOCK) | CAPS_BIT(CAP_IPC_OWNER) | CAPS_BIT(CAP_LEASE) |
		CAPS_BIT(CAP_MKNOD) | CAPS_BIT(CAP_NET_RAW) | CAPS_BIT(CAP_SYS_NICE) |
		CAPS_BIT(CAP_SYS_RESOURCE);

static const struct {
	int cap;
	const char *reason;
} caps_refused[] = {
	{ CAP_SYS_ADMIN, "it could mount over what protects the sandbox" },
	{ CAP_SYS_PTRACE,
			"it could take over PID 1 (tracing the own processes needs no capability)" },
	{ CAP_NET_ADMIN, "it could change the sandbox's own network rules" },
	{ CAP_DAC_READ_SEARCH, "it opens files by handle, past every mount" },
};

static int cap_refuse(const char *name, int cap, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(caps_refused); i++) {
		if (caps_refused[i].cap == cap) {
			return error_set(e, ERRC_DENIED, "%s: no sandbox may hold it, %s", name,
					caps_refused[i].reason);
		}
	}
	return error_set(e, ERRC_DENIED,
			"%s: no sandbox may hold it, it means the whole machine or nothing", name);
}

int request_change_cap(struct sandbox_request *r, const char *name, bool add, struct error *e)
{
	if (strcasecmp(name, "all") == 0) {
		r->caps = add ? caps_holdable : 0;
		return 0;
	}
	int cap = caps_from_name(name);

	if (cap < 0) {
		(void)error_set(e, ERRC_INVALID, "%s: unknown capability", name);
		return error_hint(e,
				"names as in capabilities(7), for example CAP_NET_RAW or net_raw");
	}
	if (add && !(caps_holdable & CAPS_BIT(cap))) {
		return cap_refuse(name, cap, e);
	}
	r->caps = add ? r->caps | CAPS_BIT(cap) : r->caps & ~CAPS_BIT(cap);
	return 0;
}

int request_image_path(const char *image, char **out_path, struct error *e)
{
	AUTO(ref) struct ref ref = REF_INIT;

	if (ref_parse(image, &ref, e) < 0) {
		return -1;
	}
	*out_path = TAKE_PTR(ref.path);
	return 0;
}
