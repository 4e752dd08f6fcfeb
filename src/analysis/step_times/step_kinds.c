/* SPDX-License-Identifier: Apache-2.0
 *
 * step_kinds.c: see the header.
 */
#include "analysis/step_times/step_kinds.h"

#include "base/clamped.h"
#include "base/storage.h"
#include "base/units.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- phases ---- */

static bool has_measured(const struct step_times *times, const struct model *model, uint32_t process)
{
	for (uint32_t i = 0; i < times->count; i++)
		if (model->steps[i].process == process && times->steps[i].is_measured)
			return true;
	return false;
}

/* Returns true if some steps of the process recorded only calls. Then its steps without operators are known by calls
 * only, also a first one that was recorded in more detail. */
static bool has_noted_calls(const struct step_times *times, const struct model *model, uint32_t process)
{
	for (uint32_t i = 0; i < times->count; i++)
		if (model->steps[i].process == process && times->steps[i].has_calls)
			return true;
	return false;
}

void step_kinds_drop_phases(struct step_times *times, const struct model *model)
{
	for (uint32_t s = 0; s < times->span_count; s++) {
		const struct step_span *span = &times->spans[s];

		bool has_calls = span->infers_phases && has_noted_calls(times, model, span->process);

		if (!span->infers_phases || (!has_calls && !has_measured(times, model, span->process)))
			continue;
		for (uint32_t i = 0; i < times->count; i++) {
			if (model->steps[i].process != span->process || model->steps[i].has_detail)
				continue;
			times->steps[i].has_calls |= has_calls && times->steps[i].has_phases;
			times->steps[i].has_phases = false;
		}
	}
}

/* ---- the program ---- */

/* Steps of a process or of the job. */
struct kinds {
	uint32_t plain; /* steps without operators, except the first three */
	bool has_others;
};

static bool has_plain(const struct kinds *kinds)
{
	return kinds->has_others && kinds->plain >= STEP_KINDS_LEAST;
}

static void find_job(struct step_times *times)
{
	struct kinds kinds = {0};

	for (uint32_t i = 0; i < times->job_count; i++) {
		const struct job_step *job = &times->job[i];

		kinds.has_others |= job->plain < job->processes;
		kinds.plain += job->plain == job->processes && !job->early;
	}
	times->has_plain = has_plain(&kinds);
	for (uint32_t i = 0; i < times->job_count; i++) {
		struct job_step *job = &times->job[i];

		job->is_program = !times->has_plain || job->plain == job->processes;
		times->job_program += job->is_program;
		times->job_whole += job->measured == job->processes;
	}
}

static bool step_kinds_is_of(const struct step_times *times, const struct model *model, uint32_t process, uint32_t i)
{
	return model->steps[i].process == process && times->steps[i].is_selected && times->steps[i].is_complete;
}

/* Marks the program's steps in a process that is not a rank. */
static void find_in_process(struct step_times *times, const struct model *model, uint32_t process)
{
	struct kinds kinds = {0};

	for (uint32_t i = 0; i < times->count; i++) {
		if (!step_kinds_is_of(times, model, process, i))
			continue;
		kinds.has_others |= !step_is_plain(&model->steps[i]);
		kinds.plain += step_is_plain(&model->steps[i]) && !times->steps[i].is_early;
	}
	for (uint32_t i = 0; i < times->count; i++)
		if (step_kinds_is_of(times, model, process, i))
			times->steps[i].is_program = !has_plain(&kinds) || step_is_plain(&model->steps[i]);
}

/* Marked phases are taken from the program. Inferred ones are taken from the steps that know them; if a budget chose
 * these, without the first three, which are unlike all others. */
static void choose_phases(struct step_times *times)
{
	bool has_any = false;
	uint32_t chosen = 0;

	for (uint32_t i = 0; i < times->job_count; i++) {
		has_any |= times->job[i].is_program && times->job[i].has_phases;
		chosen += times->job[i].has_phases && !times->job[i].early;
	}
	bool is_sample = times->has_plain && times->by_budget && chosen >= STEP_KINDS_LEAST;
	for (uint32_t i = 0; i < times->job_count; i++) {
		struct job_step *job = &times->job[i];

		job->has_phases &= has_any ? job->is_program : !is_sample || !job->early;
		times->has_job_phases |= job->has_phases;
	}
}

