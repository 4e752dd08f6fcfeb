/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_failures.c: the table `memory_failures`: allocations that failed, as recorded in a memory snapshot.
 */
#include "analysis/analysis_context.h"
#include "analysis/memory/memory_pool.h"
#include "analysis/shared/labels.h"
#include "analysis/shared/span_places.h"
#include "model/cell_words.h"

#include <string.h>

enum {
	FAILURES_PROCESS,
	FAILURES_DEVICE,
	FAILURES_TIME,
	FAILURES_ASKED,
	FAILURES_DEVICE_FREE,
	FAILURES_ALLOCATED,
	FAILURES_RESERVED,
	FAILURES_UNUSED,
	FAILURES_LIMIT,
	FAILURES_BY,
	FAILURES_LINE,
	FAILURES_WHY,
	FAILURES_LAST,
	FAILURES_COLUMNS,
};

static const struct table_column columns[FAILURES_COLUMNS] = {
	[FAILURES_PROCESS] = PROCESS_COLUMN,
	[FAILURES_DEVICE] = {.name = "device",
                             .type = TABLE_TEXT,
                             .role = ROLE_KEY,
                             .definition = "device and its number"},
	[FAILURES_TIME] = {.name = "time_ns",
                           .title = "time",
                           .type = TABLE_INT,
                           .unit = UNIT_NS_SINCE_START,
                           .definition = "time of the request, since the first known instant of its process"},
	[FAILURES_ASKED] = {.name = "asked_bytes",
                            .title = "asked for",
                            .type = TABLE_INT,
                            .unit = UNIT_BYTES,
                            .definition = "requested bytes that did not fit"},
	[FAILURES_DEVICE_FREE] = {.name = "device_free_bytes",
                                  .title = "free on device",
                                  .type = TABLE_INT,
                                  .unit = UNIT_BYTES,
                                  .definition = "bytes of the device that no program had taken"},
	[FAILURES_ALLOCATED] = {.name = "used_bytes",
                                .title = "allocated",
                                .type = TABLE_INT,
                                .unit = UNIT_BYTES,
                                .definition = "bytes that the program used"},
	[FAILURES_RESERVED] = {.name = "reserved_bytes",
                               .title = "reserved",
                               .type = TABLE_INT,
                               .unit = UNIT_BYTES,
                               .definition = "bytes that the allocator had taken from the device"},
	[FAILURES_UNUSED] =
		{.name = "unused_bytes",
                 .title = "reserved, not used",
                 .type = TABLE_INT,
                 .unit = UNIT_BYTES,
                 .definition = "reserved minus allocated bytes: free, rounding, or still in use by a stream"},
	[FAILURES_LIMIT] =
		{.name = "limit_bytes",
                 .title = "limit",
                 .type = TABLE_INT,
                 .unit = UNIT_BYTES,
                 .definition =
                         "bytes that the allocator could take at most: reserved plus free on the device. If the device "
                         "had room for the request, the process has its own limit, at the reserved bytes "
                         "(torch.cuda.set_per_process_memory_fraction)"},
	[FAILURES_BY] = {.name = "allocated_by",
                         .title = "asked by",
                         .type = TABLE_TEXT,
                         .definition = "operation, or innermost function, that requested the memory"},
	[FAILURES_LINE] = {.name = "line",
                           .type = TABLE_TEXT,
                           .definition = "innermost line of the user's own program at the request"},
	[FAILURES_WHY] =
		{.name = "why",
                 .type = TABLE_TEXT,
                 .definition =
                         "fragmented: the unused reserved bytes that no stream still uses cover the request (with those "
                         "that the device could give), and are a tenth of the reserved bytes or more; otherwise full"},
	[FAILURES_LAST] = {.name = "is_last",
                           .title = "the end",
                           .type = TABLE_BOOL,
                           .definition = "nothing was allocated on the device after it",
                           .is_hidden = true},
};

#define SEGMENT_BYTES (20 << 20) /* the allocator takes that much at once for a request that is not larger */
#define UNUSED_PART 10 /* a full device keeps a smaller part of its memory unused: rounding, and ends of segments */
#define NEEDED_FIELDS 15u

struct failure {
	int64_t asked, device_free, allocated, reserved, pending;
	unsigned has; /* bits of the known fields, in this order */
};

/* Returns true if the device had room for the request: it was not full. */
static bool failure_has_room(const struct failure *failure)
{
	return failure->device_free >= failure->asked && failure->device_free >= SEGMENT_BYTES;
}

static bool failure_is_fragmented(const struct failure *failure)
{
	wide_bytes unused = (wide_bytes)failure->reserved - failure->allocated - failure->pending;
	wide_bytes more = failure_has_room(failure) ? 0 : failure->device_free;

	return unused + more >= failure->asked && unused * UNUSED_PART >= failure->reserved;
}

