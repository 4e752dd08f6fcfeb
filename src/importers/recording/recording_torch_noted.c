/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_torch_noted.c: stretches that the recorder noted while it recorded no operators (STEPSCOPE_STEP_TRAINING), as records.
 */
#include "base/memory.h"
#include "importers/recording/recording_torch_scan.h"

#include <stepscope/stepscope.h>

#define MAX_INSIDE 10000u /* stretches noted in one call */

/* The index of a call's record: what lies inside of it was noted before it. */
static uint32_t call_record(struct stream_scan *stream, uint32_t record)
{
	const struct train_record call = stream->records[record];
	uint32_t at = record;
	while (at && record - at < MAX_INSIDE && stream->records[at - 1].start_ns >= call.start_ns) {
		stream->records[at] = stream->records[at - 1];
		stream->records[at].is_inside = true;
		at--;
	}
	stream->records[at] = call;
	return at;
}

/* What is open tells more than notes do, which are of what is no record. */
static bool has_records(const struct stream_scan *stream)
{
	return stream->depth > stream->aside;
}

/* A compilation traces forwards and backwards, which no step makes. */
static bool is_compiled(const struct stream_scan *stream, int64_t start_ns)
{
	return start_ns >= stream->compile_ns && start_ns < stream->compiled_ns;
}

/* A range around what was noted since. */
static void on_profiler_step(struct torch_scan *scan, struct stream_scan *stream, int64_t start_ns, int64_t end_ns,
                             uint64_t step)
{
	int64_t before_ns = stream->range_count ? stream->ranges[stream->range_count - 1].end_ns : INT64_MIN;
	if (scan->range_count == TORCH_SCAN_MAX_RECORDS || !step || step > UINT32_MAX || has_records(stream) ||
	    start_ns < before_ns) /* what a recorder does not write */
		return;
	scan->range_count++;
	scan->notes_profiler_steps = true;
	MEMORY_GROW(stream->ranges, stream->range_count, stream->range_capacity, 64);
	for (uint32_t i = stream->record_count; i-- > 0 && scan->moves < MAX_MOVES; scan->moves++) {
		if (stream->records[i].start_ns < start_ns)
			break;
		if (stream->records[i].range == NO_RANGE)
			stream->records[i].range = stream->range_count;
	}
	stream->ranges[stream->range_count++] = (struct train_range){
		.start_ns = start_ns, .end_ns = end_ns, .parent = NO_RANGE, .step = (uint32_t)step};
	stream->profiler_steps++;
	stream->before_ns = end_ns;
}

/* Which module a stretch is the call of, and its mode. */
static void set_module(struct torch_scan *scan, struct train_record *record, uint64_t object, uint64_t symbol)
{
	record->object = object;
	record->is_module = true;
	if (object & STEPSCOPE_MODULE_TRAINS)
		number_map_set(&scan->trained, object >> 1, 1);
	else
		number_map_set(&scan->evaluated, object >> 1, (uint32_t)symbol);
}

void torch_note_training(struct torch_scan *scan, struct stream_scan *stream, const struct segment_event *event,
                         struct clock_cursor clock)
{
	static const uint8_t tokens[] = {
		[STEPSCOPE_TRAINING_OP] = TOKEN_OP,
		[STEPSCOPE_TRAINING_FORWARD] = TOKEN_FORWARD,
		[STEPSCOPE_TRAINING_DATA] = TOKEN_DATA,
		[STEPSCOPE_TRAINING_BACKWARD] = TOKEN_BACKWARD,
		[STEPSCOPE_TRAINING_OPTIMIZER] = TOKEN_OPTIMIZER,
		[STEPSCOPE_TRAINING_ZERO_GRAD] = TOKEN_ZERO_GRAD,
		[STEPSCOPE_TRAINING_SCALER] = TOKEN_SCALER,
		[STEPSCOPE_TRAINING_SAVE] = TOKEN_SAVE,
		[STEPSCOPE_TRAINING_LOADER] = TOKEN_LOADER,
		[STEPSCOPE_TRAINING_HOOKED] = TOKEN_CUT, /* of no stretch */
		[STEPSCOPE_TRAINING_LOADER_END] = TOKEN_LOADER_END,
	};
	uint8_t token = (uint8_t)event->payload[0];
	int64_t start_ns = clock_ns(&clock, event->payload[1]), end_ns = clock_ns(&clock, event->payload[2]);
	const struct train_record *last = stream->record_count ? &stream->records[stream->record_count - 1] : NULL;
	if (end_ns > stream->last_ns) /* ticks of events are rounded down */
		end_ns = stream->last_ns;
	if (token == STEPSCOPE_TRAINING_HOOKED && end_ns >= start_ns)
		torch_add_hooked(scan, stream, start_ns, end_ns);
	if (token == STEPSCOPE_TRAINING_PROFILER_STEP && end_ns >= start_ns && event->payload_count > 3)
		on_profiler_step(scan, stream, start_ns, end_ns, event->payload[3]);
	if (token >= sizeof tokens || tokens[token] == TOKEN_CUT || end_ns < start_ns || start_ns < stream->noted_ns ||
	    has_records(stream) || is_compiled(stream, start_ns))
		return;
	if (last && start_ns < last->start_ns && tokens[token] != TOKEN_OPTIMIZER)
		return;
	bool is_module = event->payload_count > 4 && (tokens[token] == TOKEN_OP || tokens[token] == TOKEN_FORWARD);
	uint32_t record = is_module ? torch_make_record(scan, stream, tokens[token], NO_RANGE, start_ns)
	                            : torch_add_record(scan, stream, tokens[token], NO_RANGE, start_ns);
	if (record == NO_RANGE)
		return;
	if (is_module)
		set_module(scan, &stream->records[record], event->payload[3], event->payload[4]);
	stream->records[record].end_ns = end_ns;
	stream->records[record].is_first |= tokens[token] == TOKEN_BACKWARD && !stream->records[record].is_noted;
	stream->records[record].is_noted = true;
	stream->records[record].is_training |= (event->payload[0] & STEPSCOPE_TRAINING_IS_TRAINING) != 0;
	stream->records[record].is_inside = (event->payload[0] & STEPSCOPE_TRAINING_IS_INSIDE) != 0;
	stream->records[record].is_empty = (event->payload[0] & STEPSCOPE_TRAINING_IS_EMPTY) != 0;
	if (tokens[token] == TOKEN_OPTIMIZER) {
		record = call_record(stream, record);
		torch_set_optimizer(&stream->records[record], event->payload_count > 3 ? event->payload[3] : 0);
	}
	stream->before_ns = end_ns;
	if (!stream->records[record].is_inside)
		stream->noted_ns = end_ns;
}
