/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_steps.c: steps of the profiler's schedule, ProfilerStep#N, and those that were inferred, as steps of the model.
 */
#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "importers/kineto/kineto_deliver.h"
#include "importers/kineto/kineto_import.h"
#include "model/step_facts.h"

#include <stdlib.h>
#include <string.h>

/* What the name ends with: "ProfilerStep#12", "step 12" of NVTX. */
static int64_t kineto_steps_number_of(const char *name, int64_t *next)
{
	size_t length = strlen(name);
	while (length && name[length - 1] >= '0' && name[length - 1] <= '9')
		length--;
	return name[length] ? strtoll(name + length, NULL, 10) : (*next)++;
}

/* *next: the number of the next one that has none. */
static void kineto_steps_add_step(struct kineto_import *import, uint32_t number, uint32_t row, int64_t *next)
{
	struct model *model = import->model;
	const struct track *track = model->tracks[number];
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(track, row, &i);
	const char *name = model_text(model, chunk->name[i]);
	struct model_step *step = model_add_step(model);
	step_facts_init(step);
	step->process = track->process;
	step->track = number;
	step->row = row;
	step->is_inferred = chunk->flags[i] & SPAN_IS_INFERRED;
	step->number = step->is_inferred && strncmp(name, "ProfilerStep#", 13) != 0
	                       ? (*next)++
	                       : kineto_steps_number_of(name, next);
	step->start_ns = chunk->start_ns[i];
	step->end_ns = chunk->start_ns[i] + chunk->dur_ns[i];
	step->is_open = chunk->flags[i] & (SPAN_IS_OPEN | SPAN_END_IS_LOST);
	step->has_shapes = import->has_shapes;
	step->has_memory = import->has_memory;
}

/* The thread cannot have run longer than the step lasted. */
static void take_facts(struct model_step *step, const struct model_step *told)
{
	uint64_t value;
	for (enum step_fact fact = 0; fact < STEP_FACTS; fact++)
		if (step_fact_get(told, fact, &value))
			step_fact_set(step, fact, value);
	step->has_cpu &= !step->is_open && step->cpu_ns <= step->end_ns - step->start_ns;
	step->has_shapes &= step->has_detail;
	step->has_memory &= step->has_detail;
}

static bool is_before(const struct model_step *a, const struct model_step *b)
{
	return a->track != b->track ? a->track < b->track : a->row < b->row;
}

/* Steps are still in the order of their spans. */
static void add_facts(const struct kineto_import *import, uint32_t first)
{
	struct model *model = import->model;
	uint32_t count = model->steps_count - first;
	for (uint32_t i = 0; i < import->stage.steps_count && count; i++) {
		struct model_step *steps = model->steps + first;
		const struct model_step *told = &import->stage.steps[i];
		uint32_t at = LOWER_BOUND(steps, count, item, is_before(item, told));
		if (at < count && !is_before(told, &steps[at]))
			take_facts(&steps[at], told);
	}
}

#define STEPS_TWICE "steps that are there twice are one"

/* Two that are told of one step may begin and end apart by what telling takes. */
static bool is_same_step(int64_t start_ns, int64_t end_ns, int64_t other_start_ns, int64_t other_end_ns)
{
	int64_t first_ns = start_ns < other_start_ns ? start_ns : other_start_ns;
	int64_t last_ns = end_ns > other_end_ns ? end_ns : other_end_ns;
	int64_t begin_ns = start_ns > other_start_ns ? start_ns : other_start_ns;
	int64_t until_ns = end_ns < other_end_ns ? end_ns : other_end_ns;
	return until_ns - begin_ns > (last_ns - first_ns) / 2;
}

/* Not one event that is in the file twice: that is left out later. */
static bool is_told_again(const struct staged_span *last, const struct staged_span *span)
{
	bool is_same_event = last->start_ns == span->start_ns && last->dur_ns == span->dur_ns;
	return !is_same_event && last->name == span->name && last->dur_ns >= 0 && span->dur_ns >= 0 &&
	       is_same_step(last->start_ns, last->start_ns + last->dur_ns, span->start_ns,
	                    span->start_ns + span->dur_ns);
}

#define STEPS_CUT "steps in which the next one begins end there, and do not count as complete"
#define STEPS_ROUNDED "steps ended later than the next one begins, by up to a microsecond: they end there"

/* Begins and durations are rounded each by itself. */
static bool is_rounding(int64_t end_ns, int64_t next_ns)
{
	return end_ns - next_ns <= KINETO_ROUNDING_NS;
}

static void say_steps(struct model *model, uint32_t process, enum ledger_kind kind, uint64_t count,
                      const char *sentence)
{
	if (count)
		model_add_ledger(model, kind, process, "steps", count, sentence);
}

