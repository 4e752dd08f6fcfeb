/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_pool.c: see the header.
 */
#include "analysis/memory/memory_pool.h"

#include "analysis/analysis_context.h"
#include "analysis/memory/growth.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_times.h"
#include "base/units.h"
#include "model/cell_words.h"
#include "model/reasons.h"
#include "pytorch/names.h"

#include <assert.h>
#include <stepscope/stepscope.h>
#include <string.h>

const char *memory_category_name(int category)
{
	static const char *const names[MEMORY_CATEGORIES + 1] = {
		"other", "parameter", "gradient",        "optimizer state", "activation",
		"input", "temporary", "autograd detail", "buffer",          CELL_ALL};

	return category >= 0 && category <= MEMORY_CATEGORIES ? names[category] : names[0];
}

int memory_category_at(int place)
{
	static const int order[MEMORY_CATEGORIES] = {
		STEPSCOPE_MEMORY_PARAMETER, STEPSCOPE_MEMORY_BUFFER,     STEPSCOPE_MEMORY_GRADIENT,
		STEPSCOPE_MEMORY_OPTIMIZER, STEPSCOPE_MEMORY_ACTIVATION, STEPSCOPE_MEMORY_INPUT,
		STEPSCOPE_MEMORY_TEMPORARY, STEPSCOPE_MEMORY_AUTOGRAD,   STEPSCOPE_MEMORY_OTHER};

	return order[place];
}

const char *memory_device_name(struct arena *arena, int16_t device)
{
	return device < 0 ? CELL_DEVICE_HOST : arena_printf(arena, "device %d", device);
}

/* A stack has operators among its Python lines. Without operators, its innermost frame is the allocator. */
static uint32_t stack_allocated_by(const struct model *model, uint32_t stack)
{
	uint32_t name = 0;

	for (uint32_t node = stack; node; node = model->stacks[node].parent) {
		const struct stack_node *frame = &model->stacks[node];

		if (name && frame->file) /* Python called an operator that only gets memory */
			break;
		name = frame->frame;
		if (frame->file || !pytorch_is_allocator(model_text(model, name)))
			break;
	}
	return name;
}

uint32_t memory_allocated_by(const struct model *model, const struct memory_event *event)
{
	uint32_t name = 0;
	const struct track *track;

	if (event->stack && event->stack < model->stacks_count)
		return stack_allocated_by(model, event->stack);
	if (event->track >= model->tracks_count)
		return 0;
	track = model->tracks[event->track];
	for (uint32_t row = event->row; row != MODEL_NONE && row < track->span_count;) {
		uint32_t index;
		const struct span_chunk *chunk = track_chunk(track, row, &index);

		if (name && chunk->kind[index] != SPAN_OP)
			break;
		name = chunk->name[index];
		if (chunk->kind[index] != SPAN_OP || !pytorch_is_allocator(model_text(model, name)))
			break;
		row = chunk->parent[index];
	}
	return name;
}

/* Reasons for unknown growth: the pool has gaps, or not all frees and allocations were seen. */
#define MEMORY_GROWTH_OVER_GAPS                                                                                        \
	"memory was not recorded in steps between these, so their frees and the growth are unknown"
#define MEMORY_GROWTH_OF_OTHERS                                                                                        \
	"memory was freed in these steps without a recorded allocation, or allocated again without a free, so "        \
	"the growth is unknown"

/* ---- one pool ---------------------------------------------------------------------------------------------------- */

static int memory_pool_category_of(const struct memory_event *event)
{
	return event->category < MEMORY_CATEGORIES ? event->category : STEPSCOPE_MEMORY_OTHER;
}

static void note_peak(struct memory_pool *pool, uint32_t number)
{
	if (pool->now <= pool->peak)
		return;
	pool->peak = pool->now;
	pool->peak_event = number;
	for (int i = 0; i < MEMORY_CATEGORIES; i++)
		pool->levels[i].at_peak = pool->levels[i].now;
}

