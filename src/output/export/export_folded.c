/* SPDX-License-Identifier: Apache-2.0
 *
 * export_folded.c: "frame;frame;operator 123" per line, the format of flamegraph.pl, inferno, speedscope and Perfetto.
 * Weights are whole microseconds of self time. Frames have the form of torch.profiler's export_stacks(), followed by
 * the operator.
 */
#include "analysis/shared/python_places.h"
#include "base/buffer.h"
#include "output/export/compress.h"
#include "output/export/stack_weights.h"

#include <inttypes.h>
#include <string.h>

struct export_folded {
	const struct model *model;
	struct writer w;
	const char *folder;
	struct buffer text;
	uint32_t process; /* MODEL_NONE: only one process is written */
	int64_t rounded_ns;
	enum stack_unit unit;
	uint64_t other_unit;
};

/* Replaces bytes that would end a frame or a line, or control a terminal. */
static void put_frame(struct export_folded *folded, const char *text, size_t length, bool is_last)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		writer_bytes(&folded->w,
		             c < ' ' || (c == ' ' && folded->unit == STACK_NANOSECONDS) || c == ';' || c == 0x7f
		                     ? "_"
		                     : &text[i],
		             1);
	}
	writer_text(&folded->w, is_last ? " " : ";");
}

/* Times are microseconds, with frames in the form of export_stacks(). Counts have frames in the form of py-spy, so that
 * the two cannot be confused. */
static void frame_text(struct export_folded *folded, const struct stack_node *frame)
{
	const struct model *model = folded->model;
	const char *file = model_text(model, frame->file), *name = model_text(model, frame->frame);
	if (folded->unit == STACK_NANOSECONDS || !*name)
		python_frame_text(model, frame, folded->folder, &folded->text);
	else if (!*file)
		buffer_add_text(&folded->text, name);
	else if (frame->line)
		buffer_printf(&folded->text, "%s (%s:%u)", name, python_short_file(file, folded->folder), frame->line);
	else
		buffer_printf(&folded->text, "%s (%s)", name, python_short_file(file, folded->folder));
}

static void put_line(struct export_folded *folded, const struct stack_weight *weight)
{
	uint32_t path[STACK_WEIGHTS_FRAMES], count = stack_path(folded->model, weight->stack, path);
	const char *name = model_text(folded->model, weight->name);
	if (folded->process != MODEL_NONE)
		writer_printf(&folded->w, "process_%" PRId64 ";", folded->model->processes[folded->process].pid);
	for (uint32_t i = 0; i < count; i++) {
		buffer_clear(&folded->text);
		frame_text(folded, &folded->model->stacks[path[i]]);
		put_frame(folded, folded->text.data, folded->text.length, !weight->name && i + 1 == count);
	}
	if (weight->name)
		put_frame(folded, name, strlen(name), true);
	else if (!count)
		put_frame(folded, "(no stack)", 10, true);
	writer_printf(&folded->w, "%" PRId64 "\n",
	              folded->unit == STACK_NANOSECONDS ? weight->self_ns / 1000 + (weight->self_ns % 1000 >= 500)
	                                                : weight->self_ns);
}

/* Returns false for threads outside of a window's profiler, as in torch.profiler's file. */
static bool is_followed(const struct model *model, uint32_t track)
{
	return !model->tells_profiled || model->tracks[track]->is_profiled;
}

static void put_process(struct export_folded *folded, uint32_t process, const struct selection *selection,
                        struct export_result *result)
{
	const struct model *model = folded->model;
	struct stack_weights weights = {0};
	for (uint32_t i = 0; i < model->tracks_count; i++)
		if (model->tracks[i]->process == process && is_followed(model, i))
			stack_weights_add(&weights, model, i, selection);
	stack_weights_finish(&weights);
	folded->unit = weights.unit;
	folded->other_unit += weights.other_unit;
	for (uint32_t i = 0; i < weights.count; i++) {
		if (weights.weights[i].self_ns >= (weights.unit == STACK_NANOSECONDS ? 500 : 1))
			put_line(folded, &weights.weights[i]);
		else
			folded->rounded_ns += weights.weights[i].self_ns;
	}
	result->slices += weights.operators;
	stack_weights_release(&weights);
}

static bool export_folded_is_wanted(const struct model *model, const struct export_options *options, uint32_t process)
{
	bool has_any = !model->tells_profiled;
	for (uint32_t i = 0; i < model->tracks_count && !has_any; i++)
		has_any = model->tracks[i]->process == process && is_followed(model, i);
	return has_any && (!options->processes || options->processes[process]);
}

static enum status folded_write(const struct model *model, const char *path, const struct export_options *options,
                                struct export_result *result, struct error *err)
{
	struct selection selection;
	struct output *output;
	uint32_t wanted = 0;
	*result = (struct export_result){0};
	enum status status = stack_weights_check(model, err);
	if (status == STATUS_OK)
		status = output_open(path, &output, err);
	if (status != STATUS_OK)
		return status;
	for (uint32_t i = 0; i < model->processes_count; i++)
		wanted += export_folded_is_wanted(model, options, i) && model->processes[i].role != STEPSCOPE_ROLE_HOST;
	struct export_folded folded = {.model = model, .w = writer_begin(output), .folder = python_folder(model)};
	buffer_init(&folded.text, 1 << 20);
	selection_init(&selection, model, options);
	for (uint32_t i = 0; i < model->processes_count; i++) {
		folded.process = wanted > 1 ? i : MODEL_NONE;
		if (export_folded_is_wanted(model, options, i))
			put_process(&folded, i, &selection, result);
	}
	selection_release(&selection);
	buffer_release(&folded.text);
	writer_end(&folded.w);
	result->bytes_raw = output_raw_bytes(output);
	if (!model->samples_count)
		export_note_stacks(result, model);
	if (folded.other_unit)
		export_note(result, "%" PRIu64 " samples of another unit than the first are left out",
		            folded.other_unit);
	if (folded.rounded_ns >= 1000)
		export_note(result, "%" PRId64 " us in stacks of less than half a microsecond are left out",
		            folded.rounded_ns / 1000);
	return output_close(output, &result->bytes_file, err);
}

const struct exporter export_folded = {
	.name = "folded",
	.suffix = ".folded",
	.other_suffix = ".txt",
	.what = "Python stacks with the operator innermost, and its self time in us",
	.viewers = "flamegraph.pl, inferno, speedscope, Perfetto UI",
	.write = folded_write,
};
