/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a stream become spans and steps of its track. This mirrors what the recorder knows: its stack of open spans,
 * with the rules of enum stepscope_end, kept whole over dropped events (GAP), rotation and damage.
 */
#include "importers/recording/recording_stream.h"

#include "base/memory.h"
#include "importers/recording/recording_facts.h"
#include "importers/recording/recording_frames.h"
#include "importers/recording/recording_links.h"
#include "importers/recording/recording_losses.h"
#include "importers/recording/recording_steps.h"

#include <assert.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define MAX_LEVELS 10000u
#define MAX_ABOVE 1024u /* levels that an END looks beneath; no program has more */
#define OVERLAP_NS                                                                                                     \
	100000000 /* what overlaps for less is how operators begin and end ranges, when one of the two is an operator */

/* ---- streams and tracks ---- */

struct stream *recording_stream(struct recording *recording, uint32_t number)
{
	struct recorded_session *session = recording->session;
	uint32_t found = number_map_find(&session->stream_map, number);
	if (found != NUMBER_MAP_NONE)
		return session->streams[found];
	if (recording->track_total >= RECORDING_MAX_TRACKS) {
		recording->refused_tracks++;
		return NULL;
	}
	recording->track_total++;
	MEMORY_GROW(session->streams, session->stream_count, session->stream_capacity, 8);
	struct stream *stream = memory_resize(NULL, 1, sizeof *stream);
	*stream = (struct stream){.number = number,
	                          .track = MODEL_NONE,
	                          .step = MODEL_NONE,
	                          .last = {.track = MODEL_NONE},
	                          .queue = {.track = MODEL_NONE}};
	number_map_set(&session->stream_map, number, session->stream_count);
	session->streams[session->stream_count++] = stream;
	return stream;
}

static enum track_kind track_kind_of(const struct stream *stream)
{
	switch (stream->info.kind) {
	case STEPSCOPE_STREAM_SIGNAL:
		return TRACK_SIGNAL;
	case STEPSCOPE_STREAM_SELF:
		return TRACK_SELF;
	default:
		return stream->number ? TRACK_THREAD : TRACK_OTHER;
	}
}

uint32_t recording_stream_track(struct recording *recording, struct stream *stream)
{
	if (stream->track != MODEL_NONE)
		return stream->track;
	struct recorded_process *process = recording->process;
	uint64_t key = (uint64_t)stream->info.tid << 2 | (stream->info.kind & 3);
	uint32_t found = stream->info.tid ? number_map_find(&process->tid_tracks, key) : NUMBER_MAP_NONE;
	if (found != NUMBER_MAP_NONE) { /* the thread had a stream in an earlier session */
		number_map_remove(&process->tid_tracks, key);
		stream->track = found;
		return found;
	}
	stream->track = model_add_track(recording->model, process->process, track_kind_of(stream));
	struct track *track = recording->model->tracks[stream->track];
	track->tid = stream->info.tid;
	track->name = stream->name;
	track->sort = stream->number;
	track->is_main = stream->info.kind == STEPSCOPE_STREAM_THREAD &&
	                 (stream->info.flags & 1 || (stream->info.tid && stream->info.tid == process->header.pid));
	return stream->track;
}

/* ---- the stack of open spans ---- */

static inline bool is_coarse_kind(uint8_t kind)
{
	return kind == SPAN_STEP || kind == SPAN_PHASE || kind == SPAN_MICRO_BATCH;
}

static inline const struct level *top_level(const struct stream *stream)
{
	return stream->level_count ? &stream->levels[stream->level_count - 1] : NULL;
}

static struct level *push_level(struct stream *stream, uint8_t kind)
{
	MEMORY_GROW(stream->levels, stream->level_count, stream->level_capacity, 32);
	const struct level *below = top_level(stream);
	struct level *level = &stream->levels[stream->level_count++];
	level->kind = kind;
	level->coarse = is_coarse_kind(kind) ? stream->level_count : below ? below->coarse : 0;
	level->placeholder = below ? below->placeholder : 0;
	level->rare = below ? below->rare : 0;
	level->is_over = false;
	level->cut_row = MODEL_NONE;
	return level;
}

/* Takes out one that is no step, phase or micro-batch. */
static void drop_level(struct stream *stream, uint32_t index)
{
	assert(index < stream->level_count);
	struct level *levels = stream->levels;
	uint32_t rare = levels[index].rare - (index ? levels[index - 1].rare : 0);
	stream->level_count--;
	memmove(&levels[index], &levels[index + 1], (stream->level_count - index) * sizeof *levels);
	for (uint32_t i = index; i < stream->level_count; i++) {
		levels[i].rare -= rare;
		bool is_placeholder = levels[i].placeholder == i + 2; /* itself, when it was one above */
		levels[i].coarse = is_coarse_kind(levels[i].kind) ? i + 1 : i ? levels[i - 1].coarse : 0;
		levels[i].placeholder = is_placeholder ? i + 1 : i ? levels[i - 1].placeholder : 0;
	}
	stream->step_level -= stream->step_level > index;
}

static inline uint32_t begin_span(struct recording *recording, struct stream *stream, int64_t time_ns, uint8_t kind,
                                  uint32_t name)
{
	if (stream->level_count >= MAX_LEVELS)
		stream->deeper++;
	else
		push_level(stream, kind);
	uint32_t row = model_span_begin(recording->model, stream->track, time_ns, kind, name);
	stream->last = (struct span_ref){.track = row == MODEL_NONE ? MODEL_NONE : stream->track, .row = row};
	return row;
}

static void recording_stream_end_step(struct recording *recording, struct stream *stream, int64_t time_ns,
                                      uint8_t flags)
{
	if (stream->step == MODEL_NONE)
		return;
	assert(stream->step < recording->model->steps_count);
	struct model_step *step = &recording->model->steps[stream->step];
	step->end_ns = time_ns > step->start_ns ? time_ns : step->start_ns;
	step->is_open = (flags & (SPAN_END_IS_LOST | SPAN_IS_CLIPPED)) != 0;
	stream->step = MODEL_NONE;
}