static void note_peaks(struct memory_pool *pool, struct memory_level *level, uint32_t number)
{
	if (!pool->has_peaks)
		return;
	level->peak = level->now > level->peak ? level->now : level->peak;
	note_peak(pool, number);
	if (pool->now > pool->step_peak) {
		pool->step_peak = pool->now;
		for (int i = 0; i < MEMORY_CATEGORIES; i++)
			pool->levels[i].at_step_peak = pool->levels[i].now;
	}
}

static void memory_pool_take_off(struct memory_pool *pool, const struct memory_event *allocation,
                                 const struct memory_visitor *visitor)
{
	assert(!allocation->is_free);
	pool->levels[memory_pool_category_of(allocation)].now -= (wide_bytes)allocation->bytes;
	pool->now -= (wide_bytes)allocation->bytes;
	if (visitor->change)
		visitor->change(visitor->context, allocation, -1);
}

static void replay_event(struct memory_pool *pool, const struct memory_visitor *visitor)
{
	uint32_t number = pool->replayed++;
	const struct memory_event *event = &pool->model->memory[number];
	struct memory_level *level = &pool->levels[memory_pool_category_of(event)];

	assert(number < pool->last);
	assert(event->partner == MODEL_NONE || (event->partner < number) == event->is_free);

	if (event->device != pool->device)
		return;
	if (event->is_free) {
		pool->is_behind_gap |= event->is_found;
		pool->unknown_frees += event->partner == MODEL_NONE;
		if (event->partner != MODEL_NONE)
			memory_pool_take_off(pool, &pool->model->memory[event->partner], visitor);
		return;
	}
	if (event->ends != MODEL_NONE) {
		pool->lost_frees++;
		memory_pool_take_off(pool, &pool->model->memory[event->ends], visitor);
	}
	if (event->is_found && !pool->is_behind_gap)
		pool->found += (wide_bytes)event->bytes;
	level->count++;
	level->allocated += (wide_bytes)event->bytes;
	level->now += (wide_bytes)event->bytes;
	pool->now += (wide_bytes)event->bytes;
	note_peaks(pool, level, number);
	if (visitor->change)
		visitor->change(visitor->context, event, 1);
}

/* The level at the start of a step may be its peak already. */
static void begin_step(struct memory_pool *pool)
{
	pool->has_peaks = true;
	pool->step_peak = pool->now;
	for (int i = 0; i < MEMORY_CATEGORIES; i++) {
		struct memory_level *level = &pool->levels[i];

		level->at_step_peak = level->now;
		level->peak = level->now > level->peak ? level->now : level->peak;
	}
	note_peak(pool, pool->replayed - (pool->replayed > pool->first));
}

static bool is_told(const struct memory_pool *pool, const struct step_times *times, uint32_t step)
{
	const struct model_step *found = &pool->model->steps[step];

	return found->process == pool->process && times->steps[step].is_selected && times->steps[step].is_complete &&
	       found->has_memory;
}

static bool is_selected(const struct memory_pool *pool, const struct step_times *times, uint32_t step)
{
	return pool->model->steps[step].process == pool->process && times->steps[step].is_selected;
}

/* Replays the events at or before that time. */
static void replay_until(struct memory_pool *pool, int64_t time_ns, const struct memory_visitor *visitor)
{
	const struct memory_event *memory = pool->model->memory;
	int64_t end_ns = time_ns < pool->known_until_ns ? time_ns : pool->known_until_ns;

	while (pool->replayed < pool->last && memory[pool->replayed].time_ns <= end_ns)
		replay_event(pool, visitor);
}

static const char *unknown_at(const struct memory_pool *pool, int64_t time_ns)
{
	const struct process *process = &pool->model->processes[pool->process];

	if (time_ns > pool->known_until_ns)
		return model_text(pool->model, process->lost_memory);
	return process->removed_memory ? model_text(pool->model, process->removed_memory) : NULL;
}

/* Growth is measured over half of the steps. Memory freed in them without a recorded allocation existed at their
 * start, and memory allocated again without a free was gone. A few such events are accepted: threads may report one
 * address in another order than it happened. */
