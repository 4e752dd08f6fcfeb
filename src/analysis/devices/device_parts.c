/* SPDX-License-Identifier: Apache-2.0
 *
 * device_parts.c: see device_parts.h. One list of instants for each part; each list is cut by all parts before it.
 */
#include "analysis/devices/device_parts.h"

#include "analysis/analysis_context.h"
#include "base/memory.h"
#include "model/cell_words.h"
#include "model/device_names.h"
#include "model/lanes.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

const struct part_text device_part_texts[PARTS] = {
	[PART_COMPUTE] = {CELL_COMPUTE, "compute_ns", "a compute kernel runs on a device"},
	[PART_COMMUNICATION] = {CELL_EXPOSED_COMMUNICATION, "communication_ns",
                                "a communication kernel runs, and no compute kernel"},
	[PART_COPIES] = {CELL_EXPOSED_COPIES, "copies_ns", "a copy or fill runs, and no kernel"},
	[PART_QUEUED] =
		{CELL_IDLE_QUEUED, "queued_ns",
                 "no device works although the launch of the next work had ended when the devices stopped: the work "
                 "waits for another stream, an event or the device itself"},
	[PART_LAUNCH] =
		{CELL_IDLE_LAUNCH, "launch_ns",
                 "no device works during the launch of the next work: from the start of the call to the start of the "
                 "work"},
	[PART_DATA] =
		{CELL_IDLE_DATA, "data_ns",
                 "no device works and nothing is launched; a thread that drives the devices waits for the next batch"},
	[PART_SYNC] = {CELL_IDLE_SYNC, "sync_ns",
                       "no device works any more; a thread is still in a call that waits for the devices"},
	[PART_RUNTIME] = {CELL_IDLE_RUNTIME, "runtime_ns",
                          "no device works; a thread is in another call of the runtime or driver"},
	[PART_HOST] = {CELL_IDLE_HOST, "host_ns",
                       "no device works; a thread runs recorded operators, ranges or Python"},
	[PART_OTHER] = {CELL_IDLE_NOTHING, "other_ns",
                        "no device works, and no recorded span runs on the threads that drive the devices"},
};

static uint8_t device_parts_classify_name(const char *name)
{
	return is_data_wait(name)                    ? PART_DATA
	       : is_synchronizing_call(name)         ? PART_SYNC
	       : !strncmp(name, "ProfilerStep#", 13) ? PART_OTHER
	                                             : PART_HOST;
}

static enum device_part part_of_span(struct device_parts *parts, const struct model *model,
                                     const struct span_chunk *chunk, uint32_t i)
{
	enum device_part part;

	switch (chunk->kind[i]) {
	case SPAN_PHASE:
		return chunk->phase[i] == STEPSCOPE_PHASE_DATA ? PART_DATA : PART_OTHER;
	case SPAN_STEP:
	case SPAN_MICRO_BATCH:
		return PART_OTHER;
	case SPAN_RUNTIME:
		part = (enum device_part)name_class(&parts->names, model, chunk->name[i]);
		return part == PART_SYNC ? part : PART_RUNTIME;
	default:
		part = (enum device_part)name_class(&parts->names, model, chunk->name[i]);
		return part == PART_SYNC ? PART_HOST : part;
	}
}

/* Returns true if the time is covered completely. Calls come in the order of start_ns. */
static bool is_covered(const struct intervals *covered, size_t *at, int64_t start_ns, int64_t end_ns)
{
	while (*at < covered->count && covered->items[*at].end_ns <= start_ns)
		++*at;
	return *at < covered->count && covered->items[*at].start_ns <= start_ns && end_ns <= covered->items[*at].end_ns;
}

/* Skips spans that would be cut off completely: most spans of a thread while the device works. */
static void device_parts_add_lane(struct device_parts *parts, const struct model *model, uint32_t number)
{
	const struct track *track = model->tracks[number];
	struct intervals own[PART_OTHER] = {{0}};
	size_t at = 0;

	for (int part = PART_DATA; part < PART_OTHER; part++)
		intervals_live_in(&own[part], model->storage);
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			int64_t start_ns = chunk->start_ns[i], end_ns = start_ns + chunk->dur_ns[i];
			enum device_part part;

			if (is_covered(&parts->covered, &at, start_ns, end_ns))
				continue;
			part = part_of_span(parts, model, chunk, i);
			if (part <= parts->last)
				intervals_add(&own[part], start_ns, end_ns);
		}
		model_chunk_done(model, chunk);
	}
	for (int part = PART_DATA; part < PART_OTHER; part++) {
		if (parts->lists[part].count) {
			intervals_join(&parts->spare, &parts->lists[part], &own[part]);
			intervals_swap(&parts->spare, &parts->lists[part]);
		} else {
			intervals_swap(&own[part], &parts->lists[part]);
		}
		intervals_release(&own[part]);
	}
}

