/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_trace.c: see torch_trace.h.
 */
#include "analysis/torch_trace.h"

#include "analysis/lanes.h"
#include "base/lower_bound.h"
#include "base/merge_sort.h"
#include "base/storage.h"

#include <string.h>

bool torch_trace_is(const struct model *model)
{
	const char *format = model_meta(model, MODEL_NONE, "trace.format");

	return format && strcmp(format, "kineto") == 0;
}

int64_t torch_trace_dur_ns(const struct model *model, const struct span_view *span)
{
	if (!(span->flags & SPAN_IS_CLIPPED))
		return span->dur_ns;
	for (uint32_t i = model_first_arg(model, span->track_index, span->row); i < model->args_count; i++) {
		const struct span_arg *arg = &model->args[i];

		if (arg->track != span->track_index || arg->row != span->row)
			break;
		if (strcmp(model_text(model, arg->key), "trace.cut_ns") == 0)
			return span->dur_ns + arg->i64;
	}
	return span->dur_ns;
}

/* ---- parents ---- */

struct placed {
	uint32_t thread; /* the first track of its number */
	uint32_t index;
	double start_us, end_us;
};

static int compare_placed(const void *left, const void *right)
{
	const struct placed *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->start_us != b->start_us)
		return a->start_us < b->start_us ? -1 : 1;
	return (a->end_us < b->end_us) - (a->end_us > b->end_us);
}

/* Also puts the events in that order, so that parents come before their children. */
static void find_parents(struct torch_ops *ops, const struct model *model)
{
	uint32_t count = ops->event_count, depth = 0;
	struct storage *storage = model->storage;
	struct placed *placed = storage_resize(storage, NULL, (size_t)count + 1, sizeof(*placed));
	uint32_t *open = storage_resize(storage, NULL, (size_t)count + 1, sizeof(*open));
	struct torch_event *events = storage_resize(storage, NULL, (size_t)count + 1, sizeof(*events));

	for (uint32_t i = 0; i < count; i++)
		placed[i] = (struct placed){first_lane(model, ops->events[i].track), i, ops->events[i].start_us,
		                            ops->events[i].end_us};
	merge_sort_in(storage, placed, count, sizeof(*placed), compare_placed);
	for (uint32_t i = 0; i < count; i++) {
		events[i] = ops->events[placed[i].index];
		if (i && placed[i].thread != placed[i - 1].thread)
			depth = 0;
		while (depth && (events[i].start_us >= events[open[depth - 1]].end_us ||
		                 events[i].end_us > events[open[depth - 1]].end_us))
			depth--;
		events[i].parent = depth && !events[i].is_device ? open[depth - 1] : TORCH_NONE;
		if (!events[i].is_device)
			open[depth++] = i;
	}
	storage_release(storage, ops->events);
	ops->events = events;
	ops->event_capacity = count + 1;
	storage_release(storage, open);
	storage_release(storage, placed);
}

/* ---- memory ---- */

struct change { /* of the host or of devices, in order of time */
	int64_t time_ns;
	wide_bytes before[2]; /* sums of all before it */
	const struct memory_event *memory;
	int32_t opened; /* events that begin to cover it here, minus those that stopped */
};

static int compare_changes(const void *left, const void *right)
{
	const struct change *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static int64_t bytes_of(const struct memory_event *memory)
{
	return bytes_that_fit(memory->is_free ? -(wide_bytes)memory->bytes : (wide_bytes)memory->bytes);
}

static struct change *list_changes(const struct model *model, uint32_t *count)
{
	struct change *changes = storage_resize(model->storage, NULL, (size_t)model->memory_count + 1,
	                                        sizeof(*changes));
	wide_bytes sums[2] = {0};

	*count = 0;
	for (uint32_t i = 0; i < model->memory_count; i++)
		if (model->memory[i].has_bytes && !model->memory[i].is_found)
			changes[(*count)++] = (struct change){.time_ns = model->memory[i].time_ns,
			                                      .memory = &model->memory[i]};
	merge_sort_in(model->storage, changes, *count, sizeof(*changes), compare_changes);
	changes[*count] = (struct change){0};
	for (uint32_t i = 0; i <= *count; i++) {
		changes[i].before[0] = sums[0];
		changes[i].before[1] = sums[1];
		if (i < *count)
			sums[changes[i].memory->device >= 0] += bytes_of(changes[i].memory);
	}
	return changes;
}

/* The first change at that time or later. */
static uint32_t find_change(const struct change *changes, uint32_t count, int64_t time_ns)
{
	return LOWER_BOUND(changes, count, item, item->time_ns < time_ns);
}

/* In no event. */
static void add_orphans(struct torch_ops *ops, const struct change *changes, uint32_t count, int64_t base_ns)
{
	int32_t open = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct memory_event *memory = changes[i].memory;

		open += changes[i].opened;
		if (open)
			continue;
		struct torch_event *event = torch_ops_add_event(ops);

		event->name = "[memory]";
		event->track = memory->track;
		event->start_ns = event->end_ns = memory->time_ns;
		event->start_us = event->end_us = (double)(memory->time_ns - base_ns) / 1000;
		event->bytes[memory->device >= 0] = bytes_of(memory);
	}
}

static void find_bytes(struct torch_ops *ops, const struct model *model, int64_t base_ns)
{
	uint32_t count;
	struct change *changes = list_changes(model, &count);

	for (uint32_t i = 0; i < ops->event_count; i++) {
		struct torch_event *event = &ops->events[i];
		uint32_t first = find_change(changes, count, event->start_ns),
			 end = find_change(changes, count, event->end_ns + 1);

		if (end <= first || event->is_device)
			continue;
		event->bytes[0] = bytes_that_fit(changes[end].before[0] - changes[first].before[0]);
		event->bytes[1] = bytes_that_fit(changes[end].before[1] - changes[first].before[1]);
		changes[first].opened++;
		changes[end].opened--;
	}
	ops->has_memory = count > 0;
	add_orphans(ops, changes, count, base_ns);
	storage_release(model->storage, changes);
}

void torch_trace_arrange(struct torch_ops *ops, const struct model *model, int64_t base_ns, bool has_memory)
{
	find_parents(ops, model);
	if (has_memory)
		find_bytes(ops, model, base_ns);
}
