/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A context is what a client names; behind it is an interpreter that a back end starts, now a
 * process with a driver of ours, now a kernel of a Jupyter server of the image.
 *
 *   ABSENT ── .start ──▶ STARTING ── code_started ──▶ STARTED
 *     ▲ ▲                    │                           │
 *     │ └ code_start_failed ─┘                           │
 *     └──── code_ended, or killed by the core (.stop) ───┘
 *
 * The interpreter may end at any moment; its context stays, and the next run starts another one.
 * Nothing that was in the old one is there then, so that must always be said: to the run under way,
 * or, when there is none, to the next run, whose code is not executed, for it may rely on it.
 *
 * A context has at most one run. A spare is a context that nobody knows yet: it waits, started, for
 * the first one who wants a context of its language.
 */
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>
#include <osbx/str.h>

#include "code_internal.h"
#include "code_jupyter.h"

#define OUT_MAX ((size_t)8 * CODE_BUNDLE_MAX)

struct codes *codes_of(struct execd *x)
{
	if (!x->codes) {
		x->codes = mem_new(struct codes);
		x->codes->execd = x;
		x->codes->out.max = OUT_MAX;
	}
	return x->codes;
}

const struct code_backend *code_backend_of(const struct execd *x)
{
	const struct execd_process *main = api_main(x);
	const char *url = main ? strv_env_find(&main->env, JUPYTER_HOST_VARIABLE) : NULL;

	return url && url[0] ? &code_backend_jupyter : &code_backend_driver;
}

struct code_context *code_context_find(const struct codes *t, const char *id)
{
	struct code_context *c = t->list;

	while (c && (c->is_spare || !str_eq(c->id.text, id))) {
		c = c->next;
	}
	return c;
}

struct code_context *code_context_default(const struct codes *t, const char *language)
{
	struct code_context *c = t->list;

	while (c && !(c->is_default && str_eq(c->language, language))) {
		c = c->next;
	}
	return c;
}

static bool has_room(const struct codes *t, bool is_inside)
{
	size_t inside = 0;

	for (const struct code_context *c = t->list; c; c = c->next) {
		inside += c->is_inside;
	}
	return t->n < CODE_CONTEXTS_MAX && (!is_inside || inside < CODE_CONTEXTS_INSIDE);
}

static void context_start(struct code_context *c, struct error *e)
{
	c->stage = CODE_STARTING;
	if (c->backend->start(c, e) < 0) {
		c->stage = CODE_ABSENT;
	}
}

int code_context_start(struct code_context *c, struct error *e)
{
	context_start(c, e);
	return c->stage == CODE_ABSENT ? -1 : 0;
}

static struct code_context *context_add(struct codes *t, const char *language)
{
	struct code_context *c = mem_new(struct code_context);

	c->codes = t;
	id_new(&c->id);
	c->language = mem_strdup(language);
	c->backend = code_backend_of(t->execd);
	c->next = t->list;
	t->list = c;
	t->n++;
	return c;
}

static void context_free(struct code_context *c)
{
	struct code_context **at = &c->codes->list;

	while (*at != c) {
		at = &(*at)->next;
	}
	*at = c->next;
	c->codes->n--;
	strv_done(&c->envs);
	free(c->language);
	free(c->cwd);
	free(c->lost);
	free(c);
}

/* A spare one becomes what was wished for. */
static struct code_context *spare_take(struct codes *t, const struct code_wish *w)
{
	struct code_context *c = t->list;

	while (c && !(c->is_spare && c->stage != CODE_ABSENT && str_eq(c->language, w->language))) {
		c = c->next;
	}
	if (!c || w->cwd || (w->envs && w->envs->n > 0)) {
		return NULL;
	}
	c->is_spare = false;
	return c;
}

void code_spare_add(struct codes *t, const char *language)
{
	struct error e = ERROR_INIT;

	for (const struct code_context *c = t->list; c; c = c->next) {
		if (c->is_spare && str_eq(c->language, language)) {
			return;
		}
	}
	if (!has_room(t, false)) {
		return;
	}
	struct code_context *c = context_add(t, language);

	c->is_spare = true;
	if (code_context_start(c, &e) < 0) {
		context_free(c);
	}
}

struct code_context *code_context_new(struct codes *t, const struct code_wish *w, struct error *e)
{
	struct code_context *c = spare_take(t, w);

	if (c) {
		code_spare_add(t, w->language);
	} else if (!has_room(t, w->is_inside)) {
		(void)error_set(e, ERRC_LIMIT, "%d contexts exist", CODE_CONTEXTS_MAX);
		(void)error_hint(e, "delete some that are not needed any more");
		return NULL;
	} else {
		c = context_add(t, w->language);
		c->cwd = w->cwd ? mem_strdup(w->cwd) : NULL;
		if (w->envs && strv_add_all(&c->envs, strv_get(w->envs)) < 0) {
			(void)error_set(e, ERRC_LIMIT, "too many variables");
			context_free(c);
			return NULL;
		}
	}
	c->is_default = w->is_default;
	c->is_inside = w->is_inside;
	if (c->stage == CODE_ABSENT && code_context_start(c, e) < 0) {
		context_free(c);
		return NULL;
	}
	return c;
}

/* What is left of an interpreter. */
static void context_stop(struct code_context *c)
{
	if (c->stage != CODE_ABSENT) {
		c->backend->stop(c);
		c->stage = CODE_ABSENT;
	}
}

void code_context_kill(struct code_context *c)
{
	context_stop(c);
}

void code_context_drop(struct code_context *c)
{
	struct http_req *creator = TAKE_PTR(c->creator);

	context_stop(c);
	if (creator) {
		api_fail(creator, 500, API_RUNTIME, "the context was deleted while it was created");
	}
	if (c->run) {
		code_run_abort(c->run, CODE_KERNEL_DIED, "the context was deleted");
	}
	context_free(c);
}

void code_started(struct code_context *c)
{
	struct http_req *creator = TAKE_PTR(c->creator);

	c->stage = CODE_STARTED;
	if (creator) {
		code_context_answer(creator, c);
	}
	if (c->run) {
		code_run_go(c->run);
	}
}

void code_start_failed(struct code_context *c, const struct error *e)
{
	struct http_req *creator = TAKE_PTR(c->creator);
	bool is_new = creator || c->is_spare || c->is_default;

	context_stop(c);
	if (creator) {
		code_fail(creator, e);
	}
	if (c->run) {
		code_run_refuse(c->run, e);
	}
	if (is_new) {
		context_free(c);
	}
}

void code_ended(struct code_context *c, const char *ename, const char *evalue)
{
	autofree char *text =
			mem_printf("%s; its variables are lost, the next run starts anew", evalue);

	context_stop(c);
	if (c->is_spare) {
		context_free(c);
	} else if (c->run) {
		code_run_abort(c->run, ename, text);
	} else {
		free(c->lost);
		c->lost = mem_printf("since the last run %s; its variables are lost, the code was "
				     "not executed, the next run starts anew",
				evalue);
	}
}
