/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli - subcommands: argv to requests, results to text. One file a command or family; each gives
 * rows for the table in main.c.
 */
#ifndef OSBX_CLI_H
#define OSBX_CLI_H

#include <osbx/args.h>

extern const struct args_command cmd_run;    /* cmd_run.c */
extern const struct args_command cmd_load;   /* cmd_load.c */
extern const struct args_command cmd_images; /* cmd_images.c */
extern const struct args_command cmd_rmi;    /* cmd_images.c */
extern const struct args_command cmd_tag;    /* cmd_images.c */
extern const struct args_command cmd_save;   /* cmd_save.c */
extern const struct args_command cmd_gc;     /* cmd_gc.c */
extern const struct args_command cmd_unpack; /* cmd_hidden.c */

#endif
