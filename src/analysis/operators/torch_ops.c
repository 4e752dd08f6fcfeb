/* SPDX-License-Identifier: Apache-2.0
 *
 * torch_ops.c: see torch_ops.h. One walk over the spans makes the events and their parents, one over the allocations
 * adds their bytes. Then events are merged, sorted and grouped.
 */
#include "analysis/operators/torch_ops.h"

#include "analysis/operators/flop_likeness.h"
#include "analysis/operators/flops.h"
#include "analysis/operators/torch_trace.h"
#include "analysis/shared/python_places.h"
#include "base/clamped.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/launches.h"
#include "model/name_classes.h"
#include "pytorch/names.h"

#include <stdlib.h>
#include <string.h>

enum scope { /* at::RecordScope */
	SCOPE_FUNCTION = 0,
	SCOPE_BACKWARD = 1,
	SCOPE_SCRIPT = 2,
	SCOPE_USER = 7,
};

struct builder {
	struct torch_ops *ops;
	const struct model *model;
	uint32_t **event_of; /* by track and row: the event of the span, or of the span around it */
	bool is_trace;       /* of torch.profiler: it has more kinds of events */
	bool is_without_shapes;
	uint32_t next_step; /* index; no earlier step belongs to a later row */
	int64_t base_ns;
	const char **shapes; /* by number of the string, NULL: not made yet */
	uint32_t shapes_count;
	struct flops flops;
	struct flop_likeness likeness;
	struct flop_walk walk;
	enum torch_group group;
	struct name_classes names;
	const char **sources; /* by number of the stack, NULL: not made yet */
	const char *folder;   /* of the program */
	uint32_t frames;
};

/* ---- events ---- */

