/* SPDX-License-Identifier: Apache-2.0
 *
 * run_parts.c: see the header. For each rank, sets of instants are made from the spans of its threads. A part gets the
 * instants of its set that no part before it has.
 */
#include "analysis/step_times/run_parts.h"

#include "analysis/shared/intervals.h"
#include "analysis/step_times/step_times.h"
#include "base/memory.h"
#include "base/units.h"
#include "model/cell_words.h"
#include "model/name_classes.h"
#include "model/readings.h"
#include "pytorch/names.h"

#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

#define LEAST_GAP_NS 10000000 /* shorter stretches in which a thread does nothing are not looked at */
#define GAP_STEPS 10          /* in a step, a stretch of this number of median steps is no usual wait */
#define NEAR_PART 5           /* readings may be this part of a stretch away from its ends */
#define SMALLEST_RATIO 0.0005 /* shown as 0.1 % */

enum run_name { /* classes of names */
	NAME_OTHER,
	NAME_COMPILE,
	NAME_SAVE,
	NAME_LOADER_START,
	NAME_BATCH,
	NAME_RARE,
};

/* The sets of instants, in the order in which they take their part. */
enum run_set {
	SET_COMPILATION,
	SET_CHECKPOINTS,
	SET_EVALUATION,
	SET_FIRST,
	SET_START,
	SET_END,
	SET_STEPS,
	SET_COUNT,
};

static const enum run_part part_of_set[SET_COUNT] = {
	RUN_PART_COMPILATION, RUN_PART_CHECKPOINTS, RUN_PART_EVALUATION, RUN_PART_FIRST_BATCHES,
	RUN_PART_START,       RUN_PART_END,         RUN_PART_STEPS,
};

struct run_gap { /* a long stretch of a thread outside all telling spans */
	uint32_t track;
	int64_t start_ns, end_ns;
};

/* One rank. */
struct run_fold {
	const struct model *model;
	uint32_t process;
	struct name_classes names;
	struct intervals sets[SET_COUNT], steps;
	struct run_gap *gaps;
	uint32_t gap_count, gap_capacity;
	int64_t start_ns, end_ns;  /* of the run */
	int64_t first_ns, last_ns; /* start of the first and end of the last step */
	int64_t median_ns;
	bool has_steps, has_batches;
	/* of the track that is read */
	uint32_t track;
	bool carries_steps, expects_batch;
	int64_t cursor_ns, batch_end_ns;
	struct intervals own[SET_COUNT];
};

static uint8_t run_classify(const char *name)
{
	if (!strcmp(name, PYTORCH_COMPILE))
		return NAME_COMPILE;
	if (!strcmp(name, PYTORCH_SAVE))
		return NAME_SAVE;
	if (!strcmp(name, PYTORCH_LOADER_START) || !strcmp(name, PYTORCH_LOADER_AGAIN))
		return NAME_LOADER_START;
	if (pytorch_begins(name, PYTORCH_LOADER))
		return NAME_BATCH;
	return pytorch_is_rare(name, strlen(name)) ? NAME_RARE : NAME_OTHER;
}

/* ---- spans of a thread ---- */

static void run_fold_add_gap(struct run_fold *fold, int64_t start_ns, int64_t end_ns)
{
	if (intervals_length(start_ns, end_ns) < LEAST_GAP_NS || !fold->carries_steps)
		return;
	MEMORY_GROW(fold->gaps, fold->gap_count, fold->gap_capacity, 16);
	fold->gaps[fold->gap_count++] = (struct run_gap){fold->track, start_ns, end_ns};
}

/* Returns true if the span explains its time. The program's own ranges do not: they may be around anything. */
static bool is_telling(uint8_t kind, uint8_t name)
{
	return name != NAME_OTHER || (kind != SPAN_STEP && kind != SPAN_RANGE && kind != SPAN_ANNOTATION &&
	                              kind != SPAN_PYTHON && kind != SPAN_MODULE && kind != SPAN_MICRO_BATCH);
}

/* The first wait for a batch of the process, and of each loop with workers. */
static void run_fold_take_batch(struct run_fold *fold, uint8_t name, int64_t start_ns, int64_t end_ns)
{
	fold->has_batches = true;
	if (name == NAME_LOADER_START)
		fold->expects_batch |= start_ns >= fold->batch_end_ns;
	else if (!fold->expects_batch)
		return;
	else
		fold->expects_batch = false;
	intervals_add(&fold->own[SET_FIRST], start_ns, end_ns);
	fold->batch_end_ns = end_ns;
}

