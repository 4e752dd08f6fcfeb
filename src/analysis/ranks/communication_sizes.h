/* SPDX-License-Identifier: Apache-2.0
 *
 * communication_sizes.h: the data that a kernel exchanges: collective, bytes and number of ranks. Sources, in this
 * order: the launch itself (PyTorch from 2.3 on), the operator that launched it ("record_param_comms", from 2.0 on),
 * the annotation around it ("nccl:all_to_all" with its inputs), its name.
 */
#ifndef ANALYSIS_RANKS_COMMUNICATION_SIZES_H
#define ANALYSIS_RANKS_COMMUNICATION_SIZES_H

#include "model/launch_config.h"
#include "model/launches.h"

struct communication_size {
	const char *collective; /* from collective_of_name(); "": unknown */
	char dtype[LAUNCH_TEXT_BYTES];
	bool has_bytes;
	double bytes;   /* as nccl-tests count: for allgather and gather bytes a rank gets, otherwise those it gives */
	uint32_t ranks; /* 0: unknown */
};

void communication_size_find(struct communication_size *size, const struct model *model,
                             const struct launches *launches, struct launch_configs *configs, uint32_t track,
                             uint32_t row);

/* Sets the bytes of a known collective from an INPUTS text. Does nothing if the text is NULL or has no sizes. */
void communication_size_of_inputs(struct communication_size *size, const char *inputs);

/* Returns the bytes over a link per byte of the size, as in nccl-tests (PERFORMANCE.md, gather.cu, scatter.cu). */
double communication_bus_factor(const struct communication_size *size);
#define COMMUNICATION_BUS_RATE_DEFINITION                                                                              \
	"algorithm_bytes_per_s times 2(n-1)/n for allreduce, (n-1)/n for allgather, reducescatter, alltoall, gather "  \
	"and scatter, with n ranks (as in nccl-tests): rate over one link"

#endif
