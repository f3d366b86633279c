/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>

#include "doctor_internal.h"
#include "net_internal.h"

static const char *const level_names[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_NOTE] = "note",
	[DOCTOR_FAIL] = "FAIL",
};
_Static_assert(ARRAY_SIZE(level_names) == DOCTOR_LEVEL_COUNT, "one name per level");

const char *doctor_level_name(enum doctor_level level)
{
	return level_names[level];
}

void doctor_lines_add(struct doctor_lines *lines, const struct doctor_line *line)
{
	lines->v = mem_resize(lines->v, lines->n, lines->n + 1, sizeof(*lines->v));
	lines->v[lines->n++] = *line;
}

void doctor_lines_done(struct doctor_lines *lines)
{
	for (size_t i = 0; i < lines->n; i++) {
		free(lines->v[i].detail);
		free(lines->v[i].cause);
		free(lines->v[i].remedy);
		free(lines->v[i].hint);
	}
	free(TAKE_PTR(lines->v));
	lines->n = 0;
}

void doctor_report_done(struct doctor_report *r)
{
	if (r) {
		doctor_lines_done(&r->checks);
		doctor_lines_done(&r->steps);
	}
}

/* A failure before the first step, too, has a line. */
static struct doctor_line *failed_step(struct doctor_report *r, const struct error *failure)
{
	if (r->steps.n == 0) {
		char text[ERROR_TEXT_MAX + 128];

		error_render(failure, text, sizeof(text));
		const struct doctor_line line = {
			.level = DOCTOR_FAIL,
			.name = "trial",
			.detail = mem_strdup(text),
		};

		doctor_lines_add(&r->steps, &line);
	}
	return &r->steps.v[r->steps.n - 1];
}

/* Without a remedy, what the failing code itself advises. */
static void step_explain(
		struct doctor_report *r, const struct doctor_facts *f, const struct error *failure)
{
	struct doctor_line *step = failed_step(r, failure);

	(void)doctor_find_cause(f, failure, &step->cause, &step->remedy);
	if (!step->remedy && failure->hint[0] != '\0') {
		step->hint = mem_strdup(failure->hint);
	}
}

void doctor_run(struct doctor_report *out_report)
{
	struct error failure = ERROR_INIT;

	*out_report = (struct doctor_report)DOCTOR_REPORT_INIT;
	/* First: it makes the directories that are looked at then. */
	out_report->works = doctor_trial(&out_report->steps, &out_report->took_us, &failure) == 0;
	autofree struct doctor_facts *f = doctor_facts_read();

	f->features_n = features_find(f->features);
	if (f->map_error.code == ERRC_OK) {
		(void)!doctor_network_try(&f->map, &f->net_error);
	}
	f->no_ping = !net_ping_is_there();
	doctor_check(f, out_report->works ? NULL : &failure, &out_report->checks);
	if (!out_report->works) {
		step_explain(out_report, f, &failure);
	}
}

/* Errors that come of machines rather than of requests and images: the kernel's. What osbx itself
 * does not support has been said. */
static bool is_of_machine(const struct error *e)
{
	switch (e->sysno) {
	case EPERM:
	case ENOSYS:
	case EINVAL:
	case ENODEV:
	case EOPNOTSUPP:
		return true;
	default:
		return false;
	}
}

/* "CAUSE: REMEDY" as far as there is room. */
static void hint_set(struct error *e, const char *cause, const char *remedy)
{
	static const char elsewhere[] = "osbx doctor has the remedy";
	/* Some errors are the cause itself. */
	const bool is_said = strstr(e->text, cause) != NULL;
	const size_t before = is_said ? 0 : strlen(cause) + strlen(": ");
	const size_t line = remedy ? strcspn(remedy, "\n") : 0;

	if (is_said && !remedy) {
		return;
	}
	e->hint[0] = '\0';
	if (before + strlen(elsewhere) >= sizeof(e->hint)) {
		(void)error_hint(e, "osbx doctor has the cause and the remedy");
	} else if (line > 0 && before + line < sizeof(e->hint)) {
		(void)error_hint(e, "%s%s%.*s", is_said ? "" : cause, is_said ? "" : ": ",
				(int)line, remedy);
	} else if (remedy) {
		(void)error_hint(e, "%s%s%s", is_said ? "" : cause, is_said ? "" : ": ", elsewhere);
	} else {
		(void)error_hint(e, "%s", cause);
	}
}

void doctor_explain(struct error *e)
{
	autofree char *cause = NULL;
	autofree char *remedy = NULL;

	if (e->code != ERRC_SYSTEM && e->code != ERRC_UNSUPPORTED) {
		return;
	}
	autofree struct doctor_facts *f = doctor_facts_read();

	if (doctor_find_cause(f, e, &cause, &remedy)) {
		hint_set(e, cause, remedy);
	} else if (is_of_machine(e)) {
		(void)error_hint(e, "osbx doctor looks for the cause");
	}
}
