/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_flows.c: joins the two halves of flows to links between spans. Both halves have one number. If a number is
 * used again, as in files of several windows or processes, an end belongs to the newest begin before it. If there is
 * none, it belongs to the first begin after it, since the clocks of devices differ slightly from the host's.
 *
 * Flows from forward to backward and from launch to work stay within their process, because ranks in one file use the
 * same numbers.
 */
#include "base/merge_sort.h"
#include "importers/kineto/kineto_import.h"
#include "importers/kineto/kineto_rows.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>

static bool is_one_group(const struct staged_flow *a, const struct staged_flow *b)
{
	return a->kind == b->kind && a->process == b->process && a->id == b->id;
}

/* Groups the flows that may belong together; each group is ordered by time, begins first. */
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

static void kineto_flows_add_link(struct model *model, const struct staged_flow *flow, const struct kineto_spot *from,
                                  const struct kineto_spot *to)
{
	const struct model_link link = {flow->kind, flow->id, from->track, from->row, to->track, to->row};
	if (from->row != MODEL_NONE && to->row != MODEL_NONE)
		model_add_link(model, &link);
}

/* spots: of the flows, by index. */
static void deliver_group(struct kineto_import *import, const struct kineto_spot *spots, uint32_t first, uint32_t end)
{
	const struct staged_flow *flows = import->stage.flows;
	uint32_t from = first;
	while (from < end && flows[from].is_to)
		from++;
	for (uint32_t i = first; i < end && from < end; i++) {
		if (flows[i].is_to)
			kineto_flows_add_link(import->model, &flows[i], &spots[from], &spots[i]);
		else
			from = i;
	}
}

/* Drops flows of launches if there are correlations, which replace them. Only flows before the first correlation got
 * here. */
static void drop_launches(const struct kineto_import *import, struct kineto_stage *stage)
{
	uint32_t kept = 0;
	if (!import->has_correlation)
		return;
	for (uint32_t i = 0; i < stage->flows_count; i++)
		if (stage->flows[i].kind != STEPSCOPE_LINK_LAUNCH)
			stage->flows[kept++] = stage->flows[i];
	stage->flows_count = kept;
}

static void sort_flows(struct kineto_stage *stage)
{
	for (uint32_t i = 0; i < stage->flows_count; i++) {
		struct staged_flow *flow = &stage->flows[i];
		flow->process = flow->kind == STEPSCOPE_LINK_OTHER ? 0 : stage->tracks[flow->track].process;
	}
	merge_sort_in(stage->storage, stage->flows, stage->flows_count, sizeof *stage->flows, compare_flows);
}

void kineto_deliver_flows(struct kineto_import *import, int64_t shift_ns)
{
	struct kineto_stage *stage = &import->stage;
	drop_launches(import, stage);
	uint32_t count = stage->flows_count;
	struct kineto_spot *spots = storage_resize(stage->storage, NULL, (size_t)count + 1, sizeof *spots);
	sort_flows(stage);
	for (uint32_t i = 0; i < count; i++)
		spots[i] = (struct kineto_spot){.time_ns = stage->flows[i].time_ns + shift_ns,
		                                .staged = stage->flows[i].track};
	kineto_find_rows(stage, import->model, spots, count);
	for (uint32_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && is_one_group(&stage->flows[first], &stage->flows[end]);)
			end++;
		deliver_group(import, spots, first, end);
	}
	storage_release(stage->storage, spots);
}
