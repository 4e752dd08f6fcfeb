/* SPDX-License-Identifier: Apache-2.0
 *
 * converted.c: recordings that `stepscope convert` made: the model as it was, out of ROWS blocks (docs/file-format.md). Nothing in them is
 * trusted: a row that refers to what is not there is left out and counted.
 */
#include "importers/importer.h"
#include "importers/text_lines.h"

#include "base/memory.h"
#include "format/segment.h"
#include "model/model_tables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES_MAX 1000000u
#define TRACKS_MAX 1000000u

struct converted {
	struct model *model;
	uint32_t *strings; /* of the model, by number in the file */
	uint32_t string_count, string_capacity;
	struct series_row *series;
	struct value_series **subjects; /* of the model, by number in the file; NULL: of a process */
	uint32_t series_count;
	uint64_t refused; /* rows */
	uint32_t owner;   /* of the rows that are taken */
	uint64_t read_bytes;
};

static bool has_process(const struct converted *converted, uint32_t process)
{
	return process < converted->model->processes_count;
}

static bool may_have_process(const struct converted *converted, uint32_t process)
{
	return process == MODEL_NONE || has_process(converted, process);
}

static bool has_row(const struct converted *converted, uint32_t track, uint32_t row)
{
	return track < converted->model->tracks_count && row < converted->model->tracks[track]->span_count;
}

static bool may_have_row(const struct converted *converted, uint32_t track, uint32_t row)
{
	return row == MODEL_NONE ? track == MODEL_NONE || track < converted->model->tracks_count
	                         : has_row(converted, track, row);
}

static bool may_have_stack(const struct converted *converted, uint32_t stack)
{
	return stack < converted->model->stacks_count + !converted->model->stacks_count;
}

/* Whatever an importer can have made of a file, and ends of that. Sums of two do not overflow. */
static bool is_time(int64_t time_ns)
{
	return time_ns <= IMPORTED_TIME_MAX + IMPORTED_DURATION_MAX && time_ns >= IMPORTED_TIME_MIN - IMPORTED_BASE_MAX;
}

/* ---- one function per table; false: the row cannot be ---- */

static bool add_process(struct converted *converted, const void *bytes)
{
	struct model *model = converted->model;
	const struct process *process = bytes;
	if (!is_time(process->first_ns) || !is_time(process->last_ns) || !is_time(process->realtime_offset_ns) ||
	    process->role > STEPSCOPE_ROLE_IMPORTED || model->processes_count >= PROCESSES_MAX)
		return false;
	uint32_t number = model_add_process(model);
	model->processes[number] = *process;
	return true;
}

