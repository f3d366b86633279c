/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ASCII form of a host name: punycode (RFC 3492) behind a small case folding.
 *
 * No library is used: libidn2 brings libunistring and its tables (2 MiB), and netd is a static
 * program that is there once for each sandbox. So this is not all of IDNA 2008: the scripts that
 * have case in domain names are folded, and what a full implementation would map, reorder or refuse
 * beyond that (combining marks, joiners, compatibility forms) is refused. Such a name can be given
 * in its "xn--" form, which is also what programs ask a resolver for.
 */
#include <errno.h>
#include <string.h>

#include <osbx/netpolicy.h>

#define LABEL_MAX      63
#define TEXT_BYTES_MAX 1024

/* RFC 3492 section 5. */
#define PUNY_BASE         36U
#define PUNY_T_MIN        1U
#define PUNY_T_MAX        26U
#define PUNY_SKEW         38U
#define PUNY_DAMP         700U
#define PUNY_BIAS_INITIAL 72U
#define PUNY_FIRST        0x80U

struct fold {
	uint32_t first, last;
	uint8_t stride; /* 2: only every other one, capitals and small letters alternate */
	int16_t delta;
};

static const struct fold folds[] = {
	{ 0x00c0, 0x00d6, 1, 32 }, /* Latin-1 */
	{ 0x00d8, 0x00de, 1, 32 },
	{ 0x0100, 0x012e, 2, 1 }, /* Latin Extended-A */
	{ 0x0132, 0x0136, 2, 1 },
	{ 0x0139, 0x0147, 2, 1 },
	{ 0x014a, 0x0176, 2, 1 },
	{ 0x0178, 0x0178, 1, -121 },
	{ 0x0179, 0x017d, 2, 1 },
	{ 0x0386, 0x0386, 1, 38 }, /* Greek */
	{ 0x0388, 0x038a, 1, 37 },
	{ 0x038c, 0x038c, 1, 64 },
	{ 0x038e, 0x038f, 1, 63 },
	{ 0x0391, 0x03a1, 1, 32 },
	{ 0x03a3, 0x03ab, 1, 32 },
	{ 0x0400, 0x040f, 1, 80 }, /* Cyrillic */
	{ 0x0410, 0x042f, 1, 32 },
	{ 0x0460, 0x0480, 2, 1 },
	{ 0x048a, 0x04be, 2, 1 },
	{ 0x04c0, 0x04c0, 1, 15 },
	{ 0x04c1, 0x04cd, 2, 1 },
	{ 0x04d0, 0x052e, 2, 1 },
	{ 0x0531, 0x0556, 1, 48 }, /* Armenian */
	{ 0x1e00, 0x1e94, 2, 1 },  /* Latin Extended Additional */
	{ 0x1ea0, 0x1efe, 2, 1 },
};

/* What has no place in a name, or cannot be brought to one form here. */
static const struct {
	uint32_t first, last;
} refused[] = {
	{ 0x0080, 0x00a0 },    /* controls, no-break space */
	{ 0x00ad, 0x00ad },    /* soft hyphen */
	{ 0x0130, 0x0130 },    /* two letters when it is small */
	{ 0x017f, 0x017f },    /* long s */
	{ 0x0300, 0x036f },    /* combining marks: one letter has two forms */
	{ 0x1e95, 0x1e9f },    /* with capital sharp s */
	{ 0x1f00, 0x1fff },    /* Greek with many marks */
	{ 0x2000, 0x206f },    /* spaces, joiners, directions */
	{ 0x2100, 0x218f },    /* letter-like symbols, numerals: compatibility forms */
	{ 0x2460, 0x24ff },    /* letters in circles */
	{ 0x3000, 0x3001 },    /* ideographic space and comma */
	{ 0xd800, 0xf8ff },    /* surrogates, private use */
	{ 0xfb00, 0xfb4f },    /* ligatures */
	{ 0xfdd0, 0xfdef },    /* no characters */
	{ 0xfe00, 0xfe0f },    /* variants */
	{ 0xfeff, 0xfeff },    /* byte order mark */
	{ 0xff5f, 0xffff },    /* half-width forms, no characters */
	{ 0x1d400, 0x1d7ff },  /* mathematical letters */
	{ 0xe0000, 0x10ffff }, /* tags, variants, private use */
};

