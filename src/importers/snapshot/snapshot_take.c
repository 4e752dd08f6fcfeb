/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot_take.c: turns dictionaries of a snapshot into small rows, as soon as the pickle has filled them: frames,
 * events, blocks, segments. The keys of a dictionary tell its kind. A list of consecutive rows is stored as its first
 * row and count.
 *
 * Stacks keep the frames that tell who requested memory: lines of Python, operators (at::_ops::NAME::call is
 * aten::NAME), nodes of a backward (torch::autograd::generated::NAME::apply is NAME). If there are none, the innermost
 * frame outside the allocator is kept.
 */
#include "base/hash.h"
#include "base/memory.h"
#include "importers/snapshot/snapshot.h"

#include <assert.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define NODE_BYTES 64 /* memory that another frame of a stack takes, about */

enum snapshot_take_key {
	KEY_ACTION = 1,
	KEY_ADDR,
	KEY_ADDRESS,
	KEY_BLOCKS,
	KEY_CATEGORY,
	KEY_DEVICE,
	KEY_DEVICE_FREE,
	KEY_FILENAME,
	KEY_FRAMES,
	KEY_HISTORY,
	KEY_IS_EXPANDABLE,
	KEY_LINE,
	KEY_NAME,
	KEY_REAL_SIZE,
	KEY_REQUESTED_SIZE,
	KEY_SEGMENT_POOL_ID,
	KEY_SEGMENT_TYPE,
	KEY_SIZE,
	KEY_STATE,
	KEY_STREAM,
	KEY_TIME_US,
	KEY_TOTAL_SIZE,
	KEY_END,
};

static const char *const key_names[KEY_END] = {
	[KEY_ACTION] = "action",
	[KEY_ADDR] = "addr",
	[KEY_ADDRESS] = "address",
	[KEY_BLOCKS] = "blocks",
	[KEY_CATEGORY] = "category",
	[KEY_DEVICE] = "device",
	[KEY_DEVICE_FREE] = "device_free",
	[KEY_FILENAME] = "filename",
	[KEY_FRAMES] = "frames",
	[KEY_HISTORY] = "history",
	[KEY_IS_EXPANDABLE] = "is_expandable",
	[KEY_LINE] = "line",
	[KEY_NAME] = "name",
	[KEY_REAL_SIZE] = "real_size",
	[KEY_REQUESTED_SIZE] = "requested_size",
	[KEY_SEGMENT_POOL_ID] = "segment_pool_id",
	[KEY_SEGMENT_TYPE] = "segment_type",
	[KEY_SIZE] = "size",
	[KEY_STATE] = "state",
	[KEY_STREAM] = "stream",
	[KEY_TIME_US] = "time_us",
	[KEY_TOTAL_SIZE] = "total_size",
};

_Static_assert(KEY_END <= SNAPSHOT_KEYS, "every key has a place");

void snapshot_add_keys(struct pickle *pickle)
{
	for (uint32_t key = 1; key < KEY_END; key++) {
		uint32_t number = intern_add(&pickle->texts, key_names[key]);
		assert(number == key);
		(void)number;
	}
}

struct snapshot_take_row { /* values of a dictionary by key; NULL: the key is absent */
	const struct pickle_value *values[KEY_END];
};

