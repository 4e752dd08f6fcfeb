/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_deliver.c: delivers staged spans to the model: sorted, and spread over lanes if they cross. A lane is a track
 * of the model. A span that does not nest in the first lane goes to the next, where it may be alone.
 */
#include "importers/kineto/kineto_deliver.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "importers/kineto/kineto_stage.h"
#include "importers/stacks/stack_frames.h"
#include "model/launches.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES_MAX 64u
#define DOUBT_LATER 8   /* later works of the stream that end within a doubted one */
#define DOUBT_CALLS 3   /* other calls with its name */
#define DOUBT_TIMES 100 /* how many times longer it is than the longest of these */
#define TWINS_MAX 16    /* spans among which a duplicate is searched */

struct delivered_span {
	uint32_t name;
	int64_t end_ns;
	uint32_t stack; /* Python stack, as seen inside it */
};

struct delivered_lane {
	struct delivered_span *open;
	uint32_t depth, capacity;
	uint32_t track;
};

struct delivery {
	struct kineto_stage *stage;
	struct staged_track *staged;
	struct model *model;
	enum track_kind kind;
	struct delivered_lane lanes[LANES_MAX];
	uint32_t lane_count;
	struct step_bounds {
		int64_t start_ns, end_ns;
	} * steps; /* steps of the track, in order, without overlap */
	uint32_t step_count, next_step;
	uint32_t crossed_name;             /* name of the first span that the last one crosses; MODEL_NONE: none */
	const struct staged_span *doubted; /* find_doubted(); NULL: none */
	uint32_t next_work; /* index of the first work in a stream that starts after the last span asked for */
	int64_t last_ns;    /* end of the track: the latest end of spans without one */
	struct cuts {       /* number of spans, and their total cut */
		uint64_t count, ns;
	} rounded, crossed; /* rounded: due to rounded times; crossed: in the last lane */
};

/* Decides which span is around the other if both have the same times. */
static int kineto_deliver_rank_of(uint8_t kind)
{
	static const uint8_t ranks[SPAN_KIND_COUNT] = {
		[SPAN_STEP] = 1,   [SPAN_PHASE] = 2, [SPAN_RANGE] = 3,   [SPAN_ANNOTATION] = 3, [SPAN_PYTHON] = 4,
		[SPAN_MODULE] = 5, [SPAN_OP] = 6,    [SPAN_RUNTIME] = 7, [SPAN_KERNEL] = 8,
	};
	return ranks[kind] ? ranks[kind] : 9;
}

int kineto_compare_spans(const void *left, const void *right)
{
	const struct staged_span *a = left, *b = right;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->dur_ns != b->dur_ns) /* as unsigned numbers: a span without an end is the longest */
		return (uint64_t)a->dur_ns > (uint64_t)b->dur_ns ? -1 : 1;
	int ranks = kineto_deliver_rank_of(a->kind) - kineto_deliver_rank_of(b->kind);
	if (ranks || a->order != b->order)
		return ranks ? ranks : (a->order > b->order) - (a->order < b->order);
	if (a->tie != b->tie)
		return a->tie < b->tie ? -1 : 1;
	return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

/* Returns true if the file has the event twice: its writer numbered it, and everything else is equal. */
static bool is_duplicate(const struct staged_span *a, const struct staged_span *b)
{
	return a->flags & b->flags & STAGED_HAS_NUMBER && a->start_ns == b->start_ns && a->dur_ns == b->dur_ns &&
	       a->kind == b->kind && a->name == b->name && a->order == b->order && a->correlation == b->correlation &&
	       a->shape == b->shape && a->inputs == b->inputs;
}

/* Searches the spans with equal times and numbers, as others may be between the duplicates. */
static bool came_before(const struct staged_span *spans, uint32_t i)
{
	for (uint32_t j = i; j-- > 0 && i - j <= TWINS_MAX && kineto_compare_spans(&spans[j], &spans[i]) == 0;)
		if (is_duplicate(&spans[j], &spans[i]))
			return true;
	return false;
}

void kineto_sort(struct kineto_stage *stage, struct staged_track *track)
{
	if (!track->is_sorted)
		merge_sort_in(stage->storage, track->spans, track->count, sizeof *track->spans, kineto_compare_spans);
	track->is_sorted = true;
}

static void kineto_deliver_leave(struct delivered_lane *lane, int64_t time_ns)
{
	while (lane->depth && lane->open[lane->depth - 1].end_ns <= time_ns)
		lane->depth--;
}

static void kineto_deliver_enter(struct delivered_lane *lane, uint32_t name, int64_t end_ns, uint32_t stack)
{
	MEMORY_GROW(lane->open, lane->depth, lane->capacity, 16);
	lane->open[lane->depth++] = (struct delivered_span){name, end_ns, stack};
}