static bool is_dot(uint32_t c)
{
	/* IDNA 2003's other full stops: Chinese and Japanese keyboards have them. */
	return c == '.' || c == 0x3002 || c == 0xff0e || c == 0xff61;
}

/* The one form of a character, or 0: it has no place in a name. */
static uint32_t fold(uint32_t c)
{
	if (c > 0xff00 && c < 0xff5f) {
		c -= 0xfee0; /* full-width ASCII */
	}
	if (c < 0x80) {
		if (c >= 'A' && c <= 'Z') {
			return c - 'A' + 'a';
		}
		return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ? c
												: 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (c >= refused[i].first && c <= refused[i].last) {
			return 0;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(folds); i++) {
		const struct fold *f = &folds[i];

		if (c >= f->first && c <= f->last && (c - f->first) % f->stride == 0) {
			return (uint32_t)((int32_t)c + f->delta);
		}
	}
	return c;
}

/* Next character of text that is valid UTF-8. */
static uint32_t next_char(struct span *text)
{
	const uint8_t first = (uint8_t)text->p[0];
	const size_t n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	uint32_t c = n == 1 ? first : first & (0xffU >> (n + 1));

	for (size_t i = 1; i < n; i++) {
		c = c << 6 | ((uint8_t)text->p[i] & 0x3f);
	}
	*text = span_from(*text, n);
	return c;
}

static uint32_t puny_adapt(uint32_t delta, uint32_t points, bool is_first)
{
	uint32_t k = 0;

	delta = is_first ? delta / PUNY_DAMP : delta / 2;
	delta += delta / points;
	for (; delta > (PUNY_BASE - PUNY_T_MIN) * PUNY_T_MAX / 2; k += PUNY_BASE) {
		delta /= PUNY_BASE - PUNY_T_MIN;
	}
	return k + (PUNY_BASE - PUNY_T_MIN + 1) * delta / (delta + PUNY_SKEW);
}

struct label {
	char text[LABEL_MAX];
	size_t n;
};

static int label_put(struct label *l, char c)
{
	if (l->n == LABEL_MAX) {
		return -EINVAL;
	}
	l->text[l->n++] = c;
	return 0;
}

/* A number in digits of variable weight, RFC 3492 section 3.3. */
static int puny_number(struct label *l, uint32_t q, uint32_t bias)
{
	for (uint32_t k = PUNY_BASE;; k += PUNY_BASE) {
		const uint32_t t = k <= bias + PUNY_T_MIN   ? PUNY_T_MIN
				   : k >= bias + PUNY_T_MAX ? PUNY_T_MAX
							    : k - bias;
		const uint32_t digit = q < t ? q : t + (q - t) % (PUNY_BASE - t);

		if (label_put(l, (char)(digit < 26 ? 'a' + digit : '0' + digit - 26)) < 0) {
			return -EINVAL;
		}
		if (q < t) {
			return 0;
		}
		q = (q - t) / (PUNY_BASE - t);
	}
}

struct puny {
	uint32_t delta;
	uint32_t bias;
	uint32_t handled; /* characters that are in the output */
	uint32_t basic;   /* of them, the ASCII ones */
};

/* All characters below c are handled: insert those that are c. */
static int puny_pass(struct puny *s, const uint32_t *chars, size_t n, uint32_t c, struct label *l)
{
	for (size_t i = 0; i < n; i++) {
		s->delta += chars[i] < c;
		if (chars[i] != c) {
			continue;
		}
		if (puny_number(l, s->delta, s->bias) < 0) {
			return -EINVAL;
		}
		s->bias = puny_adapt(s->delta, s->handled + 1, s->handled == s->basic);
		s->delta = 0;
		s->handled++;
	}
	return 0;
}

/* At most LABEL_MAX characters: delta stays below 64 * 0x110000. */
static int puny_encode(struct label *l, const uint32_t *chars, size_t n)
{
	struct puny s = { .bias = PUNY_BIAS_INITIAL };
	uint32_t from = PUNY_FIRST;

	for (size_t i = 0; i < n; i++) {
		if (chars[i] >= PUNY_FIRST) {
			continue;
		}
		if (label_put(l, (char)chars[i]) < 0) {
			return -EINVAL;
		}
		s.handled++;
	}
	s.basic = s.handled;
	if (s.basic > 0 && label_put(l, '-') < 0) {
		return -EINVAL;
	}
	while (s.handled < n) {
		uint32_t least = UINT32_MAX;

		for (size_t i = 0; i < n; i++) {
			if (chars[i] >= from && chars[i] < least) {
				least = chars[i];
			}
		}
		s.delta += (least - from) * (s.handled + 1);
		if (puny_pass(&s, chars, n, least, l) < 0) {
			return -EINVAL;
		}
		s.delta++;
		from = least + 1;
	}
	return 0;
}

static int encode_label(const uint32_t *chars, size_t n, struct label *out)
{
	static const char mark[] = "xn--";
	bool is_ascii = true;

	if (n == 0 || chars[0] == '-' || chars[n - 1] == '-') {
		return -EINVAL;
	}
	for (size_t i = 0; i < n; i++) {
		is_ascii = is_ascii && chars[i] < 0x80;
	}
	out->n = 0;
	if (is_ascii) {
		for (size_t i = 0; i < n; i++) {
			out->text[out->n++] = (char)chars[i];
		}
		return 0;
	}
	if (n >= 4 && chars[2] == '-' && chars[3] == '-') {
		return -EINVAL;
	}
	memcpy(out->text, mark, sizeof(mark) - 1);
	out->n = sizeof(mark) - 1;
	return puny_encode(out, chars, n);
}

/* A number to inet_aton, which would take the name for an address? */
static bool is_number(const struct label *l)
{
	const bool is_hex = l->n >= 2 && l->text[0] == '0' && l->text[1] == 'x';

	for (size_t i = is_hex ? 2 : 0; i < l->n; i++) {
		const char c = l->text[i];

		if (!(c >= '0' && c <= '9') && !(is_hex && c >= 'a' && c <= 'f')) {
			return false;
		}
	}
	return true;
}

int netpolicy_name(struct span text, char out[NETPOLICY_NAME_MAX + 1])
{
	char name[NETPOLICY_NAME_MAX + 1] = { 0 };
	uint32_t chars[LABEL_MAX];
	struct label label = { .n = 0 };
	size_t name_n = 0;
	size_t n = 0;

	if (text.n == 0 || text.n > TEXT_BYTES_MAX || !span_is_utf8(text)) {
		return -EINVAL;
	}
	for (bool is_end = false; !is_end;) {
		const uint32_t c = text.n > 0 ? next_char(&text) : '.';

		if (!is_dot(c)) {
			const uint32_t folded = fold(c);

			if (folded == 0 || n == LABEL_MAX) {
				return -EINVAL;
			}
			chars[n++] = folded;
			continue;
		}
		if (encode_label(chars, n, &label) < 0 ||
				name_n + (name_n > 0) + label.n > NETPOLICY_NAME_MAX) {
			return -EINVAL;
		}
		if (name_n > 0) {
			name[name_n++] = '.';
		}
		memcpy(name + name_n, label.text, label.n);
		name_n += label.n;
		n = 0;
		is_end = text.n == 0;
	}
	if (is_number(&label)) {
		return -EINVAL;
	}
	memcpy(out, name, name_n + 1);
	return 0;
}