void step_kinds_find(struct step_times *times, const struct model *model)
{
	for (uint32_t s = 0; s < times->span_count; s++) {
		const char *budget = model_meta(model, times->spans[s].process, "budget");

		/* the fact is "none: --steps" if the user chose the steps */
		times->by_budget |= budget && ((*budget >= '0' && *budget <= '9') || strstr(budget, "--cost-every"));
	}
	find_job(times);
	choose_phases(times);
	for (uint32_t s = 0; s < times->span_count; s++)
		if (!times->spans[s].is_rank)
			find_in_process(times, model, times->spans[s].process);
	for (uint32_t i = 0; i < times->count; i++) {
		struct step_time *time = &times->steps[i];

		if (time->job != MODEL_NONE)
			time->is_program = times->job[time->job].is_program;
	}
}

/* ---- notes ---- */

enum mean_of {
	OF_PROGRAM,
	OF_WHOLE,  /* operators in the whole step, in all ranks; not one of the first three, which are unlike others */
	OF_OTHERS, /* not the program */
	OF_PHASES, /* phases are known */
};

static bool is_of_kind(const struct job_step *job, enum mean_of kind)
{
	switch (kind) {
	case OF_PROGRAM:
		return job->is_program;
	case OF_WHOLE:
		return !job->is_program && !job->early && job->measured == job->processes;
	case OF_OTHERS:
		return !job->is_program;
	case OF_PHASES:
		return job->has_phases;
	}
	assert(!"a kind of steps");
	return false;
}

/* Returns 0 if there is no such step. */
static double mean_ns(const struct step_times *times, enum mean_of kind)
{
	double sum = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < times->job_count; i++) {
		if (!is_of_kind(&times->job[i], kind))
			continue;
		sum += times->job[i].length_ns;
		count++;
	}
	return count ? sum / count : 0;
}

static double mean_of_others(const struct step_times *times)
{
	double mean = mean_ns(times, OF_WHOLE);

	return mean > 0 ? mean : mean_ns(times, OF_OTHERS);
}

const char *step_kinds_note(const struct step_times *times, struct arena *arena)
{
	char text[UNITS_BYTES];

	if (!times->has_plain)
		return NULL;
	return arena_printf(arena, "from %u of %u steps (those without operators); the others take %s on average",
	                    times->job_program, times->job_count, units_time(text, mean_of_others(times)));
}

/* Returns the note for phases that the steps with operators tell. */
static const char *note_of_inferred(const struct step_times *times, uint32_t known, struct arena *arena)
{
	char with[UNITS_BYTES], without[UNITS_BYTES];
	const char *part = arena_printf(arena,
	                                "from %u of %u steps (those with operators, from which phases are inferred)",
	                                known, times->job_count);

	if (!times->has_plain)
		return part;
	return arena_printf(arena, "%s; these take %s on average, the others %s", part,
	                    units_time(with, mean_ns(times, OF_PHASES)),
	                    units_time(without, mean_ns(times, OF_PROGRAM)));
}

const char *step_kinds_phases_note(const struct step_times *times, struct arena *arena)
{
	uint32_t known = 0, lost = 0;
	bool is_of_program = false;

	for (uint32_t i = 0; i < times->job_count; i++) {
		known += times->job[i].has_phases;
		lost += times->job[i].lost > 0;
		is_of_program |= times->job[i].is_program && times->job[i].has_phases;
	}
	if (known == times->job_count)
		return NULL;
	if (lost)
		return arena_printf(arena, "phases are known in %u of %u steps: " STEP_TIMES_LOST_PHASES, known,
		                    times->job_count);
	return times->has_plain && is_of_program ? step_kinds_note(times, arena)
	                                         : note_of_inferred(times, known, arena);
}

/* ---- tables of operators ---- */