/* Returns true for names that torch.profiler leaves out. */
static bool is_hidden_name(const char *name)
{
	static const char *const names[] = {"profiler::_record_function_enter",
	                                    "profiler::_record_function_enter_new",
	                                    "profiler::_record_function_exit",
	                                    "aten::is_leaf",
	                                    "aten::output_nr",
	                                    "aten::_version"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return pytorch_begins(name, PYTORCH_STATIC); /* a scope that torch.profiler does not follow */
}

/* Returns true for ranges that the Python package puts around work that PyTorch does not record. */
static bool is_of_package(const char *name)
{
	static const char *const names[] = {PYTORCH_LOADER_FETCH,
	                                    PYTORCH_LOADER_COLLATE,
	                                    PYTORCH_LOADER_DISPATCH,
	                                    PYTORCH_LOADER_PICKLE,
	                                    PYTORCH_LOADER_UNPICKLE,
	                                    "DataLoader.sampler",
	                                    "DataLoader.pin_memory",
	                                    PYTORCH_LOADER_START,
	                                    PYTORCH_LOADER_AGAIN,
	                                    PYTORCH_LOADER_STOP,
	                                    PYTORCH_SAVE,
	                                    PYTORCH_LOAD,
	                                    PYTORCH_COMPILE};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return pytorch_begins(name, "garbage collection ") || pytorch_begins(name, PYTORCH_PROFILER_STEP);
}

enum {
	NAME_IS_HIDDEN = 1,
	NAME_IS_OF_PACKAGE = 2,
	NAME_IS_WORK = 4
};

static uint8_t torch_ops_classify_name(const char *name)
{
	return (uint8_t)((is_hidden_name(name) ? NAME_IS_HIDDEN : 0) | (is_of_package(name) ? NAME_IS_OF_PACKAGE : 0) |
	                 (pytorch_is_work(name) ? NAME_IS_WORK : 0));
}

static bool torch_ops_is_wanted(struct builder *builder, const struct span_view *span)
{
	switch (span->kind) {
	case SPAN_RANGE:
		return !(name_class(&builder->names, builder->model, span->name) & NAME_IS_OF_PACKAGE);
	case SPAN_OP:
	case SPAN_ANNOTATION:
	case SPAN_COLLECTIVE:
		return !(name_class(&builder->names, builder->model, span->name) & NAME_IS_HIDDEN);
	case SPAN_STEP:
		return !(span->flags & SPAN_IS_INFERRED);
	case SPAN_PYTHON:
	case SPAN_MODULE:
	case SPAN_RUNTIME:
	case SPAN_KERNEL:
	case SPAN_MEMCPY:
	case SPAN_MEMSET:
	case SPAN_SYNC:
		return builder->is_trace;
	default:
		return false;
	}
}

struct torch_event *torch_ops_add_event(struct torch_ops *ops)
{
	STORAGE_GROW(ops->model->storage, ops->events, ops->event_count, ops->event_capacity, 1024);
	ops->events[ops->event_count] = (struct torch_event){
		.name = "", .shapes = "[]", .source = "", .step = -1, .parent = TORCH_NONE, .sequence = -1};
	return &ops->events[ops->event_count++];
}

/* Converts "[2, 3] [] [[4], [5]]", also with "x" between the parts, to a list in Python. torch shows a list of tensors
 * as an empty one. */
static const char *list_of_shapes(struct arena *arena, const char *text)
{
	char *list = arena_alloc(arena, strlen(text) * 2 + 3), *at = list;
	int depth = 0;

	*at++ = '[';
	for (const char *begin = text; *text; text++) {
		depth += (*text == '[') - (*text == ']');
		if (*text == '[' && depth == 1)
			begin = text;
		if (*text != ']' || depth != 0)
			continue;
		size_t bytes = (size_t)(text - begin) + 1;
		bool is_list = memchr(begin + 1, '[', bytes - 1) != NULL;

		if (at > list + 1)
			at = stpcpy(at, ", ");
		memcpy(at, is_list ? "[]" : begin, is_list ? 2 : bytes);
		at += is_list ? 2 : bytes;
	}
	memcpy(at, "]", 2);
	return list;
}

static const char *shapes_of(struct builder *builder, uint32_t string)
{
	if (string >= builder->shapes_count) {
		uint32_t count = string + string / 2 + 64;

		builder->shapes = memory_resize(builder->shapes, count, sizeof(*builder->shapes));
		memset(builder->shapes + builder->shapes_count, 0,
		       (count - builder->shapes_count) * sizeof(*builder->shapes));
		builder->shapes_count = count;
	}
	if (!builder->shapes[string])
		builder->shapes[string] = list_of_shapes(&builder->ops->texts, model_text(builder->model, string));
	return builder->shapes[string];
}

static int64_t step_number(struct builder *builder, uint32_t track, uint32_t row)
{
	const struct model *model = builder->model;

	while (builder->next_step < model->steps_count &&
	       (model->steps[builder->next_step].track != track || model->steps[builder->next_step].row < row))
		builder->next_step++;
	return builder->next_step < model->steps_count ? model->steps[builder->next_step].number : -1;
}

static void torch_ops_describe(struct builder *builder, struct torch_event *event, const struct span_view *span)
{
	const struct model *model = builder->model;

	event->name = span->kind == SPAN_STEP ? "ProfilerStep*" : model_text(model, span->name);
	event->is_annotation = span->kind != SPAN_OP && span->kind != SPAN_PYTHON && span->kind != SPAN_MODULE &&
	                       span->kind != SPAN_RUNTIME;
	if (span->kind == SPAN_PYTHON || span->kind == SPAN_MODULE)
		event->frame = span->name * 2 + (span->kind == SPAN_MODULE);
	if (span->kind == SPAN_MODULE)
		event->name = arena_printf(&builder->ops->texts, "nn.Module: %s", event->name);
	event->scope = event->is_annotation             ? SCOPE_USER
	               : span->flags & SPAN_IS_BACKWARD ? SCOPE_BACKWARD
	               : span->flags & SPAN_IS_SCRIPT   ? SCOPE_SCRIPT
	                                                : SCOPE_FUNCTION;
	if (span->sequence != STEPSCOPE_NO_SEQUENCE) {
		event->sequence = (int64_t)(span->sequence & 0xffffffffffffu);
		event->forward_thread = (uint32_t)(span->sequence >> 48);
	}
	if (span->kind == SPAN_STEP)
		event->step = step_number(builder, span->track_index, span->row);
	else if (!strncmp(event->name, "ProfilerStep#", 13))
		event->step = strtoll(event->name + 13, NULL, 10), event->name = "ProfilerStep*";
	if (builder->is_without_shapes)
		return;
	event->inputs = span->inputs;
	if (span->shape) {
		event->shapes = shapes_of(builder, span->shape);
	}
}

/* A trace does not tell where a range ended. A trace without Kineto does not tell that a range is not an operator. */
static bool is_async(struct builder *builder, const struct span_view *span)
{
	return (span->flags & SPAN_ENDS_ELSEWHERE && span->kind != SPAN_STEP) ||
	       ((span->kind == SPAN_ANNOTATION || span->kind == SPAN_OP) &&
	        name_class(&builder->names, builder->model, span->name) & NAME_IS_WORK);
}

/* Returns true for calls in steps without inputs, if rows are grouped by inputs. */
static bool is_left_out(const struct builder *builder, const struct span_view *span)
{
	return builder->group == TORCH_BY_SHAPE && flop_likeness_lacks(&builder->likeness, span->step);
}

static double flops_of_call(struct builder *builder, const struct span_view *span)
{
	bool is_alone = builder->group == TORCH_BY_CALL;
	uint32_t own = span->inputs ? span->inputs : span->shape;
	double flops;
	enum flops_result result = flops_of(&builder->flops, FLOPS_PROFILER, span->name,
	                                    is_alone ? own : flop_walk_inputs(&builder->walk, span), &flops);

	builder->ops->lacks_flops |= !is_alone && result == FLOPS_NO_SIZES &&
	                             flop_likeness_lacks(&builder->likeness, span->step);
	return flops;
}

static bool torch_ops_visit(void *context, const struct span_view *span)
{
	struct builder *builder = context;
	uint32_t *event_of = builder->event_of[span->track_index];
	uint32_t around = span->parent == MODEL_NONE ? TORCH_NONE : event_of[span->parent];
	struct torch_event *event;

	event_of[span->row] = around;
	if (!torch_ops_is_wanted(builder, span) || is_left_out(builder, span))
		return true;
	event_of[span->row] = builder->ops->event_count;
	event = torch_ops_add_event(builder->ops);
	torch_ops_describe(builder, event, span);
	builder->ops->has_operators |= span->kind == SPAN_OP;
	event->track = span->track_index;
	event->parent = around;
	event->stack = span->stack;
	if (span->kind == SPAN_OP)
		event->flops = flops_of_call(builder, span);
	event->start_ns = span->start_ns;
	event->start_us = (double)(span->start_ns - builder->base_ns) / 1000;
	event->end_ns = span->start_ns + torch_trace_dur_ns(builder->model, span);
	event->end_us = (double)(event->end_ns - builder->base_ns) / 1000;
	if (span->track->kind == TRACK_DEVICE && span->kind != SPAN_PYTHON && span->kind != SPAN_OP) {
		event->is_device = true;
		event->is_annotation = span->kind == SPAN_ANNOTATION;
		event->device_us = event->end_us - event->start_us;
		event->inputs = 0;
		builder->ops->has_device = true;
	} else {
		event->is_async = is_async(builder, span);
		builder->ops->has_async |= event->is_async;
	}
	return true;
}

/* ---- devices ---- */

/* Work of a device belongs to the operator that launched it. Without such an operator, it belongs to no event. */
static void add_device_times(struct builder *builder)
{
	const struct model *model = builder->model;
	struct torch_event *events = builder->ops->events;
	struct launches launches;

	launches_init(&launches, model);
	for (uint32_t number = 0; number < launches.track_count; number++) {
		const uint32_t *event_of = builder->event_of[number];

		for (uint32_t row = 0; event_of && launches.by_track[number] && row < model->tracks[number]->span_count;
		     row++) {
			const struct launch *launch = launches_of(&launches, number, row);
			uint32_t operation, i;

			if (launch->operation == MODEL_NONE || !builder->event_of[launch->track] ||
			    event_of[row] == TORCH_NONE)
				continue;
			operation = builder->event_of[launch->track][launch->operation];
			const struct span_chunk *chunk = track_chunk(model->tracks[launch->track], launch->operation,
			                                             &i);
			if (operation != TORCH_NONE && chunk->kind[i] == SPAN_OP && !events[operation].is_async)
				events[operation].device_us += events[event_of[row]].device_us;
		}
	}
	launches_release(&launches);
}

/* ---- memory ---- */

static void add_bytes(struct builder *builder, const struct memory_event *memory, uint32_t index)
{
	int64_t bytes = bytes_that_fit(memory->is_free ? -(wide_bytes)memory->bytes : (wide_bytes)memory->bytes);
	struct torch_event *event;

	if (index != TORCH_NONE) {
		clamped_add(&builder->ops->events[index].bytes[memory->device >= 0], bytes);
		return;
	}
	event = torch_ops_add_event(builder->ops);
	event->name = "[memory]";
	event->track = memory->track;
	event->start_ns = memory->time_ns;
	event->start_us = event->end_us = (double)(memory->time_ns - builder->base_ns) / 1000;
	event->bytes[memory->device >= 0] = bytes;
}

/* An event also has the bytes of its children. Parents come before their children. */
static void add_bytes_of_children(struct torch_ops *ops)
{
	for (uint32_t i = ops->event_count; i-- > 0;) {
		const struct torch_event *event = &ops->events[i];

		for (int where = 0; event->parent != TORCH_NONE && where < 2; where++)
			clamped_add(&ops->events[event->parent].bytes[where], event->bytes[where]);
	}
}

static void torch_ops_add_memory(struct builder *builder)
{
	const struct model *model = builder->model;

	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *memory = &model->memory[i];
		const uint32_t *event_of = builder->event_of[memory->track];
		bool was_there = memory->is_found || (memory->is_free && memory->partner != MODEL_NONE &&
		                                      model->memory[memory->partner].is_found);

		/* memory allocated before does not count, as in torch */
		if (!event_of || !memory->has_bytes || was_there)
			continue;
		builder->ops->has_memory = true;
		add_bytes(builder, memory, memory->row == MODEL_NONE ? TORCH_NONE : event_of[memory->row]);
	}
	add_bytes_of_children(builder->ops);
}

