/* SPDX-License-Identifier: Apache-2.0
 *
 * copy_waits.h: which work of a device is a copy to the host.
 */
#ifndef ANALYSIS_DEVICES_COPY_WAITS_H
#define ANALYSIS_DEVICES_COPY_WAITS_H

#include "model/launch_config.h"
#include "model/model.h"

/* work: row i of the chunk. config: the configuration of its launch, or NULL. */
bool is_copy_to_host(const struct model *model, const struct span_chunk *chunk, uint32_t i,
                     const struct launch_config *config);

#endif
