/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: runtime
 * spec - everything the runtime needs to make one sandbox: paths, ids, bytes, descriptors.
 *
 * The runtime knows neither images nor policy: engine/plan.c turns a request and an image into a
 * spec. Strings and vectors are owned by the spec; descriptors are borrowed.
 */
#ifndef OSBX_SPEC_H
#define OSBX_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/id.h>
#include <osbx/idmap.h>

/* How a tree of the host appears inside. Only IDMAP_MAPPED makes a difference: the parent then
 * clones the tree and id-maps it; in all other modes the child opens the path itself. */
enum spec_tree_ids {
	SPEC_TREE_AS_IS,     /* no id-mapping */
	SPEC_TREE_CONTAINER, /* carries container ids on disk: the sandbox's own map */
	SPEC_TREE_OWNER,     /* a volume: container root is the owner of the source directory */
	SPEC_TREE_IDS_COUNT,
};

struct spec_tree {
	char *path; /* absolute, on the host, links followed */
	enum spec_tree_ids ids;
	bool recursive;    /* with the mounts below it */
	bool ids_optional; /* id-mapping may be refused (files then belong to nobody): @host */
	/* Opened by the engine when it checked the source, so that what is mounted is what was
	 * checked; -1: open path. O_PATH. Borrowed. */
	int fd;
};

/* A read-only directory below the overlay. */
struct spec_lower {
	uint32_t tree;
	char *path; /* beneath the tree; "" for the tree itself */
};

enum spec_mount_kind {
	SPEC_MOUNT_BIND,  /* a tree */
	SPEC_MOUNT_TMPFS, /* new tmpfs of size bytes (0: kernel's default), mode */
	SPEC_MOUNT_FILE,  /* a small file with these bytes (resolv.conf, hosts, hostname) */
	SPEC_MOUNT_DIR,   /* no mount: a directory that is made if nothing is there */
	SPEC_MOUNT_KIND_COUNT,
};

struct spec_mount {
	enum spec_mount_kind kind;
	char *dst;      /* absolute inside; created beneath the root without leaving it */
	uint32_t tree;  /* BIND */
	char *path;     /* BIND: beneath the tree; "" for the tree itself */
	bool read_only; /* recursive, submounts included */
	bool exec_ok;   /* TMPFS: without noexec */
	uint64_t size;  /* TMPFS */
	mode_t mode;    /* TMPFS, FILE */
	char *content;  /* FILE: NUL-terminated text */
};

enum spec_network {
	SPEC_NETWORK_NONE,    /* own namespace, loopback up */
	SPEC_NETWORK_HOST,    /* the host's; /sys is then a read-only bind of the host's */
	SPEC_NETWORK_PRIVATE, /* own namespace; launch_ops.attach_net gives it a way out */
	SPEC_NETWORK_COUNT,
};

struct spec {
	struct id id;
	char *hostname; /* at most 64 bytes */
	enum spec_network network;
	struct idmap map;
	size_t trees_n;
	struct spec_tree
			*trees; /* [0]: layers/, [1]: the sandbox's directory with upper and work */
	size_t lowers_n;
	struct spec_lower *lowers; /* lowest first; at least one */
	size_t mounts_n;
	struct spec_mount *mounts; /* in order, after the built-in ones */
	bool read_only;            /* root read-only once everything is mounted */
	/* upper is thrown away at the end: nothing of it is ever synced to disk (fsync(2) does
	 * nothing inside). upper and work must be new: overlay refuses to take them twice. */
	bool is_ephemeral;
	bool tty;           /* the main process has a terminal, the first one of the sandbox */
	bool isolation;     /* procfs unmasked, CAP_SYS_ADMIN for PID 1 */
	uint64_t shm_bytes; /* size of /dev/shm; 0: 64 MiB */
	int cgroup_fd;      /* own cgroup directory to be born in, or -1 */
	int execd_fd;       /* sealed memfd of execd */
	int config_fd;      /* memfd of an encoded struct execd_config */
	int64_t timeout_ms; /* for the whole launch */
};

/* Zero values, descriptors -1, timeout 30 s. */
void spec_init(struct spec *s) NONNULL(1);
void spec_done(struct spec *s);
AUTO_DEFINE(spec, struct spec, spec_done);
/* Append a tree (path is copied); returns its index. */
uint32_t spec_add_tree(struct spec *s, const char *path, enum spec_tree_ids ids, bool recursive)
		NONNULL(1, 2);
/* Append a lower directory. */
void spec_add_lower(struct spec *s, uint32_t tree, const char *path) NONNULL(1, 3);
/* Append a mount, all strings copied; the caller fills the rest through the returned pointer,
 * which is valid until the next call. */
struct spec_mount *spec_add_mount(struct spec *s, enum spec_mount_kind kind, const char *dst)
		NONNULL(1, 3) MUST_CHECK;

#endif