static inline void end_top(struct recording *recording, struct stream *stream, int64_t time_ns, uint8_t flags)
{
	assert(stream->level_count > 0);
	const struct level *top = &stream->levels[--stream->level_count];
	if (top->is_over)
		return;
	if (top->kind == SPAN_STEP)
		recording_stream_end_step(recording, stream, time_ns, flags);
	model_span_end(recording->model, stream->track, time_ns, flags);
}

static void end_deeper(struct recording *recording, struct stream *stream, int64_t time_ns)
{
	for (; stream->deeper; stream->deeper--)
		model_span_end(recording->model, stream->track, time_ns, SPAN_END_IS_LOST);
}

/* Ends levels down to `level` (an index), which is ended in order; what is still open inside lost its end. */
static void end_down_to(struct recording *recording, struct stream *stream, uint32_t level, int64_t time_ns)
{
	assert(level < stream->level_count);
	end_deeper(recording, stream, time_ns);
	while (stream->level_count > level + 1) {
		const struct level *top = top_level(stream);
		stream->outlived += !top->is_over && !is_coarse_kind(top->kind);
		end_top(recording, stream, time_ns, SPAN_END_IS_LOST);
	}
	end_top(recording, stream, time_ns, 0);
}

/* Ends an inferred level; what goes on behind it is cut, but stays here until its END comes. */
static void end_inferred_level(struct recording *recording, struct stream *stream, uint32_t level, int64_t time_ns)
{
	assert(level < stream->level_count);
	uint32_t count = stream->level_count;
	if (stream->levels[count - 1].coarse != level + 1 || stream->deeper || count > MAX_LEVELS / 2) {
		end_down_to(recording, stream, level, time_ns);
		return;
	}
	for (uint32_t i = count; i-- > level + 1;) {
		struct level *inside = &stream->levels[i];
		if (inside->is_over)
			continue;
		model_span_end(recording->model, stream->track, time_ns, SPAN_IS_CLIPPED);
		inside->is_over = true;
		inside->end_ns = time_ns;
	}
	if (stream->levels[level].kind == SPAN_STEP)
		recording_stream_end_step(recording, stream, time_ns, 0);
	model_span_end(recording->model, stream->track, time_ns, 0);
	drop_level(stream, level);
}

/* The span ended so much later than it is shown; below 0: before what began in it. */
static void recording_stream_note_cut(struct recording *recording, const struct stream *stream, uint32_t row,
                                      int64_t cut_ns)
{
	struct span_arg arg = {.track = stream->track, .row = row, .type = STEPSCOPE_ARG_I64, .i64 = cut_ns};
	arg.key = intern_add(&recording->model->strings, "trace.cut_ns");
	model_span_arg(recording->model, &arg);
}

/* The level is asynchronous, which cuts nothing. */
static void note_async(struct recording *recording, const struct stream *stream, const struct level *level)
{
	if (level->cut_row != MODEL_NONE)
		recording_stream_note_cut(recording, stream, level->cut_row, level->cut_ns);
}

static void end_all(struct recording *recording, struct stream *stream, int64_t time_ns, uint8_t flags)
{
	if (!stream->level_count)
		return;
	end_deeper(recording, stream, time_ns);
	for (uint32_t i = 0; i < stream->level_count && flags & SPAN_ENDS_ELSEWHERE; i++)
		note_async(recording, stream, &stream->levels[i]);
	while (stream->level_count)
		end_top(recording, stream, time_ns, flags);
}

/* The level an END_PHASE means: 1 + index, 0: none. A placeholder may have been a phase. */
static uint32_t phase_level(const struct stream *stream)
{
	const struct level *top = top_level(stream);
	if (!top)
		return 0;
	if (top->coarse && stream->levels[top->coarse - 1].kind != SPAN_STEP)
		return top->coarse;
	return top->placeholder > top->coarse ? top->placeholder : 0;
}

/* Of a part of the recording the begin may lie before it. */
static bool is_unmatched(const struct recording *recording, const struct stream *stream)
{
	return !stream->has_hole && !recording->has_windows;
}

static void note_unmatched(const struct recording *recording, struct stream *stream)
{
	stream->unmatched += is_unmatched(recording, stream);
}

/* ---- one function per event ---- */

/* 1 + index of the level that is no step, phase or micro-batch and has so many of its like above it; 0: none. */
static uint32_t level_beneath(const struct stream *stream, uint64_t above)
{
	uint32_t level = stream->level_count;
	while (level && stream->level_count - level <= MAX_ABOVE) {
		assert(stream->levels != NULL);
		if (!is_coarse_kind(stream->levels[level - 1].kind) && !above--)
			return level;
		level--;
	}
	return 0;
}

/* A span has lost so much of its end. Where an operator is one of the two it began or ended the other, as under a mode of PyTorch's dispatcher: no
 * surprise. */
static bool note_overlap(struct stream *stream, bool has_op, int64_t lost_ns)
{
	if (lost_ns <= (has_op ? OVERLAP_NS : 0))
		return false;
	stream->overlaps++;
	stream->overlap_ns += (uint64_t)lost_ns;
	return true;
}

/* How much later the span ended than it is shown. */
static int64_t cut_of(const struct recording *recording, const struct stream *stream, uint32_t row, int64_t time_ns)
{
	uint32_t i;
	if (row == MODEL_NONE)
		return 0;
	const struct span_chunk *chunk = track_chunk(recording->model->tracks[stream->track], row, &i);
	int64_t took_ns = time_ns > chunk->start_ns[i] ? time_ns - chunk->start_ns[i] : 0;
	return took_ns - chunk->dur_ns[i];
}

