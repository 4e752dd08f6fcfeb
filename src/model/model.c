/* SPDX-License-Identifier: Apache-2.0
 *
 * model.c: creates and releases the model, and fills its small arrays: processes, tracks, values, marks, links,
 * samples, facts, ledger. Spans are in model_spans.c; model_finish.c does the work after the last row.
 */
#include "model/model.h"

#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/storage.h"
#include "model/cell_words.h"
#include "model/model_index.h"
#include "model/model_spans.h"
#include "model/track_builder.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_LIMIT_BYTES ((uint64_t)512 << 20)

static const char *const phase_names[] = {CELL_PHASE_DATA,      CELL_PHASE_FORWARD,       CELL_PHASE_BACKWARD,
                                          CELL_PHASE_OPTIMIZER, CELL_PHASE_COMMUNICATION, CELL_PHASE_CHECKPOINT,
                                          CELL_PHASE_EVALUATION};

void model_init(struct model *model, uint64_t memory_limit_bytes)
{
	*model = (struct model){.storage = storage_new(memory_limit_bytes ? memory_limit_bytes : DEFAULT_LIMIT_BYTES)};
	intern_init(&model->strings);
	arena_init(&model->arena, 0);
	model->index = arena_alloc(&model->arena, sizeof *model->index);
	model->index->last_series = NUMBER_MAP_NONE;
	for (uint32_t i = 0; i < 7; i++) {
		uint32_t number = intern_add(&model->strings, phase_names[i]);
		assert(number == i + 1);
		(void)number;
	}
	MODEL_ARRAY_GROW(model, stacks);
	model->stacks[model->stacks_count++] = (struct stack_node){0};
}

void model_release_track(struct model *model, uint32_t track)
{
	track_builder_release(track_builder_of(model, track));
}

void model_release_series(struct model *model, uint32_t series)
{
	storage_release(model->storage, model->series[series]->time_ns);
	storage_release(model->storage, model->series[series]->value);
	storage_release(model->storage, model->series[series]->step);
}

void model_release(struct model *model)
{
	for (uint32_t i = 0; i < model->tracks_count; i++)
		model_release_track(model, i);
	for (uint32_t i = 0; i < model->series_count; i++)
		model_release_series(model, i);
	if (model->index) {
		number_map_release(&model->index->series);
		number_map_release(&model->index->meta);
	}
	storage_release(model->storage, model->processes);
	storage_release(model->storage, model->tracks);
	storage_release(model->storage, model->steps);
	storage_release(model->storage, model->series);
	storage_release(model->storage, model->memory);
	storage_release(model->storage, model->owners);
	storage_release(model->storage, model->segments);
	storage_release(model->storage, model->readings);
	storage_release(model->storage, model->marks);
	storage_release(model->storage, model->args);
	storage_release(model->storage, model->links);
	storage_release(model->storage, model->stacks);
	storage_release(model->storage, model->samples);
	storage_release(model->storage, model->meta);
	storage_release(model->storage, model->ledger);
	storage_free(model->storage);
	intern_release(&model->strings);
	arena_release(&model->arena);
	*model = (struct model){0};
}

uint32_t model_add_process(struct model *model)
{
	MODEL_ARRAY_GROW(model, processes);
	model->processes[model->processes_count] = (struct process){.rank = -1, .world_size = -1};
	return model->processes_count++;
}

uint32_t model_add_track(struct model *model, uint32_t process, enum track_kind kind)
{
	assert(process < model->processes_count);
	MODEL_ARRAY_GROW(model, tracks);
	struct track_builder *builder = memory_resize(NULL, 1, sizeof *builder);
	*builder = (struct track_builder){.track = {.process = process, .kind = kind, .device = -1}};
	model->tracks[model->tracks_count] = &builder->track;
	return model->tracks_count++;
}

struct model_step *model_add_step(struct model *model)
{
	MODEL_ARRAY_GROW(model, steps);
	struct model_step *step = &model->steps[model->steps_count++];
	*step = (struct model_step){.track = MODEL_NONE, .row = MODEL_NONE};
	return step;
}

