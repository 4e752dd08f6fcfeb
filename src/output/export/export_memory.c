/* SPDX-License-Identifier: Apache-2.0
 *
 * export_memory.c: the output of torch.profiler's export_memory_timeline(), for one device of one process:
 *
 *     NAME.raw.json.gz   [[ns, action, bytes, category], ...]; action 1 existed before (ns -1), 2 created, 4 freed
 *                        (bytes negative)
 *     NAME.html          the plot, drawn as SVG in torch's colours
 *     anything else      [[us, ...], [[0, bytes of category 0, ..., of category 7], ...]], one entry of each list per
 *                        microsecond with a change
 *
 * Times are wall time. Tensors have no versions in the model, so action 3 does not occur.
 */
#include "base/memory.h"
#include "output/export/compress.h"
#include "output/export/export_common.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

enum {
	TORCH_CATEGORIES = 8
};

enum torch_action {
	ACTION_PREEXISTING = 1,
	ACTION_CREATE = 2,
	ACTION_DESTROY = 4
};

struct timeline {
	const struct model *model;
	uint32_t process;
	int16_t device;
	int64_t offset_ns; /* added to a time, gives wall time */
};

/* Returns torch's number of the category; 7, Unknown, if torch has no such category. */
static int torch_category(uint8_t category)
{
	static const int8_t numbers[] = {
		[STEPSCOPE_MEMORY_OTHER] = 7,      [STEPSCOPE_MEMORY_PARAMETER] = 0, [STEPSCOPE_MEMORY_GRADIENT] = 5,
		[STEPSCOPE_MEMORY_OPTIMIZER] = 1,  [STEPSCOPE_MEMORY_INPUT] = 2,     [STEPSCOPE_MEMORY_TEMPORARY] = 3,
		[STEPSCOPE_MEMORY_ACTIVATION] = 4, [STEPSCOPE_MEMORY_AUTOGRAD] = 6,  [STEPSCOPE_MEMORY_BUFFER] = 7,
	};

	return category < sizeof(numbers) ? numbers[category] : 7;
}

/* ---- changes in order of time ---- */

/* time_ns -1: the allocation existed before. */
typedef void (*use_change)(void *context, int64_t time_ns, enum torch_action action, int64_t bytes, int category);

static bool export_memory_is_of(const struct timeline *timeline, const struct memory_event *event)
{
	return event->process == timeline->process && event->device == timeline->device &&
	       export_knows_total(timeline->model, event);
}

static bool was_before(const struct timeline *timeline, const struct memory_event *event)
{
	return event->is_found && event->time_ns <= timeline->model->processes[timeline->process].first_ns;
}

static int64_t size_of(const struct memory_event *event)
{
	return bytes_that_fit((wide_bytes)event->bytes);
}

static void use_event(const struct timeline *timeline, const struct memory_event *event, use_change use, void *context)
{
	const struct memory_event *memory = timeline->model->memory;
	uint32_t gone = event->is_free ? event->partner : event->ends;
	int64_t time_ns = event->time_ns + timeline->offset_ns;

	if (gone != MODEL_NONE)
		use(context, time_ns, ACTION_DESTROY, -size_of(&memory[gone]), torch_category(memory[gone].category));
	if (!event->is_free)
		use(context, time_ns, ACTION_CREATE, size_of(event), torch_category(event->category));
}

static void each_change(const struct timeline *timeline, use_change use, void *context)
{
	const struct model *model = timeline->model;

	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];

		if (export_memory_is_of(timeline, event) && was_before(timeline, event))
			use(context, -1, ACTION_PREEXISTING, size_of(event), torch_category(event->category));
	}
	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];

		if (export_memory_is_of(timeline, event) && !was_before(timeline, event))
			use_event(timeline, event, use, context);
	}
}

/* ---- raw ---- */

struct raw {
	struct writer w;
	uint64_t count;
};

static void put_change(void *context, int64_t time_ns, enum torch_action action, int64_t bytes, int category)
{
	struct raw *raw = context;

	writer_printf(&raw->w, "%s[%" PRId64 ", %d, %" PRId64 ", %d]", raw->count++ ? ", " : "", time_ns, (int)action,
	              bytes, category);
}

static uint64_t write_raw(const struct timeline *timeline, struct output *output)
{
	struct raw raw = {.w = writer_begin(output)};

	writer_text(&raw.w, "[");
	each_change(timeline, put_change, &raw);
	writer_text(&raw.w, "]");
	writer_end(&raw.w);
	return raw.count;
}

/* ---- rows: the levels after each microsecond ---- */

struct rows {
	int64_t sizes[TORCH_CATEGORIES];
	int64_t time_us, first_us; /* first_us: time of the first change after the start */
	bool has_row, has_first;
	uint64_t count;
	void (*row)(void *context, const struct rows *rows); /* (optional) */
	void *context;
};

