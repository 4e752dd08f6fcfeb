/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_frames.c: cuts Python calls that cross ranges, on a staged track. A range of `with` begins in a call
 * (__enter__) that ends before it, and ends in a call (__exit__) that began in it. Other crossings are left to
 * kineto_deliver.c.
 */
#include "importers/kineto/kineto_frames.h"

#include "base/memory.h"
#include "importers/kineto/kineto_deliver.h"
#include "importers/kineto/kineto_stage.h"

#include <stdio.h>
#include <stdlib.h>

struct open_frame {
	int64_t end_ns;
	int64_t range_end_ns; /* end of the innermost range around it, or of itself; INT64_MAX: none */
	uint32_t span;
};

struct cutting {
	struct kineto_stage *stage;
	struct staged_track *track;
	struct model *model;
	struct open_frame *open;
	uint32_t depth, capacity;
	uint64_t count, ns; /* number of cuts, and time cut */
};

static bool is_range(const struct staged_span *span)
{
	return span->kind == SPAN_STEP || span->kind == SPAN_PHASE || span->kind == SPAN_RANGE ||
	       span->kind == SPAN_ANNOTATION;
}

static bool kineto_frames_is_over(int64_t end_ns, int64_t around_ns)
{
	return around_ns != INT64_MAX && end_ns > around_ns + KINETO_ROUNDING_NS;
}

/* Keeps the duration in the file, which report --style torch needs. */
static void kineto_frames_note_cut(struct cutting *cutting, struct staged_span *span, int64_t cut_ns)
{
	struct kineto_stage *stage = cutting->stage;
	struct staged_extra extra = {.sequence = STEPSCOPE_NO_SEQUENCE};
	struct span_arg cut = {.type = STEPSCOPE_ARG_I64, .i64 = cut_ns};
	cut.key = intern_add(&cutting->model->strings, "trace.cut_ns");
	if (span->extra)
		extra = stage->extras[span->extra - 1];
	uint32_t first = stage->args_count;
	for (uint32_t i = 0; i < extra.arg_count; i++) { /* args of one span must be adjacent */
		STAGE_ARRAY_GROW(stage, args);
		stage->args[stage->args_count++] = stage->args[extra.first_arg + i];
	}
	STAGE_ARRAY_GROW(stage, args);
	stage->args[stage->args_count++] = cut;
	extra.first_arg = first;
	extra.arg_count++;
	STAGE_ARRAY_GROW(stage, extras);
	stage->extras[stage->extras_count++] = extra;
	span->extra = stage->extras_count;
}

static void kineto_frames_cut(struct cutting *cutting, uint32_t number, int64_t end_ns)
{
	struct staged_span *span = &cutting->track->spans[number];
	int64_t cut_ns = span->start_ns + span->dur_ns - end_ns;
	span->dur_ns -= cut_ns;
	span->flags |= SPAN_IS_CLIPPED;
	kineto_frames_note_cut(cutting, span, cut_ns);
	cutting->count++;
	cutting->ns += (uint64_t)cut_ns;
}

static void kineto_frames_enter(struct cutting *cutting, uint32_t number, int64_t end_ns)
{
	int64_t range_end_ns = cutting->depth ? cutting->open[cutting->depth - 1].range_end_ns : INT64_MAX;
	MEMORY_GROW(cutting->open, cutting->depth, cutting->capacity, 64);
	if (is_range(&cutting->track->spans[number]))
		range_end_ns = end_ns;
	cutting->open[cutting->depth++] = (struct open_frame){end_ns, range_end_ns, number};
}

/* Cuts the calls that are open where the range begins and end inside it. Cuts none if the range crosses any other span,
 * too. */
static void take_range(struct cutting *cutting, uint32_t number, int64_t start_ns, int64_t end_ns)
{
	uint32_t depth = cutting->depth;
	while (depth && kineto_frames_is_over(end_ns, cutting->open[depth - 1].end_ns)) {
		if (!kineto_is_frame(&cutting->track->spans[cutting->open[depth - 1].span]))
			return;
		depth--;
	}
	while (cutting->depth > depth)
		kineto_frames_cut(cutting, cutting->open[--cutting->depth].span, start_ns);
	kineto_frames_enter(cutting, number, end_ns);
}

static void kineto_frames_take_span(struct cutting *cutting, uint32_t number)
{
	const struct staged_span *span = &cutting->track->spans[number];
	int64_t start_ns = span->start_ns, end_ns = start_ns + span->dur_ns;
	while (cutting->depth && cutting->open[cutting->depth - 1].end_ns <= start_ns)
		cutting->depth--;
	if (is_range(span)) {
		take_range(cutting, number, start_ns, end_ns);
		return;
	}
	const struct open_frame *around = cutting->depth ? &cutting->open[cutting->depth - 1] : NULL;
	if (around && kineto_is_frame(span) && kineto_frames_is_over(end_ns, around->range_end_ns)) {
		end_ns = around->range_end_ns;
		kineto_frames_cut(cutting, number, end_ns);
	}
	if (!around || !kineto_frames_is_over(end_ns, around->end_ns))
		kineto_frames_enter(cutting, number, end_ns);
}

static bool has_frames(const struct staged_track *track)
{
	for (uint32_t i = 0; i < track->count; i++)
		if (kineto_is_frame(&track->spans[i]))
			return true;
	return false;
}

void kineto_cut_frames(struct kineto_stage *stage, struct staged_track *track, struct model *model)
{
	struct cutting cutting = {.stage = stage, .track = track, .model = model};
	char text[160];
	if (!has_frames(track))
		return;
	kineto_sort(stage, track);
	for (uint32_t i = 0; i < track->count; i++)
		if (track->spans[i].dur_ns != STAGED_IS_OPEN)
			kineto_frames_take_span(&cutting, i);
	free(cutting.open);
	if (!cutting.count)
		return;
	track->is_sorted = false; /* durations changed, and of spans that begin together the longest must come first */
	snprintf(text, sizeof text,
	         "Python calls in which a step or annotation starts or ends were cut at that point, by %llu ns in "
	         "total",
	         (unsigned long long)cutting.ns);
	model_add_ledger(model, LEDGER_OTHER, track->process, model_text(model, track->name), cutting.count, text);
}
