/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * The helper parses what strangers send, so little must be left to one who takes it over: sockets
 * of the Internet families and the descriptors it was given. Names are resolved by the C library,
 * which opens its configuration anew each time: files can be opened, read-only, and where the
 * kernel has Landlock (5.13) only those of /etc and of the programs. Sockets of the Unix family
 * are refused: behind them are the user's bus and other daemons that would act for it. That costs
 * the resolvers that only such a socket reaches (nscd, mDNS, systemd-resolved's own protocol); the
 * C library then asks the servers of resolv.conf, which all of them keep up to date.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <osbx/caps.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>
#include <osbx/sys.h>

#include "fetch_confine.h"

#define NOBODY        65534
#define MEMORY_BYTES  (UINT64_C(2) << 30)
#define FILES_MAX     1024 /* two a blob, one a connection */
#define SWITCH_BYTES  65536
#define MODULES_MAX   16
#define MODULE_MAX    64
#define LANDLOCK_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define LANDLOCK_ALL                                                                     \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_READ |    \
			LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
			LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |     \
			LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |     \
			LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |   \
			LANDLOCK_ACCESS_FS_MAKE_SYM)

static int limit_to(int resource, rlim_t max)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0) {
		return -errno;
	}
	limit.rlim_max = limit.rlim_max > max ? max : limit.rlim_max;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

/* A terminal's Ctrl-C reaches us too: the parent decides, and its end is ours. */
static int ignore_signals(void)
{
	static const int ignored[] = { SIGPIPE, SIGXFSZ, SIGINT, SIGQUIT };
	struct sigaction act = { .sa_handler = SIG_IGN };

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++) {
		if (sigaction(ignored[i], &act, NULL) < 0) {
			return -errno;
		}
	}
	return 0;
}

int confine_limits(struct error *e)
{
	int rc = ignore_signals();

	rc = rc < 0 ? rc : limit_to(RLIMIT_CORE, 0);
	rc = rc < 0 ? rc : limit_to(RLIMIT_NOFILE, FILES_MAX);
	rc = rc < 0 ? rc : limit_to(RLIMIT_FSIZE, LIMIT_UNPACK_BYTES);
#if !OSBX_SANITIZED /* whose shadow is terabytes of address space */
	rc = rc < 0 ? rc : limit_to(RLIMIT_AS, MEMORY_BYTES);
#endif
#ifdef M_ARENA_MAX /* each thread of the resolver would reserve an arena of 128 MiB */
	(void)mallopt(M_ARENA_MAX, 1);
#endif
	return rc < 0 ? error_sys(e, -rc, "limit resources") : 0;
}

/* "hosts: files mdns4_minimal [NOTFOUND=return] dns": the words outside of brackets. */
static void modules_load(struct span line)
{
	struct span word = { 0 };
	unsigned int n = 0;
	bool in_action = false;

	while (n < MODULES_MAX && span_next(&line, ' ', &word)) {
		char name[MODULE_MAX];
		bool plain = word.n > 0;

		in_action |= word.n > 0 && word.p[0] == '[';
		for (size_t i = 0; i < word.n; i++) {
			plain &= isalnum((unsigned char)word.p[i]) || word.p[i] == '_';
		}
		if (plain && !in_action && word.n < sizeof(name) - sizeof("libnss_.so.2")) {
			(void)snprintf(name, sizeof(name), "libnss_%.*s.so.2", (int)word.n, word.p);
			(void)dlopen(name, RTLD_NOW | RTLD_LOCAL);
			n++;
		}
		in_action &= !(word.n > 0 && word.p[word.n - 1] == ']');
	}
}

void confine_preload(void)
{
	AUTO(buf) struct buf text = BUF_INIT(SWITCH_BYTES);
	struct span rest = { 0 };
	struct span line = { 0 };

	/* What the end of a thread needs. */
	(void)dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
	if (file_read_at(AT_FDCWD, "/etc/nsswitch.conf", &text) < 0) {
		return;
	}
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\t') {
			text.p[i] = ' ';
		}
	}
	rest = buf_span(&text);
	while (span_next(&rest, '\n', &line)) {
		if (span_has_prefix(line, span_of("hosts:"))) {
			modules_load(span_from(line, strlen("hosts:")));
		}
	}
}

