/* SPDX-License-Identifier: Apache-2.0
 *
 * cost.h: the cost of the recorder to the program, as the recorder measured it.
 */
#ifndef ANALYSIS_EVIDENCE_COST_H
#define ANALYSIS_EVIDENCE_COST_H

#include "analysis/evidence/operator_cost.h"

/* Work in the program's threads and beside them is CPU time, so it is compared with CPU time. On several cores, the
 * sum may exceed the wall time. */
#define RECORDING_COST_DEFINITION                                                                                      \
	"the recorder's own work: events and Python frames, times their costs calibrated at start, plus the "          \
	"CPU time of its thread"
#define RECORDING_COST_DENOMINATOR                                                                                     \
	"CPU time of the processes that measured the cost; for a process without sampled CPU time, recorded "          \
	"time times the number of its threads"
#define RECORDING_COST_OF_A_PART                                                                                       \
	"--steps reads only a part of the run; the recorder measures its cost over the whole run"

struct recording_cost {
	uint64_t events;
	double events_ns;  /* events times calibrated cost per event */
	double stacks_ns;  /* Python frames that were read, times calibrated cost of one */
	double drainer_ns; /* CPU time of the recorder's thread */
	double wall_ns;    /* recorded time of the process */
	double cpu_ns;     /* denominator of ratio; at least the sum of these three */
	double ratio;      /* of the three to cpu_ns */
};

/* How much longer steps took because they were recorded. This includes the cost of operators in the steps that have
 * them, the CPU time of the recorder's threads, and the events of the other steps. */
struct recording_price {
	struct operator_cost operators;
	const char *unknown; /* why `ratio` is not reliable; NULL: it is reliable */
	bool has_interval;   /* the fields below are known */
	bool is_counted;     /* no step has operators: the cost was counted, not measured */
	double ratio, low, high;
	double all; /* the same if all steps had operators */
};

#define RECORDING_PRICE_DEFINITION                                                                                     \
	"extra time of the program's steps because they were recorded: difference between steps with "                 \
	"operators and their neighbours without, times the share of steps with operators, plus the CPU time "          \
	"of the recorder's threads and its events in the other steps. If no steps reveal the cost of a "               \
	"program without PyTorch: the recorder's own work as a share of CPU time"
#define RECORDING_PRICE_BOUND                                                                                          \
	"the 95 % interval is wider than +- a third of the value: overhead_high_ratio is an upper bound"

/* Returns the price of the job, over all ranks. */
struct recording_price recording_price_find(const struct model *model, const struct step_times *times);

/* Sums over all processes of the program that measured themselves. Returns false if there are none. */
bool recording_cost_all(struct recording_cost *cost, const struct model *model);

#endif
