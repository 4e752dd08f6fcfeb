/* SPDX-License-Identifier: Apache-2.0
 *
 * step_times.c: sweeps the phases of every track that carries steps, innermost phase first, and deals the time out to the
 * steps and to what lies between them.
 */
#include "analysis/step_times/step_times.h"

#include "analysis/shared/labels.h"
#include "analysis/step_times/step_kinds.h"

#include "base/clamped.h"
#include "base/lower_bound.h"
#include "base/memory.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "model/lanes.h"

#include <stdlib.h>
#include <stepscope/format.h>
#include <stepscope/stepscope.h>
#include <string.h>

static const char *const phase_names[PHASE_COUNT] = {"other",     "data",          "forward",    "backward",
                                                     "optimizer", "communication", "checkpoint", "evaluation"};

const char *phase_name(int phase)
{
	return phase >= 0 && phase < PHASE_COUNT ? phase_names[phase] : phase_names[PHASE_OTHER];
}

static void *zeroed(struct storage *storage, size_t count, size_t bytes)
{
	void *memory = storage_resize(storage, NULL, count + 1, bytes);

	return memset(memory, 0, count * bytes);
}

/* ---- the sweep ---- */

struct open_phase {
	int64_t end_ns;
	int phase;
	bool may_wait; /* waits for collectives in it are a phase of their own */
};

struct sweep {
	const struct model *model;
	struct step_times *times;
	struct step_span *span; /* of the track's process; NULL when it has none selected */
	uint32_t track;
	uint32_t next_step, last_step; /* steps of the process: [next_step, last_step) may still overlap */
	struct open_phase *stack;
	size_t depth, capacity;
	int64_t cursor_ns;
	const struct communication_waits *waits;
	uint32_t *swept;               /* by track: 1 + process whose steps it was swept for; 0: none yet */
	uint32_t next_wait, last_wait; /* those of the track that are not dealt out: [next_wait, last_wait) */
};

static void give_between(struct sweep *sweep, int64_t start_ns, int64_t end_ns, int phase)
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

/* Of what lies before this step and behind the one before, the step's own thread tells: others would count the time again. */
static void give_before(struct sweep *sweep, uint32_t step, int64_t start_ns, int64_t end_ns, int phase)
{
	if (step >= sweep->last_step || sweep->model->steps[step].track == sweep->track)
		give_between(sweep, start_ns, end_ns, phase);
}

/* Deals out [start, end), which was spent in `phase`, to the steps it overlaps. Stretches come in order of time. */
static void give(struct sweep *sweep, int64_t start_ns, int64_t end_ns, int phase)
{
	const struct model_step *steps = sweep->model->steps;
	uint32_t i;

	while (sweep->next_step < sweep->last_step && steps[sweep->next_step].end_ns <= start_ns)
		sweep->next_step++;
	for (i = sweep->next_step; i < sweep->last_step && steps[i].start_ns < end_ns; i++) {
		int64_t from = steps[i].start_ns > start_ns ? steps[i].start_ns : start_ns;
		int64_t to = steps[i].end_ns < end_ns ? steps[i].end_ns : end_ns;

		if (to <= from)
			continue;
		if (steps[i].track == sweep->track)
			sweep->times->steps[i].phase_ns[phase] += to - from;
		give_before(sweep, i, start_ns, from, phase);
		start_ns = to;
	}
	if (start_ns < end_ns)
		give_before(sweep, i, start_ns, end_ns, phase);
}

/* What is in no phase is what the others leave, but for waits. */
static void give_rest(struct sweep *sweep, int64_t start_ns, int64_t end_ns, int phase)
{
	if (phase != PHASE_OTHER && start_ns < end_ns)
		give(sweep, start_ns, end_ns, phase);
}

/* From the cursor on, without and with the waits for collectives in it. */
static void deal(struct sweep *sweep, int64_t end_ns, const struct open_phase *open)
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

		give_rest(sweep, start_ns, from, open->phase);
		give(sweep, from, to, STEPSCOPE_PHASE_COMMUNICATION);
		start_ns = to;
	}
	give_rest(sweep, start_ns, end_ns, open->phase);
}

/* Leaves the phases that end by `now`. */
static void sweep_to(struct sweep *sweep, int64_t now_ns)
{
	static const struct open_phase none = {.phase = PHASE_OTHER, .may_wait = true};

	while (sweep->depth && sweep->stack[sweep->depth - 1].end_ns <= now_ns) {
		const struct open_phase *top = &sweep->stack[--sweep->depth];

		deal(sweep, top->end_ns, top);
	}
	deal(sweep, now_ns, sweep->depth ? &sweep->stack[sweep->depth - 1] : &none);
}

