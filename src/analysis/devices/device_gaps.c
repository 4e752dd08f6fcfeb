/* SPDX-License-Identifier: Apache-2.0
 *
 * device_gaps.c: the table `device_gaps`: the longest idle stretches of a device: the reason, the work before and
 * after, and the activity of the thread that launched the next work.
 */
#include "analysis/analysis_context.h"
#include "analysis/devices/device_parts.h"
#include "analysis/shared/span_places.h"
#include "analysis/step_times/step_times.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "base/merge_sort.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GAPS_SHOWN 100

enum {
	GAP_DEVICE,
	GAP_STEP,
	GAP_START,
	GAP_TIME,
	GAP_CAUSE,
	GAP_HOST,
	GAP_BEFORE,
	GAP_AFTER,
	GAP_MODULE,
	GAP_LINE,
	GAP_WORK_BEFORE,
	GAP_WORK_AFTER,
	GAP_COLUMNS,
	GAP_PARTS = GAP_COLUMNS,
};

static const struct table_column columns[GAP_COLUMNS] = {
	[GAP_DEVICE] = {.name = "device",
                        .type = TABLE_TEXT,
                        .role = ROLE_KEY,
                        .definition = DEVICE_DEFINITION,
                        .is_hidden = true},
	[GAP_STEP] = {.name = "step",
                      .type = TABLE_INT,
                      .role = ROLE_KEY,
                      .definition = "number of the step in which the gap starts"},
	[GAP_START] = {.name = "start_ns",
                       .title = "start",
                       .type = TABLE_INT,
                       .unit = UNIT_NS_SINCE_START,
                       .role = ROLE_KEY,
                       .definition = "start of the gap, since the first known instant of the device's process"},
	[GAP_TIME] = {.name = "gap_ns",
                      .title = "gap",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "duration of the gap",
                      .rules = RULE_NOT_NEGATIVE},
	[GAP_CAUSE] =
		{.name = "cause",
                 .type = TABLE_TEXT,
                 .definition =
                         "part of step_breakdown that covers most of the gap: queued, launch, data wait, synchronization, "
                         "runtime calls, host, nothing recorded"},
	[GAP_HOST] =
		{.name = "host_call",
                 .title = "host",
                 .type = TABLE_TEXT,
                 .definition =
                         "innermost call that covers more than half of the gap, on the thread that launched the next work"},
	[GAP_BEFORE] = {.name = "operation_before",
                        .title = "before",
                        .type = TABLE_TEXT,
                        .definition = "operator or range that launched the work before the gap"},
	[GAP_AFTER] = {.name = "operation_after",
                       .title = "after",
                       .type = TABLE_TEXT,
                       .definition = "operator or range that launched the work after the gap"},
	[GAP_MODULE] = {.name = "module",
                        .type = TABLE_TEXT,
                        .definition = "innermost module around `host_call`, or around the launch of the next work"},
	[GAP_LINE] =
		{.name = "line",
                 .type = TABLE_TEXT,
                 .definition = "innermost line of the user's own program around `host_call`, or around the launch of "
                               "the next work"},
	[GAP_WORK_BEFORE] = {.name = "work_before",
                             .type = TABLE_TEXT,
                             .definition = "kernel, copy or fill before the gap",
                             .is_hidden = true},
	[GAP_WORK_AFTER] = {.name = "work_after",
                            .type = TABLE_TEXT,
                            .definition = "kernel, copy or fill after the gap",
                            .is_hidden = true},
};

struct device_gap {
	int64_t start_ns, end_ns;
	size_t before, after; /* indices into the device's work */
};

struct device_gaps_fold {
	const struct model *model;
	struct analysis_context *context;
	const struct launches *launches;
	struct device_parts parts;
	struct span_places places;
	struct device_gap *gaps; /* of one device */
	size_t count, capacity;
	int64_t all_count, all_ns; /* of all devices */
};

/* ---- gaps ---- */

/* Returns the step in which the gap starts, NULL: none. A gap that starts at the end of a step is after the step. */
static const struct model_step *step_of_gap(const struct model *model, uint32_t process, int64_t start_ns)
{
	const struct model_step *step = step_times_step_at(model, process, start_ns);

	return step && start_ns < step->end_ns ? step : NULL;
}

static bool is_selected(const struct device_gaps_fold *fold, uint32_t process, int64_t time_ns)
{
	const struct model_step *step;

	if (!fold->context->options.filter.has_steps)
		return true;
	step = step_of_gap(fold->model, process, time_ns);
	return step && step->number >= fold->context->options.filter.first_step &&
	       step->number <= fold->context->options.filter.last_step;
}

