/* SPDX-License-Identifier: Apache-2.0
 *
 * phase_sweep.c: see the header. Phases nest per track, so a stack of open phases and a cursor are enough.
 */
#include "analysis/step_times/phase_sweep.h"

#include "base/memory.h"
#include "base/storage.h"

#include <assert.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

struct open_phase {
	int64_t end_ns;
	int phase;
	bool may_wait; /* waits for collectives in it are communication */
};

struct phase_sweep {
	const struct model *model;
	struct step_times *times;
	struct step_span *span; /* of the track's process; NULL: none of its steps is selected */
	uint32_t track;
	uint32_t next_step, last_step; /* steps of the process: [next_step, last_step) may still overlap */
	struct open_phase *stack;
	size_t depth, capacity;
	int64_t cursor_ns;
	const struct communication_waits *waits;
	uint32_t *swept;               /* by track: 1 + the process whose steps it was swept for, or 0 */
	uint32_t next_wait, last_wait; /* waits of the track that are left: [next_wait, last_wait) */
};

static void sweep_give_between(struct phase_sweep *sweep, int64_t start_ns, int64_t end_ns, int phase)
{
	if (!sweep->span)
		return;
	if (start_ns < sweep->span->first_ns)
		start_ns = sweep->span->first_ns;
	if (start_ns < sweep->span->lost_until_ns)
		start_ns = sweep->span->lost_until_ns;
	if (end_ns > sweep->span->last_ns)
		end_ns = sweep->span->last_ns;
	if (start_ns < end_ns)
		sweep->span->phase_ns[phase] += end_ns - start_ns;
}

/* Gives time that is in no step. Between two steps only the track of the later one does, as others would count the time
 * again. */
static void sweep_give_before(struct phase_sweep *sweep, uint32_t step, int64_t start_ns, int64_t end_ns, int phase)
{
	if (step >= sweep->last_step || sweep->model->steps[step].track == sweep->track)
		sweep_give_between(sweep, start_ns, end_ns, phase);
}

/* Gives [start, end), which was spent in `phase`, to the steps it overlaps. Stretches come in order of time. */
static void sweep_give(struct phase_sweep *sweep, int64_t start_ns, int64_t end_ns, int phase)
{
	const struct model_step *steps = sweep->model->steps;
	uint32_t i;

	assert(phase >= 0 && phase < PHASE_COUNT);

	while (sweep->next_step < sweep->last_step && steps[sweep->next_step].end_ns <= start_ns)
		sweep->next_step++;
	for (i = sweep->next_step; i < sweep->last_step && steps[i].start_ns < end_ns; i++) {
		int64_t from = steps[i].start_ns > start_ns ? steps[i].start_ns : start_ns;
		int64_t to = steps[i].end_ns < end_ns ? steps[i].end_ns : end_ns;

		if (to <= from)
			continue;
		if (steps[i].track == sweep->track)
			sweep->times->steps[i].phase_ns[phase] += to - from;
		sweep_give_before(sweep, i, start_ns, from, phase);
		start_ns = to;
	}
	if (start_ns < end_ns)
		sweep_give_before(sweep, i, start_ns, end_ns, phase);
}

/* The phase `other` is the rest of the steps: sweep_fill_others() computes it. Only its waits for collectives are
 * given. */
static void sweep_give_rest(struct phase_sweep *sweep, int64_t start_ns, int64_t end_ns, int phase)
{
	if (phase != PHASE_OTHER && start_ns < end_ns)
		sweep_give(sweep, start_ns, end_ns, phase);
}

/* Gives the time from the cursor to the end to the phase, and the waits for collectives in it to communication. */
static void sweep_deal(struct phase_sweep *sweep, int64_t end_ns, const struct open_phase *open)
{
	const struct communication_wait *waits = sweep->waits->list;
	int64_t start_ns = sweep->cursor_ns;

	if (end_ns <= start_ns)
		return;
	sweep->cursor_ns = end_ns;
	while (sweep->next_wait < sweep->last_wait && waits[sweep->next_wait].end_ns <= start_ns)
		sweep->next_wait++;
	for (uint32_t i = sweep->next_wait; open->may_wait && i < sweep->last_wait && waits[i].start_ns < end_ns; i++) {
		int64_t from = waits[i].start_ns > start_ns ? waits[i].start_ns : start_ns;
		int64_t to = waits[i].end_ns < end_ns ? waits[i].end_ns : end_ns;

		sweep_give_rest(sweep, start_ns, from, open->phase);
		sweep_give(sweep, from, to, STEPSCOPE_PHASE_COMMUNICATION);
		start_ns = to;
	}
	sweep_give_rest(sweep, start_ns, end_ns, open->phase);
}

/* Leaves the phases that end until now. */
static void sweep_to(struct phase_sweep *sweep, int64_t now_ns)
{
	static const struct open_phase none = {.phase = PHASE_OTHER, .may_wait = true};

	while (sweep->depth && sweep->stack[sweep->depth - 1].end_ns <= now_ns) {
		const struct open_phase *top = &sweep->stack[--sweep->depth];

		sweep_deal(sweep, top->end_ns, top);
	}
	sweep_deal(sweep, now_ns, sweep->depth ? &sweep->stack[sweep->depth - 1] : &none);
}

