/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <osbx/fd.h>
#include <osbx/mem.h>
#include <osbx/path.h>

#include "api.h"
#include "files.h"
#include "shown.h"

#define BODY_BYTES_MAX  ((size_t)64 << 20)
#define READ_BYTES      ((size_t)64 << 10)
#define ARRAY_BYTES     ((size_t)64 << 10) /* of an answer that are kept together */
#define ARRAY_BYTES_MAX ((size_t)1 << 20)

struct job {
	files_op_fn op;
	const struct execd_process *main; /* NULL: it has not been started yet */
};

static const char *code_of(const struct files *f, const struct error *e)
{
	if (e->code == ERRC_INVALID) {
		return f->invalid_code;
	}
	if (e->code == ERRC_NOT_FOUND) {
		return API_FILE_NOT_FOUND;
	}
	return e->code == ERRC_SYSTEM ? API_RUNTIME : NULL;
}

static void fail(struct files *f, const struct error *e)
{
	/* Half an answer must not look like a whole one. */
	if (http_has_begun(f->rq)) {
		http_abort(f->rq);
	} else {
		api_fail_error(f->rq, code_of(f, e), e);
	}
}

static int prepare(struct files *f, struct error *e)
{
	f->root_fd = fd_open("/", O_PATH | O_DIRECTORY, 0);
	f->proc_fd = f->root_fd < 0 ? -1 : proc_open(f->root_fd);
	if (f->root_fd < 0 || f->proc_fd < 0) {
		return error_sys(e, f->root_fd < 0 ? -f->root_fd : -f->proc_fd,
				"open the root of the sandbox");
	}
	return files_become(f, e);
}

/* In the worker; it ends afterwards, nothing is freed but what holds a file. */
static void run(struct http_req *rq, void *ctx)
{
	const struct job *job = ctx;
	struct files f = { .rq = rq, .main = job->main, .root_fd = -1, .proc_fd = -1 };
	struct error e = ERROR_INIT;

	f.invalid_code = API_INVALID_BODY;
	if (prepare(&f, &e) < 0 || job->op(&f, &e) < 0) {
		fail(&f, &e);
	}
}

void files_serve(struct http_req *rq, files_op_fn op)
{
	/* Decoded now: a worker has no descriptors of PID 1's. */
	struct job job = { .op = op, .main = api_main(api_execd(rq)) };
	const struct http_fork_opts opts = { .run = run, .ctx = &job };

	/* It has answered when it fails. */
	(void)!http_fork(rq, &opts);
}

int files_query(const struct files *f, const char *name, char **out_value, struct error *e)
{
	autofree char *value = NULL;
	int r = http_query(f->rq, name, &value);

	if (r < 0) {
		return error_set(e, ERRC_INVALID, "the query cannot be decoded");
	}
	if (!value || value[0] == '\0') {
		return error_set(e, ERRC_INVALID, "missing query parameter '%s'", name);
	}
	*out_value = TAKE_PTR(value);
	return 0;
}

int files_query_paths(const struct files *f, struct strv *out_paths, struct error *e)
{
	AUTO(strv) struct strv paths = STRV_INIT;
	size_t at = 0;

	for (;;) {
		autofree char *name = NULL;
		autofree char *value = NULL;
		int r = http_query_next(f->rq, &at, &name, &value);

		if (r < 0) {
			return error_set(e, ERRC_INVALID, "the query cannot be decoded");
		}
		if (r == 0) {
			*out_paths = TAKE(paths, (struct strv)STRV_INIT);
			return 0;
		}
		if (str_eq(name, "path") && strv_take(&paths, TAKE_PTR(value)) < 0) {
			return error_set(e, ERRC_LIMIT, "too many paths");
		}
	}
}

static int body_read(struct files *f, struct buf *b, struct error *e)
{
	for (;;) {
		if (buf_reserve(b, READ_BYTES) < 0) {
			return error_set(e, ERRC_LIMIT, "the body is larger than %zu bytes",
					BODY_BYTES_MAX);
		}
		ssize_t n = http_blocking_read(f->rq, b->p + b->n, READ_BYTES);

		if (n < 0) {
			return error_set(e, ERRC_INVALID, "the body is cut short");
		}
		if (n == 0) {
			return 0;
		}
		b->n += (size_t)n;
	}
}

int files_body(struct files *f, struct json **out_json, struct error *e)
{
	AUTO(buf) struct buf b = BUF_INIT(BODY_BYTES_MAX + READ_BYTES);

	if (body_read(f, &b, e) < 0) {
		return -1;
	}
	struct json *json = json_parse(buf_span(&b), e);

	if (!json) {
		return error_wrap(e, "the body");
	}
	*out_json = json;
	return 0;
}

int files_body_each(struct files *f,
		int (*one)(struct files *f, const struct json *v, struct error *e), struct error *e)
{
	AUTO(json) struct json *body = NULL;

	if (files_body(f, &body, e) < 0) {
		return -1;
	}
	if (!json_is_object(body)) {
		return error_set(e, ERRC_INVALID, "the body: expected an object of paths");
	}
	json_for_each(v, body) {
		if (one(f, v, e) < 0) {
			return -1;
		}
	}
	api_ok(f->rq);
	return 0;
}

void files_array_begin(struct files_array *a, struct http_req *rq)
{
	*a = (struct files_array){ .rq = rq, .buf = BUF_INIT(ARRAY_BYTES_MAX) };
	a->w = (struct json_writer)JSON_WRITER(&a->buf);
	json_array_begin(&a->w, NULL);
}

void files_array_flush(struct files_array *a)
{
	if (a->buf.n < ARRAY_BYTES) {
		return;
	}
	if (!http_has_begun(a->rq)) {
		http_begin(a->rq, 200, "application/json", UINT64_MAX);
	}
	http_write(a->rq, buf_span(&a->buf));
	buf_reset(&a->buf);
}

void files_array_end(struct files_array *a)
{
	json_array_end(&a->w);
	if (!http_has_begun(a->rq)) {
		api_json(a->rq, 200, &a->buf);
		return;
	}
	http_write(a->rq, buf_span(&a->buf));
	http_end(a->rq);
}

void files_array_done(struct files_array *a)
{
	buf_done(&a->buf);
}
