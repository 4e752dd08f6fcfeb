/* SPDX-License-Identifier: Apache-2.0
 *
 * device_work.c: see device_work.h.
 */
#include "analysis/devices/device_work.h"

#include "analysis/analysis_context.h"
#include "analysis/shared/labels.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/device_names.h"
#include "model/lanes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct kept_device {
	uint32_t process;
	int32_t device;
	struct device_work work; /* owns its items */
	struct device_times times;
	struct device_gaps gaps;
	bool has_times, has_gaps;
	struct kept_device *next;
};

/* ---- devices ---- */

static bool has_work(const struct model *model, const struct track *track)
{
	if (track->kind != TRACK_DEVICE)
		return false;
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		for (uint32_t i = 0; i < track->chunks[c]->count; i++)
			if (span_is_device_work(track->chunks[c]->kind[i]))
				return true;
		model_chunk_done(model, track->chunks[c]);
	}
	return false;
}

/* Returns true if no earlier lane of the stream has work: all lanes of a stream are one stream. */
static bool is_new_stream(const struct model *model, uint32_t number)
{
	for (uint32_t lane = first_lane(model, number); lane < number; lane++)
		if (has_work(model, model->tracks[lane]))
			return false;
	return true;
}

static int compare_devices(const void *left, const void *right)
{
	const struct device *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->device > b->device) - (a->device < b->device);
}

/* The devices are sorted by process. */
static void count_siblings(struct device *devices, size_t count)
{
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && devices[end].process == devices[first].process;)
			end++;
		for (size_t i = first; i < end; i++)
			devices[i].siblings = (uint32_t)(end - first);
	}
}

size_t devices_find(struct device **devices, const struct model *model)
{
	size_t count = 0, kept = 0;

	*devices = NULL;
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track *track = model->tracks[i];

		if (!has_work(model, track))
			continue;
		if (count % 16 == 0)
			*devices = memory_resize(*devices, count + 16, sizeof(**devices));
		(*devices)[count++] = (struct device){
			.process = track->process, .device = track->device, .streams = is_new_stream(model, i)};
	}
	merge_sort(*devices, count, sizeof(**devices), compare_devices);
	for (size_t i = 0; i < count; i++) {
		if (kept && compare_devices(&(*devices)[kept - 1], &(*devices)[i]) == 0)
			(*devices)[kept - 1].streams += (*devices)[i].streams;
		else
			(*devices)[kept++] = (*devices)[i];
	}
	count_siblings(*devices, kept);
	return kept;
}

const char *device_label(const struct model *model, uint32_t process, int32_t device, struct arena *arena)
{
	const char *text = device < 0 ? "device" : arena_printf(arena, "device %d", device);

	if (model->processes_count < 2)
		return text;
	return arena_printf(arena, "%s, %s", process_label(model, process, arena), text);
}

/* ---- work ---- */

static uint8_t classify_kernel(const char *name)
{
	return is_communication_kernel(name) ? WORK_COMMUNICATION : WORK_COMPUTE;
}

enum work_class device_work_class(struct device_work *work, const struct model *model, uint8_t kind, uint32_t name)
{
	work->kernels.classify = classify_kernel;
	if (kind != SPAN_KERNEL)
		return kind == SPAN_MEMCPY ? WORK_COPY : WORK_FILL;
	return (enum work_class)name_class(&work->kernels, model, name);
}

static void device_work_make_room(struct device_work *work, size_t count)
{
	if (work->items && work->count + count <= work->capacity)
		return;
	work->capacity = work->count + count > 2 * work->capacity ? work->count + count : 2 * work->capacity;
	work->items = storage_resize(work->storage, work->items, work->capacity, sizeof(*work->items));
}

static void add_track(struct device_work *work, const struct model *model, uint32_t number)
{
	const struct track *track = model->tracks[number];

	device_work_make_room(work, track->span_count);
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			if (!span_is_device_work(chunk->kind[i]))
				continue;
			work->items[work->count++] = (struct work){
				.start_ns = chunk->start_ns[i],
				.end_ns = chunk->start_ns[i] + chunk->dur_ns[i],
				.track = number,
				.row = chunk->first_row + i,
				.class = (uint8_t)device_work_class(work, model, chunk->kind[i], chunk->name[i])};
		}
		model_chunk_done(model, chunk);
	}
}

static int compare_work(const void *left, const void *right)
{
	const struct work *a = left, *b = right;

	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

void device_work_collect(struct device_work *work, const struct model *model, uint32_t process, int32_t device)
{
	assert(!work->kept);
	work->count = 0;
	work->storage = model->storage;
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track *track = model->tracks[i];

		if (track->kind == TRACK_DEVICE && track->process == process &&
		    (device == DEVICE_ANY || track->device == device))
			add_track(work, model, i);
	}
	merge_sort_in(work->storage, work->items, work->count, sizeof(*work->items), compare_work);
}

void device_work_release(struct device_work *work)
{
	if (!work->kept)
		storage_release(work->storage, work->items);
	name_classes_release(&work->kernels);
	memset(work, 0, sizeof(*work));
}

struct interval device_work_extent(const struct device_work *work)
{
	struct interval extent = {0};