/* Of the span in the row, at that level. What is not told now is when the one that cut it turns out to be asynchronous. */
static void note_cuts(struct recording *recording, struct stream *stream, uint32_t index, uint32_t row, int64_t cut_ns,
                      bool is_told)
{
	struct level *next = index + 1 < stream->level_count ? &stream->levels[index + 1] : NULL;
	if (!cut_ns)
		return;
	if (is_told) {
		recording_stream_note_cut(recording, stream, row, cut_ns);
	} else if (next && next->cut_row == MODEL_NONE) {
		next->cut_row = row;
		next->cut_ns = cut_ns;
	}
}

/* What was begun in it goes on. */
static void end_under(struct recording *recording, struct stream *stream, uint32_t index, int64_t time_ns,
                      uint8_t flags)
{
	assert(index < stream->level_count);
	const struct level *levels = stream->levels;
	uint32_t above = 0;
	bool has_op = levels[index].kind == SPAN_OP;
	for (uint32_t i = index + 1; i < stream->level_count; i++) {
		has_op |= !above && !levels[i].is_over && levels[i].kind == SPAN_OP;
		above += !levels[i].is_over;
	}
	int64_t end_ns = time_ns;
	uint32_t row = above ? model_span_end_beneath(recording->model, stream->track, above, &end_ns, flags)
	                     : model_span_innermost(recording->model, stream->track, NULL);
	if (!above)
		model_span_end(recording->model, stream->track, time_ns, flags);
	if (above && row == MODEL_NONE) {
		end_down_to(recording, stream, index, time_ns);
		return;
	}
	int64_t cut_ns = cut_of(recording, stream, row, time_ns);
	note_cuts(recording, stream, index, row, cut_ns,
	          note_overlap(stream, has_op, cut_ns) || flags & SPAN_ENDS_ELSEWHERE);
	if (flags & SPAN_ENDS_ELSEWHERE)
		note_async(recording, stream, &levels[index]);
	drop_level(stream, index);
}

static bool is_rare_level(const struct stream *stream, uint32_t index)
{
	return stream->levels[index].rare > (index ? stream->levels[index - 1].rare : 0);
}

/* Ends an action of a framework in which an inferred phase has begun: what is in the phase is cut off. Nothing is wrong
 * with that, because the phase is inferred without it. */
static void end_action(struct recording *recording, struct stream *stream, uint32_t index, int64_t time_ns)
{
	uint32_t above = 0;
	for (uint32_t i = index + 1; i < stream->level_count; i++)
		above += !stream->levels[i].is_over;
	if (above)
		model_span_end_beneath(recording->model, stream->track, above, &time_ns, 0);
	else
		model_span_end(recording->model, stream->track, time_ns, 0);
	drop_level(stream, index);
}

/* Ends a range that began before the innermost step or phase, which goes on. The ends of ranges that a step or phase
 * ended come first. */
static void end_around(struct recording *recording, struct stream *stream, int64_t time_ns)
{
	uint32_t level = level_beneath(stream, 0);
	bool is_of_outlived = stream->outlived > 0;
	stream->outlived -= is_of_outlived;
	if (!level || (is_of_outlived && !stream->levels[level - 1].is_over))
		note_unmatched(recording, stream);
	else if (stream->levels[level - 1].is_over) /* a phase began behind where another one cut it */
		drop_level(stream, level - 1);
	else if (is_rare_level(stream, level - 1))
		end_action(recording, stream, level - 1, time_ns);
	else
		end_under(recording, stream, level - 1, time_ns, 0);
}

static inline void on_end_detail(struct recording *recording, struct stream *stream, int64_t time_ns)
{
	if (stream->deeper) {
		stream->deeper--;
		model_span_end(recording->model, stream->track, time_ns, 0);
		return;
	}
	const struct level *top = top_level(stream);
	if (top && top->coarse != stream->level_count)
		end_top(recording, stream, time_ns, 0);
	else
		end_around(recording, stream, time_ns);
}

static void on_end_beneath(struct recording *recording, struct stream *stream, const struct segment_event *event,
                           int64_t time_ns)
{
	uint32_t level = stream->deeper ? 0 : level_beneath(stream, event->payload_count ? event->payload[0] : 0);
	if (!level) {
		note_unmatched(recording, stream);
		return;
	}
	uint8_t flags = event->payload_count > 1 ? SPAN_ENDS_ELSEWHERE : 0;
	if (flags) { /* it ended before, in another thread */
		struct clock_cursor clock = {stream->clock.line, 0};
		int64_t end_ns = clock_ns(&clock, event->payload[1]);
		time_ns = end_ns < time_ns ? end_ns : time_ns;
	}
	const struct level ended = stream->levels[level - 1];
	if (!ended.is_over) {
		end_under(recording, stream, level - 1, time_ns, flags);
		return;
	}
	note_overlap(stream, true, time_ns - ended.end_ns);
	drop_level(stream, level - 1);
}

static void on_end_phase(struct recording *recording, struct stream *stream, int64_t time_ns)
{
	uint32_t level = phase_level(stream);
	if (level)
		end_down_to(recording, stream, level - 1, time_ns);
	else
		note_unmatched(recording, stream);
}

static uint8_t span_kind_of(uint8_t symbol_kind)
{
	switch (symbol_kind) {
	case STEPSCOPE_SYMBOL_RANGE:
	case STEPSCOPE_SYMBOL_PHASE:
	case STEPSCOPE_SYMBOL_OP:
		return symbol_kind;
	case STEPSCOPE_SYMBOL_BACKWARD: /* PyTorch shows them among its operators */
	case STEPSCOPE_SYMBOL_SCRIPT:
		return SPAN_OP;
	case STEPSCOPE_SYMBOL_MODULE:
		return SPAN_MODULE;
	default:
		return symbol_kind >= SPAN_MICRO_BATCH && symbol_kind <= SPAN_OVERHEAD ? symbol_kind : SPAN_OTHER;
	}
}

