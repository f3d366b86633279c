/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>

#include <osbx/execd_image.h>
#include <osbx/fd.h>
#include <osbx/file.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "sandbox_internal.h"

/* Two filters and a few numbers. */
#define CONFIG_BYTES_MAX ((size_t)2 * LIMIT_BPF_INSNS * sizeof(struct sock_filter) + 4096)

/* Cache of compiled profiles; without one they are compiled each time. */
static int cache_open(const struct sandbox *s)
{
	return file_mkdir_at(s->dirs.root_fd, "seccomp", 0700) < 0
			       ? -1
			       : fd_open_at(s->dirs.root_fd, "seccomp", O_RDONLY | O_DIRECTORY, 0);
}

static void filter_copy(const struct secfilter *f, struct sock_filter **out_insns, uint32_t *out_n)
{
	if (f->n > 0) {
		*out_insns = (void *)mem_dup(f->insns, f->n * sizeof(*f->insns));
		*out_n = (uint32_t)f->n;
	}
}

int filter_compile(struct sandbox *s, struct error *e)
{
	const char *profile = s->req->seccomp;

	if (!profile || str_eq(profile, "default") || str_eq(profile, "unconfined")) {
		return 0;
	}
	autoclose int cache_fd = cache_open(s);

	return secfilter_compile_file(profile, s->req->caps, cache_fd, &s->filter, e);
}

/* PID 1's own filter is inherited by the workload, which gets what is missing from its own beside
 * it: with a profile of the user's there is none, or
 * it would narrow that one. */
static void filters_choose(const struct sandbox *s, struct execd_config *config)
{
	const char *profile = s->req->seccomp;
	struct secfilter builtin = { .n = 0 };

	if (profile && !str_eq(profile, "default")) {
		filter_copy(&s->filter, &config->workload_filter, &config->workload_filter_n);
		return;
	}
	secfilter_builtin(SECFILTER_CHILD, &builtin);
	filter_copy(&builtin, &config->workload_filter, &config->workload_filter_n);
	secfilter_builtin(s->req->isolation ? SECFILTER_INIT_ISOLATION : SECFILTER_INIT, &builtin);
	filter_copy(&builtin, &config->own_filter, &config->own_filter_n);
}

/* Inside ids from 0 on without a gap. */
static uint32_t ids_count(const struct idmap_range *ranges, size_t n)
{
	uint32_t end = 0;

	for (size_t i = 0; i < n && ranges[i].inside == end; i++) {
		end += ranges[i].count;
	}
	return end;
}

static int config_write(struct sandbox *s, struct error *e)
{
	AUTO(buf) struct buf text = BUF_INIT(CONFIG_BYTES_MAX);
	uint32_t uids = ids_count(s->map.uids, s->map.uids_n);
	uint32_t gids = ids_count(s->map.gids, s->map.gids_n);
	AUTO(execd_config)
	struct execd_config config = {
		.isolation = s->req->isolation,
		.has_setgroups = s->map.setgroups,
		.ids_max = uids < gids ? uids : gids,
		.caps = s->req->caps,
		.token = s->token && s->token[0] ? mem_strdup(s->token) : NULL,
	};

	filters_choose(s, &config);
	int r = execd_config_encode(&config, &text);

	if (r == 0) {
		r = fd_memfd_seal(s->spec.config_fd, text.p, text.n);
	}
	return r < 0 ? error_sys(e, -r, "configuration of PID 1") : 0;
}

int programs_make(struct sandbox *s, struct error *e)
{
	s->spec.config_fd = fd_memfd("osbx-config", false);
	/* Not the file of osbx itself: a guest reaches it as /proc/1/exe (CVE-2019-5736). */
	s->spec.execd_fd = fd_memfd("osbx-execd", true);
	if (s->spec.config_fd < 0 || s->spec.execd_fd < 0) {
		int r = s->spec.config_fd < 0 ? s->spec.config_fd : s->spec.execd_fd;

		return error_sys(e, -r, "memory for the program of PID 1");
	}
	return 0;
}

int programs_write(struct sandbox *s, struct error *e)
{
	if (config_write(s, e) < 0) {
		return -1;
	}
	int r = fd_memfd_seal(s->spec.execd_fd, execd_image, execd_image_size);

	return r < 0 ? error_sys(e, -r, "program of PID 1") : 0;
}