static struct delivered_lane *kineto_deliver_add_lane(struct delivery *delivery)
{
	assert(delivery->lane_count < LANES_MAX);
	const struct staged_track *staged = delivery->staged;
	struct delivered_lane *lane = &delivery->lanes[delivery->lane_count++];
	lane->track = model_add_track(delivery->model, staged->process, delivery->kind);
	struct track *track = delivery->model->tracks[lane->track];
	track->tid = staged_tid(staged);
	track->device = delivery->kind == TRACK_DEVICE ? staged->device : -1;
	track->name = staged->name;
	track->sort = (uint32_t)(staged->has_sort ? staged->sort : staged_tid(staged));
	return lane;
}

/* Returns true if the span starts before a step and ends in it. All steps stay in the first lane. Spans come by
 * start. */
static bool crosses_step(struct delivery *delivery, int64_t start_ns, int64_t end_ns)
{
	const struct step_bounds *steps = delivery->steps;
	while (delivery->next_step < delivery->step_count && steps[delivery->next_step].start_ns <= start_ns)
		delivery->next_step++;
	uint32_t low = delivery->next_step, high = delivery->step_count;
	if (low == high || steps[low].start_ns >= end_ns)
		return false;
	while (high - low > 1) { /* find the last step that starts before the span ends */
		uint32_t middle = low + (high - low) / 2;
		if (steps[middle].start_ns < end_ns)
			low = middle;
		else
			high = middle;
	}
	return end_ns < steps[low].end_ns;
}

static void kineto_deliver_add_step(struct delivery *delivery, const struct staged_span *span, uint32_t *capacity)
{
	MEMORY_GROW(delivery->steps, delivery->step_count, *capacity, 64);
	delivery->steps[delivery->step_count++] = (struct step_bounds){span->start_ns, span->start_ns + span->dur_ns};
}

/* Finds the steps of the track, and its end. */
static void find_bounds(struct delivery *delivery)
{
	const struct staged_track *track = delivery->staged;
	uint32_t capacity = 0;
	for (uint32_t i = 0; i < track->count; i++) {
		const struct staged_span *span = &track->spans[i];
		int64_t end_ns = span->start_ns + (span->dur_ns > 0 ? span->dur_ns : 0);
		if (i == 0 || end_ns > delivery->last_ns)
			delivery->last_ns = end_ns;
		if (span->kind == SPAN_STEP && span->dur_ns >= 0 && track->has_steps)
			kineto_deliver_add_step(delivery, span, &capacity);
	}
}

/* Returns the lane in which the span fits. Its end may be moved back because of rounded times, or because there are no
 * more lanes. */
static struct delivered_lane *choose_lane(struct delivery *delivery, int64_t start_ns, int64_t *end_ns)
{
	uint32_t first = crosses_step(delivery, start_ns, *end_ns);
	delivery->crossed_name = MODEL_NONE;
	for (uint32_t i = first; i < delivery->lane_count; i++) {
		struct delivered_lane *lane = &delivery->lanes[i];
		kineto_deliver_leave(lane, start_ns);
		if (!lane->depth || *end_ns <= lane->open[lane->depth - 1].end_ns)
			return lane;
		int64_t over_ns = *end_ns - lane->open[lane->depth - 1].end_ns;
		bool is_rounded = delivery->kind == TRACK_THREAD && over_ns <= KINETO_ROUNDING_NS;
		if (is_rounded || i + 1 == LANES_MAX) {
			struct cuts *cuts = is_rounded ? &delivery->rounded : &delivery->crossed;
			*end_ns = lane->open[lane->depth - 1].end_ns;
			cuts->count++;
			cuts->ns += (uint64_t)over_ns;
			return lane;
		}
		if (delivery->crossed_name == MODEL_NONE)
			delivery->crossed_name = lane->open[lane->depth - 1].name;
	}
	return kineto_deliver_add_lane(delivery);
}

static void set_columns(struct delivery *delivery, const struct staged_span *span, uint32_t track, uint32_t row)
{
	struct model *model = delivery->model;
	if (span->shape)
		model_span_set_shape(model, track, row, span->shape);
	if (span->inputs)
		model_span_set_inputs(model, track, row, span->inputs);
	if (span->correlation)
		model_span_set_correlation(model, track, row, span->correlation);
	if (!span->extra)
		return;
	const struct staged_extra *extra = &delivery->stage->extras[span->extra - 1];
	assert(span->extra <= delivery->stage->extras_count);
	if (extra->sequence != STEPSCOPE_NO_SEQUENCE)
		model_span_set_sequence(model, track, row, extra->sequence);
	if (extra->step) {
		delivery->stage->steps[extra->step - 1].track = track;
		delivery->stage->steps[extra->step - 1].row = row;
	}
	for (uint32_t i = 0; i < extra->arg_count; i++) {
		struct span_arg arg = delivery->stage->args[extra->first_arg + i];
		arg.track = track;
		arg.row = row;
		model_span_arg(model, &arg);
	}
}

