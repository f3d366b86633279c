/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * config - osbx.conf(5): /etc/osbx/osbx.conf, and for an ordinary user ~/.config/osbx/osbx.conf
 * over it; OSBX_CONFIG names one file instead of both.
 */
#ifndef OSBX_CONFIG_H
#define OSBX_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/registry.h>
#include <osbx/spec.h>
#include <osbx/strv.h>

struct config {
	bool limits_best_effort;   /* [sandbox] limits=enforce|best-effort */
	enum spec_network network; /* [sandbox] network= */
	uint32_t ids_first;        /* [ids] range=FIRST-LAST; 0: idmap_root_range */
	uint32_t ids_count;
	char *deny_webhook;                /* [network] deny_webhook=, or NULL */
	uint64_t unpack_max;               /* [store] unpack_max= */
	struct registry_config registries; /* [registry "HOST"] … */
	int64_t timeout_max_ms;            /* [sandbox] timeout_max=; of the API; 0: none */
	struct strv serve_listen;          /* [serve] listen=, words */
	struct strv serve_host_paths;      /* [serve] host_paths=, words, absolute */
	char *serve_key_file;              /* [serve] api_key_file=, or NULL */
	int64_t serve_create_wait_ms;      /* [serve] create_wait=; -1: not said */
	uint64_t serve_sandboxes_max;      /* [serve] max_sandboxes=; 0: none */
};

/* Defaults. */
void config_init(struct config *c) NONNULL(1);
void config_done(struct config *c);
AUTO_DEFINE(config, struct config, config_done);
/* Read the files. Missing files are defaults; costs two failed opens then. */
int config_load(struct config *out_config, struct error *e) MUST_CHECK NONNULL(1, 2);

#endif
