/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_internal - what is known about the machine (doctor_facts), what follows from it
 * (doctor_checks: pure functions, so that a test can make up any machine), and the trial.
 *
 * Files are read beneath a root descriptor: "/", or a directory of a test.
 */
#ifndef OSBX_ENGINE_DOCTOR_INTERNAL_H
#define OSBX_ENGINE_DOCTOR_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/utsname.h>

#include <osbx/buf.h>
#include <osbx/compiler.h>
#include <osbx/doctor.h>
#include <osbx/error.h>
#include <osbx/features.h>
#include <osbx/idmap.h>
#include <osbx/limits.h>

#define DOCTOR_WORD_MAX 64
#define DOCTOR_ABSENT   (-1)

/* System calls that have to be there, tried with arguments that change nothing. */
enum doctor_probe {
	DOCTOR_PROBE_PIDFD_OPEN,
	DOCTOR_PROBE_OPEN_TREE,
	DOCTOR_PROBE_FSCONFIG,
	DOCTOR_PROBE_MOUNT_SETATTR,
	DOCTOR_PROBE_USERNS,   /* unshare(CLONE_NEWUSER) */
	DOCTOR_PROBE_MOUNT,    /* mount(2) in that user namespace; not tried without it */
	DOCTOR_PROBE_HOSTNAME, /* sethostname(2) there, the same; podman's filter refuses it */
	DOCTOR_PROBE_SETNS,
	DOCTOR_PROBE_OPTIONAL, /* there are substitutes for those from here on */
	DOCTOR_PROBE_OPENAT2 = DOCTOR_PROBE_OPTIONAL,
	DOCTOR_PROBE_CLONE3,
	DOCTOR_PROBE_COUNT,
};

/* newuidmap or newgidmap. */
struct doctor_helper {
	char path[LIMIT_PATH_BYTES]; /* "": not found */
	bool privileged;             /* set-user-id root, or with file capabilities */
	bool on_nosuid;              /* which have no effect there */
};

/* One of /etc/subuid and /etc/subgid, from this user's point of view. */
struct doctor_subids {
	uint64_t count;                 /* ids of this user */
	char overlaps[DOCTOR_WORD_MAX]; /* who else has some of them; "" */
};

/* A directory of ours. */
struct doctor_place {
	char path[LIMIT_PATH_BYTES]; /* "": not known */
	bool exists;
	uint64_t type; /* f_type of statfs(2), of the nearest directory that exists */
	bool read_only;
	bool nosuid;
	bool noexec;
	uint64_t free_bytes;
	uint64_t free_inodes; /* UINT64_MAX where the file system does not count */
	int xattr_errno;      /* of setting user.*; 0: it works */
};

struct doctor_cgroup {
	bool unified;          /* there is a version 2 hierarchy, and this process is in it */
	bool writable;         /* children of the own cgroup can be made and entered */
	bool scope;            /* a manager of systemd gives scopes: all this is of its cgroup */
	char controllers[256]; /* of the own cgroup, as the kernel writes them */
};

struct doctor_facts {
	/* the caller */
	uint32_t uid;
	uint64_t caps; /* effective */
	char user[DOCTOR_WORD_MAX];
	char exe[LIMIT_PATH_BYTES]; /* this program */
	bool no_new_privs;
	bool initial_userns;
	/* the kernel */
	struct utsname uts;
	unsigned int version[3];
	bool version_certain;        /* of the last number: distributions keep it and fix bugs */
	int64_t max_user_namespaces; /* DOCTOR_ABSENT: no such setting; the same below */
	int64_t unprivileged_userns_clone;
	int64_t apparmor_userns;
	int64_t apparmor_unconfined;
	char zero_limit[DOCTOR_WORD_MAX]; /* another limit of user.* that is 0; "" */
	char apparmor_label[256];         /* of this process; "": AppArmor is off */
	bool apparmor_profile;            /* /etc/apparmor.d/osbx exists */
	int64_t seccomp_mode;
	int probes[DOCTOR_PROBE_COUNT]; /* errno; 0: works; EINTR: killed by a filter */
	bool overlay_known;             /* in /proc/filesystems */
	bool overlay_module;            /* there is a module to load */
	/* what surrounds it */
	char container[DOCTOR_WORD_MAX];     /* "docker", …; "": none */
	char proc_mask[DOCTOR_WORD_MAX * 2]; /* a mount below /proc; "" */
	bool systemd;
	bool linger;
	bool runtime_variable; /* XDG_RUNTIME_DIR or OSBX_RUNTIME is set */
	int64_t wall_ms;
	/* ids */
	struct idmap map;
	struct error map_error; /* ERRC_OK: map is valid */
	struct doctor_helper helpers[2];
	struct doctor_subids subids[2];
	uint32_t subids_free; /* first of 65,536 ids that nobody has in either file */
	/* places */
	struct doctor_place store;
	struct doctor_place runtime;
	bool store_maps;        /* id-mapped mounts were tried and work there */
	bool store_unmapped;    /* … and do not */
	struct error net_error; /* of a private network that was tried */
	bool no_ping;           /* which it would not carry */
	struct doctor_cgroup cgroup;
	size_t features_n;
	struct feature features[FEATURES_MAX];
};

