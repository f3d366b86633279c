/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a pattern is compiled to a program of a few instructions, which is run on a
 * name by the set of all places where it could be (Thompson's construction): each character of the
 * name moves every place of the set one on, an instruction is in the set once. So the time is the
 * product of both lengths whatever the pattern is.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <osbx/mem.h>

#include "glob.h"

enum op {
	OP_CHAR,  /* one character: .c */
	OP_ANY,   /* any one */
	OP_CLASS, /* one of the ranges .a to .b, or none of them with .c */
	OP_STAR,  /* any number of any */
	OP_NEVER, /* nothing matches */
	OP_SPLIT, /* go on at .a and .b */
	OP_JUMP,  /* go on at .a */
	OP_MATCH, /* the whole name must be used up */
};

struct insn {
	enum op op;
	uint32_t a;
	uint32_t b;
	uint32_t c;
};

struct range {
	uint32_t low;
	uint32_t high;
};

/* At most two instructions for each byte of the pattern, and the last. */
#define INSNS_MAX (2 * GLOB_BYTES_MAX + 2)

/* Places in the program, each once. */
struct places {
	uint32_t v[INSNS_MAX];
	uint32_t n;
	uint64_t seen[INSNS_MAX]; /* round in which it was added */
};

struct glob {
	struct insn code[INSNS_MAX];
	uint32_t n;
	struct range ranges[GLOB_BYTES_MAX];
	uint32_t ranges_n;
	struct places sets[2]; /* while a name is matched */
	uint64_t round;
};

/* A brace that is open. */
struct brace {
	uint32_t split; /* of its current alternative */
	uint32_t jumps; /* chain through .a of the jumps to its end; UINT32_MAX: none */
};

struct compiler {
	struct glob *g;
	const char *p;
	const char *start;
	struct brace braces[GLOB_DEPTH_MAX];
	unsigned int depth;
};

/* Next character of s; a byte that does not begin one stands for itself, above all characters. */
static uint32_t next_char(const char **s)
{
	const unsigned char *p = (const unsigned char *)*s;
	const unsigned int n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = p[0] & masks[n];

	for (unsigned int i = 1; i < n; i++) {
		if (p[0] < 0xc2 || p[0] > 0xf4 || (p[i] & 0xc0) != 0x80) {
			(*s)++;
			return 0x110000 + p[0];
		}
		c = c << 6 | (p[i] & 0x3f);
	}
	*s += n;
	return c;
}

static uint32_t emit(struct compiler *c, enum op op, uint32_t value)
{
	assert(c->g->n < INSNS_MAX);
	c->g->code[c->g->n] = (struct insn){ .op = op, .c = value };
	return c->g->n++;
}

/* A character of the pattern behind a possible '\'. */
static int take_char(struct compiler *c, uint32_t *out_c, struct error *e)
{
	if (*c->p == '\\') {
		c->p++;
	}
	if (*c->p == '\0') {
		return error_set(e, ERRC_SYSTEM,
				"bad pattern: it ends within a bracket or with "
				"a backslash");
	}
	*out_c = next_char(&c->p);
	return 0;
}

/* Behind the '['. */
static int compile_class(struct compiler *c, struct error *e)
{
	const bool negated = *c->p == '!' || *c->p == '^';
	const uint32_t at = emit(c, OP_CLASS, negated);

	c->p += negated;
	c->g->code[at].a = c->g->ranges_n;
	do {
		struct range r = { .low = 0 };

		if (*c->p == ']') {
			return error_set(e, ERRC_SYSTEM, "bad pattern: empty brackets");
		}
		if (take_char(c, &r.low, e) < 0) {
			return -1;
		}
		r.high = r.low;
		if (c->p[0] == '-' && c->p[1] != ']' && c->p[1] != '\0') {
			c->p++;
			if (take_char(c, &r.high, e) < 0) {
				return -1;
			}
		}
		c->g->ranges[c->g->ranges_n++] = r;
	} while (*c->p != ']');
	c->p++;
	c->g->code[at].b = c->g->ranges_n;
	return 0;
}

static int brace_open(struct compiler *c, struct error *e)
{
	if (c->depth == GLOB_DEPTH_MAX) {
		return error_set(e, ERRC_SYSTEM, "bad pattern: more than %d braces in braces",
				GLOB_DEPTH_MAX);
	}
	struct brace *b = &c->braces[c->depth++];

	b->jumps = UINT32_MAX;
	b->split = emit(c, OP_SPLIT, 0);
	c->g->code[b->split].a = c->g->n;
	return 0;
}

/* The end of an alternative: a jump to the end of the brace, of which nothing is known yet. */
static void brace_leave(struct compiler *c, struct brace *b)
{
	const uint32_t jump = emit(c, OP_JUMP, 0);

	c->g->code[jump].a = b->jumps;
	b->jumps = jump;
	c->g->code[b->split].b = c->g->n;
}

static void brace_next(struct compiler *c)
{
	struct brace *b = &c->braces[c->depth - 1];

	brace_leave(c, b);
	b->split = emit(c, OP_SPLIT, 0);
	c->g->code[b->split].a = c->g->n;
}

static void brace_close(struct compiler *c)
{
	struct brace *b = &c->braces[--c->depth];

	/* The last alternative's split has no other way; it is an ordinary step. */
	c->g->code[b->split].op = OP_JUMP;
	while (b->jumps != UINT32_MAX) {
		const uint32_t next = c->g->code[b->jumps].a;

		c->g->code[b->jumps].a = c->g->n;
		b->jumps = next;
	}
}

/* Does a component of the pattern end here? */
static bool at_end(const struct compiler *c, const char *p)
{
	return *p == '\0' || *p == '/' || (c->depth > 0 && (*p == ',' || *p == '}'));
}

static bool at_start(const struct compiler *c)
{
	return c->p == c->start || c->p[-1] == '/' ||
	       (c->depth > 0 && (c->p[-1] == '{' || c->p[-1] == ','));
}

/* "**" as a component in front or at the end is no directory at all. */
static void compile_star(struct compiler *c)
{
	const bool is_component = at_start(c) && c->p[1] == '*' && at_end(c, c->p + 2);

	if (is_component && c->p[2] == '/') {
		c->p += 3;
		return;
	}
	c->p += strspn(c->p, "*");
	(void)emit(c, OP_STAR, 0);
}

static void compile_slash(struct compiler *c)
{
	if (c->p[1] == '*' && c->p[2] == '*' && at_end(c, c->p + 3) && c->p[3] != '/') {
		c->p += 3;
		return;
	}
	c->p++;
	(void)emit(c, OP_NEVER, 0);
}

static int compile_one(struct compiler *c, struct error *e)
{
	uint32_t value = 0;

	switch (*c->p) {
	case '*':
		compile_star(c);
		return 0;
	case '/':
		compile_slash(c);
		return 0;
	case '?':
		c->p++;
		(void)emit(c, OP_ANY, 0);
		return 0;
	case '[':
		c->p++;
		return compile_class(c, e);
	case '{':
		c->p++;
		return brace_open(c, e);
	default:
		break;
	}
	if (c->depth > 0 && *c->p == ',') {
		c->p++;
		brace_next(c);
		return 0;
	}
	if (c->depth > 0 && *c->p == '}') {
		c->p++;
		brace_close(c);
		return 0;
	}
	if (take_char(c, &value, e) < 0) {
		return -1;
	}
	(void)emit(c, OP_CHAR, value);
	return 0;
}

int glob_new(const char *pattern, struct glob **out_glob, struct error *e)
{
	if (strnlen(pattern, GLOB_BYTES_MAX) == GLOB_BYTES_MAX) {
		return error_set(e, ERRC_LIMIT, "the pattern is longer than %d bytes",
				GLOB_BYTES_MAX - 1);
	}
	AUTO(glob) struct glob *g = mem_new(struct glob);
	struct compiler c = { .g = g, .p = pattern, .start = pattern };

	while (*c.p != '\0') {
		if (compile_one(&c, e) < 0) {
			return -1;
		}
	}
	if (c.depth > 0) {
		return error_set(e, ERRC_SYSTEM, "bad pattern: an open brace");
	}
	(void)emit(&c, OP_MATCH, 0);
	*out_glob = TAKE_PTR(g);
	return 0;
}

void glob_free(struct glob *g)
{
	free(g);
}

/* Add a place, and where it leads without a character. A place that is added is looked at once, so
 * the loop ends. */
static void places_add(const struct glob *g, struct places *s, uint32_t at, uint64_t round)
{
	const uint32_t first = s->n;

	if (s->seen[at] == round) {
		return;
	}
	s->seen[at] = round;
	s->v[s->n++] = at;
	for (uint32_t i = first; i < s->n; i++) {
		const struct insn *insn = &g->code[s->v[i]];
		uint32_t next[2];
		unsigned int next_n = 0;

		if (insn->op == OP_SPLIT || insn->op == OP_JUMP) {
			next[next_n++] = insn->a;
		}
		if (insn->op == OP_SPLIT) {
			next[next_n++] = insn->b;
		}
		if (insn->op == OP_STAR) {
			next[next_n++] = s->v[i] + 1;
		}
		while (next_n > 0) {
			const uint32_t to = next[--next_n];

			if (s->seen[to] != round) {
				s->seen[to] = round;
				s->v[s->n++] = to;
			}
		}
	}
}

static bool class_has(const struct glob *g, const struct insn *insn, uint32_t c)
{
	for (uint32_t i = insn->a; i < insn->b; i++) {
		if (c >= g->ranges[i].low && c <= g->ranges[i].high) {
			return insn->c == 0;
		}
	}
	return insn->c != 0;
}

/* Move one place on by a character. */
static void step(const struct glob *g, uint32_t at, uint32_t c, struct places *to, uint64_t round)
{
	const struct insn *insn = &g->code[at];

	const bool fits = insn->op == OP_ANY || (insn->op == OP_CHAR && insn->c == c) ||
			  (insn->op == OP_CLASS && class_has(g, insn, c));

	if (fits) {
		places_add(g, to, at + 1, round);
	} else if (insn->op == OP_STAR) {
		places_add(g, to, at, round);
	}
}

bool glob_matches(struct glob *g, const char *name)
{
	struct places *now = &g->sets[0];
	struct places *next = &g->sets[1];

	now->n = 0;
	places_add(g, now, 0, ++g->round);
	while (*name != '\0' && now->n > 0) {
		struct places *const old = now;
		const uint32_t c = next_char(&name);

		next->n = 0;
		g->round++;
		for (uint32_t i = 0; i < now->n; i++) {
			step(g, now->v[i], c, next, g->round);
		}
		now = next;
		next = old;
	}
	for (uint32_t i = 0; i < now->n; i++) {
		if (g->code[now->v[i]].op == OP_MATCH) {
			return true;
		}
	}
	return false;
}
