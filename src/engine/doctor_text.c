/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include <osbx/clock.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "doctor_internal.h"

#define TEXT_MAX (32U << 10)
/* What no shell looks at twice. */
#define PLAIN_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+:@%,-"

/* A word as a shell wants it. */
static char *shell_word(const char *s)
{
	AUTO(buf) struct buf out = BUF_INIT(TEXT_MAX);
	int r = 0;

	if (str_is_made_of(s, PLAIN_BYTES)) {
		return mem_strdup(s);
	}
	r = buf_append_str(&out, "'");
	for (; *s != '\0' && r == 0; s++) {
		r = *s == '\'' ? buf_append_str(&out, "'\\''") : buf_append(&out, s, 1);
	}
	return r == 0 && buf_append_str(&out, "'") == 0 ? buf_take(&out) : mem_strdup("''");
}

/* In the middle of a quoted program there is no quoting: an odd path is named by its place. */
static char *value_exe(const struct doctor_facts *f)
{
	return mem_strdup(str_is_made_of(f->exe, PLAIN_BYTES) ? f->exe : "/PATH/TO/osbx");
}

static char *value_user(const struct doctor_facts *f)
{
	return f->user[0] != '\0' ? shell_word(f->user) : mem_printf("%u", f->uid);
}

static char *value_sudo(const struct doctor_facts *f)
{
	return mem_strdup(f->uid == 0 ? "" : "sudo ");
}

static char *value_release(const struct doctor_facts *f)
{
	return shell_word(f->uts.release);
}

static char *value_root(const struct doctor_facts *f)
{
	return shell_word(f->store.path);
}

static char *value_runtime(const struct doctor_facts *f)
{
	return shell_word(f->runtime.path);
}

static char *value_fs(const struct doctor_facts *f)
{
	char name[DOCTOR_WORD_MAX];

	doctor_fs_name(f->store.type, name);
	return mem_strdup(name);
}

static char *value_free(const struct doctor_facts *f)
{
	char size[32];

	str_from_size(f->store.free_bytes, size, sizeof(size));
	return mem_strdup(size);
}

static char *value_runtime_fs(const struct doctor_facts *f)
{
	char name[DOCTOR_WORD_MAX];

	doctor_fs_name(f->runtime.type, name);
	return mem_strdup(name);
}

static char *value_first(const struct doctor_facts *f)
{
	return mem_printf("%u", f->subids_free);
}

static char *value_last(const struct doctor_facts *f)
{
	return mem_printf("%llu", (unsigned long long)f->subids_free + IDMAP_SANDBOX_IDS - 1);
}

static char *value_helper(const struct doctor_facts *f)
{
	const struct doctor_helper *h = &f->helpers[0];
	bool first_is_bad = !h->privileged || h->on_nosuid;

	return shell_word(f->helpers[first_is_bad ? 0 : 1].path);
}

static char *value_uids(const struct doctor_facts *f)
{
	return mem_printf("%llu", (unsigned long long)f->subids[0].count);
}

static char *value_gids(const struct doctor_facts *f)
{
	return mem_printf("%llu", (unsigned long long)f->subids[1].count);
}

static char *value_overlaps(const struct doctor_facts *f)
{
	return mem_strdup(f->subids[0].overlaps[0] ? f->subids[0].overlaps : f->subids[1].overlaps);
}

static char *value_label(const struct doctor_facts *f)
{
	return mem_strdup(f->apparmor_label);
}

static char *value_limit(const struct doctor_facts *f)
{
	return mem_strdup(f->zero_limit);
}

static char *value_mask(const struct doctor_facts *f)
{
	return mem_strdup(f->proc_mask);
}

static char *value_container(const struct doctor_facts *f)
{
	return mem_strdup(f->container[0] ? f->container : "an outer container");
}

static char *value_ids(const struct doctor_facts *f)
{
	char text[ERROR_TEXT_MAX + 64];

	error_render(&f->map_error, text, sizeof(text));
	return mem_strdup(text);
}