static void set_flag(const struct recording *recording, const struct stream *stream, uint32_t row, uint8_t flag)
{
	uint32_t i;
	if (row != MODEL_NONE)
		track_chunk(recording->model->tracks[stream->track], row, &i)->flags[i] |= flag;
}

/* Of a step that was just put in: the step is its span. */
static bool begin_step_range(struct stream *stream, const struct recorded_symbol *symbol, int64_t time_ns)
{
	const struct inferred *step = stream->marked;
	stream->marked = NULL;
	if (step->start_ns != time_ns || symbol->kind != STEPSCOPE_SYMBOL_ANNOTATION ||
	    stream->level_count >= MAX_LEVELS)
		return false;
	struct level *level = push_level(stream, SPAN_ANNOTATION);
	level->is_over = true;
	level->end_ns = step->end_ns;
	return true;
}

static inline uint32_t recording_stream_on_begin(struct recording *recording, struct stream *stream, uint32_t id,
                                                 int64_t time_ns)
{
	struct recorded_symbol symbol = recording_symbol(recording->session, id);
	if (__builtin_expect(stream->marked != NULL, 0) && begin_step_range(stream, &symbol, time_ns))
		return MODEL_NONE;
	if (__builtin_expect(!symbol.is_known, 0))
		symbol.string = recording_symbol_string(recording, id);
	uint32_t row = begin_span(recording, stream, time_ns, span_kind_of(symbol.kind), symbol.string);
	if (symbol.is_rare && !stream->deeper)
		stream->levels[stream->level_count - 1].rare++;
	if (symbol.kind == STEPSCOPE_SYMBOL_BACKWARD || symbol.kind == STEPSCOPE_SYMBOL_SCRIPT)
		set_flag(recording, stream, row,
		         symbol.kind == STEPSCOPE_SYMBOL_SCRIPT ? SPAN_IS_SCRIPT : SPAN_IS_BACKWARD);
	return row;
}

/* Ends the innermost open span of the class that the symbol belongs to, if there is one. A phase is not looked for outside
 * of the innermost micro-batch: the first switch in it begins a phase, it does not end the micro-batch. */
static void on_switch(struct recording *recording, struct stream *stream, uint32_t id, int64_t time_ns)
{
	uint8_t kind = span_kind_of(recording_symbol(recording->session, id).kind);
	const struct level *top = top_level(stream);
	if (kind == SPAN_PHASE) {
		if (top && top->coarse && stream->levels[top->coarse - 1].kind == SPAN_PHASE)
			end_down_to(recording, stream, top->coarse - 1, time_ns);
	} else if (kind == SPAN_MICRO_BATCH) {
		uint32_t level = top ? top->coarse : 0;
		while (level && stream->levels[level - 1].kind == SPAN_PHASE)
			level = level > 1 ? stream->levels[level - 2].coarse : 0;
		if (level && stream->levels[level - 1].kind == SPAN_MICRO_BATCH)
			end_down_to(recording, stream, level - 1, time_ns);
	} else if (stream->deeper || (top && top->coarse != stream->level_count)) {
		on_end_detail(recording, stream, time_ns);
	}
	recording_stream_on_begin(recording, stream, id, time_ns);
}

/* The end of the open step was dropped, at the earliest where the gap begins. What came after the gap is inside of its span
 * already, so the span ends here. */
static void lose_step_end(struct recording *recording, struct stream *stream, int64_t time_ns)
{
	struct model_step *step = &recording->model->steps[stream->step];
	uint32_t level = stream->step_level;
	end_deeper(recording, stream, time_ns);
	while (stream->level_count > level)
		end_top(recording, stream, time_ns, SPAN_END_IS_LOST);
	int64_t known_ns = stream->has_step_gap ? stream->step_gap_ns : stream->before_ns;
	step->end_ns = known_ns > step->start_ns ? known_ns : step->start_ns;
}

/* What is chosen by number (--steps), or compared by it between ranks, then means more than one step. */
static void check_number(struct recording *recording, struct stream *stream, int64_t number)
{
	struct model *model = recording->model;
	uint32_t process = recording->process->process;
	if (number < 0)
		model_add_ledger(model, LEDGER_OTHER, process, "steps", 1, "the program gave steps a number below 0");
	if (stream->has_step_number && number <= stream->step_number)
		model_add_ledger(
			model, LEDGER_OTHER, process, "steps", 1,
			"the program gave steps a number that is not above the one before: what is selected or "
			"compared by numbers takes all steps of a number together");
	stream->has_step_number = true;
	stream->step_number = number;
}

static void begin_step(struct recording *recording, struct stream *stream, int64_t number, int64_t time_ns)
{
	check_number(recording, stream, number);
	/* the recorder ends a step before it begins the next one: here that end was dropped */
	if (stream->step != MODEL_NONE)
		lose_step_end(recording, stream, time_ns);
	struct model *model = recording->model;
	uint32_t level = stream->level_count;
	uint32_t row = begin_span(recording, stream, time_ns, SPAN_STEP, intern_add(&model->strings, "step"));
	if (row == MODEL_NONE || model->steps_count >= INT32_MAX)
		return;
	struct model_step *step = model_add_step(model);
	step->process = recording->process->process;
	step->track = stream->track;
	step->row = row;
	step->number = number;
	step->start_ns = step->end_ns = time_ns;
	step->is_open = true;
	stream->step = model->steps_count - 1;
	stream->step_level = level;
	stream->has_step_gap = false;
}

