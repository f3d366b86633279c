/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pax.h - a header of a tar stream, for its reader (pax_read.c) and its writer (pax_write.c).
 */
#ifndef OSBX_BASE_PAX_H
#define OSBX_BASE_PAX_H

#include <stddef.h>
#include <stdint.h>

#define PAX_BLOCK     512U
#define PAX_OCTAL_MAX 077777777777ULL /* eleven digits */
#define PAX_IDS_MAX   07777777U       /* seven digits */

struct pax_header {
	char name[100];
	char mode[8];
	char uid[8];
	char gid[8];
	char size[12];
	char mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6];
	char version[2];
	char user[32];
	char group[32];
	char major[8];
	char minor[8];
	char prefix[155];
	char padding[12];
};
_Static_assert(sizeof(struct pax_header) == PAX_BLOCK, "a header is one block");

/* The sum of its bytes, those of the checksum itself counted as blanks. */
static inline unsigned int pax_checksum(const struct pax_header *h)
{
	const unsigned char *p = (const unsigned char *)h;
	const size_t from = offsetof(struct pax_header, checksum);
	unsigned int sum = 0;

	for (size_t i = 0; i < sizeof(*h); i++) {
		sum += i >= from && i < from + sizeof(h->checksum) ? ' ' : p[i];
	}
	return sum;
}

#endif
