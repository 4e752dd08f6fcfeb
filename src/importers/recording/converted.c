/* SPDX-License-Identifier: Apache-2.0
 *
 * converted.c: recordings that `stepscope convert` made: the model as it was, read from ROWS blocks
 * (docs/file-format.md). Nothing in them is trusted: a row that refers to something missing is left out and counted.
 * Several files go into one model, on its time line.
 */
#include "importers/recording/converted.h"

#include "base/memory.h"
#include "format/segment.h"
#include "importers/importer.h"
#include "importers/text_lines.h"
#include "model/model_tables.h"
#include "model/pieces.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES_MAX 1000000u
#define TRACKS_MAX 1000000u

struct converted {
	struct model *model;
	struct model_place first; /* where the file's rows start in the model */
	int64_t shift_ns;         /* from the file's time line to the model's */
	bool is_settled;          /* shift_ns is known */
	uint32_t *strings;        /* strings of the model, by number in the file */
	uint32_t string_count, string_capacity;
	struct series_row *series;
	struct value_series **subjects; /* series of the model, by number in the file; NULL: values of a process */
	uint32_t series_count;
	uint64_t refused; /* rows */
	uint32_t owner;   /* owner of the rows being read */
	uint64_t read_bytes;
};

/* ---- translate numbers and times of the file to those of the model; false: the file has no such thing ---- */

static bool place_process(const struct converted *converted, uint32_t *process)
{
	if (*process >= converted->model->processes_count - converted->first.processes)
		return false;
	*process += converted->first.processes;
	return true;
}

static bool place_process_or_none(const struct converted *converted, uint32_t *process)
{
	return *process == MODEL_NONE || place_process(converted, process);
}

static bool place_track(const struct converted *converted, uint32_t *track)
{
	if (*track >= converted->model->tracks_count - converted->first.tracks)
		return false;
	*track += converted->first.tracks;
	return true;
}

static bool place_row(const struct converted *converted, uint32_t *track, uint32_t row)
{
	return place_track(converted, track) && row < converted->model->tracks[*track]->span_count;
}

static bool place_row_or_none(const struct converted *converted, uint32_t *track, uint32_t row)
{
	if (row != MODEL_NONE)
		return place_row(converted, track, row);
	return *track == MODEL_NONE || place_track(converted, track);
}

/* Stack 0 is the root, which all files share. */
static bool place_stack(const struct converted *converted, uint32_t *stack)
{
	if (*stack > converted->model->stacks_count - converted->first.stacks)
		return false;
	*stack += *stack ? converted->first.stacks - 1 : 0;
	return true;
}

/* Returns true for any time that an importer can produce from a file, and for the ends of spans at such times. Sums of
 * two do not overflow. */
static bool converted_is_time(int64_t time_ns)
{
	return time_ns <= IMPORTED_TIME_MAX + IMPORTED_DURATION_MAX && time_ns >= IMPORTED_TIME_MIN - IMPORTED_BASE_MAX;
}

static bool place_time(const struct converted *converted, int64_t *time_ns)
{
	bool is_good = converted_is_time(*time_ns);
	*time_ns += is_good ? converted->shift_ns : 0;
	return is_good && converted_is_time(*time_ns);
}

/* Returns the wall time of time 0 for the processes from `first` up to `end`; 0: none of them knows it. */
static int64_t wall_time(const struct model *model, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		if (model->processes[i].realtime_offset_ns > 0 &&
		    model->processes[i].realtime_offset_ns <= IMPORTED_BASE_MAX)
			return model->processes[i].realtime_offset_ns;
	return 0;
}

/* ---- one function per table; false: the row is impossible ---- */

static bool converted_add_process(struct converted *converted, void *bytes)
{
	struct model *model = converted->model;
	const struct process *process = bytes;
	if (!converted_is_time(process->first_ns) || !converted_is_time(process->last_ns) ||
	    !converted_is_time(process->realtime_offset_ns) || process->role > STEPSCOPE_ROLE_IMPORTED ||
	    model->processes_count >= PROCESSES_MAX)
		return false;
	uint32_t number = model_add_process(model);
	model->processes[number] = *process;
	return true;
}

