/* SPDX-License-Identifier: Apache-2.0
 *
 * stack_weights.c: see the header.
 */
#include "output/export/stack_weights.h"

#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"

#include <stdlib.h>
#include <string.h>

#define GATHERED (1u << 20) /* number of weights after which they are sorted and joined */

struct gathering {
	struct stack_weights *weights;
	const struct selection *selection;
};

static int stack_weights_compare(const void *left, const void *right)
{
	const struct stack_weight *a = left, *b = right;
	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

static void stack_weights_join(struct stack_weights *weights)
{
	uint32_t kept = 0;
	if (!weights->count)
		return;
	merge_sort(weights->weights, weights->count, sizeof *weights->weights, stack_weights_compare);
	for (uint32_t i = 0; i < weights->count; i++) {
		struct stack_weight *last = &weights->weights[kept - !!kept];
		int64_t sum;
		if (kept && stack_weights_compare(last, &weights->weights[i]) == 0 &&
		    !__builtin_add_overflow(last->self_ns, weights->weights[i].self_ns, &sum))
			last->self_ns = sum;
		else
			weights->weights[kept++] = weights->weights[i];
	}
	weights->count = kept;
}

static void add_weight(struct stack_weights *weights, const struct stack_weight *weight)
{
	if (weights->count == weights->capacity) {
		if (weights->count >= GATHERED)
			stack_weights_join(weights);
		if (weights->count * 2 >= weights->capacity) {
			weights->capacity = weights->capacity ? 2 * weights->capacity : 4096;
			weights->weights = memory_resize(weights->weights, weights->capacity, sizeof *weights->weights);
		}
	}
	weights->weights[weights->count++] = *weight;
	weights->operators++;
}

static bool stack_weights_visit(void *context, const struct span_view *span)
{
	struct gathering *gathering = context;
	struct stack_weights *weights = gathering->weights;
	uint32_t index;
	if ((span->kind != SPAN_OP && span->kind != SPAN_COLLECTIVE) || span->self_ns <= 0)
		return true;
	const struct span_chunk *chunk = track_chunk(span->track, span->row, &index);
	if (gathering->selection->intervals &&
	    !selection_has_span(gathering->selection, span->model, span->track->process, chunk, index))
		return true;
	add_weight(weights, &(struct stack_weight){span->stack, span->name, span->self_ns});
	return true;
}

static enum stack_unit stack_weights_unit_of(const struct model *model, const struct sample *sample)
{
	const char *what = model_text(model, sample->name);
	return strcmp(what, "time") == 0 ? STACK_NANOSECONDS : strcmp(what, "bytes") == 0 ? STACK_BYTES : STACK_COUNT;
}

/* Returns the index of the track's first sample; samples are sorted by track. */
static uint32_t first_sample(const struct model *model, uint32_t track)
{
	return LOWER_BOUND(model->samples, model->samples_count, item, item->track < track);
}

static void add_samples(struct stack_weights *weights, const struct model *model, uint32_t track)
{
	for (uint32_t i = first_sample(model, track); i < model->samples_count; i++) {
		const struct sample *sample = &model->samples[i];
		if (sample->track != track)
			break;
		enum stack_unit unit = stack_weights_unit_of(model, sample);
		if (!weights->operators) {
			weights->unit = unit;
			weights->measure = sample->name;
		}
		if (weights->unit != unit || weights->measure != sample->name) {
			weights->other_unit++;
			continue;
		}
		int64_t weight = sample->weight > INT64_MAX ? INT64_MAX : (int64_t)sample->weight;
		add_weight(weights, &(struct stack_weight){sample->stack, 0, weight});
	}
}

void stack_weights_add(struct stack_weights *weights, const struct model *model, uint32_t track,
                       const struct selection *selection)
{
	struct gathering gathering = {weights, selection};
	uint64_t before = weights->operators;
	model_visit_spans(model, track, stack_weights_visit, &gathering);
	if (weights->operators == before)
		add_samples(weights, model, track);
}

static bool find_any(void *context, const struct span_view *span)
{
	bool *has_any = context;
	*has_any |= (span->kind == SPAN_OP || span->kind == SPAN_COLLECTIVE) && span->self_ns > 0;
	return !*has_any;
}

enum status stack_weights_check(const struct model *model, struct error *err)
{
	bool has_any = model->samples_count || !model_meta(model, MODEL_NONE, "trace.format");
	for (uint32_t i = 0; i < model->tracks_count && !has_any; i++)
		model_visit_spans(model, i, find_any, &has_any);
	if (has_any)
		return STATUS_OK;
	error_set(err, STATUS_INPUT, "cannot write stacks: the input has no operators and no samples");
	error_hint(err, "to write its timeline, end the file name in .json or .pftrace");
	return STATUS_INPUT;
}

void stack_weights_finish(struct stack_weights *weights)
{
	stack_weights_join(weights);
}

void stack_weights_release(struct stack_weights *weights)
{
	free(weights->weights);
	*weights = (struct stack_weights){0};
}

uint32_t stack_path(const struct model *model, uint32_t stack, uint32_t path[STACK_WEIGHTS_FRAMES])
{
	uint32_t count = 0;
	for (; stack && count < STACK_WEIGHTS_FRAMES; stack = model->stacks[stack].parent)
		path[count++] = stack;
	for (uint32_t i = 0; i < count / 2; i++) {
		uint32_t other = path[i];
		path[i] = path[count - 1 - i];
		path[count - 1 - i] = other;
	}
	return count;
}
