/* SPDX-License-Identifier: Apache-2.0
 *
 * export_chrome.c: writes the model as Chrome trace JSON in Kineto's dialect, one event per line. Spans are assembled
 * from pieces that are made once: per kind, per name, per track. All times are integers until they become digits.
 */
#include "output/export/export_chrome.h"

#include "base/json_write.h"
#include "base/memory.h"
#include "output/export/export_number.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PADDING 16
#define LONGEST_KEPT_NAME ((size_t)4096)
#define CACHE_BYTES ((size_t)64 << 20)
#define VIEWERS_BYTES ((uint64_t)512 * 1000 * 1000) /* viewers in a browser do not open longer texts */
#define LINE_BYTES ((size_t)512)                    /* of a span's line, without its name and further args */
#define WEEK_NS (INT64_C(604800) * 1000000000)

/* ---- pieces ---- */

struct piece {
	char text[128]; /* readable up to 16 bytes beyond length */
	size_t length;
};

static void piece_set(struct piece *piece, const char *format, ...) PRINTF_LIKE(2, 3);
static void piece_set(struct piece *piece, const char *format, ...)
{
	va_list arguments;

	memset(piece->text, 0, sizeof(piece->text));
	va_start(arguments, format);
	piece->length = (size_t)vsnprintf(piece->text, sizeof(piece->text) - PADDING, format, arguments);
	va_end(arguments);
}

bool chrome_has_process(const struct chrome *chrome, uint32_t process)
{
	return !chrome->options->processes || chrome->options->processes[process];
}

static bool keep_name(struct chrome *chrome, struct chrome_name *name, uint32_t string)
{
	const char *text = model_text(chrome->model, string);
	size_t length = intern_length(&chrome->model->strings, string);
	size_t start = chrome->escaped.length;

	name->is_known = true;
	name->is_long = true;
	if (length > LONGEST_KEPT_NAME || start + length * 3 > CACHE_BYTES)
		return false;
	export_escape(&chrome->escaped, text, length);
	name->offset = (uint32_t)start;
	name->length = (uint16_t)(chrome->escaped.length - start);
	buffer_add(&chrome->escaped, "                ", PADDING);
	name->is_long = chrome->escaped.is_overflown;
	return !name->is_long;
}

const char *chrome_escaped(struct chrome *chrome, uint32_t string, size_t *length)
{
	struct chrome_name *name;

	if (string >= chrome->model->strings.count)
		string = 0;
	name = &chrome->names[string];
	if (name->is_known ? !name->is_long : keep_name(chrome, name, string)) {
		*length = name->length;
		return chrome->escaped.data + name->offset;
	}
	buffer_clear(&chrome->scratch);
	export_escape(&chrome->scratch, model_text(chrome->model, string),
	              intern_length(&chrome->model->strings, string));
	*length = chrome->scratch.length;
	buffer_add(&chrome->scratch, "                ", PADDING);
	return chrome->scratch.data;
}

void chrome_string(struct chrome *chrome, uint32_t string)
{
	size_t length;
	const char *text = chrome_escaped(chrome, string, &length);

	writer_bytes(&chrome->w, text, length);
}

void chrome_place(struct chrome *chrome, struct track_ids ids, int64_t time_ns)
{
	char text[128];
	char *at = text;

	memcpy(at, ", \"pid\": ", 9);
	at = put_i64(at + 9, ids.pid);
	memcpy(at, ", \"tid\": ", 9);
	at = put_i64(at + 9, ids.tid);
	memcpy(at, ", \"ts\": ", 8);
	at = put_us(at + 8, time_ns + chrome->shift_ns);
	writer_bytes(&chrome->w, text, (size_t)(at - text));
}

void chrome_number(struct chrome *chrome, double value)
{
	char text[NUMBER_BYTES];

	if (fabs(value) < 1e15 && value == (double)(int64_t)value) {
		writer_bytes(&chrome->w, text, (size_t)(put_i64(text, (int64_t)value) - text));
		return;
	}
	buffer_clear(&chrome->scratch);
	json_number(&chrome->scratch, value);
	writer_bytes(&chrome->w, chrome->scratch.data, chrome->scratch.length);
}

/* ---- spans ---- */

