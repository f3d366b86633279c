/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   root, CAP_SETUID and CAP_SETGID
 *     initial namespace and CAP_SYS_ADMIN ─────────▶ mapped
 *     else: the range that root may hand out, if it
 *       exists here whole; else 0..n as they are ──▶ shared, with at least two ids
 *   ordinary user, helpers, both files have ranges ▶ subid
 *   everybody else ────────────────────────────────▶ single
 *
 * Since Linux 5.12 a map that contains id 0 of the parent can only be written with CAP_SETFCAP
 * there: file capabilities are bound to the root of the namespace that wrote them.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#include <osbx/caps.h>
#include <osbx/limits.h>
#include <osbx/str.h>

#include "idmap_internal.h"

/* Linux's UID_GID_MAP_MAX_EXTENTS. */
#define EXTENTS_MAX  340
#define PASSWD_NAME  0
#define PASSWD_UID   2
#define PASSWD_COUNT 7
/* The last id that no map may hold, (uid_t)-1, is out; systemd keeps clear of the last 64 Ki. */
#define ROOT_RANGE_END 4294901760U

struct extents {
	size_t n;
	struct idmap_range v[EXTENTS_MAX];
};

/* A decimal 32-bit number and nothing else. */
static bool number_parse(struct span s, uint32_t *out_v)
{
	char text[16];
	uint64_t v = 0;

	if (s.n == 0 || s.n >= sizeof(text) || memchr(s.p, '\0', s.n)) {
		return false;
	}
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	if (str_to_u64(text, UINT32_MAX, &v) < 0) {
		return false;
	}
	*out_v = (uint32_t)v;
	return true;
}

/* Cut a line into exactly n fields. */
static bool fields_split(struct span line, struct span *fields, size_t n)
{
	struct span piece;
	size_t found = 0;

	if (line.n > LIMIT_PASSWD_LINE) {
		return false;
	}
	while (span_next(&line, ':', &piece)) {
		if (found == n) {
			return false;
		}
		fields[found++] = piece;
	}
	return found == n;
}

/* Three numbers between blanks, as the kernel writes them. */
static bool extent_parse(struct span line, struct idmap_range *out)
{
	uint32_t numbers[3] = { 0 };
	struct span piece;
	size_t n = 0;

	while (span_next(&line, ' ', &piece)) {
		if (piece.n == 0) {
			continue;
		}
		if (n == ARRAY_SIZE(numbers) || !number_parse(piece, &numbers[n])) {
			return false;
		}
		n++;
	}
	*out = (struct idmap_range){
		.inside = numbers[0],
		.outside = numbers[1],
		.count = numbers[2],
	};
	return n == ARRAY_SIZE(numbers);
}

static void extents_parse(struct span text, struct extents *out)
{
	struct span line;

	out->n = 0;
	while (out->n < EXTENTS_MAX && span_next(&text, '\n', &line)) {
		if (extent_parse(line, &out->v[out->n])) {
			out->n++;
		}
	}
}

/* The extent that holds an id of this user namespace, or NULL. */
static const struct idmap_range *extent_find(const struct extents *ext, uint64_t id)
{
	for (size_t i = 0; i < ext->n; i++) {
		if (id >= ext->v[i].inside && id - ext->v[i].inside < ext->v[i].count) {
			return &ext->v[i];
		}
	}
	return NULL;
}

/* How many ids from first on exist in this user namespace without a gap? */
static uint64_t mapped_run(const struct extents *ext, uint32_t first)
{
	const struct idmap_range *r = extent_find(ext, first);
	uint64_t at = first;

	while (r) {
		at = (uint64_t)r->inside + r->count;
		r = extent_find(ext, at);
	}
	return at - first;
}

/* "name:first:count" with ids that can be mapped; never host root's. */
static bool subid_parse(struct span line, struct span *out_owner, struct idmap_range *out)
{
	struct span f[3];
	uint32_t first = 0;
	uint32_t count = 0;

	if (!fields_split(line, f, ARRAY_SIZE(f)) || f[0].n == 0 || !number_parse(f[1], &first) ||
			!number_parse(f[2], &count) || first == 0 || count == 0 ||
			count > UINT32_MAX - first) {
		return false;
	}
	*out_owner = f[0];
	*out = (struct idmap_range){ .outside = first, .count = count };
	return true;
}

void idmap_root_range_in(struct span subuid, uint32_t *out_first, uint32_t *out_count)
{
	struct span line;
	struct span owner;
	struct idmap_range r;

	while (span_next(&subuid, '\n', &line)) {
		if (subid_parse(line, &owner, &r) && span_eq(owner, span_of("osbx")) &&
				r.count >= IDMAP_SANDBOX_IDS) {
			*out_first = r.outside;
			*out_count = r.count;
			return;
		}
	}
	*out_first = IDMAP_DEFAULT_FIRST;
	*out_count = ROOT_RANGE_END - IDMAP_DEFAULT_FIRST;
}

void idmap_set_ranges(struct idmap *map, uint32_t first, uint32_t uids, uint32_t gids)
{
	map->uids_n = 1;
	map->gids_n = 1;
	map->uids[0] = (struct idmap_range){ .outside = first, .count = uids };
	map->gids[0] = (struct idmap_range){ .outside = first, .count = gids };
}

/* Name of a user id by /etc/passwd alone, as newuidmap finds it for local users; empty if none.
 * Never NSS (it loads code), never LOGNAME (the caller says what he likes). */
static struct span passwd_name(struct span passwd, uint32_t uid)
{
	struct span line;
	struct span f[PASSWD_COUNT];
	uint32_t found = 0;