/* A step in which the next one of its thread begins ends there, so that both stay on one track. One that is told again is an annotation. */
void kineto_cut_steps(struct kineto_import *import, struct staged_track *track)
{
	struct staged_span *last = NULL;
	uint64_t rounded = 0, cut = 0, twice = 0;
	if (!track->has_steps)
		return;
	kineto_sort(&import->stage, track);
	for (uint32_t i = 0; i < track->count; i++) {
		struct staged_span *span = &track->spans[i];
		if (span->kind != SPAN_STEP)
			continue;
		if (last && is_told_again(last, span)) {
			span->kind = SPAN_ANNOTATION;
			twice++;
			continue;
		}
		bool is_over = last && last->start_ns < span->start_ns &&
		               (last->dur_ns == STAGED_IS_OPEN || last->start_ns + last->dur_ns > span->start_ns);
		if (is_over) {
			bool is_rounded = last->dur_ns != STAGED_IS_OPEN &&
			                  is_rounding(last->start_ns + last->dur_ns, span->start_ns);
			last->dur_ns = span->start_ns - last->start_ns;
			last->flags |= is_rounded ? 0 : SPAN_END_IS_LOST;
			*(is_rounded ? &rounded : &cut) += 1;
		}
		last = span;
	}
	track->is_sorted &= !(rounded + cut); /* of spans that begin together the longest is the first */
	say_steps(import->model, track->process, LEDGER_REPAIRED, twice, STEPS_TWICE);
	say_steps(import->model, track->process, LEDGER_OTHER, rounded, STEPS_ROUNDED);
	say_steps(import->model, track->process, LEDGER_REPAIRED, cut, STEPS_CUT);
}

static int kineto_steps_compare_steps(const void *left, const void *right)
{
	const struct model_step *a = left, *b = right;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return a->number != b->number ? (a->number > b->number) - (a->number < b->number)
	                              : (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

/* A moment belongs to one step: of those that begin at one moment the last one is kept, and one in which another begins ends there, and is
 * not complete. */
static void separate_steps(struct model *model, uint32_t first)
{
	uint32_t kept = first;
	if (model->steps_count - first < 2)
		return;
	merge_sort(model->steps + first, model->steps_count - first, sizeof *model->steps, kineto_steps_compare_steps);
	for (uint32_t i = first; i < model->steps_count; i++) {
		const struct model_step step = model->steps[i];
		struct model_step *last = kept > first ? &model->steps[kept - 1] : NULL;
		bool is_over = last && last->process == step.process && last->end_ns > step.start_ns;
		if (is_over && last->number == step.number &&
		    is_same_step(last->start_ns, last->end_ns, step.start_ns, step.end_ns)) {
			model_add_ledger(model, LEDGER_REPAIRED, step.process, "steps", 1, STEPS_TWICE);
			if (step.end_ns - step.start_ns > last->end_ns - last->start_ns)
				*last = step;
			continue;
		}
		if (is_over && last->start_ns == step.start_ns) {
			model_add_ledger(model, LEDGER_REPAIRED, step.process, "steps", 1,
			                 "steps that begin together with the next one are left out");
			*last = step;
			continue;
		}
		if (is_over) {
			bool is_rounded = is_rounding(last->end_ns, step.start_ns);
			say_steps(model, step.process, is_rounded ? LEDGER_OTHER : LEDGER_REPAIRED, 1,
			          is_rounded ? STEPS_ROUNDED : STEPS_CUT);
			last->end_ns = step.start_ns;
			last->has_cpu &= last->cpu_ns <= last->end_ns - last->start_ns;
			last->is_open |= !is_rounded;
		}
		model->steps[kept++] = step;
	}
	model->steps_count = kept;
}

static int kineto_steps_compare_numbers(const void *left, const void *right)
{
	const struct model_step *a = left, *b = right;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

/* A profiler that is started anew may count from 0 again: these are steps of their own. */
static void say_repeated(struct model *model, uint32_t first)
{
	uint32_t count = model->steps_count - first;
	if (count < 2)
		return;
	struct model_step *steps = memory_resize(NULL, count, sizeof *steps);
	memcpy(steps, model->steps + first, count * sizeof *steps);
	merge_sort(steps, count, sizeof *steps, kineto_steps_compare_numbers);
	for (uint32_t i = 1; i < count; i++)
		if (!steps[i].is_inferred && kineto_steps_compare_numbers(&steps[i - 1], &steps[i]) == 0)
			model_add_ledger(model, LEDGER_OTHER, steps[i].process, "steps", 1,
			                 "steps have the number of an earlier one, at another time: both are kept");
	free(steps);
}

void kineto_add_steps(struct kineto_import *import, uint32_t first_track)
{
	struct model *model = import->model;
	uint32_t first_step = model->steps_count;
	for (uint32_t t = first_track; t < model->tracks_count; t++) {
		const struct track *track = model->tracks[t];
		int64_t next = 0;
		for (uint32_t c = 0; c < track->chunk_count; c++) {
			const struct span_chunk *chunk = track->chunks[c];
			for (uint32_t i = 0; i < chunk->count; i++)
				if (chunk->kind[i] == SPAN_STEP)
					kineto_steps_add_step(import, t, chunk->first_row + i, &next);
			model_chunk_done(model, chunk);
		}
	}
	add_facts(import, first_step);
	separate_steps(model, first_step);
	say_repeated(model, first_step);
}
