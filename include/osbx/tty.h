/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * tty - the caller's terminal: raw mode that is always undone, size, colour.
 */
#ifndef OSBX_TTY_H
#define OSBX_TTY_H

#include <stdbool.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <osbx/compiler.h>

struct tty {
	int fd; /* -1: not in raw mode */
	struct termios saved;
};

/* Raw mode on fd, remembering what was. 0 or -errno. */
int tty_raw_start(struct tty *t, int fd) NONNULL(1) MUST_CHECK;
/* Undo; no effect when not started. Safe in any exit path. */
void tty_raw_stop(struct tty *t) NONNULL(1);
/* Window size of fd. 0 or -errno. */
int tty_size(int fd, struct winsize *out_ws) NONNULL(2) MUST_CHECK;
/* Colour wanted on fd: a terminal, NO_COLOR unset or empty, TERM not "dumb". */
bool tty_has_colour(int fd);

#endif
