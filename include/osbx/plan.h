/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * plan - from a request and an image to what the runtime and execd are told. Pure functions of
 * their input: whatever must be looked up on the host is looked up before.
 *
 * Precedence: request, then image, then defaults.
 */
#ifndef OSBX_PLAN_H
#define OSBX_PLAN_H

#include <stddef.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/execd_proto.h>
#include <osbx/id.h>
#include <osbx/idmap.h>
#include <osbx/image.h>
#include <osbx/request.h>
#include <osbx/spec.h>

#define PLAN_HOST_LOWER   "host-1"   /* skeleton of @host below layers/MODE, with its version */
#define PLAN_POINTS_LOWER "points-1" /* mount points of all images, likewise */

/* All borrowed. */
struct plan_input {
	const struct sandbox_request *req;
	const struct image *img;
	const struct id *id;
	const struct idmap *map;
	const char *layers;      /* ROOT/layers/MODE */
	const char *record;      /* ROOT/sandboxes/ID */
	const int *volume_fds;   /* O_PATH, one each of req->volumes; NULL without volumes */
	const char *resolv_conf; /* the host's, with its network; else NULL */
	const char *hosts;       /* likewise */
	const char *term;        /* the caller's TERM with a terminal, or NULL */
};

/* The main process: argv, env, cwd, user, groups, capabilities. ERRC_INVALID when neither request
 * nor image has a command, or it is an empty string. */
int plan_process(const struct plan_input *in, struct execd_process *out_process,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3);
/* Trees, lower directories, ids, host name and the mounts osbx adds itself (resolv.conf, hosts,
 * hostname, and with a read-only root its tmpfs). Descriptors for launch are left to the caller. */
int plan_spec(const struct plan_input *in, struct spec *out_spec, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Add the request's own mounts to spec, drop those of osbx that lie where the request wants
 * something else, and order all by depth, so that none hides another. */
int plan_mounts(const struct plan_input *in, struct spec *spec, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Is what is mounted at path, or nearest above it, a tmpfs of the sandbox? By the paths' text. */
bool plan_is_in_tmpfs(const struct plan_input *in, const char *path) NONNULL(1, 2);
/* Signal number of an image's StopSignal ("SIGTERM", "TERM", "15", "SIGRTMIN+3"); SIGTERM for NULL
 * and for what is none. */
int plan_stop_signal(const char *text);
/* Content of resolv.conf in a private network: its resolver, and in comments what may go out and
 * how to ask for more, for whoever wonders inside. Caller frees. */
char *plan_resolv_conf(const struct sandbox_request *req, const struct id *id) MUST_CHECK
		NONNULL(1, 2);
/* Default host name of a sandbox into out (LIMIT_NAME_BYTES + 1 bytes): the request's, else the
 * beginning of the id. */
void plan_hostname(const struct sandbox_request *req, const struct id *id, char *out)
		NONNULL(1, 2, 3);

#endif