/* ---- stacks ---- */

static const char *source_of(struct builder *builder, uint32_t stack)
{
	const struct model *model = builder->model;
	struct buffer text;

	if (builder->sources[stack])
		return builder->sources[stack];
	buffer_init(&text, 1 << 20);
	for (uint32_t node = stack, i = 0; node && i < builder->frames; node = model->stacks[node].parent, i++) {
		if (i)
			buffer_add_byte(&text, '\n');
		python_frame_text(model, &model->stacks[node], builder->folder, &text);
	}
	builder->sources[stack] = arena_dup_n(&builder->ops->texts, text.data ? text.data : "", text.length);
	buffer_release(&text);
	return builder->sources[stack];
}

/* torch gives the events of a backward the stack of its forward. */
static void add_sources(struct builder *builder)
{
	const struct model *model = builder->model;
	struct torch_ops *ops = builder->ops;

	for (uint32_t i = 0; i < model->links_count; i++) {
		const struct model_link *link = &model->links[i];

		if (link->kind != STEPSCOPE_LINK_BACKWARD || link->from_row == MODEL_NONE ||
		    link->to_row == MODEL_NONE || !builder->event_of[link->from_track] ||
		    !builder->event_of[link->to_track])
			continue;
		uint32_t from = builder->event_of[link->from_track][link->from_row];
		uint32_t to = builder->event_of[link->to_track][link->to_row];

		if (from == TORCH_NONE || to == TORCH_NONE)
			continue;
		ops->events[to].stack = ops->events[from].stack;
		ops->events[to].is_backward = true;
	}
	builder->sources = memory_resize(NULL, model->stacks_count + 1, sizeof(*builder->sources));
	memset(builder->sources, 0, (model->stacks_count + 1) * sizeof(*builder->sources));
	for (uint32_t i = 0; i < ops->event_count; i++) {
		struct torch_event *event = &ops->events[i];
		const struct torch_event *parent = event->parent == TORCH_NONE ? NULL : &ops->events[event->parent];

		if (parent && parent->is_backward && !event->is_backward) {
			event->stack = parent->stack;
			event->is_backward = true;
		}
		if (event->stack && event->stack < model->stacks_count)
			event->source = source_of(builder, event->stack);
	}
	free(builder->sources);
}

