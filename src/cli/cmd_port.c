/* SPDX-License-Identifier: Apache-2.0 */
#include <osbx/str.h>

#include "cli.h"
#include "sandboxes.h"

#define OUT_BYTES_MAX (1U << 20)

static const struct args_option port_options[] = { { .name = NULL } };

struct port_job {
	const char *wanted; /* NULL: all */
	uint16_t inside;
	unsigned int found;
	struct buf *out;
};

static int wanted_parse(struct port_job *job, struct error *e)
{
	struct port_map map;

	if (!job->wanted) {
		return 0;
	}
	if (strchr(job->wanted, ':')) {
		return error_set(e, ERRC_INVALID, "port \"%s\": not a port of a sandbox",
				job->wanted);
	}
	if (ports_parse(job->wanted, &map, e) < 0) {
		return -1;
	}
	job->inside = map.inside;
	return 0;
}

static int port_print(struct port_job *job, const struct port_map *map)
{
	char outside[PORTS_TEXT_MAX];

	ports_format_outside(map, outside);
	job->found++;
	return job->wanted ? buf_appendf(job->out, "%s\n", outside)
			   : buf_appendf(job->out, "%u/tcp -> %s\n", (unsigned int)map->inside,
					     outside);
}

static int port_one(const struct dirs *dirs, const struct sandbox_info *info, void *ctx,
		struct error *e)
{
	struct port_job *job = ctx;
	const struct strv *ports = &info->state.ports;

	(void)dirs;
	if (state_is_final(&info->state)) {
		return error_set(e, ERRC_CONFLICT, "sandbox %s has ended", info->state.id.text);
	}
	strv_for_each(ports, i) {
		struct port_map map;

		if (ports_parse(ports->v[i], &map, e) < 0) {
			return -1;
		}
		if ((!job->wanted || job->inside == map.inside) && port_print(job, &map) < 0) {
			return error_set(e, ERRC_LIMIT, "too much to print");
		}
	}
	return job->wanted && job->found == 0
			       ? error_set(e, ERRC_NOT_FOUND,
						 "sandbox %s: port %u is not published",
						 info->state.id.text, (unsigned int)job->inside)
			       : 0;
}

static int port_run(int argc, char **argv)
{
	struct error e = ERROR_INIT;
	char **operands = NULL;
	int none = 0;
	int r = args_parse(&cmd_port, argc, argv, &none, &operands, &e);

	if (r != 0) {
		return r < 0 ? cli_fail(&e) : 0;
	}
	AUTO(buf) struct buf out = BUF_INIT(OUT_BYTES_MAX);
	struct port_job job = { .wanted = operands[1], .out = &out };
	char *const names[] = { operands[0], NULL };
	const struct each_opts opts = { .run = port_one, .ctx = &job, .quiet = true };

	if (wanted_parse(&job, &e) < 0) {
		return cli_fail(&e);
	}
	int status = sandboxes_each(names, &opts);

	r = cli_print(&out);
	return status ? status : r;
}

const struct args_command cmd_port = {
	.name = "port",
	.synopsis = "SANDBOX [PORT]",
	.summary = "print where the published ports of a sandbox are",
	.options = port_options,
	.operands_min = 1,
	.operands_max = 2,
	.run = port_run,
};