static void end_row(struct rows *rows)
{
	if (!rows->has_row)
		return;
	if (rows->row)
		rows->row(rows->context, rows);
	rows->count++;
}

static void export_memory_add_change(void *context, int64_t time_ns, enum torch_action action, int64_t bytes,
                                     int category)
{
	struct rows *rows = context;
	int64_t time_us = time_ns < 0 ? -1 : time_ns / 1000;

	if (!rows->has_row || time_us != rows->time_us)
		end_row(rows);
	if (!rows->has_first && time_us >= 0)
		rows->first_us = time_us;
	rows->has_first |= time_us >= 0;
	rows->has_row = true;
	rows->time_us = time_us;
	rows->sizes[category] = bytes_that_fit((wide_bytes)rows->sizes[category] + bytes);
}

static void each_row(const struct timeline *timeline, struct rows *rows)
{
	each_change(timeline, export_memory_add_change, rows);
	end_row(rows);
}

static void put_sizes(void *context, const struct rows *rows)
{
	writer_printf(context,
	              "%s[0, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
	              ", %" PRId64 "]",
	              rows->count ? ", " : "", rows->sizes[0], rows->sizes[1], rows->sizes[2], rows->sizes[3],
	              rows->sizes[4], rows->sizes[5], rows->sizes[6], rows->sizes[7]);
}

struct export_memory_times {
	struct writer *w;
	int64_t first_us;
};

static void put_row_time(void *context, const struct rows *rows)
{
	const struct export_memory_times *times = context;

	writer_printf(times->w, "%s%" PRId64, rows->count ? ", " : "",
	              rows->time_us < 0 ? times->first_us : rows->time_us);
}

static uint64_t write_coalesced(const struct timeline *timeline, struct output *output)
{
	struct rows count = {0};
	struct writer w = writer_begin(output);

	each_row(timeline, &count);
	struct export_memory_times times = {&w, count.first_us};
	struct rows time_rows = {.row = put_row_time, .context = &times};
	struct rows size_rows = {.row = put_sizes, .context = &w};

	writer_text(&w, "[[");
	each_row(timeline, &time_rows);
	writer_text(&w, "], [");
	each_row(timeline, &size_rows);
	writer_text(&w, "]]");
	writer_end(&w);
	return count.count;
}

/* ---- the plot ---- */

enum {
	COLUMNS = 1240,
	PLOT_LEFT = 90,
	PLOT_TOP = 70,
	PLOT_HEIGHT = 780,
	TICKS = 8
};

static const struct {
	const char *name, *colour;
	int category;
} torch_legend[TORCH_CATEGORIES] = {
	{"PARAMETER", "darkgreen", 0},
	{"OPTIMIZER_STATE", "goldenrod", 1},
	{"INPUT", "black", 2},
	{"TEMPORARY", "mediumpurple", 3},
	{"ACTIVATION", "red", 4},
	{"GRADIENT", "mediumblue", 5},
	{"AUTOGRAD_DETAIL", "royalblue", 6},
	{"Unknown", "grey", 7},
};

struct export_memory_column { /* of the plot: the largest level in its time, and the last level */
	int64_t sizes[TORCH_CATEGORIES], after[TORCH_CATEGORIES];
	int64_t total;
	bool has_row;
};

struct plot {
	int64_t first_us, last_us;
	int64_t largest;
	struct export_memory_column columns[COLUMNS];
};

static int64_t total_of(const struct rows *rows)
{
	wide_bytes total = 0;

	for (int i = 0; i < TORCH_CATEGORIES; i++)
		total += rows->sizes[i];
	return bytes_that_fit(total);
}

static void note_extent(void *context, const struct rows *rows)
{
	struct plot *plot = context;
	int64_t total = total_of(rows);

	plot->last_us = rows->time_us;
	plot->largest = total > plot->largest ? total : plot->largest;
}

static void note_column(void *context, const struct rows *rows)
{
	struct plot *plot = context;
	int64_t span_us = plot->last_us > plot->first_us ? plot->last_us - plot->first_us : 1;
	int64_t from_us = rows->time_us < plot->first_us ? 0 : rows->time_us - plot->first_us;
	struct export_memory_column
		*column = &plot->columns[(int64_t)((double)from_us / (double)span_us * (COLUMNS - 1))];
	int64_t total = total_of(rows);

	if (!column->has_row || total >= column->total) {
		memcpy(column->sizes, rows->sizes, sizeof(column->sizes));
		column->total = total;
	}
	memcpy(column->after, rows->sizes, sizeof(column->after));
	column->has_row = true;
}