/* ---- merge and sort ---- */

/* Parents come before their children, so one pass finds chains of any length. */
static void torch_ops_merge(struct torch_ops *ops)
{
	for (uint32_t i = 0; i < ops->event_count; i++)
		if (ops->events[i].parent != TORCH_NONE)
			ops->events[ops->events[i].parent].children++;
	for (uint32_t i = 0; i < ops->event_count; i++) {
		struct torch_event *event = &ops->events[i], *parent;

		while (event->parent != TORCH_NONE && ops->events[event->parent].is_merged)
			event->parent = ops->events[event->parent].parent;
		if (event->parent == TORCH_NONE)
			continue;
		parent = &ops->events[event->parent];
		if (parent->children != 1 || strcmp(parent->name, event->name) != 0)
			continue;
		event->is_merged = true;
		parent->children = event->children;
		parent->device_us = event->device_us; /* as in torch: the parent's own time is lost */
	}
}

static void add_up_children(struct torch_ops *ops)
{
	for (uint32_t i = 0; i < ops->event_count; i++) {
		const struct torch_event *event = &ops->events[i];
		struct torch_event *parent;

		if (event->is_merged || event->parent == TORCH_NONE)
			continue;
		parent = &ops->events[event->parent];
		parent->children_us += torch_event_us(event);
		clamped_add(&parent->children_bytes[0], event->bytes[0]);
		clamped_add(&parent->children_bytes[1], event->bytes[1]);
	}
	for (uint32_t i = ops->event_count; i-- > 0;) { /* parents come before their children */
		struct torch_event *event = &ops->events[i];

		if (event->is_merged || event->is_device)
			continue;
		event->device_us += event->children_device_us;
		if (event->parent != TORCH_NONE)
			ops->events[event->parent].children_device_us += event->device_us;
	}
}

