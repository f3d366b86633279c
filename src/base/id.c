/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <osbx/id.h>

static const char hex_digits[] = "0123456789abcdef";

/* x: a digit, 4: the version, v: the variant, 8 to b (RFC 9562, 5.4). */
static const char id_form[] = "xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx";
_Static_assert(sizeof(id_form) == ID_LEN + 1, "id_form is complete");

static void random_bytes(unsigned char *p, size_t n)
{
	while (n > 0) {
		ssize_t r = getrandom(p, n, 0);

		if (r < 0 && errno == EINTR) {
			continue;
		}
		if (r <= 0) {
			/* An id that is not random would be somebody else's. */
			abort();
		}
		p += r;
		n -= (size_t)r;
	}
}

void id_new(struct id *out_id)
{
	unsigned char raw[ID_LEN];

	random_bytes(raw, sizeof(raw));
	for (size_t i = 0; i < ID_LEN; i++) {
		switch (id_form[i]) {
		case 'x':
			out_id->text[i] = hex_digits[raw[i] & 15U];
			break;
		case 'v':
			out_id->text[i] = hex_digits[8 + (raw[i] & 3U)];
			break;
		default:
			out_id->text[i] = id_form[i];
			break;
		}
	}
	out_id->text[ID_LEN] = '\0';
}

bool id_is_valid(const char *text)
{
	for (size_t i = 0; i < ID_LEN; i++) {
		const char *digit = text[i] ? strchr(hex_digits, text[i]) : NULL;

		switch (id_form[i]) {
		case 'x':
			if (!digit) {
				return false;
			}
			break;
		case 'v':
			if (!digit || digit - hex_digits < 8 || digit - hex_digits > 11) {
				return false;
			}
			break;
		default:
			if (text[i] != id_form[i]) {
				return false;
			}
			break;
		}
	}
	return text[ID_LEN] == '\0';
}

void id_short(const struct id *id, char *out)
{
	memcpy(out, id->text, 8);
	memcpy(out + 8, id->text + 9, 4);
	out[12] = '\0';
}

void id_random_hex(char *out, size_t n)
{
	/* The raw bytes stand in the upper half, which is written after it was read. */
	unsigned char *raw = (unsigned char *)out + n;

	random_bytes(raw, n);
	for (size_t i = 0; i < n; i++) {
		unsigned char byte = raw[i];

		out[2 * i] = hex_digits[byte >> 4];
		out[2 * i + 1] = hex_digits[byte & 15U];
	}
	out[2 * n] = '\0';
}