/* Root of the machine, or of a container: a user that owns nothing. Where that one is not mapped,
 * or ids cannot be changed, the rest must do. */
static int give_up_ids(void)
{
	int rc = 0;

	if (geteuid() != 0) {
		return 0;
	}
	rc = sys_setgroups(0, NULL);
	if (rc < 0 && rc != -EPERM) {
		return rc;
	}
	rc = sys_setresgid(NOBODY);
	rc = rc < 0 ? rc : sys_setresuid(NOBODY);
	return rc == -EINVAL || rc == -EPERM ? 0 : rc;
}

static int keep_death_signal(int control_fd, struct error *e)
{
	struct pollfd parent = { .fd = control_fd };
	/* A change of ids clears it. */
	int rc = sys_prctl(PR_SET_PDEATHSIG, SIGKILL);

	if (rc < 0) {
		return error_sys(e, -rc, "arm the parent-death signal");
	}
	if (poll(&parent, 1, 0) < 0 || (parent.revents & (POLLHUP | POLLERR)) != 0) {
		return error_set(e, ERRC_INTERNAL, "parent is gone");
	}
	return 0;
}

/* Allow reading of what path is or leads to, with all beneath it; what is not there needs no
 * rule. */
static void landlock_allow(int ruleset, const char *path)
{
	autofree char *real = realpath(path, NULL);
	struct landlock_path_beneath_attr rule = { .allowed_access = LANDLOCK_READ };
	autoclose int fd = real ? fd_open(real, O_PATH, 0) : -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		return;
	}
	if (!S_ISDIR(st.st_mode)) {
		rule.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE;
	}
	rule.parent_fd = fd;
	(void)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/* resolv.conf is replaced while we run: the directory where it really is, unless that is the
 * root. */
static void landlock_allow_beside(int ruleset, const char *path)
{
	autofree char *real = realpath(path, NULL);
	char *slash = real ? strrchr(real, '/') : NULL;

	if (slash && slash != real) {
		*slash = '\0';
		landlock_allow(ruleset, real);
	}
}

/* 0 also where the kernel has none. */
static int give_up_files(const struct curl_lib *lib)
{
	static const char *const readable[] = { "/etc", "/usr/lib", "/usr/lib64", "/usr/share",
		"/lib", "/lib64", "/nix/store" };
	static const char *const resolver[] = { "/etc/resolv.conf", "/etc/hosts",
		"/etc/nsswitch.conf", "/etc/gai.conf", "/etc/host.conf" };
	const char *const certificates[] = { lib->cainfo, lib->capath };
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ALL };
	autoclose int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (ruleset < 0) {
		return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM ? 0 : -errno;
	}
	for (size_t i = 0; i < ARRAY_SIZE(readable); i++) {
		landlock_allow(ruleset, readable[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(resolver); i++) {
		landlock_allow_beside(ruleset, resolver[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(certificates); i++) {
		if (certificates[i]) {
			landlock_allow(ruleset, certificates[i]);
		}
	}
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

int confine(const struct curl_lib *lib, const struct sock_filter *insns, size_t n, int control_fd,
		struct error *e)
{
	int rc = give_up_ids();

	if (rc < 0) {
		return error_sys(e, -rc, "become nobody");
	}
	if (control_fd >= 0 && keep_death_signal(control_fd, e) < 0) {
		return -1;
	}
	rc = sys_prctl(PR_SET_DUMPABLE, 0);
	rc = rc < 0 ? rc : caps_set(0);
	if (rc < 0) {
		return error_sys(e, -rc, "drop capabilities");
	}
	rc = sys_prctl(PR_SET_NO_NEW_PRIVS, 1);
	rc = rc < 0 ? rc : give_up_files(lib);
	if (rc < 0) {
		return error_sys(e, -rc, "give up files");
	}
	if (!insns) {
		return error_set(e, ERRC_INTERNAL, "fetch: no syscall filter was given");
	}
	rc = sys_seccomp(insns, n);
	return rc < 0 ? error_sys(e, -rc, "install syscall filter") : 0;
}
