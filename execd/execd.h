/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: execd
 * execd - what the files of PID 1 share.
 */
#ifndef OSBX_EXECD_EXECD_H
#define OSBX_EXECD_EXECD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <osbx/compiler.h>
#include <osbx/error.h>
#include <osbx/execd_proto.h>
#include <osbx/loop.h>

#define EXECD_PROCESSES_MAX  1024
#define EXECD_DIALS_MAX      512 /* more than connections from inside */
#define EXECD_STATUS_CHANNEL 125 /* exit status when the keeper's channel is gone */

enum process_stage {
	PROCESS_STARTING, /* forked; its report is awaited */
	PROCESS_RUNNING,  /* execve has happened, its starter knows */
	PROCESS_FAILED,   /* its starter knows why; not reaped yet */
};

/* A cgroup for one process that was started beside the main one, and its descendants. */
struct leaf {
	int fd;
	char name[16];
	bool is_used; /* its process lives; descendants may outlive it */
	bool killing; /* Linux below 5.14: kill what is in it until nothing is */
	struct leaf *next;
};

/* Tags of the execution API; those of the keeper have this bit clear. */
#define EXECD_TAG_API (1U << 31)

/* What whoever started a process is told of it; process_spawn() in api.h says more. */
struct process_calls {
	void (*on_started)(void *ctx, pid_t pid, int master_fd);
	void (*on_failed)(void *ctx, const struct error *e);
	void (*on_exited)(void *ctx, const siginfo_t *end);
	void *ctx;
};

/* A process that the keeper or the API started. It leaves the table in the moment it is reaped, so
 * that a signal can never meet another process of the same number. */
struct process {
	uint32_t tag;
	uint32_t flags;
	struct process_calls calls;
	pid_t pid; /* 0: its subreaper has not said yet */
	enum process_stage stage;
	struct leaf *leaf;       /* or NULL */
	int link_fd;             /* to its subreaper, else -1 */
	pid_t reaper_pid;        /* of the subreaper, else 0 */
	struct loop_source link; /* watches link_fd */
	bool takes_tree;         /* what is left of its tree ends with it */
	bool killing;            /* until the subreaper has no other descendants */
	bool has_ended;          /* as .end says, but it is still being killed */
	siginfo_t end;
	int report_fd;             /* end of file: execve has happened; else a struct error */
	struct loop_source report; /* watches report_fd */
	int master_fd;             /* of its pty until it is handed out, else -1 */
	struct execd *execd;
	struct process *next; /* execd.processes */
};

struct execd {
	int init_fd;          /* until UP */
	int control_fd;       /* to the keeper */
	int config_fd;        /* until it is read */
	int root_fd;          /* O_PATH, "/" after enter() */
	int cgroup_fd;        /* the sandbox's own cgroup, -1: none */
	int signal_fd;        /* SIGCHLD */
	uint64_t caps;        /* permitted set of PID 1 */
	struct rlimit nofile; /* of what it starts; its own is as high as may be */
	struct execd_config config;
	struct loop *loop;
	struct loop_source control;
	struct loop_source sigchld;
	struct process *processes;
	uint32_t processes_n;
	uint32_t tags_made;        /* of the API */
	struct process_main *main; /* NULL until it is started */
	struct commands *commands; /* of the API; NULL until there is one */
	struct leaf *leaves;
	uint32_t leaves_made;
	struct loop_source kill_timer;
	struct service *service; /* NULL: nothing listens */
	struct codes *codes;     /* contexts of the code interpreter; NULL until there is one */
	struct code_gate *gate;  /* of code_gate.c; NULL until the main process is started */
	uint32_t dials_n;
	struct pty *ptys; /* sessions of pty_api.c */
	uint32_t ptys_n;
};

#define PROCESS_FDS      2
#define PROCESS_FD_FIRST 97 /* descriptors beside stdio become this number and the next ones */

/* What a process of the API is given beside its struct execd_process. It is looked at in the child:
 * what is wrong with it comes by on_failed. */
struct process_more {
	const struct strv *envs;      /* over all other variables, or NULL */
	const char *cwd;              /* "~" and variables are expanded; NULL: as it is started */
	const struct strv *otherwise; /* command where argv[0] cannot be found, or NULL */
	bool makes_env_dir; /* the directory of the file that EXECD_ENVS names, when missing */
	const struct execd_process
			*only_user_of; /* another user or group is ERRC_DENIED; or NULL */
	int fds[PROCESS_FDS];          /* not taken over */
	size_t fds_n;
	int fd_first; /* of their numbers; 0: PROCESS_FD_FIRST */
};

/* Everything a child needs to become the process it was asked to be. */
struct child {
	const struct execd *execd;
	int spec_fd; /* memfd of a struct execd_process, unless .process is there */
	const struct execd_process *process;
	const struct process_more *more; /* or NULL */
	int stdio[3];                    /* -1 with a tty */
	int slave_fd;                    /* with a tty, else -1 */
	int report_fd;                   /* closed by execve */
};

