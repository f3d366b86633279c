/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"
#include "code.h"
#include "commands.h"
#include "files.h"
#include "routes.h"
#include "sessions.h"

static void ping(struct http_req *rq)
{
	api_ok(rq);
}

static void isolated_capabilities(struct http_req *rq)
{
	static const char text[] = "{\"available\":false,\"message\":\"isolated sessions are not "
				   "available in this sandbox\",\"setpriv_available\":false,"
				   "\"userns_available\":false,\"commit_supported\":false,"
				   "\"diff_supported\":false}";

	http_reply(rq, 200, "application/json", span_of(text));
}

static void isolated_none(struct http_req *rq)
{
	api_fail(rq, 404, API_NOT_FOUND, "isolated sessions are not available in this sandbox");
}

#define OPEN   HTTP_ROUTE_OPEN
#define STREAM HTTP_ROUTE_STREAM
#define ANY    HTTP_ROUTE_ANY

const struct http_route routes[] = {
	{ HTTP_GET, "/ping", ping, OPEN, 0 },
	{ HTTP_GET, "/ready", ping, OPEN, 0 },

	{ HTTP_POST, "/code", code_post, 0, 0 },
	{ HTTP_DELETE, "/code", code_delete, 0, 0 },
	{ HTTP_POST, "/code/context", code_context_post, 0, 0 },
	{ HTTP_GET, "/code/contexts", code_contexts_get, 0, 0 },
	{ HTTP_DELETE, "/code/contexts", code_contexts_delete, 0, 0 },
	{ HTTP_GET, "/code/contexts/{context_id}", code_context_get, 0, 0 },
	{ HTTP_DELETE, "/code/contexts/{context_id}", code_context_delete, 0, 0 },

	{ HTTP_POST, "/command", command_post, 0, 0 },
	{ HTTP_DELETE, "/command", command_delete, 0, 0 },
	{ HTTP_GET, "/command", command_list, 0, 0 },
	{ HTTP_GET, "/command/status/{id}", command_status, 0, 0 },
	{ HTTP_GET, "/command/{id}/logs", command_logs, 0, 0 },
	{ HTTP_GET, "/command/{id}/resume", command_resume, 0, 0 },

	FILES_ROUTES(""),
	FILES_ROUTES(FILES_IDENTITY_PREFIX),

	{ HTTP_POST, "/session", session_post, 0, 0 },
	{ HTTP_POST, "/session/{id}/run", session_run, 0, 0 },
	{ HTTP_DELETE, "/session/{id}", session_delete, 0, 0 },

	{ HTTP_GET, "/v1/isolated/capabilities", isolated_capabilities, 0, 0 },
	{ 0, "/v1/isolated/{rest*}", isolated_none, ANY, 0 },

	{ HTTP_GET, "/metrics", metrics_get, 0, 0 },
	{ HTTP_GET, "/metrics/watch", metrics_watch, 0, 0 },

	{ HTTP_POST, "/pty", pty_create, 0, 0 },
	{ HTTP_GET, "/pty/{id}", pty_get, 0, 0 },
	{ HTTP_DELETE, "/pty/{id}", pty_delete, 0, 0 },
	{ HTTP_GET, "/pty/{id}/ws", pty_attach, 0, 0 },

	{ 0, "/proxy", proxy_without_port, ANY | STREAM, 0 },
	{ 0, "/proxy/{port}", proxy_pass, ANY | STREAM, 0 },
	{ 0, "/proxy/{port}/{rest*}", proxy_pass, ANY | STREAM, 0 },
};
const size_t routes_n = ARRAY_SIZE(routes);