/* A phase that the program marks is what it says; where data is awaited, or a file is written, nobody waits for a collective. */
static bool may_wait(const struct span_chunk *chunk, uint32_t index)
{
	return (chunk->flags[index] & SPAN_IS_INFERRED) && chunk->phase[index] != STEPSCOPE_PHASE_DATA &&
	       chunk->phase[index] != STEPSCOPE_PHASE_CHECKPOINT;
}

static void sweep_phase(struct sweep *sweep, const struct span_chunk *chunk, uint32_t index)
{
	int phase = chunk->phase[index];

	if (sweep->span && (chunk->flags[index] & SPAN_IS_INFERRED))
		sweep->span->infers_phases = true;
	sweep_to(sweep, chunk->start_ns[index]);
	MEMORY_GROW(sweep->stack, sweep->depth, sweep->capacity, 16);
	sweep->stack[sweep->depth++] = (struct open_phase){.end_ns = chunk->start_ns[index] + chunk->dur_ns[index],
	                                                   .phase = phase < PHASE_COUNT ? phase : PHASE_OTHER,
	                                                   .may_wait = may_wait(chunk, index)};
}

static void sweep_track(struct sweep *sweep, const struct track *track)
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

/* ---- steps ---- */

/* Steps come by their starts, and may overlap: then the time is theirs once. is_numbered: a profiler counts them, which does not record all. */
static void add_time(struct step_span *span, const struct model_step *step, bool is_numbered)
{
	bool is_first = !span->complete && !span->open;
	int64_t from = is_first || step->start_ns > span->last_ns ? step->start_ns : span->last_ns;

	if (is_first)
		span->first_ns = span->last_ns = step->start_ns;
	bool is_missed = !is_first && is_numbered && step->number > span->last_number &&
	                 step->number - 1 > span->last_number;
	if (step->has_lost_phases && step->start_ns > span->last_ns)
		clamped_add(&span->lost_ns, step->start_ns - span->last_ns);
	if (is_missed && step->start_ns > span->last_ns)
		clamped_add(&span->missed_ns, step->start_ns - span->last_ns);
	span->gaps += !is_first && !step->has_lost_phases && !is_missed;
	span->last_number = step->number;
	if (step->end_ns > from)
		clamped_add(&span->steps_ns, step->end_ns - from);
	if (step->end_ns > span->last_ns)
		span->last_ns = step->end_ns;
	if (step->has_lost_phases)
		span->lost_until_ns = span->last_ns;
}

/* The step's own span says whether its end is known. */
static bool has_end(const struct model *model, const struct model_step *step)
{
	uint32_t index;
	const struct span_chunk *chunk;

	if (step->is_open)
		return false;
	if (step->track >= model->tracks_count || step->row >= model->tracks[step->track]->span_count)
		return true;
	chunk = track_chunk(model->tracks[step->track], step->row, &index);
	return span_is_timed(chunk->flags[index]);
}

static struct step_span *find_span(struct step_times *times, uint32_t process)
{
	if (times->span_count && times->spans[times->span_count - 1].process == process)
		return &times->spans[times->span_count - 1];
	times->spans[times->span_count] = (struct step_span){.process = process};
	return &times->spans[times->span_count++];
}

static void add_step(struct step_times *times, const struct model *model, uint32_t index,
                     const struct analysis_options *options)
{
	const struct model_step *step = &model->steps[index];
	struct step_time *time = &times->steps[index];
	struct step_span *span;

	time->job = MODEL_NONE;
	time->is_early = index < STEP_KINDS_LEAST || model->steps[index - STEP_KINDS_LEAST].process != step->process;
	time->is_selected = !options->has_steps ||
	                    (step->number >= options->first_step && step->number <= options->last_step);
	time->is_complete = has_end(model, step);
	time->has_phases = time->knows_all = !step->has_lost_phases && !step->has_calls_only;
	time->has_calls = !step->has_lost_phases && step->has_calls_only;
	time->dur_ns = step->end_ns > step->start_ns ? step->end_ns - step->start_ns : 0;
	if (!time->is_selected)
		return;
	span = find_span(times, step->process);
	add_time(span, step, model->processes[step->process].role == STEPSCOPE_ROLE_IMPORTED);
	times->selected++;
	*(time->is_complete ? &span->complete : &span->open) += 1;
	*(time->is_complete ? &times->complete : &times->incomplete) += 1;
}

