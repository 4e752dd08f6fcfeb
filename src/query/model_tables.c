/* SPDX-License-Identifier: Apache-2.0
 *
 * model_tables.c: columns and cells of the model's arrays that SQL can read, other than `spans`. Processes and steps
 * are tables of analyses.
 */
#include "analysis/memory/memory_pool.h"
#include "base/lower_bound.h"
#include "query/modules.h"

#include <string.h>

#define TRACK_COLUMN                                                                                                   \
	{                                                                                                              \
		"track", "INTEGER", "number of the track, as in tracks"                                                \
	}
#define TIME_DEFINITION "time since the recording of its process started"

int64_t query_since_start(const struct model *model, uint32_t process, int64_t time_ns)
{
	int64_t origin_ns = process < model->processes_count ? model->processes[process].origin_ns : 0;

	return (int64_t)((uint64_t)time_ns - (uint64_t)origin_ns);
}

static void result_process(const struct query_source *source, uint32_t process, sqlite3_context *out)
{
	if (process < source->query->report->model->processes_count)
		query_result_text(out, source->processes[process]);
}

static void result_number(sqlite3_context *out, uint32_t number)
{
	if (number != MODEL_NONE)
		sqlite3_result_int64(out, number);
}

/* ---- tracks ---- */

static const struct query_column track_columns[] = {
	TRACK_COLUMN,
	{"process", "TEXT", "rank, or pid"},
	{"name", "TEXT", "name of the thread or stream, as in threads"},
	{"kind", "TEXT", "thread, signal, self, device or other"},
	{"tid", "INTEGER", "id of the thread, or number of the device's stream"},
	{"device", "INTEGER", "number of the device"},
	{"is_main", "INTEGER", "1 for the main thread"},
	{"spans", "INTEGER", "number of its spans"},
	{NULL, NULL, NULL},
};

static uint32_t track_count(const struct model *model)
{
	return model->tracks_count;
}

static void track_cell(const struct query_source *source, uint32_t row, int column, sqlite3_context *out)
{
	static const char *const kinds[] = {"thread", "signal", "self", "device", "other"};
	const struct track *track = source->query->report->model->tracks[row];

	switch (column) {
	case 0:
		sqlite3_result_int64(out, row);
		break;
	case 1:
		result_process(source, track->process, out);
		break;
	case 2:
		query_result_text(out, source->tracks[row]);
		break;
	case 3:
		query_result_text(out, kinds[track->kind]);
		break;
	case 4:
		sqlite3_result_int64(out, track->tid);
		break;
	case 5:
		if (track->device >= 0)
			sqlite3_result_int(out, track->device);
		break;
	case 6:
		sqlite3_result_int(out, track->is_main);
		break;
	default:
		sqlite3_result_int64(out, track->span_count);
	}
}

/* ---- links ---- */

static const struct query_column link_columns[] = {
	{"kind", "TEXT",
         "launch (from a call to its work on a device), backward (from a forward to its "
         "backward) or other"},
	{"number", "INTEGER", "number that both ends share"},
	{"from_track", "INTEGER", "track of the span at its start; NULL if that span is missing"},
	{"from_span", "INTEGER", "span of that track"},
	{"to_track", "INTEGER", "track of the span at its end; NULL if that span is missing"},
	{"to_span", "INTEGER", "span of that track"},
	{NULL, NULL, NULL},
};

static uint32_t link_count(const struct model *model)
{
	return model->links_count;
}

static void link_cell(const struct query_source *source, uint32_t row, int column, sqlite3_context *out)
{
	const struct model_link *link = &source->query->report->model->links[row];

	switch (column) {
	case 0:
		query_result_text(out, link->kind == STEPSCOPE_LINK_LAUNCH     ? "launch"
		                       : link->kind == STEPSCOPE_LINK_BACKWARD ? "backward"
		                                                               : "other");
		break;
	case 1:
		sqlite3_result_int64(out, (sqlite3_int64)link->number);
		break;
	case 2:
		result_number(out, link->from_track);
		break;
	case 3:
		result_number(out, link->from_row);
		break;
	case 4:
		result_number(out, link->to_track);
		break;
	default:
		result_number(out, link->to_row);
	}
}

/* ---- arguments ---- */

static const struct query_column arg_columns[] = {
	TRACK_COLUMN,
	{"span", "INTEGER", "span of that track"},
	{"key", "TEXT", "name of the argument"},
	{"value", "", "number or text"},
	{NULL, NULL, NULL},
};