static void run_fold_take_phase(struct run_fold *fold, int phase, int64_t start_ns, int64_t end_ns)
{
	if (phase == STEPSCOPE_PHASE_CHECKPOINT)
		intervals_add(&fold->own[SET_CHECKPOINTS], start_ns, end_ns);
	else if (phase == STEPSCOPE_PHASE_EVALUATION)
		intervals_add(&fold->own[SET_EVALUATION], start_ns, end_ns);
	else
		intervals_add(&fold->own[SET_STEPS], start_ns, end_ns);
	if (phase == STEPSCOPE_PHASE_DATA)
		run_fold_take_batch(fold, NAME_BATCH, start_ns, end_ns);
}

static void run_fold_take_span(struct run_fold *fold, const struct span_chunk *chunk, uint32_t i)
{
	int64_t start_ns = chunk->start_ns[i], end_ns = start_ns + chunk->dur_ns[i];
	uint8_t name = name_class(&fold->names, fold->model, chunk->name[i]), kind = chunk->kind[i];

	if (name == NAME_COMPILE)
		intervals_add(&fold->own[SET_COMPILATION], start_ns, end_ns);
	if (!fold->carries_steps || !is_telling(kind, name))
		return;
	if (start_ns > fold->cursor_ns)
		run_fold_add_gap(fold, fold->cursor_ns, start_ns);
	fold->cursor_ns = end_ns > fold->cursor_ns ? end_ns : fold->cursor_ns;
	if (kind == SPAN_PHASE)
		run_fold_take_phase(fold, chunk->phase[i], start_ns, end_ns);
	else if (name == NAME_SAVE)
		intervals_add(&fold->own[SET_CHECKPOINTS], start_ns, end_ns);
	else if (name == NAME_LOADER_START || name == NAME_BATCH)
		run_fold_take_batch(fold, name, start_ns, end_ns);
}

static void run_fold_join(struct run_fold *fold, enum run_set set)
{
	struct intervals both = {0};

	if (fold->own[set].count) {
		intervals_live_in(&both, fold->model->storage);
		intervals_join(&both, &fold->sets[set], &fold->own[set]);
		intervals_swap(&both, &fold->sets[set]);
		intervals_release(&both);
	}
	intervals_release(&fold->own[set]);
}

static void run_fold_take_track(struct run_fold *fold, uint32_t number)
{
	const struct track *track = fold->model->tracks[number];

	fold->track = number;
	fold->cursor_ns = fold->first_ns;
	fold->batch_end_ns = INT64_MIN;
	fold->expects_batch = true;
	for (int set = 0; set < SET_COUNT; set++) {
		fold->own[set] = (struct intervals){0};
		intervals_live_in(&fold->own[set], fold->model->storage);
	}
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		for (uint32_t i = 0; i < track->chunks[c]->count; i++)
			run_fold_take_span(fold, track->chunks[c], i);
		model_chunk_done(fold->model, track->chunks[c]);
	}
	if (fold->last_ns > fold->cursor_ns)
		run_fold_add_gap(fold, fold->cursor_ns, fold->last_ns);
	for (int set = 0; set < SET_COUNT; set++)
		run_fold_join(fold, (enum run_set)set);
}

/* ---- steps ---- */

static int run_compare_times(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return (a > b) - (a < b);
}

static void run_fold_take_steps(struct run_fold *fold)
{
	const struct model *model = fold->model;
	int64_t *times = memory_resize(NULL, (size_t)model->steps_count + 1, sizeof(*times));
	uint32_t count = 0;

	intervals_live_in(&fold->steps, model->storage);
	for (uint32_t i = 0; i < model->steps_count; i++) {
		const struct model_step *step = &model->steps[i];

		if (step->process != fold->process)
			continue;
		fold->first_ns = fold->has_steps ? fold->first_ns : step->start_ns;
		fold->last_ns = fold->has_steps && fold->last_ns > step->end_ns ? fold->last_ns : step->end_ns;
		fold->has_steps = true;
		intervals_add(&fold->steps, step->start_ns, step->end_ns);
		times[count++] = intervals_length(step->start_ns, step->end_ns);
	}
	qsort(times, count, sizeof(*times), run_compare_times);
	fold->median_ns = count ? times[count / 2] : 0;
	free(times);
}

