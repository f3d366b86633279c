/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two memfd documents of the control channel. Both begin with a fixed structure that says how
 * many of what follows; numbers are in the machine's own byte order, for both ends come out of one
 * program. A string is a 32-bit length and that many bytes without a NUL. One check function per
 * document serves both directions: what cannot be decoded cannot be encoded.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <osbx/execd_proto.h>
#include <osbx/limits.h>
#include <osbx/mem.h>

#define CONFIG_MAGIC  0x6f736331U /* "osc1" */
#define PROCESS_MAGIC 0x6f737032U /* "osp2" */
#define UMASK_MAX     0777U
#define TTY_SIDE_MAX  UINT16_MAX

struct config_head {
	uint32_t magic;
	uint32_t isolation;
	uint32_t has_setgroups;
	uint32_t ids_max;
	uint32_t own_filter_n;
	uint32_t workload_filter_n;
	uint32_t token_n;
	uint32_t pad;
	uint64_t caps;
};

struct process_head {
	uint32_t magic;
	uint32_t argv_n;
	uint32_t env_n;
	uint32_t groups_n;
	uint32_t rlimits_n;
	uint32_t cwd_create;
	uint32_t rows;
	uint32_t cols;
	uint32_t umask_bits;
	uint32_t set_home;
	uint32_t copy;
	uint32_t pad;
	uint64_t caps;
};

void execd_config_done(struct execd_config *c)
{
	free(c->own_filter);
	free(c->workload_filter);
	if (c->token) {
		explicit_bzero(c->token, strlen(c->token));
	}
	free(c->token);
	*c = (struct execd_config){ .isolation = 0 };
}

void execd_process_done(struct execd_process *p)
{
	strv_done(&p->argv);
	strv_done(&p->env);
	strv_done(&p->groups);
	free(p->cwd);
	free(p->user);
	*p = (struct execd_process){ .rlimits_n = 0 };
}

static int filter_append(struct buf *out, const struct sock_filter *insns, uint32_t n)
{
	return n == 0 ? 0 : buf_append(out, insns, n * sizeof(*insns));
}

int execd_config_encode(const struct execd_config *c, struct buf *out)
{
	size_t token_n = c->token ? strlen(c->token) : 0;
	struct config_head head = {
		.magic = CONFIG_MAGIC,
		.isolation = c->isolation,
		.has_setgroups = c->has_setgroups,
		.ids_max = c->ids_max,
		.own_filter_n = c->own_filter_n,
		.workload_filter_n = c->workload_filter_n,
		.token_n = (uint32_t)token_n,
		.caps = c->caps,
	};

	if (c->own_filter_n > LIMIT_BPF_INSNS || c->workload_filter_n > LIMIT_BPF_INSNS ||
			token_n > EXECD_TOKEN_MAX) {
		return -EMSGSIZE;
	}
	int r = buf_append(out, &head, sizeof(head));

	if (r == 0) {
		r = filter_append(out, c->own_filter, c->own_filter_n);
	}
	if (r == 0) {
		r = filter_append(out, c->workload_filter, c->workload_filter_n);
	}
	return r == 0 && token_n > 0 ? buf_append(out, c->token, token_n) : r;
}

/* Cut n bytes off *in; false when there are fewer. */
static bool take(struct span *in, void *out, size_t n)
{
	if (in->n < n) {
		return false;
	}
	if (n > 0) {
		memcpy(out, in->p, n);
	}
	*in = span_from(*in, n);
	return true;
}

static struct sock_filter *filter_take(struct span *in, uint32_t n)
{
	if (n == 0) {
		return NULL;
	}
	struct sock_filter *insns = mem_array(n, sizeof(*insns));

	/* The caller compared the total length before. */
	bool whole = take(in, insns, n * sizeof(*insns));

	assert(whole);
	return insns;
}

int execd_config_decode(struct span in, struct execd_config *out)
{
	struct config_head head;

	*out = (struct execd_config){ .isolation = 0 };
	if (!take(&in, &head, sizeof(head)) || head.magic != CONFIG_MAGIC ||
			head.own_filter_n > LIMIT_BPF_INSNS ||
			head.workload_filter_n > LIMIT_BPF_INSNS ||
			head.token_n > EXECD_TOKEN_MAX || head.pad != 0 ||
			in.n != ((size_t)head.own_filter_n + head.workload_filter_n) *
									sizeof(struct sock_filter) +
							head.token_n) {
		return -EBADMSG;
	}
	out->isolation = head.isolation;
	out->has_setgroups = head.has_setgroups;
	out->ids_max = head.ids_max;
	out->own_filter_n = head.own_filter_n;
	out->workload_filter_n = head.workload_filter_n;
	out->caps = head.caps;
	out->own_filter = filter_take(&in, head.own_filter_n);
	out->workload_filter = filter_take(&in, head.workload_filter_n);
	out->token = head.token_n > 0 ? span_dup(in) : NULL;
	if (head.token_n > 0 && !out->token) {
		execd_config_done(out);
		return -EBADMSG;
	}
	return 0;
}

static bool rlimits_are_valid(const struct execd_process *p)
{
	if (p->rlimits_n > EXECD_RLIMITS_MAX) {
		return false;
	}
	for (uint32_t i = 0; i < p->rlimits_n; i++) {
		if (p->rlimits[i].resource >= RLIM_NLIMITS ||
				p->rlimits[i].soft > p->rlimits[i].hard) {
			return false;
		}
	}
	return true;
}