static uint32_t arg_count(const struct model *model)
{
	return model->args_count;
}

static void arg_value(const struct model *model, const struct span_arg *arg, sqlite3_context *out)
{
	switch (arg->type) {
	case STEPSCOPE_ARG_F64:
		sqlite3_result_double(out, arg->f64);
		break;
	case STEPSCOPE_ARG_SYMBOL:
		query_result_text(out, model_text(model, arg->text));
		break;
	default: /* a pointer or a number above INT64_MAX wraps, because SQL integers are signed */
		sqlite3_result_int64(out, arg->i64);
	}
}

static void arg_cell(const struct query_source *source, uint32_t row, int column, sqlite3_context *out)
{
	const struct model *model = source->query->report->model;
	const struct span_arg *arg = &model->args[row];

	switch (column) {
	case 0:
		sqlite3_result_int64(out, arg->track);
		break;
	case 1:
		sqlite3_result_int64(out, arg->row);
		break;
	case 2:
		query_result_string(out, model, arg->key);
		break;
	default:
		arg_value(model, arg, out);
	}
}

/* ---- Python frames ---- */

static const struct query_column frame_columns[] = {
	{"stack", "INTEGER", "number of the stack whose innermost frame this is"},
	{"caller", "INTEGER", "stack of the caller; NULL if it has no caller"},
	{"function", "TEXT", "name of the function"},
	{"file", "TEXT", "file of the function"},
	{"line", "INTEGER", "line in the file"},
	{NULL, NULL, NULL},
};

static uint32_t frame_count(const struct model *model)
{
	return model->stacks_count;
}

static void frame_cell(const struct query_source *source, uint32_t row, int column, sqlite3_context *out)
{
	const struct model *model = source->query->report->model;
	const struct stack_node *frame = &model->stacks[row];

	switch (column) {
	case 0:
		sqlite3_result_int64(out, row);
		break;
	case 1:
		if (frame->parent)
			sqlite3_result_int64(out, frame->parent);
		break;
	case 2:
		query_result_string(out, model, frame->frame);
		break;
	case 3:
		query_result_string(out, model, frame->file);
		break;
	default:
		if (frame->line)
			sqlite3_result_int64(out, frame->line);
	}
}

/* ---- memory ---- */

static const struct query_column memory_columns[] = {
	{"process", "TEXT", "rank, or pid"},
	{"time_ns", "INTEGER", TIME_DEFINITION},
	TRACK_COLUMN,
	{"span", "INTEGER", "innermost span of that track at that time"},
	{"device", "INTEGER", "number of the device; NULL for host memory"},
	{"address", "INTEGER", "address of the memory"},
	{"bytes", "INTEGER", "size of the allocation; a free has the size of its allocation"},
	{"is_free", "INTEGER", "1 for a free, 0 for an allocation"},
	{"category", "TEXT", "category of the memory, as in the table memory"},
	{"lifetime_ns", "INTEGER", "time from the allocation to its free"},
	{"stack", "INTEGER", "stack that asked for it, as in frames; NULL if it is the stack of its span or unknown"},
	{NULL, NULL, NULL},
};

static uint32_t memory_count(const struct model *model)
{
	return model->memory_count;
}

static void memory_lifetime(const struct model *model, const struct memory_event *event, sqlite3_context *out)
{
	/* if the next allocation at the address ended it, the time of its free is unknown */
	if (!event->is_free && event->partner < model->memory_count && model->memory[event->partner].is_free)
		sqlite3_result_int64(out, model->memory[event->partner].time_ns - event->time_ns);
}

static void memory_cell(const struct query_source *source, uint32_t row, int column, sqlite3_context *out)
{
	const struct model *model = source->query->report->model;
	const struct memory_event *event = &model->memory[row];

	switch (column) {
	case 0:
		result_process(source, event->process, out);
		break;
	case 1:
		sqlite3_result_int64(out, query_since_start(model, event->process, event->time_ns));
		break;
	case 2:
		result_number(out, event->track);
		break;
	case 3:
		result_number(out, event->row);
		break;
	case 4:
		if (event->device >= 0)
			sqlite3_result_int(out, event->device);
		break;
	case 5:
		sqlite3_result_int64(out, (sqlite3_int64)event->address);
		break;
	case 6:
		if (event->has_bytes)
			sqlite3_result_int64(out, bytes_that_fit(event->bytes));
		break;
	case 7:
		sqlite3_result_int(out, event->is_free);
		break;
	case 8:
		query_result_text(out, memory_category_name(event->category));
		break;
	case 9:
		memory_lifetime(model, event, out);
		break;
	default:
		if (event->stack)
			sqlite3_result_int64(out, event->stack);
	}
}