static struct step_span *span_of(struct step_times *times, uint32_t process)
{
	for (uint32_t i = 0; i < times->span_count; i++) {
		if (times->spans[i].process == process)
			return &times->spans[i];
	}
	return NULL;
}

/* Sweeps every track that carries steps of the process, whose steps are [first, end). */
static void sweep_process(struct sweep *sweep, uint32_t first, uint32_t end)
{
	const struct model *model = sweep->model;
	uint32_t process = model->steps[first].process;

	sweep->span = span_of(sweep->times, process);
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

static void fill_other_of_span(struct step_span *span)
{
	int64_t other_ns = span->last_ns - span->first_ns - span->steps_ns - span->lost_ns;

	for (int phase = 1; phase < PHASE_COUNT; phase++)
		other_ns -= span->phase_ns[phase];
	span->missed_ns = span->missed_ns < other_ns ? span->missed_ns : other_ns;
	span->phase_ns[PHASE_OTHER] = other_ns - span->missed_ns;
}

/* What is left of steps, and of the time between them, after the phases. */
static void fill_others(struct step_times *times)
{
	for (uint32_t i = 0; i < times->count; i++) {
		struct step_time *time = &times->steps[i];
		int64_t named = 0;

		for (int phase = 1; phase < PHASE_COUNT; phase++)
			named += time->phase_ns[phase];
		time->phase_ns[PHASE_OTHER] = time->dur_ns - named;
	}
	for (uint32_t i = 0; i < times->span_count; i++)
		fill_other_of_span(&times->spans[i]);
}

void step_times_sweep_phases(const struct model *model, uint32_t track, struct step_span *span)
{
	const struct communication_waits none = {0};
	struct sweep sweep = {.model = model, .span = span, .track = track, .waits = &none};

	sweep_track(&sweep, model->tracks[track]);
	free(sweep.stack);
	fill_other_of_span(span);
}

/* ---- ranks ---- */

/* A trainer that a rank started, by fork and exec, has its rank in its environment and is none. One that was over before the other's first
 * event was started by something else with that process id: a shell that became the trainer after it (`sh -c "train; train"`). */
static bool is_started_by_rank(const struct step_times *times, const struct model *model, const struct process *process)
{
	for (uint32_t i = 0; i < times->span_count; i++) {
		const struct process *parent = &model->processes[times->spans[i].process];

		if (parent != process && process->parent_pid && parent->pid == process->parent_pid &&
		    share_process_ids(parent, process) && parent->rank == process->rank &&
		    parent->first_ns < process->last_ns)
			return true;
	}
	return false;
}

/* See step_times.h; when none is complete, those that are not. */
static void find_measured(struct step_times *times, const struct model *model)
{
	uint32_t complete = 0;

	for (uint32_t i = 0; i < times->count; i++)
		complete += times->steps[i].is_selected && times->steps[i].is_complete && model->steps[i].has_detail;
	for (uint32_t i = 0; i < times->count; i++)
		times->steps[i].is_measured = times->steps[i].is_selected && model->steps[i].has_detail &&
		                              (times->steps[i].is_complete || !complete);
}

/* Whether any is complete is asked of all, as more of them know it. */
static void find_rare(struct step_times *times, const struct model *model)
{
	uint32_t known = 0;

	for (uint32_t i = 0; i < times->count; i++) {
		struct step_time *time = &times->steps[i];

		time->has_rare = time->is_selected && (model->steps[i].has_detail || model->steps[i].has_rare) &&
		                 (time->is_complete || !times->complete);
		known += time->has_rare && time->is_complete;
	}
	times->knows_rare = known && known == times->complete;
}

/* Phases that the program marks say it themselves. */
static void find_unknown_waits(struct step_times *times, const struct model *model)
{
	for (uint32_t s = 0; s < times->span_count; s++) {
		struct step_span *span = &times->spans[s];
		bool is_measured = false, is_known = false, is_part = false;

		for (uint32_t i = 0; i < times->count; i++) {
			if (model->steps[i].process != span->process)
				continue;
			is_measured |= times->steps[i].is_measured;
			is_part |= (model->steps[i].is_inferred || !times->steps[i].has_phases) &&
			           times->steps[i].is_complete && times->steps[i].is_selected &&
			           !times->steps[i].is_measured;
			is_known |= times->steps[i].phase_ns[STEPSCOPE_PHASE_COMMUNICATION] > 0;
		}
		if (is_measured && is_part)
			span->no_waits = STEP_TIMES_PART_WAITS;
		if (is_known || span->no_waits)
			continue;
		if (times->waits.is_unknown && times->waits.is_unknown[span->process])
			span->no_waits = "the backend did not tell when it executes collectives";
		else if (!is_measured && model_meta(model, span->process, "torch.version"))
			span->no_waits = "operators were recorded in none of its steps";
	}
}

static void find_ranks(struct step_times *times, const struct model *model)
{
	bool has_ranks = false;

	for (uint32_t i = 0; i < times->span_count; i++) {
		const struct process *process = &model->processes[times->spans[i].process];
		bool is_trainer = process->role == STEPSCOPE_ROLE_TRAINER || process->role == STEPSCOPE_ROLE_IMPORTED;

		times->spans[i].is_rank = is_trainer && !is_started_by_rank(times, model, process);
		has_ranks |= times->spans[i].is_rank;
	}
	for (uint32_t i = 0; i < times->span_count && !has_ranks; i++)
		times->spans[i].is_rank = true;
}

/* ---- the job's steps ---- */

struct numbered {
	int64_t number;
	uint32_t occurrence; /* of this number in its rank, so that numbers that start again do not melt together */
	int64_t rank;
	uint32_t step;
};

static int compare_rank_first(const void *left, const void *right)
{
	const struct numbered *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->step > b->step) - (a->step < b->step);
}

