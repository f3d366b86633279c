/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include <osbx/clock.h>
#include <osbx/request.h>
#include <osbx/str.h>

#include "cli.h"
#include "sandboxes.h"

#define OUT_BYTES_MAX (64U << 20)

struct ps_args {
	bool all;
	bool json;
	bool quiet;
	struct strv filters;
};

static const struct args_option ps_options[] = {
	{ "all", 'a', ARGS_FLAG, offsetof(struct ps_args, all), NULL,
			"also those that have ended as they should", NULL },
	{ "filter", 0, ARGS_LIST, offsetof(struct ps_args, filters), "KEY=VALUE",
			"only with this label=K[=V], status= or name=", NULL },
	{ "json", 0, ARGS_FLAG, offsetof(struct ps_args, json), NULL, "print a JSON array", NULL },
	{ "quiet", 'q', ARGS_FLAG, offsetof(struct ps_args, quiet), NULL, "print ids only", NULL },
	{ .name = NULL },
};

static bool has_label(const struct sandbox_state *s, const char *want)
{
	bool with_value = strchr(want, '=') != NULL;

	strv_for_each(&s->labels, i) {
		const char *rest = str_after(s->labels.v[i], want);

		if (rest && (rest[0] == '\0' || (!with_value && rest[0] == '='))) {
			return true;
		}
	}
	return false;
}

static bool has_status(const struct sandbox_state *s, const char *want)
{
	return strcasecmp(state_name(s->code), want) == 0;
}

static bool has_name(const struct sandbox_state *s, const char *want)
{
	return s->name && str_eq(s->name, want);
}

static const struct {
	const char *prefix;
	bool (*match)(const struct sandbox_state *s, const char *want);
} filters[] = {
	{ "label=", has_label },
	{ "status=", has_status },
	{ "name=", has_name },
};

static int filters_check(const struct strv *given, struct error *e)
{
	strv_for_each(given, i) {
		bool known = false;

		for (size_t k = 0; k < ARRAY_SIZE(filters); k++) {
			known |= str_after(given->v[i], filters[k].prefix) != NULL;
		}
		if (!known) {
			(void)error_set(e, ERRC_INVALID, "option --filter: %s", given->v[i]);
			return error_hint(e, "label=KEY, label=KEY=VALUE, status=STATE, name=NAME");
		}
	}
	return 0;
}

/* All of them. */
static bool is_wanted(const struct sandbox_state *s, const struct strv *given)
{
	strv_for_each(given, i) {
		for (size_t k = 0; k < ARRAY_SIZE(filters); k++) {
			const char *want = str_after(given->v[i], filters[k].prefix);

			if (want && !filters[k].match(s, want)) {
				return false;
			}
		}
	}
	return true;
}

/* "3m", in the largest whole unit. */
static void age_format(int64_t ms, char *out, size_t size)
{
	int64_t s = ms > 0 ? ms / 1000 : 0;

	if (s < 120) {
		(void)snprintf(out, size, "%" PRId64 "s", s);
	} else if (s < 2L * 3600) {
		(void)snprintf(out, size, "%" PRId64 "m", s / 60);
	} else if (s < 48L * 3600) {
		(void)snprintf(out, size, "%" PRId64 "h", s / 3600);
	} else {
		(void)snprintf(out, size, "%" PRId64 "d", s / 86400);
	}
}

static void status_format(const struct sandbox_state *s, char *out, size_t size)
{
	if (s->code == SANDBOX_TERMINATED && s->exit_status >= 0) {
		(void)snprintf(out, size, "%s (%d)", state_name(s->code), s->exit_status);
	} else if (s->code == SANDBOX_FAILED && s->reason) {
		(void)snprintf(out, size, "%s (%s)", state_name(s->code), s->reason);
	} else {
		(void)snprintf(out, size, "%s", state_name(s->code));
	}
}

/* "127.0.0.1:8080->80", with commas between. */
static int ports_append(const struct strv *ports, struct buf *out)
{
	int r = ports->n == 0 ? buf_append_str(out, "-") : 0;

	for (size_t i = 0; i < ports->n && r == 0; i++) {
		struct error e = ERROR_INIT;
		struct port_map map;
		char outside[PORTS_TEXT_MAX];

		if (ports_parse(ports->v[i], &map, &e) < 0) {
			continue;
		}
		ports_format_outside(&map, outside);
		r = buf_appendf(out, "%s%s->%u", i == 0 ? "" : ",", outside,
				(unsigned int)map.inside);
	}
	return r;
}

static int row_table(const struct sandbox_info *info, struct buf *out)
{
	const struct sandbox_state *s = &info->state;
	int64_t now_ms = clock_wall_ms();
	char id[ID_LEN + 1];
	char image[64];
	char status[64];
	char age[24];
	char left[24] = "-";

	id_short(&s->id, id);
	status_format(s, status, sizeof(status));
	age_format(now_ms - s->created_ms, age, sizeof(age));
	if (s->expires_ms != 0 && !state_is_final(s)) {
		age_format(s->expires_ms - now_ms, left, sizeof(left));
	}
	str_printable(s->image ? s->image : "-", image, sizeof(image));
	int r = buf_appendf(out, "%.8s  %-20s %-28s %-22s %-8s %-6s %-7s ", id,
			s->name ? s->name : "-", image, status, request_network_name(s->network),
			age, left);

	if (r == 0) {
		r = state_is_final(s) ? buf_append_str(out, "-") : ports_append(&s->ports, out);
	}
	return r < 0 ? r : buf_append_str(out, "\n");
}

static int list_print(const struct sandbox_list *list, const struct ps_args *args, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	int r = 0;

	if (args->json) {
		json_array_begin(&w, NULL);
	} else if (!args->quiet) {
		r = buf_appendf(out, "%-9s %-20s %-28s %-22s %-8s %-6s %-7s %s\n", "ID", "NAME",
				"IMAGE", "STATUS", "NETWORK", "AGE", "EXPIRES", "PORTS");
	}
	for (size_t i = 0; i < list->n && r == 0; i++) {
		const struct sandbox_info *info = &list->v[i];

		if (!is_wanted(&info->state, &args->filters)) {
			continue;
		}
		if (args->json) {
			sandbox_info_format(info, NULL, NULL, &w);
		} else {
			r = args->quiet ? buf_appendf(out, "%s\n", info->state.id.text)
					: row_table(info, out);
		}
	}
	if (args->json) {
		json_array_end(&w);
		r = w.failed ? -1 : buf_append_str(out, "\n");
	}
	return r;
}

static int ps_main(const struct ps_args *args, struct error *e)
{
	AUTO(dirs) struct dirs dirs = DIRS_INIT;
	AUTO(sandbox_list) struct sandbox_list list = { .n = 0 };
	AUTO(buf) struct buf out = BUF_INIT(OUT_BYTES_MAX);

	if (filters_check(&args->filters, e) < 0 || dirs_open(&dirs, e) < 0 ||
			sandbox_list(&dirs, args->all, &list, e) < 0) {
		return cli_fail(e);
	}
	return list_print(&list, args, &out) < 0 ? 125 : cli_print(&out);
}

static int ps_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	struct ps_args args = { .all = false };
	char **operands = NULL;
	int r = args_parse(&cmd_ps, argc, argv, &args, &operands, &e);

	r = r == 0 ? ps_main(&args, &e) : r < 0 ? cli_fail(&e) : 0;
	strv_done(&args.filters);
	return r;
}

const struct args_command cmd_ps = {
	.name = "ps",
	.synopsis = "[options]",
	.summary = "list sandboxes",
	.options = ps_options,
	.operands_max = 0,
	.run = ps_run,
};
