/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * shown - text from outside as it may stand in an error: bounded, nothing a terminal could obey.
 */
#ifndef OSBX_EXECD_SHOWN_H
#define OSBX_EXECD_SHOWN_H

#include <osbx/str.h>

struct shown {
	char text[120];
};

static inline struct shown shown(const char *s)
{
	struct shown out;

	str_printable(s, out.text, sizeof(out.text));
	return out;
}

#endif