/* Fills columns in which nothing changed. */
static void fill_columns(struct plot *plot)
{
	for (int i = 1; i < COLUMNS; i++) {
		if (plot->columns[i].has_row)
			continue;
		memcpy(plot->columns[i].sizes, plot->columns[i - 1].after, sizeof(plot->columns[i].sizes));
		memcpy(plot->columns[i].after, plot->columns[i - 1].after, sizeof(plot->columns[i].after));
	}
}

static double height_of(const struct plot *plot, const struct export_memory_column *column, int categories)
{
	double sum = 0;

	for (int i = 0; i < categories; i++)
		sum += (double)column->sizes[torch_legend[i].category];
	return PLOT_TOP + PLOT_HEIGHT * (1 - sum / (plot->largest > 0 ? (double)plot->largest * 1.05 : 1));
}

static void put_area(struct writer *w, const struct plot *plot, int layer)
{
	writer_printf(w, "<path fill=\"%s\" fill-opacity=\"0.7\" d=\"M%d %.1f", torch_legend[layer].colour, PLOT_LEFT,
	              height_of(plot, &plot->columns[0], layer));
	for (int i = 0; i < COLUMNS; i++)
		writer_printf(w, "V%.1fH%d", height_of(plot, &plot->columns[i], layer + 1), PLOT_LEFT + i + 1);
	for (int i = COLUMNS; i-- > 0;)
		writer_printf(w, "V%.1fH%d", height_of(plot, &plot->columns[i], layer), PLOT_LEFT + i);
	writer_text(w, "Z\"/>\n");
}

static void put_axes(struct writer *w, const struct plot *plot)
{
	double ms = (double)(plot->last_us - plot->first_us) / 1e3;
	double gigabytes = (double)plot->largest * 1.05 / 1073741824;
	int bottom = PLOT_TOP + PLOT_HEIGHT;

	writer_printf(w, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"black\"/>\n",
	              PLOT_LEFT, PLOT_TOP, COLUMNS, PLOT_HEIGHT);
	for (int i = 0; i <= TICKS; i++) {
		writer_printf(w, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%.4g</text>\n",
		              PLOT_LEFT + COLUMNS * i / TICKS, bottom + 18, ms * i / TICKS);
		writer_printf(w, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.4g</text>\n", PLOT_LEFT - 6,
		              bottom - PLOT_HEIGHT * i / TICKS + 4, gigabytes * i / TICKS);
	}
	writer_printf(w, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">Time (ms)</text>\n", PLOT_LEFT + COLUMNS / 2,
	              bottom + 40);
	writer_printf(
		w,
		"<text x=\"22\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 22 %d)\">Memory (GB)</text>\n",
		PLOT_TOP + PLOT_HEIGHT / 2, PLOT_TOP + PLOT_HEIGHT / 2);
}

static void put_legend(struct writer *w)
{
	for (int i = 0; i < TORCH_CATEGORIES; i++) {
		int y = PLOT_TOP + 20 + 20 * i;

		writer_printf(w,
		              "<rect x=\"%d\" y=\"%d\" width=\"24\" height=\"12\" fill=\"%s\" fill-opacity=\"0.7\"/>\n",
		              PLOT_LEFT + COLUMNS + 12, y - 10, torch_legend[i].colour);
		writer_printf(w, "<text x=\"%d\" y=\"%d\">%s</text>\n", PLOT_LEFT + COLUMNS + 42, y,
		              torch_legend[i].name);
	}
}

static uint64_t write_plot(const struct timeline *timeline, struct output *output)
{
	struct plot *plot = memory_resize(NULL, 1, sizeof(*plot)); /* too large for the stack */
	struct rows extent = {.row = note_extent, .context = plot}, columns = {.row = note_column, .context = plot};
	struct writer w;

	memset(plot, 0, sizeof(*plot));
	each_row(timeline, &extent);
	plot->first_us = extent.first_us;
	each_row(timeline, &columns);
	fill_columns(plot);
	w = writer_begin(output);
	writer_printf(
		&w,
		"<html>\n<head><meta charset=\"utf-8\" /><title>GPU Memory Timeline HTML</title></head>\n<body>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1600\" height=\"960\" font-family=\"sans-serif\" "
		"font-size=\"13\">\n<text x=\"%d\" y=\"30\" text-anchor=\"middle\" font-size=\"16\">Max memory allocated: "
		"%.2f GiB</text>\n<text x=\"%d\" y=\"52\" text-anchor=\"middle\" font-size=\"16\">Max memory reserved: not "
		"measured</text>\n",
		PLOT_LEFT + COLUMNS / 2, (double)plot->largest / 1073741824, PLOT_LEFT + COLUMNS / 2);
	for (int i = 0; i < TORCH_CATEGORIES; i++)
		put_area(&w, plot, i);
	put_axes(&w, plot);
	put_legend(&w);
	writer_text(&w, "</svg>\n</body>\n</html>\n");
	writer_end(&w);
	free(plot);
	return extent.count;
}

/* ---- choice of the device and the process ---- */