struct value_series *model_add_series(struct model *model, const struct value_series *like)
{
	MODEL_ARRAY_GROW(model, series);
	struct value_series *series = arena_alloc(&model->arena, sizeof *series);
	*series = *like;
	model->series[model->series_count++] = series;
	return series;
}

static struct value_series *find_series(struct model *model, uint32_t process, uint32_t name, bool is_metric)
{
	struct model_index *index = model->index;
	const struct value_series like = {.process = process, .name = name, .is_metric = is_metric};
	uint64_t key = model_series_key(&like);
	if (index->last_series != NUMBER_MAP_NONE && index->last_series_key == key)
		return model->series[index->last_series];
	uint32_t found = number_map_find(&index->series, key);
	if (found == NUMBER_MAP_NONE) {
		found = model->series_count;
		model_add_series(model, &like);
		number_map_set(&index->series, key, found);
	}
	index->last_series_key = key;
	index->last_series = found;
	return model->series[found];
}

void model_add_value(struct model *model, uint32_t process, uint32_t name, bool is_metric, int64_t time_ns,
                     double value)
{
	model_series_add(model, find_series(model, process, name, is_metric), time_ns, value);
}

void model_series_add(struct model *model, struct value_series *series, int64_t time_ns, double value)
{
	if (series->count == series->capacity) {
		series->capacity = series->capacity ? 2 * series->capacity : 16;
		series->time_ns = storage_resize(model->storage, series->time_ns, series->capacity,
		                                 sizeof *series->time_ns);
		series->value = storage_resize(model->storage, series->value, series->capacity, sizeof *series->value);
	}
	series->time_ns[series->count] = time_ns;
	series->value[series->count++] = value;
}

void model_span_arg(struct model *model, const struct span_arg *arg)
{
	MODEL_ARRAY_GROW(model, args);
	model->args[model->args_count++] = *arg;
}

void model_add_memory(struct model *model, const struct memory_event *event)
{
	MODEL_ARRAY_GROW(model, memory);
	model->memory[model->memory_count++] = *event;
}

static void lose_memory(struct process *process, int64_t since_ns, uint32_t why)
{
	if (process->has_lost_memory && process->lost_memory_ns <= since_ns)
		return;
	process->has_lost_memory = true;
	process->lost_memory_ns = since_ns;
	process->lost_memory = why;
	process->has_lost_end = false;
}

void model_lose_memory(struct model *model, uint32_t process, int64_t since_ns, const char *why)
{
	uint32_t text = intern_add(&model->strings, why);
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (process == MODEL_NONE || process == i)
			lose_memory(&model->processes[i], since_ns, text);
}

void model_add_owner(struct model *model, const struct memory_owner *owner)
{
	MODEL_ARRAY_GROW(model, owners);
	model->owners[model->owners_count++] = *owner;
}

void model_add_reading(struct model *model, const struct thread_reading *reading)
{
	MODEL_ARRAY_GROW(model, readings);
	model->readings[model->readings_count++] = *reading;
}

void model_add_segment(struct model *model, const struct memory_segment *segment)
{
	MODEL_ARRAY_GROW(model, segments);
	model->segments[model->segments_count++] = *segment;
}

void model_add_mark(struct model *model, uint32_t track, int64_t time_ns, uint32_t name)
{
	MODEL_ARRAY_GROW(model, marks);
	model->marks[model->marks_count++] = (struct mark){time_ns, track, name};
}

void model_add_link(struct model *model, const struct model_link *link)
{
	MODEL_ARRAY_GROW(model, links);
	model->links[model->links_count++] = *link;
}

uint32_t model_add_frame(struct model *model, const struct stack_node *frame)
{
	assert(frame->parent < model->stacks_count);
	MODEL_ARRAY_GROW(model, stacks);
	model->stacks[model->stacks_count] = *frame;
	return model->stacks_count++;
}

