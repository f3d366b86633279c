/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: engine
 * doctor - can this machine, this user, run sandboxes? And if not: what is in the way, and which
 * commands remove it.
 *
 * The answer is a real sandbox, made by sandbox_run in a throw-away child in the user's own
 * directories, that has to answer. Facts about the machine only explain: a table of findings, each
 * with its cause and remedy, and with the errors that it can be the reason of.
 */
#ifndef OSBX_DOCTOR_H
#define OSBX_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <osbx/cleanup.h>
#include <osbx/compiler.h>
#include <osbx/error.h>

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_NOTE, /* works, but less or slower than it could */
	DOCTOR_FAIL,
	DOCTOR_LEVEL_COUNT,
};

struct doctor_line {
	enum doctor_level level;
	const char *name; /* of the part of the machine, or of the step */
	char *detail;
	char *cause;  /* of a failed step, where the machine explains it, else NULL */
	char *remedy; /* commands to paste, one a line; NULL: none is known */
	char *hint;   /* of a failed step without a remedy: what its own code advises; or NULL */
};

struct doctor_lines {
	size_t n;
	struct doctor_line *v;
};

struct doctor_report {
	bool works;                 /* a sandbox started, answered and was removed */
	int64_t took_us;            /* from the first step to the end of the last */
	struct doctor_lines checks; /* of the machine, in a fixed order */
	struct doctor_lines steps;  /* of the sandbox, up to the one that failed */
};

#define DOCTOR_REPORT_INIT     \
	{                      \
		.works = false \
	}

/* Name of a level: "ok", "note", "FAIL". */
const char *doctor_level_name(enum doctor_level level);
/* Start a sandbox and look at the machine. Takes as long as a sandbox, at most a minute. Leaves
 * nothing behind but the directories of the store. */
void doctor_run(struct doctor_report *out_report) NONNULL(1);
void doctor_report_done(struct doctor_report *r);
AUTO_DEFINE(doctor_report, struct doctor_report, doctor_report_done);
/* A sandbox could not be started: if the machine is the reason, the hint of the pending error
 * becomes what doctor_run would say, in one line. */
void doctor_explain(struct error *e) NONNULL(1);

#endif
