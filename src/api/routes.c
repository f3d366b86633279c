/* SPDX-License-Identifier: Apache-2.0 */
#include "api_internal.h"
#include "api_routes.h"
#include "handlers.h"

/* Every route of the API stands at the root and below /v1. */
#define BOTH(method, pattern, handler, flags)                       \
	{ method, pattern, handler, flags, API_BODY_MAX },          \
	{                                                           \
		method, "/v1" pattern, handler, flags, API_BODY_MAX \
	}

#define SANDBOX     "/sandboxes/{id}"
#define PROXY_FLAGS (HTTP_ROUTE_STREAM | HTTP_ROUTE_ANY | HTTP_ROUTE_OPEN)

const struct http_route api_routes[] = {
	{ HTTP_GET, "/health", health_get, HTTP_ROUTE_OPEN, 0 },
	{ HTTP_GET, "/version", version_get, HTTP_ROUTE_OPEN, 0 },
	{ HTTP_GET, "/metrics", metrics_get, 0, 0 },
	{ HTTP_POST, "/v1/metrics/events", metrics_events_post, 0, 65536 },
	BOTH(HTTP_POST, "/sandboxes", sandboxes_post, 0),
	BOTH(HTTP_GET, "/sandboxes", sandboxes_get, 0),
	BOTH(HTTP_GET, SANDBOX, sandbox_get, 0),
	BOTH(HTTP_DELETE, SANDBOX, sandbox_delete, 0),
	BOTH(HTTP_PATCH, SANDBOX "/metadata", sandbox_metadata, 0),
	BOTH(HTTP_POST, SANDBOX "/pause", sandbox_pause, 0),
	BOTH(HTTP_POST, SANDBOX "/resume", sandbox_resume, 0),
	BOTH(HTTP_POST, SANDBOX "/renew-expiration", sandbox_renew, 0),
	BOTH(HTTP_GET, SANDBOX "/endpoints/{port}", endpoint_get, 0),
	BOTH(HTTP_GET, SANDBOX "/diagnostics/logs", diagnostics_logs, 0),
	BOTH(HTTP_GET, SANDBOX "/diagnostics/events", diagnostics_events, 0),
	BOTH(HTTP_GET, SANDBOX "/diagnostics/inspect", diagnostics_inspect, 0),
	BOTH(HTTP_GET, SANDBOX "/diagnostics/summary", diagnostics_summary, 0),
	BOTH(HTTP_GET, SANDBOX "/networkpolicy", sandbox_policy, 0),
	BOTH(HTTP_PUT, SANDBOX "/networkpolicy", sandbox_policy, 0),
	BOTH(HTTP_PATCH, SANDBOX "/networkpolicy", sandbox_policy, 0),
	BOTH(HTTP_DELETE, SANDBOX "/networkpolicy", sandbox_policy, 0),
	BOTH(HTTP_POST, SANDBOX "/snapshots", snapshots_absent, 0),
	BOTH(HTTP_GET, "/snapshots", snapshots_absent, 0),
	BOTH(HTTP_GET, "/snapshots/{id}", snapshots_absent, 0),
	BOTH(HTTP_DELETE, "/snapshots/{id}", snapshots_absent, 0),
	BOTH(HTTP_GET, "/pools", pools_absent, 0),
	BOTH(HTTP_POST, "/pools", pools_absent, 0),
	BOTH(HTTP_GET, "/pools/{name}", pools_absent, 0),
	BOTH(HTTP_PUT, "/pools/{name}", pools_absent, 0),
	BOTH(HTTP_DELETE, "/pools/{name}", pools_absent, 0),
	BOTH(HTTP_GET, "/templates", templates_absent, 0),
	BOTH(HTTP_POST, "/templates", templates_absent, 0),
	BOTH(HTTP_GET, "/templates/{id}", templates_absent, 0),
	BOTH(HTTP_DELETE, "/templates/{id}", templates_absent, 0),
	/* Needs no key: what is asked is the sandbox's, which has a token of its own. */
	BOTH(HTTP_GET, SANDBOX "/proxy/{port}", sandbox_proxy, PROXY_FLAGS),
	BOTH(HTTP_GET, SANDBOX "/proxy/{port}/{rest*}", sandbox_proxy, PROXY_FLAGS),
};
const size_t api_routes_n = ARRAY_SIZE(api_routes);