struct torch_ops_sort_key {
	double start_us, end_us;
	uint32_t index;
};

static int torch_ops_compare_keys(const void *left, const void *right)
{
	const struct torch_ops_sort_key *a = left, *b = right;

	if (a->start_us != b->start_us)
		return a->start_us < b->start_us ? -1 : 1;
	return (a->end_us < b->end_us) - (a->end_us > b->end_us);
}

static void sort_events(struct torch_ops *ops)
{
	struct storage *storage = ops->model->storage;
	struct torch_ops_sort_key *keys = storage_resize(storage, NULL, (size_t)ops->event_count + 1, sizeof(*keys));

	for (uint32_t i = 0; i < ops->event_count; i++) {
		const struct torch_event *event = &ops->events[i];

		if (!event->is_merged)
			keys[ops->order_count++] = (struct torch_ops_sort_key){event->start_us, event->end_us, i};
	}
	merge_sort_in(storage, keys, ops->order_count, sizeof(*keys), torch_ops_compare_keys);
	ops->order = storage_resize(storage, NULL, (size_t)ops->order_count + 1, sizeof(*ops->order));
	for (uint32_t i = 0; i < ops->order_count; i++)
		ops->order[i] = keys[i].index;
	storage_release(storage, keys);
}

/* ---- rows ---- */

