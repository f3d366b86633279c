/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/ref.h>
#include <osbx/span.h>
#include <osbx/str.h>

#define REF_HUB          "docker.io"
#define REF_HUB_ALIAS    "index.docker.io"
#define REF_HUB_OFFICIAL "library/"
#define REF_DEFAULT_TAG  "latest"

/* Bounds of the distribution grammar. */
#define REF_NAME_MAX 255
#define REF_TAG_MAX  128
#define REF_PORT_MAX 5

static const char ref_grammar[] = "NAME[:TAG][@DIGEST], oci:DIR[:TAG], oci-archive:FILE[:TAG], "
				  "docker-archive:FILE[:NAME[:TAG]], dir:ROOTFS or @host";

struct ref_prefix {
	const char *prefix;
	enum ref_transport transport;
};

static const struct ref_prefix ref_prefixes[] = {
	{ "oci:", REF_OCI },
	{ "oci-archive:", REF_OCI_ARCHIVE },
	{ "docker-archive:", REF_DOCKER_ARCHIVE },
	{ "dir:", REF_DIR },
};

/* Transports of other tools, with the way that leads here. */
struct ref_foreign {
	const char *prefix;
	const char *hint;
};

static const struct ref_foreign ref_foreigns[] = {
	{ "docker://", "write the name without docker://" },
	{ "docker-daemon:", "docker save -o FILE NAME, then docker-archive:FILE" },
	{ "containers-storage:", "podman save --format oci-archive -o FILE NAME, then "
				 "oci-archive:FILE" },
};

void ref_done(struct ref *r)
{
	if (!r) {
		return;
	}
	free(r->path);
	free(r->domain);
	free(r->repository);
	free(r->tag);
	*r = (struct ref)REF_INIT;
}

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
	return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool has_upper(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] >= 'A' && s.p[i] <= 'Z') {
			return true;
		}
	}
	return false;
}

/* Length of the separator at the start of s: one of . _ __ or a run of dashes; else 0. */
static size_t separator_len(struct span s)
{
	size_t n = 0;

	if (s.p[0] == '.') {
		return 1;
	}
	if (s.p[0] == '_') {
		return s.n > 1 && s.p[1] == '_' ? 2 : 1;
	}
	while (n < s.n && s.p[n] == '-') {
		n++;
	}
	return n;
}

static bool component_is_valid(struct span s)
{
	for (;;) {
		size_t n = 0;

		while (n < s.n && is_lower_alnum(s.p[n])) {
			n++;
		}
		if (n == 0 || n == s.n) {
			return n > 0;
		}
		s = span_from(s, n);
		n = separator_len(s);
		if (n == 0) {
			return false;
		}
		s = span_from(s, n);
	}
}

static bool repository_is_valid(struct span s)
{
	struct span part = { 0 };

	while (span_next(&s, '/', &part)) {
		if (!component_is_valid(part)) {
			return false;
		}
	}
	return true;
}

static bool host_label_is_valid(struct span s)
{
	if (s.n == 0 || !is_alnum(s.p[0]) || !is_alnum(s.p[s.n - 1])) {
		return false;
	}
	for (size_t i = 0; i < s.n; i++) {
		if (!is_alnum(s.p[i]) && s.p[i] != '-') {
			return false;
		}
	}
	return true;
}

static bool host_is_valid(struct span s)
{
	struct span label = { 0 };

	while (span_next(&s, '.', &label)) {
		if (!host_label_is_valid(label)) {
			return false;
		}
	}
	return true;
}

/* "[v6]" at the start of s: its length, else 0. */
static size_t host6_len(struct span s)
{
	size_t n = 1;

	while (n < s.n && (isxdigit((unsigned char)s.p[n]) || s.p[n] == ':')) {
		n++;
	}
	return n > 2 && n < s.n && s.p[n] == ']' ? n + 1 : 0;
}

static bool port_is_valid(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9') {
			return false;
		}
	}
	return s.n > 0 && s.n <= REF_PORT_MAX;
}

static bool domain_is_valid(struct span s)
{
	size_t n = 0;

	if (s.n > 0 && s.p[0] == '[') {
		n = host6_len(s);
		if (n == 0) {
			return false;
		}
	} else {
		while (n < s.n && s.p[n] != ':') {
			n++;
		}
		if (!host_is_valid((struct span){ .p = s.p, .n = n })) {
			return false;
		}
	}
	s = span_from(s, n);
	return s.n == 0 || (s.p[0] == ':' && port_is_valid(span_from(s, 1)));
}