static bool add_track(struct converted *converted, void *bytes)
{
	struct track_row *row = bytes;
	if (!place_process(converted, &row->process) || row->kind > TRACK_OTHER ||
	    converted->model->tracks_count >= TRACKS_MAX)
		return false;
	struct model *model = converted->model;
	uint32_t number = model_add_track(model, row->process, (enum track_kind)row->kind);
	struct track *track = model->tracks[number];
	track->name = row->name;
	track->sort = row->sort;
	track->tid = row->tid;
	track->device = row->device;
	track->torch_thread = row->torch_thread;
	track->is_main = row->is_main;
	track->is_profiled = row->is_profiled;
	return true;
}

static bool converted_add_span(struct converted *converted, void *bytes)
{
	struct span_row *span = bytes;
	struct model *model = converted->model;
	uint32_t number = converted->owner, i, p;
	if (!place_track(converted, &number) || span->kind >= SPAN_KIND_COUNT || span->dur_ns < 0 ||
	    !place_time(converted, &span->start_ns) || !converted_is_time(span->dur_ns) ||
	    !place_stack(converted, &span->stack))
		return false;
	uint32_t row = model_span_complete(model, number, span->start_ns, span->dur_ns, (enum span_kind)span->kind,
	                                   span->name);
	if (row == MODEL_NONE)
		return false;
	const struct track *track = model->tracks[number];
	struct span_chunk *chunk = track_chunk(track, row, &i);
	chunk->flags[i] = span->flags;
	chunk->phase[i] = span->phase <= STEPSCOPE_BUILTIN_PHASE_EVALUATION ? span->phase : 0;
	if (span->shape)
		model_span_set_shape(model, number, row, span->shape);
	if (span->sequence != STEPSCOPE_NO_SEQUENCE)
		model_span_set_sequence(model, number, row, span->sequence);
	if (span->inputs)
		model_span_set_inputs(model, number, row, span->inputs);
	if (span->stack)
		model_span_set_stack(model, number, row, span->stack);
	if (span->correlation)
		model_span_set_correlation(model, number, row, span->correlation);
	/* if a span and its parent both have no length, only the file tells which is the parent */
	if (span->parent == MODEL_NONE || span->parent >= row)
		return true;
	const struct span_chunk *around = track_chunk(track, span->parent, &p);
	if (around->start_ns[p] <= chunk->start_ns[i] &&
	    around->start_ns[p] + around->dur_ns[p] >= chunk->start_ns[i] + chunk->dur_ns[i]) {
		chunk->parent[i] = span->parent;
		chunk->depth[i] = (uint16_t)(around->depth[p] + 1);
	}
	return true;
}

static bool converted_add_step(struct converted *converted, void *bytes)
{
	struct model_step *step = bytes;
	if (!place_process(converted, &step->process) || !place_row_or_none(converted, &step->track, step->row) ||
	    step->end_ns < step->start_ns || !place_time(converted, &step->start_ns) ||
	    !place_time(converted, &step->end_ns) || step->capture > STEPSCOPE_CAPTURE_SAVE)
		return false;
	*model_add_step(converted->model) = *step;
	return true;
}

static bool add_series(struct converted *converted, void *bytes)
{
	struct series_row *row = bytes;
	converted->series = memory_resize(converted->series, (size_t)converted->series_count + 1,
	                                  sizeof *converted->series);
	converted->subjects = memory_resize(converted->subjects, (size_t)converted->series_count + 1,
	                                    sizeof(struct value_series *));
	bool is_good = place_process(converted, &row->process);
	row->process = is_good ? row->process : MODEL_NONE;
	converted->subjects[converted->series_count] = NULL;
	if (is_good && row->subject)
		converted->subjects[converted->series_count] = model_add_series(
			converted->model, &(struct value_series){.process = row->process,
		                                                 .name = row->name,
		                                                 .is_metric = row->is_metric,
		                                                 .subject = row->subject,
		                                                 .unit = row->unit});
	converted->series[converted->series_count++] = *row;
	return is_good;
}

static bool converted_add_value(struct converted *converted, void *bytes)
{
	struct value_row *row = bytes;
	if (converted->owner >= converted->series_count || !place_time(converted, &row->time_ns))
		return false;
	const struct series_row *series = &converted->series[converted->owner];
	if (series->process == MODEL_NONE)
		return false;
	if (converted->subjects[converted->owner])
		model_series_add(converted->model, converted->subjects[converted->owner], row->time_ns, row->value);
	else
		model_add_value(converted->model, series->process, series->name, series->is_metric, row->time_ns,
		                row->value);
	return true;
}