/* Keeps the duration in the file, which report --style torch needs. */
static void kineto_deliver_note_cut(struct delivery *delivery, uint32_t track, uint32_t row, int64_t cut_ns)
{
	struct span_arg arg = {.track = track, .row = row, .type = STEPSCOPE_ARG_I64, .i64 = cut_ns};
	arg.key = intern_add(&delivery->model->strings, "trace.cut_ns");
	model_span_arg(delivery->model, &arg);
}

static bool is_work(const struct delivery *delivery, const struct staged_span *span)
{
	return delivery->kind == TRACK_DEVICE && span_is_device_work(span->kind);
}

/* Returns the longest of the other works (with has_name: of the same name) and their number. */
static int64_t longest_other_ns(const struct delivery *delivery, const struct staged_span *span, bool has_name,
                                uint32_t *calls)
{
	const struct staged_track *track = delivery->staged;
	int64_t longest_ns = 0;
	*calls = 0;
	for (uint32_t i = 0; i < track->count; i++) {
		const struct staged_span *other = &track->spans[i];
		if (other == span || (has_name && other->name != span->name) || other->dur_ns < 0 ||
		    !is_work(delivery, other))
			continue;
		longest_ns = other->dur_ns > longest_ns ? other->dur_ns : longest_ns;
		++*calls;
	}
	return longest_ns;
}

static bool is_much_longer(const struct delivery *delivery, const struct staged_span *span, bool has_name)
{
	uint32_t calls;
	int64_t longest_ns = longest_other_ns(delivery, span, has_name, &calls);
	return calls >= DOUBT_CALLS && span->dur_ns / DOUBT_TIMES > longest_ns;
}

/* Finds a work with a wrong end. A stream's work runs one after the other. If a work lasts beyond all later ones, and a
 * hundred times as long as others of its name, its end is wrong: ROCm's profiler writes such ends when it is flushed.
 * If no other work has its name, its proper length is unknown. */
static void find_doubted(struct delivery *delivery)
{
	const struct staged_track *track = delivery->staged;
	const struct staged_span *last = NULL;
	uint32_t later = 0;
	if (delivery->kind != TRACK_DEVICE)
		return;
	for (uint32_t i = 0; i < track->count; i++) {
		const struct staged_span *span = &track->spans[i];
		if (!is_work(delivery, span) || span->dur_ns < 0)
			continue;
		bool is_last = !last || span->start_ns + span->dur_ns >= last->start_ns + last->dur_ns;
		last = is_last ? span : last;
		later = is_last ? 0 : later + 1;
	}
	if (later < DOUBT_LATER)
		return;
	if (!is_much_longer(delivery, last, true)) {
		if (is_much_longer(delivery, last, false))
			model_add_ledger(
				delivery->model, LEDGER_OTHER, delivery->staged->process,
				model_text(delivery->model, last->name), 1,
				"kernels, copies or fills last beyond all later work of their stream, and more than 100 "
				"times as long as any of it: their ends may be wrong, but are kept");
		return;
	}
	delivery->doubted = last;
	model_add_ledger(delivery->model, LEDGER_DAMAGED, delivery->staged->process,
	                 model_text(delivery->model, last->name), 1,
	                 "kernels, copies or fills last beyond all later work of their stream, and more than 100 "
	                 "times as long as others of their name: they now end at the start of the next work, and are "
	                 "incomplete");
}

/* Returns the start of the next work in the stream, which runs one work at a time. INT64_MAX: not a stream, or it was
 * the last work. */
static int64_t next_work(struct delivery *delivery, const struct staged_span *span)
{
	const struct staged_span *spans = delivery->staged->spans;
	uint32_t count = delivery->staged->count, *next = &delivery->next_work;
	if (!is_work(delivery, span))
		return INT64_MAX;
	while (*next < count && (spans[*next].start_ns <= span->start_ns || !span_is_device_work(spans[*next].kind)))
		++*next;
	return *next < count ? spans[*next].start_ns : INT64_MAX;
}

/* Returns the latest possible end, in the first lane, of a span without an end. */
static int64_t latest_end(struct delivery *delivery, const struct staged_span *span)
{
	const struct delivered_lane *lane = &delivery->lanes[0];
	int64_t last_ns = span->flags & SPAN_END_IS_LOST ? delivery->stage->end_ns : delivery->last_ns;
	int64_t around_ns = lane->depth ? lane->open[lane->depth - 1].end_ns : last_ns;
	int64_t next_ns = next_work(delivery, span);
	return next_ns < around_ns ? next_ns : around_ns;
}

