/* SPDX-License-Identifier: Apache-2.0
 *
 * place.c: see place.h.
 */
#include "format/place.h"

#include "format/segment.h"
#include "format/stream_map.h"

#include <stepscope/stepscope.h>

#define MAX_STREAMS 65536u /* of one segment; further streams are ignored */

struct place_state {
	struct fold_result *result;
	struct place_name {
		char *text;
		bool is_operator;
	} * names; /* indexed by symbol */
	uint32_t name_count;
	struct place_stream {
		uint32_t open[64];
		int depth;
		uint32_t last_op; /* last operator that began; 0: none */
		int64_t last_op_step;
		uint32_t call; /* call of the thread while no operators were recorded; 0: none */
		bool is_main, has_events;
		uint64_t last_tick;
	} * streams;
	uint32_t stream_count;
	struct stream_map map;
	struct place_schedule { /* schedule of counted steps */
		bool is_whole;  /* known from the recording's start on, and in order */
		bool is_told;
		bool is_detail; /* operators are recorded since step `since` */
		int64_t since;
	} schedule;
};

static bool place_is_operator(uint8_t kind)
{
	return kind == STEPSCOPE_SYMBOL_OP || kind == STEPSCOPE_SYMBOL_COLLECTIVE ||
	       kind == STEPSCOPE_SYMBOL_BACKWARD || kind == STEPSCOPE_SYMBOL_SCRIPT;
}

static bool place_symbol(void *context, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	struct place_state *place = context;
	if (id >= 1u << 20)
		return true;
	if (id >= place->name_count) {
		uint32_t count = id * 2 + 256;
		struct place_name *grown = realloc(place->names, count * sizeof(*grown));
		if (!grown)
			return true;
		memset(grown + place->name_count, 0, (count - place->name_count) * sizeof(*grown));
		place->names = grown;
		place->name_count = count;
	}
	free(place->names[id].text);
	place->names[id] = (struct place_name){strndup(text, length), place_is_operator(kind)};
	return true;
}

static struct place_stream *place_stream_at(struct place_state *place, uint32_t stream)
{
	uint64_t *number = stream_map_at(&place->map, stream); /* 1 + index */
	if (number && *number)
		return &place->streams[*number - 1];
	if (!number || place->stream_count == MAX_STREAMS)
		return NULL;
	if (place->stream_count % 64 == 0) {
		struct place_stream *grown = realloc(place->streams, (place->stream_count + 64) * sizeof(*grown));
		if (!grown)
			return NULL;
		place->streams = grown;
	}
	*number = place->stream_count + 1;
	place->streams[place->stream_count] = (struct place_stream){0};
	return &place->streams[place->stream_count++];
}

static bool place_thread(void *context, uint32_t stream, const struct stepscope_stream_info *info, const char *name)
{
	struct place_stream *here = place_stream_at(context, stream);
	(void)name;
	if (here)
		here->is_main = info->flags & 1;
	return true;
}

static bool names_operator(const struct place_state *place, uint32_t id)
{
	return id < place->name_count && place->names[id].is_operator;
}

/* Counts the steps before `number` under the previous state, and sets the state from `number` on. */
static void place_note_capture(struct place_state *place, int64_t number, bool is_detail)
{
	struct place_schedule *schedule = &place->schedule;
	struct fold_result *result = place->result;
	schedule->is_whole &= number >= schedule->since; /* otherwise several threads counted */
	if (schedule->is_detail && number > schedule->since) {
		if (!result->steps_detailed)
			result->first_detailed = schedule->since;
		result->last_detailed = number - 1;
		result->steps_detailed += (uint64_t)(number - schedule->since);
	}
	schedule->is_detail = is_detail;
	schedule->since = number;
}

static void end_schedule(struct place_state *place)
{
	int64_t counted = (int64_t)place->result->steps_counted;
	place_note_capture(place, counted > place->schedule.since ? counted : place->schedule.since, false);
	place->result->has_schedule = place->schedule.is_told && place->schedule.is_whole;
}

static void place_step(struct place_state *place, struct place_stream *here, const struct segment_event *event)
{
	struct fold_result *result = place->result;
	if (event->id == STEPSCOPE_STEP_BEGIN && event->payload_count) {
		result->has_step = true;
		result->last_step = (int64_t)event->payload[0];
		here->depth = 0;
	} else if (event->id == STEPSCOPE_STEP_COUNTED && event->payload_count) {
		if (event->payload[0] > result->steps_counted)
			result->steps_counted = event->payload[0];
	} else if (event->id == STEPSCOPE_STEP_CAPTURE && event->payload_count >= 2) {
		bool is_counted = event->payload_count > 2; /* otherwise the first step is still to come */
		place->schedule.is_told = true;
		place_note_capture(place, is_counted ? (int64_t)event->payload[2] : place->schedule.since,
		                   (event->payload[0] == STEPSCOPE_CAPTURE_RECORD ||
		                    event->payload[0] == STEPSCOPE_CAPTURE_SAVE) &&
		                           event->payload[1] & STEPSCOPE_ACTIVE_DETAIL);
	}
}