uint32_t step_kinds_measured(const struct step_times *times)
{
	uint32_t measured = 0;

	for (uint32_t i = 0; i < times->count; i++)
		measured += times->steps[i].is_measured;
	return measured;
}

/* ---- weights of steps ---- */

#define STRETCH 16  /* steps of a stretch that is represented by its own chosen steps */
#define ASKED_FOR 3 /* a budget chooses N steps in a row only if it chooses nearly all */
#define NEARLY_ALL 0.75

struct weighed { /* a complete step of a process or of the job, in order */
	int64_t number;
	bool is_measured, is_certain; /* is_certain: it stands only for itself, measured or not */
	double weight;
};

/* Marks steps in a row as asked for by the user, if few steps of the stretch were chosen. */
static void find_asked_for(struct weighed *steps, uint32_t count, uint32_t measured)
{
	uint32_t run = 0;

	assert(measured <= count);

	if (measured >= NEARLY_ALL * count)
		return;
	for (uint32_t i = 0; i <= count; i++) {
		if (i < count && steps[i].is_measured && !steps[i].is_certain) {
			run++;
			continue;
		}
		for (uint32_t j = i - run; run >= ASKED_FOR && j < i; j++)
			steps[j].is_certain = true;
		run = 0;
	}
}

/* Returns how many of the steps were chosen, and sets how many steps these stand for. */
static uint32_t count_chosen(const struct weighed *steps, uint32_t count, uint32_t *represented)
{
	uint32_t chosen = 0;

	*represented = 0;
	for (uint32_t i = 0; i < count; i++) {
		bool is_itself = steps[i].is_certain && steps[i].is_measured;

		chosen += steps[i].is_measured && !steps[i].is_certain;
		*represented += !is_itself;
	}
	return chosen;
}

static void set_weights(struct weighed *steps, uint32_t count)
{
	uint32_t represented, chosen = count_chosen(steps, count, &represented);

	assert(chosen <= represented && represented <= count);

	for (uint32_t i = 0; i < count; i++)
		steps[i].weight = steps[i].is_measured && !steps[i].is_certain ? (double)represented / chosen : 1;
}

static uint32_t end_of_stretch(const struct weighed *steps, uint32_t begin, uint32_t count)
{
	uint32_t end = begin + 1;

	assert(begin < count);
	while (end < count && steps[end].number / STRETCH == steps[begin].number / STRETCH)
		end++;
	return end;
}

/* The last stretch includes all steps after the last chosen one. */
static void weigh_steps(struct weighed *steps, uint32_t count)
{
	uint32_t begin = 0, last = 0, unused;

	for (uint32_t at = 0, end; at < count; at = end) {
		end = end_of_stretch(steps, at, count);
		find_asked_for(steps + at, end - at, count_chosen(steps + at, end - at, &unused));
	}
	for (uint32_t i = 0; i < count; i++)
		last = steps[i].is_measured && !steps[i].is_certain ? i : last;
	for (uint32_t at = 0; at < count && at <= last;) {
		at = end_of_stretch(steps, at, count);
		if (at > last || !count_chosen(steps + begin, at - begin, &unused))
			continue;
		set_weights(steps + begin, at - begin);
		begin = at;
	}
	set_weights(steps + begin, count - begin);
}

static bool is_weighed(const struct step_times *times, uint32_t i)
{
	return times->steps[i].is_selected && times->steps[i].is_complete;
}

static void weigh_process(struct step_times *times, const struct model *model, uint32_t process, struct weighed *steps)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < times->count; i++) {
		if (!is_weighed(times, i) || model->steps[i].process != process)
			continue;
		steps[count++] = (struct weighed){.number = model->steps[i].number,
		                                  .is_measured = times->steps[i].is_measured,
		                                  .is_certain = times->steps[i].is_early && times->steps[i].is_measured,
		                                  .weight = 1};
	}
	weigh_steps(steps, count);
	count = 0;
	for (uint32_t i = 0; i < times->count; i++) {
		if (!is_weighed(times, i) || model->steps[i].process != process)
			continue;
		const struct weighed *own = &steps[count++];

		times->steps[i].weight = own->weight;
		times->steps[i].is_sampled = own->is_measured && !own->is_certain;
	}
}

