/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include <osbx/doctor.h>
#include <osbx/json.h>
#include <osbx/limits.h>
#include <osbx/str.h>
#include <osbx/tty.h>

#include "cli.h"

#define INDENT "      "

struct doctor_args {
	bool json;
	bool quiet;
};

static const struct args_option doctor_options[] = {
	{ "json", 0, ARGS_FLAG, offsetof(struct doctor_args, json), NULL, "print a JSON object",
			NULL },
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct doctor_args, quiet), NULL,
			"print only what fails", NULL },
	{ .name = NULL },
};

/* The commands of a remedy, one element each. */
static void remedy_json(struct json_writer *w, const char *remedy)
{
	struct span rest = span_of(remedy);
	struct span line;

	json_array_begin(w, "remedy");
	while (span_next(&rest, '\n', &line)) {
		autofree char *text = span_dup(line);

		json_add_string(w, NULL, text);
	}
	json_array_end(w);
}

static void lines_json(struct json_writer *w, const char *name, const struct doctor_lines *lines)
{
	json_array_begin(w, name);
	for (size_t i = 0; i < lines->n; i++) {
		const struct doctor_line *line = &lines->v[i];

		json_object_begin(w, NULL);
		json_add_string(w, "name", line->name);
		json_add_string(w, "level", doctor_level_name(line->level));
		json_add_string(w, "detail", line->detail);
		if (line->cause) {
			json_add_string(w, "cause", line->cause);
		}
		if (line->remedy) {
			remedy_json(w, line->remedy);
		}
		if (line->hint) {
			json_add_string(w, "hint", line->hint);
		}
		json_object_end(w);
	}
	json_array_end(w);
}

static int report_json(const struct doctor_report *r, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_object_begin(&w, NULL);
	json_add_bool(&w, "works", r->works);
	json_add_i64(&w, "microseconds", r->took_us);
	lines_json(&w, "checks", &r->checks);
	lines_json(&w, "steps", &r->steps);
	json_object_end(&w);
	return w.failed ? -1 : buf_append_str(out, "\n");
}

/* Text of the machine may hold anything: a path, a label. */
static int append_clean(struct buf *out, const char *before, const char *text)
{
	char clean[1024];

	str_printable(text, clean, sizeof(clean));
	return buf_appendf(out, "%s%s\n", before, clean);
}

static int append_remedy(struct buf *out, const char *remedy)
{
	struct span rest = span_of(remedy);
	struct span line;
	int r = 0;

	while (r == 0 && span_next(&rest, '\n', &line)) {
		autofree char *text = span_dup(line);

		r = append_clean(out, INDENT INDENT, text);
	}
	return r;
}

static int append_line(struct buf *out, const struct doctor_line *line, bool colour)
{
	static const char *const colours[] = {
		[DOCTOR_OK] = "\033[32m",
		[DOCTOR_NOTE] = "\033[33m",
		[DOCTOR_FAIL] = "\033[31m",
	};
	const char *detail = line->detail ? line->detail : "";
	int r = buf_appendf(out, "%s%-5s%s %s: ", colour ? colours[line->level] : "",
			doctor_level_name(line->level), colour ? "\033[0m" : "", line->name);

	if (r == 0) {
		r = append_clean(out, "", detail);
	}
	if (r == 0 && line->hint) {
		r = append_clean(out, INDENT "hint: ", line->hint);
	}
	if (r == 0 && line->cause && !strstr(detail, line->cause)) {
		r = append_clean(out, INDENT "because: ", line->cause);
	}
	/* A step's cause is a line above, with its remedy. */
	if (r == 0 && line->remedy && !line->cause) {
		r = append_remedy(out, line->remedy);
	}
	return r;
}

static int append_lines(struct buf *out, const struct doctor_lines *lines, bool quiet, bool colour)
{
	int r = 0;

	for (size_t i = 0; i < lines->n && r == 0; i++) {
		if (!quiet || lines->v[i].level == DOCTOR_FAIL) {
			r = append_line(out, &lines->v[i], colour);
		}
	}
	return r;
}

static int report_text(const struct doctor_report *r, bool quiet, struct buf *out)
{
	const bool colour = tty_has_colour(STDOUT_FILENO);
	int n = append_lines(out, &r->checks, quiet, colour);

	if (n == 0) {
		n = append_lines(out, &r->steps, quiet, colour);
	}
	if (n < 0 || quiet) {
		return n;
	}
	return r->works ? buf_appendf(out,
					  "A sandbox started, answered and was removed in %.1f "
					  "ms: osbx works here.\n",
					  (double)r->took_us / 1000)
			: buf_append_str(out, "No sandbox can be started here.\n");
}

static int doctor_main(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct doctor_args args = { .json = false };
	char **operands = NULL;
	int r = args_parse(&cmd_doctor, argc, argv, &args, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(doctor_report) struct doctor_report report = DOCTOR_REPORT_INIT;
	AUTO(buf) struct buf out = BUF_INIT(LIMIT_STATE_BYTES);

	doctor_run(&report);
	r = args.json ? report_json(&report, &out) : report_text(&report, args.quiet, &out);
	r = r < 0 ? 125 : cli_print(&out);
	return r != 0 ? r : report.works ? 0 : 1;
}

const struct args_command cmd_doctor = {
	.name = "doctor",
	.synopsis = "[options]",
	.summary = "start a sandbox, and say what is in its way and how to remove it",
	.options = doctor_options,
	.operands_max = 0,
	.run = doctor_main,
};