/* Ends a span. Spans begun in it that go on move down by one level. */
static void end_level(struct place_stream *here, const struct segment_event *event)
{
	uint64_t above = event->id == STEPSCOPE_END_BENEATH && event->payload_count ? event->payload[0] : 0;
	int depth = here->depth--;
	for (int level = above < (uint64_t)depth ? depth - (int)above : depth; level < depth && level < 64; level++)
		here->open[level - 1] = here->open[level];
}

/* Returns the current step: the program's number, or the number of counted steps that have ended. */
static int64_t step_now(const struct fold_result *result)
{
	return result->has_step ? result->last_step : (int64_t)result->steps_counted;
}

static void note_operator(const struct place_state *place, struct place_stream *here, uint32_t id)
{
	if (!names_operator(place, id))
		return;
	here->last_op = id;
	here->last_op_step = step_now(place->result);
}

static bool place_events(void *context, const struct stepscope_block *block, const struct segment_event *events,
                         uint32_t count)
{
	struct place_state *place = context;
	struct place_stream *here = place_stream_at(place, block->stream);
	if (here && !here->has_events)
		place->schedule.is_whole &= block->first_word == 0; /* otherwise there was an earlier file */
	for (uint32_t i = 0; here && i < count; i++) {
		here->has_events = true;
		const struct segment_event *event = &events[i];
		here->last_tick = event->tick;
		if (event->type == STEPSCOPE_EVENT_STEP) {
			place_step(place, here, event);
		} else if (event->type == STEPSCOPE_EVENT_EXTENDED) {
			if (event->id == STEPSCOPE_EXTENDED_CALL && event->payload_count)
				here->call = (uint32_t)event->payload[0];
		} else if (event->type == STEPSCOPE_EVENT_BEGIN) {
			if (here->depth < 64)
				here->open[here->depth] = event->id;
			here->depth++;
			note_operator(place, here, event->id);
		} else if (event->type == STEPSCOPE_EVENT_END && here->depth > 0) {
			end_level(here, event);
		} else if (event->type == STEPSCOPE_EVENT_SWITCH && here->depth > 0 && here->depth <= 64) {
			here->open[here->depth - 1] = event->id;
			note_operator(place, here, event->id);
		}
	}
	return true;
}

/* Returns the call that the thread was in while no operators were recorded. Without one, returns the innermost open
 * operator, otherwise the last operator, because a process may die between two operators, otherwise another open span,
 * such as a range. */
static uint32_t find_op(const struct place_state *place, const struct place_stream *here)
{
	int depth = here->depth > 64 ? 64 : here->depth;

	if (here->call)
		return here->call;
	for (int i = depth; i-- > 0;) {
		if (names_operator(place, here->open[i]))
			return here->open[i];
	}
	return here->last_op || !depth ? here->last_op : here->open[depth - 1];
}

void place_find(const char *segment, struct fold_result *result)
{
	struct place_state place = {.result = result, .schedule.is_whole = true};
	const struct segment_visitor visitor = {
		.context = &place, .symbol = place_symbol, .stream = place_thread, .events = place_events};
	struct segment_stats stats;
	const struct place_stream *best = NULL;
	if (segment_read(segment, &visitor, &stats, NULL) == STATUS_OK) {
		for (uint32_t i = 0; i < place.stream_count; i++) {
			const struct place_stream *here = &place.streams[i];
			bool is_better = !best || here->is_main > best->is_main ||
			                 (here->is_main == best->is_main && here->last_tick > best->last_tick);
			if ((here->depth > 0 || here->last_op || here->call) && is_better)
				best = here;
		}
		uint32_t op = best ? find_op(&place, best) : 0;
		end_schedule(&place);
		if (op && op < place.name_count && place.names[op].text)
			snprintf(result->last_op, sizeof(result->last_op), "%s", place.names[op].text);
		result->is_earlier_op = op && op == best->last_op && op != best->call &&
		                        best->last_op_step < step_now(result);
		result->last_op_step = best ? best->last_op_step : 0;
	}
	for (uint32_t i = 0; i < place.name_count; i++)
		free(place.names[i].text);
	free(place.names);
	free(place.streams);
	stream_map_release(&place.map);
}