static bool add_track(struct converted *converted, const void *bytes)
{
	const struct track_row *row = bytes;
	if (!has_process(converted, row->process) || row->kind > TRACK_OTHER ||
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

static bool add_span(struct converted *converted, const void *bytes)
{
	const struct span_row *span = bytes;
	struct model *model = converted->model;
	uint32_t number = converted->owner, i, p;
	if (number >= model->tracks_count || span->kind >= SPAN_KIND_COUNT || span->dur_ns < 0 ||
	    !is_time(span->start_ns) || !is_time(span->dur_ns) || !may_have_stack(converted, span->stack))
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
	if (span->parent == MODEL_NONE ||
	    span->parent >= row) /* else where both have no length it is not told by times */
		return true;
	const struct span_chunk *around = track_chunk(track, span->parent, &p);
	if (around->start_ns[p] <= chunk->start_ns[i] &&
	    around->start_ns[p] + around->dur_ns[p] >= chunk->start_ns[i] + chunk->dur_ns[i]) {
		chunk->parent[i] = span->parent;
		chunk->depth[i] = (uint16_t)(around->depth[p] + 1);
	}
	return true;
}

static bool add_step(struct converted *converted, const void *bytes)
{
	const struct model_step *step = bytes;
	if (!has_process(converted, step->process) || !may_have_row(converted, step->track, step->row) ||
	    step->end_ns < step->start_ns || !is_time(step->start_ns) || !is_time(step->end_ns) ||
	    step->capture > STEPSCOPE_CAPTURE_SAVE)
		return false;
	*model_add_step(converted->model) = *step;
	return true;
}

static bool add_series(struct converted *converted, const void *bytes)
{
	const struct series_row *row = bytes;
	converted->series = memory_resize(converted->series, (size_t)converted->series_count + 1,
	                                  sizeof *converted->series);
	converted->subjects = memory_resize(converted->subjects, (size_t)converted->series_count + 1,
	                                    sizeof(struct value_series *));
	bool is_good = has_process(converted, row->process);
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

static bool add_value(struct converted *converted, const void *bytes)
{
	const struct value_row *row = bytes;
	if (converted->owner >= converted->series_count)
		return false;
	const struct series_row *series = &converted->series[converted->owner];
	if (!has_process(converted, series->process) || !is_time(row->time_ns))
		return false;
	if (converted->subjects[converted->owner])
		model_series_add(converted->model, converted->subjects[converted->owner], row->time_ns, row->value);
	else
		model_add_value(converted->model, series->process, series->name, series->is_metric, row->time_ns,
		                row->value);
	return true;
}

static bool add_memory(struct converted *converted, const void *bytes)
{
	const struct memory_event *event = bytes;
	if (!has_process(converted, event->process) || !may_have_row(converted, event->track, event->row) ||
	    !is_time(event->time_ns) || !may_have_stack(converted, event->stack))
		return false;
	model_add_memory(converted->model, event);
	return true;
}

static bool add_owner(struct converted *converted, const void *bytes)
{
	const struct memory_owner *owner = bytes;
	if (!has_process(converted, owner->process) || !may_have_row(converted, owner->track, MODEL_NONE) ||
	    !is_time(owner->time_ns))
		return false;
	model_add_owner(converted->model, owner);
	return true;
}

static bool add_segment(struct converted *converted, const void *bytes)
{
	const struct memory_segment *segment = bytes;
	if (!has_process(converted, segment->process) || !may_have_stack(converted, segment->stack))
		return false;
	model_add_segment(converted->model, segment);
	return true;
}

static bool add_mark(struct converted *converted, const void *bytes)
{
	const struct mark *mark = bytes;
	if (mark->track >= converted->model->tracks_count || !is_time(mark->time_ns))
		return false;
	model_add_mark(converted->model, mark->track, mark->time_ns, mark->name);
	return true;
}

static bool add_stack(struct converted *converted, const void *bytes)
{
	const struct stack_node *node = bytes;
	if (node->parent >= converted->model->stacks_count)
		return false;
	model_add_frame(converted->model, node);
	return true;
}

static bool add_arg(struct converted *converted, const void *bytes)
{
	struct span_arg arg = *(const struct span_arg *)bytes;
	if (!has_row(converted, arg.track, arg.row) || arg.type > STEPSCOPE_ARG_POINTER)
		return false;
	if (arg.type == STEPSCOPE_ARG_SYMBOL)
		arg.u64 = (uint32_t)arg.u64 < converted->string_count ? converted->strings[(uint32_t)arg.u64] : 0;
	model_span_arg(converted->model, &arg);
	return true;
}

static bool add_link(struct converted *converted, const void *bytes)
{
	const struct model_link *link = bytes;
	if (link->kind > STEPSCOPE_LINK_OTHER || !may_have_row(converted, link->from_track, link->from_row) ||
	    !may_have_row(converted, link->to_track, link->to_row))
		return false;
	model_add_link(converted->model, link);
	return true;
}

static bool add_sample(struct converted *converted, const void *bytes)
{
	const struct sample *sample = bytes;
	if (sample->track >= converted->model->tracks_count || !is_time(sample->time_ns) ||
	    sample->stack >= converted->model->stacks_count)
		return false;
	model_add_sample(converted->model, sample);
	return true;
}

static bool add_meta(struct converted *converted, const void *bytes)
{
	const struct model_meta *meta = bytes;
	if (!may_have_process(converted, meta->process))
		return false;
	model_add_meta(converted->model, meta->process, model_text(converted->model, meta->key),
	               model_text(converted->model, meta->value));
	return true;
}

static bool add_ledger(struct converted *converted, const void *bytes)
{
	const struct ledger_entry *entry = bytes;
	struct model *model = converted->model;
	if (!may_have_process(converted, entry->process) || entry->kind > LEDGER_OTHER)
		return false;
	struct ledger_entry *added = model_add_ledger(model, entry->kind, entry->process,
	                                              model_text(model, entry->where), entry->count,
	                                              model_text(model, entry->text));
	added->has_first_offset = entry->has_first_offset;
	added->first_offset = entry->first_offset;
	return true;
}

static bool (*const add_functions[MODEL_TABLE_END])(struct converted *, const void *) = {
	[MODEL_TABLE_PROCESSES] = add_process, [MODEL_TABLE_TRACKS] = add_track,  [MODEL_TABLE_SPANS] = add_span,
	[MODEL_TABLE_STEPS] = add_step,        [MODEL_TABLE_SERIES] = add_series, [MODEL_TABLE_VALUES] = add_value,
	[MODEL_TABLE_MEMORY] = add_memory,     [MODEL_TABLE_OWNERS] = add_owner,  [MODEL_TABLE_MARKS] = add_mark,
	[MODEL_TABLE_STACKS] = add_stack,      [MODEL_TABLE_ARGS] = add_arg,      [MODEL_TABLE_LINKS] = add_link,
	[MODEL_TABLE_SAMPLES] = add_sample,    [MODEL_TABLE_META] = add_meta,     [MODEL_TABLE_LEDGER] = add_ledger,
	[MODEL_TABLE_SEGMENTS] = add_segment,
};

/* ---- rows of any table ---- */

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

struct column {
	const uint8_t *at;
	struct model_field field;
};

/* Which columns of the block we know, at most one per field; 0: the block makes no sense. */
static uint32_t find_columns(const struct stepscope_rows *head, const uint8_t *data, size_t bytes,
                             const struct model_field *fields, struct column *columns)
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
			columns[count] = (struct column){at, fields[count]}, count++;
		at += length;
	}
	return count;
}

/* A bool in the file may be any byte; ours is 0 or 1. */
static void copy_field(const struct converted *converted, char *row, const struct column *column, uint32_t number)
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
	struct column columns[MODEL_FIELDS_MAX];
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

static bool recognises(const char *path, bool is_directory, const char *head, size_t length)
{
	struct stepscope_segment_header header;
	(void)path;
	if (is_directory || length < sizeof header || memcmp(head, STEPSCOPE_SEGMENT_MAGIC, 8) != 0)
		return false;
	memcpy(&header, head, sizeof header);
	return header.flags & STEPSCOPE_SEGMENT_CONVERTED;
}

static void note_damage(struct converted *converted, const struct segment_stats *stats, const char *name)
{
	struct model *model = converted->model;
	if (stats->damaged_bytes)
		model_add_ledger(model, LEDGER_DAMAGED, MODEL_NONE, name, stats->damaged_bytes,
		                 "bytes could not be read and were skipped");
	if (stats->torn_bytes || !stats->is_closed)
		model_add_ledger(model, LEDGER_TORN_TAIL, MODEL_NONE, name, stats->torn_bytes,
		                 "bytes of a last block that was cut off, and what followed it");
	if (converted->refused)
		model_add_ledger(model, LEDGER_DAMAGED, MODEL_NONE, name, converted->refused,
		                 "rows that refer to what is not in the file were left out");
}

static enum status load(const char *path, const struct model_filter *filter, struct model *model, struct error *err)
{
	struct converted converted = {.model = model};
	struct segment_visitor visitor = {.context = &converted, .rows = on_rows};
	struct segment_stats stats;
	(void)filter;
	enum status status = segment_read(path, &visitor, &stats, err);
	free(converted.strings);
	free(converted.series);
	free(converted.subjects);
	if (status != STATUS_OK)
		return status;
	if (!model->processes_count)
		return error_set(err, STATUS_INPUT, "'%s' has nothing that can be used", path);
	note_damage(&converted, &stats, file_name_of(path));
	return STATUS_OK;
}

const struct importer importer_converted = {
	.name = "converted",
	.recognises = recognises,
	.load = load,
};
