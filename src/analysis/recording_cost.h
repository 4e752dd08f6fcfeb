/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_cost.h: what the recorder cost the program, as it measured itself.
 */
#ifndef ANALYSIS_RECORDING_COST_H
#define ANALYSIS_RECORDING_COST_H

#include "model/model.h"

/* Work in the program's threads and beside them is CPU time, so it is compared with CPU time: on several cores their sum
 * may well be more than the wall time. */
#define RECORDING_COST_DEFINITION                                                                                       \
	"the recorder's own work: events and frames of Python times the cost of one calibrated at start, plus the CPU " \
	"time of its thread"
#define RECORDING_COST_DENOMINATOR                                                                                     \
	"CPU time of the processes that measured it; of a process that did not sample that, its recorded time times "  \
	"the number of its threads"
#define RECORDING_COST_OF_A_PART "--steps: only a part was read, and the recorder measures itself over the whole"

struct recording_cost {
	uint64_t events;
	double events_ns;  /* events times calibrated cost per event */
	double stacks_ns;  /* frames of Python that were read, times calibrated cost of one */
	double drainer_ns; /* CPU time of the recorder's thread */
	double wall_ns;    /* recorded time of the process */
	double cpu_ns;     /* what it is a share of: at least these three */
	double ratio;      /* of the three in cpu_ns */
};

struct step_times;

/* With --cost-every: how much longer a step takes with recording on, with its 95 % interval. */
struct cost_difference {
	double ratio, low, high;
};

/* Of the first rank. False: recording did not alternate. */
bool recording_cost_compare(struct cost_difference *difference, const struct model *model,
                            const struct step_times *times);

/* Sums over all processes of the program that measured themselves. */
bool recording_cost_all(struct recording_cost *cost, const struct model *model);

#endif