static void add_gap(struct device_gaps_fold *fold, const struct device_gap *gap)
{
	assert(gap->start_ns < gap->end_ns && gap->before < gap->after);
	MEMORY_GROW(fold->gaps, fold->count, fold->capacity, 1024);
	fold->gaps[fold->count++] = *gap;
	fold->all_count++;
	clamped_add(&fold->all_ns, gap->end_ns - gap->start_ns);
}

static int compare_gaps(const void *left, const void *right)
{
	const struct device_gap *a = left, *b = right;
	int64_t a_ns = a->end_ns - a->start_ns, b_ns = b->end_ns - b->start_ns;

	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* Finds the gaps, longest first. Work that took no time does not end a gap, because it does not make the device busy.
 * But the first and the last work are the bounds of all gaps, whatever time they took. */
static void device_gaps_find_gaps(struct device_gaps_fold *fold, const struct device *device)
{
	const struct device_work *work = &fold->parts.work;
	struct device_gap gap = {0};
	bool is_first = true;

	fold->count = 0;
	for (size_t i = 0; i < work->count; i++) {
		const struct work *item = &work->items[i];

		if (item->end_ns <= item->start_ns && !is_first && i + 1 < work->count)
			continue;
		gap.end_ns = item->start_ns;
		gap.after = i;
		if (!is_first && gap.end_ns > gap.start_ns && is_selected(fold, device->process, gap.start_ns))
			add_gap(fold, &gap);
		if (is_first || item->end_ns > gap.start_ns) {
			gap.start_ns = item->end_ns;
			gap.before = i;
		}
		is_first = false;
	}
	merge_sort(fold->gaps, fold->count, sizeof(*fold->gaps), compare_gaps);
}

/* ---- the host ---- */

/* The innermost span that takes more than half of the gap is one of those open in its middle. */
static uint32_t host_span(const struct model *model, uint32_t track, const struct device_gap *gap)
{
	int64_t half_ns = (gap->end_ns - gap->start_ns) / 2;
	uint32_t row = span_open_at(model, track, gap->start_ns + half_ns);

	while (row != MODEL_NONE) {
		uint32_t i;
		const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &i);
		int64_t start_ns = chunk->start_ns[i], end_ns = start_ns + chunk->dur_ns[i];

		if (chunk->kind[i] != SPAN_STEP &&
		    (end_ns < gap->end_ns ? end_ns : gap->end_ns) -
		                    (start_ns > gap->start_ns ? start_ns : gap->start_ns) >
		            half_ns)
			break;
		row = chunk->parent[i];
	}
	return row;
}

/* ---- the table ---- */

static const char *span_name(const struct model *model, uint32_t track, uint32_t row)
{
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(model->tracks[track], row, &i);

	return model_text(model, chunk->name[i]);
}

static void set_operation(struct table *table, int row, int column, const struct device_gaps_fold *fold,
                          const struct work *item)
{
	const struct launch *launch = launches_of(fold->launches, item->track, item->row);
	bool is_known = launch && launch->track != MODEL_NONE && launch->operation != MODEL_NONE;

	table_set_text_or(table, row, column,
	                  is_known ? span_name(fold->model, launch->track, launch->operation) : NULL,
	                  "the trace lacks its launch, or the launch is outside every operator and range");
}

static void set_host(struct table *table, int row, struct device_gaps_fold *fold, const struct device_gap *gap)
{
	const struct work *after = &fold->parts.work.items[gap->after];
	const struct launch *launch = launches_of(fold->launches, after->track, after->row);
	static const char reason[] = "the trace lacks the launch of the next work";
	uint32_t host, place, module, line;

	if (!launch || launch->track == MODEL_NONE) {
		for (int column = GAP_HOST; column <= GAP_LINE; column++)
			if (column != GAP_BEFORE && column != GAP_AFTER)
				table_set_missing(table, row, column, reason);
		return;
	}
	host = host_span(fold->model, launch->track, gap);
	table_set_text_or(table, row, GAP_HOST, host == MODEL_NONE ? NULL : span_name(fold->model, launch->track, host),
	                  "no call covers more than half of the gap");
	place = host == MODEL_NONE ? launch->row : host;
	module = span_module_of(&fold->places, launch->track, place);
	module = module ? module : span_module_of(&fold->places, launch->track, launch->row);
	line = span_line_of(&fold->places, launch->track, place);
	line = line ? line : span_line_of(&fold->places, launch->track, launch->row);
	span_places_set(&fold->places, table, row, GAP_MODULE, module, GAP_LINE, line);
}

