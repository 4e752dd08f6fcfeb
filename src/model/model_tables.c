/* SPDX-License-Identifier: Apache-2.0
 *
 * model_tables.c: see model_tables.h.
 */
#include "model/model_tables.h"

#define FIELD(type, member)                                                                                            \
	{                                                                                                              \
		offsetof(struct type, member), sizeof(((struct type *)0)->member), false,                              \
			__builtin_types_compatible_p(__typeof__(((struct type *)0)->member), bool)                     \
	}
#define STRING(type, member)                                                                                           \
	{                                                                                                              \
		offsetof(struct type, member), sizeof(((struct type *)0)->member), true, false                         \
	}

static const struct model_field processes[] = {
	STRING(process, host),
	FIELD(process, pid),
	FIELD(process, parent_pid),
	FIELD(process, start_time),
	FIELD(process, role),
	FIELD(process, rank),
	FIELD(process, world_size),
	STRING(process, name),
	FIELD(process, has_times),
	FIELD(process, first_ns),
	FIELD(process, last_ns),
	FIELD(process, is_closed),
	FIELD(process, is_alive),
	STRING(process, end_reason),
	FIELD(process, realtime_offset_ns),
	FIELD(process, has_cost),
	FIELD(process, cost_per_event_ns),
	FIELD(process, cost_per_frame_ns),
	FIELD(process, stack_frames),
	FIELD(process, drainer_cpu_ns),
	FIELD(process, event_count),
	FIELD(process, cost_per_step_ns),
	STRING(process, machine),
	FIELD(process, has_lost_memory),
	FIELD(process, lost_memory_ns),
	STRING(process, lost_memory),
	STRING(process, removed_memory),
	FIELD(process, has_lost_end),
	FIELD(process, pid_namespace),
	FIELD(process, cost_per_reading_ns),
	FIELD(process, cost_per_process_reading_ns),
	{0, 0, false, false},
};

static const struct model_field tracks[] = {
	FIELD(track_row, process), FIELD(track_row, kind),         STRING(track_row, name),
	FIELD(track_row, sort),    FIELD(track_row, tid),          FIELD(track_row, device),
	FIELD(track_row, is_main), FIELD(track_row, torch_thread), FIELD(track_row, is_profiled),
	{0, 0, false, false},
};

static const struct model_field spans[] = {
	FIELD(span_row, start_ns),    FIELD(span_row, dur_ns),   STRING(span_row, name),   FIELD(span_row, parent),
	STRING(span_row, shape),      FIELD(span_row, depth),    FIELD(span_row, kind),    FIELD(span_row, flags),
	FIELD(span_row, phase),       FIELD(span_row, sequence), STRING(span_row, inputs), FIELD(span_row, stack),
	FIELD(span_row, correlation), {0, 0, false, false},
};

static const struct model_field steps[] = {
	FIELD(model_step, process),
	FIELD(model_step, track),
	FIELD(model_step, row),
	FIELD(model_step, number),
	FIELD(model_step, start_ns),
	FIELD(model_step, end_ns),
	FIELD(model_step, is_open),
	FIELD(model_step, is_inferred),
	FIELD(model_step, has_tokens),
	FIELD(model_step, has_samples),
	FIELD(model_step, tokens),
	FIELD(model_step, samples),
	FIELD(model_step, capture),
	FIELD(model_step, has_detail),
	FIELD(model_step, has_shapes),
	FIELD(model_step, has_memory),
	FIELD(model_step, has_cpu),
	FIELD(model_step, cpu_ns),
	FIELD(model_step, waits),
	FIELD(model_step, has_page_faults),
	FIELD(model_step, page_faults),
	FIELD(model_step, has_any_detail),
	FIELD(model_step, has_rare),
	FIELD(model_step, readings),
	FIELD(model_step, read_cpu_ns),
	FIELD(model_step, processor_wait_ns),
	FIELD(model_step, process_cpu_ns),
	{0, 0, false, false},
};

static const struct model_field series[] = {FIELD(series_row, process),   STRING(series_row, name),
                                            FIELD(series_row, is_metric), STRING(series_row, subject),
                                            STRING(series_row, unit),     {0, 0, false, false}};

static const struct model_field values[] = {FIELD(value_row, time_ns), FIELD(value_row, value), {0, 0, false, false}};

static const struct model_field memory[] = {
	FIELD(memory_event, time_ns),   FIELD(memory_event, address),  FIELD(memory_event, bytes),
	FIELD(memory_event, process),   FIELD(memory_event, track),    FIELD(memory_event, row),
	FIELD(memory_event, device),    FIELD(memory_event, category), FIELD(memory_event, is_free),
	FIELD(memory_event, has_bytes), FIELD(memory_event, is_found), FIELD(memory_event, stack),
	{0, 0, false, false},
};

