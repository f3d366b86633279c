/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * "policy VERB SANDBOX": one request to the policy API of the sandbox (policy_call), whose answer
 * is printed in words; log -f asks again and again for what is newer than the last one.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/mem.h>
#include <osbx/netpolicy.h>
#include <osbx/policy_call.h>
#include <osbx/str.h>

#include "cli.h"
#include "sandboxes.h"

#define LOG_PAUSE_MS 300

struct policy_args {
	bool follow;
	bool json;
};

struct policy_run {
	const struct policy_args *args;
	const struct verb *verb;
	char *const *operands; /* behind the sandbox */
	size_t operands_n;
};

struct verb {
	const char *name;
	int operands_min;
	int operands_max; /* -1: any number */
	int (*run)(const struct dirs *dirs, const struct id *id, struct policy_run *run,
			struct error *e);
};

static const struct args_option policy_options[] = {
	{ "follow", 'f', ARGS_FLAG, offsetof(struct policy_args, follow), NULL,
			"with log: go on with what is refused from now on", NULL },
	{ "json", 0, ARGS_FLAG, offsetof(struct policy_args, json), NULL,
			"with log: print a JSON object a line", NULL },
	{ .name = NULL },
};

/* A refusal of the API, which is text. */
static int answer_fail(const struct buf *answer, int status, struct error *e)
{
	char text[ERROR_TEXT_MAX];
	enum errc code = status == 400 || status == 404 ? ERRC_INVALID
			 : status == 413                ? ERRC_LIMIT
							: ERRC_INTERNAL;

	str_printable(answer->n > 0 ? answer->p : "refused", text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	return error_set(e, code, "policy: %s", text);
}

/* Ask; the answer is parsed, and the caller's. NULL with *e set. */
static struct json *ask(const struct dirs *dirs, const struct id *id, const char *method,
		const char *target, const struct buf *body, struct error *e)
{
	AUTO(buf) struct buf answer = BUF_INIT(POLICY_ANSWER_MAX);
	const struct policy_call call = {
		.method = method,
		.target = target,
		.body = body ? buf_span(body) : (struct span){ .n = 0 },
	};
	int status = 0;

	if (policy_call(dirs, id, &call, &status, &answer, e) < 0) {
		return NULL;
	}
	if (status != 200) {
		(void)answer_fail(&answer, status, e);
		return NULL;
	}
	return json_parse(buf_span(&answer), e);
}

static int print(const struct buf *out, struct error *e)
{
	return cli_print(out) == 0 ? 0 : error_set(e, ERRC_SYSTEM, "standard output");
}

static int run_get(const struct dirs *dirs, const struct id *id, struct policy_run *run,
		struct error *e)
{
	AUTO(json) struct json *answer = ask(dirs, id, "GET", "/policy", NULL, e);
	AUTO(buf) struct buf out = BUF_INIT(POLICY_ANSWER_MAX);
	struct json_writer w = JSON_WRITER(&out);

	(void)run;
	if (!answer) {
		return -1;
	}
	json_add_value(&w, NULL, json_get(answer, "policy"));
	return w.failed || buf_append_str(&out, "\n") < 0
			       ? error_set(e, ERRC_LIMIT, "too much to print")
			       : print(&out, e);
}

/* From a file, or standard input. */
static int run_set(const struct dirs *dirs, const struct id *id, struct policy_run *run,
		struct error *e)
{
	const char *path = run->operands_n > 0 ? run->operands[0] : "-";
	AUTO(buf) struct buf body = BUF_INIT(POLICY_ANSWER_MAX);
	autoclose int fd = str_eq(path, "-") ? fd_dup(STDIN_FILENO, 0) : fd_open(path, O_RDONLY, 0);
	int r = fd < 0 ? fd : fd_read_all(fd, &body);

	if (r < 0) {
		return error_sys(e, -r, "%s", path);
	}
	/* It would be "deny everything" to the API. */
	if (body.n == 0) {
		return error_set(e, ERRC_INVALID, "%s: empty, expected a policy", path);
	}
	AUTO(json) struct json *answer = ask(dirs, id, "PUT", "/policy", &body, e);

	return answer ? 0 : -1;
}

static int rules_patch(const struct dirs *dirs, const struct id *id, const struct policy_run *run,
		const char *action, struct error *e)
{
	AUTO(buf) struct buf body = BUF_INIT(POLICY_ANSWER_MAX);
	struct json_writer w = JSON_WRITER(&body);

	json_array_begin(&w, NULL);
	for (size_t i = 0; i < run->operands_n; i++) {
		json_object_begin(&w, NULL);
		json_add_string(&w, "action", action);
		json_add_string(&w, "target", run->operands[i]);
		json_object_end(&w);
	}
	json_array_end(&w);
	AUTO(json) struct json *answer = ask(dirs, id, "PATCH", "/policy", &body, e);

	return answer ? 0 : -1;
}

static int run_allow(const struct dirs *dirs, const struct id *id, struct policy_run *run,
		struct error *e)
{
	return rules_patch(dirs, id, run, "allow", e);
}

static int run_deny(const struct dirs *dirs, const struct id *id, struct policy_run *run,
		struct error *e)
{
	return rules_patch(dirs, id, run, "deny", e);
}

static int run_remove(const struct dirs *dirs, const struct id *id, struct policy_run *run,
		struct error *e)
{
	AUTO(buf) struct buf body = BUF_INIT(POLICY_ANSWER_MAX);
	struct json_writer w = JSON_WRITER(&body);

	json_array_begin(&w, NULL);
	for (size_t i = 0; i < run->operands_n; i++) {
		json_add_string(&w, NULL, run->operands[i]);
	}
	json_array_end(&w);
	AUTO(json) struct json *answer = ask(dirs, id, "DELETE", "/policy", &body, e);

	return answer ? 0 : -1;
}

static int add_text(struct buf *out, const char *before, const struct json *v)
{
	const char *text = json_string(v);
	char shown[NETPOLICY_TARGET_MAX + 1];

	if (!text) {
		return 0;
	}
	str_printable(text, shown, sizeof(shown));
	return buf_appendf(out, "%s%s", before, shown);
}

/* "TIME  NAME ADDRESS port PORT: WHY TARGET", what there is of it. */
/* TCP goes without saying. */
static int add_where(struct buf *out, const struct json *one)
{
	const char *protocol = json_string(json_get(one, "protocol"));
	uint64_t port = 0;

	if (!protocol || json_u64(json_get(one, "port"), UINT16_MAX, &port) < 0) {
		return protocol && strcmp(protocol, "icmp") == 0 ? buf_append_str(out, " ping") : 0;
	}
	return buf_appendf(out, " port %" PRIu64 "%s", port,
			strcmp(protocol, "udp") == 0 ? "/udp" : "");
}

static int denial_print(const struct json *one, bool as_json, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	if (as_json) {
		json_add_value(&w, NULL, one);
		return w.failed ? -1 : buf_append_str(out, "\n");
	}
	int r = add_text(out, "", json_get(one, "time"));

	if (r == 0) {
		r = add_text(out, "  ", json_get(one, "name"));
	}
	if (r == 0) {
		r = add_text(out, "  ", json_get(one, "address"));
	}
	if (r == 0) {
		r = add_where(out, one);
	}
	if (r == 0) {
		r = add_text(out, ": ", json_get(one, "reason"));
	}
	if (r == 0) {
		r = add_text(out, " ", json_get(one, "target"));
	}
	return r == 0 ? buf_append_str(out, "\n") : r;
}

/* What is newer than *after. */
static int log_round(const struct dirs *dirs, const struct id *id, const struct policy_run *run,
		uint64_t *after, struct error *e)
{
	autofree char *target = mem_printf("/policy/denials?after=%" PRIu64, *after);
	AUTO(json) struct json *answer = ask(dirs, id, "GET", target, NULL, e);
	AUTO(buf) struct buf out = BUF_INIT(POLICY_ANSWER_MAX);

	if (!answer) {
		return -1;
	}
	uint64_t last = 0;

	json_for_each(one, json_get(answer, "denials")) {
		if (denial_print(one, run->args->json, &out) < 0) {
			return error_set(e, ERRC_LIMIT, "too much to print");
		}
	}
	/* It begins anew with a netd that was started again. */
	*after = json_u64(json_get(answer, "last"), INT64_MAX, &last) == 0 ? last : *after;
	return print(&out, e);
}

static int run_log(const struct dirs *dirs, const struct id *id, struct policy_run *run,
		struct error *e)
{
	const struct timespec pause = { .tv_nsec = LOG_PAUSE_MS * 1000000L };
	uint64_t after = 0;
	int r = log_round(dirs, id, run, &after, e);

	while (r == 0 && run->args->follow) {
		(void)nanosleep(&pause, NULL);
		r = log_round(dirs, id, run, &after, e);
		/* It has ended, and so has its log. */
		if (r < 0 && (e->code == ERRC_CONFLICT || e->code == ERRC_UNAVAILABLE)) {
			error_clear(e);
			return 0;
		}
	}
	return r;
}

static const struct verb verbs[] = {
	{ "get", 0, 0, run_get },
	{ "set", 0, 1, run_set },
	{ "allow", 1, -1, run_allow },
	{ "deny", 1, -1, run_deny },
	{ "remove", 1, -1, run_remove },
	{ "log", 0, 0, run_log },
};

static const struct verb *verb_find(const char *name, int operands_n, struct error *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!str_eq(verbs[i].name, name)) {
			continue;
		}
		if (operands_n < verbs[i].operands_min ||
				(verbs[i].operands_max >= 0 &&
						operands_n > verbs[i].operands_max)) {
			(void)error_set(e, ERRC_INVALID, "policy %s: %s", name,
					operands_n < verbs[i].operands_min ? "no target given"
									   : "too many operands");
			(void)error_hint(e, "osbx policy --help");
			return NULL;
		}
		return &verbs[i];
	}
	(void)error_set(e, ERRC_INVALID, "policy: unknown verb %s", name);
	(void)error_hint(e, "get, set, allow, deny, remove and log are known");
	return NULL;
}

static int policy_one(const struct dirs *dirs, const struct sandbox_info *info, void *ctx,
		struct error *e)
{
	struct policy_run *run = ctx;

	return run->verb->run(dirs, &info->state.id, run, e);
}

static int policy_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct policy_args args = { .follow = false };
	char **operands = NULL;
	int r = args_parse(&cmd_policy, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	struct policy_run run = { .args = &args, .operands = operands + 2 };
	char *const names[] = { operands[1], NULL };
	const struct each_opts opts = { .run = policy_one, .ctx = &run, .quiet = true };

	while (run.operands[run.operands_n]) {
		run.operands_n++;
	}
	run.verb = verb_find(operands[0], (int)run.operands_n, &e);
	return run.verb ? sandboxes_each(names, &opts) : cli_fail(&e);
}

const struct args_command cmd_policy = {
	.name = "policy",
	.synopsis = "[options] get|set|allow|deny|remove|log SANDBOX [TARGET...|FILE]",
	.summary = "show or change what a sandbox may connect to, or what was refused",
	.options = policy_options,
	.operands_min = 2,
	.operands_max = -1,
	.run = policy_run,
};