/* Returns false for phases that the program marks, and if the thread waits for data or writes a file: nothing in them
 * is a wait for a collective. */
static bool phase_may_wait(const struct span_chunk *chunk, uint32_t index)
{
	return (chunk->flags[index] & SPAN_IS_INFERRED) && chunk->phase[index] != STEPSCOPE_PHASE_DATA &&
	       chunk->phase[index] != STEPSCOPE_PHASE_CHECKPOINT;
}

static void sweep_phase(struct phase_sweep *sweep, const struct span_chunk *chunk, uint32_t index)
{
	int phase = chunk->phase[index];

	if (sweep->span && (chunk->flags[index] & SPAN_IS_INFERRED))
		sweep->span->infers_phases = true;
	sweep_to(sweep, chunk->start_ns[index]);
	MEMORY_GROW(sweep->stack, sweep->depth, sweep->capacity, 16);
	sweep->stack[sweep->depth++] = (struct open_phase){.end_ns = chunk->start_ns[index] + chunk->dur_ns[index],
	                                                   .phase = phase < PHASE_COUNT ? phase : PHASE_OTHER,
	                                                   .may_wait = phase_may_wait(chunk, index)};
}

static void sweep_track(struct phase_sweep *sweep, const struct track *track)
{
	sweep->depth = 0;
	sweep->cursor_ns = INT64_MIN;
	communication_waits_of(sweep->waits, sweep->track, &sweep->next_wait, &sweep->last_wait);
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			if (chunk->kind[i] == SPAN_PHASE)
				sweep_phase(sweep, chunk, i);
		}
		model_chunk_done(sweep->model, chunk);
	}
	sweep_to(sweep, INT64_MAX);
}

static struct step_span *sweep_span(struct step_times *times, uint32_t process)
{
	for (uint32_t i = 0; i < times->span_count; i++) {
		if (times->spans[i].process == process)
			return &times->spans[i];
	}
	return NULL;
}

/* Sweeps every track that carries steps of the process. Its steps are [first, end). */
static void sweep_process(struct phase_sweep *sweep, uint32_t first, uint32_t end)
{
	const struct model *model = sweep->model;
	uint32_t process = model->steps[first].process;

	assert(first < end);

	sweep->span = sweep_span(sweep->times, process);
	for (uint32_t i = first; i < end; i++) {
		uint32_t track = model->steps[i].track;

		if (track >= model->tracks_count || sweep->swept[track] == process + 1)
			continue;
		sweep->swept[track] = process + 1;
		sweep->track = track;
		sweep->next_step = first;
		sweep->last_step = end;
		sweep_track(sweep, model->tracks[track]);
	}
}

static void sweep_fill_other(struct step_span *span)
{
	int64_t other_ns = span->last_ns - span->first_ns - span->steps_ns - span->lost_ns;

	for (int phase = 1; phase < PHASE_COUNT; phase++)
		other_ns -= span->phase_ns[phase];
	span->missed_ns = span->missed_ns < other_ns ? span->missed_ns : other_ns;
	span->phase_ns[PHASE_OTHER] = other_ns - span->missed_ns;
}

/* Gives the rest of steps, and of the time between them, to the phase `other`. */
static void sweep_fill_others(struct step_times *times)
{
	for (uint32_t i = 0; i < times->count; i++) {
		struct step_time *time = &times->steps[i];
		int64_t named = 0;

		for (int phase = 1; phase < PHASE_COUNT; phase++)
			named += time->phase_ns[phase];
		assert(named >= 0 && named <= time->dur_ns); /* an instant has one phase at most */
		time->phase_ns[PHASE_OTHER] = time->dur_ns - named;
	}
	for (uint32_t i = 0; i < times->span_count; i++)
		sweep_fill_other(&times->spans[i]);
}

void phase_sweep_steps(struct step_times *times, const struct model *model)
{
	struct phase_sweep sweep = {.model = model, .times = times, .waits = &times->waits};

	sweep.swept = storage_resize(times->storage, NULL, (size_t)model->tracks_count + 1, sizeof(*sweep.swept));
	memset(sweep.swept, 0, model->tracks_count * sizeof(*sweep.swept));
	for (uint32_t first = 0, end; first < times->count; first = end) {
		for (end = first; end < times->count && model->steps[end].process == model->steps[first].process;)
			end++;
		sweep_process(&sweep, first, end);
	}
	free(sweep.stack);
	storage_release(times->storage, sweep.swept);
	sweep_fill_others(times);
}

void phase_sweep_track(const struct model *model, uint32_t track, struct step_span *span)
{
	const struct communication_waits none = {0};
	struct phase_sweep sweep = {.model = model, .span = span, .track = track, .waits = &none};

	sweep_track(&sweep, model->tracks[track]);
	free(sweep.stack);
	sweep_fill_other(span);
}