static int compare_number_first(const void *left, const void *right)
{
	const struct numbered *a = left, *b = right;

	if (a->occurrence != b->occurrence)
		return a->occurrence < b->occurrence ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (a->step > b->step) - (a->step < b->step);
}

/* Selected steps of ranks, those of one job step side by side. */
static uint32_t number_steps(const struct step_times *times, const struct model *model, struct numbered *numbered)
{
	const struct step_span *span = times->spans;
	uint32_t count = 0;

	for (uint32_t i = 0; i < times->count; i++) {
		const struct model_step *step = &model->steps[i];
		int32_t rank = model->processes[step->process].rank;

		if (!times->steps[i].is_selected)
			continue;
		while (span->process != step->process) /* both in the order of the model */
			span++;
		if (span->is_rank)
			numbered[count++] = (struct numbered){step->number, 0,
			                                      rank >= 0 ? rank : -1 - (int64_t)step->process, i};
	}
	merge_sort_in(model->storage, numbered, count, sizeof(*numbered), compare_rank_first);
	for (uint32_t i = 1; i < count; i++) {
		if (numbered[i].rank == numbered[i - 1].rank && numbered[i].number == numbered[i - 1].number)
			numbered[i].occurrence = numbered[i - 1].occurrence + 1;
	}
	merge_sort_in(model->storage, numbered, count, sizeof(*numbered), compare_number_first);
	return count;
}

static void job_step_add(struct job_step *job, const struct model_step *step, const struct step_time *time)
{
	job->number = step->number;
	job->processes++;
	job->with_phases += time->has_phases;
	job->with_calls += time->has_phases || time->has_calls;
	job->measured += time->is_measured;
	job->plain += step_is_plain(step);
	job->early += time->is_early;
	job->lost += step->has_lost_phases;
	job->dur_ns += (double)time->dur_ns;
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		job->phase_ns[phase] += (double)time->phase_ns[phase];
	if (step->has_tokens)
		job->tokens += (double)step->tokens, job->has_tokens = true;
	if (step->has_samples)
		job->samples += (double)step->samples, job->has_samples = true;
	if (!step->has_cpu)
		return;
	job->with_cpu++;
	job->cpu_ns += (double)step->cpu_ns;
	job->running_ns += (double)step_running_ns(step, time->dur_ns);
}

static void job_step_divide(struct job_step *job)
{
	job->has_phases = job->with_phases == job->processes;
	job->has_calls = !job->has_phases && job->with_calls == job->processes;
	job->dur_ns /= job->processes;
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		job->phase_ns[phase] /= job->processes;
	if (job->with_cpu)
		job->cpu_ns /= job->with_cpu, job->running_ns /= job->with_cpu;
}

