/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/path.h>
#include <osbx/str.h>

#include "auth.h"
#include "credential.h"

#define HELPER_NAME_MAX 128
#define KEY_SPELLINGS   8 /* more than credential_key knows */
/* What escapes and an indentation add to a file at most, and one more entry. */
#define WRITTEN_MAX ((size_t)2 * LIMIT_AUTH_FILE_BYTES)

void credential_buf_done(struct buf *b)
{
	if (b && b->p) {
		explicit_bzero(b->p, b->cap);
	}
	buf_done(b);
}

void credential_file_done(struct credential_file *f)
{
	if (f) {
		json_free_secret(TAKE_PTR(f->root));
	}
}

/* All bytes at once, so that growing leaves no copy behind. */
static int text_read(const char *path, struct buf *text)
{
	autoclose int fd = fd_open(path, O_RDONLY | O_NONBLOCK, 0);
	struct stat s;
	int r = 0;

	if (fd < 0) {
		return fd;
	}
	if (fstat(fd, &s) < 0) {
		return -errno;
	}
	if (!S_ISREG(s.st_mode)) {
		return -EINVAL;
	}
	r = buf_reserve(text, s.st_size > 0 ? (size_t)s.st_size : 0);
	return r < 0 ? r : fd_read_all(fd, text);
}

static bool is_blank(struct span text)
{
	return strspn(text.p, " \t\r\n") == text.n;
}

static int read_failed(const struct credential_place *place, int r, struct error *e)
{
	if (r == -EMSGSIZE) {
		return error_set(e, ERRC_LIMIT, "credentials in %s: it is larger than %u bytes",
				place->path, LIMIT_AUTH_FILE_BYTES);
	}
	if (r == -EINVAL) {
		return error_set(e, ERRC_INVALID, "credentials in %s: it is not a regular file",
				place->path);
	}
	error_sys(e, -r, "credentials in %s", place->path);
	return error_hint(e, "REGISTRY_AUTH_FILE names another file");
}

static int shape_check(const struct credential_file *f, struct error *e)
{
	static const char *const objects[] = { "auths", "credHelpers" };

	if (!json_is_object(f->root)) {
		return error_set(e, ERRC_INVALID, "credentials in %s: expected an object",
				f->place->path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		const struct json *member = json_get(f->root, objects[i]);

		if (member && !json_is_object(member)) {
			return error_set(e, ERRC_INVALID,
					"credentials in %s: %s: expected an object", f->place->path,
					objects[i]);
		}
	}
	return 0;
}

int credential_file_load(const struct credential_place *place, struct credential_file *out_file,
		struct error *e)
{
	AUTO(credential_buf) struct buf text = BUF_INIT(LIMIT_AUTH_FILE_BYTES);
	struct credential_file f = { .place = place };
	int r = text_read(place->path, &text);

	if (r < 0 && r != -ENOENT && r != -ENOTDIR) {
		return read_failed(place, r, e);
	}
	f.exists = r == 0;
	if (f.exists && !is_blank(buf_span(&text))) {
		f.root = json_parse(buf_span(&text), e);
		if (!f.root) {
			return error_wrap(e, "credentials in %s", place->path);
		}
	}
	if (f.root && shape_check(&f, e) < 0) {
		credential_file_done(&f);
		return -1;
	}
	*out_file = f;
	return 0;
}

static int helper_check(const struct credential_file *f, const char *name, struct error *e)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789._-";

	if (str_is_made_of(name, set) && strlen(name) <= HELPER_NAME_MAX) {
		return 0;
	}
	return error_set(e, ERRC_INVALID, "credentials in %s: that is no name of a helper",
			f->place->path);
}

int credential_file_helper(const struct credential_file *f, const char *domain,
		const char **out_helper, struct error *e)
{
	const struct json *helpers = json_get(f->root, "credHelpers");
	const char *name = NULL;

	for (size_t i = 0; !name && credential_key(domain, i); i++) {
		name = json_string(json_get(helpers, credential_key(domain, i)));
	}
	if (!name) {
		name = json_string(json_get(f->root, "credsStore"));
	}
	/* An empty one is no helper: it switches one off for a host. */
	if (name && name[0] == '\0') {
		name = NULL;
	}
	if (name && helper_check(f, name, e) < 0) {
		return -1;
	}
	*out_helper = name;
	return 0;
}

