/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * The machine is looked at in parts (parts[]). A part is fine, and says so in its own words, unless
 * one of findings[] holds for it. A finding is a blocker when it names errors that it explains: if
 * the trial failed with one of them, it is the cause and fails the part. Otherwise, and for all
 * other findings, it is a note: whatever looks bad, a sandbox that started is right.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/caps.h>
#include <osbx/mem.h>
#include <osbx/str.h>

#include "doctor_internal.h"
#include "doctor_table.h"

/* Errors without a number that a machine may be the reason of: sentences of osbx, of a helper
 * program, or a death without a word. What holds is the best explanation of them. */
static bool is_vague(const struct error *failure)
{
	return failure->sysno == 0 &&
	       (failure->code == ERRC_SYSTEM || failure->code == ERRC_UNSUPPORTED ||
			       failure->code == ERRC_TIMEOUT || failure->code == ERRC_INTERNAL);
}

static bool finding_explains(const struct doctor_finding *d, const struct error *failure)
{
	if (d->errnos[0] == 0) {
		return false;
	}
	for (size_t i = 0; i < DOCTOR_ERRNOS_MAX && d->errnos[i] != 0; i++) {
		if (d->errnos[i] == failure->sysno) {
			return true;
		}
	}
	return is_vague(failure);
}

/* The finding that is the error itself: no other one explains it then. */
static const struct doctor_finding *finding_said(
		const struct doctor_facts *f, const struct error *failure)
{
	for (size_t i = 0; failure && i < doctor_findings_n; i++) {
		const struct doctor_finding *d = &doctor_findings[i];
		autofree char *cause = d->holds(f) ? doctor_text(d->cause, f) : NULL;

		if (cause && finding_explains(d, failure) && strstr(failure->text, cause)) {
			return d;
		}
	}
	return NULL;
}

static void finding_add(const struct doctor_finding *d, const struct doctor_facts *f, bool explains,
		struct doctor_lines *out_lines)
{
	const struct doctor_line line = {
		.level = explains ? DOCTOR_FAIL : DOCTOR_NOTE,
		.name = doctor_parts[d->part].name,
		.detail = doctor_text(d->cause, f),
		.remedy = d->remedy ? doctor_text(d->remedy, f) : NULL,
	};

	doctor_lines_add(out_lines, &line);
}

void doctor_check(const struct doctor_facts *f, const struct error *failure,
		struct doctor_lines *out_lines)
{
	const struct doctor_finding *said = finding_said(f, failure);

	for (size_t part = 0; part < DOCTOR_PART_COUNT; part++) {
		size_t before = out_lines->n;

		for (size_t i = 0; i < doctor_findings_n; i++) {
			const struct doctor_finding *d = &doctor_findings[i];

			if (d->part == part && d->holds(f)) {
				bool explains = said      ? d == said
						: failure ? finding_explains(d, failure)
							  : false;

				finding_add(d, f, explains, out_lines);
			}
		}
		if (out_lines->n == before) {
			const struct doctor_line fine = {
				.level = DOCTOR_OK,
				.name = doctor_parts[part].name,
				.detail = doctor_parts[part].describe(f),
			};

			doctor_lines_add(out_lines, &fine);
		}
	}
}

bool doctor_find_cause(const struct doctor_facts *f, const struct error *failure, char **out_cause,
		char **out_remedy)
{
	const struct doctor_finding *found = finding_said(f, failure);

	for (size_t i = 0; !found && i < doctor_findings_n; i++) {
		const struct doctor_finding *d = &doctor_findings[i];

		found = finding_explains(d, failure) && d->holds(f) ? d : NULL;
	}
	if (!found) {
		return false;
	}
	*out_cause = doctor_text(found->cause, f);
	*out_remedy = found->remedy ? doctor_text(found->remedy, f) : NULL;
	return true;
}