static void fill_job(struct step_times *times, const struct model *model)
{
	struct numbered *numbered = zeroed(model->storage, times->count, sizeof(*numbered));
	uint32_t count = number_steps(times, model, numbered);

	times->job = zeroed(model->storage, count, sizeof(*times->job));
	for (uint32_t first = 0, end; first < count; first = end) {
		struct job_step *job = &times->job[times->job_count];
		bool has_detail = false, is_open = false;

		for (end = first; end < count && numbered[end].number == numbered[first].number &&
		                  numbered[end].occurrence == numbered[first].occurrence;
		     end++) {
			uint32_t step = numbered[end].step;

			has_detail |= model->steps[step].has_detail;
			is_open |= !times->steps[step].is_complete;
			if (!times->steps[step].is_complete)
				continue;
			job_step_add(job, &model->steps[step], &times->steps[step]);
			times->steps[step].job = times->job_count;
		}
		if (!times->job_selected || numbered[first].number < times->job_first)
			times->job_first = numbered[first].number;
		if (!times->job_selected || numbered[first].number > times->job_last)
			times->job_last = numbered[first].number;
		times->job_selected++;
		times->job_detailed += has_detail;
		times->job_incomplete += is_open;
		times->job_count += job->processes > 0;
		if (job->processes)
			job_step_divide(job);
	}
	storage_release(model->storage, numbered);
}

/* ---- public ---- */

const struct model_step *step_times_step_before(const struct model *model, uint32_t process, int64_t time_ns)
{
	uint32_t low = LOWER_BOUND(model->steps, model->steps_count, step,
	                           step->process < process || (step->process == process && step->start_ns <= time_ns));

	return low && model->steps[low - 1].process == process ? &model->steps[low - 1] : NULL;
}

const struct model_step *step_times_step_at(const struct model *model, uint32_t process, int64_t time_ns)
{
	const struct model_step *step = step_times_step_before(model, process, time_ns);

	return step && step->end_ns >= time_ns ? step : NULL;
}

bool *step_times_tracks(const struct model *model)
{
	bool *carries = memory_resize(NULL, (size_t)model->tracks_count + 1, sizeof(*carries));
	uint32_t last = MODEL_NONE;

	memset(carries, 0, ((size_t)model->tracks_count + 1) * sizeof(*carries));
	for (uint32_t i = 0; i < model->steps_count; i++) {
		if (model->steps[i].track == last || model->steps[i].track >= model->tracks_count)
			continue;
		last = model->steps[i].track;
		carries[first_lane(model, last)] = true;
	}
	return carries;
}

void step_times_init(struct step_times *times, const struct model *model, const struct analysis_options *options)
{
	struct sweep sweep = {.model = model, .times = times, .waits = &times->waits};
	struct collective_calls own_calls = {0};

	memset(times, 0, sizeof(*times));
	times->count = model->steps_count;
	times->unseen = model_meta(model, MODEL_NONE, "unseen");
	times->stepless = model_meta(model, MODEL_NONE, "torch.steps");
	times->storage = model->storage;
	times->steps = zeroed(times->storage, times->count, sizeof(*times->steps));
	times->spans = zeroed(times->storage, model->processes_count, sizeof(*times->spans));
	sweep.swept = zeroed(times->storage, model->tracks_count, sizeof(*sweep.swept));
	if (times->count)
		communication_waits_find(&times->waits, model, collective_calls_get(&own_calls, model, options));
	for (uint32_t i = 0; i < times->count; i++)
		add_step(times, model, i, options);
	for (uint32_t first = 0, end; first < times->count; first = end) {
		for (end = first; end < times->count && model->steps[end].process == model->steps[first].process;)
			end++;
		sweep_process(&sweep, first, end);
	}
	free(sweep.stack);
	storage_release(times->storage, sweep.swept);
	fill_others(times);
	find_measured(times, model);
	find_rare(times, model);
	step_kinds_drop_phases(times, model);
	find_unknown_waits(times, model);
	collective_calls_release(&own_calls);
	find_ranks(times, model);
	fill_job(times, model);
	step_kinds_find(times, model);
	times->is_scaled = times->by_budget && !options->keeps_recorded;
	step_kinds_weigh(times, model);
}

void step_times_release(struct step_times *times)
{
	storage_release(times->storage, times->steps);
	storage_release(times->storage, times->job);
	storage_release(times->storage, times->spans);
	communication_waits_release(&times->waits);
	memset(times, 0, sizeof(*times));
}

const struct step_times *step_times_get(struct step_times *own, const struct model *model,
                                        const struct analysis_options *options)
{
	if (options->step_times)
		return options->step_times;
	step_times_init(own, model, options);
	return own;
}

static bool is_coarse(uint8_t kind)
{
	return kind == SPAN_PHASE || kind == SPAN_MICRO_BATCH || kind == SPAN_STEP;
}

