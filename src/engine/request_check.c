/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/request.h>
#include <osbx/str.h>

#define LETTERS_DIGITS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static int check_image(const struct sandbox_request *r, struct error *e)
{
	if (!r->image || r->image[0] == '\0') {
		return error_set(e, ERRC_INVALID, "no image given");
	}
	return 0;
}

static int check_command(const struct sandbox_request *r, struct error *e)
{
	if (r->command.n > 0 && r->command.v[0][0] == '\0' &&
			(!r->entrypoint || r->entrypoint[0] == '\0')) {
		return error_set(e, ERRC_INVALID, "the command is an empty string");
	}
	if (strv_bytes(&r->command) > LIMIT_ARGS_BYTES) {
		return error_set(e, ERRC_LIMIT, "command of more than %u bytes", LIMIT_ARGS_BYTES);
	}
	return 0;
}

static int check_name(const struct sandbox_request *r, struct error *e)
{
	if (!r->name) {
		return 0;
	}
	if (strlen(r->name) > LIMIT_NAME_BYTES) {
		return error_set(e, ERRC_INVALID, "name: longer than %d bytes", LIMIT_NAME_BYTES);
	}
	if (!str_is_made_of(r->name, LETTERS_DIGITS "_.-") || strchr("_.-", r->name[0])) {
		(void)error_set(e, ERRC_INVALID, "name \"%s\": not a name", r->name);
		return error_hint(e, "letters, digits, and behind the first of them also _ . -");
	}
	return 0;
}

/* RFC 1123, 2.1: labels of letters, digits and inner hyphens, up to 63 bytes each; and the
 * underscores that many names have all the same. */
static bool is_host_name(const char *s)
{
	while (true) {
		size_t n = strspn(s, LETTERS_DIGITS "_-");

		if (n == 0 || n > 63 || s[0] == '-' || s[n - 1] == '-') {
			return false;
		}
		if (s[n] == '\0') {
			return true;
		}
		if (s[n] != '.') {
			return false;
		}
		s += n + 1;
	}
}

static int check_hostname(const struct sandbox_request *r, struct error *e)
{
	if (!r->hostname) {
		return 0;
	}
	if (strlen(r->hostname) > LIMIT_NAME_BYTES) {
		return error_set(e, ERRC_INVALID, "hostname: longer than %d bytes",
				LIMIT_NAME_BYTES);
	}
	if (!is_host_name(r->hostname)) {
		(void)error_set(e, ERRC_INVALID, "hostname \"%s\": not a host name", r->hostname);
		return error_hint(e, "letters, digits, underscores and inner hyphens, at most 63 "
				     "of them between dots");
	}
	return 0;
}

static int check_workdir(const struct sandbox_request *r, struct error *e)
{
	if (r->workdir && r->workdir[0] != '/') {
		return error_set(e, ERRC_INVALID, "workdir \"%s\": not an absolute path",
				r->workdir);
	}
	if (r->workdir && strlen(r->workdir) >= LIMIT_PATH_BYTES) {
		return error_set(e, ERRC_LIMIT, "workdir: longer than %d bytes", LIMIT_PATH_BYTES);
	}
	return 0;
}

/* Names are resolved inside, by execd; here only what cannot be right in any image. */
static int check_user(const struct sandbox_request *r, struct error *e)
{
	if (r->user) {
		const char *colon = strchr(r->user, ':');

		if (r->user[0] == '\0' || r->user[0] == ':' ||
				(colon && (colon[1] == '\0' || strchr(colon + 1, ':')))) {
			(void)error_set(e, ERRC_INVALID,
					"user \"%s\": not of the form USER[:GROUP]", r->user);
			return error_hint(e, "names or numbers, for example app or 1000:1000");
		}
	}
	if (r->groups.n > LIMIT_GROUPS) {
		return error_set(e, ERRC_LIMIT, "more than %d additional groups", LIMIT_GROUPS);
	}
	strv_for_each(&r->groups, i) {
		if (r->groups.v[i][0] == '\0') {
			return error_set(e, ERRC_INVALID, "additional group: empty name");
		}
	}
	return 0;
}

static int check_labels(const struct sandbox_request *r, struct error *e)
{
	if (r->labels.n > LIMIT_LABELS) {
		return error_set(e, ERRC_LIMIT, "more than %d labels", LIMIT_LABELS);
	}
	strv_for_each(&r->labels, i) {
		const char *eq = strchr(r->labels.v[i], '=');

		if (!eq || eq == r->labels.v[i]) {
			return error_set(e, ERRC_INVALID, "label \"%s\": not of the form KEY=VALUE",
					r->labels.v[i]);
		}
	}
	return 0;
}

static int check_extensions(const struct sandbox_request *r, struct error *e)
{
	return r->extensions.n > LIMIT_LABELS
			       ? error_set(e, ERRC_LIMIT, "more than %d extensions", LIMIT_LABELS)
			       : 0;
}

