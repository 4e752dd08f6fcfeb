/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_trace.c: see torch_trace.h.
 */
#include "analysis/operators/torch_trace.h"

#include "base/buffer.h"
#include "base/lower_bound.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/lanes.h"
#include "model/number_map.h"
#include "pytorch/names.h"

#include <assert.h>
#include <string.h>

bool torch_trace_is(const struct model *model)
{
	const char *format = model_meta(model, MODEL_NONE, "trace.format");

	return format && strcmp(format, "kineto") == 0;
}

int64_t torch_trace_dur_ns(const struct model *model, const struct span_view *span)
{
	if (!(span->flags & (SPAN_IS_CLIPPED | SPAN_ENDS_ELSEWHERE)))
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
	uint32_t thread; /* the first lane of its thread */
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

void torch_trace_find_parents(struct torch_ops *ops, const struct model *model)
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
		events[i].parent = TORCH_NONE;
		if (events[i].is_device || events[i].is_async)
			continue;
		while (depth && (events[i].start_us >= events[open[depth - 1]].end_us ||
		                 events[i].end_us > events[open[depth - 1]].end_us))
			depth--;
		if (depth)
			events[i].parent = open[depth - 1];
		open[depth++] = i;
	}
	storage_release(storage, ops->events);
	ops->events = events;
	ops->event_capacity = count + 1;
	storage_release(storage, open);
	storage_release(storage, placed);
}

/* ---- memory ---- */

struct torch_trace_change { /* an allocation or a free, in the order of time */
	int64_t time_ns;
	wide_bytes before[2]; /* sums of all earlier ones: of the host, of devices */
	const struct memory_event *memory;
	int32_t opened; /* number of events that start to cover it here, minus those that stopped */
};

