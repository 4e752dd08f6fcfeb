/* SPDX-License-Identifier: Apache-2.0
 *
 * step_times.c: see the header. phase_sweep.c finds the phases, job_steps.c the steps of the job.
 */
#include "analysis/step_times/step_times.h"

#include "analysis/analysis_context.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/device_lengths.h"
#include "analysis/step_times/job_steps.h"
#include "analysis/step_times/phase_sweep.h"
#include "analysis/step_times/step_kinds.h"
#include "base/clamped.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/storage.h"
#include "model/cell_words.h"
#include "model/lanes.h"
#include "model/reasons.h"

#include <assert.h>
#include <stdlib.h>
#include <stepscope/format.h>
#include <stepscope/stepscope.h>
#include <string.h>

static const char *const phase_names[PHASE_COUNT] = {
	CELL_PHASE_OTHER,     CELL_PHASE_DATA,          CELL_PHASE_FORWARD,    CELL_PHASE_BACKWARD,
	CELL_PHASE_OPTIMIZER, CELL_PHASE_COMMUNICATION, CELL_PHASE_CHECKPOINT, CELL_PHASE_EVALUATION};

const char *phase_name(int phase)
{
	static_assert(PHASE_COUNT == STEPSCOPE_PHASE_EVALUATION + 1, "a name for each phase");
	return phase >= 0 && phase < PHASE_COUNT ? phase_names[phase] : phase_names[PHASE_OTHER];
}

static void *zeroed(struct storage *storage, size_t count, size_t bytes)
{
	void *memory = storage_resize(storage, NULL, count + 1, bytes);

	return memset(memory, 0, count * bytes);
}

/* ---- steps ---- */

/* Adds a step to the span of its process. Steps come in the order of their starts and may overlap: common time counts
 * once. is_numbered: a profiler numbers the steps and does not record all of them. */
static void step_span_add(struct step_span *span, const struct model_step *step, bool is_numbered)
{
	bool is_first = !span->complete && !span->open;
	int64_t from = is_first || step->start_ns > span->last_ns ? step->start_ns : span->last_ns;

	if (is_first)
		span->first_ns = span->last_ns = step->start_ns;
	bool is_missed = !is_first && is_numbered && step->number > span->last_number &&
	                 step->number - 1 > span->last_number;
	if (step->has_lost_phases && step->start_ns > span->last_ns)
		clamped_add(&span->lost_ns, step->start_ns - span->last_ns);
	if (is_missed && step->start_ns > span->last_ns)
		clamped_add(&span->missed_ns, step->start_ns - span->last_ns);
	span->gaps += !is_first && !step->has_lost_phases && !is_missed;
	span->last_number = step->number;
	if (step->end_ns > from)
		clamped_add(&span->steps_ns, step->end_ns - from);
	if (step->end_ns > span->last_ns)
		span->last_ns = step->end_ns;
	if (step->has_lost_phases)
		span->lost_until_ns = span->last_ns;
}

/* Returns true if the end of the step is known, according to its span. */
static bool step_has_end(const struct model *model, const struct model_step *step)
{
	uint32_t index;
	const struct span_chunk *chunk;

	if (step->is_open)
		return false;
	if (step->track >= model->tracks_count || step->row >= model->tracks[step->track]->span_count)
		return true;
	chunk = track_chunk(model->tracks[step->track], step->row, &index);
	return span_is_timed(chunk->flags[index]);
}

static struct step_span *step_times_add_span(struct step_times *times, uint32_t process)
{
	if (times->span_count && times->spans[times->span_count - 1].process == process)
		return &times->spans[times->span_count - 1];
	assert(!times->span_count || times->spans[times->span_count - 1].process < process); /* like the steps */
	times->spans[times->span_count] = (struct step_span){.process = process};
	return &times->spans[times->span_count++];
}

static void step_times_add(struct step_times *times, const struct model *model, uint32_t index,
                           const struct analysis_options *options)
{
	const struct model_step *step = &model->steps[index];
	struct step_time *time = &times->steps[index];
	struct step_span *span;

	time->job = MODEL_NONE;
	time->is_early = index < STEP_KINDS_LEAST || model->steps[index - STEP_KINDS_LEAST].process != step->process;
	time->is_selected = !options->filter.has_steps ||
	                    (step->number >= options->filter.first_step && step->number <= options->filter.last_step);
	time->is_complete = step_has_end(model, step);
	time->has_phases = time->knows_all = !step->has_lost_phases && !step->has_calls_only;
	time->has_calls = !step->has_lost_phases && step->has_calls_only;
	time->dur_ns = step->end_ns > step->start_ns ? step->end_ns - step->start_ns : 0;
	time->length_ns = time->dur_ns;
	if (!time->is_selected)
		return;
	span = step_times_add_span(times, step->process);
	step_span_add(span, step, model->processes[step->process].role == STEPSCOPE_ROLE_IMPORTED);
	times->selected++;
	*(time->is_complete ? &span->complete : &span->open) += 1;
	*(time->is_complete ? &times->complete : &times->incomplete) += 1;
}

