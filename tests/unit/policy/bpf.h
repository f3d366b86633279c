/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf - runs a syscall filter over a made-up system call, as the kernel would (classic BPF).
 */
#ifndef OSBX_TESTS_BPF_H
#define OSBX_TESTS_BPF_H

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <osbx/secfilter.h>

#include "../unit.h"

#if defined(__x86_64__)
#	define ARCH         AUDIT_ARCH_X86_64
#	define ARCH_FOREIGN AUDIT_ARCH_I386
#elif defined(__aarch64__)
#	define ARCH         AUDIT_ARCH_AARCH64
#	define ARCH_FOREIGN AUDIT_ARCH_ARM
#else
#	define ARCH         AUDIT_ARCH_RISCV64
#	define ARCH_FOREIGN AUDIT_ARCH_RISCV32
#endif

#define HIGH     (UINT64_C(1) << 32) /* a bit that the kernel does not look at */
#define ALLOW    SECCOMP_RET_ALLOW
#define KILL     SECCOMP_RET_KILL_PROCESS
#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))

/* What the kernel's checker demands, and what the kernel then does with it (classic BPF). */
static inline uint32_t bpf_run(const struct secfilter *f, const struct seccomp_data *data)
{
	uint32_t a = 0;
	size_t pc = 0;

	for (;;) {
		ck_assert_uint_lt(pc, f->n);
		const struct sock_filter *in = &f->insns[pc++];

		switch (in->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			ck_assert_uint_eq(in->k % 4, 0);
			ck_assert_uint_le(in->k + 4, sizeof(*data));
			memcpy(&a, (const char *)data + in->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= in->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += in->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == in->k ? in->jt : in->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= in->k ? in->jt : in->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > in->k ? in->jt : in->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += (a & in->k) != 0 ? in->jt : in->jf;
			break;
		case BPF_RET | BPF_K:
			return in->k;
		default:
			ck_abort_msg("instruction %#x", in->code);
		}
	}
}

#endif