static char *value_network(const struct doctor_facts *f)
{
	char text[ERROR_TEXT_MAX + 128];

	error_render(&f->net_error, text, sizeof(text));
	return mem_strdup(text);
}

/* The first call that is refused. */
static char *value_call(const struct doctor_facts *f)
{
	for (size_t i = 0; i < DOCTOR_PROBE_COUNT; i++) {
		if (f->probes[i] != 0) {
			return mem_strdup(doctor_probe_name((enum doctor_probe)i));
		}
	}
	return mem_strdup("a system call");
}

static char *value_clock(const struct doctor_facts *f)
{
	char text[CLOCK_RFC3339_MAX];

	clock_rfc3339(f->wall_ms, text, sizeof(text));
	return mem_strdup(text);
}

static char *value_controllers(const struct doctor_facts *f)
{
	AUTO(buf) struct buf out = BUF_INIT(256);

	(void)doctor_controllers_missing(f, &out);
	return buf_take(&out);
}

/* What is missing, and what of it. */
static char *libraries_list(const struct doctor_facts *f, bool packages)
{
	AUTO(buf) struct buf out = BUF_INIT(TEXT_MAX);
	int r = 0;

	for (size_t i = 0; i < f->features_n && r == 0; i++) {
		const struct feature *lib = &f->features[i];

		if (lib->found) {
			continue;
		}
		r = packages ? buf_appendf(&out, "%s%s", out.n > 0 ? " " : "", lib->package)
			     : buf_appendf(&out, "%s%s is missing: %s", out.n > 0 ? "; " : "",
					       lib->soname, lib->without);
	}
	return buf_take(&out);
}

static char *value_libraries(const struct doctor_facts *f)
{
	return libraries_list(f, false);
}

static char *value_packages(const struct doctor_facts *f)
{
	return libraries_list(f, true);
}

static const struct {
	const char *name;
	char *(*get)(const struct doctor_facts *f);
} values[] = {
	{ "call", value_call },
	{ "clock", value_clock },
	{ "container", value_container },
	{ "controllers", value_controllers },
	{ "exe", value_exe },
	{ "libraries", value_libraries },
	{ "packages", value_packages },
	{ "first", value_first },
	{ "free", value_free },
	{ "fs", value_fs },
	{ "gids", value_gids },
	{ "helper", value_helper },
	{ "ids", value_ids },
	{ "network", value_network },
	{ "label", value_label },
	{ "last", value_last },
	{ "limit", value_limit },
	{ "mask", value_mask },
	{ "overlaps", value_overlaps },
	{ "release", value_release },
	{ "root", value_root },
	{ "runtime", value_runtime },
	{ "runtime_fs", value_runtime_fs },
	{ "sudo", value_sudo },
	{ "uids", value_uids },
	{ "user", value_user },
};

/* The value of the name at s, which is n bytes long, or NULL. Caller frees. */
static char *value_find(const struct doctor_facts *f, const char *s, size_t n)
{
	const struct span name = { .p = s, .n = n };

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (span_eq(name, span_of(values[i].name))) {
			return values[i].get(f);
		}
	}
	return NULL;
}

char *doctor_text(const char *text, const struct doctor_facts *f)
{
	AUTO(buf) struct buf out = BUF_INIT(TEXT_MAX);
	int r = 0;

	while (*text != '\0' && r == 0) {
		size_t plain = strcspn(text, "{");

		r = buf_append(&out, text, plain);
		text += plain;
		if (*text == '\0' || r < 0) {
			break;
		}
		const char *end = strchr(text, '}');
		autofree char *value =
				end ? value_find(f, text + 1, (size_t)(end - text - 1)) : NULL;

		/* Else it is a brace of the text. */
		r = value ? buf_append_str(&out, value) : buf_append(&out, text, 1);
		text = value ? end + 1 : text + 1;
	}
	return buf_take(&out);
}
