/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/resource.h>

#include <osbx/execd_proto.h>
#include <osbx/fd.h>
#include <osbx/initproto.h>
#include <osbx/limits.h>
#include <osbx/mem.h>

#include "../unit.h"

#define BUF_MAX (4U << 20)

static const struct sock_filter insns[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
	BPF_STMT(BPF_RET | BPF_K, 7),
};

static void config_fill(struct execd_config *c)
{
	*c = (struct execd_config){
		.isolation = 1,
		.has_setgroups = 1,
		.ids_max = 65536,
		.caps = UINT64_C(0x1000000005),
		.own_filter_n = 1,
		.workload_filter_n = 2,
		.own_filter = mem_array(1, sizeof(insns[0])),
		.workload_filter = mem_array(2, sizeof(insns[0])),
		.token = mem_strdup("sesame"),
	};
	memcpy(c->own_filter, insns, sizeof(insns[0]));
	memcpy(c->workload_filter, insns, sizeof(insns));
}

static void process_fill(struct execd_process *p)
{
	*p = (struct execd_process){
		.cwd = mem_strdup("/srv"),
		.user = mem_strdup("1000:100"),
		.caps = UINT64_C(0x1000000003),
		.cwd_create = 1,
		.rows = 24,
		.cols = 80,
		.umask_bits = 022,
		.set_home = 1,
		.copy = 1,
		.rlimits_n = 1,
		.rlimits = { { .resource = RLIMIT_NOFILE, .soft = 1024, .hard = RLIM_INFINITY } },
	};
	ck_assert_int_eq(strv_add(&p->argv, "sh"), 0);
	ck_assert_int_eq(strv_add(&p->argv, ""), 0);
	ck_assert_int_eq(strv_add(&p->env, "A=b"), 0);
	ck_assert_int_eq(strv_add(&p->groups, "wheel"), 0);
}

START_TEST(config_round_trip)
{
	AUTO(execd_config) struct execd_config c = { 0 };
	AUTO(execd_config) struct execd_config d = { 0 };
	AUTO(buf) struct buf b = BUF_INIT(BUF_MAX);

	config_fill(&c);
	ck_assert_int_eq(execd_config_encode(&c, &b), 0);
	ck_assert_int_eq(execd_config_decode(buf_span(&b), &d), 0);
	ck_assert_uint_eq(d.isolation, 1);
	ck_assert_uint_eq(d.has_setgroups, 1);
	ck_assert_uint_eq(d.ids_max, 65536);
	ck_assert_uint_eq(d.caps, UINT64_C(0x1000000005));
	ck_assert_uint_eq(d.own_filter_n, 1);
	ck_assert_uint_eq(d.workload_filter_n, 2);
	ck_assert_mem_eq(d.own_filter, insns, sizeof(insns[0]));
	ck_assert_mem_eq(d.workload_filter, insns, sizeof(insns));
	ck_assert_str_eq(d.token, "sesame");
}
END_TEST

START_TEST(config_without_filters)
{
	struct execd_config c = { .ids_max = 1 };
	AUTO(execd_config) struct execd_config d = { .own_filter_n = 5 };
	AUTO(buf) struct buf b = BUF_INIT(BUF_MAX);

	ck_assert_int_eq(execd_config_encode(&c, &b), 0);
	ck_assert_int_eq(execd_config_decode(buf_span(&b), &d), 0);
	ck_assert_uint_eq(d.own_filter_n, 0);
	ck_assert_ptr_null(d.own_filter);
	ck_assert_ptr_null(d.workload_filter);
	ck_assert_ptr_null(d.token);
}
END_TEST

START_TEST(config_limits)
{
	AUTO(execd_config)
	struct execd_config c = {
		.own_filter = mem_array(LIMIT_BPF_INSNS + 1, sizeof(insns[0])),
		.own_filter_n = LIMIT_BPF_INSNS + 1,
	};
	AUTO(execd_config) struct execd_config d = { 0 };
	AUTO(buf) struct buf b = BUF_INIT(BUF_MAX);
	AUTO(buf) struct buf small = BUF_INIT(100);

	ck_assert_int_eq(execd_config_encode(&c, &b), -EMSGSIZE);
	c.own_filter_n = LIMIT_BPF_INSNS;
	ck_assert_int_eq(execd_config_encode(&c, &small), -EMSGSIZE);
	ck_assert_int_eq(execd_config_encode(&c, &b), 0);
	ck_assert_int_eq(execd_config_decode(buf_span(&b), &d), 0);
}
END_TEST

