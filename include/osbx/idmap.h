/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: base
 * idmap - which user and group ids a user namespace of ours gets (user_namespaces(7)).
 *
 * Four modes, chosen by what the caller may do, never silently weaker than asked:
 *   mapped  root of the initial user namespace: own range per sandbox, id-mapped mounts
 *           (mount_setattr(2), overlay since Linux 5.19); layers on disk carry container ids
 *   shared  root where id-mapped mounts are refused or in a child user namespace: one range
 *   subid   an ordinary user with subordinate ids (subuid(5)), through newuidmap and newgidmap
 *   single  an ordinary user without them: container 0 is the caller, setgroups denied
 */
#ifndef OSBX_IDMAP_H
#define OSBX_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/span.h>

#define IDMAP_RANGES_MAX    8
#define IDMAP_SANDBOX_IDS   65536U
#define IDMAP_DEFAULT_FIRST 1879048192U /* 0x70000000, systemd's container range ends below */

enum idmap_mode {
	IDMAP_MAPPED,
	IDMAP_SHARED,
	IDMAP_SUBID,
	IDMAP_SINGLE,
	IDMAP_MODE_COUNT,
};

struct idmap_range {
	uint32_t inside;
	uint32_t outside;
	uint32_t count;
};

struct idmap {
	enum idmap_mode mode;
	bool helpers;   /* written by newuidmap and newgidmap */
	bool setgroups; /* false: "deny" is written first, setgroups(2) fails inside */
	size_t uids_n;
	size_t gids_n;
	struct idmap_range uids[IDMAP_RANGES_MAX];
	struct idmap_range gids[IDMAP_RANGES_MAX];
};

/* What the choice of a mode depends on. */
struct idmap_facts {
	uint32_t euid;
	uint32_t egid;
	uint64_t caps;  /* effective capabilities in this user namespace */
	bool initial;   /* this is the initial user namespace */
	bool setgroups; /* /proc/self/setgroups says "allow" */
	bool helpers;   /* newuidmap and newgidmap exist, and set-user-id programs take effect */
	struct span uid_map; /* of /proc/self */
	struct span gid_map;
	struct span subuid; /* of /etc; empty when there is none */
	struct span subgid;
	struct span passwd;
};

/* Name of a mode: the folder below layers/. */
const char *idmap_mode_name(enum idmap_mode mode);
/* Choose the mode and the map for this process. For IDMAP_MAPPED the map is left at
 * IDMAP_DEFAULT_FIRST: idmap_set_first moves it to a sandbox's own range. Reads /proc/self and
 * /etc/subuid, /etc/subgid (strictly; overlapping or too short entries are skipped); never starts
 * a program. ERRC_UNSUPPORTED with the blocker and remedy when no mode can work. */
int idmap_choose(struct idmap *out_map, struct error *e) MUST_CHECK NONNULL(1, 2);
/* The rules of idmap_choose: a pure function of the facts. */
int idmap_decide(const struct idmap_facts *facts, struct idmap *out_map, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Add to a pending error of clone, unshare or a map file what keeps this process from making user
 * namespaces, and its remedy, as far as the kernel's settings tell. Returns -1. */
int idmap_hint(struct error *e) NONNULL(1) MUST_CHECK;
/* The first id and number of ids that root may hand out: entry of "osbx" in /etc/subuid, else
 * IDMAP_DEFAULT_FIRST up to 4294901760. */
void idmap_root_range(uint32_t *out_first, uint32_t *out_count) NONNULL(1, 2);
/* Container ids 0..65535 become first..first+65535. */
void idmap_set_first(struct idmap *map, uint32_t first) NONNULL(1);
/* Is this the initial user namespace (inode PROC_USER_INIT_INO of nsfs)? */
bool idmap_is_initial_userns(void);
/* Write the maps of pid, a child that waits in its new user namespace: directly, or by starting
 * newuidmap and newgidmap at once (2.2 ms each), with a deadline and their exit status checked.
 * The child must be dumpable (PR_SET_DUMPABLE), else its map files are not ours to write. */
int idmap_write(const struct idmap *map, pid_t pid, struct error *e) MUST_CHECK NONNULL(1, 3);
/* The same in two halves, for who has something to do while the helpers run: begin starts them,
 * and does nothing where the maps are written directly; end waits, or writes what is in map then,
 * and frees the writer. Without end, free waits for the helpers too. */
struct idmap_writer;
struct idmap_writer *idmap_write_begin(
		const struct idmap *map, pid_t pid, struct error *e) MUST_CHECK NONNULL(1, 3);
int idmap_write_end(struct idmap_writer *w, struct error *e) MUST_CHECK NONNULL(1, 2);
void idmap_writer_free(struct idmap_writer *w);
AUTO_DEFINE_PTR(idmap_writer, struct idmap_writer, idmap_writer_free);
/* A user namespace with this map, held only by the returned descriptor (for MOUNT_ATTR_IDMAP and
 * setns). Owned by the caller. */
int idmap_userns_open(const struct idmap *map, int *out_userns_fd, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* Outside id of an inside id, or UINT32_MAX when it has none. */
uint32_t idmap_outside(const struct idmap_range *ranges, size_t n, uint32_t inside) NONNULL(1);

#endif