static void set_parts(struct table *table, int row, const struct device_gaps_fold *fold, const struct device_gap *gap)
{
	int64_t parts_ns[PARTS];
	int largest = PART_OTHER;

	device_parts_within(&fold->parts, gap->start_ns, gap->end_ns, parts_ns);
	for (int part = PART_QUEUED; part < PARTS; part++) {
		table_set_int(table, row, GAP_PARTS + part - PART_QUEUED, parts_ns[part]);
		largest = parts_ns[part] > parts_ns[largest] ? part : largest;
	}
	table_set_text(table, row, GAP_CAUSE, device_part_texts[largest].name + strlen("idle: "));
}

static void device_gaps_add_row(struct table *table, struct device_gaps_fold *fold, const struct device *device,
                                const struct device_gap *gap)
{
	const struct model *model = fold->model;
	const struct work *before = &fold->parts.work.items[gap->before], *after = &fold->parts.work.items[gap->after];
	const struct model_step *step = step_of_gap(model, device->process, gap->start_ns);
	int row = table_row(table);

	table_set_text(table, row, GAP_DEVICE, device_label(model, device->process, device->device, &table->arena));
	if (step)
		table_set_int(table, row, GAP_STEP, step->number);
	else
		table_set_missing(table, row, GAP_STEP, "the gap starts outside every step");
	table_set_int(table, row, GAP_START,
	              intervals_length(model->processes[device->process].origin_ns, gap->start_ns));
	table_set_int(table, row, GAP_TIME, gap->end_ns - gap->start_ns);
	table_set_text(table, row, GAP_WORK_BEFORE, span_name(model, before->track, before->row));
	table_set_text(table, row, GAP_WORK_AFTER, span_name(model, after->track, after->row));
	set_operation(table, row, GAP_BEFORE, fold, before);
	set_operation(table, row, GAP_AFTER, fold, after);
	set_host(table, row, fold, gap);
	set_parts(table, row, fold, gap);
}

static void device_gaps_add_columns(struct table *table)
{
	table_columns(table, columns, GAP_COLUMNS);
	for (int part = PART_QUEUED; part < PARTS; part++)
		table_column(table, &(struct table_column){.name = device_part_texts[part].column,
		                                           .title = device_part_texts[part].name,
		                                           .type = TABLE_INT,
		                                           .unit = UNIT_NS,
		                                           .definition = device_part_texts[part].meaning,
		                                           .rules = RULE_NOT_NEGATIVE | RULE_PART_OF_OTHER,
		                                           .other = "gap_ns",
		                                           .is_hidden = true});
}

static void device_gaps_add_rows(struct table *table, struct device_gaps_fold *fold)
{
	struct device *devices;
	size_t count = devices_find(&devices, fold->model);
	int64_t shown_ns = 0;

	for (size_t i = 0; i < count; i++) {
		device_parts_find(&fold->parts, fold->context, devices[i].process, devices[i].device);
		device_gaps_find_gaps(fold, &devices[i]);
		for (size_t n = 0; n < fold->count && n < GAPS_SHOWN; n++)
			device_gaps_add_row(table, fold, &devices[i], &fold->gaps[n]);
	}
	table_sort(table, GAP_TIME, false);
	table_limit(table, GAPS_SHOWN);
	for (int row = 0; row < table->row_count; row++)
		clamped_add(&shown_ns, table_get(table, row, GAP_TIME)->i);
	if (fold->all_count > GAPS_SHOWN)
		table->note = arena_printf(&table->arena,
		                           "the longest of %" PRId64 " gaps: %.1f %% of the time in gaps",
		                           fold->all_count, 100 * (double)shown_ns / (double)fold->all_ns);
	if (!count)
		table->empty = DEVICE_NOTHING;
	else if (!table->row_count)
		table->empty = "no device was idle between its first and its last work";
	free(devices);
}

static enum status device_gaps_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct device_gaps_fold fold = {.context = context, .model = model};

	fold.launches = analysis_context_launches(context);
	span_places_init(&fold.places, model);
	table_init(table, "device_gaps", "Gaps of devices",
	           "longest idle times between a device's first and last work; with --steps, those that start in these "
	           "steps");
	device_gaps_add_columns(table);
	device_gaps_add_rows(table, &fold);
	span_places_release(&fold.places);
	device_parts_release(&fold.parts);
	free(fold.gaps);
	return STATUS_OK;
}

const struct analysis analysis_device_gaps = {
	.name = "device_gaps",
	.row = "gap, at most 100",
	.question = "when was a device idle for long, and why?",
	.run = device_gaps_run,
	.is_of_devices = true,
};