static void weigh_job(struct step_times *times, struct weighed *steps)
{
	for (uint32_t i = 0; i < times->job_count; i++) {
		const struct job_step *job = &times->job[i];
		bool is_measured = job->measured == job->processes;

		steps[i] = (struct weighed){.number = job->number,
		                            .is_measured = is_measured,
		                            .is_certain = job->early && is_measured,
		                            .weight = 1};
	}
	weigh_steps(steps, times->job_count);
	for (uint32_t i = 0; i < times->job_count; i++)
		times->job[i].weight = steps[i].weight;
}

static void weigh_nothing(struct step_times *times)
{
	times->scale.factor = 1;
	for (uint32_t i = 0; i < times->count; i++) {
		times->steps[i].weight = 1;
		times->steps[i].is_sampled = false;
	}
	for (uint32_t i = 0; i < times->job_count; i++)
		times->job[i].weight = 1;
}

void step_kinds_weigh(struct step_times *times, const struct model *model)
{
	uint32_t sampled = 0;
	double weight = 0;

	weigh_nothing(times);
	if (!times->scale.is_wanted || step_kinds_measured(times) >= times->complete)
		return;
	struct weighed *steps = storage_resize(times->storage, NULL, (size_t)times->count + 1, sizeof(*steps));
	for (uint32_t s = 0; s < times->span_count; s++)
		weigh_process(times, model, times->spans[s].process, steps);
	weigh_job(times, steps);
	storage_release(times->storage, steps);
	for (uint32_t i = 0; i < times->count; i++) {
		sampled += times->steps[i].is_sampled;
		weight += times->steps[i].is_sampled ? times->steps[i].weight : 0;
	}
	if (sampled < STEP_KINDS_LEAST)
		weigh_nothing(times);
	else
		times->scale.factor = weight / sampled;
}

void step_sightings_add(struct step_sightings *seen, uint32_t number, double amount, double weight)
{
	seen->amount += amount;
	seen->weighted += amount * weight;
	for (int i = 0; i < STEP_KINDS_LEAST && seen->steps[i] != number; i++) {
		if (seen->steps[i])
			continue;
		seen->steps[i] = number;
		return;
	}
}

void step_sightings_add_all(struct step_sightings *seen, const struct step_sightings *more)
{
	for (int i = 0; i < STEP_KINDS_LEAST && more->steps[i]; i++)
		step_sightings_add(seen, more->steps[i], 0, 0);
	seen->amount += more->amount;
	seen->weighted += more->weighted;
}

static bool is_enough(const struct step_sightings *seen)
{
	return seen->steps[STEP_KINDS_LEAST - 1];
}

double step_sightings_factor(const struct step_sightings *seen)
{
	return is_enough(seen) && seen->amount > 0 ? seen->weighted / seen->amount : 1;
}

void step_sightings_set_least(struct table *table, int row, int column, const struct step_sightings *seen,
                              double factor)
{
	bool is_least = factor != 1 && seen->steps[0] && !is_enough(seen);

	table_set_bool(table, row, column, is_least);
	if (is_least)
		table->columns[column].is_hidden = false;
}

const char *step_sightings_note(const struct table *table, int column, struct arena *arena)
{
	int least = 0;

	for (int row = 0; row < table->row_count; row++)
		least += table_get(table, row, column)->has_value && table_get(table, row, column)->b;
	if (!least)
		return "";
	return arena_printf(arena, "; %d row%s seen in fewer than %d of these steps %s (not multiplied)", least,
	                    least == 1 ? "" : "s", STEP_KINDS_LEAST,
	                    least == 1 ? "is a lower bound" : "are lower bounds");
}

void step_kinds_sight(struct step_sightings *seen, const struct step_times *times, int32_t step, double amount)
{
	const struct step_time *time = step_kinds_is_sampled(times, step) ? &times->steps[step] : NULL;

	if (time)
		step_sightings_add(seen, 1 + (time->job == MODEL_NONE ? (uint32_t)step : time->job), amount,
		                   time->weight);
}