/* The part of a key that counts: "https://HOST/v1/" is HOST. */
static struct span key_core(const char *key)
{
	static const char *const schemes[] = { "https://", "http://" };
	static const char *const tails[] = { "/", "/v1", "/v2" };
	struct span core = span_of(key);

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (span_has_prefix(core, span_of(schemes[i]))) {
			core = span_from(core, strlen(schemes[i]));
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
		size_t n = strlen(tails[i]);

		if (core.n > n && memcmp(core.p + core.n - n, tails[i], n) == 0) {
			core.n -= n;
		}
	}
	return core;
}

/* Does core name domain, or something below it? *out_path is what follows the host. */
static bool core_is_of(struct span core, const char *domain, struct span *out_path)
{
	for (size_t i = 0; credential_key(domain, i); i++) {
		struct span host = key_core(credential_key(domain, i));

		if (span_has_prefix(core, host) && (core.n == host.n || core.p[host.n] == '/')) {
			*out_path = span_from(core, host.n);
			return true;
		}
	}
	return false;
}

/* Is path ("" or "/ns/…") the repository or above it? */
static bool path_covers(struct span path, const char *repository)
{
	struct span repo = span_of(repository ? repository : "");

	if (path.n == 0) {
		return true;
	}
	path = span_from(path, 1);
	return path.n > 0 && span_has_prefix(repo, path) &&
	       (repo.n == path.n || repo.p[path.n] == '/');
}

/* An entry for a domain as a whole. */
static bool is_whole(const char *key, const char *domain)
{
	struct span path = { .n = 0 };

	return core_is_of(key_core(key), domain, &path) && path.n == 0;
}

static const char *member_text(const struct json *entry, const char *name)
{
	const char *text = json_string(json_get(entry, name));

	return text && text[0] != '\0' ? text : NULL;
}

/* Docker leaves an empty entry where a helper keeps the secret. */
static bool is_filled(const struct json *entry)
{
	return member_text(entry, "auth") || member_text(entry, "identitytoken") ||
	       member_text(entry, "username");
}

/* More is better: a longer path, then a spelling that comes earlier. */
static size_t key_rank(const char *key, const char *domain, struct span path)
{
	size_t spelling = 0;

	while (credential_key(domain, spelling) && !str_eq(key, credential_key(domain, spelling))) {
		spelling++;
	}
	return path.n * KEY_SPELLINGS + (KEY_SPELLINGS - 1 - spelling);
}

/* The entry to use, or NULL. */
static const struct json *entry_find(
		const struct credential_file *f, const char *domain, const char *repository)
{
	const struct json *found = NULL;
	size_t best = 0;

	json_for_each(entry, json_get(f->root, "auths")) {
		const char *key = json_name(entry);
		struct span path = { .n = 0 };

		if (!key || !is_filled(entry) || !core_is_of(key_core(key), domain, &path) ||
				!path_covers(path, repository)) {
			continue;
		}
		if (!found || key_rank(key, domain, path) > best) {
			found = entry;
			best = key_rank(key, domain, path);
		}
	}
	return found;
}

bool credential_file_has(const struct credential_file *f, const char *domain)
{
	return entry_find(f, domain, NULL) != NULL;
}