/* ---- segments ---- */

static const struct query_column segment_columns[] = {
	{"process", "TEXT", "rank, or pid"},
	{"device", "INTEGER", "number of the device"},
	{"address", "INTEGER", "start address"},
	{"bytes", "INTEGER", "size of the segment"},
	{"active_bytes", "INTEGER", "bytes in blocks that the program uses"},
	{"requested_bytes", "INTEGER", "bytes that the program requested for these blocks"},
	{"pending_bytes", "INTEGER", "bytes in freed blocks that a stream may still use"},
	{"largest_free_bytes", "INTEGER", "size of the largest free block"},
	{"active_blocks", "INTEGER", "number of blocks that the program uses"},
	{"free_blocks", "INTEGER", "number of free blocks"},
	{"stream", "INTEGER", "stream that may use it"},
	{"pool", "INTEGER",
         "0 for the common pool, otherwise both numbers of a private pool, the first one in the upper 32 bits"},
	{"type", "TEXT", "small or large"},
	{"is_expandable", "INTEGER", "1 if it grows and shrinks"},
	{"stack", "INTEGER", "stack that made the allocator take the segment, as in frames"},
	{NULL, NULL, NULL},
};

static uint32_t segment_count(const struct model *model)
{
	return model->segments_count;
}

static void segment_cell(const struct query_source *source, uint32_t row, int column, sqlite3_context *out)
{
	const struct model *model = source->query->report->model;
	const struct memory_segment *segment = &model->segments[row];
	const uint64_t numbers[] = {
		[2] = segment->address,         [3] = segment->bytes,          [4] = segment->active_bytes,
		[5] = segment->requested_bytes, [6] = segment->pending_bytes,  [7] = segment->largest_free_bytes,
		[8] = segment->active_blocks,   [9] = segment->free_blocks,    [10] = segment->stream,
		[11] = segment->pool,           [13] = segment->is_expandable, [14] = segment->stack,
	};

	if (column == 0)
		result_process(source, segment->process, out);
	else if (column == 1)
		sqlite3_result_int(out, segment->device);
	else if (column == 12)
		query_result_string(out, model, segment->type);
	else if (column != 14 || segment->stack)
		sqlite3_result_int64(out, (sqlite3_int64)numbers[column]);
}

/* ---- counters and metrics ---- */

static const struct query_column value_columns[] = {
	{"process", "TEXT", "rank, or pid"},
	{"name", "TEXT", "name of the counter or metric"},
	{"is_metric", "INTEGER", "1 for a metric, such as loss"},
	{"time_ns", "INTEGER", TIME_DEFINITION},
	{"step", "INTEGER", "number of the step it belongs to"},
	{"value", "REAL", "value"},
	{"subject", "TEXT", "GPU or other subject of the value; NULL for the process"},
	{"unit", "TEXT", "unit of the value; NULL if it has none or the name contains it"},
	{NULL, NULL, NULL},
};

static uint32_t value_count(const struct model *model)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < model->series_count; i++)
		count += model->series[i]->count;
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* Returns the first series that ends after the row. */
static uint32_t series_of(const struct query_source *source, uint32_t row)
{
	return LOWER_BOUND(source->series_ends, source->query->report->model->series_count, item, *item <= row);
}

static void value_cell(const struct query_source *source, uint32_t row, int column, sqlite3_context *out)
{
	const struct model *model = source->query->report->model;
	uint32_t number = series_of(source, row);
	const struct value_series *series = model->series[number];
	uint32_t index = row - (source->series_ends[number] - series->count);

	switch (column) {
	case 0:
		result_process(source, series->process, out);
		break;
	case 1:
		query_result_string(out, model, series->name);
		break;
	case 2:
		sqlite3_result_int(out, series->is_metric);
		break;
	case 3:
		sqlite3_result_int64(out, query_since_start(model, series->process, series->time_ns[index]));
		break;
	case 4:
		if (series->step[index] >= 0)
			sqlite3_result_int64(out, model->steps[series->step[index]].number);
		break;
	case 5:
		sqlite3_result_double(out, series->value[index]);
		break;
	case 6:
		if (series->subject)
			query_result_string(out, model, series->subject);
		break;
	default:
		if (series->unit)
			query_result_string(out, model, series->unit);
	}
}