/* Notes crossings on threads. Calls of one thread nest: times that contradict this are measured wrongly, or belong to
 * other contexts of the thread. */
static void note_crossing(struct delivery *delivery, const struct staged_span *span)
{
	struct staged_crossings *crossings = &delivery->stage->crossings;
	if (delivery->kind != TRACK_THREAD || delivery->crossed_name == MODEL_NONE)
		return;
	if (!crossings->count || span->start_ns < crossings->start_ns) {
		crossings->process = delivery->staged->process;
		crossings->name = span->name;
		crossings->around = delivery->crossed_name;
		crossings->start_ns = span->start_ns;
	}
	crossings->count++;
}

static void deliver_span(struct delivery *delivery, const struct staged_span *span, int64_t shift_ns)
{
	bool is_open = span->dur_ns == STAGED_IS_OPEN;
	struct delivered_lane *lane = &delivery->lanes[0];
	kineto_deliver_leave(lane, span->start_ns);
	int64_t end_ns = is_open ? latest_end(delivery, span) : span->start_ns + span->dur_ns;
	if (end_ns < span->start_ns)
		end_ns = span->start_ns;
	int64_t wanted_ns = end_ns;
	if (span == delivery->doubted)
		end_ns = latest_end(delivery, span);
	lane = choose_lane(delivery, span->start_ns, &end_ns);
	note_crossing(delivery, span);
	uint32_t around = lane->depth ? lane->open[lane->depth - 1].stack : 0, inside = around;
	if (span->kind == SPAN_PYTHON && delivery->kind == TRACK_THREAD)
		inside = stack_frame(delivery->model, &delivery->stage->frames, around, span->name);
	kineto_deliver_enter(lane, span->name, end_ns, inside);
	uint32_t row = model_span_complete(delivery->model, lane->track, span->start_ns + shift_ns,
	                                   end_ns - span->start_ns, (enum span_kind)span->kind, span->name);
	if (row == MODEL_NONE)
		return;
	uint32_t i;
	struct span_chunk *chunk = track_chunk(delivery->model->tracks[lane->track], row, &i);
	uint8_t of_stage = span->kind == SPAN_ANNOTATION ? STAGED_HAS_NUMBER | STAGED_OF_DEVICE : STAGED_HAS_NUMBER;
	chunk->flags[i] |= (uint8_t)((span->flags & ~of_stage) | (end_ns < wanted_ns ? SPAN_IS_CLIPPED : 0) |
	                             (is_open || span == delivery->doubted ? SPAN_END_IS_LOST : 0));
	set_columns(delivery, span, lane->track, row);
	if (around && (span->kind == SPAN_OP || span->kind == SPAN_MODULE))
		model_span_set_stack(delivery->model, lane->track, row, around);
	if (end_ns < wanted_ns)
		kineto_deliver_note_cut(delivery, lane->track, row, wanted_ns - end_ns);
}

static void report_cuts(const struct delivery *delivery, const struct cuts *cuts, const char *what)
{
	char text[160];
	if (!cuts->count)
		return;
	snprintf(text, sizeof text, "%s; the excess was cut off, %llu ns in total", what, (unsigned long long)cuts->ns);
	model_add_ledger(delivery->model, LEDGER_OTHER, delivery->staged->process,
	                 model_text(delivery->model, delivery->staged->name), cuts->count, text);
}

void kineto_deliver(struct kineto_stage *stage, uint32_t number, enum track_kind kind, int64_t shift_ns,
                    struct model *model)
{
	struct staged_track *track = &stage->tracks[number];
	struct delivery delivery = {.stage = stage, .staged = track, .model = model, .kind = kind};
	kineto_sort(stage, track);
	find_bounds(&delivery);
	find_doubted(&delivery);
	kineto_deliver_add_lane(&delivery);
	track->first_track = delivery.lanes[0].track;
	for (uint32_t i = 0; i < track->count; i++) {
		if (came_before(track->spans, i))
			stage->duplicates++;
		else
			deliver_span(&delivery, &track->spans[i], shift_ns);
	}
	track->track_count = delivery.lane_count;
	report_cuts(&delivery, &delivery.rounded, "spans ended up to a microsecond later than the enclosing span");
	static_assert(LANES_MAX == 64, "the message has this number");
	report_cuts(&delivery, &delivery.crossed, "spans crossed other spans in all 64 lanes");
	for (uint32_t i = 0; i < delivery.lane_count; i++)
		free(delivery.lanes[i].open);
	free(delivery.steps);
	storage_release(stage->storage, track->spans);
	track->spans = NULL;
	track->capacity = 0;
}
