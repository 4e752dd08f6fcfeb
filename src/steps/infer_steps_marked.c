/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps_marked.c: ranges that mark steps (torch.profiler's ProfilerStep#N) in the place of the steps that were inferred where they are.
 * A profiler's ranges lie one behind the other: the first one begins with start(), the last one ends with stop(), and each step() ends one
 * and begins the next.
 */
#include "base/memory.h"
#include "base/merge_sort.h"
#include "steps/infer_steps.h"
#include "steps/inference.h"

#include <stdlib.h>
#include <string.h>

struct range_use {
	bool has_work;          /* something in it trains or, where nothing does at all, runs */
	bool is_first, is_last; /* of its profiler's */
	bool holds_step;        /* one that lies in it is a step */
	size_t updates;         /* ends of steps that were inferred */
};

struct marked_step {
	struct inferred step;
	uint32_t range; /* NO_RANGE: it was inferred */
};

struct marker {
	struct inference *out;
	const struct train_loop *loop;
	struct range_use *uses; /* by range */
	struct marked_step *steps;
	size_t step_count, marked_count;
};

/* ---- what lies in the ranges --------------------------------------------------------------------------------------------------- */

static bool trains(const struct train_record *record)
{
	return (record->token == TOKEN_BACKWARD && record->is_training) ||
	       (record->token == TOKEN_OPTIMIZER && !record->is_inside);
}

static bool runs(const struct train_record *record)
{
	return record->token == TOKEN_OP || record->token == TOKEN_FORWARD || record->token == TOKEN_BACKWARD;
}

static void find_work(struct marker *m)
{
	const struct train_loop *loop = m->loop;
	bool has_training = false;

	for (size_t i = 0; i < loop->count && !has_training; i++)
		has_training = trains(&loop->records[i]);
	for (size_t i = 0; i < loop->count; i++) {
		const struct train_record *record = &loop->records[i];

		if (record->range != NO_RANGE && (has_training ? trains(record) : runs(record)))
			m->uses[record->range].has_work = true;
	}
}

/* The innermost range around that time; NO_RANGE: none. */
static uint32_t range_at(const struct train_loop *loop, int64_t time_ns)
{
	size_t low = 0, high = loop->range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (loop->ranges[middle].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	uint32_t range = low ? (uint32_t)low - 1 : NO_RANGE;
	while (range != NO_RANGE && loop->ranges[range].end_ns < time_ns)
		range = loop->ranges[range].parent;
	return range;
}

static void count_updates(struct marker *m)
{
	for (size_t i = 0; i < m->out->count; i++) {
		const struct inferred *step = &m->out->list[i];
		uint32_t range = step->what == INFERRED_STEP ? range_at(m->loop, step->last_ns) : NO_RANGE;

		if (range != NO_RANGE)
			m->uses[range].updates++;
	}
}

/* What lies in a range lies in the one around it, which has a smaller index. */
static void add_up(struct marker *m)
{
	for (size_t i = m->loop->range_count; i-- > 0;) {
		uint32_t parent = m->loop->ranges[i].parent;

		if (parent == NO_RANGE)
			continue;
		m->uses[parent].has_work |= m->uses[i].has_work;
		m->uses[parent].updates += m->uses[i].updates;
	}
}

/* Of one profiler are those that lie in the same range while their numbers go up; PyTorch 1.13 gives the first two the number 0. */
static void find_profilers(struct marker *m)
{
	const struct train_range *ranges = m->loop->ranges;
	uint32_t *before = memory_resize(NULL, m->loop->range_count + 1, sizeof *before); /* by 1 + parent */

	memset(before, 0xff, (m->loop->range_count + 1) * sizeof *before);
	for (uint32_t i = 0; i < m->loop->range_count; i++) {
		uint32_t *last = &before[ranges[i].parent == NO_RANGE ? 0 : ranges[i].parent + 1];

		if (!ranges[i].step)
			continue;
		bool goes_on = *last != NO_RANGE && ranges[i].step >= ranges[*last].step &&
		               (ranges[i].step > 1 || ranges[*last].step == 1);
		m->uses[i].is_first = !goes_on;
		m->uses[i].is_last = true;
		if (goes_on)
			m->uses[*last].is_last = false;
		*last = i;
	}
	free(before);
}

/* ---- which of them are steps --------------------------------------------------------------------------------------------------- */

static bool is_between(const struct marker *m, uint32_t range)
{
	const struct range_use *use = &m->uses[range];

	return m->loop->ranges[range].step && use->has_work && !use->is_first && !use->is_last;
}

/* So many updates are in one that begins and ends with step(), at most. */
static size_t most_updates(const struct marker *m)
{
	size_t most = 1;

	for (uint32_t i = 0; i < m->loop->range_count; i++)
		if (is_between(m, i) && m->uses[i].updates > most)
			most = m->uses[i].updates;
	return most;
}

/* A profiler whose step() is never called marks none. What it sees before the first call, or behind the last, may be a whole training. */
static bool marks_step(const struct marker *m, uint32_t range, size_t most)
{
	const struct range_use *use = &m->uses[range];

	if (use->holds_step || (use->is_first && use->is_last))
		return false;
	return is_between(m, range) || (m->loop->ranges[range].step && use->has_work && use->updates <= most);
}

static void find_marked(struct marker *m)
{
	const struct train_range *ranges = m->loop->ranges;
	size_t most = most_updates(m), room = m->loop->range_count;

	m->steps = memory_resize(NULL, room + m->out->step_count + 1, sizeof *m->steps);
	for (size_t i = room; i-- > 0;) { /* from the inside out */
		if (!marks_step(m, (uint32_t)i, most))
			continue;
		int64_t end_ns = ranges[i].is_open ? INFERRED_IS_OPEN : ranges[i].end_ns;

		m->steps[--room] = (struct marked_step){.step = {.what = INFERRED_STEP,
		                                                 .start_ns = ranges[i].start_ns,
		                                                 .end_ns = end_ns,
		                                                 .last_ns = end_ns,
		                                                 .is_marked = true},
		                                        .range = (uint32_t)i};
		for (uint32_t p = ranges[i].parent; p != NO_RANGE && !m->uses[p].holds_step; p = ranges[p].parent)
			m->uses[p].holds_step = true;
	}
	m->marked_count = m->loop->range_count - room;
	memmove(m->steps, m->steps + room, m->marked_count * sizeof *m->steps);
	m->step_count = m->marked_count;
}

/* ---- the others ---------------------------------------------------------------------------------------------------------------- */

/* Behind the marked step: not in a range which that lies in and the other one does not. */
static int64_t start_behind(const struct marker *m, const struct marked_step *marked, const struct inferred *step)
{
	const struct train_range *ranges = m->loop->ranges;
	int64_t start_ns = marked->step.end_ns;

	if (step->start_ns >= start_ns)
		return step->start_ns;
	for (uint32_t p = ranges[marked->range].parent; p != NO_RANGE && ranges[p].end_ns < step->end_ns;
	     p = ranges[p].parent)
		start_ns = ranges[p].end_ns > start_ns ? ranges[p].end_ns : start_ns;
	return start_ns;
}

/* Before it, likewise. */
static int64_t end_before(const struct marker *m, const struct marked_step *marked, const struct inferred *step)
{
	const struct train_range *ranges = m->loop->ranges;
	int64_t end_ns = marked->step.start_ns;

	if (step->end_ns <= end_ns)
		return step->end_ns;
	for (uint32_t p = ranges[marked->range].parent; p != NO_RANGE && ranges[p].start_ns > step->start_ns;
	     p = ranges[p].parent)
		end_ns = ranges[p].start_ns < end_ns ? ranges[p].start_ns : end_ns;
	return end_ns;
}

/* One that was cut off, and whose work may all be in marked ones. */
static bool has_work_behind(const struct marker *m, int64_t time_ns)
{
	for (size_t i = m->loop->count; i-- > 0 && m->loop->records[i].start_ns >= time_ns;)
		if (trains(&m->loop->records[i]) || m->loop->records[i].token == TOKEN_FORWARD)
			return true;
	return false;
}

/* A step that was inferred stays where it ends outside of those that are marked; what of it lies in them is theirs. */
static void keep_inferred(struct marker *m, const struct inferred *inferred, size_t next)
{
	const struct marked_step *before = next ? &m->steps[next - 1] : NULL;
	struct inferred step = *inferred;

	if (before && before->step.end_ns >= step.last_ns)
		return;
	if (before)
		step.start_ns = start_behind(m, before, &step);
	if (next < m->marked_count)
		step.end_ns = end_before(m, &m->steps[next], &step);
	bool is_left = step.last_ns == INFERRED_IS_OPEN ? has_work_behind(m, step.start_ns)
	                                                : step.start_ns < step.last_ns && step.last_ns <= step.end_ns;
	if (is_left)
		m->steps[m->step_count++] = (struct marked_step){step, NO_RANGE};
}

static int infer_steps_marked_compare_steps(const void *left, const void *right)
{
	const struct marked_step *a = left, *b = right;
	return (a->step.start_ns > b->step.start_ns) - (a->step.start_ns < b->step.start_ns);
}

static void find_others(struct marker *m)
{
	size_t next = 0;

	for (size_t i = 0; i < m->out->count; i++) {
		const struct inferred *step = &m->out->list[i];

		if (step->what != INFERRED_STEP)
			continue;
		while (next < m->marked_count && m->steps[next].step.start_ns <= step->last_ns)
			next++;
		keep_inferred(m, step, next);
	}
	merge_sort(m->steps, m->step_count, sizeof *m->steps, infer_steps_marked_compare_steps);
}

/* ---- one list ------------------------------------------------------------------------------------------------------------------ */

/* Where steps begin and end no phase goes on. */
static void cut_phases(const struct marker *m)
{
	int64_t *bounds = memory_resize(NULL, 2 * m->step_count + 1, sizeof *bounds);

	for (size_t i = 0; i < m->step_count; i++) {
		bounds[2 * i] = m->steps[i].step.start_ns;
		bounds[2 * i + 1] = m->steps[i].step.end_ns;
	}
	inference_cut_phases(m->out, bounds, (uint32_t)(2 * m->step_count));
	free(bounds);
}

/* Steps are around the phases that begin with them. */
static void put_steps(const struct marker *m)
{
	struct inference *out = m->out, phases = *out;
	size_t next = 0;

	out->list = NULL;
	out->count = out->capacity = 0;
	for (size_t i = 0; i < m->step_count; i++) {
		struct inferred step = m->steps[i].step;

		for (; next < phases.count && phases.list[next].start_ns < step.start_ns; next++)
			*inference_add(out, 0, 0, 0) = phases.list[next];
		step.number = (int64_t)i;
		*inference_add(out, 0, 0, 0) = step;
	}
	for (; next < phases.count; next++)
		*inference_add(out, 0, 0, 0) = phases.list[next];
	free(phases.list);
	out->step_count = m->step_count;
	out->marked_count = m->marked_count;
}

void inference_mark_steps(struct inference *inference, const struct train_loop *loop)
{
	struct marker m = {.out = inference, .loop = loop};

	m.uses = memory_resize(NULL, loop->range_count + 1, sizeof *m.uses);
	memset(m.uses, 0, (loop->range_count + 1) * sizeof *m.uses);
	find_work(&m);
	count_updates(&m);
	add_up(&m);
	find_profilers(&m);
	find_marked(&m);
	if (m.marked_count) {
		find_others(&m);
		cut_phases(&m);
		put_steps(&m);
	}
	free(m.uses);
	free(m.steps);
}