	if (work->count)
		extent = (struct interval){work->items[0].start_ns, work->items[0].end_ns};
	for (size_t i = 1; i < work->count; i++)
		extent.end_ns = work->items[i].end_ns > extent.end_ns ? work->items[i].end_ns : extent.end_ns;
	return extent;
}

/* ---- times ---- */

static void device_work_find_times(struct device_times *times, const struct device_work *work)
{
	times->compute.count = times->communication.count = times->copies.count = 0;
	intervals_live_in(&times->compute, work->storage);
	intervals_live_in(&times->communication, work->storage);
	intervals_live_in(&times->copies, work->storage);
	for (size_t i = 0; i < work->count; i++) {
		const struct work *item = &work->items[i];

		assert(!i || work->items[i - 1].start_ns <= item->start_ns);

		intervals_add(item->class == WORK_COMPUTE         ? &times->compute
		              : item->class == WORK_COMMUNICATION ? &times->communication
		                                                  : &times->copies,
		              item->start_ns, item->end_ns);
	}
	if (times->communication.count)
		intervals_join(&times->kernels, &times->compute, &times->communication);
	else
		intervals_lend(&times->kernels, &times->compute);
	intervals_join(&times->busy, &times->kernels, &times->copies);
}

void device_times_fill(struct device_times *times, const struct device_work *work)
{
	if (!work->kept) {
		device_work_find_times(times, work);
		return;
	}
	if (!work->kept->has_times)
		device_work_find_times(&work->kept->times, &work->kept->work);
	work->kept->has_times = true;
	intervals_lend(&times->compute, &work->kept->times.compute);
	intervals_lend(&times->communication, &work->kept->times.communication);
	intervals_lend(&times->kernels, &work->kept->times.kernels);
	intervals_lend(&times->copies, &work->kept->times.copies);
	intervals_lend(&times->busy, &work->kept->times.busy);
}

void device_times_release(struct device_times *times)
{
	intervals_release(&times->compute);
	intervals_release(&times->communication);
	intervals_release(&times->kernels);
	intervals_release(&times->copies);
	intervals_release(&times->busy);
}

/* ---- kept work ---- */

/* Returns the number of the only device of the process, DEVICE_ANY if it has several. */
static int32_t only_device(const struct model *model, uint32_t process)
{
	int32_t only = DEVICE_ANY;

	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track *track = model->tracks[i];

		if (track->process != process || !has_work(model, track))
			continue;
		if (only != DEVICE_ANY && only != track->device)
			return DEVICE_ANY;
		only = track->device;
	}
	return only;
}

static struct kept_device *keep_device(struct analysis_context *context, uint32_t process, int32_t device)
{
	struct kept_device *found = context->kept_devices;

	while (found && (found->process != process || found->device != device))
		found = found->next;
	if (found)
		return found;
	found = memory_resize(NULL, 1, sizeof(*found));
	*found = (struct kept_device){.process = process, .device = device, .next = context->kept_devices};
	device_work_collect(&found->work, context->model, process, device);
	context->kept_devices = found;
	return found;
}

void device_work_get(struct device_work *work, struct analysis_context *context, uint32_t process, int32_t device)
{
	struct kept_device *kept = keep_device(context, process,
	                                       device == DEVICE_ANY ? only_device(context->model, process) : device);

	if (!work->kept)
		storage_release(work->storage, work->items);
	work->items = kept->work.items;
	work->count = kept->work.count;
	work->capacity = 0;
	work->storage = kept->work.storage;
	work->kept = kept;
}

void kept_devices_release(struct kept_device *devices)
{
	while (devices) {
		struct kept_device *device = devices;

		devices = device->next;
		device_work_release(&device->work);
		device_times_release(&device->times);
		device_gaps_release(&device->gaps);
		free(device);
	}
}

/* ---- gaps ---- */

struct device_work_gap {           /* before a stretch of work */
	int64_t stop_ns, start_ns; /* when the device stopped (INT64_MIN: no work before), and when it went on */
	int64_t call_start_ns, call_end_ns; /* of the launch of the first work after it */
	bool is_call_known, has_begun;      /* has_begun: work of this call (a graph) also ran before the gap */
};

static void set_call(struct device_work_gap *gap, const struct model *model, const struct launches *launches,
                     const struct device_work *work, size_t next)
{
	const struct launch *launch = launches_of(launches, work->items[next].track, work->items[next].row);
	const struct launch *before = next ? launches_of(launches, work->items[next - 1].track,
	                                                 work->items[next - 1].row)
	                                   : NULL;
	const struct span_chunk *chunk;
	uint32_t i;

	gap->is_call_known = launch && launch->track != MODEL_NONE;
	if (!gap->is_call_known)
		return;
	chunk = track_chunk(model->tracks[launch->track], launch->row, &i);
	gap->call_start_ns = gap->call_end_ns = chunk->start_ns[i];
	clamped_add(&gap->call_end_ns, chunk->dur_ns[i]);
	gap->has_begun = before && before->track == launch->track && before->row == launch->row;
}