uint32_t model_add_stack(struct model *model, uint32_t parent, uint32_t frame, uint32_t line)
{
	return model_add_frame(model, &(struct stack_node){.parent = parent, .frame = frame, .line = line});
}

void model_add_sample(struct model *model, const struct sample *sample)
{
	MODEL_ARRAY_GROW(model, samples);
	model->samples[model->samples_count++] = *sample;
}

void model_add_meta(struct model *model, uint32_t process, const char *key, const char *value)
{
	uint32_t key_string = intern_add(&model->strings, key), value_string = intern_add(&model->strings, value);
	uint64_t place = model_meta_key(process, key_string);
	uint32_t found = number_map_find(&model->index->meta, place);
	if (found != NUMBER_MAP_NONE) {
		model->meta[found].value = value_string;
		return;
	}
	MODEL_ARRAY_GROW(model, meta);
	number_map_set(&model->index->meta, place, model->meta_count);
	model->meta[model->meta_count++] = (struct model_meta){process, key_string, value_string};
}

struct ledger_entry *model_add_ledger(struct model *model, enum ledger_kind kind, uint32_t process, const char *where,
                                      uint64_t count, const char *text)
{
	struct ledger_entry entry = {.kind = kind, .process = process, .count = count};
	entry.where = intern_add(&model->strings, where);
	entry.text = intern_add(&model->strings, text);
	for (uint32_t i = model->ledger_count; i-- > 0;) {
		struct ledger_entry *old = &model->ledger[i];
		if (old->kind == kind && old->process == process && old->where == entry.where &&
		    old->text == entry.text) {
			old->count += count;
			return old;
		}
	}
	MODEL_ARRAY_GROW(model, ledger);
	model->ledger[model->ledger_count] = entry;
	return &model->ledger[model->ledger_count++];
}

const char *model_text(const struct model *model, uint32_t string)
{
	return intern_text(&model->strings, string);
}

const char *model_meta(const struct model *model, uint32_t process, const char *key)
{
	uint32_t key_string = intern_find(&model->strings, key);
	if (!key_string)
		return NULL;
	if (process != MODEL_NONE) {
		uint32_t found = number_map_find(&model->index->meta, model_meta_key(process, key_string));
		return found == NUMBER_MAP_NONE ? NULL : model_text(model, model->meta[found].value);
	}
	for (uint32_t i = 0; i < model->meta_count; i++)
		if (model->meta[i].key == key_string)
			return model_text(model, model->meta[i].value);
	return NULL;
}

uint32_t model_first_arg(const struct model *model, uint32_t track, uint32_t row)
{
	return LOWER_BOUND(model->args, model->args_count, arg,
	                   arg->track < track || (arg->track == track && arg->row < row));
}

uint32_t track_row_at(const struct track *track, uint32_t row, int64_t time_ns)
{
	uint32_t low = row, high = track->span_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2, index;
		const struct span_chunk *chunk = track_chunk(track, middle, &index);
		if (chunk->start_ns[index] < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *span_kind_name(enum span_kind kind)
{
	static const char *const names[SPAN_KIND_COUNT] = {
		[SPAN_RANGE] = CELL_KIND_RANGE,
		[SPAN_PHASE] = "phase",
		[SPAN_OP] = CELL_KIND_OP,
		[SPAN_MICRO_BATCH] = "micro-batch",
		[SPAN_ANNOTATION] = CELL_KIND_ANNOTATION,
		[SPAN_PYTHON] = "python",
		[SPAN_RUNTIME] = "runtime",
		[SPAN_KERNEL] = "kernel",
		[SPAN_MEMCPY] = "memcpy",
		[SPAN_MEMSET] = "memset",
		[SPAN_SYNC] = "sync",
		[SPAN_COLLECTIVE] = "collective",
		[SPAN_OVERHEAD] = "overhead",
		[SPAN_OTHER] = "other",
		[SPAN_MODULE] = "module",
		[SPAN_STEP] = "step",
	};
	return kind < SPAN_KIND_COUNT && names[kind] ? names[kind] : "other";
}