static uint32_t torch_ops_hash_of(const struct torch_event *event, bool is_by_shape)
{
	const char *const texts[] = {event->name, event->source, is_by_shape ? event->shapes : ""};
	uint64_t hash = event->is_annotation + 2u * event->is_device;

	for (int i = 0; i < 3; i++)
		hash = hash_text(hash, texts[i], strlen(texts[i]));
	return (uint32_t)(hash >> 32);
}

static bool torch_ops_is_same(const struct torch_event *a, const struct torch_event *b, bool is_by_shape)
{
	return a->is_annotation == b->is_annotation && a->is_device == b->is_device && !strcmp(a->name, b->name) &&
	       !strcmp(a->source, b->source) && (!is_by_shape || !strcmp(a->shapes, b->shapes));
}

static void add_to_row(struct torch_row *row, const struct torch_event *event)
{
	double total_us = event->is_device ? 0 : torch_event_us(event);

	row->count++;
	row->device_us += event->device_us;
	row->self_device_us += event->device_us - event->children_device_us;
	row->total_us += total_us;
	row->self_us += event->is_async ? 0 : total_us - event->children_us;
	row->flops += event->flops;
	for (int i = 0; i < 2; i++) {
		clamped_add(&row->bytes[i], event->bytes[i]);
		if (event->is_async)
			continue;
		clamped_add(&row->self_bytes[i], event->bytes[i]);
		clamped_subtract(&row->self_bytes[i], event->children_bytes[i]);
	}
}

struct torch_ops_grouping {
	struct torch_ops *ops;
	bool is_by_shape;
	uint32_t *slots; /* by hash: row + 1 */
	uint32_t slot_count;
	struct recent {
		const struct torch_event *event;
		uint32_t row;
	} recent[1024]; /* by the addresses of texts: most events have those of a recent one */
};

static uint32_t torch_ops_add_row(struct torch_ops *ops, const struct torch_event *first)
{
	STORAGE_GROW(ops->model->storage, ops->rows, ops->row_count, ops->row_capacity, 64);
	ops->rows[ops->row_count] = (struct torch_row){.first = first};
	return ops->row_count++;
}

static uint32_t *torch_ops_find_slot(const struct torch_ops_grouping *grouping, const struct torch_event *event)
{
	uint32_t slot = torch_ops_hash_of(event, grouping->is_by_shape) & (grouping->slot_count - 1);

	while (grouping->slots[slot] &&
	       !torch_ops_is_same(grouping->ops->rows[grouping->slots[slot] - 1].first, event, grouping->is_by_shape))
		slot = (slot + 1) & (grouping->slot_count - 1);
	return &grouping->slots[slot];
}

/* Keeps at most half of the slots in use. */
static void make_slots(struct torch_ops_grouping *grouping)
{
	struct torch_ops *ops = grouping->ops;
	uint32_t count = grouping->slot_count ? 2 * grouping->slot_count : 64;

	if (grouping->slot_count > 2 * ops->row_count)
		return;
	grouping->slots = storage_resize(ops->model->storage, grouping->slots, count, sizeof(*grouping->slots));
	memset(grouping->slots, 0, count * sizeof(*grouping->slots));
	grouping->slot_count = count;
	for (uint32_t row = 0; row < ops->row_count; row++)
		*torch_ops_find_slot(grouping, ops->rows[row].first) = row + 1;
}