/* Adds the threads that launched work or mark steps, with all their lanes. */
static void add_threads(struct device_parts *parts, const struct model *model, const struct launches *launches,
                        uint32_t process)
{
	bool *drives = memory_resize(NULL, model->tracks_count, sizeof(*drives));

	memset(drives, 0, model->tracks_count * sizeof(*drives));
	for (size_t i = 0; i < parts->work.count; i++) {
		const struct launch *launch = launches_of(launches, parts->work.items[i].track,
		                                          parts->work.items[i].row);

		if (launch && launch->track != MODEL_NONE)
			drives[first_lane(model, launch->track)] = true;
	}
	for (uint32_t i = 0; i < model->steps_count; i++)
		if (model->steps[i].process == process && model->steps[i].track < model->tracks_count)
			drives[first_lane(model, model->steps[i].track)] = true;
	for (int part = PART_DATA; part < PART_OTHER; part++)
		parts->lists[part].count = 0;
	for (uint32_t track = 0; track < model->tracks_count; track++)
		if (drives[first_lane(model, track)])
			device_parts_add_lane(parts, model, track);
	free(drives);
}

static void device_parts_cut(struct device_parts *parts, enum device_part part, const struct intervals *covered)
{
	if (!parts->lists[part].count || !covered->count)
		return;
	intervals_subtract(&parts->spare, &parts->lists[part], covered);
	intervals_swap(&parts->spare, &parts->lists[part]);
}

static void cover(struct device_parts *parts, const struct intervals *a, const struct intervals *b)
{
	intervals_join(&parts->spare, a, b);
	intervals_swap(&parts->spare, &parts->covered);
}

/* Cuts the device's parts. Gaps are where it is not busy, and are disjoint. */
static void cut_device(struct device_parts *parts)
{
	device_parts_cut(parts, PART_COMMUNICATION, &parts->device.compute);
	device_parts_cut(parts, PART_COPIES, &parts->device.kernels);
	cover(parts, &parts->device.busy, &parts->gaps.queued);
	cover(parts, &parts->covered, &parts->gaps.launch);
}

/* Cuts each part by the parts before it. */
static void cut_threads(struct device_parts *parts)
{
	for (enum device_part part = PART_DATA; part < PART_OTHER; part++) {
		device_parts_cut(parts, part, &parts->covered);
		if (part + 1 < PART_OTHER && parts->lists[part].count)
			cover(parts, &parts->covered, &parts->lists[part]);
	}
}

static void find_work(struct device_parts *parts, struct analysis_context *context, uint32_t process, int32_t device)
{
	parts->names.classify = device_parts_classify_name;
	device_work_get(&parts->work, context, process, device);
	device_times_fill(&parts->device, &parts->work);
}

void device_parts_find_data(struct device_parts *parts, struct analysis_context *context, uint32_t process,
                            int32_t device)
{
	const struct model *model = context->model;

	parts->last = PART_DATA;
	find_work(parts, context, process, device);
	parts->covered.count = 0;
	add_threads(parts, model, analysis_context_launches(context), process);
}

void device_parts_find(struct device_parts *parts, struct analysis_context *context, uint32_t process, int32_t device)
{
	const struct model *model = context->model;

	parts->last = PART_HOST;
	find_work(parts, context, process, device);
	intervals_lend(&parts->lists[PART_COMPUTE], &parts->device.compute);
	intervals_lend(&parts->lists[PART_COMMUNICATION], &parts->device.communication);
	intervals_lend(&parts->lists[PART_COPIES], &parts->device.copies);
	device_gaps_fill(&parts->gaps, model, analysis_context_launches(context), &parts->work, &parts->device.busy);
	intervals_lend(&parts->lists[PART_QUEUED], &parts->gaps.queued);
	intervals_lend(&parts->lists[PART_LAUNCH], &parts->gaps.launch);
	cut_device(parts);
	add_threads(parts, model, analysis_context_launches(context), process);
	cut_threads(parts);
}

void device_parts_within(const struct device_parts *parts, int64_t start_ns, int64_t end_ns, int64_t parts_ns[PARTS])
{
	parts_ns[PART_OTHER] = intervals_length(start_ns, end_ns);
	for (int part = 0; part < PART_OTHER; part++) {
		parts_ns[part] = intervals_within(&parts->lists[part], start_ns, end_ns);
		parts_ns[PART_OTHER] -= parts_ns[part];
	}
}

void device_parts_release(struct device_parts *parts)
{
	for (int part = 0; part < PART_OTHER; part++)
		intervals_release(&parts->lists[part]);
	intervals_release(&parts->covered);
	intervals_release(&parts->spare);
	device_times_release(&parts->device);
	device_gaps_release(&parts->gaps);
	device_work_release(&parts->work);
	name_classes_release(&parts->names);
}