static void look_at_frees(struct memory_pool *pool)
{
	int64_t frees = pool->unknown_frees + pool->lost_frees;
	uint32_t first = growth_first(pool->step_count);

	if (pool->ordinal <= first)
		pool->frees_before = frees;
	if (pool->ordinal + 1 == pool->step_count && !pool->unknown_growth &&
	    (frees - pool->frees_before) * 2 > pool->ordinal - first)
		pool->unknown_growth = MEMORY_GROWTH_OF_OTHERS;
}

static void tell_step(struct memory_pool *pool, uint32_t step, const struct memory_visitor *visitor)
{
	assert(pool->ordinal < pool->step_count);
	pool->unknown = unknown_at(pool, pool->model->steps[step].end_ns);
	look_at_frees(pool);
	if (visitor->step_end)
		visitor->step_end(visitor->context, pool, step);
	pool->ordinal++;
}

static void replay(struct memory_pool *pool, const struct step_times *times, const struct analysis_options *options,
                   const struct memory_visitor *visitor)
{
	int64_t end_ns = options->filter.has_steps ? INT64_MIN : INT64_MAX;

	for (uint32_t i = 0; i < times->count; i++) {
		const struct model_step *step = &pool->model->steps[i];

		if (!is_selected(pool, times, i))
			continue;
		pool->has_peaks = !options->filter.has_steps;
		replay_until(pool, step->start_ns - 1, visitor);
		begin_step(pool);
		replay_until(pool, step->end_ns, visitor);
		end_ns = step->end_ns > end_ns ? step->end_ns : end_ns;
		if (is_told(pool, times, i))
			tell_step(pool, i, visitor);
	}
	pool->has_peaks = true;
	if (!options->filter.has_steps)
		replay_until(pool, INT64_MAX, visitor);
	pool->unknown = pool->unknown_peak = unknown_at(pool, end_ns);
	pool->is_part = pool->unknown_peak && end_ns <= pool->known_until_ns;
}

static void count_steps(struct memory_pool *pool, const struct step_times *times)
{
	const struct process *process = &pool->model->processes[pool->process];
	bool is_behind_gap = false;

	pool->known_until_ns = process->has_lost_memory ? process->lost_memory_ns : INT64_MAX;

	for (uint32_t i = 0; i < times->count; i++) {
		if (is_told(pool, times, i)) {
			pool->has_gaps |= is_behind_gap;
			if (pool->model->steps[i].end_ns > pool->known_until_ns)
				pool->unknown_growth = model_text(pool->model, process->lost_memory);
			pool->step_count++;
		}
		is_behind_gap |= pool->step_count && is_selected(pool, times, i) && !pool->model->steps[i].has_memory;
	}
	if (pool->has_gaps && !pool->unknown_growth)
		pool->unknown_growth = MEMORY_GROWTH_OVER_GAPS;
}

static void visit_pool(const struct memory_pool *empty, const struct step_times *times,
                       const struct analysis_options *options, const struct memory_visitor *visitor)
{
	struct memory_pool pool = *empty;

	count_steps(&pool, times);
	if (visitor->begin)
		visitor->begin(visitor->context, &pool);
	replay(&pool, times, options, visitor);
	if (visitor->end && (pool.peak > 0 || pool.unknown_frees || pool.unknown_peak))
		visitor->end(visitor->context, &pool);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

void memory_pools_each(struct analysis_context *context, const struct memory_visitor *visitor)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);

	for (uint32_t first = 0, last; first < model->memory_count; first = last) {
		uint64_t seen[65536 / 64] = {0}; /* bit: device + 1 */

		for (last = first;
		     last < model->memory_count && model->memory[last].process == model->memory[first].process;
		     last++) {
			uint16_t device = (uint16_t)(model->memory[last].device + 1);

			seen[device / 64] |= (uint64_t)1 << device % 64;
		}
		for (int device = 0; device <= INT16_MAX + 1; device++) {
			const struct memory_pool pool = {.model = model,
			                                 .process = model->memory[first].process,
			                                 .device = (int16_t)(device - 1),
			                                 .first = first,
			                                 .last = last,
			                                 .replayed = first};

			if (seen[device / 64] >> device % 64 & 1)
				visit_pool(&pool, times, &context->options, visitor);
		}
	}
}

