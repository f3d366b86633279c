/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include <osbx/registry.h>
#include <osbx/str.h>

void registry_config_done(struct registry_config *c)
{
	if (!c) {
		return;
	}
	for (size_t i = 0; i < c->hosts_n; i++) {
		free(c->hosts[i].host);
		free(c->hosts[i].ca_file);
		strv_done(&c->hosts[i].mirrors);
	}
	free(c->hosts);
	strv_done(&c->search);
	*c = (struct registry_config){ .hosts_n = 0 };
}

/* Docker Hub's registry answers under another name than the one images carry. */
const char *registry_wire_host(const char *domain)
{
	return str_eq(domain, "docker.io") ? "registry-1.docker.io" : domain;
}