static void finish_step(struct recording *recording, struct stream *stream, int64_t number, int64_t time_ns,
                        bool is_cut_short)
{
	uint32_t step = stream->step;

	if (stream->step != MODEL_NONE && recording->model->steps[stream->step].number != number) {
		lose_step_end(recording, stream, time_ns);
		return;
	}
	if (stream->step != MODEL_NONE) {
		if (stream->inferred && !stream->has_own_steps) /* it was put in */
			end_inferred_level(recording, stream, stream->step_level, time_ns);
		else
			end_down_to(recording, stream, stream->step_level, time_ns);
		recording->model->steps[step].is_open |= is_cut_short;
		return;
	}
	/* its begin was dropped: the outermost placeholder stands for it */
	uint32_t level = stream->level_count ? top_level(stream)->placeholder : 0;
	while (level > 1 && stream->levels[level - 2].placeholder)
		level = stream->levels[level - 2].placeholder;
	if (level)
		end_down_to(recording, stream, level - 1, time_ns);
	else
		stream->unmatched_steps += is_unmatched(recording, stream);
}

static void count_in_step(struct recording *recording, const struct stream *stream, const struct segment_event *event,
                          int64_t time_ns)
{
	bool is_tokens = event->id == STEPSCOPE_STEP_TOKENS;
	if (stream->step != MODEL_NONE) {
		recording_add_to_step(&recording->model->steps[stream->step], is_tokens, event->payload[0]);
		return;
	}
	struct recorded_process *process = recording->process; /* another thread's step: found by time at the end */
	MEMORY_GROW(process->late_counts, process->late_count_count, process->late_count_capacity, 16);
	process->late_counts[process->late_count_count++] = (struct late_count){time_ns, event->payload[0], is_tokens};
}

/* Captures were collected before; only the tail that a rescue brought back may have one more. */
static void note_late_capture(struct recorded_process *process, const struct segment_event *event, int64_t time_ns)
{
	if (!process->capture_count || process->captures[process->capture_count - 1].time_ns < time_ns)
		recording_note_capture(process, time_ns, event);
}

/* Whoever begins it is followed, also when it runs no operator. */
static void note_window(const struct recording *recording, const struct stream *stream,
                        const struct segment_event *event)
{
	const struct model_filter *filter = recording->filter;
	bool is_begin = event->payload_count > 1 && event->payload[1];
	if (filter && filter->window && is_begin && event->payload[0] >= filter->window &&
	    event->payload[0] <= filter->last_window)
		recording->model->tracks[stream->track]->is_profiled = true;
}

/* What its thread used, with CPU time that is a part of its duration: more than that is no measurement. */
static void set_step_use(struct model_step *step, const struct segment_event *end)
{
	uint64_t cpu_ns = end->payload[2];
	int64_t dur_ns = step->end_ns - step->start_ns;

	step->has_cpu = !step->is_open && cpu_ns <= (uint64_t)dur_ns + (uint64_t)dur_ns / 100;
	step->waits = end->payload[3];
	step->cpu_ns = step->has_cpu && (int64_t)cpu_ns < dur_ns ? (int64_t)cpu_ns : dur_ns;
	step->has_page_faults = step->has_cpu && end->payload_count > 4;
	step->page_faults = step->has_page_faults ? end->payload[4] : 0;
}

static void on_step(struct recording *recording, struct stream *stream, const struct segment_event *event,
                    int64_t time_ns)
{
	uint32_t step;

	if (event->payload_count < 1)
		return;
	switch (event->id) {
	case STEPSCOPE_STEP_BEGIN:
		begin_step(recording, stream, (int64_t)event->payload[0], time_ns);
		break;
	case STEPSCOPE_STEP_END:
		step = stream->step;
		finish_step(recording, stream, (int64_t)event->payload[0], time_ns,
		            event->payload_count > 1 && event->payload[1]);
		if (step != MODEL_NONE && event->payload_count > 3)
			set_step_use(&recording->model->steps[step], event);
		break;
	case STEPSCOPE_STEP_TOKENS:
	case STEPSCOPE_STEP_SAMPLES:
		count_in_step(recording, stream, event, time_ns);
		break;
	case STEPSCOPE_STEP_CAPTURE:
		note_late_capture(recording->process, event, time_ns);
		break;
	case STEPSCOPE_STEP_WINDOW:
		note_window(recording, stream, event);
		break;
	case STEPSCOPE_STEP_USE:
		recording_add_reading(recording, stream, event, time_ns);
		break;
	default:
		break;
	}
}

/* A few bytes of a file must not become gigabytes of placeholders. */
static bool may_place(struct recording *recording, const struct stream *stream)
{
	return stream->level_count < MAX_LEVELS && recording->placeholders++ < RECORDING_MAX_PLACEHOLDERS;
}

/* Put in, not recorded? */
static bool is_inferred(const struct stream *stream, const struct level *level)
{
	return stream->inferred && ((level->kind == SPAN_STEP && !stream->has_own_steps) ||
	                            (level->kind == SPAN_PHASE && !stream->has_own_phases));
}

