/* SPDX-License-Identifier: Apache-2.0
 *
 * model_visit_spans.c: computes self times chunk by chunk. Children of a span come after it, perhaps chunks later.
 * model_finish() summed up the time covered by these, and by other lanes of the thread (struct carry). So a buffer for
 * the rows of one chunk is enough.
 */
#include "base/memory.h"
#include "model/track_builder.h"

#include <stdlib.h>

/* carry: the first carry at or after this chunk's first row. Returns the first one after its rows. */
static uint32_t compute_self(const struct track_builder *builder, const struct span_chunk *chunk, uint32_t carry,
                             int64_t *self_ns)
{
	for (uint32_t i = 0; i < chunk->count; i++) {
		self_ns[i] = chunk->dur_ns[i];
		if (chunk->parent[i] != MODEL_NONE && chunk->parent[i] >= chunk->first_row)
			self_ns[chunk->parent[i] - chunk->first_row] -= chunk->dur_ns[i];
	}
	for (; carry < builder->carry_count; carry++) {
		const struct carry *found = &builder->carries[carry];
		if (found->row >= chunk->first_row + chunk->count)
			break;
		self_ns[found->row - chunk->first_row] -= found->covered_ns;
	}
	return carry;
}

static bool model_visit_spans_visit_chunk(struct span_view *view, const struct span_chunk *chunk,
                                          const int64_t *self_ns, span_visit visit, void *context)
{
	for (uint32_t i = 0; i < chunk->count; i++) {
		view->row = chunk->first_row + i;
		view->start_ns = chunk->start_ns[i];
		view->dur_ns = chunk->dur_ns[i];
		view->self_ns = self_ns[i];
		view->name = chunk->name[i];
		view->shape = chunk->shape[i];
		view->sequence = span_sequence(chunk, i);
		view->inputs = span_inputs(chunk, i);
		view->stack = span_stack(chunk, i);
		view->parent = chunk->parent[i];
		view->step = chunk->step[i];
		view->depth = chunk->depth[i];
		view->kind = chunk->kind[i];
		view->flags = chunk->flags[i];
		view->phase = chunk->phase[i];
		if (!visit(context, view))
			return false;
	}
	return true;
}

void model_visit_spans(const struct model *model, uint32_t track, span_visit visit, void *context)
{
	const struct track_builder *builder = track_builder_of(model, track);
	const struct track *columns = &builder->track;
	if (!columns->chunk_count)
		return;
	struct span_view view = {.model = model, .track = columns, .track_index = track};
	uint32_t carry = 0, largest = columns->chunks[columns->chunk_count - 1]->capacity;
	int64_t *self_ns = memory_resize(NULL, largest, sizeof *self_ns);
	for (uint32_t c = 0; c < columns->chunk_count; c++) {
		const struct span_chunk *chunk = columns->chunks[c];
		carry = compute_self(builder, chunk, carry, self_ns);
		bool goes_on = model_visit_spans_visit_chunk(&view, chunk, self_ns, visit, context);
		model_chunk_done(model, chunk);
		if (!goes_on)
			break;
	}
	free(self_ns);
}
