/* SPDX-License-Identifier: Apache-2.0
 *
 * export_chrome_python.c: Python functions of a track as Kineto's category python_function.
 */
#include "output/export_chrome.h"

#include "analysis/python_places.h"
#include "output/export_number.h"
#include "output/export_python.h"

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
	writer_printf(&chrome->w, ", \"args\": {\"Python id\": %u", slice->id);
	if (slice->parent)
		writer_printf(&chrome->w, ", \"Python parent id\": %u", slice->parent);
	writer_text(&chrome->w, ", \"stepscope reconstructed\": true}},\n");
	chrome->result->slices++;
	if (chrome->account)
		step_bytes_add(chrome->account, python->process, slice->start_ns, writer_count(&chrome->w) - before);
}

void chrome_python(struct chrome *chrome, uint32_t track)
{
	struct chrome_python python = {.chrome = chrome,
	                               .folder = python_folder(chrome->model),
	                               .ids = chrome->ids.tracks[track],
	                               .process = chrome->model->tracks[track]->process};

	buffer_init(&python.text, 1 << 20);
	python_slices(chrome->model, track, &chrome->selection, &chrome->last_python_id, put_slice, &python);
	buffer_release(&python.text);
}