/* Everything about this machine but the libraries. Caller frees. */
struct doctor_facts *doctor_facts_read(void) MUST_CHECK;

/* Parts of it, each for files beneath root_fd. */
void doctor_read_kernel(int root_fd, struct doctor_facts *f) NONNULL(2);
void doctor_read_apparmor(int root_fd, struct doctor_facts *f) NONNULL(2);
void doctor_read_surroundings(int root_fd, struct doctor_facts *f) NONNULL(2);
void doctor_read_ids(int root_fd, struct doctor_facts *f) NONNULL(2);
void doctor_read_cgroup(int root_fd, struct doctor_facts *f) NONNULL(2);
void doctor_read_place(const char *path, struct doctor_place *out_place) NONNULL(1, 2);
/* x.y.z of a release, and what the distribution says about itself: uname -v of Debian,
 * /proc/version_signature of Ubuntu ("" where there is none). */
void doctor_read_version(const struct utsname *uts, const char *signature, struct doctor_facts *f)
		NONNULL(1, 2, 3);
/* Try them in a child that may be killed for it. */
void doctor_probe_all(int out_errnos[DOCTOR_PROBE_COUNT]) NONNULL(1);
const char *doctor_probe_name(enum doctor_probe probe);
/* Make a private network, with nobody in it. */
int doctor_network_try(const struct idmap *map, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Name of a file system type, "file system 0x…" for unknown ones, into out. */
void doctor_fs_name(uint64_t type, char out[DOCTOR_WORD_MAX]) NONNULL(2);
/* Is this type known to be refused as the upper directory of an overlay? */
bool doctor_fs_refuses_upper(uint64_t type);

/* Which of the controllers that limits need are not there, into out if it is not NULL. How many. */
size_t doctor_controllers_missing(const struct doctor_facts *f, struct buf *out) NONNULL(1);

/* Texts with names of facts in braces, "{user}": replaced, quoted for a shell where that is needed.
 * Unknown ones stay. Caller frees. */
char *doctor_text(const char *text, const struct doctor_facts *f) NONNULL(1, 2) MUST_CHECK;

/* Lines about each part of the machine. failure: why the trial failed, NULL if it did not. */
void doctor_check(const struct doctor_facts *f, const struct error *failure,
		struct doctor_lines *out_lines) NONNULL(1, 3);
/* The cause of the first finding that explains failure into *out_cause, its remedy into
 * *out_remedy (may be NULL); false if there is none. Caller frees. */
bool doctor_find_cause(const struct doctor_facts *f, const struct error *failure, char **out_cause,
		char **out_remedy) NONNULL(1, 2, 3, 4);

/* Append a line; takes the strings. */
void doctor_lines_add(struct doctor_lines *lines, const struct doctor_line *line) NONNULL(1, 2);
void doctor_lines_done(struct doctor_lines *lines) NONNULL(1);

/* Make a sandbox in a child. Steps that were reached are appended to out_steps, the last one with
 * level DOCTOR_FAIL if it failed; then also -1 and the error. */
int doctor_trial(struct doctor_lines *out_steps, int64_t *out_took_us, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);

#endif