/* Phases of the training count as steps between the first and the last one. */
static void run_fold_set_steps(struct run_fold *fold)
{
	struct intervals within = {0}, inner = {0};

	if (!fold->has_steps) {
		intervals_release(&fold->sets[SET_STEPS]);
		return;
	}
	intervals_add(&within, fold->first_ns, fold->last_ns);
	intervals_intersect(&inner, &fold->sets[SET_STEPS], &within);
	intervals_join(&fold->sets[SET_STEPS], &inner, &fold->steps);
	intervals_add(&fold->sets[SET_START], fold->start_ns, fold->first_ns);
	intervals_add(&fold->sets[SET_END], fold->last_ns, fold->end_ns);
	intervals_release(&within);
	intervals_release(&inner);
}

/* ---- parts ---- */

/* Moves idle time from steps, and from the time between them, which `taken` has not. */
static void run_fold_set_idle(const struct run_fold *fold, const struct intervals *taken, double *ns)
{
	for (uint32_t i = 0; i < fold->gap_count; i++) {
		const struct run_gap *gap = &fold->gaps[i];
		int64_t near_ns = (int64_t)intervals_length(gap->start_ns, gap->end_ns) / NEAR_PART;
		double length_ns = (double)intervals_length(gap->start_ns, gap->end_ns);
		double in_steps_ns = (double)intervals_within(&fold->steps, gap->start_ns, gap->end_ns);
		/* 0 if it is not known */
		double slept_ns = (double)readings_between(fold->model, gap->track, gap->start_ns, gap->end_ns, near_ns)
		                          .sleep_ns;
		double steps_ns;

		if (intervals_within(taken, gap->start_ns, gap->end_ns) ||
		    (in_steps_ns > 0 && length_ns < (double)GAP_STEPS * (double)fold->median_ns))
			continue;
		steps_ns = slept_ns * in_steps_ns / length_ns;
		steps_ns = steps_ns < ns[RUN_PART_STEPS] ? steps_ns : ns[RUN_PART_STEPS];
		slept_ns -= steps_ns;
		slept_ns = slept_ns < ns[RUN_PART_UNKNOWN] ? slept_ns : ns[RUN_PART_UNKNOWN];
		ns[RUN_PART_STEPS] -= steps_ns;
		ns[RUN_PART_UNKNOWN] -= slept_ns;
		ns[RUN_PART_IDLE] += steps_ns + slept_ns;
	}
}

static void run_fold_divide(struct run_fold *fold, struct run_parts *parts)
{
	double ns[RUN_PART_COUNT] = {0}, wall_ns = (double)intervals_length(fold->start_ns, fold->end_ns);
	struct intervals taken = {0}, both = {0}, special = {0};
	int64_t before_ns = 0;

	for (int set = 0; set < SET_COUNT; set++) {
		int64_t now_ns;

		intervals_live_in(&both, fold->model->storage);
		intervals_join(&both, &taken, &fold->sets[set]);
		intervals_swap(&both, &taken);
		now_ns = intervals_within(&taken, fold->start_ns, fold->end_ns);
		ns[part_of_set[set]] += (double)(now_ns - before_ns);
		before_ns = now_ns;
		if (set == SET_END)
			intervals_join(&special, &taken, &(struct intervals){0});
	}
	ns[RUN_PART_UNKNOWN] = wall_ns - (double)before_ns;
	run_fold_set_idle(fold, &special, ns);
	for (int part = 0; part < RUN_PART_COUNT; part++)
		parts->ns[part] += ns[part];
	parts->wall_ns += wall_ns;
	intervals_release(&taken);
	intervals_release(&both);
	intervals_release(&special);
}

static void run_fold_release(struct run_fold *fold)
{
	for (int set = 0; set < SET_COUNT; set++)
		intervals_release(&fold->sets[set]);
	intervals_release(&fold->steps);
	name_classes_release(&fold->names);
	free(fold->gaps);
}

/* ---- ranks ---- */

struct run_ranks {
	uint32_t *processes, count;
};