struct chrome_lane {
	struct chrome *chrome;
	uint32_t track;
	struct track_ids ids;
	bool is_device;
	bool is_torch; /* of a process whose operators were recorded through PyTorch */
	bool has_steps;
	struct piece heads[SPAN_KIND_COUNT]; /* `{"ph": "X", "cat": "cpu_op", "name": "` */
	struct piece place;                  /* `", "pid": 4242, "tid": 4242, "ts": ` */
	uint32_t next_arg, next_link;        /* in model.args and chrome.links */
	uint32_t arg_row, link_row;          /* rows that these belong to, MODEL_NONE: no more on this track */
	struct export_lane lane;
};

static void look_ahead(struct chrome_lane *lane)
{
	const struct model *model = lane->chrome->model;
	const struct link_index *links = &lane->chrome->links;

	lane->arg_row = lane->link_row = MODEL_NONE;
	if (lane->next_arg < model->args_count && model->args[lane->next_arg].track == lane->track)
		lane->arg_row = model->args[lane->next_arg].row;
	if (lane->next_link < links->count && links->ends[lane->next_link].track == lane->track)
		lane->link_row = links->ends[lane->next_link].row;
}

static void lane_begin(struct chrome_lane *lane, uint32_t first_row)
{
	lane->next_arg = model_first_arg(lane->chrome->model, lane->track, first_row);
	lane->next_link = link_index_find(&lane->chrome->links, lane->track, first_row);
	look_ahead(lane);
	piece_set(&lane->place, "\", \"pid\": %lld, \"tid\": %lld, \"ts\": ", (long long)lane->ids.pid,
	          (long long)lane->ids.tid);
}

static char *put_piece(char *to, const struct piece *piece)
{
	return put_padded(to, piece->text, piece->length);
}

/* Writes the start of a name that differs from the span's own name: for steps, phases and modules. */
static char *put_special_name(struct chrome_lane *lane, const struct span_chunk *chunk, uint32_t index, char *at)
{
	const struct model *model = lane->chrome->model;

	if (chunk->kind[index] == SPAN_PHASE) {
		memcpy(at, "stepscope::", 11);
		return at + 11;
	}
	if (chunk->kind[index] == SPAN_MODULE) { /* as torch.profiler names them */
		memcpy(at, "nn.Module: ", 11);
		return at + 11;
	}
	if (chunk->step[index] < 0 || (uint32_t)chunk->step[index] >= model->steps_count)
		return at;
	memcpy(at, "ProfilerStep#", 13);
	return put_i64(at + 13, model->steps[chunk->step[index]].number);
}

static bool is_phase_word(const struct chrome *chrome, uint32_t name)
{
	for (unsigned phase = 1; export_phase_name(phase); phase++)
		if (strcmp(model_text(chrome->model, name), export_phase_name(phase)) == 0)
			return true;
	return false;
}

static char *put_name(struct chrome_lane *lane, const struct span_chunk *chunk, uint32_t index, char *at)
{
	struct chrome *chrome = lane->chrome;
	uint32_t name = chunk->name[index];
	const char *text;
	size_t length;
	char *named = at;

	if (chunk->kind[index] == SPAN_STEP || chunk->kind[index] == SPAN_MODULE ||
	    (chunk->kind[index] == SPAN_PHASE && is_phase_word(chrome, name)))
		named = put_special_name(lane, chunk, index, at);
	if (named != at && chunk->kind[index] == SPAN_STEP)
		return named;
	text = chrome_escaped(chrome, name, &length);
	if (length <= LONGEST_KEPT_NAME * 3)
		return put_padded(named, text, length);
	chrome->w.at = named;
	writer_bytes(&chrome->w, text, length);
	writer_reserve(&chrome->w, LINE_BYTES);
	return chrome->w.at;
}

/* Returns the id that a runtime call (and the kernel it launches) carries: that of the innermost operator around the
 * call. */
static uint64_t external_id(const struct chrome *chrome, uint32_t track, uint32_t row)
{
	uint32_t at = row;

	for (int depth = 0; depth < 64; depth++) {
		uint32_t index;
		const struct span_chunk *chunk = track_chunk(chrome->model->tracks[track], at, &index);

		if (chunk->kind[index] == SPAN_OP)
			return chrome->ids.first_id[track] + at;
		if (chunk->parent[index] == MODEL_NONE)
			break;
		at = chunk->parent[index];
	}
	return chrome->ids.first_id[track] + row;
}