static const struct model_field owners[] = {
	FIELD(memory_owner, time_ns),  FIELD(memory_owner, address), FIELD(memory_owner, bytes),
	FIELD(memory_owner, process),  FIELD(memory_owner, track),   FIELD(memory_owner, device),
	FIELD(memory_owner, category), {0, 0, false, false},
};

static const struct model_field segments[] = {
	FIELD(memory_segment, address),       FIELD(memory_segment, bytes),
	FIELD(memory_segment, active_bytes),  FIELD(memory_segment, requested_bytes),
	FIELD(memory_segment, pending_bytes), FIELD(memory_segment, largest_free_bytes),
	FIELD(memory_segment, stream),        FIELD(memory_segment, pool),
	FIELD(memory_segment, process),       FIELD(memory_segment, active_blocks),
	FIELD(memory_segment, free_blocks),   STRING(memory_segment, type),
	FIELD(memory_segment, stack),         FIELD(memory_segment, device),
	FIELD(memory_segment, is_expandable), {0, 0, false, false},
};

static const struct model_field readings[] = {
	FIELD(thread_reading, time_ns), FIELD(thread_reading, track),      FIELD(thread_reading, cpu_ns),
	FIELD(thread_reading, wait_ns), FIELD(thread_reading, process_ns), {0, 0, false, false},
};

static const struct model_field marks[] = {FIELD(mark, time_ns),
                                           FIELD(mark, track),
                                           STRING(mark, name),
                                           {0, 0, false, false}};

static const struct model_field stacks[] = {FIELD(stack_node, parent),
                                            STRING(stack_node, frame),
                                            FIELD(stack_node, line),
                                            STRING(stack_node, file),
                                            {0, 0, false, false}};

static const struct model_field args[] = {
	FIELD(span_arg, track), FIELD(span_arg, row), STRING(span_arg, key),
	FIELD(span_arg, type),  FIELD(span_arg, u64), {0, 0, false, false},
};

static const struct model_field links[] = {
	FIELD(model_link, kind),     FIELD(model_link, number),   FIELD(model_link, from_track),
	FIELD(model_link, from_row), FIELD(model_link, to_track), FIELD(model_link, to_row),
	{0, 0, false, false},
};

static const struct model_field samples[] = {FIELD(sample, time_ns), FIELD(sample, track),  FIELD(sample, stack),
                                             STRING(sample, name),   FIELD(sample, weight), {0, 0, false, false}};

static const struct model_field meta[] = {FIELD(model_meta, process),
                                          STRING(model_meta, key),
                                          STRING(model_meta, value),
                                          {0, 0, false, false}};

static const struct model_field ledger[] = {
	FIELD(ledger_entry, kind),         FIELD(ledger_entry, process), STRING(ledger_entry, where),
	FIELD(ledger_entry, count),        STRING(ledger_entry, text),   FIELD(ledger_entry, has_first_offset),
	FIELD(ledger_entry, first_offset), FIELD(ledger_entry, code),    {0, 0, false, false},
};

static const struct {
	const struct model_field *fields;
	size_t row_bytes;
} tables[MODEL_TABLE_END] = {
	[MODEL_TABLE_PROCESSES] = {processes, sizeof(struct process)},
	[MODEL_TABLE_TRACKS] = {tracks, sizeof(struct track_row)},
	[MODEL_TABLE_SPANS] = {spans, sizeof(struct span_row)},
	[MODEL_TABLE_STEPS] = {steps, sizeof(struct model_step)},
	[MODEL_TABLE_SERIES] = {series, sizeof(struct series_row)},
	[MODEL_TABLE_VALUES] = {values, sizeof(struct value_row)},
	[MODEL_TABLE_MEMORY] = {memory, sizeof(struct memory_event)},
	[MODEL_TABLE_OWNERS] = {owners, sizeof(struct memory_owner)},
	[MODEL_TABLE_MARKS] = {marks, sizeof(struct mark)},
	[MODEL_TABLE_STACKS] = {stacks, sizeof(struct stack_node)},
	[MODEL_TABLE_ARGS] = {args, sizeof(struct span_arg)},
	[MODEL_TABLE_LINKS] = {links, sizeof(struct model_link)},
	[MODEL_TABLE_SAMPLES] = {samples, sizeof(struct sample)},
	[MODEL_TABLE_META] = {meta, sizeof(struct model_meta)},
	[MODEL_TABLE_LEDGER] = {ledger, sizeof(struct ledger_entry)},
	[MODEL_TABLE_SEGMENTS] = {segments, sizeof(struct memory_segment)},
	[MODEL_TABLE_READINGS] = {readings, sizeof(struct thread_reading)},
};

const struct model_field *model_table_fields(uint32_t table)
{
	return table < MODEL_TABLE_END ? tables[table].fields : NULL;
}

size_t model_table_row_bytes(uint32_t table)
{
	return table < MODEL_TABLE_END ? tables[table].row_bytes : 0;
}
