/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include <osbx/compiler.h>

#include "pull_signals.h"

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };

void pull_signals_hold(struct pull_signals *s)
{
	struct sigaction sa;

	*s = (struct pull_signals){ .taken = 0 };
	(void)sigemptyset(&s->set);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++) {
		/* A blocked signal is kept even where it is ignored. */
		if (sigaction(ending[i], NULL, &sa) == 0 && sa.sa_handler != SIG_IGN) {
			(void)sigaddset(&s->set, ending[i]);
		}
	}
	s->is_held = sigprocmask(SIG_BLOCK, &s->set, &s->before) == 0;
}

bool pull_signals_look(struct pull_signals *s)
{
	const struct timespec at_once = { .tv_sec = 0 };

	if (s->is_held && s->taken == 0) {
		int signo = sigtimedwait(&s->set, NULL, &at_once);

		s->taken = signo > 0 ? signo : 0;
	}
	return s->taken != 0;
}

void pull_signals_release(struct pull_signals *s)
{
	if (!s->is_held) {
		return;
	}
	s->is_held = false;
	if (s->taken != 0) {
		(void)raise(s->taken);
	}
	(void)sigprocmask(SIG_SETMASK, &s->before, NULL);
}
