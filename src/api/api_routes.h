/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_routes - the table of the lifecycle API.
 */
#ifndef OSBX_API_API_ROUTES_H
#define OSBX_API_API_ROUTES_H

#include <osbx/http.h>

extern const struct http_route api_routes[];
extern const size_t api_routes_n;

#endif