/* Move into the sandbox, give up what is not needed. The error names the step. */
int enter(struct execd *x, struct error *e) MUST_CHECK NONNULL(1, 2);
/* Serve the keeper and reap until the main process has ended or the channel has. Exit status. */
int serve(struct execd *x) NONNULL(1) MUST_CHECK;
/* Take SIGCHLD and start to watch it. */
int serve_begin(struct execd *x, struct error *e) MUST_CHECK NONNULL(1, 2);

/* Send to the keeper, with a descriptor unless fd is -1. A failure ends the loop: the keeper is
 * gone. */
void answer(const struct execd *x, enum execd_msg type, const void *payload, uint32_t n, int fd)
		NONNULL(1);
void answer_failed(const struct execd *x, uint32_t tag, const struct error *e) NONNULL(1, 3);

/* Start a process for the keeper; its answer comes through the loop. Takes no descriptor of fds
 * over. */
int process_start(struct execd *x, const struct execd_start *start, const int *fds,
		struct error *e) MUST_CHECK NONNULL(1, 2, 3, 4);
/* Send a signal by the rules of execd_proto.h. */
void process_signal(const struct execd *x, uint32_t tag, int signo) NONNULL(1);
/* SIGKILL to the whole tree of a tag; goes on by a timer where one pass does not do. */
void process_kill(struct execd *x, uint32_t tag) NONNULL(1);
/* When it ends, what is left of its tree is killed too. */
void process_take_tree(struct execd *x, uint32_t tag) NONNULL(1);
/* Remember what the main process is started with. */
void process_keep_main(struct execd *x, int spec_fd) NONNULL(1);
/* Process of a tag, or NULL. */
struct process *process_find(const struct execd *x, uint32_t tag) NONNULL(1) MUST_CHECK;
/* Start what init and c say, with a pty where init has EXECD_START_TTY: the one way for all. .tag,
 * .flags, .calls and .execd of init, .spec_fd or .process and .stdio of c are set. */
int process_launch(const struct process *init, struct child *c, struct error *e) MUST_CHECK
		NONNULL(1, 2, 3);
/* A process below a subreaper has ended; while its tree is being killed the subreaper stays. */
void process_end_below(struct process *p, const siginfo_t *si) NONNULL(1, 2);
/* Number of subreapers. */
int process_reapers(const struct execd *x) NONNULL(1);
/* Reap whatever has ended, also orphans. True when the main process was among them; its status is
 * then in *out_status. */
bool process_reap(struct execd *x, int *out_status) NONNULL(1, 2);

/* A new cgroup below the sandbox's own, or NULL: there is none that PID 1 may write to. */
struct leaf *leaf_new(struct execd *x) NONNULL(1);
/* Fork into it, in one step: moving a process costs some ten milliseconds (a grace period of RCU).
 * Pid, 0 in the child, -errno. */
pid_t leaf_fork(const struct leaf *leaf) NONNULL(1) MUST_CHECK;
/* Remove the cgroups that no process of the table uses and that are empty. */
void leaves_sweep(struct execd *x) NONNULL(1);
/* Kill what is in it. True when that has to be repeated. */
bool leaf_kill(const struct leaf *leaf) NONNULL(1) MUST_CHECK;

/* Directory /proc, checked to be the kernel's. fd or -errno. */
int proc_open(int root_fd) MUST_CHECK;
/* SIGKILL to the descendants of top but for the one named spared, which is stopped. How many live
 * ones there were, or -errno. */
int proc_kill(int root_fd, pid_t top, pid_t spared) MUST_CHECK;
/* Number of processes, PID 1 included. -errno. */
int proc_count(int root_fd) MUST_CHECK;

/* What a subreaper says: first the pid of its process, then how that ended. */
struct reaper_word {
	pid_t pid;
	siginfo_t end;
};

struct child;
/* Body of a forked child: fork the process, reap what is left to it, tell the end of the process,
 * and end when the other side of link_fd is closed. */
NORETURN void reaper_run(const struct child *c, int link_fd) NONNULL(1);

/* Body of a forked child: set everything up, execve. Reports its error and exits on failure. */
NORETURN void child_run(const struct child *c) NONNULL(1);
/* execve argv[0], searched in the PATH of env when it has no slash. Returns only with an error:
 * ERRC_NO_COMMAND or ERRC_NOT_EXECUTABLE. */
int command_exec(char *const *argv, char *const *env, const char *path_list, struct error *e)
		NONNULL(1, 2, 3, 4) MUST_CHECK;

/* A pty of the devpts at /dev/pts, which is checked to be one (CVE-2025-52565). Both descriptors
 * are O_CLOEXEC and owned by the caller. */
int pty_open(int root_fd, int *out_master_fd, int *out_slave_fd, struct error *e) MUST_CHECK
		NONNULL(2, 3, 4);

#endif
