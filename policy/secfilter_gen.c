/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secfilter_gen ARCH              C arrays of all built-in filters for a machine
 * secfilter_gen ARCH PROFILE      readable form of one of them
 */
#include <stdlib.h>
#include <string.h>

#include "secfilter_build.h"

static struct build_program program;

static void array_print(const struct filter_profile *profile, const struct build_arch *arch)
{
	build_program(profile, arch, &program);
	printf("static const struct sock_filter filter_%s[] = {\n", profile->name);
	for (size_t i = 0; i < program.n; i++) {
		const struct sock_filter *in = &program.insns[i];

		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", in->code, in->jt, in->jf, in->k);
	}
	printf("};\n");
}

int main(int argc, char **argv)
{
	const struct build_arch *arch = argc > 1 ? build_arch_find(argv[1]) : NULL;

	if (!arch || argc > 3) {
		fprintf(stderr, "usage: secfilter_gen x86_64|aarch64|riscv64 [PROFILE]\n");
		return EXIT_FAILURE;
	}
	if (argc == 2) {
		printf("/* Made by secfilter_gen from secfilter_tables.c for %s. */\n", arch->name);
	}
	for (size_t i = 0; i < filter_profiles_n; i++) {
		const struct filter_profile *profile = &filter_profiles[i];

		if (argc == 2) {
			array_print(profile, arch);
		} else if (strcmp(profile->name, argv[2]) == 0) {
			build_program(profile, arch, &program);
			build_print(&program, stdout);
			return EXIT_SUCCESS;
		}
	}
	return argc == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