/* ---- samples ---- */

static const struct query_column sample_columns[] = {
	TRACK_COLUMN,
	{"time_ns", "INTEGER", TIME_DEFINITION "; NULL if the file has no times"},
	{"stack", "INTEGER", "stack of the sample, as in frames"},
	{"name", "TEXT", "kind of the sample, such as time"},
	{"weight", "INTEGER", "weight of the sample: time, bytes or a count"},
	{NULL, NULL, NULL},
};

static uint32_t sample_count(const struct model *model)
{
	return model->samples_count;
}

/* Returns false for samples without a time: of profiles that only count, or of files without times. */
static bool has_time(const struct model *model, const struct sample *sample)
{
	if (sample->track >= model->tracks_count || model->tracks[sample->track]->process >= model->processes_count)
		return true;
	const struct process *process = &model->processes[model->tracks[sample->track]->process];
	return process->role != STEPSCOPE_ROLE_IMPORTED ||
	       (process->has_times && strcmp(model_text(model, sample->name), "time") == 0);
}

static void sample_cell(const struct query_source *source, uint32_t row, int column, sqlite3_context *out)
{
	const struct model *model = source->query->report->model;
	const struct sample *sample = &model->samples[row];

	switch (column) {
	case 0:
		result_number(out, sample->track);
		break;
	case 1:
		if (has_time(model, sample))
			sqlite3_result_int64(out, query_since_start(model,
			                                            sample->track < model->tracks_count
			                                                    ? model->tracks[sample->track]->process
			                                                    : MODEL_NONE,
			                                            sample->time_ns));
		break;
	case 2:
		if (sample->stack)
			sqlite3_result_int64(out, sample->stack);
		break;
	case 3:
		query_result_string(out, model, sample->name);
		break;
	default:
		sqlite3_result_int64(out, (sqlite3_int64)sample->weight);
	}
}

/* ---- readings ---- */

static const struct query_column reading_columns[] = {
	TRACK_COLUMN,
	{"process", "TEXT", "rank, or pid"},
	{"time_ns", "INTEGER", "time of the reading, since the recording of its process started"},
	{"cpu_ns", "INTEGER", "CPU time of the thread since its start"},
	{"wait_for_processor_ns", "INTEGER",
         "time in which the thread could run but other threads had the processors, since its start; NULL: not measured"},
	{"process_cpu_ns", "INTEGER", "CPU time of all threads of the process; NULL where no step ended"},
	{NULL, NULL, NULL},
};

static uint32_t reading_count(const struct model *model)
{
	return model->readings_count;
}

static void reading_cell(const struct query_source *source, uint32_t row, int column, sqlite3_context *out)
{
	const struct model *model = source->query->report->model;
	const struct thread_reading *reading = &model->readings[row];
	const uint64_t totals[] = {reading->cpu_ns, reading->wait_ns, reading->process_ns};
	uint32_t process = model->tracks[reading->track]->process;

	if (column == 0)
		result_number(out, reading->track);
	else if (column == 1)
		result_process(source, process, out);
	else if (column == 2)
		sqlite3_result_int64(out, query_since_start(model, process, reading->time_ns));
	else if (totals[column - 3] <= INT64_MAX)
		sqlite3_result_int64(out, (sqlite3_int64)totals[column - 3]);
}

const struct query_array query_arrays[] = {
	{"tracks", track_columns, track_count, track_cell},
	{"links", link_columns, link_count, link_cell},
	{"span_args", arg_columns, arg_count, arg_cell},
	{"frames", frame_columns, frame_count, frame_cell},
	{"memory_events", memory_columns, memory_count, memory_cell},
	{"allocator_segments", segment_columns, segment_count, segment_cell},
	{"series_values", value_columns, value_count, value_cell},
	{"samples", sample_columns, sample_count, sample_cell},
	{"thread_readings", reading_columns, reading_count, reading_cell},
	{0},
};

const struct query_array *query_array_find(const char *name)
{
	for (const struct query_array *array = query_arrays; array->name; array++) {
		if (!strcmp(array->name, name))
			return array;
	}
	return NULL;
}