/* Without steps: all trainers. */
static void run_ranks_find(struct run_ranks *ranks, const struct model *model, const struct step_times *times)
{
	ranks->processes = memory_resize(NULL, (size_t)model->processes_count + 1, sizeof(*ranks->processes));
	ranks->count = 0;
	for (uint32_t i = 0; i < times->span_count; i++)
		if (times->spans[i].is_rank && model->processes[times->spans[i].process].role == STEPSCOPE_ROLE_TRAINER)
			ranks->processes[ranks->count++] = times->spans[i].process;
	for (uint32_t i = 0; i < model->processes_count && !times->span_count; i++)
		if (model->processes[i].role == STEPSCOPE_ROLE_TRAINER && model->processes[i].has_times)
			ranks->processes[ranks->count++] = i;
}

/* Returns the recording of the `stepscope run` that started the process; NULL: there is none. */
static const struct process *run_host_of(const struct model *model, const struct process *process)
{
	const struct process *found = NULL;

	for (uint32_t i = 0; i < model->processes_count; i++) {
		const struct process *host = &model->processes[i];

		if (host->role == STEPSCOPE_ROLE_HOST && host->has_times && host->first_ns <= process->first_ns &&
		    process_clock(host) == process_clock(process) && (!found || host->first_ns > found->first_ns))
			found = host;
	}
	return found;
}

/* Sets the time of the run that the rank stands for. Trainings that run one after another divide it. */
static void run_fold_set_wall(struct run_fold *fold, const struct run_ranks *ranks, bool *has_launch)
{
	const struct process *own = &fold->model->processes[fold->process];
	const struct process *host = run_host_of(fold->model, own);
	bool is_followed = false;

	fold->start_ns = host ? host->first_ns : own->first_ns;
	for (uint32_t i = 0; i < ranks->count; i++) {
		const struct process *other = &fold->model->processes[ranks->processes[i]];

		if (other->last_ns <= own->first_ns && other->last_ns > fold->start_ns)
			fold->start_ns = other->last_ns;
		is_followed |= other->first_ns >= own->last_ns && other != own;
	}
	fold->end_ns = host && host->last_ns > own->last_ns && !is_followed ? host->last_ns : own->last_ns;
	*has_launch &= host != NULL;
}

/* Returns the number of ranks that ran at the same time, at most. */
static uint32_t run_lanes(const struct model *model, const struct run_ranks *ranks)
{
	uint32_t most = 1;

	for (uint32_t i = 0; i < ranks->count; i++) {
		int64_t time_ns = model->processes[ranks->processes[i]].first_ns;
		uint32_t count = 0;

		for (uint32_t j = 0; j < ranks->count; j++) {
			const struct process *other = &model->processes[ranks->processes[j]];

			count += other->first_ns <= time_ns && time_ns < other->last_ns;
		}
		most = count > most ? count : most;
	}
	return most;
}

/* ---- missing parts ---- */

static void run_set_missing(struct run_parts *parts, const struct model *model, const struct run_ranks *ranks,
                            bool has_steps, bool has_batches)
{
	bool has_torch = true, has_readings = model->readings_count > 0, has_removed = false;

	for (uint32_t i = 0; i < ranks->count; i++) {
		has_torch &= model_meta(model, ranks->processes[i], "torch.version") != NULL;
		has_removed |= model->processes[ranks->processes[i]].has_removed;
	}
	const char *unseen = !has_torch    ? "PyTorch was not recorded, and the program marks no such phase"
	                     : has_removed ? "older operators were removed again (keep_size, keep_time)"
	                                   : NULL;
	const char *stepless = has_steps ? NULL : "no steps were recorded";
	const char *const missing[RUN_PART_COUNT] = {
		[RUN_PART_START] = stepless,
		[RUN_PART_COMPILATION] = has_torch || !unseen ? unseen : "PyTorch was not recorded",
		[RUN_PART_FIRST_BATCHES] = has_batches ? NULL : "no waits for data were recorded",
		[RUN_PART_STEPS] = stepless,
		[RUN_PART_EVALUATION] = unseen,
		[RUN_PART_CHECKPOINTS] = unseen,
		[RUN_PART_IDLE] = !has_steps      ? stepless
	                          : !has_readings ? "the CPU time of the loop's thread was not recorded"
	                                          : NULL,
		[RUN_PART_END] = stepless,
	};

	for (int part = 0; part < RUN_PART_COUNT; part++)
		parts->missing[part] = parts->ns[part] > 0 ? NULL : missing[part];
}