START_TEST(config_token)
{
	AUTO(execd_config) struct execd_config c = { .token = mem_array(EXECD_TOKEN_MAX + 2, 1) };
	AUTO(execd_config) struct execd_config d = { 0 };
	AUTO(buf) struct buf b = BUF_INIT(BUF_MAX);

	memset(c.token, 't', EXECD_TOKEN_MAX + 1);
	ck_assert_int_eq(execd_config_encode(&c, &b), -EMSGSIZE);
	c.token[EXECD_TOKEN_MAX] = '\0';
	ck_assert_int_eq(execd_config_encode(&c, &b), 0);
	ck_assert_int_eq(execd_config_decode(buf_span(&b), &d), 0);
	ck_assert_str_eq(d.token, c.token);
	/* Not one that is shorter than it says. */
	b.p[b.n - 1] = '\0';
	execd_config_done(&d);
	ck_assert_int_eq(execd_config_decode(buf_span(&b), &d), -EBADMSG);
	ck_assert_ptr_null(d.token);
}
END_TEST

/* Every shorter and longer document, and every byte of it changed. */
START_TEST(config_broken)
{
	AUTO(execd_config) struct execd_config c = { 0 };
	AUTO(buf) struct buf b = BUF_INIT(BUF_MAX);
	int good = 0;

	config_fill(&c);
	ck_assert_int_eq(execd_config_encode(&c, &b), 0);
	for (size_t n = 0; n < b.n; n++) {
		struct execd_config d = { .own_filter_n = 3 };

		ck_assert_int_eq(execd_config_decode((struct span){ .p = b.p, .n = n }, &d),
				-EBADMSG);
		ck_assert_uint_eq(d.own_filter_n, 0);
		ck_assert_ptr_null(d.own_filter);
	}
	for (size_t i = 0; i < b.n; i++) {
		AUTO(execd_config) struct execd_config d = { 0 };

		b.p[i] = (char)~b.p[i];
		good += execd_config_decode(buf_span(&b), &d) == 0;
		b.p[i] = (char)~b.p[i];
	}
	/* isolation, has_setgroups, ids_max, caps, the instructions and the token may be anything.
	 */
	ck_assert_int_eq(good, 3 * 4 + 8 + 3 * 8 + 6);
	struct execd_config d = { 0 };

	ck_assert_int_eq(buf_append(&b, "x", 1), 0);
	ck_assert_int_eq(execd_config_decode(buf_span(&b), &d), -EBADMSG);
}
END_TEST

START_TEST(process_round_trip)
{
	AUTO(execd_process) struct execd_process p = { 0 };
	AUTO(execd_process) struct execd_process q = { 0 };
	AUTO(buf) struct buf b = BUF_INIT(BUF_MAX);

	process_fill(&p);
	ck_assert_int_eq(execd_process_encode(&p, &b), 0);
	ck_assert_int_eq(execd_process_decode(buf_span(&b), &q), 0);
	ck_assert_uint_eq(q.argv.n, 2);
	ck_assert_str_eq(q.argv.v[0], "sh");
	ck_assert_str_eq(q.argv.v[1], "");
	ck_assert_ptr_null(q.argv.v[2]);
	ck_assert_uint_eq(q.env.n, 1);
	ck_assert_str_eq(q.env.v[0], "A=b");
	ck_assert_uint_eq(q.groups.n, 1);
	ck_assert_str_eq(q.groups.v[0], "wheel");
	ck_assert_str_eq(q.cwd, "/srv");
	ck_assert_str_eq(q.user, "1000:100");
	ck_assert_uint_eq(q.caps, UINT64_C(0x1000000003));
	ck_assert_uint_eq(q.cwd_create, 1);
	ck_assert_uint_eq(q.rows, 24);
	ck_assert_uint_eq(q.cols, 80);
	ck_assert_uint_eq(q.umask_bits, 022);
	ck_assert_uint_eq(q.set_home, 1);
	ck_assert_uint_eq(q.copy, 1);
	ck_assert_uint_eq(q.rlimits_n, 1);
	ck_assert_mem_eq(q.rlimits, p.rlimits, sizeof(p.rlimits[0]));
}
END_TEST

START_TEST(process_with_the_least)
{
	AUTO(execd_process) struct execd_process p = { 0 };
	AUTO(execd_process) struct execd_process q = { 0 };
	AUTO(buf) struct buf b = BUF_INIT(BUF_MAX);

	ck_assert_int_eq(strv_add(&p.argv, "x"), 0);
	ck_assert_int_eq(execd_process_encode(&p, &b), 0);
	ck_assert_int_eq(execd_process_decode(buf_span(&b), &q), 0);
	ck_assert_str_eq(q.cwd, "");
	ck_assert_str_eq(q.user, "");
	ck_assert_uint_eq(q.env.n, 0);
}
END_TEST