/* Parses "cpu", "cuda" or "cuda:1". */
static enum status parse_device(const char *text, int16_t *device, struct error *err)
{
	int number = 0, length = 0;

	if (!strcmp(text, "cpu")) {
		*device = -1;
		return STATUS_OK;
	}
	if (strcmp(text, "cuda") != 0 &&
	    (sscanf(text, "cuda:%d%n", &number, &length) != 1 || text[length] || number < 0 || number > INT16_MAX)) {
		error_set(err, STATUS_USAGE, "unknown device '%s'", text);
		error_hint(err, "devices are cpu, cuda or cuda:N");
		return STATUS_USAGE;
	}
	*device = (int16_t)number;
	return STATUS_OK;
}

/* Handles recorded memory without any allocation, such as a profiler cycle that had just started: the level is then 0
 * throughout. */
static enum status choose_empty(struct timeline *timeline, const struct export_options *options,
                                struct export_result *result, struct error *err)
{
	const struct model *model = timeline->model;
	bool is_imported = model_meta(model, MODEL_NONE, "trace.format"), is_recorded = false;

	for (uint32_t i = 0; i < model->processes_count && !is_recorded; i++) {
		is_recorded = model->processes[i].records_memory && (!options->processes || options->processes[i]);
		timeline->process = i;
	}
	if (is_recorded && timeline->device < 0) {
		export_note(result, "no memory was allocated or released");
		return STATUS_OK;
	}
	error_set(err, STATUS_INPUT, "no memory of %s %s", options->device ? options->device : "the program",
	          is_imported ? "is in the input" : "was recorded");
	if (timeline->device >= 0 && !is_imported)
		error_hint(err, "stepscope records memory of the CPU only; export a trace of torch.profiler that has "
		                "profile_memory=True, or a snapshot of CUDA memory");
	else if (!is_imported && !is_recorded)
		error_hint(err, "'stepscope run --with memory' records it");
	return STATUS_INPUT;
}

/* Chooses the first device, otherwise the host, as torch does, if no device is given. Of several processes it takes the
 * one with the most allocations. */
static enum status export_memory_choose(struct timeline *timeline, const struct export_options *options,
                                        struct export_result *result, struct error *err)
{
	const struct model *model = timeline->model;
	uint64_t most = 0, others = 0;
	int16_t wanted = INT16_MAX;

	if (options->device && parse_device(options->device, &wanted, err) != STATUS_OK)
		return STATUS_USAGE;
	for (uint32_t i = 0; i < model->memory_count && !options->device; i++)
		if (model->memory[i].device >= 0 && model->memory[i].device < wanted)
			wanted = model->memory[i].device;
	timeline->device = options->device || wanted < INT16_MAX ? wanted : -1;
	for (uint32_t first = 0, end; first < model->memory_count; first = end) {
		uint32_t process = model->memory[first].process;
		uint64_t count = 0;

		for (end = first; end < model->memory_count && model->memory[end].process == process; end++)
			count += model->memory[end].device == timeline->device;
		if (options->processes && !options->processes[process])
			continue;
		others += count > 0;
		if (count > most) {
			timeline->process = process;
			most = count;
		}
	}
	if (!most)
		return choose_empty(timeline, options, result, err);
	timeline->offset_ns = model->processes[timeline->process].realtime_offset_ns;
	export_note_memory_of(result, model, timeline->process);
	if (others > 1)
		export_note(result,
		            "only of process %" PRId64 ", which has the most allocations; -o DIR/ writes one file "
		            "per rank",
		            model->processes[timeline->process].pid);
	return STATUS_OK;
}

static bool ends_in(const char *path, const char *suffix)
{
	size_t length = strlen(path), tail = strlen(suffix);

	return length >= tail && !strcmp(path + length - tail, suffix);
}

static enum status memory_write(const struct model *model, const char *path, const struct export_options *options,
                                struct export_result *result, struct error *err)
{
	struct timeline timeline = {.model = model};
	struct output *output;
	enum status status;

	*result = (struct export_result){0};
	status = export_memory_choose(&timeline, options, result, err);
	if (status == STATUS_OK)
		status = output_open(path, &output, err);
	if (status != STATUS_OK)
		return status;
	if (ends_in(path, ".html"))
		result->counters = write_plot(&timeline, output);
	else if (ends_in(path, "raw.json.gz"))
		result->instants = write_raw(&timeline, output);
	else
		result->counters = write_coalesced(&timeline, output);
	result->bytes_raw = output_raw_bytes(output);
	return output_close(output, &result->bytes_file, err);
}

const struct exporter export_memory = {
	.name = "memory-timeline",
	.is_of_a_device = true,
	.suffix = ".memory.html",
	.what = "memory by category over time, as in torch.profiler",
	.viewers = "any browser, or scripts",
	.write = memory_write,
};