static int digit_value(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

int credential_decode(const char *base64, char **out_text)
{
	size_t n = strlen(base64);
	AUTO(auth_secret) char *out = mem_array(n / 4 * 3 + 1, 1);
	size_t pad = n > 0 && base64[n - 1] == '=' ? 1 : 0;
	size_t out_n = 0;

	pad += pad == 1 && n > 1 && base64[n - 2] == '=' ? 1 : 0;
	if (n % 4 != 0) {
		return -EINVAL;
	}
	for (size_t i = 0; i < n; i += 4) {
		size_t skip = i + 4 == n ? pad : 0;
		unsigned int v = 0;

		for (size_t k = 0; k < 4; k++) {
			int d = k < 4 - skip ? digit_value(base64[i + k]) : 0;

			if (d < 0) {
				return -EINVAL;
			}
			v = v << 6 | (unsigned int)d;
		}
		for (size_t k = 0; k < 3 - skip; k++) {
			out[out_n++] = (char)(v >> (16 - 8 * k) & 0xff);
		}
	}
	/* Docker pads passwords with NULs; one in the middle would cut a secret short. */
	while (out_n > 0 && out[out_n - 1] == '\0') {
		out_n--;
	}
	if (memchr(out, '\0', out_n)) {
		return -EINVAL;
	}
	*out_text = TAKE_PTR(out);
	return 0;
}

static int entry_refuse(const struct credential_file *f, const struct json *entry, const char *what,
		struct error *e)
{
	char key[128];

	str_printable(json_name(entry), key, sizeof(key));
	return error_set(e, ERRC_INVALID, "credentials in %s: entry \"%s\": %s", f->place->path,
			key, what);
}

/* "user:password" of the member auth. */
static int entry_auth(const struct credential_file *f, const struct json *entry,
		struct credential *c, struct error *e)
{
	AUTO(auth_secret) char *text = NULL;
	const char *colon = NULL;

	if (credential_decode(member_text(entry, "auth"), &text) < 0) {
		return entry_refuse(f, entry, "auth is not base64 of USER:PASSWORD", e);
	}
	colon = strchr(text, ':');
	if (!colon || colon == text) {
		return entry_refuse(f, entry, "auth is not base64 of USER:PASSWORD", e);
	}
	c->user = mem_dup(text, (size_t)(colon - text));
	c->password = mem_strdup(colon + 1);
	return 0;
}

static int entry_take(const struct credential_file *f, const struct json *entry,
		struct credential *out_c, struct error *e)
{
	AUTO(credential) struct credential c = CREDENTIAL_INIT;

	if (member_text(entry, "auth")) {
		if (entry_auth(f, entry, &c, e) < 0) {
			return -1;
		}
	} else {
		c.user = mem_strdup(member_text(entry, "username"));
		c.password = mem_strdup(member_text(entry, "password"));
	}
	c.identity_token = mem_strdup(member_text(entry, "identitytoken"));
	if (!c.user) {
		c.user = mem_strdup(CREDENTIAL_TOKEN_USER);
	}
	if (!c.password && !c.identity_token) {
		return entry_refuse(f, entry, "it has no secret", e);
	}
	credential_done(out_c);
	*out_c = c;
	c = (struct credential)CREDENTIAL_INIT;
	return 0;
}

int credential_file_find(const struct credential_file *f, const char *domain,
		const char *repository, struct credential *out_c, struct error *e)
{
	const struct json *entry = entry_find(f, domain, repository);

	return entry ? entry_take(f, entry, out_c, e) : 0;
}

/* Names as they are written: auth.json has Docker Hub as docker.io. */
static const char *written_key(const struct credential_place *place, const char *domain)
{
	const char *key = credential_key(domain, 0);

	return !place->is_docker && !str_eq(key, domain) ? domain : key;
}

static void entry_write(struct json_writer *w, const char *key, const struct credential *c)
{
	json_object_begin(w, key);
	if (c->password) {
		AUTO(auth_secret) char *basic = auth_basic(c->user, c->password);

		json_add_string(w, "auth", str_after(basic, "Basic "));
	}
	if (c->identity_token) {
		json_add_string(w, "identitytoken", c->identity_token);
	}
	json_object_end(w);
}

/* The member auths without entries for the whole of domain. True if there was one. */
static bool auths_write(struct json_writer *w, const struct credential_file *f, const char *domain,
		const struct credential *c)
{
	bool dropped = false;

	json_object_begin(w, "auths");
	json_for_each(entry, json_get(f->root, "auths")) {
		if (is_whole(json_name(entry), domain)) {
			dropped = true;
		} else {
			json_add_value(w, json_name(entry), entry);
		}
	}
	if (c) {
		entry_write(w, written_key(f->place, domain), c);
	}
	json_object_end(w);
	return dropped;
}

/* The whole file anew. True if it differs. */
static bool root_write(struct json_writer *w, const struct credential_file *f, const char *domain,
		const struct credential *c)
{
	bool dropped = false;
	bool has_auths = false;

	json_object_begin(w, NULL);
	json_for_each(member, f->root) {
		if (str_eq(json_name(member), "auths")) {
			dropped = auths_write(w, f, domain, c);
			has_auths = true;
		} else {
			json_add_value(w, json_name(member), member);
		}
	}
	if (!has_auths && c) {
		(void)auths_write(w, f, domain, c);
	}
	json_object_end(w);
	return dropped || c;
}

static int newline(struct buf *out, unsigned int depth)
{
	int r = buf_append(out, "\n", 1);

	for (unsigned int i = 0; r == 0 && i < depth; i++) {
		r = buf_append(out, "\t", 1);
	}
	return r;
}

static bool is_bracket(struct span s, size_t i, const char *brackets)
{
	return i < s.n && (s.p[i] == brackets[0] || s.p[i] == brackets[1]);
}

/* The string that begins at i, up to its closing quote. */
static size_t string_len(struct span s, size_t i)
{
	size_t n = 1;

	while (i + n < s.n && s.p[i + n] != '"') {
		n += s.p[i + n] == '\\' ? 2 : 1;
	}
	return n + 1;
}

/* As Docker and podman write it: people read these files. */
static int indent(struct span compact, struct buf *out)
{
	unsigned int depth = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < compact.n;) {
		size_t n = compact.p[i] == '"' ? string_len(compact, i) : 1;
		bool opens = is_bracket(compact, i, "{[");

		if (is_bracket(compact, i, "}]")) {
			depth--;
			r = is_bracket(compact, i - 1, "{[") ? 0 : newline(out, depth);
		}
		r = r < 0 ? r : buf_append(out, compact.p + i, n);
		if (r == 0 && compact.p[i] == ':') {
			r = buf_append(out, " ", 1);
		}
		depth += opens ? 1 : 0;
		if (r == 0 && (compact.p[i] == ',' ||
					      (opens && !is_bracket(compact, i + 1, "}]")))) {
			r = newline(out, depth);
		}
		i += n;
	}
	return r < 0 ? r : buf_append(out, "\n", 1);
}

