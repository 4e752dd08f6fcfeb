/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_processes.c: see the header.
 */
#include "importers/recording/recording_processes.h"

#include "base/hex_id.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_boot_of_this_machine(const uint8_t boot_id[16])
{
	uint8_t ours[HEX_ID_BYTES];
	return hex_id_of_boot(ours) && memcmp(ours, boot_id, sizeof ours) == 0;
}

static bool is_process_alive(const struct stepscope_segment_header *header)
{
	char path[64], line[1024];
	snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", header->pid);
	FILE *file = is_boot_of_this_machine(header->boot_id) ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	const char *field = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
	fclose(file);
	if (!field)
		return false;
	bool is_zombie = field[1] == ' ' && (field[2] == 'Z' || field[2] == 'X');
	for (int number = 2; field && number < 22; number++) /* field 3 follows ')' */
		field = strchr(field + 1, ' ');
	return !is_zombie && field && strtoull(field, NULL, 10) == header->start_time;
}

/* If only windows are loaded, times are still relative to the start of the whole recording. */
static void fill_origin(struct process *process, const struct recorded_process *from)
{
	int64_t anchor_ns = from->anchors.first_ns + from->lines[0]->offset_ns;
	bool is_anchor_first = from->anchors.is_known && (!from->has_begin || anchor_ns < from->begin_ns);
	process->has_origin = from->has_begin || from->anchors.is_known;
	process->origin_ns = is_anchor_first ? anchor_ns : from->begin_ns;
}

void recording_fill_process(struct recording *recording, struct recorded_process *from)
{
	assert(from->line_count > 0 && from->process < recording->model->processes_count);
	struct model *model = recording->model;
	struct process *process = &model->processes[from->process];
	const struct clock_line *line = from->lines[0];
	if (from->end == RECORDED_UNCLOSED && is_process_alive(&from->header))
		from->end = RECORDED_ALIVE;
	process->realtime_offset_ns = line->realtime_offset_ns;
	process->first_ns = from->times.is_known ? from->times.first_ns : 0;
	process->last_ns = from->times.is_known ? from->times.last_ns : 0;
	if (from->anchors.is_known && !recording->has_windows) {
		int64_t first_ns = from->anchors.first_ns + line->offset_ns,
			last_ns = from->anchors.last_ns + line->offset_ns;
		process->first_ns = from->times.is_known && from->times.first_ns < first_ns ? from->times.first_ns
		                                                                            : first_ns;
		process->last_ns = from->times.is_known && from->times.last_ns > last_ns ? from->times.last_ns
		                                                                         : last_ns;
	}
	if (recording->has_windows)
		fill_origin(process, from);
	process->event_count = from->events;
	process->is_closed = from->end == RECORDED_CLOSED;
	process->is_alive = from->end == RECORDED_ALIVE;
	if (from->end == RECORDED_CLOSED && from->end_reason)
		process->end_reason = intern_add(&model->strings, from->end_reason);
	const char *program = model_meta(model, from->process, "program");
	const char *host = model_meta(model, from->process, "host");
	const char *cost = model_meta(model, from->process, "cost.event_ns");
	const char *drainer = model_meta(model, from->process, "cost.drainer_cpu_ns");
	const char *origin = model_meta(model, from->process, "clock.origin_ns");
	if (program)
		process->name = intern_add(&model->strings, program);
	if (host && !*from->host)
		process->host = intern_add(&model->strings, host);
	process->has_cost = cost || drainer;
	process->cost_per_event_ns = cost ? strtod(cost, NULL) : 0;
	const char *frame_cost = model_meta(model, from->process, "cost.frame_ns");
	process->cost_per_frame_ns = frame_cost ? strtod(frame_cost, NULL) : 0;
	const char *step_cost = model_meta(model, from->process, "cost.step_cpu_ns");
	process->cost_per_step_ns = step_cost ? strtod(step_cost, NULL) : 0;
	const char *reading = model_meta(model, from->process, "cost.use_ns");
	process->cost_per_reading_ns = reading ? strtod(reading, NULL) : 0;
	const char *process_reading = model_meta(model, from->process, "cost.process_use_ns");
	process->cost_per_process_reading_ns = process_reading ? strtod(process_reading, NULL) : 0;
	process->stack_frames = from->stack_frames;
	process->drainer_cpu_ns = drainer ? strtoll(drainer, NULL, 10) : 0;
	if (origin && line->clock == STEPSCOPE_CLOCK_NANOSECONDS)
		process->realtime_offset_ns = strtoll(origin, NULL, 10);
}