static bool converted_add_memory(struct converted *converted, void *bytes)
{
	struct memory_event *event = bytes;
	if (!place_process(converted, &event->process) || !place_row_or_none(converted, &event->track, event->row) ||
	    !place_time(converted, &event->time_ns) || !place_stack(converted, &event->stack))
		return false;
	model_add_memory(converted->model, event);
	return true;
}

static bool add_owner(struct converted *converted, void *bytes)
{
	struct memory_owner *owner = bytes;
	if (!place_process(converted, &owner->process) || !place_row_or_none(converted, &owner->track, MODEL_NONE) ||
	    !place_time(converted, &owner->time_ns))
		return false;
	model_add_owner(converted->model, owner);
	return true;
}

static bool add_segment(struct converted *converted, void *bytes)
{
	struct memory_segment *segment = bytes;
	if (!place_process(converted, &segment->process) || !place_stack(converted, &segment->stack))
		return false;
	model_add_segment(converted->model, segment);
	return true;
}

static bool add_reading(struct converted *converted, void *bytes)
{
	struct thread_reading *reading = bytes;
	if (!place_track(converted, &reading->track) || !place_time(converted, &reading->time_ns))
		return false;
	model_add_reading(converted->model, reading);
	return true;
}

static bool converted_add_mark(struct converted *converted, void *bytes)
{
	struct mark *mark = bytes;
	if (!place_track(converted, &mark->track) || !place_time(converted, &mark->time_ns))
		return false;
	model_add_mark(converted->model, mark->track, mark->time_ns, mark->name);
	return true;
}

static bool converted_add_stack(struct converted *converted, void *bytes)
{
	struct stack_node *node = bytes;
	if (!place_stack(converted, &node->parent))
		return false;
	model_add_frame(converted->model, node);
	return true;
}

static bool converted_add_arg(struct converted *converted, void *bytes)
{
	struct span_arg arg = *(const struct span_arg *)bytes;
	if (!place_row(converted, &arg.track, arg.row) || arg.type > STEPSCOPE_ARG_POINTER)
		return false;
	if (arg.type == STEPSCOPE_ARG_SYMBOL)
		arg.u64 = (uint32_t)arg.u64 < converted->string_count ? converted->strings[(uint32_t)arg.u64] : 0;
	model_span_arg(converted->model, &arg);
	return true;
}

static bool converted_add_link(struct converted *converted, void *bytes)
{
	struct model_link *link = bytes;
	if (link->kind > STEPSCOPE_LINK_OTHER || !place_row_or_none(converted, &link->from_track, link->from_row) ||
	    !place_row_or_none(converted, &link->to_track, link->to_row))
		return false;
	model_add_link(converted->model, link);
	return true;
}

static bool add_sample(struct converted *converted, void *bytes)
{
	struct sample *sample = bytes;
	if (!place_track(converted, &sample->track) || !place_time(converted, &sample->time_ns) ||
	    !place_stack(converted, &sample->stack))
		return false;
	model_add_sample(converted->model, sample);
	return true;
}

static bool add_meta(struct converted *converted, void *bytes)
{
	struct model_meta *meta = bytes;
	if (!place_process_or_none(converted, &meta->process))
		return false;
	model_add_meta(converted->model, meta->process, model_text(converted->model, meta->key),
	               model_text(converted->model, meta->value));
	return true;
}

static bool add_ledger(struct converted *converted, void *bytes)
{
	struct ledger_entry *entry = bytes;
	struct model *model = converted->model;
	if (!place_process_or_none(converted, &entry->process) || entry->kind > LEDGER_OTHER ||
	    entry->code >= LEDGER_CODE_END)
		return false;
	struct ledger_entry *added = model_add_ledger(model, entry->kind, entry->process,
	                                              model_text(model, entry->where), entry->count,
	                                              model_text(model, entry->text));
	added->code = entry->code;
	added->has_first_offset = entry->has_first_offset;
	added->first_offset = entry->first_offset;
	return true;
}