/* What a process must not be. */
static void spoil_argv_none(struct execd_process *p)
{
	strv_done(&p->argv);
}

static void spoil_argv_empty(struct execd_process *p)
{
	p->argv.v[0][0] = '\0';
}

static void spoil_env_bytes(struct execd_process *p)
{
	char *s = mem_array(LIMIT_ARGS_BYTES + 1, 1);

	memset(s, 'a', LIMIT_ARGS_BYTES);
	ck_assert_int_eq(strv_take(&p->env, s), 0);
}

static void spoil_groups(struct execd_process *p)
{
	for (int i = 0; i < LIMIT_GROUPS; i++) {
		ck_assert_int_eq(strv_add(&p->groups, "g"), 0);
	}
}

static void spoil_cwd_relative(struct execd_process *p)
{
	p->cwd[0] = 's';
}

static void spoil_cwd_long(struct execd_process *p)
{
	free(p->cwd);
	p->cwd = mem_array(LIMIT_PATH_BYTES + 1, 1);
	memset(p->cwd, '/', LIMIT_PATH_BYTES);
}

static void spoil_user_long(struct execd_process *p)
{
	free(p->user);
	p->user = mem_array(LIMIT_PASSWD_LINE + 1, 1);
	memset(p->user, 'u', LIMIT_PASSWD_LINE);
}

static void spoil_rows(struct execd_process *p)
{
	p->rows = 65536;
}

static void spoil_umask(struct execd_process *p)
{
	p->umask_bits = 01000;
}

static void spoil_rlimit_number(struct execd_process *p)
{
	p->rlimits[0].resource = RLIM_NLIMITS;
}

static void spoil_rlimit_order(struct execd_process *p)
{
	p->rlimits[0].hard = p->rlimits[0].soft - 1;
}

static void spoil_rlimits_count(struct execd_process *p)
{
	p->rlimits_n = EXECD_RLIMITS_MAX + 1;
}

static void (*const spoilers[])(struct execd_process *) = {
	spoil_argv_none,
	spoil_argv_empty,
	spoil_env_bytes,
	spoil_groups,
	spoil_cwd_relative,
	spoil_cwd_long,
	spoil_user_long,
	spoil_rows,
	spoil_umask,
	spoil_rlimit_number,
	spoil_rlimit_order,
	spoil_rlimits_count,
};

START_TEST(process_limits)
{
	AUTO(execd_process) struct execd_process p = { 0 };
	AUTO(buf) struct buf b = BUF_INIT(BUF_MAX);

	process_fill(&p);
	spoilers[_i](&p);
	ck_assert_int_eq(execd_process_encode(&p, &b), -EMSGSIZE);
	ck_assert_uint_eq(b.n, 0);
}
END_TEST

START_TEST(process_into_a_small_buffer)
{
	AUTO(execd_process) struct execd_process p = { 0 };
	AUTO(buf) struct buf whole = BUF_INIT(BUF_MAX);

	process_fill(&p);
	ck_assert_int_eq(execd_process_encode(&p, &whole), 0);
	for (size_t max = 0; max < whole.n; max++) {
		AUTO(buf) struct buf b = BUF_INIT(max);

		ck_assert_int_eq(execd_process_encode(&p, &b), -EMSGSIZE);
	}
}
END_TEST

static bool is_empty(const struct execd_process *p)
{
	return !p->argv.v && !p->env.v && !p->groups.v && !p->cwd && !p->user && p->rlimits_n == 0;
}

START_TEST(process_cut_short)
{
	AUTO(execd_process) struct execd_process p = { 0 };
	AUTO(buf) struct buf b = BUF_INIT(BUF_MAX);

	process_fill(&p);
	ck_assert_int_eq(execd_process_encode(&p, &b), 0);
	for (size_t n = 0; n < b.n; n++) {
		/* Bytes of its own, so that the sanitizer sees a read behind them. */
		autofree char *copy = mem_dup(b.p, n);
		struct execd_process q = { 0 };

		ck_assert_int_eq(execd_process_decode((struct span){ .p = copy, .n = n }, &q),
				-EBADMSG);
		ck_assert(is_empty(&q));
	}
	ck_assert_int_eq(buf_append(&b, "x", 1), 0);
	struct execd_process q = { 0 };

	ck_assert_int_eq(execd_process_decode(buf_span(&b), &q), -EBADMSG);
	ck_assert(is_empty(&q));
}
END_TEST

