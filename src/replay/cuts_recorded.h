/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts_recorded.h: cuts of our own recordings of programs on processors, whose operators are no items. The cuts of cuts.h
 * with the same names call them.
 */
#ifndef REPLAY_CUTS_RECORDED_H
#define REPLAY_CUTS_RECORDED_H

#include "replay/plan.h"

static inline bool is_recorded_on_processors(const struct replay_graph *graph)
{
	return graph->is_recorded && !graph->has_device;
}

bool cut_recorded_host(struct replay_plan *plans, uint32_t count, bool is_between);
bool cut_recorded_sync(struct replay_plan *plan);
bool cut_recorded_conversions(struct replay_plan *plan);
bool cut_recorded_no_phase(struct replay_plan *plan);
bool cut_recorded_optimizer(struct replay_plan *plan, bool is_whole);
bool cut_recorded_growth(struct replay_plan *plan);
/* Removes the waits for other ranks. */
void cut_recorded_waits(struct replay_plan *plan);
bool cut_recorded_periodic(struct replay_plan *plan);
bool cut_recorded_rank(struct replay_plan *plans, uint32_t count);

#endif
