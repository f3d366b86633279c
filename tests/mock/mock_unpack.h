/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock_unpack - stands in for the unpack helpers: verifies and copies blobs, makes empty
 * directories for layers, and counts what it was given.
 */
#ifndef OSBX_TESTS_MOCK_UNPACK_H
#define OSBX_TESTS_MOCK_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

struct mock_unpack {
	size_t calls;
	size_t read;   /* layers whose blob was read */
	size_t copied; /* of them into a copy */
	size_t made;   /* directories */
	bool fail;     /* the next call fails after it has read everything */
	/* Fills the directory that an archive is unpacked into. */
	int (*archive)(int dir_fd);
};

extern struct mock_unpack mock_unpack;

#endif
