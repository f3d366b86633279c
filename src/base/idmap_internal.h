/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap_internal - what idmap.c and idmap_decide.c share.
 */
#ifndef OSBX_BASE_IDMAP_INTERNAL_H
#define OSBX_BASE_IDMAP_INTERNAL_H

#include <osbx/idmap.h>

/* idmap_root_range with the bytes of /etc/subuid. */
void idmap_root_range_in(struct span subuid, uint32_t *out_first, uint32_t *out_count);
/* Is the mode `mapped` by the ids, capabilities and namespace alone? */
bool idmap_may_map(const struct idmap_facts *facts);
/* One range: inside 0.. becomes first... */
void idmap_set_ranges(struct idmap *map, uint32_t first, uint32_t uids, uint32_t gids);

#endif