/* The directory of a place, locked against others who change the file; name is what to replace in
 * it. A link to the file is followed: it may stand in somebody's collection of such files. */
struct change {
	int dir_fd;
	char *path;
	const char *name;
};

static void change_done(struct change *ch)
{
	fd_close(&ch->dir_fd);
	free(ch->path);
}
AUTO_DEFINE(change, struct change, change_done);

/* 0 or -errno. */
static int change_begin(const struct credential_place *place, bool make, struct change *ch)
{
	autofree char *dir = NULL;
	int r = 0;

	ch->path = realpath(place->path, NULL);
	if (!ch->path) {
		ch->path = mem_strdup(place->path);
	}
	ch->name = path_last(ch->path);
	dir = mem_dup(ch->path, (size_t)(ch->name - ch->path));
	r = make ? file_mkdirs(dir, 0700) : 0;
	ch->dir_fd = r < 0 ? r : fd_open(dir, O_RDONLY | O_DIRECTORY, 0);
	if (ch->dir_fd < 0) {
		return ch->dir_fd;
	}
	do {
		r = flock(ch->dir_fd, LOCK_EX);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int credential_file_replace(const struct credential_place *place, const char *domain,
		const struct credential *c, bool *out_changed, struct error *e)
{
	AUTO(change) struct change ch = { .dir_fd = -1 };
	AUTO(credential_file) struct credential_file f = { .root = NULL };
	AUTO(credential_buf) struct buf compact = BUF_INIT(WRITTEN_MAX);
	AUTO(credential_buf) struct buf text = BUF_INIT(WRITTEN_MAX);
	struct json_writer w = JSON_WRITER(&compact);
	int r = change_begin(place, c != NULL, &ch);

	if (r == -ENOENT && !c) {
		*out_changed = false;
		return 0;
	}
	if (r < 0) {
		return error_sys(e, -r, "credentials in %s", place->path);
	}
	if (credential_file_load(place, &f, e) < 0) {
		return -1;
	}
	/* All at once, so that growing leaves no copy of a secret behind. */
	if (buf_reserve(&compact, WRITTEN_MAX) < 0 || buf_reserve(&text, WRITTEN_MAX) < 0) {
		return error_set(e, ERRC_INTERNAL, "credentials: no room");
	}
	*out_changed = root_write(&w, &f, domain, c);
	if (!*out_changed) {
		return 0;
	}
	if (w.failed || indent(buf_span(&compact), &text) < 0 || text.n > LIMIT_AUTH_FILE_BYTES) {
		return error_set(e, ERRC_LIMIT,
				"credentials in %s: it would be larger than %u bytes", place->path,
				LIMIT_AUTH_FILE_BYTES);
	}
	r = file_write_at(ch.dir_fd, ch.name, buf_span(&text), true);
	return r < 0 ? error_sys(e, -r, "write credentials to %s", place->path) : 0;
}