static bool has_detail_on(const struct track *track)
{
	for (uint32_t i = 0; i < track->chunk_count; i++) {
		const struct span_chunk *chunk = track->chunks[i];

		for (uint32_t row = 0; row < chunk->count; row++) {
			if (!is_coarse(chunk->kind[row]))
				return true;
		}
	}
	return false;
}

/* Of one process, or, MODEL_NONE, of any. */
static bool has_detail(const struct model *model, uint32_t process)
{
	for (uint32_t i = 0; i < model->tracks_count; i++) {
		if ((process == MODEL_NONE || model->tracks[i]->process == process) && has_detail_on(model->tracks[i]))
			return true;
	}
	return false;
}

const char *step_times_capture(const struct model *model)
{
	const char *best = NULL;
	bool is_best_detailed = false;

	for (uint32_t i = 0; i < model->steps_count && !best; i++) {
		if (!i || model->steps[i].process != model->steps[i - 1].process)
			best = model_meta(model, model->steps[i].process, "capture");
	}
	for (uint32_t i = 0; i < model->processes_count && !model->steps_count && !is_best_detailed; i++) {
		const char *sentence = model_meta(model, i, "capture");

		is_best_detailed = sentence && has_detail(model, i);
		if (sentence && (!best || is_best_detailed))
			best = sentence;
	}
	return best;
}

/* What is no recording says nothing of what it captured, and has all that it has. */
static bool has_operations(const struct model *model, const struct step_times *times, const char *sentence)
{
	return times->count ? times->job_detailed > 0 : !sentence || has_detail(model, MODEL_NONE);
}

const char *step_times_no_operations(const struct model *model, const struct analysis_options *options,
                                     struct arena *arena, const char *otherwise)
{
	struct step_times own = {0};
	const struct step_times *times = step_times_get(&own, model, options);
	const char *sentence = step_times_capture(model), *reason = otherwise;

	if (!has_operations(model, times, sentence))
		reason = arena_printf(arena, "not measured, because operators were recorded in none of the %s%s%s",
		                      times->count ? "steps" : "time", sentence ? ": " : "", sentence ? sentence : "");
	step_times_release(&own);
	return reason;
}

bool step_times_is_told_by_calls(int phase)
{
	return phase == STEPSCOPE_PHASE_DATA || phase == STEPSCOPE_PHASE_BACKWARD ||
	       phase == STEPSCOPE_PHASE_OPTIMIZER || phase == STEPSCOPE_PHASE_CHECKPOINT;
}

/* By process: is it a rank? The caller frees it. */
static bool *find_counted(const struct step_times *times, const struct model *model)
{
	bool *is_counted = zeroed(NULL, model->processes_count, sizeof(*is_counted));

	for (uint32_t i = 0; i < times->span_count; i++)
		is_counted[times->spans[i].process] = times->spans[i].is_rank;
	return is_counted;
}

const char *step_times_ranks_apart(const struct step_times *times, const struct model *model)
{
	const char *why;

	if (step_times_trainings(times, model))
		return STEP_TIMES_NO_RANKS;
	bool *is_counted = find_counted(times, model);
	why = ranks_apart(model, is_counted);
	free(is_counted);
	return why;
}

uint32_t step_times_trainings(const struct step_times *times, const struct model *model)
{
	int64_t latest_ns = INT64_MIN, earliest_ns = INT64_MAX;
	bool *is_counted = find_counted(times, model);
	uint32_t count = 0;

	for (uint32_t first = 0, i = 0; i < times->count; first = i) { /* those of a process, by their starts */
		uint32_t process = model->steps[first].process;
		int64_t last_ns = INT64_MIN;

		for (; i < times->count && model->steps[i].process == process; i++)
			last_ns = model->steps[i].end_ns > last_ns ? model->steps[i].end_ns : last_ns;
		if (!is_counted[process] || model->processes[process].rank >= 0)
			continue;
		latest_ns = model->steps[first].start_ns > latest_ns ? model->steps[first].start_ns : latest_ns;
		earliest_ns = last_ns < earliest_ns ? last_ns : earliest_ns;
		count++;
	}
	free(is_counted);
	return latest_ns > earliest_ns ? count : 0;
}

const char *step_times_empty_reason(const struct step_times *times)
{
	if (!times->count && times->unseen)
		return times->unseen;
	if (!times->count && times->stepless)
		return times->stepless;
	if (!times->count)
		return "no steps were recorded: the program marks them with stepscope_step_begin() in C, "
		       "stepscope.step() in Python";
	if (!times->selected)
		return "none of the selected steps were recorded";
	return "no step was completed";
}