static int torch_trace_compare_changes(const void *left, const void *right)
{
	const struct torch_trace_change *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static int64_t bytes_of(const struct memory_event *memory)
{
	return bytes_that_fit(memory->is_free ? -(wide_bytes)memory->bytes : (wide_bytes)memory->bytes);
}

static struct torch_trace_change *list_changes(const struct model *model, uint32_t *count)
{
	struct torch_trace_change *changes = storage_resize(model->storage, NULL, (size_t)model->memory_count + 1,
	                                                    sizeof(*changes));
	wide_bytes sums[2] = {0};

	*count = 0;
	for (uint32_t i = 0; i < model->memory_count; i++)
		if (model->memory[i].has_bytes && !model->memory[i].is_found)
			changes[(*count)++] = (struct torch_trace_change){.time_ns = model->memory[i].time_ns,
			                                                  .memory = &model->memory[i]};
	merge_sort_in(model->storage, changes, *count, sizeof(*changes), torch_trace_compare_changes);
	changes[*count] = (struct torch_trace_change){0};
	for (uint32_t i = 0; i <= *count; i++) {
		changes[i].before[0] = sums[0];
		changes[i].before[1] = sums[1];
		if (i < *count)
			sums[changes[i].memory->device >= 0] += bytes_of(changes[i].memory);
	}
	return changes;
}

/* Returns the index of the first change at that time or later. */
static uint32_t find_change(const struct torch_trace_change *changes, uint32_t count, int64_t time_ns)
{
	return LOWER_BOUND(changes, count, item, item->time_ns < time_ns);
}

/* Adds an event for each change outside all events. */
static void add_orphans(struct torch_ops *ops, const struct torch_trace_change *changes, uint32_t count,
                        int64_t base_ns)
{
	int32_t open = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct memory_event *memory = changes[i].memory;

		open += changes[i].opened;
		assert(open >= 0);
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
	struct torch_trace_change *changes = list_changes(model, &count);

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

/* ---- lines of Python ---- */

/* A function or module of Python, and the one around it. */
struct frame {
	const char *name;
	uint32_t around;    /* 0: none */
	const char *source; /* NULL: not asked for yet */
};

struct frames {
	struct torch_ops *ops;
	struct storage *storage;
	uint32_t wanted;           /* most frames in a source */
	struct number_map by_name; /* around << 32 | torch_event.frame */
	struct frame *list;
	uint32_t count, capacity; /* the first one stands for no frame */
};

/* Returns true for names that torch leaves out. */
static bool is_hidden(const char *name)
{
	static const char *const parts[][2] = {{"autograd/__init__", "_make_grads"},
	                                       {"autograd/__init__", "backward"},
	                                       {"torch/tensor", "backward"},
	                                       {"_internal/common_utils", "prof_callable"},
	                                       {"_internal/common_utils", "prof_func_call"},
	                                       {"_internal/common_utils", "prof_meth_call"}};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(name, parts[i][0]) && strstr(name, parts[i][1]))
			return true;
	return false;
}

static uint32_t add_frame(struct frames *frames, uint32_t around, const char *name)
{
	STORAGE_GROW(frames->storage, frames->list, frames->count, frames->capacity, 256);
	frames->list[frames->count] = (struct frame){.name = name, .around = around};
	return frames->count++;
}

static uint32_t frame_in(struct frames *frames, uint32_t around, const struct torch_event *event)
{
	uint64_t key = (uint64_t)around << 32 | event->frame;
	uint32_t found = number_map_find(&frames->by_name, key);

	if (found == NUMBER_MAP_NONE) {
		found = is_hidden(event->name) ? around : add_frame(frames, around, event->name);
		number_map_set(&frames->by_name, key, found);
	}
	return found;
}

static const char *source_of(struct frames *frames, uint32_t stack)
{
	struct frame *innermost = &frames->list[stack];
	struct buffer text;

	if (innermost->source)
		return innermost->source;
	buffer_init(&text, 1 << 20);
	for (uint32_t at = stack, i = 0; at && i < frames->wanted; at = frames->list[at].around, i++)
		buffer_printf(&text, "%s%s", i ? "\n" : "", frames->list[at].name);
	innermost->source = arena_dup_n(&frames->ops->texts, text.data ? text.data : "", text.length);
	buffer_release(&text);
	return innermost->source;
}

/* Returns true for nodes of a backward. A node has a thread of its forward, but so have the engine's events for it. A
 * node that accumulates a gradient has none. */
static bool is_node(const struct torch_event *event)
{
	bool has_forward = event->forward_thread && !pytorch_begins(event->name, PYTORCH_ENGINE);

	return has_forward || pytorch_begins(event->name, PYTORCH_ACCUMULATE);
}

/* Maps PyTorch's numbers of threads, which only nodes have, to lanes, by the links of nodes to their forward. */
static void find_threads(const struct torch_ops *ops, const struct model *model, struct number_map *lanes)
{
	struct number_map threads = {.storage = model->storage}; /* of nodes, by track and start */

	for (uint32_t i = 0; i < ops->event_count; i++)
		if (ops->events[i].forward_thread)
			number_map_add(&threads, (uint64_t)ops->events[i].start_ns << 12 ^ ops->events[i].track,
			               ops->events[i].forward_thread);
	for (uint32_t i = 0; i < model->links_count; i++) {
		const struct model_link *link = &model->links[i];
		uint32_t row;

		if (link->kind != STEPSCOPE_LINK_BACKWARD || link->from_row == MODEL_NONE || link->to_row == MODEL_NONE)
			continue;
		const struct span_chunk *chunk = track_chunk(model->tracks[link->to_track], link->to_row, &row);
		uint32_t thread = number_map_find(&threads, (uint64_t)chunk->start_ns[row] << 12 ^ link->to_track);

		if (thread != NUMBER_MAP_NONE)
			number_map_add(lanes, thread, first_lane(model, link->from_track));
	}
	number_map_release(&threads);
}

static uint64_t operation_key(uint32_t lane, int64_t sequence)
{
	return (uint64_t)lane << 48 ^ (uint64_t)sequence;
}

/* Maps each sequence number to the stack of the first event outside backwards that has it. */
static void find_forwards(const struct torch_ops *ops, const struct model *model, const uint32_t *nodes,
                          struct number_map *forwards)
{
	for (uint32_t i = 0; i < ops->event_count; i++) {
		const struct torch_event *event = &ops->events[i];

		if (nodes[i] == TORCH_NONE && event->sequence >= 0)
			number_map_add(forwards, operation_key(first_lane(model, event->track), event->sequence),
			               event->stack);
	}
}

/* Gives the events of a backward the stack of the operator that their node belongs to, or no stack if it is unknown. */
static void give_forward_stacks(struct torch_ops *ops, const struct model *model)
{
	struct number_map lanes = {.storage = model->storage}, forwards = {.storage = model->storage};
	uint32_t *nodes = storage_resize(model->storage, NULL, (size_t)ops->event_count + 1, sizeof(*nodes));

	for (uint32_t i = 0; i < ops->event_count; i++) {
		const struct torch_event *event = &ops->events[i];

		nodes[i] = is_node(event) ? i : event->parent == TORCH_NONE ? TORCH_NONE : nodes[event->parent];
	}
	find_threads(ops, model, &lanes);
	find_forwards(ops, model, nodes, &forwards);
	for (uint32_t i = 0; i < ops->event_count; i++) {
		if (nodes[i] == TORCH_NONE)
			continue;
		const struct torch_event *node = &ops->events[nodes[i]];
		uint32_t lane = number_map_find(&lanes, node->forward_thread);
		uint32_t stack = lane == NUMBER_MAP_NONE || node->sequence < 0
		                         ? NUMBER_MAP_NONE
		                         : number_map_find(&forwards, operation_key(lane, node->sequence));

		ops->events[i].stack = stack == NUMBER_MAP_NONE ? 0 : stack;
	}
	number_map_release(&lanes);
	number_map_release(&forwards);
	storage_release(model->storage, nodes);
}

/* An open event of a thread; outermost first. */
struct open_event {
	uint32_t stack;       /* of the events that start in it */
	int64_t first_end_ns; /* the earliest end of this one and those around it */
};

/* Follows torch: an event that ends also ends the events that started in it, even if they go on. A range does so if a
 * function started it. */
static void find_stacks(struct frames *frames, const struct model *model)
{
	struct torch_ops *ops = frames->ops;
	struct open_event *open = storage_resize(frames->storage, NULL, (size_t)ops->event_count + 1, sizeof(*open));
	uint32_t depth = 0;

	for (uint32_t i = 0; i < ops->event_count; i++) {
		struct torch_event *event = &ops->events[i];

		if (event->is_device)
			continue;
		if (i && first_lane(model, event->track) != first_lane(model, event[-1].track))
			depth = 0;
		depth = LOWER_BOUND(open, depth, item, item->first_end_ns >= event->start_ns);
		event->stack = depth ? open[depth - 1].stack : 0;
		if (event->end_ns <= event->start_ns)
			continue;
		open[depth] = (struct open_event){event->frame ? frame_in(frames, event->stack, event) : event->stack,
		                                  event->end_ns};
		if (depth && open[depth - 1].first_end_ns < event->end_ns)
			open[depth].first_end_ns = open[depth - 1].first_end_ns;
		depth++;
	}
	storage_release(frames->storage, open);
}

static void find_sources(struct torch_ops *ops, const struct model *model, uint32_t wanted)
{
	struct frames frames = {
		.ops = ops, .storage = model->storage, .wanted = wanted, .by_name = {.storage = model->storage}};

	add_frame(&frames, 0, "");
	find_stacks(&frames, model);
	give_forward_stacks(ops, model);
	for (uint32_t i = 0; i < ops->event_count; i++)
		ops->events[i].source = source_of(&frames, ops->events[i].stack);
	number_map_release(&frames.by_name);
	storage_release(model->storage, frames.list);
}

void torch_trace_arrange(struct torch_ops *ops, const struct model *model, int64_t base_ns,
                         const struct torch_ops_options *options)
{
	torch_trace_find_parents(ops, model);
	if (options->frames)
		find_sources(ops, model, options->frames);
	if (!options->is_without_memory)
		find_bytes(ops, model, base_ns);
}
