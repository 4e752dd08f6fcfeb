/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_cost.h: what the recorder cost the program, as it measured itself.
 */
#ifndef ANALYSIS_RECORDING_COST_H
#define ANALYSIS_RECORDING_COST_H

#include "model/model.h"

struct recording_cost {
	uint64_t events;
	double events_ns;  /* events times calibrated cost per event */
	double drainer_ns; /* CPU time of the recorder's thread */
	double wall_ns;    /* recorded time of the process */
	double ratio;      /* (events_ns + drainer_ns) / wall_ns */
};

/* False when the process did not measure itself. */
bool recording_cost_of(struct recording_cost *cost, const struct model *model, uint32_t process);
/* Sums over all processes of the program that measured themselves. */
bool recording_cost_all(struct recording_cost *cost, const struct model *model);

#endif