static uint32_t row_of(struct torch_ops_grouping *grouping, const struct torch_event *event)
{
	const uint64_t texts[] = {(uintptr_t)event->name, (uintptr_t)event->shapes, (uintptr_t)event->source};
	struct recent *recent = &grouping->recent[hash_words(texts, 3) % 1024];
	const struct torch_event *like = recent->event;
	uint32_t *slot;

	if (like && like->name == event->name && like->shapes == event->shapes && like->source == event->source &&
	    like->is_annotation == event->is_annotation && like->is_device == event->is_device)
		return recent->row;
	make_slots(grouping);
	slot = torch_ops_find_slot(grouping, event);
	if (!*slot)
		*slot = torch_ops_add_row(grouping->ops, event) + 1;
	*recent = (struct recent){event, *slot - 1};
	return recent->row;
}

static void group(struct torch_ops *ops, enum torch_group by)
{
	struct torch_ops_grouping grouping = {.ops = ops, .is_by_shape = by == TORCH_BY_SHAPE};

	for (uint32_t i = 0; i < ops->order_count; i++) {
		const struct torch_event *event = &ops->events[ops->order[i]];
		uint32_t row = by == TORCH_BY_CALL ? torch_ops_add_row(ops, event) : row_of(&grouping, event);

		add_to_row(&ops->rows[row], event);
	}
	storage_release(ops->model->storage, grouping.slots);
}

/* ---- entry points ---- */

static int64_t first_start(const struct model *model)
{
	int64_t first_ns = INT64_MAX;

	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track *track = model->tracks[i];

		if (track->chunk_count && track->chunks[0]->min_start_ns < first_ns)
			first_ns = track->chunks[0]->min_start_ns;
	}
	return first_ns == INT64_MAX ? 0 : first_ns;
}

void torch_ops_init(struct torch_ops *ops, const struct model *model, const struct torch_ops_options *options)
{
	struct builder builder = {.ops = ops,
	                          .model = model,
	                          .is_trace = torch_trace_is(model),
	                          .base_ns = first_start(model),
	                          .folder = python_folder(model),
	                          .frames = options->frames,
	                          .is_without_shapes = options->is_without_shapes,
	                          .flops = {.model = model},
	                          .group = options->group,
	                          .names = {.classify = torch_ops_classify_name}};

	*ops = (struct torch_ops){.model = model};
	flop_likeness_init(&builder.likeness, model);
	builder.walk.likeness = &builder.likeness;
	arena_init(&ops->texts, 0);
	builder.event_of = memory_resize(NULL, model->tracks_count + 1, sizeof(*builder.event_of));
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		bool is_left_out = (options->process != MODEL_NONE && model->tracks[i]->process != options->process) ||
		                   (options->is_profiled_only && !model->tracks[i]->is_profiled);

		builder.event_of[i] = is_left_out ? NULL
		                                  : storage_resize(model->storage, NULL,
		                                                   (size_t)model->tracks[i]->span_count + 1,
		                                                   sizeof(**builder.event_of));
		builder.next_step = 0;
		if (!is_left_out)
			model_visit_spans(model, i, torch_ops_visit, &builder);
	}
	if (options->frames && !builder.is_trace)
		add_sources(&builder);
	if (ops->has_device)
		add_device_times(&builder);
	if (builder.is_trace)
		torch_trace_arrange(ops, model, builder.base_ns, options);
	else if (!options->is_without_memory)
		torch_ops_add_memory(&builder);
	if (ops->has_async && !builder.is_trace) /* events in an async one are children of the event around that */
		torch_trace_find_parents(ops, model);
	for (uint32_t i = 0; i < model->tracks_count; i++)
		storage_release(model->storage, builder.event_of[i]);
	free(builder.event_of);
	free(builder.shapes);
	flops_release(&builder.flops);
	flop_walk_release(&builder.walk);
	flop_likeness_release(&builder.likeness);
	name_classes_release(&builder.names);
	torch_ops_merge(ops);
	add_up_children(ops);
	sort_events(ops);
	group(ops, options->group);
}

void torch_ops_release(struct torch_ops *ops)
{
	storage_release(ops->model->storage, ops->events);
	storage_release(ops->model->storage, ops->order);
	storage_release(ops->model->storage, ops->rows);
	arena_release(&ops->texts);
}