static void memory_failures_read_arg(const struct model *model, const struct span_arg *arg, struct failure *failure)
{
	static const char *const keys[] = {"asked_bytes", "device_free_bytes", "allocated_bytes", "reserved_bytes",
	                                   "pending_bytes"};
	int64_t *const values[] = {&failure->asked, &failure->device_free, &failure->allocated, &failure->reserved,
	                           &failure->pending};

	for (int i = 0; i < 5; i++)
		if (strcmp(model_text(model, arg->key), keys[i]) == 0) {
			*values[i] = arg->i64;
			failure->has |= 1u << i;
		}
}

/* Without times, all events have an order. */
static bool memory_failures_is_last(const struct model *model, const struct track *track, int64_t time_ns)
{
	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];

		if (event->process == track->process && event->device == (int16_t)track->device && !event->is_free &&
		    event->time_ns > time_ns)
			return false;
	}
	return true;
}

static void memory_failures_add_row(struct table *table, const struct model *model, struct span_places *places,
                                    const struct span_arg *arg, const struct failure *failure)
{
	const struct track *track = model->tracks[arg->track];
	uint32_t index;
	const struct span_chunk *chunk = track_chunk(track, arg->row, &index);
	const struct process *process = &model->processes[track->process];
	const struct memory_event asked = {.track = MODEL_NONE, .stack = span_stack(chunk, index)};
	uint32_t by = memory_allocated_by(model, &asked),
		 line = asked.stack ? span_line_of_stack(places, asked.stack) : 0;
	wide_bytes unused = (wide_bytes)failure->reserved - failure->allocated;
	int row = table_row(table);

	table_set_text(table, row, FAILURES_PROCESS, process_label(model, track->process, &table->arena));
	table_set_text(table, row, FAILURES_DEVICE, memory_device_name(&table->arena, (int16_t)track->device));
	if (process->has_times)
		table_set_int(table, row, FAILURES_TIME, chunk->start_ns[index] - process->origin_ns);
	else
		table_set_missing(table, row, FAILURES_TIME, "the input has no times");
	table_set_int(table, row, FAILURES_ASKED, failure->asked);
	table_set_int(table, row, FAILURES_DEVICE_FREE, failure->device_free);
	table_set_int(table, row, FAILURES_ALLOCATED, failure->allocated);
	table_set_int(table, row, FAILURES_RESERVED, failure->reserved);
	table_set_int(table, row, FAILURES_UNUSED, bytes_that_fit(unused));
	table_set_int(
		table, row, FAILURES_LIMIT,
		bytes_that_fit(failure->reserved + (wide_bytes)(failure_has_room(failure) ? 0 : failure->device_free)));
	table_set_missing(table, row, FAILURES_BY, "no stack was recorded");
	table_set_missing(table, row, FAILURES_LINE, "the stack has no line of the program");
	if (by)
		table_set_text(table, row, FAILURES_BY, model_text(model, by));
	if (line)
		table_set_text(table, row, FAILURES_LINE, span_line_text(places, line, &table->arena));
	table_set_bool(table, row, FAILURES_LAST, memory_failures_is_last(model, track, chunk->start_ns[index]));
	table_set_text(table, row, FAILURES_WHY,
	               failure_is_fragmented(failure) ? CELL_FAILURE_FRAGMENTED : CELL_FAILURE_FULL);
}

/* The arguments of one span are adjacent. */
static enum status memory_failures_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct span_places places;
	struct failure failure = {0};

	table_init(table, "memory_failures", "Out of memory",
	           "failed allocations, and the allocator's memory at that time");
	table_columns(table, columns, FAILURES_COLUMNS);
	span_places_init(&places, model);
	for (uint32_t i = 0; i < model->args_count; i++) {
		const struct span_arg *arg = &model->args[i], *next = arg + 1;
		bool is_last = i + 1 == model->args_count || next->track != arg->track || next->row != arg->row;

		if (arg->type == STEPSCOPE_ARG_I64 && model->tracks[arg->track]->kind == TRACK_OTHER)
			memory_failures_read_arg(model, arg, &failure);
		if (!is_last)
			continue;
		if ((failure.has & NEEDED_FIELDS) == NEEDED_FIELDS)
			memory_failures_add_row(table, model, &places, arg, &failure);
		failure = (struct failure){0};
	}
	span_places_release(&places);
	if (!table->row_count)
		table->empty =
			model->segments_count
				? "no allocation failed in the recorded events of the allocator"
				: "only memory snapshots have failed allocations: torch.cuda.memory._dump_snapshot()";
	return STATUS_OK;
}

const struct analysis analysis_memory_failures = {
	.name = "memory_failures",
	.row = "failed allocation",
	.question = "when did an allocation fail, and why?",
	.run = memory_failures_run,
};
