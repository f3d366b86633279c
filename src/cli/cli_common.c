/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <unistd.h>

#include <osbx/clock.h>
#include <osbx/fd.h>
#include <osbx/log.h>
#include <osbx/sandbox.h>
#include <osbx/str.h>

#include "cli.h"

int cli_begin(struct error *e)
{
	int r = fd_sanitize();

	if (r < 0) {
		return error_sys(e, -r, "standard descriptors");
	}
	/* CVE-2020-5291: never act with rights that the caller has not. */
	if (geteuid() != getuid() || getegid() != getgid()) {
		(void)error_set(e, ERRC_DENIED, "osbx is installed set-user-ID or set-group-ID");
		return error_hint(e, "chmod ug-s the program; osbx needs no privileges");
	}
	return 0;
}

int cli_store_open(struct cli_store *cs, bool hold, struct error *e)
{
	if (dirs_open(&cs->dirs, e) < 0 || idmap_choose(&cs->map, e) < 0) {
		return -1;
	}
	cs->store = store_open(cs->dirs.root, e);
	if (!cs->store || store_settle_mode(cs->store, &cs->map, e) < 0) {
		return -1;
	}
	if (!hold) {
		return 0;
	}
	cs->hold_fd = store_hold(cs->store, LOCK_MODE_SHARED, e);
	if (cs->hold_fd < 0) {
		return -1;
	}
	/* Who holds no content is about to remove some, and sweeps as a whole. */
	sandbox_glance(&cs->dirs, &cs->map, (uint32_t)clock_boot_ms());
	return 0;
}

void cli_store_done(struct cli_store *cs)
{
	if (cs) {
		fd_close(&cs->hold_fd);
		store_free(TAKE_PTR(cs->store));
		dirs_done(&cs->dirs);
	}
}

int cli_fail(const struct error *e)
{
	log_print_error(e);
	return error_exit_status(e->code);
}

int cli_parse_tls_verify(int *out_verify, const char *value, struct error *e)
{
	if (!str_eq(value, "true") && !str_eq(value, "false")) {
		return error_set(e, ERRC_INVALID, "expected true or false");
	}
	*out_verify = str_eq(value, "true") ? 1 : 0;
	return 0;
}

int cli_print(const struct buf *text)
{
	struct error e = ERROR_INIT;
	struct span bytes = buf_span(text);
	int r = fd_write_all(STDOUT_FILENO, bytes.p, bytes.n);

	if (r < 0 && r != -EPIPE) {
		(void)error_sys(&e, -r, "write to standard output");
		return cli_fail(&e);
	}
	return 0;
}