#define ROOM_FOR(snapshot, name)                                                                                       \
	do {                                                                                                           \
		if ((snapshot)->name##_count == (snapshot)->name##_capacity) {                                         \
			(snapshot)->name##_capacity = (snapshot)->name##_capacity ? 2 * (snapshot)->name##_capacity    \
			                                                          : 256;                               \
			(snapshot)->name = memory_resize((snapshot)->name, (snapshot)->name##_capacity,                \
			                                 sizeof *(snapshot)->name);                                    \
			pickle_use(&(snapshot)->pickle, (snapshot)->name##_capacity / 2 * sizeof *(snapshot)->name);   \
		}                                                                                                      \
	} while (0)

/* ---- values ----------------------------------------------------------------------------------------------------- */

static bool snapshot_take_is_number(const struct pickle_value *value)
{
	return value && (value->type == PICKLE_INT || value->type == PICKLE_BOOL);
}

static bool unsigned_of(const struct pickle_value *value, uint64_t *number)
{
	if (!snapshot_take_is_number(value) || value->i64 < 0)
		return false;
	*number = (uint64_t)value->i64;
	return true;
}

static uint64_t unsigned_or_0(const struct pickle_value *value)
{
	uint64_t number;
	return unsigned_of(value, &number) ? number : 0;
}

static const char *snapshot_take_text_of(const struct snapshot *snapshot, const struct pickle_value *value)
{
	const char *text = pickle_text(&snapshot->pickle, value);
	return text ? text : "";
}

static uint8_t snapshot_take_category_of(const struct snapshot *snapshot, const struct pickle_value *value)
{
	static const struct {
		const char *name;
		uint8_t category;
	} names[] = {
		{"parameter", STEPSCOPE_MEMORY_PARAMETER},
		{"optimizer_state", STEPSCOPE_MEMORY_OPTIMIZER},
		{"input", STEPSCOPE_MEMORY_INPUT},
		{"temporary", STEPSCOPE_MEMORY_TEMPORARY},
		{"activation", STEPSCOPE_MEMORY_ACTIVATION},
		{"gradient", STEPSCOPE_MEMORY_GRADIENT},
		{"autograd_detail", STEPSCOPE_MEMORY_AUTOGRAD},
	};
	for (size_t i = 0; value && i < sizeof names / sizeof names[0]; i++)
		if (strcmp(snapshot_take_text_of(snapshot, value), names[i].name) == 0)
			return names[i].category;
	return STEPSCOPE_MEMORY_UNKNOWN;
}

/* ---- frames ----------------------------------------------------------------------------------------------------- */

/* Returns "NAME" in "at::_ops::NAME::call(...)"; NULL: another function. */
static const char *between(const char *name, const char *before, const char *after, size_t *length)
{
	const char *begin = strstr(name, before), *end;
	if (!begin || strpbrk(name, "(<") < begin) /* it is in the type of an argument */
		return NULL;
	begin += strlen(before);
	end = strstr(begin, after);
	*length = end ? (size_t)(end - begin) : 0;
	return end && *length && !memchr(begin, ':', *length) ? begin : NULL;
}

static bool is_python(const char *file)
{
	size_t length = strlen(file);
	return (length > 3 && strcmp(file + length - 3, ".py") == 0) || file[0] == '<';
}

/* The class of an operator is its name, with its overload after '_': "add_Tensor", "empty_memory_format". */
static size_t without_overload(const char *name, size_t length)
{
	static const char empty[] = "empty_memory_format";
	if (length == sizeof empty - 1 && memcmp(name, empty, length) == 0)
		return strlen("empty");
	for (size_t i = 1; i + 1 < length; i++)
		if (name[i] == '_' && name[i + 1] >= 'A' && name[i + 1] <= 'Z')
			return i;
	return length;
}

static uint32_t name_of_frame(struct snapshot *snapshot, const char *name, const char *file, bool *is_kept)
{
	struct intern *strings = &snapshot->model->strings;
	char text[256] = "aten::";
	size_t length = 0;
	bool is_function = strchr(name, '('); /* a C++ function */
	const char *op = is_function ? between(name, "at::_ops::", "::", &length) : NULL;
	const char *node = is_function && !op ? between(name, "torch::autograd::generated::", "::", &length) : NULL;
	*is_kept = is_python(file) || op || node;
	if (node)
		return intern_add_n(strings, node, length);
	if (!op || length + sizeof "aten::" > sizeof text)
		return intern_add(strings, name);
	length = without_overload(op, length);
	memcpy(text + 6, op, length);
	return intern_add_n(strings, text, 6 + length);
}

/* Parses each text once: many frames may refer to one text, and it may be long. */
static struct snapshot_frame texts_of_frame(struct snapshot *snapshot, const struct pickle_value *name,
                                            const struct pickle_value *file)
{
	struct snapshot_frame frame = {0};
	const char *file_text = snapshot_take_text_of(snapshot, file);
	uint64_t key = (uint64_t)(name->type == PICKLE_TEXT ? name->number : 0) << 32 |
	               (file->type == PICKLE_TEXT ? file->number : 0);
	uint32_t found = number_map_find(&snapshot->frame_texts, key);
	if (found != NUMBER_MAP_NONE) {
		assert(found < snapshot->frames_count);
		frame = snapshot->frames[found];
		frame.line = 0;
		return frame;
	}
	number_map_set(&snapshot->frame_texts, key, snapshot->frames_count);
	frame.name = name_of_frame(snapshot, snapshot_take_text_of(snapshot, name), file_text, &frame.is_kept);
	frame.file = is_python(file_text) ? snapshot_string(snapshot, file) : 0;
	return frame;
}

static void take_frame(struct snapshot *snapshot, uint32_t object, const struct snapshot_take_row *row)
{
	uint64_t line = unsigned_or_0(row->values[KEY_LINE]);
	struct snapshot_frame frame = texts_of_frame(snapshot, row->values[KEY_NAME], row->values[KEY_FILENAME]);
	if (frame.file && line <= UINT32_MAX) /* a C++ source has no name here, so its line is useless */
		frame.line = (uint32_t)line;
	uint64_t key = hash_two((uint64_t)frame.name << 32 | frame.file, frame.line);
	frame.number = number_map_add(&snapshot->frame_numbers, key, snapshot->frames_count);
	ROOM_FOR(snapshot, frames);
	snapshot->frames[snapshot->frames_count] = frame;
	pickle_take(&snapshot->pickle, object, SNAPSHOT_FRAME, snapshot->frames_count++, 1);
}

/* ---- stacks ----------------------------------------------------------------------------------------------------- */

static uint32_t push_frame(struct snapshot *snapshot, uint32_t parent, const struct snapshot_frame *frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame->number;
	uint32_t found = number_map_find(&snapshot->stack_nodes, key);
	if (found != NUMBER_MAP_NONE)
		return found;
	if (!snapshot->model->stacks_count) /* the first one is unused */
		(void)model_add_frame(snapshot->model, &(struct stack_node){0});
	found = model_add_frame(
		snapshot->model,
		&(struct stack_node){.parent = parent, .frame = frame->name, .line = frame->line, .file = frame->file});
	number_map_set(&snapshot->stack_nodes, key, found);
	pickle_use(&snapshot->pickle, NODE_BYTES);
	return found;
}

static const struct snapshot_frame *frame_of(const struct snapshot *snapshot, const struct pickle_value *value)
{
	const struct pickle_object *taken = pickle_taken(&snapshot->pickle, value, SNAPSHOT_FRAME);
	assert(!taken || taken->taken < snapshot->frames_count);
	return taken ? &snapshot->frames[taken->taken] : NULL;
}

/* Returns the innermost frame outside the functions that allocate memory. */
static const struct snapshot_frame *outside_of_allocator(const struct snapshot *snapshot,
                                                         const struct pickle_object *list)
{
	static const char *const insides[] = {
		"torch::unwind", "torch::CapturedTraceback", "torch::cuda::", "c10::", "at::",
		"std::",         "torch::autograd",          "THP",           NULL};
	for (uint32_t i = 0; i < list->count; i++) {
		const struct snapshot_frame *frame = frame_of(snapshot, &list->items[i]);
		const char *name = frame ? model_text(snapshot->model, frame->name) : "";
		bool is_inside = !*name || strcmp(name, "??") == 0;
		for (int k = 0; insides[k] && !is_inside; k++)
			is_inside = strncmp(name, insides[k], strlen(insides[k])) == 0;
		if (!is_inside)
			return frame;
	}
	return NULL;
}

/* Frames come innermost first. An operator that calls itself through the dispatcher counts once. */
static uint32_t stack_of_list(struct snapshot *snapshot, const struct pickle_object *list)
{
	uint32_t stack = 0, last = UINT32_MAX;
	for (uint32_t i = list->count; i > 0; i--) {
		const struct snapshot_frame *frame = frame_of(snapshot, &list->items[i - 1]);
		if (!frame || !frame->is_kept || (!frame->file && frame->number == last))
			continue;
		stack = push_frame(snapshot, stack, frame);
		last = frame->number;
	}
	const struct snapshot_frame *other = stack ? NULL : outside_of_allocator(snapshot, list);
	return other ? push_frame(snapshot, 0, other) : stack;
}

/* Many events share one list, so its stack is kept. */
static uint32_t take_stack(struct snapshot *snapshot, const struct pickle_value *frames)
{
	struct pickle *pickle = &snapshot->pickle;
	const struct pickle_object *taken = pickle_taken(pickle, frames, SNAPSHOT_STACK);
	if (taken)
		return taken->taken;
	const struct pickle_object *list = pickle_object(pickle, frames, PICKLE_LIST);
	if (!list || !list->count)
		return 0;
	uint32_t stack = stack_of_list(snapshot, list);
	pickle_take(pickle, frames->number, SNAPSHOT_STACK, stack, 1);
	return stack;
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static enum snapshot_action action_of(const struct snapshot *snapshot, const struct pickle_value *value)
{
	static const char *const names[ACTION_COUNT] = {
		[ACTION_ALLOC] = "alloc",
		[ACTION_FREE_REQUESTED] = "free_requested",
		[ACTION_FREE_COMPLETED] = "free_completed",
		[ACTION_SEGMENT_ALLOC] = "segment_alloc",
		[ACTION_SEGMENT_FREE] = "segment_free",
		[ACTION_SEGMENT_MAP] = "segment_map",
		[ACTION_SEGMENT_UNMAP] = "segment_unmap",
		[ACTION_SNAPSHOT] = "snapshot",
		[ACTION_OOM] = "oom",
		[ACTION_USER_DEFINED] = "user_defined",
	};
	const char *text = snapshot_take_text_of(snapshot, value);
	for (int action = 0; action < ACTION_COUNT; action++)
		if (strcmp(text, names[action]) == 0)
			return (enum snapshot_action)action;
	return ACTION_LEFT_OUT;
}

/* Returns false for times that do not fit in nanoseconds. */
static bool snapshot_take_time_of(const struct pickle_value *value, int64_t *time_us)
{
	if (!snapshot_take_is_number(value) || value->i64 < 0 || value->i64 > INT64_MAX / 4000)
		return false;
	*time_us = value->i64;
	return true;
}

static void snapshot_take_take_event(struct snapshot *snapshot, uint32_t object, const struct snapshot_take_row *row)
{
	struct snapshot_event event = {.action = (uint8_t)action_of(snapshot, row->values[KEY_ACTION])};
	bool is_needed = event.action != ACTION_SNAPSHOT && event.action != ACTION_USER_DEFINED;
	bool has_bytes = unsigned_of(row->values[KEY_SIZE], &event.bytes);
	bool has_address = unsigned_of(row->values[event.action == ACTION_OOM ? KEY_DEVICE_FREE : KEY_ADDR],
	                               &event.address);
	if (event.action == ACTION_LEFT_OUT)
		snapshot_repair(snapshot, SNAPSHOT_ACTIONS, 1);
	else if (is_needed && (!has_bytes || !has_address))
		snapshot_repair(snapshot, SNAPSHOT_EVENTS, 1), event.action = ACTION_LEFT_OUT;
	event.has_time = snapshot_take_time_of(row->values[KEY_TIME_US], &event.time_us);
	event.category = snapshot_take_category_of(snapshot, row->values[KEY_CATEGORY]);
	if (event.action == ACTION_ALLOC || event.action == ACTION_OOM)
		event.stack = take_stack(snapshot, row->values[KEY_FRAMES]);
	ROOM_FOR(snapshot, events);
	snapshot->events[snapshot->events_count] = event;
	pickle_take(&snapshot->pickle, object, SNAPSHOT_EVENT, snapshot->events_count++, 1);
}

/* ---- blocks and segments ---------------------------------------------------------------------------------------- */

/* Before PyTorch 2.1, a block had a history of its contents, the newest first. */
static void take_history(struct snapshot *snapshot, const struct pickle_value *history, struct snapshot_block *block)
{
	struct pickle *pickle = &snapshot->pickle;
	const struct pickle_object *list = pickle_object(pickle, history, PICKLE_LIST);
	const struct pickle_object *newest = list && list->count ? pickle_object(pickle, list->items, PICKLE_DICTIONARY)
	                                                         : NULL;
	if (!newest)
		return;
	const struct pickle_value *frames = pickle_find(pickle, newest, "frames");
	(void)unsigned_of(pickle_find(pickle, newest, "real_size"), &block->requested_bytes);
	block->has_frames = frames;
	block->stack = take_stack(snapshot, frames);
}

static void take_block(struct snapshot *snapshot, uint32_t object, const struct snapshot_take_row *row)
{
	struct snapshot_block block = {0};
	const char *state = snapshot_take_text_of(snapshot, row->values[KEY_STATE]);
	if (!unsigned_of(row->values[KEY_SIZE], &block.bytes))
		snapshot_repair(snapshot, SNAPSHOT_BLOCKS, 1);
	block.state = strcmp(state, "active_allocated") == 0 ? BLOCK_ACTIVE
	              : strncmp(state, "active", 6) == 0     ? BLOCK_PENDING
	                                                     : BLOCK_INACTIVE;
	block.requested_bytes = block.bytes;
	block.has_address = unsigned_of(row->values[KEY_ADDRESS], &block.address);
	block.category = snapshot_take_category_of(snapshot, row->values[KEY_CATEGORY]);
	take_history(snapshot, row->values[KEY_HISTORY], &block);
	(void)unsigned_of(row->values[KEY_REQUESTED_SIZE], &block.requested_bytes);
	if (block.requested_bytes > block.bytes)
		block.requested_bytes = block.bytes;
	if (row->values[KEY_FRAMES]) {
		block.stack = take_stack(snapshot, row->values[KEY_FRAMES]);
		block.has_frames = block.stack;
	}
	ROOM_FOR(snapshot, blocks);
	snapshot->blocks[snapshot->blocks_count] = block;
	pickle_take(&snapshot->pickle, object, SNAPSHOT_BLOCK, snapshot->blocks_count++, 1);
}

/* A list that the pickle has once but that many segments use would multiply its blocks. It belongs to the first
 * segment. */
static void own_blocks(struct snapshot *snapshot, struct snapshot_segment *segment, const struct pickle_object *blocks)
{
	if (!blocks)
		return;
	if (blocks->taken < snapshot->owned_blocks) {
		snapshot_repair(snapshot, SNAPSHOT_ITEMS, 1);
		return;
	}
	segment->first_block = blocks->taken;
	segment->block_count = blocks->count;
	snapshot->owned_blocks = blocks->taken + blocks->count;
}

/* Returns the id of a graph's private pool, such as "(3, 0)", as one number. */
static uint64_t pool_of(const struct snapshot *snapshot, const struct pickle_value *value)
{
	const struct pickle_object *tuple = pickle_object(&snapshot->pickle, value, PICKLE_TUPLE);
	if (!tuple || tuple->count != 2)
		return 0;
	return unsigned_or_0(&tuple->items[0]) << 32 | (uint32_t)unsigned_or_0(&tuple->items[1]);
}

static void take_segment(struct snapshot *snapshot, uint32_t object, const struct snapshot_take_row *row)
{
	uint64_t device = unsigned_or_0(row->values[KEY_DEVICE]);
	struct snapshot_segment segment = {0};
	const struct pickle_object *blocks = pickle_taken(&snapshot->pickle, row->values[KEY_BLOCKS],
	                                                  SNAPSHOT_BLOCK | SNAPSHOT_RUN);
	segment.row.address = unsigned_or_0(row->values[KEY_ADDRESS]);
	segment.row.stream = unsigned_or_0(row->values[KEY_STREAM]);
	segment.row.pool = pool_of(snapshot, row->values[KEY_SEGMENT_POOL_ID]);
	segment.row.type = snapshot_string(snapshot, row->values[KEY_SEGMENT_TYPE]);
	segment.row.is_expandable = row->values[KEY_IS_EXPANDABLE] && unsigned_or_0(row->values[KEY_IS_EXPANDABLE]);
	segment.row.stack = take_stack(snapshot, row->values[KEY_FRAMES]);
	segment.row.device = (int16_t)(device < SNAPSHOT_DEVICES ? device : 0);
	own_blocks(snapshot, &segment, blocks);
	bool is_good = unsigned_of(row->values[KEY_TOTAL_SIZE], &segment.row.bytes) && device < SNAPSHOT_DEVICES;
	if (!is_good)
		snapshot_repair(snapshot, SNAPSHOT_SEGMENTS, 1);
	ROOM_FOR(snapshot, segments);
	snapshot->segments[snapshot->segments_count] = segment;
	snapshot->segments_count += is_good;
	pickle_take(&snapshot->pickle, object, SNAPSHOT_SEGMENT, snapshot->segments_count - is_good, is_good);
}

/* ---- any container ---------------------------------------------------------------------------------------------- */

static void read_row(struct snapshot_take_row *row, const struct pickle_value *items, uint32_t count)
{
	memset(row, 0, sizeof *row);
	for (uint32_t i = 0; i + 1 < count; i += 2)
		if (items[i].type == PICKLE_TEXT && items[i].number >= 1 && items[i].number < KEY_END)
			row->values[items[i].number] = &items[i + 1];
}

static bool take_dictionary(struct snapshot *snapshot, uint32_t object, const struct pickle_value *items,
                            uint32_t count)
{
	struct snapshot_take_row row;
	read_row(&row, items, count);
	if (row.values[KEY_ACTION])
		snapshot_take_take_event(snapshot, object, &row);
	else if (row.values[KEY_STATE])
		take_block(snapshot, object, &row);
	else if (row.values[KEY_TOTAL_SIZE])
		take_segment(snapshot, object, &row);
	else if (row.values[KEY_NAME] && row.values[KEY_FILENAME])
		take_frame(snapshot, object, &row);
	else
		return false;
	return true;
}

/* Returns the tag of the list's rows, by the first one; 0: it has no rows. */
static uint8_t tag_of_rows(const struct pickle *pickle, const struct pickle_value *items, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct pickle_object *row = pickle_object(pickle, &items[i], PICKLE_TAKEN);
		if (row && (row->tag == SNAPSHOT_EVENT || row->tag == SNAPSHOT_BLOCK))
			return row->tag;
	}
	return 0;
}

/* Takes rows that follow each other, or that follow those already in the list. Other items are left out. */
static bool take_list(struct snapshot *snapshot, uint32_t object, const struct pickle_value *items, uint32_t count)
{
	struct pickle *pickle = &snapshot->pickle;
	const struct pickle_object *list = &pickle->objects[object];
	bool is_new = list->kind == PICKLE_LIST;
	uint8_t tag = is_new ? tag_of_rows(pickle, items, count) : (uint8_t)(list->tag & ~SNAPSHOT_RUN);
	uint32_t begin = is_new ? 0 : list->taken, rows = is_new ? 0 : list->count, odd = is_new ? list->count : 0;
	if ((tag != SNAPSHOT_EVENT && tag != SNAPSHOT_BLOCK) || (!is_new && !(list->tag & SNAPSHOT_RUN)))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct pickle_object *row = pickle_taken(pickle, &items[i], tag);
		if (row && !rows)
			begin = row->taken;
		if (row && row->taken == begin + rows)
			rows++;
		else
			odd++;
	}
	if (odd)
		snapshot_repair(snapshot, SNAPSHOT_ITEMS, odd);
	pickle_take(pickle, object, tag | SNAPSHOT_RUN, begin, rows);
	return true;
}

bool snapshot_take(void *context, struct pickle *pickle, uint32_t object, const struct pickle_value *items,
                   uint32_t count)
{
	const struct pickle_object *container = &pickle->objects[object];
	if (container->kind == PICKLE_DICTIONARY)
		return container->count == 0 && take_dictionary(context, object, items, count);
	return take_list(context, object, items, count);
}