	while (span_next(&passwd, '\n', &line)) {
		if (fields_split(line, f, ARRAY_SIZE(f)) && number_parse(f[PASSWD_UID], &found) &&
				found == uid) {
			return f[PASSWD_NAME];
		}
	}
	return (struct span){ .p = "", .n = 0 };
}

static bool overlaps(const struct idmap_range *ranges, size_t n, const struct idmap_range *r)
{
	for (size_t i = 0; i < n; i++) {
		if (r->outside < (uint64_t)ranges[i].outside + ranges[i].count &&
				ranges[i].outside < (uint64_t)r->outside + r->count) {
			return true;
		}
	}
	return false;
}

/* Whose subordinate ids, and which ids exist here. */
struct owner {
	struct span name;
	char number[16];
	uint32_t self; /* becomes container 0 */
	struct span map;
};

/* Container 0 is the caller, then his ranges in the order of the file. Number of ranges. */
static size_t subids_collect(struct span file, const struct owner *who, struct idmap_range *out)
{
	struct extents here;
	struct span line;
	struct span owner;
	struct idmap_range r;
	uint32_t next = 1;
	size_t n = 1;

	extents_parse(who->map, &here);
	out[0] = (struct idmap_range){ .outside = who->self, .count = 1 };
	while (n < IDMAP_RANGES_MAX && next < IDMAP_SANDBOX_IDS && span_next(&file, '\n', &line)) {
		if (!subid_parse(line, &owner, &r) ||
				(!span_eq(owner, span_of(who->number)) &&
						(who->name.n == 0 || !span_eq(owner, who->name)))) {
			continue;
		}
		if (overlaps(out, n, &r) || mapped_run(&here, r.outside) < r.count) {
			continue;
		}
		r.inside = next;
		r.count = r.count < IDMAP_SANDBOX_IDS - next ? r.count : IDMAP_SANDBOX_IDS - next;
		next += r.count;
		out[n++] = r;
	}
	return n;
}

static bool decide_subid(const struct idmap_facts *f, struct idmap *map)
{
	struct owner who = {
		.name = passwd_name(f->passwd, f->euid),
		.self = f->euid,
		.map = f->uid_map,
	};

	(void)snprintf(who.number, sizeof(who.number), "%u", f->euid);
	*map = (struct idmap){ .mode = IDMAP_SUBID, .helpers = true, .setgroups = true };
	map->uids_n = subids_collect(f->subuid, &who, map->uids);
	/* /etc/subgid has the user in its first field, too. */
	who.self = f->egid;
	who.map = f->gid_map;
	map->gids_n = subids_collect(f->subgid, &who, map->gids);
	return f->helpers && f->setgroups && map->uids_n > 1 && map->gids_n > 1;
}

static uint32_t ids_clamp(uint64_t n)
{
	return n < IDMAP_SANDBOX_IDS ? (uint32_t)n : IDMAP_SANDBOX_IDS;
}

static bool decide_shared(const struct idmap_facts *f, struct idmap *map)
{
	struct extents uids;
	struct extents gids;
	uint32_t first = 0;
	uint32_t count = 0;

	extents_parse(f->uid_map, &uids);
	extents_parse(f->gid_map, &gids);
	idmap_root_range_in(f->subuid, &first, &count);
	if (mapped_run(&uids, first) < IDMAP_SANDBOX_IDS ||
			mapped_run(&gids, first) < IDMAP_SANDBOX_IDS) {
		first = f->caps & CAPS_BIT(CAP_SETFCAP) ? 0 : 1;
	}
	*map = (struct idmap){ .mode = IDMAP_SHARED, .setgroups = f->setgroups };
	idmap_set_ranges(map, first, ids_clamp(mapped_run(&uids, first)),
			ids_clamp(mapped_run(&gids, first)));
	return map->uids[0].count >= 2 && map->gids[0].count >= 2;
}

static int decide_single(const struct idmap_facts *f, struct idmap *map, struct error *e)
{
	if (f->euid == 0 && !(f->caps & CAPS_BIT(CAP_SETFCAP))) {
		error_set(e, ERRC_UNSUPPORTED,
				"root without the capability SETFCAP cannot make user namespaces "
				"with an id of its own");
		return error_hint(e, "add the capability SETFCAP to the container or service that "
				     "osbx runs in, or start osbx as an ordinary user");
	}
	*map = (struct idmap){ .mode = IDMAP_SINGLE };
	idmap_set_ranges(map, 0, 1, 1);
	map->uids[0].outside = f->euid;
	map->gids[0].outside = f->egid;
	return 0;
}

static bool may_set_ids(const struct idmap_facts *f)
{
	const uint64_t set_ids = CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SETGID);

	return f->euid == 0 && (f->caps & set_ids) == set_ids;
}

bool idmap_may_map(const struct idmap_facts *facts)
{
	return may_set_ids(facts) && facts->initial && (facts->caps & CAPS_BIT(CAP_SYS_ADMIN)) != 0;
}

int idmap_decide(const struct idmap_facts *facts, struct idmap *out_map, struct error *e)
{
	struct idmap map;

	if (idmap_may_map(facts)) {
		*out_map = (struct idmap){ .mode = IDMAP_MAPPED, .setgroups = true };
		idmap_set_first(out_map, IDMAP_DEFAULT_FIRST);
		return 0;
	}
	if (may_set_ids(facts) && decide_shared(facts, &map)) {
		*out_map = map;
		return 0;
	}
	if (facts->euid != 0 && decide_subid(facts, &map)) {
		*out_map = map;
		return 0;
	}
	return decide_single(facts, out_map, e);
}