static bool (*const add_functions[MODEL_TABLE_END])(struct converted *, void *) = {
	[MODEL_TABLE_PROCESSES] = converted_add_process,
	[MODEL_TABLE_TRACKS] = add_track,
	[MODEL_TABLE_SPANS] = converted_add_span,
	[MODEL_TABLE_STEPS] = converted_add_step,
	[MODEL_TABLE_SERIES] = add_series,
	[MODEL_TABLE_VALUES] = converted_add_value,
	[MODEL_TABLE_MEMORY] = converted_add_memory,
	[MODEL_TABLE_OWNERS] = add_owner,
	[MODEL_TABLE_READINGS] = add_reading,
	[MODEL_TABLE_MARKS] = converted_add_mark,
	[MODEL_TABLE_STACKS] = converted_add_stack,
	[MODEL_TABLE_ARGS] = converted_add_arg,
	[MODEL_TABLE_LINKS] = converted_add_link,
	[MODEL_TABLE_SAMPLES] = add_sample,
	[MODEL_TABLE_META] = add_meta,
	[MODEL_TABLE_LEDGER] = add_ledger,
	[MODEL_TABLE_SEGMENTS] = add_segment,
};

/* ---- rows of any table ---- */

/* Called after the processes of the file are in the model and before anything with a time. Without a wall time on both
 * sides, times are not shifted. */
static void settle_time(struct converted *converted)
{
	struct model *model = converted->model;
	uint32_t first = converted->first.processes;
	int64_t model_wall = wall_time(model, 0, first), wall = wall_time(model, first, model->processes_count);
	if (converted->is_settled)
		return;
	converted->is_settled = true;
	converted->shift_ns = model_wall && wall ? wall - model_wall : 0;
	for (uint32_t i = first; i < model->processes_count; i++) {
		struct process *process = &model->processes[i];
		bool fits = place_time(converted, &process->first_ns) && place_time(converted, &process->last_ns);
		process->has_times &= fits;
		if (process->has_lost_memory && !place_time(converted, &process->lost_memory_ns))
			process->lost_memory_ns = INT64_MIN;
		process->realtime_offset_ns -= process->realtime_offset_ns ? converted->shift_ns : 0;
	}
}

static void take_strings(struct converted *converted, const struct stepscope_rows *head, const uint8_t *data,
                         size_t bytes)
{
	const uint8_t *text = data + 4 * (size_t)head->rows, *end = data + bytes;
	if (head->rows > bytes / 4 || head->first != converted->string_count)
		return;
	if (converted->string_count + head->rows > converted->string_capacity) {
		converted->string_capacity = 2 * (converted->string_count + head->rows);
		converted->strings = memory_resize(converted->strings, converted->string_capacity,
		                                   sizeof *converted->strings);
	}
	for (uint32_t i = 0; i < head->rows; i++) {
		uint32_t length;
		memcpy(&length, data + 4 * (size_t)i, 4);
		if (length > (size_t)(end - text))
			return;
		converted->strings[converted->string_count++] = length ? intern_add_n(&converted->model->strings,
		                                                                      (const char *)text, length)
		                                                       : 0;
		text += length;
	}
}

struct converted_column {
	const uint8_t *at;
	struct model_field field;
};

/* Finds the columns of the block that this version knows, at most one per field. Returns 0 if the block makes no
 * sense. */
static uint32_t find_columns(const struct stepscope_rows *head, const uint8_t *data, size_t bytes,
                             const struct model_field *fields, struct converted_column *columns)
{
	const uint8_t *widths = data, *at = data + head->fields;
	uint32_t count = 0;
	if (head->fields > bytes || head->fields > MODEL_FIELDS_MAX)
		return 0;
	for (uint32_t i = 0; i < head->fields; i++) {
		size_t length = (size_t)widths[i] * head->rows;
		if (length > (size_t)(data + bytes - at))
			return 0;
		if (fields[count].bytes == widths[i] && count == i)
			columns[count] = (struct converted_column){at, fields[count]}, count++;
		at += length;
	}
	return count;
}

/* Normalises bools: in the file they may be any byte; a C bool is 0 or 1. */
static void copy_field(const struct converted *converted, char *row, const struct converted_column *column,
                       uint32_t number)
{
	const struct model_field *field = &column->field;
	char *to = row + field->offset;
	memcpy(to, column->at + (size_t)number * field->bytes, field->bytes);
	if (field->is_bool)
		*to = *to != 0;
	if (!field->is_string)
		return;
	uint32_t string;
	memcpy(&string, to, 4);
	string = string < converted->string_count ? converted->strings[string] : 0;
	memcpy(to, &string, 4);
}