/* Returns the External id of a span; 0: it has none (a kernel whose launch is unknown). */
static uint64_t span_id(const struct chrome_lane *lane, uint32_t row, uint8_t kind)
{
	const struct chrome *chrome = lane->chrome;

	if (kind == SPAN_RUNTIME)
		return external_id(chrome, lane->track, row);
	if (!lane->is_device)
		return chrome->ids.first_id[lane->track] + row;
	if (lane->link_row != row)
		return 0;
	for (uint32_t i = lane->next_link; i < chrome->links.count; i++) {
		const struct link_end *end = &chrome->links.ends[i];
		const struct model_link *link = &chrome->model->links[end->link];

		if (end->track != lane->track || end->row != row)
			break;
		if (end->is_to)
			return external_id(chrome, link->from_track, link->from_row);
	}
	return 0;
}

const struct model_step *chrome_step(const struct chrome *chrome, uint32_t track, const struct span_chunk *chunk,
                                     uint32_t index)
{
	const struct model *model = chrome->model;
	const struct model_step *step;

	if (chunk->kind[index] != SPAN_STEP || chunk->step[index] < 0 ||
	    (uint32_t)chunk->step[index] >= model->steps_count)
		return NULL;
	step = &model->steps[chunk->step[index]];
	return step->track == track && step->row == chunk->first_row + index ? step : NULL;
}

static void put_slice(struct chrome_lane *lane, struct span_chunk *chunk, uint32_t index)
{
	struct chrome *chrome = lane->chrome;
	uint32_t row = chunk->first_row + index;
	uint8_t kind = chunk->kind[index] < SPAN_KIND_COUNT ? chunk->kind[index] : SPAN_OTHER;
	bool is_plain = !lane->is_device && chunk->shape[index] == 0 && !(chunk->flags[index] & SPAN_IS_OPEN) &&
	                !chrome_is_inferred(chunk, index) && row != lane->arg_row && row != lane->link_row &&
	                kind != SPAN_RUNTIME && span_sequence(chunk, index) == STEPSCOPE_NO_SEQUENCE &&
	                !span_inputs(chunk, index) && !chrome_step(chrome, lane->track, chunk, index);
	uint64_t id = span_id(lane, row, kind);
	struct chrome_span span = {lane->track, row, chunk, index, lane->ids, lane->is_device};
	char *at;

	writer_reserve(&chrome->w, LINE_BYTES + LONGEST_KEPT_NAME * 3);
	at = put_piece(chrome->w.at, &lane->heads[kind]);
	at = put_name(lane, chunk, index, at);
	at = put_piece(at, &lane->place);
	at = put_us(at, chunk->start_ns[index] + chrome->shift_ns);
	memcpy(at, ", \"dur\": ", 9);
	at = put_us(at + 9, chunk->dur_ns[index]);
	memcpy(at, ", \"args\": {", 11);
	at += 11;
	if (id) {
		memcpy(at, "\"External id\": ", 15);
		at = put_u64(at + 15, id);
	}
	if (id && lane->is_torch &&
	    (kind == SPAN_OP || kind == SPAN_ANNOTATION || kind == SPAN_MODULE || kind == SPAN_PYTHON)) {
		memcpy(at, ", \"Ev Idx\": ", 12);
		at = put_u64(at + 12, id - 1);
	}
	chrome->w.at = at;
	if (id && (kind == SPAN_MODULE || kind == SPAN_PYTHON))
		chrome_python_args(chrome, &span);
	if (!is_plain)
		chrome_args(chrome, &span, id != 0, &lane->next_arg, &lane->next_link);
	writer_reserve(&chrome->w, 16);
	memcpy(chrome->w.at, "}},\n", 4);
	chrome->w.at += 4;
	chrome->result->slices++;
	if (!is_plain) {
		chrome_flows(chrome, &span, &lane->next_link);
		look_ahead(lane);
	}
}

/* Skips args and links of a row that is not written, so that later rows find theirs. */
static void skip_row(struct chrome_lane *lane, uint32_t row)
{
	const struct model *model = lane->chrome->model;
	const struct link_index *links = &lane->chrome->links;

	if (row != lane->arg_row && row != lane->link_row)
		return;
	while (lane->next_arg < model->args_count && model->args[lane->next_arg].track == lane->track &&
	       model->args[lane->next_arg].row == row)
		lane->next_arg++;
	while (lane->next_link < links->count && links->ends[lane->next_link].track == lane->track &&
	       links->ends[lane->next_link].row == row)
		lane->next_link++;
	look_ahead(lane);
}