START_TEST(process_with_changed_bytes)
{
	static const unsigned char values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	AUTO(execd_process) struct execd_process p = { 0 };
	AUTO(buf) struct buf b = BUF_INIT(BUF_MAX);

	process_fill(&p);
	ck_assert_int_eq(execd_process_encode(&p, &b), 0);
	for (size_t i = 0; i < b.n; i++) {
		char old = b.p[i];

		for (size_t k = 0; k < sizeof(values); k++) {
			AUTO(execd_process) struct execd_process q = { 0 };

			b.p[i] = (char)values[k];
			if (execd_process_decode(buf_span(&b), &q) < 0) {
				ck_assert(is_empty(&q));
				continue;
			}
			/* What was taken is valid: it can be sent again. */
			AUTO(buf) struct buf again = BUF_INIT(BUF_MAX);

			ck_assert_int_eq(execd_process_encode(&q, &again), 0);
			ck_assert_uint_eq(again.n, b.n);
		}
		b.p[i] = old;
	}
}
END_TEST

START_TEST(huge_counts_cost_nothing)
{
	uint32_t head[12] = { 0x6f737031U, UINT32_MAX, UINT32_MAX, UINT32_MAX };
	struct span in = { .p = (const char *)head, .n = sizeof(head) };
	struct execd_process q = { 0 };

	ck_assert_int_eq(execd_process_decode(in, &q), -EBADMSG);
	ck_assert(is_empty(&q));
}
END_TEST

START_TEST(send_and_payload)
{
	static const char zeros[PACKET_PAYLOAD_MAX + 1];
	const int nulls[9] = { 0 };
	struct execd_start start = { .tag = 7, .flags = EXECD_START_MAIN };
	struct packet p;
	int pair[2];

	ck_assert_int_eq(fd_seqpacket_pair(pair), 0);
	ck_assert_int_eq(execd_send(pair[0], EXECD_MSG_START, &start, sizeof(start), nulls, 4), 0);
	ck_assert_int_eq(packet_recv(pair[1], &p, 0), 1);
	ck_assert_uint_eq(p.type, EXECD_MSG_START);
	ck_assert_uint_eq(p.fds_n, 4);
	const struct execd_start *got = execd_payload(&p, sizeof(*got));

	ck_assert_ptr_nonnull(got);
	ck_assert_uint_eq(got->tag, 7);
	ck_assert_ptr_null(execd_payload(&p, sizeof(start) - 1));
	ck_assert_ptr_null(execd_payload(&p, sizeof(start) + 1));
	packet_done(&p);
	ck_assert_int_eq(execd_send(pair[0], EXECD_MSG_START, zeros, sizeof(zeros), NULL, 0),
			-EMSGSIZE);
	ck_assert_int_eq(execd_send(pair[0], EXECD_MSG_START, zeros, 1, nulls, 9), -EMSGSIZE);
	ck_assert_int_eq(packet_recv(pair[1], &p, 0), -EAGAIN);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}
END_TEST

/* The largest payload, and numbers apart from the handshake's. */
_Static_assert(sizeof(struct execd_failed) <= PACKET_PAYLOAD_MAX, "fits one packet");
_Static_assert((int)EXECD_MSG_START > (int)INIT_MSG_COUNT, "no number means two things");

int main(void)
{
	Suite *s = suite_create("execd_proto");
	TCase *config = tcase_create("config");
	TCase *process = tcase_create("process");
	TCase *channel = tcase_create("channel");

	tcase_add_test(config, config_round_trip);
	tcase_add_test(config, config_without_filters);
	tcase_add_test(config, config_limits);
	tcase_add_test(config, config_token);
	tcase_add_test(config, config_broken);
	suite_add_tcase(s, config);
	tcase_add_test(process, process_round_trip);
	tcase_add_test(process, process_with_the_least);
	tcase_add_loop_test(process, process_limits, 0, ARRAY_SIZE(spoilers));
	tcase_add_test(process, process_into_a_small_buffer);
	tcase_add_test(process, process_cut_short);
	tcase_add_test(process, process_with_changed_bytes);
	tcase_add_test(process, huge_counts_cost_nothing);
	suite_add_tcase(s, process);
	tcase_add_test(channel, send_and_payload);
	suite_add_tcase(s, channel);
	return unit_run(s);
}