/* Events were dropped here: `lowest` of the spans that were open have ended meanwhile, and net - lowest were begun. */
static void on_gap(struct recording *recording, struct stream *stream, const struct segment_event *event,
                   int64_t time_ns)
{
	if (event->payload_count < 2)
		return;
	/* a kill between writing a gap and forgetting it makes the rescue write it once more */
	if (event->payload_count > 2 && event->payload[2] == stream->gap_tick && event->payload[0] == stream->gap_count)
		return;
	stream->gap_count = event->payload[0];
	stream->gap_tick = event->payload_count > 2 ? event->payload[2] : 0;
	int64_t net = (int32_t)(event->payload[1] >> 32), lowest = (int32_t)event->payload[1];
	int64_t first_ns = event->payload_count > 2 ? clock_ns(&stream->clock, event->payload[2]) : time_ns;
	stream->gap_events += event->payload[0];
	bool is_placed = first_ns <= time_ns && first_ns >= stream->before_ns;
	if (!stream->has_gap)
		stream->gap_ns = is_placed ? first_ns - 1 : stream->before_ns;
	stream->has_gap = true;
	if (lowest > 0 || net < lowest)
		return;
	if (!is_placed)
		first_ns = time_ns;
	if (!stream->has_step_gap)
		stream->step_gap_ns = first_ns;
	stream->has_step_gap = true;
	stream->has_hole = true; /* a switch does not count in the depth, so it may be off by one */
	for (int64_t i = lowest; i < 0 && stream->level_count > stream->inferred_depth; i++) {
		end_deeper(recording, stream, first_ns);
		while (is_inferred(stream, top_level(stream)) && stream->level_count > 1) {
			end_top(recording, stream, first_ns, 0); /* the recorder does not count these */
			stream->inferred_depth -= stream->inferred_depth > 0;
		}
		end_top(recording, stream, first_ns, SPAN_END_IS_LOST);
	}
	for (int64_t i = lowest; i < net && may_place(recording, stream); i++) {
		uint32_t row = begin_span(recording, stream, time_ns, SPAN_OTHER,
		                          intern_add(&recording->model->strings, "(dropped)"));
		stream->levels[stream->level_count - 1].placeholder = stream->level_count;
		if (row == MODEL_NONE)
			continue;
		uint32_t index;
		struct span_chunk *chunk = track_chunk(recording->model->tracks[stream->track], row, &index);
		chunk->flags[index] |= SPAN_START_IS_LOST;
	}
}

/* ---- steps and phases that were inferred ---- */

static void begin_inferred_phase(struct recording *recording, struct stream *stream, const struct inferred *inferred)
{
	uint32_t row = begin_span(recording, stream, inferred->start_ns, SPAN_PHASE, inferred->what), index;
	if (row == MODEL_NONE)
		return;
	struct span_chunk *chunk = track_chunk(recording->model->tracks[stream->track], row, &index);
	chunk->flags[index] |= SPAN_IS_INFERRED;
}

/* A range of the model, but a level like a phase: ends of the program's ranges do not mean it. */
static void begin_generation(struct recording *recording, struct stream *stream, int64_t start_ns)
{
	uint32_t name = intern_add(&recording->model->strings, INFERRED_GENERATION_NAME);
	begin_span(recording, stream, start_ns, SPAN_RANGE, name);
	struct level *level = &stream->levels[stream->level_count - 1];
	if (stream->deeper)
		return;
	level->kind = SPAN_PHASE;
	level->coarse = stream->level_count;
}

static void begin_inferred(struct recording *recording, struct stream *stream, uint32_t index)
{
	const struct inferred *inferred = &stream->inferred[index];
	if (inferred->what == INFERRED_STEP) {
		begin_step(recording, stream, inferred->number, inferred->start_ns);
		stream->marked = inferred->is_marked ? inferred : NULL;
		if (stream->step != MODEL_NONE && !inferred->is_marked) {
			recording->model->steps[stream->step].is_inferred = true;
			set_flag(recording, stream, recording->model->steps[stream->step].row, SPAN_IS_INFERRED);
		}
	} else if (inferred->what == INFERRED_GENERATION) {
		begin_generation(recording, stream, inferred->start_ns);
	} else {
		begin_inferred_phase(recording, stream, inferred);
	}
	stream->inferred_open[stream->inferred_depth++] = index;
}

static void end_inferred(struct recording *recording, struct stream *stream)
{
	const struct inferred *inferred = &stream->inferred[stream->inferred_open[--stream->inferred_depth]];
	uint32_t phase = inferred->what == INFERRED_STEP ? 0 : phase_level(stream);
	if (inferred->what == INFERRED_STEP)
		finish_step(recording, stream, inferred->number, inferred->end_ns, false);
	else if (phase)
		end_inferred_level(recording, stream, phase - 1, inferred->end_ns);
	else
		note_unmatched(recording, stream);
}

/* Is the phase in what the event ends? One around that ends behind it. */
static bool is_in_ended(const struct stream *stream, const struct inferred *inferred, enum stepscope_event type)
{
	bool is_end = type == STEPSCOPE_EVENT_END || type == STEPSCOPE_EVENT_SWITCH;
	return is_end && inferred->what != INFERRED_STEP && phase_level(stream) == stream->level_count;
}

/* Puts in what begins and ends up to the event: before it what begins with it, behind it what ends with it. */
static void follow_inferred(struct recording *recording, struct stream *stream, int64_t time_ns,
                            enum stepscope_event type)
{
	/* a step that the program marks begins and ends outside of phases */
	bool is_begin = type == STEPSCOPE_EVENT_BEGIN, is_bound = type == STEPSCOPE_EVENT_STEP && stream->has_own_steps;
	for (;;) {
		const struct inferred
			*open = stream->inferred_depth
		                        ? &stream->inferred[stream->inferred_open[stream->inferred_depth - 1]]
		                        : NULL;
		const struct inferred *next = stream->inferred_next < stream->inferred_count
		                                      ? &stream->inferred[stream->inferred_next]
		                                      : NULL;
		bool ends_before = is_begin || is_bound || (open && is_in_ended(stream, open, type));
		if (open && (open->end_ns < time_ns || (ends_before && open->end_ns == time_ns)) &&
		    (!next || next->start_ns >= open->end_ns)) {
			end_inferred(recording, stream);
		} else if (next && (next->start_ns < time_ns || (is_begin && next->start_ns == time_ns))) {
			if ((next->what == INFERRED_STEP || !stream->has_own_phases) && stream->inferred_depth < 4)
				begin_inferred(recording, stream, stream->inferred_next);
			stream->inferred_next++;
		} else {
			return;
		}
	}
}

/* ---- blocks ---- */