static void visit_row(struct chrome_lane *lane, struct span_chunk *chunk, uint32_t index)
{
	struct chrome *chrome = lane->chrome;
	int64_t start_ns = chunk->start_ns[index];
	int64_t ended_ns;

	while (lane_pop(&lane->lane, start_ns, chunk->depth[index], &ended_ns))
		;
	if (!lane_push(&lane->lane, chunk->first_row + index, start_ns + chunk->dur_ns[index], chunk->depth[index])) {
		skip_row(lane, chunk->first_row + index);
		return;
	}
	if (chrome->account) {
		uint64_t before = writer_count(&chrome->w);

		put_slice(lane, chunk, index);
		step_bytes_add(chrome->account, chrome->model->tracks[lane->track]->process, start_ns,
		               writer_count(&chrome->w) - before);
		return;
	}
	put_slice(lane, chunk, index);
}

static void chrome_visit_chunk(struct chrome_lane *lane, struct span_chunk *chunk)
{
	struct chrome *chrome = lane->chrome;
	uint32_t process = chrome->model->tracks[lane->track]->process;

	for (uint32_t i = 0; i < chunk->count; i++) {
		if ((chrome->selection.intervals &&
		     !selection_has_span(&chrome->selection, chrome->model, process, chunk, i)) ||
		    (lane->has_steps && export_is_step_again(chrome->model, chunk, i)))
			skip_row(lane, chunk->first_row + i);
		else
			visit_row(lane, chunk, i);
	}
	chrome->done += chunk->count;
	export_progress(chrome->options, chrome->done, chrome->total);
}

/* Writes spans that cross an open span to a further lane; those that cross there go to the next one. */
static void visit_overflow(struct chrome_lane *lane)
{
	struct chrome *chrome = lane->chrome;

	for (unsigned number = 2; lane->lane.overflow_count; number++) {
		struct export_lane previous = lane->lane;

		lane->lane = (struct export_lane){0};
		lane->ids.tid = chrome->ids.next_lane_tid++;
		chrome_lane_name(chrome, lane->track, lane->ids, number);
		lane_begin(lane, previous.overflow[0]);
		for (uint32_t i = 0; i < previous.overflow_count; i++) {
			uint32_t index;
			struct span_chunk *chunk = track_chunk(chrome->model->tracks[lane->track], previous.overflow[i],
			                                       &index);

			lane->next_arg = model_first_arg(chrome->model, lane->track, previous.overflow[i]);
			lane->next_link = link_index_find(&chrome->links, lane->track, previous.overflow[i]);
			look_ahead(lane);
			visit_row(lane, chunk, index);
		}
		lane_release(&previous);
	}
}

static void write_track(struct chrome *chrome, uint32_t number)
{
	const struct track *track = chrome->model->tracks[number];
	struct chrome_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		memory_exhausted(sizeof(*lane));
	lane->chrome = chrome;
	lane->track = number;
	lane->ids = chrome->ids.tracks[number];
	lane->is_device = export_is_device(track);
	lane->has_steps = export_has_steps(track);
	lane->is_torch = model_meta(chrome->model, track->process, "torch.library") != NULL;
	for (unsigned kind = 0; kind < SPAN_KIND_COUNT; kind++)
		piece_set(&lane->heads[kind], "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"",
		          export_category((enum span_kind)kind, lane->is_device));
	chrome_python(chrome, number); /* before the operators, because functions enclose them */
	lane_begin(lane, 0);
	for (uint32_t i = 0; i < track->chunk_count && !output_is_failed(chrome->w.output); i++)
		chrome_visit_chunk(lane, track->chunks[i]);
	visit_overflow(lane);
	lane_release(&lane->lane);
	free(lane);
}

/* ---- file ---- */

static void chrome_init(struct chrome *chrome, const struct model *model, const struct export_options *options,
                        struct export_result *result)
{
	uint32_t count = model->strings.count;
	uint32_t written = 0;

	*chrome = (struct chrome){
		.model = model, .options = options, .result = result, .has_shapes = chrome_finds_shapes(model)};
	chrome->names = memory_resize(NULL, (size_t)count + 1, sizeof(*chrome->names));
	memset(chrome->names, 0, ((size_t)count + 1) * sizeof(*chrome->names));
	buffer_init(&chrome->escaped, CACHE_BYTES);
	buffer_init(&chrome->scratch, SIZE_MAX);
	intern_init(&chrome->modules);
	selection_init(&chrome->selection, model, options);
	for (uint32_t i = 0; i < model->processes_count; i++)
		written += chrome_has_process(chrome, i);
	chrome->is_flow_by_index = written > 1;
}

