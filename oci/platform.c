/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <osbx/mem.h>
#include <osbx/span.h>
#include <osbx/str.h>

#include "platform.h"

#define VARIANT_MAX   64
#define SCORE_NO_ARCH 1
#define SCORE_BASE    10

#if defined(__x86_64__)
#	define MACHINE "amd64"
#elif defined(__aarch64__)
#	define MACHINE "arm64"
#elif defined(__arm__)
#	define MACHINE "arm"
#elif defined(__i386__)
#	define MACHINE "386"
#elif defined(__riscv) && __riscv_xlen == 64
#	define MACHINE "riscv64"
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#	define MACHINE "ppc64le"
#elif defined(__s390x__)
#	define MACHINE "s390x"
#elif defined(__loongarch64)
#	define MACHINE "loong64"
#else
#	error "which GOARCH is this machine?"
#endif

/* An armv6 build serves the smallest machine it runs on. */
#if defined(__arm__) && __ARM_ARCH == 6
#	define MACHINE_VARIANT "v6"
#else
#	define MACHINE_VARIANT ""
#endif

struct platform_alias {
	const char *name;
	const char *architecture;
	const char *variant;
};

static const struct platform_alias platform_aliases[] = {
	{ "x86_64", "amd64", "" },
	{ "x86-64", "amd64", "" },
	{ "aarch64", "arm64", "" },
	{ "armhf", "arm", "v7" },
	{ "armv7l", "arm", "v7" },
	{ "armel", "arm", "v6" },
	{ "i386", "386", "" },
	{ "i686", "386", "" },
	{ "loongarch64", "loong64", "" },
};

/* What an absent variant means. */
struct platform_default {
	const char *architecture;
	unsigned int variant;
};

static const struct platform_default platform_defaults[] = {
	{ "amd64", 1 },
	{ "arm64", 8 },
	{ "arm", 7 },
};

static int word_take(struct span word, char *out)
{
	if (word.n == 0 || word.n > PLATFORM_WORD_MAX) {
		return -1;
	}
	for (size_t i = 0; i < word.n; i++) {
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789._-", word.p[i]) ||
				word.p[i] == '\0') {
			return -1;
		}
	}
	memcpy(out, word.p, word.n);
	out[word.n] = '\0';
	return 0;
}

/* NULL: none of uname(2)'s words. */
static const struct platform_alias *alias_find(const char *architecture)
{
	for (size_t i = 0; i < ARRAY_SIZE(platform_aliases); i++) {
		if (str_eq(architecture, platform_aliases[i].name)) {
			return &platform_aliases[i];
		}
	}
	return NULL;
}

static void alias_resolve(struct platform_wish *w)
{
	const struct platform_alias *a = alias_find(w->architecture);

	if (!a) {
		return;
	}
	(void)word_take(span_of(a->architecture), w->architecture);
	if (!w->variant[0] && a->variant[0]) {
		(void)word_take(span_of(a->variant), w->variant);
	}
}

const char *platform_architecture(const char *text)
{
	const struct platform_alias *a = alias_find(text);

	return a ? a->architecture : text;
}

static int words_parse(const char *text, struct platform_wish *w)
{
	char *const words[] = { w->os, w->architecture, w->variant };
	struct span rest = span_of(text);
	struct span word = { 0 };
	size_t n = 0;

	while (span_next(&rest, '/', &word)) {
		if (n == ARRAY_SIZE(words) || word_take(word, words[n]) < 0) {
			return -1;
		}
		n++;
	}
	return n >= 2 ? 0 : -1;
}

int platform_parse(const char *text, struct platform_wish *out_wish, struct error *e)
{
	struct platform_wish w = { .variant = "" };

	if (!text) {
		*out_wish = (struct platform_wish){
			.os = "linux",
			.architecture = MACHINE,
			.variant = MACHINE_VARIANT,
		};
		return 0;
	}
	if (words_parse(text, &w) < 0) {
		error_set(e, ERRC_INVALID, "platform \"%.64s\" is not os/arch[/variant]", text);
		return error_hint(e, "for example linux/arm64 or linux/arm/v7");
	}
	if (!str_eq(w.os, "linux")) {
		return error_set(e, ERRC_UNSUPPORTED, "platform %s: only linux images can run",
				text);
	}
	alias_resolve(&w);
	*out_wish = w;
	return 0;
}

/* The number of a variant "v7" or "v8.2" (its first part); 0 if it is none. */
static unsigned int variant_number(const char *architecture, const char *variant)
{
	uint64_t number = 0;
	size_t digits = 0;
	autofree char *text = NULL;

	if (!variant || !variant[0]) {
		for (size_t i = 0; i < ARRAY_SIZE(platform_defaults); i++) {
			if (str_eq(architecture, platform_defaults[i].architecture)) {
				return platform_defaults[i].variant;
			}
		}
		return 0;
	}
	if (variant[0] != 'v') {
		return 0;
	}
	digits = strspn(variant + 1, "0123456789");
	if (variant[1 + digits] != '\0' && variant[1 + digits] != '.') {
		return 0;
	}
	text = mem_dup(variant + 1, digits);
	return str_to_u64(text, VARIANT_MAX, &number) == 0 ? (unsigned int)number : 0;
}

unsigned int platform_score(const struct platform_wish *wish, const struct platform *p)
{
	const struct platform_alias *a = p->architecture ? alias_find(p->architecture) : NULL;
	const char *variant = p->variant ? p->variant : "";
	unsigned int wanted = 0;
	unsigned int have = 0;

	if (p->os && p->os[0] && !str_eq(p->os, wish->os)) {
		return 0;
	}
	if (!p->architecture || !p->architecture[0]) {
		return SCORE_NO_ARCH;
	}
	if (!str_eq(platform_architecture(p->architecture), wish->architecture)) {
		return 0;
	}
	if (a && !variant[0]) {
		variant = a->variant;
	}
	wanted = variant_number(wish->architecture, wish->variant);
	have = variant_number(wish->architecture, variant);
	if (wanted == 0 || have == 0) {
		return str_eq(wish->variant, variant) ? SCORE_BASE + VARIANT_MAX : 0;
	}
	return have <= wanted ? SCORE_BASE + VARIANT_MAX - (wanted - have) : 0;
}

char *platform_text(const char *os, const char *architecture, const char *variant)
{
	bool has_variant = variant && variant[0];

	return mem_printf("%s/%s%s%s", os && os[0] ? os : "linux",
			architecture && architecture[0] ? architecture : "unknown",
			has_variant ? "/" : "", has_variant ? variant : "");
}
