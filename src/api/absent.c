/* SPDX-License-Identifier: Apache-2.0 */
#include "api_internal.h"
#include "handlers.h"

void snapshots_absent(struct http_req *rq)
{
	api_fail(rq, 501, API_SNAPSHOT_NOT_IMPL, "snapshots are not supported by this server");
}

void pools_absent(struct http_req *rq)
{
	api_fail(rq, 501, API_POOL_NOT_SUPPORTED, "pools are not supported by this server");
}

void templates_absent(struct http_req *rq)
{
	api_fail(rq, 501, API_TEMPLATES, "templates are not supported by this server");
}
