/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock_sys - stands in for libsys: every sys_* call is logged as one line and does nothing.
 *
 *   mount src dst type flags data        absent strings are "-", flags are hexadecimal
 *   openat2 #2 etc/passwd 0 0 10         "#2": the second descriptor that the mock handed out;
 *                                        "cwd": AT_FDCWD; "fd": any other; "none": negative
 *
 * Calls that return a descriptor give a real one (/dev/null, O_PATH): it may be closed, and a
 * leak shows.
 */
#ifndef MOCK_SYS_H
#define MOCK_SYS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <osbx/sys.h>

#define MOCK_SYS_PID 4242

extern char mock_sys_log[32768];
/* The call of this number (from 1) fails with mock_sys_errno; 0: none. It is logged as well. */
extern int mock_sys_fail_at;
extern int mock_sys_errno;
/* Calls so far. */
extern int mock_sys_calls;
/* Returned by sys_clone and sys_fork: MOCK_SYS_PID, or 0 to play the child. */
extern pid_t mock_sys_clone_result;
/* Returned by sys_execveat, which returns only on failure: -ENOEXEC. */
extern int mock_sys_exec_result;
/* sys_openat2 also opens the file, for code that reads what it opened. */
extern bool mock_sys_openat2_real;
/* sys_open_tree also opens what it names (O_PATH), for code that looks at it. */
extern bool mock_sys_open_tree_real;
/* What sys_capget gives; sys_capset changes it. The bounding set of PR_CAPBSET_READ and _DROP;
 * capabilities up to MOCK_SYS_CAP_LAST exist. */
extern struct sys_caps mock_sys_caps;
extern uint64_t mock_sys_bounding;
#define MOCK_SYS_CAP_LAST 40

/* Empty log, no failure, all results as at the start. */
void mock_sys_reset(void);
/* Lines of the log that begin with prefix. */
int mock_sys_count(const char *prefix);
/* The line of the n-th call (from 1), without its line feed; "" if there is none. Valid until the
 * next call. */
const char *mock_sys_line(int n);
/* Let a descriptor of the test appear in the log as "#n"; returns n. */
int mock_sys_name_fd(int fd);

#endif