/* ---- kinds of steps ---- */

/* Finds the steps that are measured (see step_times.h). If none of them is complete, incomplete ones are. */
static void step_times_find_measured(struct step_times *times, const struct model *model)
{
	uint32_t complete = 0;

	for (uint32_t i = 0; i < times->count; i++)
		complete += times->steps[i].is_selected && times->steps[i].is_complete && model->steps[i].has_detail;
	for (uint32_t i = 0; i < times->count; i++)
		times->steps[i].is_measured = times->steps[i].is_selected && model->steps[i].has_detail &&
		                              (times->steps[i].is_complete || !complete);
}

/* Finds the steps in which rare things are known. More steps know them, so this asks whether any selected step is
 * complete. */
static void step_times_find_rare(struct step_times *times, const struct model *model)
{
	uint32_t known = 0;

	for (uint32_t i = 0; i < times->count; i++) {
		struct step_time *time = &times->steps[i];

		time->has_rare = time->is_selected && (model->steps[i].has_detail || model->steps[i].has_rare) &&
		                 (time->is_complete || !times->complete);
		known += time->has_rare && time->is_complete;
	}
	assert(known <= times->complete);
	times->scale.knows_rare = known && known == times->complete;
}

/* Finds why waits for collectives are unknown. If the program marks phases, they include such waits. */
static void step_times_find_waits(struct step_times *times, const struct model *model)
{
	for (uint32_t s = 0; s < times->span_count; s++) {
		struct step_span *span = &times->spans[s];
		bool is_measured = false, is_known = false, is_part = false;

		for (uint32_t i = 0; i < times->count; i++) {
			if (model->steps[i].process != span->process)
				continue;
			is_measured |= times->steps[i].is_measured;
			is_part |= (model->steps[i].is_inferred || !times->steps[i].has_phases) &&
			           times->steps[i].is_complete && times->steps[i].is_selected &&
			           !times->steps[i].is_measured;
			is_known |= times->steps[i].phase_ns[STEPSCOPE_PHASE_COMMUNICATION] > 0;
		}
		if (is_measured && is_part)
			span->no_waits = "operators were recorded in only some of its steps";
		span->has_waits_in_part = is_measured && is_part;
		if (is_known || span->no_waits)
			continue;
		if (times->waits.is_unknown && times->waits.is_unknown[span->process])
			span->no_waits = "the backend did not report when it executes collectives";
		else if (!is_measured && model_meta(model, span->process, "torch.version"))
			span->no_waits = "no operators were recorded in its steps";
	}
}

/* ---- steps by time and track ---- */

const struct model_step *step_times_step_before(const struct model *model, uint32_t process, int64_t time_ns)
{
	uint32_t low = LOWER_BOUND(model->steps, model->steps_count, step,
	                           step->process < process || (step->process == process && step->start_ns <= time_ns));

	return low && model->steps[low - 1].process == process ? &model->steps[low - 1] : NULL;
}

const struct model_step *step_times_step_at(const struct model *model, uint32_t process, int64_t time_ns)
{
	const struct model_step *step = step_times_step_before(model, process, time_ns);

	return step && step->end_ns >= time_ns ? step : NULL;
}

bool *step_times_tracks(const struct model *model)
{
	bool *carries = memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof(*carries));
	uint32_t last = MODEL_NONE;

	memset(carries, 0, ((size_t)model->tracks_count + 1) * sizeof(*carries));
	for (uint32_t i = 0; i < model->steps_count; i++) {
		if (model->steps[i].track == last || model->steps[i].track >= model->tracks_count)
			continue;
		last = model->steps[i].track;
		carries[first_lane(model, last)] = true;
	}
	return carries;
}

/* ---- the struct ---- */

void step_times_init(struct step_times *times, struct analysis_context *context)
{
	const struct model *model = context->model;

	memset(times, 0, sizeof(*times));
	times->count = model->steps_count;
	times->unseen = model_meta(model, MODEL_NONE, "unseen");
	times->stepless = model_meta(model, MODEL_NONE, "torch.steps");
	if (!times->stepless)
		times->stepless = model_reason(model, REASON_NO_STEPS);
	times->storage = model->storage;
	times->steps = zeroed(times->storage, times->count, sizeof(*times->steps));
	times->spans = zeroed(times->storage, model->processes_count, sizeof(*times->spans));
	if (times->count)
		communication_waits_find(&times->waits, model, analysis_context_collective_calls(context));
	for (uint32_t i = 0; i < times->count; i++)
		step_times_add(times, model, i, &context->options);
	phase_sweep_steps(times, model);
	step_times_find_measured(times, model);
	step_times_find_rare(times, model);
	step_kinds_drop_phases(times, model);
	step_times_find_waits(times, model);
	device_lengths_find(times, model, analysis_context_launches(context));
	job_steps_find_ranks(times, model);
	job_steps_fill(times, model);
	step_kinds_find(times, model);
	times->scale.is_wanted = times->by_budget && !context->options.keeps_recorded;
	step_kinds_weigh(times, model);
}

