/* SPDX-License-Identifier: Apache-2.0
 *
 * flop_counts.c: see the header.
 */
#include "analysis/operators/flop_counts.h"

#include "base/memory.h"
#include "model/reasons.h"

#include <stdlib.h>

struct open_formula {
	struct flop_count count;
	uint16_t depth;
	bool has_inside;   /* an operator in it is counted */
	bool is_within;    /* an operator around it is counted, and none nested in that one */
	bool is_of_others; /* in a step without inputs, while other steps have them */
};

static bool has_count(const struct open_formula *open)
{
	return open->count.is_counted || open->count.is_outside;
}

void flop_counts_leave_open(struct flop_counts *counts, uint32_t depth)
{
	while (counts->count && counts->open[counts->count - 1].depth >= depth) {
		struct open_formula *left = &counts->open[--counts->count];

		left->count.is_uncounted = !has_count(left) && !left->has_inside && !left->is_within;
		left->count.lacks_inputs = left->count.is_uncounted && left->is_of_others;
		counts->use(counts->context, &left->count);
	}
}

/* Marks the operators around a counted one. If one of them is marked, all around it are marked, too. */
static void count_inside(struct flop_counts *counts)
{
	for (uint32_t i = counts->count; i-- > 0 && !counts->open[i].has_inside;) {
		struct open_formula *around = &counts->open[i];

		around->has_inside = true;
		around->count.is_outside = around->count.is_counted;
		around->count.is_counted = false;
	}
}

void flop_counts_enter(struct flop_counts *counts, const struct span_view *span, uint32_t inputs, uint32_t tag)
{
	bool is_timed = span_is_timed(span->flags);
	struct open_formula own = {.depth = span->depth};
	struct flop_count *count = &own.count;
	double flops;
	enum flops_result result = flops_of(&counts->flops, FLOPS_COUNTER, span->name, inputs, &flops);

	flop_counts_leave(counts, span->depth);
	if (result == FLOPS_NO_FORMULA)
		return;
	*count = (struct flop_count){.track = span->track_index,
	                             .row = span->row,
	                             .tag = tag,
	                             .inputs = inputs,
	                             .dur_ns = span->dur_ns,
	                             .result = result,
	                             .flops = flops};
	counts->result = result > counts->result ? result : counts->result;
	count->is_counted = count->result == FLOPS_KNOWN && is_timed;
	own.is_of_others = !inputs && flop_likeness_lacks(counts->walk.likeness, span->step);
	if (count->is_counted)
		count_inside(counts);
	for (uint32_t i = counts->count; i-- > 0 && !own.is_within;)
		own.is_within = counts->open[i].count.is_counted;
	MEMORY_GROW(counts->open, counts->count, counts->capacity, 64);
	counts->open[counts->count++] = own;
}

void flop_counts_release(struct flop_counts *counts)
{
	flops_release(&counts->flops);
	flop_walk_release(&counts->walk);
	free(counts->open);
	counts->open = NULL;
}

/* Few spans are operators with a formula: the loop skips the others cheaply. */
static void count_track(struct flop_counts *counts, uint32_t number)
{
	const struct model *model = counts->flops.model;
	const struct track *track = model->tracks[number];

	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			flop_counts_leave(counts, chunk->depth[i]);
			if (chunk->kind[i] != SPAN_OP || flops_has_none(&counts->flops, FLOPS_COUNTER, chunk->name[i]))
				continue;
			const struct span_view span = {.track_index = number,
			                               .row = chunk->first_row + i,
			                               .dur_ns = chunk->dur_ns[i],
			                               .name = chunk->name[i],
			                               .shape = chunk->shape[i],
			                               .inputs = span_inputs(chunk, i),
			                               .step = chunk->step[i],
			                               .depth = chunk->depth[i],
			                               .flags = chunk->flags[i]};
			flop_counts_enter(counts, &span, flop_walk_inputs(&counts->walk, &span), 0);
		}
		model_chunk_done(model, chunk);
	}
	flop_counts_leave(counts, 0);
}

enum flops_result flop_counts_each(const struct model *model, const struct flop_likeness *likeness, flop_counts_use use,
                                   void *context)
{
	struct flop_counts counts = {
		.flops = {.model = model}, .walk = {.likeness = likeness}, .use = use, .context = context};

	for (uint32_t track = 0; track < model->tracks_count; track++)
		if (model->tracks[track]->kind != TRACK_OTHER) /* not a thread */
			count_track(&counts, track);
	flop_counts_release(&counts);
	return counts.result;
}

void flop_sum_add(struct flop_sum *sum, const struct flop_count *count)
{
	sum->flops += count->is_counted ? count->flops : 0;
	sum->counted += count->is_counted;
	sum->uncounted += count->is_uncounted;
	sum->lacking += count->lacks_inputs;
	sum->result = count->result > sum->result ? count->result : sum->result;
}

void flop_sum_merge(struct flop_sum *sum, const struct flop_sum *other)
{
	sum->flops += other->flops;
	sum->counted += other->counted;
	sum->uncounted += other->uncounted;
	sum->lacking += other->lacking;
	sum->result = other->result > sum->result ? other->result : sum->result;
}

const char *flop_sum_missing(const struct model *model, const struct flop_sum *sum)
{
	if (sum->lacking)
		return FLOP_LIKENESS_MISSING;
	switch (sum->result) {
	case FLOPS_NO_SIZES:
		return model_reason(model, REASON_NO_SHAPES);
	case FLOPS_UNKNOWN:
		return "the recorded inputs do not give the number of operations";
	case FLOPS_KNOWN:
		return "no operator with a formula has both a recorded start and end";
	case FLOPS_NO_FORMULA:
		break;
	}
	return "no operator in it has a formula";
}
