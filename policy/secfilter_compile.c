/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <osbx/buf.h>
#include <osbx/fd.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/program.h>
#include <osbx/secfilter.h>

#include "secfilter_cache.h"
#include "secfilter_profile.h"

/* What is used of <seccomp.h>. */
struct libseccomp {
	__typeof__(&seccomp_init) init;
	__typeof__(&seccomp_release) release;
	__typeof__(&seccomp_arch_add) arch_add;
	__typeof__(&seccomp_attr_set) attr_set;
	__typeof__(&seccomp_syscall_resolve_name) resolve;
	__typeof__(&seccomp_rule_add_array) rule_add;
	__typeof__(&seccomp_export_bpf) export_bpf;
};

static const struct {
	const char *name;
	size_t offset;
} symbols[] = {
	{ "seccomp_init", offsetof(struct libseccomp, init) },
	{ "seccomp_release", offsetof(struct libseccomp, release) },
	{ "seccomp_arch_add", offsetof(struct libseccomp, arch_add) },
	{ "seccomp_attr_set", offsetof(struct libseccomp, attr_set) },
	{ "seccomp_syscall_resolve_name", offsetof(struct libseccomp, resolve) },
	{ "seccomp_rule_add_array", offsetof(struct libseccomp, rule_add) },
	{ "seccomp_export_bpf", offsetof(struct libseccomp, export_bpf) },
};

static struct libseccomp lib;
static void *lib_handle;

static int library_load(struct error *e)
{
	if (lib_handle) {
		return 0;
	}
	void *handle = dlopen("libseccomp.so.2", RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		(void)error_set(e, ERRC_UNSUPPORTED, "load libseccomp: %s", dlerror());
		return error_hint(e, "install libseccomp (Debian: libseccomp2)");
	}
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		void *symbol = dlsym(handle, symbols[i].name);

		if (!symbol) {
			(void)dlclose(handle);
			return error_set(e, ERRC_UNSUPPORTED, "libseccomp lacks %s",
					symbols[i].name);
		}
		memcpy((char *)&lib + symbols[i].offset, &symbol, sizeof(symbol));
	}
	lib_handle = handle;
	return 0;
}

static void context_release(scmp_filter_ctx *ctx)
{
	if (*ctx) {
		lib.release(*ctx);
	}
}
AUTO_DEFINE(context, scmp_filter_ctx, context_release);

static struct scmp_arg_cmp arg_of(const struct profile_arg *a)
{
	return (struct scmp_arg_cmp){
		.arg = (unsigned int)a->index,
		.op = (enum scmp_compare)a->op,
		.datum_a = a->value,
		.datum_b = a->value_two,
	};
}

/* One system call of a rule. */
static int call_add(scmp_filter_ctx ctx, const struct profile_rule *rule, int nr)
{
	struct scmp_arg_cmp args[PROFILE_ARGS_MAX];
	int r = 0;

	for (size_t i = 0; i < rule->args_n; i++) {
		args[i] = arg_of(&rule->args[i]);
	}
	if (!rule->is_alternative) {
		return lib.rule_add(ctx, rule->action, nr, (unsigned int)rule->args_n, args);
	}
	for (size_t i = 0; r == 0 && i < rule->args_n; i++) {
		r = lib.rule_add(ctx, rule->action, nr, 1, &args[i]);
	}
	return r;
}

static int rule_add(scmp_filter_ctx ctx, const struct profile_rule *rule, struct error *e)
{
	strv_for_each(&rule->names, i) {
		int nr = lib.resolve(rule->names.v[i]);

		/* Profiles name calls of newer kernels than the library's. */
		if (nr == __NR_SCMP_ERROR) {
			continue;
		}
		int r = call_add(ctx, rule, nr);

		/* The same rule twice is none the less the rule. */
		if (r < 0 && r != -EEXIST) {
			return error_sys(e, -r, "rule for \"%s\"", rule->names.v[i]);
		}
	}
	return 0;
}

static int context_fill(scmp_filter_ctx ctx, const struct profile *p, struct error *e)
{
	int r = lib.attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	/* A binary tree (libseccomp 2.5); without it the program is only slower. */
	(void)lib.attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; r == 0 && i < p->arches_n; i++) {
		r = lib.arch_add(ctx, p->arches[i]);
		r = r == -EEXIST ? 0 : r;
	}
	if (r < 0) {
		return error_sys(e, -r, "prepare the filter");
	}
	for (size_t i = 0; i < p->rules_n; i++) {
		/* The library refuses rules that say what is done anyway. */
		if (p->rules[i].action != p->default_action && rule_add(ctx, &p->rules[i], e) < 0) {
			return -1;
		}
	}
	return 0;
}