static bool process_is_valid(const struct execd_process *p)
{
	const char *cwd = p->cwd ? p->cwd : "";
	const char *user = p->user ? p->user : "";

	return p->argv.n > 0 && p->argv.n <= LIMIT_ARGS && p->argv.v[0][0] != '\0' &&
	       p->env.n <= LIMIT_ENV && p->groups.n <= LIMIT_GROUPS &&
	       strv_bytes(&p->argv) <= LIMIT_ARGS_BYTES &&
	       strv_bytes(&p->env) <= LIMIT_ARGS_BYTES &&
	       strv_bytes(&p->groups) <= LIMIT_PASSWD_LINE && (!*cwd || *cwd == '/') &&
	       strlen(cwd) < LIMIT_PATH_BYTES && strlen(user) < LIMIT_PASSWD_LINE &&
	       p->rows <= TTY_SIDE_MAX && p->cols <= TTY_SIDE_MAX && p->umask_bits <= UMASK_MAX &&
	       rlimits_are_valid(p);
}

static int string_append(struct buf *out, const char *s)
{
	uint32_t n = s ? (uint32_t)strlen(s) : 0;
	int r = buf_append(out, &n, sizeof(n));

	return r < 0 || n == 0 ? r : buf_append(out, s, n);
}

static int strings_append(struct buf *out, const struct strv *sv)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sv->n; i++) {
		r = string_append(out, sv->v[i]);
	}
	return r;
}

int execd_process_encode(const struct execd_process *p, struct buf *out)
{
	if (!process_is_valid(p)) {
		return -EMSGSIZE;
	}
	struct process_head head = {
		.magic = PROCESS_MAGIC,
		.argv_n = (uint32_t)p->argv.n,
		.env_n = (uint32_t)p->env.n,
		.groups_n = (uint32_t)p->groups.n,
		.rlimits_n = p->rlimits_n,
		.cwd_create = p->cwd_create,
		.rows = p->rows,
		.cols = p->cols,
		.umask_bits = p->umask_bits,
		.set_home = p->set_home,
		.copy = p->copy,
		.caps = p->caps,
	};
	const struct strv *vectors[] = { &p->argv, &p->env, &p->groups };
	int r = buf_append(out, &head, sizeof(head));

	if (r == 0) {
		r = buf_append(out, p->rlimits, p->rlimits_n * sizeof(p->rlimits[0]));
	}
	if (r == 0) {
		r = string_append(out, p->cwd);
	}
	if (r == 0) {
		r = string_append(out, p->user);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(vectors); i++) {
		r = strings_append(out, vectors[i]);
	}
	return r;
}

/* The next string, or NULL: not there, too long, or with a NUL in it. Caller frees. */
static char *string_take(struct span *in, size_t max)
{
	uint32_t n = 0;

	if (!take(in, &n, sizeof(n)) || n > in->n || n > max) {
		return NULL;
	}
	char *s = span_dup((struct span){ .p = in->p, .n = n });

	*in = span_from(*in, n);
	return s;
}

static bool strings_take(struct span *in, uint32_t n, uint32_t max, struct strv *out)
{
	/* Each string takes at least its length: no count is believed beyond the bytes. */
	if (n > max || n > in->n / sizeof(uint32_t)) {
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		char *s = string_take(in, LIMIT_ARGS_BYTES);

		if (!s || strv_take(out, s) < 0) {
			return false;
		}
	}
	return true;
}

static bool process_take(struct span in, struct execd_process *out)
{
	struct process_head head;

	if (!take(&in, &head, sizeof(head)) || head.magic != PROCESS_MAGIC ||
			head.rlimits_n > EXECD_RLIMITS_MAX ||
			!take(&in, out->rlimits, head.rlimits_n * sizeof(out->rlimits[0]))) {
		return false;
	}
	out->rlimits_n = head.rlimits_n;
	out->cwd_create = head.cwd_create;
	out->rows = head.rows;
	out->cols = head.cols;
	out->umask_bits = head.umask_bits;
	out->set_home = head.set_home;
	out->copy = head.copy;
	out->caps = head.caps;
	out->cwd = string_take(&in, LIMIT_PATH_BYTES);
	out->user = string_take(&in, LIMIT_PASSWD_LINE);
	return out->cwd && out->user && strings_take(&in, head.argv_n, LIMIT_ARGS, &out->argv) &&
	       strings_take(&in, head.env_n, LIMIT_ENV, &out->env) &&
	       strings_take(&in, head.groups_n, LIMIT_GROUPS, &out->groups) && in.n == 0 &&
	       process_is_valid(out);
}

int execd_process_decode(struct span in, struct execd_process *out)
{
	*out = (struct execd_process){ .rlimits_n = 0 };
	if (!process_take(in, out)) {
		execd_process_done(out);
		return -EBADMSG;
	}
	return 0;
}

int execd_send(int sock, enum execd_msg type, const void *payload, uint32_t n, const int *fds,
		uint32_t fds_n)
{
	struct packet p;

	packet_init(&p, (uint16_t)type);
	int r = packet_put(&p, payload, n);

	for (uint32_t i = 0; r == 0 && i < fds_n; i++) {
		r = packet_put_fd(&p, fds[i]);
	}
	return r < 0 ? r : packet_send(sock, &p);
}

const void *execd_payload(const struct packet *p, uint32_t n)
{
	return p->len == n ? p->payload : NULL;
}