/* The clock whose anchors are nearest to the block, when the process changed its clock. */
static void choose_clock(const struct recorded_process *process, struct stream *stream, uint64_t tick)
{
	const struct clock_line *best = process->lines[0];
	uint64_t best_distance = UINT64_MAX;
	for (uint32_t i = 0; i < process->line_count && process->line_count > 1; i++) {
		const struct clock_line *line = process->lines[i];
		uint64_t first = line->pieces[0].tick, last = line->pieces[line->piece_count - 1].tick;
		uint64_t distance = tick < first ? first - tick : tick > last ? tick - last : 0;
		if (distance <= best_distance) {
			best = line;
			best_distance = distance;
		}
	}
	if (stream->clock.line != best)
		stream->clock = (struct clock_cursor){best, 0};
}

static void note_hole(struct recording *recording, struct stream *stream, uint64_t words)
{
	struct recorded_session *session = recording->session;
	bool is_first = !stream->next_word;
	stream->has_hole = true;
	if (is_first && recording_has_removed(session)) {
		session->removed_words += words;
		return;
	}
	if (!is_first)
		end_all(recording, stream, stream->last_ns, SPAN_END_IS_LOST);
	recording_lose(recording->process, is_first || !stream->has_events ? INT64_MIN : stream->last_ns,
	               LOST_BY_DAMAGE);
	model_add_ledger(recording->model, LEDGER_DAMAGED, recording->process->process, recording->file->name, words,
	                 "words of events are missing between two blocks");
}

/* Positions in the stream: what was removed or lost shows as a hole. */
static void follow_words(struct recording *recording, struct stream *stream, const struct stepscope_block *block)
{
	uint64_t end;
	if (recording->file->header.flags & STEPSCOPE_SEGMENT_COARSE ||
	    __builtin_add_overflow(block->first_word, block->words, &end))
		return;
	if (block->first_word > stream->next_word)
		note_hole(recording, stream, block->first_word - stream->next_word);
	if (end > stream->next_word)
		stream->next_word = end;
}

/* Of what goes on behind it. */
static uint8_t window_end(const struct recording *recording)
{
	return recording->filter->window ? SPAN_IS_CLIPPED | SPAN_ENDS_ELSEWHERE : SPAN_IS_CLIPPED;
}

static bool is_in_window(struct recording *recording, struct stream *stream, int64_t time_ns)
{
	const struct recorded_process *process = recording->process;
	while (stream->window < process->window_count && process->windows[stream->window].end_ns < time_ns) {
		if (stream->is_window_open && stream->inferred)
			follow_inferred(recording, stream, process->windows[stream->window].end_ns,
			                STEPSCOPE_EVENT_BEGIN);
		if (stream->is_window_open)
			end_all(recording, stream, process->windows[stream->window].end_ns, window_end(recording));
		stream->is_window_open = false;
		stream->window++;
	}
	if (stream->window == process->window_count || process->windows[stream->window].start_ns > time_ns)
		return false;
	stream->is_window_open = true;
	return true;
}

static void note_begin(struct recorded_process *process, int64_t first_ns)
{
	if (!process->has_begin || first_ns < process->begin_ns)
		process->begin_ns = first_ns;
	process->has_begin = true;
}

bool recording_wants_events(void *context, const struct stepscope_block *block)
{
	struct recording *recording = context;
	struct stream *stream = recording_stream(recording, block->stream);
	if (!stream)
		return false;
	bool is_coarse = recording->file->header.flags & STEPSCOPE_SEGMENT_COARSE;
	if (is_coarse && stream->is_in_segments && (stream->first_word == 0 || block->first_tick >= stream->first_tick))
		return false;
	if (!recording->has_windows)
		return true;
	choose_clock(recording->process, stream, block->first_tick);
	struct clock_cursor clock = {stream->clock.line, 0};
	int64_t first_ns = clock_ns(&clock, block->first_tick), last_ns = clock_ns(&clock, block->last_tick);
	const struct recorded_process *process = recording->process;
	note_begin(recording->process, first_ns);
	for (uint32_t i = 0; i < process->window_count; i++)
		if (first_ns <= process->windows[i].end_ns && last_ns >= process->windows[i].start_ns)
			return true;
	if (!is_coarse && block->first_word + block->words > stream->next_word)
		stream->next_word = block->first_word + block->words;
	return false;
}

static void note_time(struct recorded_process *process, int64_t first_ns, int64_t last_ns)
{
	struct time_range *times = &process->times;
	if (!times->is_known || first_ns < times->first_ns)
		times->first_ns = first_ns;
	if (!times->is_known || last_ns > times->last_ns)
		times->last_ns = last_ns;
	times->is_known = true;
}

/* While no detail is recorded its ends are missing too: what is open of it ends here, as far as no step or phase lies inside. What is rare has its
 * end in any case, and so have what is around it and what is in it until then. */
static void cut_detail(struct recording *recording, struct stream *stream, int64_t time_ns)
{
	const struct level *top = top_level(stream);
	if (!top || top->coarse == stream->level_count || top->rare)
		return;
	for (; stream->deeper; stream->deeper--)
		model_span_end(recording->model, stream->track, time_ns, SPAN_IS_CUT);
	for (; top && top->coarse != stream->level_count; top = top_level(stream))
		end_top(recording, stream, time_ns, SPAN_IS_CUT);
}

static void follow_captures(struct recording *recording, struct stream *stream, int64_t time_ns)
{
	const struct recorded_process *process = recording->process;
	while (stream->capture < process->capture_count && process->captures[stream->capture].time_ns <= time_ns) {
		const struct capture_change *change = &process->captures[stream->capture++];
		stream->is_detail_off = !(change->mask & STEPSCOPE_ACTIVE_DETAIL);
		if (!stream->is_detail_off)
			continue;
		stream->has_hole = true; /* ends whose begin was not recorded are no surprise from here on */
		cut_detail(recording, stream, change->time_ns > stream->last_ns ? change->time_ns : stream->last_ns);
	}
}

