/* SPDX-License-Identifier: Apache-2.0
 *
 * communication_sizes.h: what a kernel that communicates exchanges: which collective, how many bytes, among how many ranks. Told, in this
 * order, by the launch itself (PyTorch from 2.3 on), by the operator that launched it ("record_param_comms", from 2.0 on), by the
 * annotation around it ("nccl:all_to_all" with its inputs) and by its name.
 */
#ifndef ANALYSIS_RANKS_COMMUNICATION_SIZES_H
#define ANALYSIS_RANKS_COMMUNICATION_SIZES_H

#include "model/launch_config.h"
#include "model/launches.h"

struct communication_size {
	const char *collective; /* of collective_of_name(), "": not known */
	char dtype[LAUNCH_TEXT_BYTES];
	bool has_bytes;
	double bytes;   /* as nccl-tests count: of allgather and gather what a rank gets, of the others what it gives */
	uint32_t ranks; /* 0: not known */
};

void communication_size_find(struct communication_size *size, const struct model *model,
                             const struct launches *launches, struct launch_configs *configs, uint32_t track,
                             uint32_t row);

/* Of a collective that is known, from an INPUTS text; NULL or no sizes: nothing more is known of it. */
void communication_size_of_inputs(struct communication_size *size, const char *inputs);

/* Bytes over a link for each byte of the size, as nccl-tests have it (PERFORMANCE.md, and gather.cu and scatter.cu). */
double communication_bus_factor(const struct communication_size *size);
#define COMMUNICATION_BUS_RATE_DEFINITION                                                                                 \
	"the same, times 2(n-1)/n for an allreduce, (n-1)/n for allgather, reducescatter, alltoall, gather and scatter, " \
	"of n ranks (nccl-tests): what a link carries"

#endif