double step_kinds_factor(const struct step_times *times, const struct step_sightings *seen)
{
	return times->scale.factor == 1 ? 1 : step_sightings_factor(seen);
}

void step_kinds_join(int64_t *certain, int64_t sampled, double factor)
{
	clamped_add(certain, factor == 1 ? sampled : clamped_int(round((double)sampled * factor)));
}

double step_kinds_dur_ns(const struct step_times *times, uint32_t step)
{
	const struct step_time *time = &times->steps[step];

	return (double)time->dur_ns * time->weight;
}

double step_kinds_sum_steps(const struct step_times *times)
{
	return times->scale.factor != 1 ? times->complete : step_kinds_measured(times);
}

void step_kinds_set_least(struct table *table, int row, int column, const struct step_times *times,
                          const struct step_sightings *seen)
{
	step_sightings_set_least(table, row, column, seen, times->scale.factor);
}

const char *step_kinds_operators_note(const struct step_times *times, struct arena *arena)
{
	const char *what = times->is_of_inputs ? "inputs" : "operators";

	if (times->job_detailed >= times->job_selected)
		return NULL;
	if (times->job_detailed < STEP_KINDS_LEAST)
		return arena_printf(arena, "%s were recorded in %u of %u steps%s", what, times->job_detailed,
		                    times->job_selected, times->by_budget ? "; --budget none records all" : "");
	return arena_printf(arena, "from %u of %u steps (those with %s)", times->job_detailed, times->job_selected,
	                    what);
}

/* Returns true if sampled steps stand for different numbers of steps. */
static bool is_uneven(const struct step_times *times)
{
	for (uint32_t i = 0; i < times->count; i++)
		if (times->steps[i].is_sampled &&
		    fabs(times->steps[i].weight - times->scale.factor) > 0.1 * times->scale.factor)
			return true;
	return false;
}

void step_kinds_note_sums(struct table *table, const struct step_times *times, int least_column)
{
	table->note = step_kinds_operators_note(times, &table->arena);
	if (times->scale.factor == 1 || !table->note)
		return;
	table->note = arena_printf(&table->arena, "%s; sums are multiplied by %.3g%s%s", table->note,
	                           times->scale.factor, is_uneven(times) ? " on average" : "",
	                           step_sightings_note(table, least_column, &table->arena));
}

/* ---- ranks ---- */

bool step_kinds_tells_ranks(const struct step_times *times, uint32_t step)
{
	const struct step_time *time = &times->steps[step];

	return time->is_selected && time->is_complete &&
	       (!times->has_job_phases || time->job == MODEL_NONE || times->job[time->job].has_phases);
}

bool step_kinds_is_whole(const struct step_times *times, int32_t step)
{
	uint32_t job = step < 0 ? MODEL_NONE : times->steps[step].job;

	return job != MODEL_NONE && times->job[job].measured == times->job[job].processes;
}

bool step_kinds_is_sampled_job(const struct step_times *times, int32_t step)
{
	return step_kinds_is_whole(times, step) && !times->job[times->steps[step].job].early;
}

double step_kinds_job_factor(const struct step_times *times)
{
	double sampled = 0, weight = 0;

	for (uint32_t i = 0; i < times->job_count; i++) {
		if (times->job[i].measured != times->job[i].processes || times->job[i].early)
			continue;
		sampled++;
		weight += times->job[i].weight;
	}
	return sampled < STEP_KINDS_LEAST ? 1 : weight / sampled;
}

void step_kinds_sight_job(struct step_sightings *seen, const struct step_times *times, int32_t step)
{
	uint32_t job = times->steps[step].job;

	step_sightings_add(seen, 1 + job, 1, times->job[job].weight);
}

const char *step_kinds_whole_note(const struct step_times *times, struct arena *arena)
{
	return times->job_whole < times->job_count
	               ? arena_printf(arena, "from %u of %u steps (those with %s in all ranks)", times->job_whole,
	                              times->job_count, times->is_of_inputs ? "inputs" : "operators")
	               : NULL;
}