/* Returns the gap before the stretch `number` of busy. *next: where to start the search for its work. */
static struct device_work_gap gap_before(const struct intervals *busy, size_t number, size_t *next,
                                         const struct model *model, const struct launches *launches,
                                         const struct device_work *work)
{
	struct device_work_gap gap = {.stop_ns = number ? busy->items[number - 1].end_ns : INT64_MIN,
	                              .start_ns = busy->items[number].start_ns};

	while (*next < work->count && work->items[*next].start_ns < gap.start_ns)
		++*next;
	if (*next < work->count)
		set_call(&gap, model, launches, work, *next);
	return gap;
}

/* Returns the shortest time from the start of a call to the start of its work, among calls that found the device idle.
 * No launch reaches the device faster. */
static int64_t fastest_launch(const struct model *model, const struct launches *launches,
                              const struct device_work *work, const struct intervals *busy)
{
	int64_t fastest_ns = INT64_MAX;
	size_t next = 0;

	for (size_t i = 0; i < busy->count; i++) {
		struct device_work_gap gap = gap_before(busy, i, &next, model, launches, work);
		int64_t delay_ns = intervals_length(gap.call_start_ns, gap.start_ns);

		if (gap.is_call_known && gap.call_start_ns > gap.stop_ns && delay_ns >= 0 && delay_ns < fastest_ns)
			fastest_ns = delay_ns;
	}
	return fastest_ns < INT64_MAX ? fastest_ns : 0;
}

/* Returns true if the device could have gone on at once. It could not if the call had not handed over the work yet, or
 * only just before. */
static bool is_queued(const struct device_work_gap *gap, int64_t fastest_ns)
{
	int64_t there_ns = gap->call_start_ns;

	clamped_add(&there_ns, fastest_ns);
	return gap->has_begun || (gap->call_end_ns <= gap->stop_ns && there_ns <= gap->stop_ns);
}

static void device_work_find_gaps(struct device_gaps *gaps, const struct model *model, const struct launches *launches,
                                  const struct device_work *work, const struct intervals *busy)
{
	int64_t fastest_ns = fastest_launch(model, launches, work, busy);
	size_t next = 0;

	gaps->queued.count = gaps->launch.count = gaps->unlaunched.count = 0;
	intervals_live_in(&gaps->queued, model->storage);
	intervals_live_in(&gaps->launch, model->storage);
	intervals_live_in(&gaps->unlaunched, model->storage);
	for (size_t i = 0; i < busy->count; i++) {
		struct device_work_gap gap = gap_before(busy, i, &next, model, launches, work);
		int64_t launch_ns = gap.call_start_ns > gap.stop_ns ? gap.call_start_ns : gap.stop_ns;

		if (!gap.is_call_known)
			continue;
		if (i > 0 && is_queued(&gap, fastest_ns)) {
			intervals_add(&gaps->queued, gap.stop_ns, gap.start_ns);
			continue;
		}
		if (i > 0)
			intervals_add(&gaps->unlaunched, gap.stop_ns,
			              launch_ns < gap.start_ns ? launch_ns : gap.start_ns);
		intervals_add(&gaps->launch, launch_ns, gap.start_ns);
	}
}

void device_gaps_fill(struct device_gaps *gaps, const struct model *model, const struct launches *launches,
                      const struct device_work *work, const struct intervals *busy)
{
	struct kept_device *kept = work->kept;

	if (!kept) {
		device_work_find_gaps(gaps, model, launches, work, busy);
		return;
	}
	if (!kept->has_gaps)
		device_work_find_gaps(&kept->gaps, model, launches, work, busy);
	kept->has_gaps = true;
	intervals_lend(&gaps->queued, &kept->gaps.queued);
	intervals_lend(&gaps->launch, &kept->gaps.launch);
	intervals_lend(&gaps->unlaunched, &kept->gaps.unlaunched);
}

void device_gaps_release(struct device_gaps *gaps)
{
	intervals_release(&gaps->queued);
	intervals_release(&gaps->launch);
	intervals_release(&gaps->unlaunched);
}

/* ---- selection ---- */

uint64_t launches_without_work(const struct model *model, const struct launches *launches)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < launches->workless_count; i++)
		if (is_launching_call(model_text(model, launches->workless[i].name)))
			count += launches->workless[i].count;
	return count;
}

int32_t device_work_step(const struct model *model, const struct launches *launches, uint32_t track, uint32_t row)
{
	const struct launch *launch = launches_of(launches, track, row);
	const struct span_chunk *chunk;
	uint32_t i;

	if (launch && launch->track != MODEL_NONE)
		chunk = track_chunk(model->tracks[launch->track], launch->row, &i);
	else
		chunk = track_chunk(model->tracks[track], row, &i);
	return chunk->step[i];
}

bool device_work_is_selected(struct analysis_context *context, uint32_t track, uint32_t row)
{
	const struct model_filter *filter = &context->options.filter;
	const struct model *model = context->model;
	int32_t step;

	if (!filter->has_steps)
		return true;
	step = device_work_step(model, analysis_context_launches(context), track, row);
	return step >= 0 && model->steps[step].number >= filter->first_step &&
	       model->steps[step].number <= filter->last_step;
}