void step_times_release(struct step_times *times)
{
	storage_release(times->storage, times->steps);
	storage_release(times->storage, times->job);
	storage_release(times->storage, times->spans);
	communication_waits_release(&times->waits);
	memset(times, 0, sizeof(*times));
}

/* ---- reasons ---- */

static bool is_coarse(uint8_t kind)
{
	return kind == SPAN_PHASE || kind == SPAN_MICRO_BATCH || kind == SPAN_STEP;
}

static bool has_detail_on(const struct track *track)
{
	for (uint32_t i = 0; i < track->chunk_count; i++) {
		const struct span_chunk *chunk = track->chunks[i];

		for (uint32_t row = 0; row < chunk->count; row++) {
			if (!is_coarse(chunk->kind[row]))
				return true;
		}
	}
	return false;
}

/* Returns true if a process, or any process (MODEL_NONE), has spans besides steps and phases. */
static bool has_detail(const struct model *model, uint32_t process)
{
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		if ((process == MODEL_NONE || model->tracks[i]->process == process) && has_detail_on(model->tracks[i]))
			return true;
	}
	return false;
}

const char *step_times_capture(const struct model *model)
{
	const char *best = NULL;
	bool is_best_detailed = false;

	for (uint32_t i = 0; i < model->steps_count && !best; i++) {
		if (!i || model->steps[i].process != model->steps[i - 1].process)
			best = model_meta(model, model->steps[i].process, "capture");
	}
	for (uint32_t i = 0; i < model->processes_count && !model->steps_count && !is_best_detailed; i++) {
		const char *sentence = model_meta(model, i, "capture");

		is_best_detailed = sentence && has_detail(model, i);
		if (sentence && (!best || is_best_detailed))
			best = sentence;
	}
	return best;
}

/* Returns true if operators may have been recorded. A trace of another tool has no sentence of the recorder, and is
 * whole. */
static bool has_operations(const struct model *model, const struct step_times *times, const char *sentence)
{
	return times->count ? times->job_detailed > 0 : !sentence || has_detail(model, MODEL_NONE);
}

const char *step_times_no_operations(struct analysis_context *context, struct arena *arena, const char *otherwise)
{
	const struct model *model = context->model;
	const struct step_times *times = analysis_context_step_times(context);
	const char *sentence = step_times_capture(model), *reason = otherwise;

	if (!has_operations(model, times, sentence))
		reason = arena_printf(arena, "not measured, because no operators were recorded in the %s%s%s",
		                      times->count ? "steps" : "recorded time", sentence ? ": " : "",
		                      sentence ? sentence : "");
	return reason;
}

bool step_times_is_told_by_calls(int phase)
{
	return phase == STEPSCOPE_PHASE_DATA || phase == STEPSCOPE_PHASE_BACKWARD ||
	       phase == STEPSCOPE_PHASE_OPTIMIZER || phase == STEPSCOPE_PHASE_CHECKPOINT;
}

/* Returns, by process, whether it is a rank. The caller frees it. */
static bool *find_counted(const struct step_times *times, const struct model *model)
{
	bool *is_counted = zeroed(NULL, model->processes_count, sizeof(*is_counted));

	for (uint32_t i = 0; i < times->span_count; i++)
		is_counted[times->spans[i].process] = times->spans[i].is_rank;
	return is_counted;
}

const char *step_times_ranks_apart(const struct step_times *times, const struct model *model)
{
	const char *why;

	if (step_times_trainings(times, model))
		return STEP_TIMES_NO_RANKS;
	bool *is_counted = find_counted(times, model);
	why = ranks_apart(model, is_counted);
	free(is_counted);
	return why;
}

uint32_t step_times_trainings(const struct step_times *times, const struct model *model)
{
	int64_t latest_ns = INT64_MIN, earliest_ns = INT64_MAX;
	bool *is_counted = find_counted(times, model);
	uint32_t count = 0;

	for (uint32_t first = 0, i = 0; i < times->count; first = i) { /* steps of a process, by their starts */
		uint32_t process = model->steps[first].process;
		int64_t last_ns = INT64_MIN;

		for (; i < times->count && model->steps[i].process == process; i++)
			last_ns = model->steps[i].end_ns > last_ns ? model->steps[i].end_ns : last_ns;
		if (!is_counted[process] || model->processes[process].rank >= 0)
			continue;
		latest_ns = model->steps[first].start_ns > latest_ns ? model->steps[first].start_ns : latest_ns;
		earliest_ns = last_ns < earliest_ns ? last_ns : earliest_ns;
		count++;
	}
	free(is_counted);
	return latest_ns > earliest_ns ? count : 0;
}

const char *step_times_empty_reason(const struct step_times *times)
{
	if (!times->count && times->unseen)
		return times->unseen;
	if (!times->count)
		return times->stepless;
	if (!times->selected)
		return "none of the selected steps were recorded";
	return "no step was completed";
}