static int context_export(scmp_filter_ctx ctx, struct secfilter *out_f, struct error *e)
{
	AUTO(buf) struct buf b = BUF_INIT(LIMIT_BPF_INSNS * sizeof(struct sock_filter));
	autoclose int fd = memfd_create("seccomp", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : lib.export_bpf(ctx, fd);

	if (r == 0) {
		r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_all(fd, &b);
	}
	if (r == -EMSGSIZE) {
		return error_set(e, ERRC_LIMIT, "the filter has more than %d instructions",
				LIMIT_BPF_INSNS);
	}
	if (r < 0) {
		return error_sys(e, -r, "export the filter");
	}
	size_t n = b.n / sizeof(struct sock_filter);
	struct sock_filter *insns = mem_array(n, sizeof(*insns));

	memcpy(insns, b.p, n * sizeof(*insns));
	*out_f = (struct secfilter){ .insns = insns, .n = n, .owned = insns };
	return 0;
}

static int profile_compile(const struct profile *p, struct secfilter *out_f, struct error *e)
{
	if (library_load(e) < 0) {
		return -1;
	}
	AUTO(context) scmp_filter_ctx ctx = lib.init(p->default_action);

	if (!ctx) {
		return error_set(e, ERRC_UNSUPPORTED, "libseccomp refuses the default action");
	}
	if (context_fill(ctx, p, e) < 0) {
		return -1;
	}
	return context_export(ctx, out_f, e);
}

static int profile_read(const char *path, struct buf *b, struct error *e)
{
	struct stat st;
	/* O_NONBLOCK: a FIFO must not make us wait. */
	autoclose int fd = fd_open(path, O_RDONLY | O_NONBLOCK, 0);

	if (fd == -ENOENT || fd == -ENOTDIR) {
		return error_set(e, ERRC_NOT_FOUND, "does not exist");
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		return error_sys(e, fd < 0 ? -fd : errno, "open");
	}
	if (!S_ISREG(st.st_mode)) {
		return error_set(e, ERRC_INVALID, "is not a regular file");
	}
	int r = fd_read_all(fd, b);

	if (r == -EMSGSIZE) {
		return error_set(e, ERRC_LIMIT, "is larger than %u bytes", LIMIT_SECCOMP_JSON);
	}
	return r < 0 ? error_sys(e, -r, "read") : 0;
}

/* Everything that the program depends on. The maximum of out is larger than any key. */
static void key_build(
		struct span profile, uint64_t caps, const struct utsname *host, struct buf *out)
{
	int r = buf_appendf(out, "osbx %s filter for %s %s caps %" PRIx64 "\n%zu\n", OSBX_VERSION,
			host->machine, host->release, caps, profile.n);

	if (r == 0) {
		r = buf_append(out, profile.p, profile.n);
	}
	assert(r == 0);
}

static int compile_path(const char *path, uint64_t caps, int cache_dir_fd, struct secfilter *out_f,
		struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(LIMIT_SECCOMP_JSON);
	AUTO(buf) struct buf key = BUF_INIT(LIMIT_SECCOMP_JSON + 1024);
	AUTO(profile) struct profile p = { .rules_n = 0 };
	struct utsname host;

	if (profile_read(path, &text, e) < 0) {
		return -1;
	}
	if (uname(&host) < 0) {
		return error_sys(e, errno, "ask for the kernel's release");
	}
	key_build(buf_span(&text), caps, &host, &key);
	if (cache_load(cache_dir_fd, buf_span(&key), out_f)) {
		return 0;
	}
	if (profile_parse(buf_span(&text), caps, host.release, &p, e) < 0 ||
			profile_compile(&p, out_f, e) < 0) {
		return -1;
	}
	cache_save(cache_dir_fd, buf_span(&key), out_f);
	return 0;
}

int secfilter_compile_file(const char *path, uint64_t caps, int cache_dir_fd,
		struct secfilter *out_f, struct error *e)
{
	if (program_full(e) < 0 || compile_path(path, caps, cache_dir_fd, out_f, e) < 0) {
		return error_wrap(e, "seccomp profile %s", path);
	}
	return 0;
}