static int check_platform(const struct sandbox_request *r, struct error *e)
{
	const char *arch = r->platform ? str_after(r->platform, "linux/") : NULL;

	if (r->platform &&
			(!arch || !str_is_made_of(arch, LETTERS_DIGITS "_-/") || arch[0] == '/')) {
		(void)error_set(e, ERRC_INVALID,
				"platform \"%s\": not of the form linux/ARCH[/VARIANT]",
				r->platform);
		return error_hint(e, "for example linux/arm64");
	}
	return 0;
}

static int destination_check(const char *dst, struct error *e)
{
	if (dst[0] != '/') {
		return error_set(e, ERRC_INVALID, "mount destination \"%s\": not an absolute path",
				dst);
	}
	if (strlen(dst) >= LIMIT_PATH_BYTES) {
		return error_set(e, ERRC_LIMIT, "mount destination: longer than %d bytes",
				LIMIT_PATH_BYTES);
	}
	autofree char *normal = path_normalise(dst);

	if (str_eq(normal, "/")) {
		return error_set(e, ERRC_INVALID, "mount destination \"%s\": the root itself", dst);
	}
	return 0;
}

/* Add to seen, or fail when another mount goes to the same place. */
static int destination_add(struct strv *seen, const char *dst, struct error *e)
{
	if (destination_check(dst, e) < 0) {
		return -1;
	}
	autofree char *normal = path_normalise(dst);

	strv_for_each(seen, i) {
		if (str_eq(seen->v[i], normal)) {
			return error_set(e, ERRC_INVALID, "mount destination %s: given twice",
					normal);
		}
	}
	if (strv_add(seen, normal) < 0) {
		return error_set(e, ERRC_LIMIT, "too many mounts");
	}
	return 0;
}

static int check_mounts(const struct sandbox_request *r, struct error *e)
{
	AUTO(strv) struct strv seen = STRV_INIT;

	for (size_t i = 0; i < r->volumes_n; i++) {
		if (destination_add(&seen, r->volumes[i].dst, e) < 0) {
			return -1;
		}
	}
	for (size_t i = 0; i < r->tmpfs_n; i++) {
		if (destination_add(&seen, r->tmpfs[i].dst, e) < 0) {
			return -1;
		}
	}
	return 0;
}

/* The bounds of the options, for what came as JSON. */
static int check_limits(const struct sandbox_request *r, struct error *e)
{
	const struct cgroup_limits *l = &r->limits;

	if (l->cpu_milli > LIMIT_CPU_MILLI_MAX ||
			(l->cpu_milli > 0 && l->cpu_milli < LIMIT_CPU_MILLI_MIN)) {
		return error_set(e, ERRC_INVALID, "limit of CPUs: not between 0.01 and %u",
				LIMIT_CPU_MILLI_MAX / 1000);
	}
	if (l->memory_bytes > LIMIT_MEMORY_MAX ||
			(l->memory_bytes > 0 && l->memory_bytes < LIMIT_MEMORY_MIN)) {
		return error_set(e, ERRC_INVALID, "limit of memory: less than 6m or too much");
	}
	if (l->pids > LIMIT_PIDS_MAX) {
		return error_set(e, ERRC_INVALID, "limit of processes: more than %u",
				LIMIT_PIDS_MAX);
	}
	return 0;
}

static bool is_same_outside(const struct port_map *a, const struct port_map *b)
{
	return a->outside != 0 && a->outside == b->outside && netaddr_eq(&a->addr, &b->addr);
}

static int check_ports(const struct sandbox_request *r, struct error *e)
{
	char text[PORTS_TEXT_MAX];

	if (r->ports_n > 0 && r->network == SPEC_NETWORK_HOST) {
		(void)error_set(e, ERRC_INVALID,
				"network host: no port of it can be published, all are the host's");
		return error_hint(e, "leave out -p, or choose another network");
	}
	for (size_t i = 0; i < r->ports_n; i++) {
		for (size_t k = 0; k < i; k++) {
			if (is_same_outside(&r->ports[i], &r->ports[k])) {
				ports_format_outside(&r->ports[i], text);
				return error_set(e, ERRC_INVALID, "port %s: given twice", text);
			}
		}
	}
	return 0;
}

static int check_network(const struct sandbox_request *r, struct error *e)
{
	if (r->network == SPEC_NETWORK_PRIVATE || (!r->has_policy && !r->any_name)) {
		return 0;
	}
	(void)error_set(e, ERRC_INVALID, "network %s: no policy is enforced there",
			request_network_name(r->network));
	return error_hint(e, "a policy needs the private network");
}

static int (*const checks[])(const struct sandbox_request *r, struct error *e) = {
	check_image,
	check_command,
	check_name,
	check_hostname,
	check_workdir,
	check_user,
	check_labels,
	check_extensions,
	check_platform,
	check_mounts,
	check_limits,
	check_ports,
	check_network,
};

int request_validate(const struct sandbox_request *r, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		if (checks[i](r, e) < 0) {
			return -1;
		}
	}
	return 0;
}