static inline void on_event(struct recording *recording, struct stream *stream, const struct segment_event *event,
                            int64_t time_ns)
{
	switch (event->type) {
	case STEPSCOPE_EVENT_BEGIN: {
		uint32_t row = recording_stream_on_begin(recording, stream, event->id, time_ns);
		if (row != MODEL_NONE && recording->session->frame_count)
			recording_set_stack(recording, stream->track, row, 0);
		if (event->payload_count && row != MODEL_NONE)
			recording_begin_words(recording, stream, event, row);
		break;
	}
	case STEPSCOPE_EVENT_END:
		if (event->id == STEPSCOPE_END_DETAIL && event->payload_count)
			recording_end_arguments(recording, stream, event);
		if (event->id == STEPSCOPE_END_DETAIL)
			on_end_detail(recording, stream, time_ns);
		else if (event->id == STEPSCOPE_END_BENEATH)
			on_end_beneath(recording, stream, event, time_ns);
		else
			on_end_phase(recording, stream, time_ns);
		break;
	case STEPSCOPE_EVENT_SWITCH:
		on_switch(recording, stream, event->id, time_ns);
		break;
	case STEPSCOPE_EVENT_STEP:
		on_step(recording, stream, event, time_ns);
		break;
	case STEPSCOPE_EVENT_GAP:
		on_gap(recording, stream, event, time_ns);
		break;
	default:
		recording_fact(recording, stream, event, time_ns);
		break;
	}
}

/* What was told of its thread before what is loaded holds there, too. */
static void begin_track(struct recording *recording, struct stream *stream)
{
	recording_stream_track(recording, stream);
	if (stream->torch_thread)
		links_thread(recording, stream, stream->torch_thread);
}

bool recording_events(void *context, const struct stepscope_block *block, const struct segment_event *events,
                      uint32_t count)
{
	struct recording *recording = context;
	const struct model *model = recording->model;
	recording->read_bytes += sizeof *block + block->bytes;
	if (model->on_progress)
		model->on_progress(model->progress_context, recording->read_bytes, recording->total_bytes);
	struct stream *stream = recording_stream(recording, block->stream);
	if (!stream)
		return true;
	follow_words(recording, stream, block);
	if (!count) /* facts only, which the reader took out */
		return true;
	choose_clock(recording->process, stream, block->first_tick);
	bool is_coarse = recording->file->header.flags & STEPSCOPE_SEGMENT_COARSE;
	uint64_t end_tick = is_coarse && stream->is_in_segments ? stream->first_tick : UINT64_MAX;
	bool has_windows = recording->has_windows;
	int64_t first_ns = INT64_MAX; /* of those that are loaded */
	for (uint32_t i = 0; i < count && events[i].tick < end_tick; i++) {
		int64_t time_ns = clock_ns(&stream->clock, events[i].tick);
		if (has_windows && !is_in_window(recording, stream, time_ns))
			continue;
		if (stream->has_events && time_ns < stream->last_ns)
			time_ns = stream->last_ns; /* a block that overlaps its predecessor */
		if (stream->track == MODEL_NONE && events[i].type != STEPSCOPE_EVENT_VALUE)
			begin_track(recording, stream);
		follow_captures(recording, stream, time_ns);
		stream->before_ns = stream->has_events ? stream->last_ns : time_ns;
		first_ns = time_ns < first_ns ? time_ns : first_ns;
		stream->has_events = true;
		stream->last_ns = time_ns;
		recording->process->events++;
		if (stream->inferred && stream->track != MODEL_NONE)
			follow_inferred(recording, stream, time_ns, events[i].type);
		on_event(recording, stream, &events[i], time_ns);
		if (stream->is_detail_off)
			cut_detail(recording, stream, time_ns);
	}
	if (first_ns <= stream->last_ns)
		note_time(recording->process, first_ns, stream->last_ns);
	return true;
}

static uint32_t open_levels(const struct stream *stream)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < stream->level_count; i++)
		count += !stream->levels[i].is_over;
	return count;
}

void recording_close_session(struct recording *recording, struct recorded_session *session)
{
	bool is_last = true; /* of its process: only there "open" can mean that the recording stops inside it */
	for (uint32_t i = 0; i < recording->session_count; i++)
		if (recording->sessions[i]->process == session->process &&
		    recording->sessions[i]->first_segment > session->first_segment)
			is_last = false;
	if (!is_last)
		recording_lose(recording->processes[session->process],
		               recording->processes[session->process]->times.last_ns,
		               "the recording was stopped and started again: in between it is not known what was "
		               "allocated and freed");
	for (uint32_t i = 0; i < session->stream_count; i++) {
		struct stream *stream = session->streams[i];
		if (stream->track == MODEL_NONE)
			continue;
		if (stream->inferred)
			follow_inferred(recording, stream, INT64_MAX, STEPSCOPE_EVENT_END);
		follow_captures(recording, stream, INT64_MAX);
		const struct time_window *window = stream->is_window_open ? &recording->process->windows[stream->window]
		                                                          : NULL;
		if (window && window->end_ns < INT64_MAX / 2) {
			end_all(recording, stream, window->end_ns, window_end(recording));
		}
		bool has_ended = stream->info.flags & 2;
		if (open_levels(stream) && (has_ended || !is_last)) {
			model_add_ledger(recording->model, LEDGER_OPEN_SPANS, recording->process->process,
			                 has_ended ? model_text(recording->model, stream->name) : recording->file->name,
			                 open_levels(stream),
			                 has_ended
			                         ? "spans were open when their thread ended"
			                         : "spans were open when the recording was stopped and started again");
			end_all(recording, stream, stream->last_ns, SPAN_END_IS_LOST);
		}
		if (stream->info.tid)
			number_map_set(&recording->process->tid_tracks,
			               (uint64_t)stream->info.tid << 2 | (stream->info.kind & 3), stream->track);
	}
}
