/* SPDX-License-Identifier: Apache-2.0
 *
 * flop_counts.c: see the header.
 */
#include "analysis/flop_counts.h"

#include "base/memory.h"

#include <stdlib.h>

struct open_operator {
	uint32_t row;
	uint16_t depth;
	bool has_own, has_inside; /* a formula; something in it that has one */
	double flops;
};

struct flop_counts {
	struct flops flops;
	flop_counts_use use;
	void *context;
	enum flops_result result;
	uint32_t track;
	struct open_operator *open;
	uint32_t count, capacity;
};

static void leave(struct flop_counts *counts, uint32_t depth)
{
	while (counts->count && counts->open[counts->count - 1].depth >= depth) {
		const struct open_operator *left = &counts->open[--counts->count];

		if (left->has_own && !left->has_inside)
			counts->use(counts->context, counts->track, left->row, left->flops);
	}
}

static bool visit(void *context, const struct span_view *span)
{
	struct flop_counts *counts = context;
	struct open_operator own = {.row = span->row, .depth = span->depth};
	uint32_t inputs = span->inputs ? span->inputs : span->shape;
	enum flops_result result;

	leave(counts, span->depth);
	if (span->kind != SPAN_OP || span->flags & (SPAN_IS_OPEN | SPAN_END_IS_LOST | SPAN_START_IS_LOST))
		return true;
	result = flops_of(&counts->flops, FLOPS_COUNTER, span->name, inputs, &own.flops);
	counts->result = result > counts->result ? result : counts->result;
	own.has_own = result == FLOPS_KNOWN;
	/* what is around one that has something inside has so, too */
	for (uint32_t i = counts->count; own.has_own && i-- > 0 && !counts->open[i].has_inside;)
		counts->open[i].has_inside = true;
	if (counts->count == counts->capacity) {
		counts->capacity = counts->capacity ? 2 * counts->capacity : 64;
		counts->open = memory_resize(counts->open, counts->capacity, sizeof(*counts->open));
	}
	counts->open[counts->count++] = own;
	return true;
}

enum flops_result flop_counts_each(const struct model *model, flop_counts_use use, void *context)
{
	struct flop_counts counts = {.flops = {.model = model}, .use = use, .context = context};

	for (counts.track = 0; counts.track < model->tracks_count; counts.track++) {
		model_visit_spans(model, counts.track, visit, &counts);
		leave(&counts, 0);
	}
	flops_release(&counts.flops);
	free(counts.open);
	return counts.result;
}

const char *flop_counts_missing(enum flops_result result)
{
	switch (result) {
	case FLOPS_NO_SIZES:
		return "the sizes of inputs were not recorded: --with shapes";
	case FLOPS_UNKNOWN:
		return "the inputs that were recorded do not say it";
	case FLOPS_NO_FORMULA:
	case FLOPS_KNOWN:
		break;
	}
	return "no operator in it has a formula";
}
