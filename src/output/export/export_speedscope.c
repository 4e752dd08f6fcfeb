/* SPDX-License-Identifier: Apache-2.0
 *
 * export_speedscope.c: speedscope's own format, one profile per thread: Python stacks with the operator innermost,
 * weighted by self time. Equal stacks are one sample, so their order has no meaning: use the views "left heavy" and
 * "sandwich".
 */
#include "analysis/shared/python_places.h"
#include "base/buffer.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "output/export/compress.h"
#include "output/export/stack_weights.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct export_speedscope_state {
	const struct model *model;
	const struct export_options *options;
	struct selection selection;
	struct writer w;
	const char *folder;
	struct buffer text;
	/* indices in the file: of stack nodes, then of strings (operators); UINT32_MAX: not written */
	uint32_t *frames;
	uint32_t frame_count;
};

static void put_text(struct export_speedscope_state *speedscope, const char *text)
{
	buffer_clear(&speedscope->text);
	export_escape(&speedscope->text, text, strlen(text));
	writer_bytes(&speedscope->w, speedscope->text.data, speedscope->text.length);
}

static bool export_speedscope_is_wanted(const struct export_speedscope_state *speedscope, uint32_t track)
{
	uint32_t process = speedscope->model->tracks[track]->process;
	return !speedscope->options->processes || speedscope->options->processes[process];
}

static void put_frame(struct export_speedscope_state *speedscope, uint32_t place)
{
	const struct model *model = speedscope->model;
	if (speedscope->frames[place] != UINT32_MAX)
		return;
	writer_text(&speedscope->w, speedscope->frame_count ? ",\n{\"name\": \"" : "{\"name\": \"");
	speedscope->frames[place] = speedscope->frame_count++;
	if (place >= model->stacks_count) {
		put_text(speedscope, model_text(model, place - model->stacks_count));
		writer_text(&speedscope->w, "\"}");
		return;
	}
	const struct stack_node *frame = &model->stacks[place];
	const char *name = model_text(model, frame->frame), *file = model_text(model, frame->file);
	put_text(speedscope, *name ? name : "(more frames)");
	writer_text(&speedscope->w, "\"");
	if (*file) {
		writer_text(&speedscope->w, ", \"file\": \"");
		put_text(speedscope, python_short_file(file, speedscope->folder));
		writer_text(&speedscope->w, "\"");
	}
	if (frame->line)
		writer_printf(&speedscope->w, ", \"line\": %u", frame->line);
	writer_text(&speedscope->w, "}");
}

static void put_frames(struct export_speedscope_state *speedscope, const struct stack_weights *weights)
{
	uint32_t path[STACK_WEIGHTS_FRAMES];
	for (uint32_t i = 0; i < weights->count; i++) {
		uint32_t count = stack_path(speedscope->model, weights->weights[i].stack, path);
		for (uint32_t k = 0; k < count; k++)
			put_frame(speedscope, path[k]);
		if (weights->weights[i].name)
			put_frame(speedscope, speedscope->model->stacks_count + weights->weights[i].name);
	}
}

static void put_samples(struct export_speedscope_state *speedscope, const struct stack_weights *weights)
{
	uint32_t path[STACK_WEIGHTS_FRAMES];
	for (uint32_t i = 0; i < weights->count; i++) {
		uint32_t count = stack_path(speedscope->model, weights->weights[i].stack, path);
		writer_text(&speedscope->w, i ? ",\n[" : "[");
		for (uint32_t k = 0; k < count; k++)
			writer_printf(&speedscope->w, "%s%u", k ? "," : "", speedscope->frames[path[k]]);
		if (weights->weights[i].name)
			writer_printf(&speedscope->w, "%s%u", count ? "," : "",
			              speedscope->frames[speedscope->model->stacks_count + weights->weights[i].name]);
		writer_text(&speedscope->w, "]");
	}
}

static void put_profile(struct export_speedscope_state *speedscope, uint32_t number,
                        const struct stack_weights *weights)
{
	const struct model *model = speedscope->model;
	const struct track *track = model->tracks[number];
	static const char *const units[] = {"nanoseconds", "bytes", "none"};
	int64_t total_ns = 0;
	for (uint32_t i = 0; i < weights->count; i++)
		clamped_add(&total_ns, weights->weights[i].self_ns);
	writer_printf(&speedscope->w, "{\"type\": \"sampled\", \"name\": \"Process %" PRId64 " Thread %" PRId64 " ",
	              model->processes[track->process].pid, track->tid);
	put_text(speedscope, track->name ? model_text(model, track->name) : "");
	writer_printf(&speedscope->w,
	              "\", \"unit\": \"%s\", \"startValue\": 0, \"endValue\": %" PRId64 ",\n\"samples\": [",
	              units[weights->unit], total_ns);
	put_samples(speedscope, weights);
	writer_text(&speedscope->w, "],\n\"weights\": [");
	for (uint32_t i = 0; i < weights->count; i++)
		writer_printf(&speedscope->w, "%s%" PRId64, i ? "," : "", weights->weights[i].self_ns);
	writer_text(&speedscope->w, "]}");
}

/* Frames come first in the file and belong to all profiles, so there are two passes over the tracks. */
static void put_all(struct export_speedscope_state *speedscope, struct export_result *result)
{
	const struct model *model = speedscope->model;
	bool has_any = false;
	writer_text(&speedscope->w,
	            "{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\", \"exporter\": "
	            "\"stepscope\", \"shared\": {\"frames\": [\n");
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < model->tracks_count; i++) {
			struct stack_weights weights = {0};
			if (export_speedscope_is_wanted(speedscope, i))
				stack_weights_add(&weights, model, i, &speedscope->selection);
			stack_weights_finish(&weights);
			if (pass == 0) {
				put_frames(speedscope, &weights);
			} else if (weights.count) {
				writer_text(&speedscope->w, has_any ? ",\n" : "");
				put_profile(speedscope, i, &weights);
				result->slices += weights.operators;
				has_any = true;
			}
			stack_weights_release(&weights);
		}
		writer_text(&speedscope->w, pass ? "\n]}\n" : "\n]}, \"profiles\": [\n");
	}
}

static enum status speedscope_write(const struct model *model, const char *path, const struct export_options *options,
                                    struct export_result *result, struct error *err)
{
	struct output *output;
	size_t places = (size_t)model->stacks_count + model->strings.count;
	*result = (struct export_result){0};
	enum status status = stack_weights_check(model, err);
	if (status == STATUS_OK)
		status = output_open(path, &output, err);
	if (status != STATUS_OK)
		return status;
	struct export_speedscope_state speedscope = {
		.model = model, .options = options, .w = writer_begin(output), .folder = python_folder(model)};
	speedscope.frames = memory_resize(NULL, places, sizeof *speedscope.frames);
	memset(speedscope.frames, 0xff, places * sizeof *speedscope.frames);
	buffer_init(&speedscope.text, 1 << 20);
	selection_init(&speedscope.selection, model, options);
	put_all(&speedscope, result);
	selection_release(&speedscope.selection);
	buffer_release(&speedscope.text);
	free(speedscope.frames);
	writer_end(&speedscope.w);
	result->bytes_raw = output_raw_bytes(output);
	if (!model->samples_count)
		export_note_stacks(result, model);
	return output_close(output, &result->bytes_file, err);
}

const struct exporter export_speedscope = {
	.name = "speedscope",
	.suffix = ".speedscope.json",
	.what = "Python stacks per thread, and self time in ns",
	.viewers = "speedscope.app",
	.write = speedscope_write,
};