static bool on_rows(void *context, const uint8_t *data, uint32_t bytes)
{
	struct converted *converted = context;
	struct stepscope_rows head;
	struct converted_column columns[MODEL_FIELDS_MAX];
	union {
		uint64_t align;
		char bytes[512];
	} row;
	converted->read_bytes += bytes;
	if (bytes < sizeof head)
		return true;
	memcpy(&head, data, sizeof head);
	if (head.table == MODEL_TABLE_STRINGS) {
		take_strings(converted, &head, data + sizeof head, bytes - sizeof head);
		return true;
	}
	if (head.table != MODEL_TABLE_PROCESSES)
		settle_time(converted);
	const struct model_field *fields = model_table_fields(head.table);
	uint32_t count = fields ? find_columns(&head, data + sizeof head, bytes - sizeof head, fields, columns) : 0;
	converted->owner = head.owner;
	for (uint32_t i = 0; i < head.rows && count; i++) {
		memset(&row, 0, model_table_row_bytes(head.table));
		for (uint32_t k = 0; k < count; k++)
			copy_field(converted, row.bytes, &columns[k], i);
		converted->refused += !add_functions[head.table](converted, &row);
	}
	return true;
}

/* ---- the importer ---- */

bool converted_begins(const char *head, size_t length)
{
	struct stepscope_segment_header header;
	if (length < sizeof header || memcmp(head, STEPSCOPE_SEGMENT_MAGIC, 8) != 0)
		return false;
	memcpy(&header, head, sizeof header);
	return header.flags & STEPSCOPE_SEGMENT_CONVERTED;
}

bool converted_is_file(const char *path)
{
	char head[sizeof(struct stepscope_segment_header)];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t length = fd < 0 ? -1 : read(fd, head, sizeof head);
	if (fd >= 0)
		close(fd);
	return length > 0 && converted_begins(head, (size_t)length);
}

static bool converted_takes(const char *name, const char *head, size_t length)
{
	return converted_begins(head, length);
}

static bool converted_recognises(const char *path, bool is_directory, const char *head, size_t length)
{
	(void)path;
	return !is_directory && converted_begins(head, length);
}

static void converted_note_damage(struct converted *converted, const struct segment_stats *stats, const char *name)
{
	struct model *model = converted->model;
	if (stats->damaged_bytes)
		model_add_ledger(model, LEDGER_DAMAGED, MODEL_NONE, name, stats->damaged_bytes,
		                 "bytes could not be read and were skipped");
	if (stats->torn_bytes || !stats->is_closed)
		model_add_ledger(model, LEDGER_TORN_TAIL, MODEL_NONE, name, stats->torn_bytes,
		                 "bytes from the last block on, which is cut off, were not read");
	if (converted->refused)
		model_add_ledger(model, LEDGER_DAMAGED, MODEL_NONE, name, converted->refused,
		                 "rows that refer to missing data were left out");
}

/* Rows are not in order of time, so anything of any time may be missing. */
static void note_lost_memory(struct converted *converted, const struct segment_stats *stats)
{
	struct model *model = converted->model;
	bool is_whole = !stats->damaged_bytes && !stats->torn_bytes && stats->is_closed && !converted->refused;
	for (uint32_t i = converted->first.memory; i < model->memory_count && !is_whole; i++)
		if (i == converted->first.memory || model->memory[i].process != model->memory[i - 1].process)
			model_lose_memory(model, model->memory[i].process, INT64_MIN,
			                  "the file is damaged or cut off: its allocations and frees are incomplete");
}

static enum status converted_load(const char *path, const struct model_filter *filter, struct model *model,
                                  struct error *err)
{
	struct converted converted = {.model = model, .first = model_place_here(model)};
	struct segment_visitor visitor = {.context = &converted, .rows = on_rows};
	struct segment_stats stats;
	(void)filter;
	enum status status = segment_read(path, &visitor, &stats, err);
	free(converted.strings);
	free(converted.series);
	free(converted.subjects);
	if (status != STATUS_OK)
		return status;
	settle_time(&converted);
	if (model->processes_count == converted.first.processes)
		return error_set(err, STATUS_INPUT, "'%s' has no usable data", path);
	converted_note_damage(&converted, &stats, file_name_of(path));
	note_lost_memory(&converted, &stats);
	return STATUS_OK;
}

const struct importer importer_converted = {
	.name = "converted",
	.kind = "a recording made by 'stepscope convert'",
	.begins = converted_takes,
	.has_steps = true,
	.recognises = converted_recognises,
	.load = converted_load,
	.is_rank = true,
};