static bool tag_is_valid(struct span s)
{
	if (s.n == 0 || s.n > REF_TAG_MAX || s.p[0] == '.' || s.p[0] == '-') {
		return false;
	}
	for (size_t i = 0; i < s.n; i++) {
		if (!is_alnum(s.p[i]) && !strchr("_.-", s.p[i])) {
			return false;
		}
	}
	return true;
}

/* A first component that names a registry (Docker's rule; upper case cannot be a repository). */
static bool is_domain(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '.' || s.p[i] == ':') {
			return true;
		}
	}
	return span_eq(s, span_of("localhost")) || has_upper(s);
}

static struct span span_until(struct span s, const char *end)
{
	return (struct span){ .p = s.p, .n = (size_t)(end - s.p) };
}

/* name is "[DOMAIN/]REPOSITORY". */
static int name_parse(struct span name, struct ref *r, struct error *e)
{
	const char *slash = name.n > 0 ? memchr(name.p, '/', name.n) : NULL;
	struct span domain = span_of(REF_HUB);
	struct span repository = name;
	bool official = false;

	if (slash && is_domain(span_until(name, slash))) {
		domain = span_until(name, slash);
		repository = span_from(name, domain.n + 1);
		if (!domain_is_valid(domain)) {
			return error_set(e, ERRC_INVALID, "registry \"%.*s\" is not valid",
					(int)domain.n, domain.p);
		}
	}
	if (span_eq(domain, span_of(REF_HUB_ALIAS))) {
		domain = span_of(REF_HUB);
	}
	if (!repository_is_valid(repository)) {
		return has_upper(repository)
				       ? error_set(e, ERRC_INVALID,
							 "repository name must be lower case")
				       : error_set(e, ERRC_INVALID, "repository name is not valid");
	}
	official = span_eq(domain, span_of(REF_HUB)) && !memchr(repository.p, '/', repository.n);
	r->no_domain = repository.p == name.p;
	r->no_namespace = official && r->no_domain;
	r->domain = span_dup(domain);
	r->repository = mem_printf("%s%.*s", official ? REF_HUB_OFFICIAL : "", (int)repository.n,
			repository.p);
	if (strlen(r->domain) + strlen(r->repository) + 1 > REF_NAME_MAX) {
		return error_set(e, ERRC_INVALID, "name is longer than %d bytes", REF_NAME_MAX);
	}
	return 0;
}

static int digest_part_parse(const char *text, struct digest *out_d, struct error *e)
{
	int r = digest_parse(text, out_d);

	if (r == -ENOTSUP) {
		return error_set(e, ERRC_UNSUPPORTED, "only sha256 digests are supported");
	}
	if (r < 0) {
		return error_set(e, ERRC_INVALID,
				"digest is not sha256: and 64 lower-case "
				"hexadecimal digits");
	}
	return 0;
}

/* "NAME[:TAG][@DIGEST]". */
static int named_parse(const char *text, struct ref *r, struct error *e)
{
	struct span name = span_of(text);
	const char *at = strchr(text, '@');
	const char *colon = NULL;
	const char *slash = NULL;

	if (at) {
		if (digest_part_parse(at + 1, &r->digest, e) < 0) {
			return -1;
		}
		name = span_until(name, at);
	}
	slash = memrchr(name.p, '/', name.n);
	colon = memrchr(name.p, ':', name.n);
	if (colon && (!slash || colon > slash)) {
		struct span tag = span_from(name, (size_t)(colon - name.p) + 1);

		if (!tag_is_valid(tag)) {
			return error_set(e, ERRC_INVALID, "tag is not valid");
		}
		r->tag = span_dup(tag);
		name = span_until(name, colon);
	}
	if (name_parse(name, r, e) < 0) {
		return -1;
	}
	if (!r->tag && !at) {
		r->tag = mem_strdup(REF_DEFAULT_TAG);
	}
	return 0;
}

/* "sha256:HEX" or HEX alone, as tables print them. */
static bool bare_digest_parse(const char *text, struct ref *r)
{
	autofree char *full = NULL;

	if (strlen(text) == DIGEST_HEX_LEN) {
		full = mem_printf("sha256:%s", text);
		text = full;
	}
	return digest_parse(text, &r->digest) == 0;
}

static int path_take(struct span path, struct ref *r, struct error *e)
{
	if (path.n == 0) {
		return error_set(e, ERRC_INVALID, "the path is missing");
	}
	if (path.n >= LIMIT_PATH_BYTES) {
		return error_set(e, ERRC_INVALID, "the path is longer than %d bytes",
				LIMIT_PATH_BYTES - 1);
	}
	r->path = span_dup(path);
	return 0;
}

