/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli - subcommands: argv to requests, results to text. One file a command or family; each gives
 * rows for the table in main.c.
 */
#ifndef OSBX_CLI_CLI_H
#define OSBX_CLI_CLI_H

#include <osbx/args.h>
#include <osbx/buf.h>
#include <osbx/dirs.h>
#include <osbx/error.h>
#include <osbx/idmap.h>
#include <osbx/store.h>

extern const struct args_command cmd_run;               /* cmd_run.c */
extern const struct args_command cmd_ps;                /* cmd_ps.c */
extern const struct args_command cmd_inspect;           /* cmd_inspect.c */
extern const struct args_command cmd_port;              /* cmd_port.c */
extern const struct args_command cmd_events;            /* cmd_events.c */
extern const struct args_command cmd_logs;              /* cmd_logs.c */
extern const struct args_command cmd_exec;              /* cmd_exec.c */
extern const struct args_command cmd_code;              /* cmd_code.c */
extern const struct args_command cmd_cp;                /* cmd_cp.c */
extern const struct args_command cmd_stats;             /* cmd_stats.c */
extern const struct args_command cmd_wait;              /* cmd_wait.c */
extern const struct args_command cmd_stop;              /* cmd_stop.c */
extern const struct args_command cmd_kill;              /* cmd_stop.c */
extern const struct args_command cmd_rm;                /* cmd_stop.c */
extern const struct args_command cmd_pause;             /* cmd_stop.c */
extern const struct args_command cmd_resume;            /* cmd_stop.c */
extern const struct args_command cmd_renew;             /* cmd_stop.c */
extern const struct args_command cmd_policy;            /* cmd_policy.c */
extern const struct args_command cmd_load;              /* cmd_load.c */
extern const struct args_command cmd_images;            /* cmd_images.c */
extern const struct args_command cmd_pull;              /* cmd_pull.c */
extern const struct args_command cmd_login;             /* cmd_login.c */
extern const struct args_command cmd_logout;            /* cmd_login.c */
extern const struct args_command cmd_rmi;               /* cmd_rmi.c */
extern const struct args_command cmd_tag;               /* cmd_rmi.c */
extern const struct args_command cmd_save;              /* cmd_save.c */
extern const struct args_command cmd_gc;                /* cmd_gc.c */
extern const struct args_command cmd_doctor;            /* cmd_doctor.c */
extern const struct args_command cmd_completion;        /* cmd_completion.c */
extern const struct args_command cmd_version;           /* cmd_version.c */
extern const struct args_command cmd_keeper;            /* cmd_keeper.c */
extern const struct args_command cmd_netd;              /* cmd_netd.c */
extern const struct args_command cmd_unpack;            /* cmd_hidden.c */
extern const struct args_command cmd_serve;             /* cmd_serve.c */
extern const struct args_command cmd_scope;             /* cmd_hidden.c */
extern const struct args_command cmd_fetch, cmd_notify; /* cmd_hidden.c */

/* All of them, in the order of the help (main.c). */
extern const struct args_command *const cli_commands[];
extern const size_t cli_commands_n;

/* What every command about images needs: directories, the caller's id mode, the open store. */
struct cli_store {
	struct dirs dirs;
	struct idmap map;
	struct store *store;
	int hold_fd; /* store_hold, -1 if not asked for */
};

#define CLI_STORE_INIT                            \
	{                                         \
		.dirs = DIRS_INIT, .hold_fd = -1, \
	}

/* Open all of it; hold takes the store's content shared. */
int cli_store_open(struct cli_store *cs, bool hold, struct error *e) MUST_CHECK NONNULL(1, 3);
void cli_store_done(struct cli_store *cs);
AUTO_DEFINE(cli_store, struct cli_store, cli_store_done);

/* First in each main: standard descriptors that are open, no rights that the caller has not. */
int cli_begin(struct error *e) MUST_CHECK NONNULL(1);
/* Print the error and give its exit status. */
int cli_fail(const struct error *e) NONNULL(1);
/* Write a finished document or text to standard output; exit status 0, or 125 with a message. */
int cli_print(const struct buf *text) NONNULL(1);
/* "osbx VERSION" for scripts; exit status. */
int cli_version_print(void);
/* The value of --tls-verify: 1 or 0. */
int cli_parse_tls_verify(int *out_verify, const char *value, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Free content that neither an image nor a sandbox refers to. */
int cli_collect(struct cli_store *cs, struct error *e) MUST_CHECK NONNULL(1, 2);

#endif