static void run_parts_fill(struct run_parts *parts, const struct model *model, const struct run_ranks *ranks)
{
	bool *carries = step_times_tracks(model), has_steps = false, has_batches = false;
	double lanes = run_lanes(model, ranks);

	parts->has_launch = true;
	for (uint32_t i = 0; i < ranks->count; i++) {
		struct run_fold fold = {
			.model = model, .process = ranks->processes[i], .names = {.classify = run_classify}};

		run_fold_take_steps(&fold);
		run_fold_set_wall(&fold, ranks, &parts->has_launch);
		for (uint32_t track = 0; track < model->tracks_count; track++) {
			const struct track *its = model->tracks[track];

			fold.carries_steps = fold.has_steps ? carries[track] : its->is_main;
			if (its->process == fold.process && its->kind == TRACK_THREAD)
				run_fold_take_track(&fold, track);
		}
		run_fold_set_steps(&fold);
		run_fold_divide(&fold, parts);
		has_steps |= fold.has_steps;
		has_batches |= fold.has_batches;
		run_fold_release(&fold);
	}
	for (int part = 0; part < RUN_PART_COUNT; part++)
		parts->ns[part] /= lanes;
	parts->wall_ns /= lanes;
	run_set_missing(parts, model, ranks, has_steps, has_batches);
	free(carries);
}

static void run_parts_init(void *fold, struct analysis_context *context)
{
	struct run_parts *parts = fold;
	struct run_ranks ranks;

	run_ranks_find(&ranks, context->model, analysis_context_step_times(context));
	if (is_part_of_run(&context->options) || context->options.filter.window)
		parts->unknown = "only a part of the run was read (--steps, --window)";
	else if (model_meta(context->model, MODEL_NONE, "trace.format"))
		parts->unknown = "another tool recorded this, and not from the start of the run to its end";
	else if (!ranks.count)
		parts->unknown = "no training process was recorded";
	else
		run_parts_fill(parts, context->model, &ranks);
	free(ranks.processes);
}

static void run_parts_release(void *fold) {}

const struct run_parts *run_parts_get(struct analysis_context *context)
{
	static const struct analysis_fold kind = {sizeof(struct run_parts), run_parts_init, run_parts_release};

	return analysis_context_fold(context, &kind);
}

const char *run_part_name(enum run_part part)
{
	static const char *const names[RUN_PART_COUNT] = {
		CELL_RUN_START,       CELL_RUN_COMPILATION, CELL_RUN_FIRST_BATCHES, CELL_RUN_STEPS, CELL_RUN_EVALUATION,
		CELL_RUN_CHECKPOINTS, CELL_RUN_IDLE,        CELL_RUN_UNKNOWN,       CELL_RUN_END,
	};

	return names[part];
}

const char *run_part_key(enum run_part part)
{
	return part == RUN_PART_FIRST_BATCHES ? "first_batches" : run_part_name(part);
}

enum run_part run_parts_largest(const struct run_parts *parts)
{
	enum run_part largest = RUN_PART_START;

	for (enum run_part part = 0; part < RUN_PART_COUNT; part++)
		if (part != RUN_PART_STEPS && parts->ns[part] > parts->ns[largest])
			largest = part;
	return largest;
}

static const char *run_parts_text(const struct run_parts *parts, struct arena *arena)
{
	bool is_told[RUN_PART_COUNT] = {false};
	char number[UNITS_BYTES];
	const char *text = "";

	for (int i = 0; i < RUN_PART_COUNT; i++) {
		int best = -1;

		for (int part = 0; part < RUN_PART_COUNT; part++)
			if (!is_told[part] && parts->ns[part] >= SMALLEST_RATIO * parts->wall_ns &&
			    (best < 0 || parts->ns[part] > parts->ns[best]))
				best = part;
		if (best < 0)
			break;
		is_told[best] = true;
		text = arena_printf(arena, "%s%s%s %s", text, text[0] ? ", " : "", run_part_name(best),
		                    units_ratio(number, parts->ns[best] / parts->wall_ns));
	}
	return arena_printf(arena, "%s of %s", text, units_time(number, parts->wall_ns));
}

void run_parts_set_text(const struct run_parts *parts, struct table *table, int column)
{
	if (parts->unknown || !(parts->wall_ns > 0))
		table_set_missing(table, 0, column, parts->unknown ? parts->unknown : RUN_PARTS_NO_TIME);
	else
		table_set_text(table, 0, column, run_parts_text(parts, &table->arena));
}
