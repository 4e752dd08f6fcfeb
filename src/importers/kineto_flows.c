/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_flows.c: the two halves of flows as links between spans. Both have one number. Where a number comes again, as in files that
 * several windows or processes wrote to, an end belongs to the newest begin before it; only if there is none, to the first one behind it,
 * as clocks of devices are not quite those of the host. From forward to backward no flow leaves its process.
 */
#include "importers/kineto_import.h"

#include "model/merge_sort.h"

#include <stepscope/stepscope.h>

static bool is_one_group(const struct staged_flow *a, const struct staged_flow *b)
{
	return a->kind == b->kind && a->process == b->process && a->id == b->id;
}

/* Groups of flows that may belong together, each by time, begins first. */
static int compare_flows(const void *left, const void *right)
{
	const struct staged_flow *a = left, *b = right;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->is_to - b->is_to;
}

static void add_link(struct kineto_import *import, const struct staged_flow *from, const struct staged_flow *to,
                     int64_t shift_ns)
{
	const struct kineto_stage *stage = &import->stage;
	struct model_link link = {.kind = to->kind, .number = to->id};
	link.from_row = kineto_row_at(stage, from->track, from->time_ns + shift_ns, import->model, &link.from_track);
	link.to_row = kineto_row_at(stage, to->track, to->time_ns + shift_ns, import->model, &link.to_track);
	if (link.from_row != MODEL_NONE && link.to_row != MODEL_NONE)
		model_add_link(import->model, &link);
}

static void deliver_group(struct kineto_import *import, uint32_t first, uint32_t end, int64_t shift_ns)
{
	const struct staged_flow *flows = import->stage.flows;
	uint32_t from = first;
	while (from < end && flows[from].is_to)
		from++;
	for (uint32_t i = first; i < end && from < end; i++) {
		if (flows[i].is_to)
			add_link(import, &flows[from], &flows[i], shift_ns);
		else
			from = i;
	}
}

void kineto_deliver_flows(struct kineto_import *import, int64_t shift_ns)
{
	struct kineto_stage *stage = &import->stage;
	for (uint32_t i = 0; i < stage->flows_count; i++)
		stage->flows[i].process = stage->flows[i].kind == STEPSCOPE_LINK_BACKWARD
		                                  ? stage->tracks[stage->flows[i].track].process
		                                  : 0;
	merge_sort(stage->flows, stage->flows_count, sizeof *stage->flows, compare_flows);
	for (uint32_t first = 0, end; first < stage->flows_count; first = end) {
		for (end = first + 1;
		     end < stage->flows_count && is_one_group(&stage->flows[first], &stage->flows[end]);)
			end++;
		deliver_group(import, first, end, shift_ns);
	}
}