static void chrome_release(struct chrome *chrome)
{
	selection_release(&chrome->selection);
	id_map_release(&chrome->ids);
	link_index_release(&chrome->links);
	buffer_release(&chrome->escaped);
	buffer_release(&chrome->scratch);
	free(chrome->names);
	free(chrome->python_parents.rows);
	intern_release(&chrome->modules);
}

/* Sets the zero of times to the last full week (counted from the epoch) before the run, so that the files of all ranks
 * agree. Kineto uses a quarter of a year. But from 2^42 us on, readers that keep microseconds in a double are sometimes
 * off by a nanosecond, and nested spans no longer nest. */
static void set_base(struct chrome *chrome)
{
	int64_t wall_ns = chrome->window.realtime_offset_ns;

	for (uint32_t i = 0; i < chrome->model->processes_count; i++) {
		if (chrome->model->processes[i].has_times) {
			wall_ns += chrome->model->processes[i].first_ns;
			break;
		}
	}
	chrome->base_ns = wall_ns >= 0 ? wall_ns / WEEK_NS * WEEK_NS : wall_ns;
	chrome->shift_ns = chrome->window.realtime_offset_ns - chrome->base_ns;
}

uint64_t chrome_last_id(const struct chrome *chrome)
{
	uint32_t tracks = chrome->model->tracks_count;

	return tracks ? chrome->ids.first_id[tracks - 1] + chrome->model->tracks[tracks - 1]->span_count - 1 : 0;
}

static void chrome_write_all(struct chrome *chrome, struct output *output)
{
	const struct model *model = chrome->model;

	intern_release(&chrome->modules); /* a second pass starts again */
	id_map_release(&chrome->ids);
	link_index_release(&chrome->links);
	id_map_init(&chrome->ids, model);
	link_index_init(&chrome->links, model, &chrome->selection);
	export_window_init(&chrome->window, model, &chrome->selection);
	set_base(chrome);
	chrome->done = 0;
	chrome->last_python_id = chrome_last_id(chrome) + model->memory_count;
	chrome->total = export_span_total(model);
	chrome->w = writer_begin(output);
	chrome_head(chrome);
	for (uint32_t i = 0; i < model->tracks_count; i++)
		if (chrome_has_process(chrome, model->tracks[i]->process))
			write_track(chrome, i);
	chrome_marks(chrome);
	chrome_memory(chrome);
	chrome_values(chrome);
	chrome_tail(chrome);
	writer_end(&chrome->w);
}

/* Cuts the steps for --max-mb: a first pass counts the bytes of every step. */
static void limit_bytes(struct chrome *chrome)
{
	struct export_result *result = chrome->result;
	struct export_result unused = {0};
	struct step_bytes steps;
	struct output *nowhere = output_open_nowhere();

	step_bytes_init(&steps, chrome->model);
	chrome->account = &steps;
	chrome->result = &unused;
	chrome_write_all(chrome, nowhere);
	chrome->account = NULL;
	chrome->result = result;
	export_limit(&steps, output_raw_bytes(nowhere), &chrome->selection, chrome->options, result);
	step_bytes_release(&steps);
	output_abort(nowhere);
}

static enum status chrome_write(const struct model *model, const char *path, const struct export_options *options,
                                struct export_result *result, struct error *err)
{
	struct chrome chrome;
	struct output *output;
	enum status status;

	*result = (struct export_result){0};
	status = output_open(path, &output, err);
	if (status != STATUS_OK)
		return status;
	chrome_init(&chrome, model, options, result);
	if (options->max_bytes > 0)
		limit_bytes(&chrome);
	chrome_write_all(&chrome, output);
	result->bytes_raw = output_raw_bytes(output);
	if (result->bytes_raw > VIEWERS_BYTES)
		export_note(result,
		            "viewers of this form open at most 512 MB of text: --steps A-B or --max-mb 480 writes a "
		            "part, and a .pftrace may be larger");
	export_note_left_out(result, model);
	export_note_memory(result, model, options->processes);
	chrome_release(&chrome);
	return output_close(output, &result->bytes_file, err);
}

const struct exporter export_chrome = {
	.name = "chrome",
	.suffix = ".json",
	.what = "Chrome trace JSON as PyTorch's Kineto writes it",
	.viewers = "Perfetto UI, chrome://tracing, TensorBoard, HTA, torch's trace validator",
	.write = chrome_write,
	.honours_max_bytes = true,
};