static int layout_tag_take(const char *tag, struct ref *r, struct error *e)
{
	if (tag[0] == '\0' || strlen(tag) > LIMIT_REF_BYTES) {
		return error_set(e, ERRC_INVALID, "the tag is empty or longer than %d bytes",
				LIMIT_REF_BYTES);
	}
	for (const char *p = tag; *p; p++) {
		if (!isgraph((unsigned char)*p)) {
			return error_set(e, ERRC_INVALID, "the tag holds blanks or control bytes");
		}
	}
	r->tag = mem_strdup(tag);
	return 0;
}

/* What stands behind the path of an archive of docker save. */
static int archive_name_take(const char *name, struct ref *r, struct error *e)
{
	if (named_parse(name, r, e) < 0) {
		return -1;
	}
	if (r->digest.text[0]) {
		return error_set(e, ERRC_INVALID, "an archive's image is named without a digest");
	}
	return 0;
}

/* Behind the prefix of a transport: the path ends at the first colon, as skopeo has it. */
static int transport_parse(const char *rest, struct ref *r, struct error *e)
{
	const char *colon = r->transport == REF_DIR ? NULL : strchr(rest, ':');
	struct span path = colon ? span_until(span_of(rest), colon) : span_of(rest);

	if (path_take(path, r, e) < 0) {
		return -1;
	}
	if (!colon) {
		return 0;
	}
	return r->transport == REF_DOCKER_ARCHIVE ? archive_name_take(colon + 1, r, e)
						  : layout_tag_take(colon + 1, r, e);
}

static int foreign_refuse(const char *text, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(ref_foreigns); i++) {
		if (str_after(text, ref_foreigns[i].prefix)) {
			error_set(e, ERRC_INVALID, "%s is a transport of other tools",
					ref_foreigns[i].prefix);
			return error_hint(e, "%s", ref_foreigns[i].hint);
		}
	}
	return 0;
}

static int text_parse(const char *text, struct ref *r, struct error *e)
{
	if (text[0] == '\0') {
		return error_set(e, ERRC_INVALID, "it is empty");
	}
	if (str_eq(text, "@host")) {
		r->transport = REF_HOST;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(ref_prefixes); i++) {
		const char *rest = str_after(text, ref_prefixes[i].prefix);

		if (rest) {
			r->transport = ref_prefixes[i].transport;
			return transport_parse(rest, r, e);
		}
	}
	if (foreign_refuse(text, e) < 0) {
		return -1;
	}
	if (strlen(text) > LIMIT_REF_BYTES) {
		return error_set(e, ERRC_INVALID, "it is longer than %d bytes", LIMIT_REF_BYTES);
	}
	return bare_digest_parse(text, r) ? 0 : named_parse(text, r, e);
}

int ref_parse(const char *text, struct ref *out_ref, struct error *e)
{
	AUTO(ref) struct ref r = REF_INIT;

	if (text_parse(text, &r, e) < 0) {
		char shown[128];

		str_printable(text, shown, sizeof(shown));
		error_wrap(e, "image reference \"%s\"", shown);
		return error_hint(e, "%s", ref_grammar);
	}
	*out_ref = r;
	r = (struct ref)REF_INIT;
	return 0;
}

char *ref_full_name(const struct ref *r)
{
	if (!r->repository) {
		return NULL;
	}
	return r->tag ? mem_printf("%s/%s:%s", r->domain, r->repository, r->tag)
		      : mem_printf("%s/%s@%s", r->domain, r->repository, r->digest.text);
}

/* "oci:1" is an image of the Hub, and would be taken for a transport. */
static bool reads_as(const char *shown, const char *full_name)
{
	AUTO(ref) struct ref r = REF_INIT;
	struct error ignored = ERROR_INIT;
	autofree char *full = NULL;

	if (ref_parse(shown, &r, &ignored) < 0) {
		return false;
	}
	full = ref_full_name(&r);
	return full && str_eq(full, full_name);
}

char *ref_familiar(const char *full_name)
{
	const char *rest = str_after(full_name, REF_HUB "/");
	const char *official = rest ? str_after(rest, REF_HUB_OFFICIAL) : NULL;

	if (official && reads_as(official, full_name)) {
		return mem_strdup(official);
	}
	return mem_strdup(rest && reads_as(rest, full_name) ? rest : full_name);
}
