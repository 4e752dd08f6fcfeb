/* SPDX-License-Identifier: Apache-2.0
 *
 * export_chrome_python.c: Python functions of a track as Kineto's category python_function, with the parent of each
 * function and module. A module's id is its External id. Ids of reconstructed functions follow the numbers of all
 * spans and memory events, so that "Ev Idx" (one lower) is unique everywhere.
 */
#include "analysis/shared/python_places.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "output/export/export_chrome.h"
#include "output/export/export_number.h"
#include "output/export/export_python.h"

#include <inttypes.h>

struct chrome_python {
	struct chrome *chrome;
	const char *folder;
	struct buffer text;
	struct track_ids ids;
	uint32_t process;
};

static void put_slice(void *context, const struct python_slice *slice)
{
	struct chrome_python *python = context;
	struct chrome *chrome = python->chrome;
	uint64_t before = writer_count(&chrome->w);
	char text[64];

	buffer_clear(&python->text);
	python_frame_text(chrome->model, &chrome->model->stacks[slice->frame], python->folder, &python->text);
	buffer_clear(&chrome->scratch);
	export_escape(&chrome->scratch, python->text.data, python->text.length);
	writer_text(&chrome->w, "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"");
	writer_bytes(&chrome->w, chrome->scratch.data, chrome->scratch.length);
	writer_text(&chrome->w, "\"");
	chrome_place(chrome, python->ids, slice->start_ns);
	memcpy(text, ", \"dur\": ", 9);
	writer_bytes(&chrome->w, text, (size_t)(put_us(text + 9, slice->end_ns - slice->start_ns) - text));
	writer_printf(&chrome->w, ", \"args\": {\"Python id\": %" PRIu64, slice->id);
	if (slice->parent)
		writer_printf(&chrome->w, ", \"Python parent id\": %" PRIu64, slice->parent);
	writer_printf(&chrome->w, ", \"Ev Idx\": %" PRIu64 ", \"stepscope reconstructed\": true}},\n", slice->id - 1);
	chrome->result->slices++;
	if (chrome->account)
		step_bytes_add(chrome->account, python->process, slice->start_ns, writer_count(&chrome->w) - before);
}

static void put_parent(void *context, uint32_t row, uint64_t parent)
{
	struct chrome_python *python = context;
	struct chrome_parents *parents = &python->chrome->python_parents;

	MEMORY_GROW(parents->rows, parents->count, parents->capacity, 1024);
	parents->rows[parents->count++] = (struct chrome_parent){row, parent};
}

void chrome_python(struct chrome *chrome, uint32_t track)
{
	struct chrome_python python = {.chrome = chrome,
	                               .folder = python_folder(chrome->model),
	                               .ids = chrome->ids.tracks[track],
	                               .process = chrome->model->tracks[track]->process};
	struct python_out out = {put_slice, put_parent, &python, chrome->last_python_id, chrome->ids.first_id[track]};

	chrome->python_parents.count = 0;
	buffer_init(&python.text, 1 << 20);
	python_slices(chrome->model, track, &chrome->selection, &out);
	buffer_release(&python.text);
	chrome->last_python_id = out.last_id;
}

/* Returns the parent if no stacks were recorded: the innermost module, or function of another profiler, around the
 * span. */
static uint64_t parent_row_id(const struct chrome *chrome, const struct chrome_span *span)
{
	const struct track *track = chrome->model->tracks[span->track];
	uint32_t row = span->chunk->parent[span->index];

	while (row != MODEL_NONE) {
		uint32_t index;
		struct span_chunk *chunk = track_chunk(track, row, &index);

		if ((chunk->kind[index] == SPAN_MODULE || chunk->kind[index] == SPAN_PYTHON) &&
		    selection_has_span(&chrome->selection, chrome->model, track->process, chunk, index))
			return chrome->ids.first_id[span->track] + row;
		row = chunk->parent[index];
	}
	return 0;
}

static uint64_t parent_id(const struct chrome *chrome, const struct chrome_span *span)
{
	const struct chrome_parents *parents = &chrome->python_parents;
	uint32_t low = LOWER_BOUND(parents->rows, parents->count, item, item->row < span->row);

	if (low < parents->count && parents->rows[low].row == span->row)
		return parents->rows[low].id;
	return parent_row_id(chrome, span);
}

void chrome_python_args(struct chrome *chrome, const struct chrome_span *span)
{
	uint64_t parent = parent_id(chrome, span);
	struct writer *w = &chrome->w;

	writer_printf(w, ", \"Python id\": %" PRIu64, chrome->ids.first_id[span->track] + span->row);
	if (parent)
		writer_printf(w, ", \"Python parent id\": %" PRIu64, parent);
	if (span->chunk->kind[span->index] == SPAN_MODULE) /* one number per path, starting at 0 */
		writer_printf(w, ", \"Python module id\": %" PRIu32,
		              intern_add(&chrome->modules, model_text(chrome->model, span->chunk->name[span->index])) -
		                      1);
}
