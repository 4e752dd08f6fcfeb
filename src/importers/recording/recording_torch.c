/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_torch.c: see recording_torch.h. A record counts when it lies in no other one but an optimizer's call; ranges of the user's
 * around it do not matter, but a step or phase must not cut them. Neighbours that say the same are one record, so a step costs
 * some ten of them. Work on gradients in other threads (a GPU's) is put among the records of the thread that trains.
 */
#include "importers/recording/recording_torch.h"

#include "base/memory.h"
#include "importers/recording/recording_torch_scan.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

/* Deeper ranges and spans do not matter to steps. */
#define MAX_RANGES 64u
#define MAX_DEPTH 10000u
#define MAX_ABOVE 1024u /* levels that an END looks beneath; no program has more */

static struct stream_scan *stream_of(struct torch_scan *scan, uint32_t number)
{
	uint32_t found = number_map_find(&scan->stream_map, number);
	if (found != NUMBER_MAP_NONE)
		return &scan->streams[found];
	if (scan->stream_count == RECORDING_MAX_TRACKS)
		return NULL;
	MEMORY_GROW(scan->streams, scan->stream_count, scan->stream_capacity, 8);
	number_map_set(&scan->stream_map, number, scan->stream_count);
	scan->streams[scan->stream_count] = (struct stream_scan){
		.stream = number, .node = NO_RANGE, .data = NO_RANGE, .module_record = NO_RANGE, .numbers = NO_RANGE};
	record_fold_init(&scan->streams[scan->stream_count].fold);
	return &scan->streams[scan->stream_count++];
}

static const struct open_record *recording_torch_innermost(const struct stream_scan *stream)
{
	static const struct open_record nothing = {.record = NO_RANGE, .level.range = NO_RANGE};
	return stream->depth ? &stream->open[stream->depth - 1] : &nothing;
}

/* One that keeps and hides nothing. */
static struct open_record *recording_torch_push(struct stream_scan *stream)
{
	struct open_record open = *recording_torch_innermost(stream);
	MEMORY_GROW(stream->open, stream->depth, stream->capacity, 32);
	open.record = NO_RANGE;
	open.level = fold_level_in(&open.level);
	open.is_phase = open.is_aside = false;
	open.is_hidden = stream->fold.hidden > 0;
	open.class = CLASS_UNKNOWN;
	open.compiled = open.profiler_step = 0;
	stream->open[stream->depth++] = open;
	return &stream->open[stream->depth - 1];
}

static void recording_torch_add_range(struct torch_scan *scan, struct stream_scan *stream, struct open_record *open,
                                      int64_t time_ns)
{
	if (!fold_level_takes_range(&stream->fold, &open->level, MAX_RANGES) ||
	    scan->range_count == TORCH_SCAN_MAX_RECORDS)
		return;
	scan->range_count++;
	MEMORY_GROW(stream->ranges, stream->range_count, stream->range_capacity, 64);
	stream->ranges[stream->range_count] = (struct train_range){
		.start_ns = time_ns, .end_ns = time_ns, .parent = open->level.range, .step = open->profiler_step};
	stream->profiler_steps += open->profiler_step > 0;
	fold_level_set_range(&open->level, stream->range_count++);
}

static uint64_t recording_torch_sequence_of(const struct segment_event *event, enum record_class class)
{
	bool has_sequence = event->payload_count && class != CLASS_COLLECTIVE &&
	                    event->payload[STEPSCOPE_BEGIN_SEQUENCE] != STEPSCOPE_NO_SEQUENCE;
	return has_sequence ? event->payload[STEPSCOPE_BEGIN_SEQUENCE] & 0xffffffffffffu : STEPSCOPE_NO_SEQUENCE;
}

/* A node of a graph is told of in the engine's record. */
static uint8_t token_of(enum record_class class)
{
	return class == CLASS_NODE || class == CLASS_ACCUMULATE ? TOKEN_OP : record_token(class);
}

/* A call of a module that makes a graph stands alone: a backward may work on it, or on what is behind it. A backward may begin with a seed. */
static bool recording_torch_may_join(const struct train_record *last, uint8_t token)
{
	return last->token == token && !(last->is_module && token == TOKEN_FORWARD) && !last->is_seed;
}

static bool is_alike(const struct stream_scan *stream, const struct train_record *last, uint32_t range)
{
	return last->range == range && last->is_inside == (stream->fold.optimizers > 0);
}

/* A node, this long behind the one before: what lies between them is the program's own. Where the first gradient is the program's, too, the
 * nodes' numbers tell (split_node()). */
static bool begins_call(const struct stream_scan *stream, int64_t from_ns, int64_t time_ns)
{
	return stream->fold.has_ones && train_pauses(TOKEN_BACKWARD, from_ns, time_ns);
}

/* Notes are of whole calls: calls far apart are two, as those of a closure that an optimizer calls several times. */
static bool is_noted_apart(const struct train_record *last, int64_t time_ns)
{
	return last->is_noted && train_pauses(TOKEN_BACKWARD, last->end_ns, time_ns);
}

/* Operators between those of a forward, or of a backward, need no record. Those of a forward belong to it. */
static bool is_between(const struct stream_scan *stream, uint8_t token, uint32_t range, int64_t time_ns)
{
	const struct train_record *last = &stream->records[stream->record_count - 1];
	bool may_be_forward = stream->fold.pending + 1 == stream->record_count;
	if (token == TOKEN_OP || last->token != TOKEN_OP || stream->record_count < 2 ||
	    !recording_torch_may_join(&last[-1], token) || !is_alike(stream, &last[-1], range) ||
	    (token == TOKEN_BACKWARD && (may_be_forward || last->is_seed)))
		return false;
	return token == TOKEN_BACKWARD ? !begins_call(stream, last[-1].end_ns, time_ns)
	                               : !train_pauses(token, last[-1].end_ns, last->start_ns) &&
	                                         !train_pauses(token, last->end_ns, time_ns);
}

/* The record before, when one more like it says nothing new; what lies between them goes, too. */
static struct train_record *same_before(struct stream_scan *stream, uint8_t token, uint32_t range, int64_t time_ns)
{
	struct train_record *last = stream->record_count ? &stream->records[stream->record_count - 1] : NULL;
	if (last && last->work == WORK_PLAIN)
		return NULL;
	if (last && last->is_module && last->object) /* an evaluation, maybe: as long as its call */
		return NULL;
	if (token != TOKEN_OP && token != TOKEN_FORWARD && token != TOKEN_BACKWARD && token != TOKEN_UPDATE)
		return NULL;
	/* a call of a module, and what may be a forward, stay between updates */
	if (token == TOKEN_UPDATE && last && (last->is_module || stream->fold.pending + 1 == stream->record_count))
		return NULL;
	if (!last || !is_alike(stream, last, range))
		return NULL;
	if (last->token == token) {
		bool is_apart = token == TOKEN_BACKWARD
		                        ? begins_call(stream, last->end_ns, time_ns) || is_noted_apart(last, time_ns)
		                        : train_pauses(token, last->end_ns, time_ns);
		return recording_torch_may_join(last, token) && !is_apart ? last : NULL;
	}
	if (!is_between(stream, token, range, time_ns))
		return NULL;
	stream->record_count--;
	return last - 1;
}

uint32_t torch_make_record(struct torch_scan *scan, struct stream_scan *stream, uint8_t token, uint32_t range,
                           int64_t time_ns)
{
	if (scan->record_count == TORCH_SCAN_MAX_RECORDS)
		return NO_RANGE;
	scan->record_count++;
	MEMORY_GROW(stream->records, stream->record_count, stream->record_capacity, 256);
	stream->records[stream->record_count] = (struct train_record){.start_ns = time_ns,
	                                                              .end_ns = time_ns,
	                                                              .range = range,
	                                                              .token = token,
	                                                              .is_inside = stream->fold.optimizers > 0};
	return stream->record_count++;
}

uint32_t torch_add_record(struct torch_scan *scan, struct stream_scan *stream, uint8_t token, uint32_t range,
                          int64_t time_ns)
{
	struct train_record *same = same_before(stream, token, range, time_ns);
	stream->calls += token == TOKEN_OPTIMIZER;
	stream->nodes += token == TOKEN_BACKWARD;
	if (same)
		return (uint32_t)(same - stream->records);
	uint32_t record = torch_make_record(scan, stream, token, range, time_ns);
	if (record != NO_RANGE)
		stream->records[record].is_first = stream->fold.has_ones;
	return record;
}

void torch_add_hooked(struct torch_scan *scan, struct stream_scan *stream, int64_t start_ns, int64_t end_ns)
{
	if (scan->record_count == TORCH_SCAN_MAX_RECORDS)
		return;
	scan->record_count++;
	MEMORY_GROW(stream->hooked, stream->hooked_count, stream->hooked_capacity, 64);
	stream->hooked[stream->hooked_count++] = (struct train_call){start_ns, end_ns};
}

static void count_writes(struct train_record *update, enum record_class class)
{
	bool is_many = class == CLASS_ZERO_MANY || class == CLASS_WRITE_MANY;
	train_count_writes(update, is_many ? TRAIN_MANY_TENSORS : 1, record_zeroes(class));
}

/* One that zeroes gradients behind an update, or before one, is no part of its time. */
static void join_update(struct train_record *update, const struct train_record *more)
{
	bool is_only_zeroed = !more->count && update->count;
	if (!update->count)
		update->start_ns = more->start_ns;
	update->end_ns = is_only_zeroed ? update->end_ns : more->end_ns;
	train_count_writes(update, more->count, false);
	train_count_writes(update, more->part, true);
}

/* A record that has become what the ones before it are need not stand for itself; a module's does, for steps may begin with it. */
static void join_last(struct torch_scan *scan, struct stream_scan *stream)
{
	const struct train_record last = stream->records[stream->record_count - 1];
	if (last.is_module || last.is_inside != (stream->fold.optimizers > 0))
		return;
	stream->record_count--;
	struct train_record *same = same_before(stream, last.token, last.range, last.start_ns);
	if (same && last.token == TOKEN_UPDATE)
		join_update(same, &last);
	else if (same) {
		same->end_ns = last.end_ns;
		same->work = train_join_work(same->work, last.work);
	} else
		stream->records[stream->record_count++] = last;
	scan->record_count -= same != NULL;
}

/* Its nodes have this one or higher ones. */
static void recording_torch_note_number(struct train_record *record, uint64_t sequence)
{
	if (!record->sequence)
		record->sequence = sequence + 1;
}

/* The next number that is known to be given is `next`. */
static void settle_pending(struct torch_scan *scan, struct stream_scan *stream, uint64_t next)
{
	size_t pending = stream->fold.pending;
	if (pending == NO_RECORD)
		return;
	if (fold_has_made_node(&stream->fold, next)) {
		stream->records[pending].token = TOKEN_FORWARD;
		recording_torch_note_number(&stream->records[pending], stream->fold.pending_sequence);
	} else if (stream->pending_class) {
		stream->records[pending].token = TOKEN_UPDATE;
		count_writes(&stream->records[pending], (enum record_class)stream->pending_class);
	}
	stream->fold.pending = NO_RECORD;
	stream->pending_class = CLASS_UNKNOWN;
	bool is_open = stream->module_depth && stream->module_record == pending;
	if (pending + 1 == stream->record_count && !is_open)
		join_last(scan, stream);
}

static void begin_module(struct stream_scan *stream, int64_t time_ns)
{
	if (stream->module_depth || stream->fold.hidden)
		return;
	stream->module_depth = stream->depth;
	stream->module_optimizer = stream->fold.optimizers;
	stream->module_record = NO_RANGE;
	stream->module_object = 0;
	stream->module_symbol = 0;
	stream->module_has_function = stream->module_is_plain = false;
	stream->plain = 0;
	stream->module_range = recording_torch_innermost(stream)->level.range;
	stream->module_ns = time_ns;
}

/* Operators in a module are one record, a forward when one of them is. A backward in between ends it. */
static uint32_t add_module_record(struct torch_scan *scan, struct stream_scan *stream)
{
	uint32_t index = stream->module_record;
	if (index != NO_RANGE && index + 1 == stream->record_count)
		return index;
	bool is_behind = index != NO_RANGE && stream->record_count;
	int64_t start_ns = is_behind ? stream->records[stream->record_count - 1].end_ns : stream->module_ns;
	index = torch_make_record(scan, stream, TOKEN_OP, stream->module_range, start_ns);
	if (index != NO_RANGE)
		stream->records[index].is_module = true;
	return stream->module_record = index;
}

static void end_module(struct stream_scan *stream, int64_t time_ns)
{
	uint32_t index = stream->module_record;
	if (index != NO_RANGE && index + 1 == stream->record_count) {
		/* where it made no graph PyTorch's own operators have no numbers */
		if (stream->module_has_function && !stream->module_is_plain)
			stream->records[index].token = TOKEN_FORWARD;
		stream->records[index].end_ns = time_ns;
		stream->records[index].object = stream->module_object;
	}
	stream->module_depth = 0;
}

/* An operator that writes in place, where it may be an update by hand: no optimizer was called so far. */
static uint32_t add_update(struct torch_scan *scan, struct stream_scan *stream, const struct open_record *open,
                           int64_t time_ns)
{
	uint32_t record = torch_add_record(scan, stream, TOKEN_UPDATE, open->level.range, time_ns);
	if (record == NO_RANGE)
		return NO_RANGE;
	struct train_record more = {.start_ns = time_ns, .end_ns = time_ns};
	count_writes(&more, (enum record_class)open->class);
	join_update(&stream->records[record], &more);
	bool is_only_zeroed = !more.count && stream->records[record].count;
	return is_only_zeroed ? NO_RANGE : record;
}

/* An optimizer's own work, if its closure ran before; neighbours are one record. */
static uint32_t add_plain(struct torch_scan *scan, struct stream_scan *stream, uint32_t range, int64_t time_ns)
{
	const struct train_record *last = stream->record_count ? &stream->records[stream->record_count - 1] : NULL;
	if (last && last->work == WORK_PLAIN && is_alike(stream, last, range) &&
	    !train_pauses(TOKEN_OP, last->end_ns, time_ns))
		return stream->record_count - 1;
	uint32_t record = torch_make_record(scan, stream, TOKEN_OP, range, time_ns);
	if (record != NO_RANGE)
		stream->records[record].work = WORK_PLAIN;
	return record;
}

/* An operator that is in no other record; `sequence` STEPSCOPE_NO_SEQUENCE: it cannot have made a node. */
static uint32_t add_operator(struct torch_scan *scan, struct stream_scan *stream, const struct open_record *open,
                             uint64_t sequence, int64_t time_ns)
{
	bool writes = record_writes((enum record_class)open->class);
	bool has_number = sequence != STEPSCOPE_NO_SEQUENCE;
	bool is_of_module = stream->module_depth && stream->fold.optimizers == stream->module_optimizer;
	bool may_update = writes && !is_of_module && !stream->fold.optimizers && !stream->calls;
	bool is_seed = open->class == CLASS_ONES && !is_of_module; /* which makes no node */
	if (has_number)
		settle_pending(scan, stream, sequence);
	else if (may_update)
		return add_update(scan, stream, open, time_ns);
	bool says_nothing = !has_number && !is_of_module && !is_seed;
	if (says_nothing && stream->fold.optimizers)
		return add_plain(scan, stream, open->level.range, time_ns);
	if (says_nothing && stream->fold.pending != NO_RECORD)
		return NO_RANGE;
	uint32_t count = stream->record_count;
	uint8_t work = open->class == CLASS_MOVE ? WORK_MOVE : open->class == CLASS_LAYER ? WORK_LAYER : WORK_ANY;
	uint32_t record = is_of_module ? add_module_record(scan, stream)
	                  : has_number || is_seed
	                          ? torch_make_record(scan, stream, TOKEN_OP, open->level.range, time_ns)
	                          : torch_add_record(scan, stream, TOKEN_OP, open->level.range, time_ns);
	if (record != NO_RANGE) {
		stream->records[record].work = record >= count ? work
		                                               : train_join_work(stream->records[record].work, work);
		stream->records[record].is_seed |= is_seed;
	}
	if (has_number)
		fold_note_number(&stream->fold, (enum record_class)open->class, sequence);
	if (has_number && record != NO_RANGE)
		recording_torch_note_number(&stream->records[record], sequence);
	if (is_of_module && open->class == CLASS_FUNCTION) {
		stream->module_has_function = true;
		return record;
	}
	if (is_of_module && !has_number && !open->compiled)
		stream->plain = stream->depth;
	if (has_number && !is_seed && record != NO_RANGE && stream->records[record].token != TOKEN_FORWARD) {
		fold_set_pending(&stream->fold, record, sequence);
		stream->pending_class = may_update ? open->class : CLASS_UNKNOWN;
	}
	return record;
}

static void begin_record(struct torch_scan *scan, struct stream_scan *stream, struct open_record *open,
                         uint64_t sequence, uint8_t token, int64_t time_ns)
{
	bool is_kept = !stream->fold.optimizers || token == TOKEN_BACKWARD || token == TOKEN_OPTIMIZER;
	if (token == TOKEN_OP)
		open->record = add_operator(scan, stream, open, sequence, time_ns);
	else
		open->record = is_kept ? torch_add_record(scan, stream, token, open->level.range, time_ns) : NO_RANGE;
	fold_level_open(&stream->fold, &open->level, open->record == NO_RANGE ? TOKEN_OP : token);
	if (token == TOKEN_BACKWARD)
		stream->node = open->record;
	if (token == TOKEN_BACKWARD || open->class == CLASS_ONES)
		stream->fold.has_ones = open->class == CLASS_ONES;
}

/* What it calls may be a whole step: a step takes it in as a range. */
static void begin_compiled(struct torch_scan *scan, struct stream_scan *stream, struct open_record *open,
                           int64_t time_ns)
{
	if (stream->fold.hidden)
		return;
	open->compiled = 1 + stream->record_count;
	open->compiled_ns = time_ns;
	if (stream->module_depth) /* a part of the module's record */
		add_operator(scan, stream, open, STEPSCOPE_NO_SEQUENCE, time_ns);
	else
		recording_torch_add_range(scan, stream, open, time_ns);
}

/* Of a module in evaluation mode. */
static bool is_evaluation_call(const struct train_record *record)
{
	return record->is_module && record->object && !(record->object & STEPSCOPE_MODULE_TRAINS);
}

/* Where it called operators only they are one record, as long as the code, and the code is one also when nothing that it called has
 * a record. */
static void end_compiled(struct torch_scan *scan, struct stream_scan *stream, const struct open_record *open,
                         int64_t time_ns)
{
	uint32_t first = open->compiled - 1;
	bool is_forward = false, is_module = false, is_plain = stream->fold.optimizers > 0,
	     has_pending = stream->fold.pending != NO_RECORD && stream->fold.pending >= first;
	uint64_t sequence = 0;
	for (uint32_t i = first; i < stream->record_count; i++) {
		const struct train_record *record = &stream->records[i];
		bool is_work = (record->token == TOKEN_OP || record->token == TOKEN_FORWARD) &&
		               !is_evaluation_call(record);
		if (!is_work && record->token != TOKEN_UPDATE)
			return;
		sequence = is_forward ? sequence : record->sequence;
		is_forward |= record->token == TOKEN_FORWARD;
		is_module |= record->is_module;
		is_plain &= record->work == WORK_PLAIN;
	}
	if (stream->fold.optimizers && first == stream->record_count)
		return;
	scan->record_count -= stream->record_count - first;
	stream->record_count = first;
	if (open->level.is_range && open->level.range + 1 == stream->range_count) {
		scan->range_count--;
		stream->range_count--;
	}
	uint32_t range = stream->depth ? stream->open[stream->depth - 1].level.range : NO_RANGE;
	uint32_t record = torch_make_record(scan, stream, is_forward ? TOKEN_FORWARD : TOKEN_OP, range,
	                                    open->compiled_ns);
	if (record == NO_RANGE)
		return;
	stream->records[record].end_ns = time_ns;
	stream->records[record].sequence = sequence;
	stream->records[record].is_module = is_module;
	stream->records[record].work = is_plain ? WORK_PLAIN : WORK_ANY;
	if (has_pending)
		stream->fold.pending = record;
	else
		join_last(scan, stream);
}

/* An operator without a number, before what it calls first finds that this one comes next: where one before that can have been taken by no operator,
 * it made a node itself, if a backward works on that, as code of TorchScript does. */
static void note_maker(const struct stream_scan *stream, uint32_t record, uint64_t sequence)
{
	uint64_t first;
	stream->records[record].is_maker = fold_skips_numbers(&stream->fold, sequence, &first);
	if (stream->records[record].is_maker)
		recording_torch_note_number(&stream->records[record], first);
}

/* An operator without a number: what it calls first may have one. */
static void begin_inner_operator(struct torch_scan *scan, struct stream_scan *stream, enum record_class class,
                                 uint64_t sequence)
{
	const struct open_record *outer = &stream->open[stream->depth - 2];
	uint32_t record = outer->record;
	if (sequence != STEPSCOPE_NO_SEQUENCE && stream->plain + 1 == stream->depth)
		stream->plain = 0;
	if (record != NO_RANGE && sequence != STEPSCOPE_NO_SEQUENCE && stream->records[record].work == WORK_PLAIN)
		stream->records[record].work = WORK_ANY;
	bool is_of_operator = stream->fold.hidden == 1 && outer->level.hides && record != NO_RANGE &&
	                      stream->records[record].token == TOKEN_OP && !stream->records[record].is_seed;
	bool is_first = is_of_operator && record != stream->fold.pending && sequence != STEPSCOPE_NO_SEQUENCE;
	if (is_first && !stream->records[record].sequence)
		note_maker(stream, record, sequence);
	if (sequence != STEPSCOPE_NO_SEQUENCE)
		fold_note_number(&stream->fold, class, sequence);
	if (!is_first)
		return;
	settle_pending(scan, stream, sequence);
	fold_set_pending(&stream->fold, record, sequence);
	stream->pending_class = CLASS_UNKNOWN;
}

/* The engine's record of its work on this node went on with the one before, of another backward. */
static void split_node(struct torch_scan *scan, struct stream_scan *stream, struct open_record *engine)
{
	struct train_record *joined = &stream->records[stream->node];
	if (stream->node != engine->record)
		return;
	if (joined->start_ns < engine->start_ns) {
		uint32_t record = torch_make_record(scan, stream, TOKEN_BACKWARD, joined->range, engine->start_ns);
		if (record == NO_RANGE)
			return;
		engine->record = stream->node = record;
	}
	stream->records[stream->node].is_first = true;
}

/* A node in the engine's record of its work on it, which has no number. So many were given, at least; within a backward they go down. */
static void begin_gradient(struct torch_scan *scan, struct stream_scan *stream, uint64_t sequence)
{
	if (sequence == STEPSCOPE_NO_SEQUENCE)
		return;
	if (stream->fold.pending != NO_RECORD && stream->fold.pending_sequence <= sequence)
		settle_pending(scan, stream, sequence + 1);
	if (stream->fold.hidden != 1 || stream->node == NO_RANGE) /* a backward in one */
		return;
	if (sequence >= stream->sequence)
		split_node(scan, stream, &stream->open[stream->depth - 2]);
	stream->sequence = sequence;
}

/* `like`: its class, time, ... */
static void begin_open(struct torch_scan *scan, struct stream_scan *stream, const struct open_record *like)
{
	struct open_record *open = recording_torch_push(stream);
	open->is_phase = like->is_phase;
	open->class = like->class;
	open->start_ns = like->start_ns;
	open->sequence = like->sequence;
	open->profiler_step = like->profiler_step;
	if (like->is_phase)
		open->phase = stream->depth;
	switch ((enum record_class)like->class) {
	case CLASS_UNKNOWN:
	case CLASS_RARE:
	case CLASS_PROFILER_STEP:
		recording_torch_add_range(scan, stream, open, like->start_ns);
		return;
	case CLASS_MODULE:
		begin_module(stream, like->start_ns);
		return;
	case CLASS_COMPILED:
		begin_compiled(scan, stream, open, like->start_ns);
		return;
	case CLASS_SAMPLER:
	case CLASS_MODE:
		fold_level_hide(&stream->fold, &open->level);
		return;
	default:
		break;
	}
	uint8_t token = token_of((enum record_class)like->class);
	if (!stream->fold.hidden) {
		begin_record(scan, stream, open, like->sequence, token, like->start_ns);
		if (like->class == CLASS_DATA_HERE && open->record != NO_RANGE) {
			stream->records[open->record].is_empty = stream->has_data_work;
			stream->data = open->record;
		}
	} else if (like->class == CLASS_NODE) {
		begin_gradient(scan, stream, like->sequence);
	} else if (token == TOKEN_OP) {
		begin_inner_operator(scan, stream, (enum record_class)like->class, like->sequence);
	} else if (like->class == CLASS_OPTIMIZER && stream->node != NO_RANGE && !stream->hooked_depth) {
		stream->hooked_depth = stream->depth;
		stream->hooked_ns = like->start_ns;
	}
}

/* A node of a graph tells which thread has made it, when, by its number, it did. */
static void note_followed(struct torch_scan *scan, const struct stream_scan *stream, const struct segment_event *event)
{
	uint64_t word = event->payload_count ? event->payload[STEPSCOPE_BEGIN_SEQUENCE] : STEPSCOPE_NO_SEQUENCE;
	uint64_t thread = word == STEPSCOPE_NO_SEQUENCE ? 0 : word >> 48;
	if (!thread || thread == stream->torch_thread)
		return;
	uint32_t number = (uint32_t)word & INT32_MAX, before = number_map_find(&scan->followed, thread);
	if (before == NUMBER_MAP_NONE || before < number)
		number_map_set(&scan->followed, thread, number);
}

void torch_set_optimizer(struct train_record *call, uint64_t value)
{
	call->object = value & ~STEPSCOPE_OPTIMIZER_IS_NEW;
	call->is_new = (value & STEPSCOPE_OPTIMIZER_IS_NEW) != 0;
}

/* In the node that is being worked on. One that adds to a gradient is of a backward that trains; the first operator in it makes the sum
 * with what was there, or else keeps the new one. */
static void note_gradient(struct stream_scan *stream, enum record_class class)
{
	struct train_record *node = &stream->records[stream->node];
	bool is_in_it = recording_torch_innermost(stream)->class == CLASS_ACCUMULATE && stream->is_gradient_next;
	if (class == CLASS_ACCUMULATE)
		fold_add_gradient(node, class);
	node->part += is_in_it && fold_is_sum(class);
	stream->is_gradient_next = class == CLASS_ACCUMULATE;
}

/* A call of a module has begun. One in another that trains is a part of that, and is known by its name when it is called alone. */
static void note_module(struct torch_scan *scan, struct stream_scan *stream, uint32_t symbol)
{
	if (stream->module_depth == stream->depth)
		stream->module_symbol = symbol;
	else if (stream->module_depth && stream->module_object & STEPSCOPE_MODULE_TRAINS)
		number_map_set(&scan->parts, symbol, 1);
}

static bool is_rare(enum record_class class)
{
	return class == CLASS_RARE || class == CLASS_COMPILE || class == CLASS_SAVE || class == CLASS_LOADER_START ||
	       class == CLASS_LOADER_STOP;
}

static void begin_aside(struct stream_scan *stream, enum record_class class, int64_t time_ns)
{
	recording_torch_push(stream)->is_aside = true;
	stream->aside++;
	if (class != CLASS_COMPILE || stream->compiling)
		return;
	stream->compiling = stream->depth;
	stream->compile_ns = time_ns;
	stream->compiled_ns = INT64_MAX;
}

static void recording_torch_on_begin(struct torch_scan *scan, struct stream_scan *stream,
                                     const struct segment_event *event, int64_t time_ns)
{
	enum record_class class = event->id < scan->class_capacity ? scan->classes[event->id] : CLASS_UNKNOWN;
	uint64_t optimizer = class == CLASS_COMPILED ? torch_compiled_optimizer(scan, event->id) : 0;
	class = optimizer ? CLASS_OPTIMIZER : class;
	bool is_phase = event->id >= STEPSCOPE_BUILTIN_PHASE_DATA && event->id <= STEPSCOPE_BUILTIN_PHASE_EVALUATION;
	bool is_step = class == CLASS_PROFILER_STEP;
	bool is_work = class != CLASS_UNKNOWN && class != CLASS_RARE && class != CLASS_MODULE && class != CLASS_MODE &&
	               !is_step;
	scan->has_phases |= is_phase;
	if (stream->depth == MAX_DEPTH) {
		stream->deeper++;
		return;
	}
	if (stream->is_detail_off && is_rare(class)) {
		begin_aside(stream, class, time_ns);
		return;
	}
	if (event->payload_count)
		torch_nodes_note(scan, stream, event->payload[STEPSCOPE_BEGIN_SEQUENCE]);
	if (stream->node != NO_RANGE) {
		note_gradient(stream, class);
		note_followed(scan, stream, event);
	}
	if (is_work && stream->data != NO_RANGE) {
		stream->records[stream->data].is_empty = false;
		stream->has_data_work = true;
	}
	begin_open(scan, stream,
	           &(struct open_record){.is_phase = is_phase || event->id == STEPSCOPE_BUILTIN_MICRO_BATCH,
	                                 .class = (uint8_t) class,
	                                 .start_ns = time_ns,
	                                 .sequence = recording_torch_sequence_of(event, class),
	                                 .profiler_step = is_step ? number_map_find(&scan->profiler_steps, event->id)
	                                                          : 0});
	if (class == CLASS_MODULE)
		note_module(scan, stream, event->id);
	uint32_t record = recording_torch_innermost(stream)->record;
	if (optimizer && record != NO_RANGE)
		torch_set_optimizer(&stream->records[record], optimizer);
}

/* Which optimizer the innermost call is of; which module, and whether it is called to train; whether a wait brought a batch. */
static void on_argument(struct torch_scan *scan, struct stream_scan *stream, const struct segment_event *event)
{
	uint32_t record = recording_torch_innermost(stream)->record;
	enum record_class class = event->id < scan->class_capacity ? scan->classes[event->id] : CLASS_UNKNOWN;
	if (event->payload_count < 2)
		return;
	uint64_t value = event->payload[1];
	if (class == CLASS_OPTIMIZER_KEY && record != NO_RANGE && stream->records[record].token == TOKEN_OPTIMIZER)
		torch_set_optimizer(&stream->records[record], value);
	bool is_of_loader = class == CLASS_LOADER_KEY || class == CLASS_LOADER_END_KEY;
	if (is_of_loader && record != NO_RANGE && stream->records[record].token == TOKEN_DATA) {
		stream->records[record].is_empty = class == CLASS_LOADER_END_KEY;
		stream->data = NO_RANGE; /* operators in it say no more */
	}
	if (class != CLASS_MODULE_KEY)
		return;
	bool is_outermost = stream->module_depth && stream->module_depth == stream->depth;
	if (value & STEPSCOPE_MODULE_TRAINS)
		number_map_set(&scan->trained, value >> 1, 1);
	else if (is_outermost)
		number_map_set(&scan->evaluated, value >> 1, stream->module_symbol);
	if (is_outermost)
		stream->module_object = value;
}

/* What ends with the open record of that index. */
static void close_record(struct torch_scan *scan, struct stream_scan *stream, uint32_t index, int64_t time_ns)
{
	const struct open_record *open = &stream->open[index];
	stream->aside -= open->is_aside;
	if (stream->compiling == index + 1) {
		stream->compiling = 0;
		stream->compiled_ns = time_ns;
	}
	if (open->compiled && index == stream->depth && !stream->module_depth)
		end_compiled(scan, stream, open, time_ns);
	if (stream->plain == index + 1) {
		stream->module_is_plain = true;
		stream->plain = 0;
	}
	if (stream->module_depth == index + 1)
		end_module(stream, time_ns);
	if (stream->hooked_depth == index + 1) {
		torch_add_hooked(scan, stream, stream->hooked_ns, time_ns);
		stream->hooked_depth = 0;
	}
	bool is_record = open->record != NO_RANGE;
	if (open->level.is_range)
		stream->ranges[open->level.range].end_ns = time_ns;
	if (is_record)
		stream->records[open->record].end_ns = time_ns;
	if (is_record && stream->node == open->record)
		stream->node = NO_RANGE;
	if (is_record && stream->data == open->record)
		stream->data = NO_RANGE;
	fold_level_close(&stream->fold, &open->level);
}

static void recording_torch_pop(struct torch_scan *scan, struct stream_scan *stream, int64_t time_ns)
{
	stream->depth--;
	close_record(scan, stream, stream->depth, time_ns);
}

/* ---- one that ends beneath others that began in it -------------------------------------------------------------------------------- */

/* The record that hid them is over: they count from where they began. */
static void show_hidden(struct torch_scan *scan, struct stream_scan *stream, uint32_t index)
{
	uint32_t depth = stream->depth;
	stream->depth = index;
	stream->fold.hidden = 0;
	for (uint32_t i = index + 1; i < depth; i++) {
		const struct open_record hidden = stream->open[i]; /* its place is the next one's */
		begin_open(scan, stream, &hidden);
	}
}

/* A range ended at time_ns: what began in it then or later lies in the one around it. */
static void leave_range(struct torch_scan *scan, struct stream_scan *stream, uint32_t range, int64_t time_ns)
{
	uint32_t parent = stream->ranges[range].parent;
	for (uint32_t i = stream->range_count; i-- > range + 1 && scan->moves < MAX_MOVES; scan->moves++)
		if (stream->ranges[i].parent == range && stream->ranges[i].start_ns >= time_ns)
			stream->ranges[i].parent = parent;
	for (uint32_t i = stream->record_count; i-- > 0 && scan->moves < MAX_MOVES; scan->moves++) {
		if (stream->records[i].start_ns < time_ns)
			break;
		if (stream->records[i].range == range)
			stream->records[i].range = parent;
	}
}

static void take_out(struct stream_scan *stream, uint32_t index)
{
	const struct open_record gone = stream->open[index];
	stream->depth--;
	stream->module_depth -= stream->module_depth > index + 1;
	stream->hooked_depth -= stream->hooked_depth > index + 1;
	stream->compiling -= stream->compiling > index + 1;
	if (gone.level.is_range && stream->module_range == gone.level.range)
		stream->module_range = stream->ranges[gone.level.range].parent;
	for (uint32_t i = index; i < stream->depth; i++) {
		struct open_record *open = &stream->open[i];
		*open = open[1];
		open->phase -= open->phase > index + 1;
		open->level.range_count -= gone.level.is_range;
		if (gone.level.is_range && open->level.range == gone.level.range)
			open->level.range = stream->ranges[gone.level.range].parent;
	}
}

/* As recording_stream.c does it: the one that ends is cut where the next one in it began. */
static void on_end_beneath(struct torch_scan *scan, struct stream_scan *stream, uint64_t above, int64_t time_ns)
{
	uint32_t level = stream->deeper ? 0 : stream->depth;
	for (; level; level--)
		if (stream->depth - level > MAX_ABOVE || (!stream->open[level - 1].is_phase && !above--))
			break;
	if (!level || stream->depth - level > MAX_ABOVE)
		return;
	uint32_t index = level - 1;
	const struct open_record ended = stream->open[index];
	int64_t cut_ns = level < stream->depth ? stream->open[level].start_ns : time_ns;
	close_record(scan, stream, index, cut_ns);
	if (ended.level.hides && !ended.is_hidden) {
		if (stream->hooked_depth)
			torch_add_hooked(scan, stream, stream->hooked_ns, time_ns);
		stream->hooked_depth = 0;
		show_hidden(scan, stream, index);
		return;
	}
	if (ended.level.is_range)
		leave_range(scan, stream, ended.level.range, cut_ns);
	take_out(stream, index);
}

static void recording_torch_on_end(struct torch_scan *scan, struct stream_scan *stream, uint32_t id, int64_t time_ns)
{
	bool is_phase = id == STEPSCOPE_END_PHASE;
	uint32_t phase = recording_torch_innermost(stream)->phase;
	uint32_t level = is_phase ? phase : stream->depth;
	if (stream->deeper && !is_phase) {
		stream->deeper--;
		return;
	}
	if (!is_phase && phase && phase == level) {
		if (!stream->outlived) /* a range around the phase ends, which goes on */
			on_end_beneath(scan, stream, 0, time_ns);
		stream->outlived -= stream->outlived > 0;
		return;
	}
	if (!level)
		return;
	stream->deeper = 0;
	stream->outlived += stream->depth - level;
	while (stream->depth >= level)
		recording_torch_pop(scan, stream, time_ns);
}

/* Dropped events: as many levels as recording_stream.c ends and puts in; what the latter were is not known. */
static void on_gap(struct torch_scan *scan, struct stream_scan *stream, const struct segment_event *event,
                   int64_t time_ns)
{
	if (event->payload_count < 2)
		return;
	uint64_t tick = event->payload_count > 2 ? event->payload[2] : 0;
	if (tick && tick == stream->gap_tick && event->payload[0] == stream->gap_count)
		return;
	stream->gap_tick = tick;
	stream->gap_count = event->payload[0];
	int64_t net = (int32_t)(event->payload[1] >> 32), lowest = (int32_t)event->payload[1];
	if (lowest > 0 || net < lowest)
		return;
	for (int64_t i = lowest; i < 0 && stream->depth; i++)
		recording_torch_pop(scan, stream, time_ns);
	for (int64_t i = lowest; i < net && stream->depth < MAX_DEPTH; i++)
		recording_torch_push(stream)->start_ns = time_ns;
}

/* While no detail is recorded its ends are missing too. */
static void follow_captures(struct torch_scan *scan, const struct recorded_process *process, struct stream_scan *stream,
                            int64_t time_ns)
{
	while (stream->capture < process->capture_count && process->captures[stream->capture].time_ns <= time_ns) {
		const struct capture_change *change = &process->captures[stream->capture++];
		bool is_off = !(change->mask & STEPSCOPE_ACTIVE_DETAIL) && change->time_ns >= stream->last_ns;
		stream->is_detail_off = !(change->mask & STEPSCOPE_ACTIVE_DETAIL);
		while (is_off && stream->depth)
			recording_torch_pop(scan, stream, change->time_ns);
	}
}

int64_t torch_scan_before(const struct recording *recording, uint32_t number, int64_t time_ns)
{
	const struct torch_scan *scan = recording->session->torch;
	uint32_t found = scan ? number_map_find(&scan->stream_map, number) : NUMBER_MAP_NONE;
	bool is_known = found != NUMBER_MAP_NONE && scan->streams[found].before_ns;
	return is_known && scan->streams[found].before_ns < time_ns ? scan->streams[found].before_ns : time_ns;
}

static void add_bound(struct torch_scan *scan, const struct stream_scan *stream, int64_t time_ns)
{
	scan->has_step_streams |= scan->bound_count && scan->step_stream != stream->stream;
	scan->step_stream = stream->stream;
	MEMORY_GROW(scan->bounds, scan->bound_count, scan->bound_capacity, 256);
	scan->bounds[scan->bound_count++] = time_ns;
}

void torch_scan_event(struct recording *recording, uint32_t number, const struct segment_event *event, int64_t time_ns,
                      const struct clock_cursor *clock)
{
	struct torch_scan *scan = recording->session->torch;
	if (!scan)
		return;
	struct stream_scan *stream = stream_of(scan, number);
	if (!stream)
		return;
	follow_captures(scan, recording->process, stream, time_ns);
	if (time_ns < stream->last_ns)
		time_ns = stream->last_ns; /* a block that overlaps its predecessor */
	int64_t before_ns = stream->before_ns;
	uint32_t aside = stream->aside;
	if (event->type == STEPSCOPE_EVENT_STEP && event->id == STEPSCOPE_STEP_USE) /* it says nothing of steps */
		return;
	stream->last_ns = stream->before_ns = time_ns;
	switch (event->type) {
	case STEPSCOPE_EVENT_BEGIN:
		recording_torch_on_begin(scan, stream, event, time_ns);
		break;
	case STEPSCOPE_EVENT_END:
		if (event->id == STEPSCOPE_END_BENEATH)
			on_end_beneath(scan, stream, event->payload_count ? event->payload[0] : 0, time_ns);
		else
			recording_torch_on_end(scan, stream, event->id, time_ns);
		break;
	case STEPSCOPE_EVENT_SWITCH:
		recording_torch_on_end(scan, stream,
		                       event->id <= STEPSCOPE_BUILTIN_MICRO_BATCH ? STEPSCOPE_END_PHASE
		                                                                  : STEPSCOPE_END_DETAIL,
		                       time_ns);
		recording_torch_on_begin(scan, stream, event, time_ns);
		break;
	case STEPSCOPE_EVENT_ARG:
		on_argument(scan, stream, event);
		break;
	case STEPSCOPE_EVENT_GAP:
		on_gap(scan, stream, event, time_ns);
		break;
	case STEPSCOPE_EVENT_EXTENDED:
		if (event->id == STEPSCOPE_EXTENDED_TORCH_THREAD && event->payload_count)
			stream->torch_thread = event->payload[0];
		break;
	case STEPSCOPE_EVENT_STEP:
		if (event->id == STEPSCOPE_STEP_BEGIN || event->id == STEPSCOPE_STEP_END)
			add_bound(scan, stream, time_ns);
		scan->has_steps |= event->id == STEPSCOPE_STEP_BEGIN;
		if (event->id == STEPSCOPE_STEP_TRAINING && event->payload_count > 2)
			torch_note_training(scan, stream, event, *clock);
		if (event->id == STEPSCOPE_STEP_COUNTED && event->payload_count)
			torch_scan_counted(scan, time_ns, event->payload[0]);
		break;
	default:
		break;
	}
	bool is_fact = event->type == STEPSCOPE_EVENT_VALUE || (event->type == STEPSCOPE_EVENT_ARG && aside);
	if (stream->aside != aside || is_fact) /* it says nothing of steps */
		stream->before_ns = before_ns;
}

/* ---- after all files ---- */

static void finish_stream(struct torch_scan *scan, struct stream_scan *stream, bool was_closed)
{
	stream->end = (struct stream_end){recording_torch_innermost(stream)->level.range, stream->fold.optimizers > 0};
	for (uint32_t range = stream->end.range; range != NO_RANGE; range = stream->ranges[range].parent)
		stream->ranges[range].is_open = true;
	while (stream->depth)
		recording_torch_pop(scan, stream, stream->last_ns);
	uint32_t followed = number_map_find(&scan->followed, stream->torch_thread);
	if (!was_closed) /* it would have led to a backward */
		settle_pending(scan, stream, STEPSCOPE_NO_SEQUENCE);
	else if (followed != NUMBER_MAP_NONE)
		settle_pending(scan, stream, followed + UINT64_C(1));
}

struct training_thread *torch_scan_threads(struct torch_scan *scan, bool was_closed)
{
	struct training_thread *threads = memory_resize(NULL, scan->stream_count + (size_t)1, sizeof *threads);
	for (uint32_t i = 0; i < scan->stream_count; i++)
		finish_stream(scan, &scan->streams[i], was_closed);
	torch_nodes_find_unused(scan);
	for (uint32_t i = 0; i < scan->stream_count; i++) {
		struct stream_scan *stream = &scan->streams[i];
		bool is_followed = number_map_find(&scan->followed, stream->torch_thread) != NUMBER_MAP_NONE;
		threads[i] = (struct training_thread){stream->records,      stream->ranges,      stream->hooked,
		                                      stream->record_count, stream->range_count, stream->hooked_count,
		                                      stream->calls,        stream->nodes,       stream->profiler_steps,
		                                      is_followed};
		stream->records = NULL;
		stream->ranges = NULL;
		stream->hooked = NULL;
	}
	return threads;
}