void memory_pool_at_peak(const struct memory_pool *pool, void (*use)(void *context, const struct memory_event *event),
                         void *context)
{
	for (uint32_t i = pool->first; i <= pool->peak_event && pool->peak > 0; i++) {
		const struct memory_event *event = &pool->model->memory[i];

		if (!event->is_free && event->device == pool->device &&
		    (event->partner == MODEL_NONE || event->partner > pool->peak_event))
			use(context, event);
	}
}

/* ---- reasons ----------------------------------------------------------------------------------------------------- */

const char *memory_peak_unknown(const struct memory_pool *pool, struct arena *arena)
{
	char bytes[UNITS_BYTES];

	if (!pool->unknown_peak || pool->peak <= 0)
		return pool->unknown_peak;
	return arena_printf(arena, "at least %s; %s", units_bytes(bytes, (double)pool->peak), pool->unknown_peak);
}

void memory_unknown_add(struct memory_unknown *unknown, const struct memory_pool *pool, const char *reason,
                        struct table *table)
{
	if (!unknown->count++) {
		unknown->reason = reason;
		unknown->of = arena_printf(&table->head,
		                           "%s, %s", /* rows that are dropped take the other arena along */
		                           process_label(pool->model, pool->process, &table->head),
		                           memory_device_name(&table->head, pool->device));
	}
}

void memory_unknown_tell(const struct memory_unknown *unknown, struct table *table)
{
	if (!unknown->count)
		return;
	if (!table->row_count) {
		table->empty = unknown->reason;
		return;
	}
	table->note = arena_printf(&table->arena, "%s%sunknown for %s%s: %s", table->note ? table->note : "",
	                           table->note ? "; " : "", unknown->of, unknown->count > 1 ? " and others" : "",
	                           unknown->reason);
}

static const char *find_loss(const struct model *model, bool with_end)
{
	for (uint32_t i = 0; i < model->processes_count; i++)
		if (model->processes[i].has_lost_memory && (with_end || !model->processes[i].has_lost_end))
			return model_text(model, model->processes[i].lost_memory);
	return NULL;
}

const char *memory_sums_unknown(const struct model *model)
{
	return find_loss(model, false);
}

/* Returns true if the input was also read before the step: of a recording only the selected steps are read, of a trace
 * all of it. */
static bool is_read_before(const struct model *model, const struct model_step *step)
{
	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];

		if (event->process == step->process && !event->is_found)
			return event->time_ns < step->start_ns;
	}
	return true; /* it has no memory events */
}

const char *memory_lacks(const struct model *model, const struct analysis_options *options)
{
	uint32_t process = MODEL_NONE;

	for (uint32_t i = 0; i < model->steps_count && options->filter.has_steps; i++) {
		const struct model_step *step = &model->steps[i];

		if (step->number < options->filter.first_step || step->number > options->filter.last_step ||
		    step->process == process)
			continue;
		if (!is_read_before(model, step))
			return "covers only a part of the steps: earlier allocations that are still alive are not counted; --table "
			       "memory and similar tables count them";
		process = step->process;
	}
	return NULL;
}

/* Returns true for profile_memory=True without any allocations: PyTorch issue 166121. */
static bool is_memory_lost(const struct model *model)
{
	for (uint32_t i = 0; i < model->meta_count && !model->memory_count; i++)
		if (!strcmp(model_text(model, model->meta[i].key), "trace.profile_memory") &&
		    !strcmp(model_text(model, model->meta[i].value), "1"))
			return true;
	return false;
}

const char *memory_not_recorded(struct analysis_context *context, struct arena *arena)
{
	const struct model *model = context->model;

	if (find_loss(model, true))
		return find_loss(model, true);
	if (is_memory_lost(model))
		return "the trace was written with profile_memory=True but has no allocations: PyTorch lost them (PyTorch "
		       "issue 166121)";
	return step_times_no_operations(context, arena, model_reason(model, REASON_NO_ALLOCATIONS));
}
