/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <osbx/buf.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/log.h>
#include <osbx/mem.h>

#include "secfilter_cache.h"

#define INSN_BYTES sizeof(struct sock_filter)
#define NAME_BYTES 32
#define FILE_BYTES (LIMIT_SECCOMP_JSON + 4096 + LIMIT_BPF_INSNS * INSN_BYTES)

/* FNV-1a, 64 bits. */
static void name_of(struct span key, char out[NAME_BYTES])
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < key.n; i++) {
		h = (h ^ (unsigned char)key.p[i]) * UINT64_C(0x100000001b3);
	}
	(void)snprintf(out, NAME_BYTES, "seccomp-%016" PRIx64, h);
}

bool cache_load(int dir_fd, struct span key, struct secfilter *out_f)
{
	AUTO(buf) struct buf b = BUF_INIT(FILE_BYTES);
	char name[NAME_BYTES];

	name_of(key, name);
	if (dir_fd < 0 || file_read_at(dir_fd, name, &b) < 0 ||
			!span_has_prefix(buf_span(&b), key)) {
		return false;
	}
	struct span program = span_from(buf_span(&b), key.n);
	size_t n = program.n / INSN_BYTES;

	if (n == 0 || n > LIMIT_BPF_INSNS || program.n % INSN_BYTES != 0) {
		return false;
	}
	struct sock_filter *insns = mem_array(n, INSN_BYTES);

	memcpy(insns, program.p, program.n);
	*out_f = (struct secfilter){ .insns = insns, .n = n, .owned = insns };
	return true;
}

void cache_save(int dir_fd, struct span key, const struct secfilter *f)
{
	AUTO(buf) struct buf b = BUF_INIT(FILE_BYTES);
	char name[NAME_BYTES];
	int r = buf_append(&b, key.p, key.n);

	if (dir_fd < 0) {
		return;
	}
	if (r == 0) {
		r = buf_append(&b, f->insns, f->n * INSN_BYTES);
	}
	name_of(key, name);
	if (r == 0) {
		r = file_write_at(dir_fd, name, buf_span(&b), false);
	}
	if (r < 0) {
		log_debug("syscall filter is not kept: %s", strerror(-r));
	}
}
