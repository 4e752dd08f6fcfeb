/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts_recorded.c: cuts of our own recordings of programs on processors, whose operators are no items. See cuts.h.
 */
#include "replay/cuts_recorded.h"

#include "base/memory.h"
#include "base/statistics.h"
#include "pytorch/names.h"
#include "replay/cuts.h"
#include "replay/host_stretches.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

/* What is left of a fused optimizer, measured with Adam and AdamW on processors (bench/fused). */
#define TENSOR_NS 4000.0
#define BYTE_NS 0.2 /* per byte of parameters */

/* Slow steps at one distance: all that are slow, or most of many. */
#define FEW_SLOW 3u
#define MANY_SLOW 5u
#define LEAST_HITS 0.8
#define SLOW_RATIO 1.2 /* of the median */
#define MOST_PERIOD 1000u
#define TRIED_STEPS 8u

#define FREED_RATIO 0.2 /* of host time: what is removed takes caches, allocations and freed objects along */

#define PARTS 8u            /* of the steps, whose medians show whether steps grow */
#define LEAST_GROWTH 1.1    /* of the line, from the first step to the last */
#define LEAST_DISTANCES 3.0 /* so much more than the median distance of a step from the line */
#define LEAST_FIT 0.8       /* of the medians' variance that the line explains */
#define LEAST_GROWING_STEPS 16u

/* ---- host time ---- */

static double length_of(const struct host_stretches *stretches, bool is_between)
{
	double sum_ns = 0;

	for (uint32_t i = 0; i < stretches->count; i++)
		if (stretches->list[i].is_between == is_between)
			sum_ns += stretches->list[i].end_ns - stretches->list[i].start_ns;
	return sum_ns;
}

/* Returns the lower median of the ranks: what one rank alone has makes it a slow rank, which is another cut. */
static double usual_length(const struct replay_plan *plans, uint32_t count, bool is_between)
{
	double *values = memory_resize(NULL, count, sizeof(*values)), usual_ns;

	for (uint32_t rank = 0; rank < count; rank++)
		values[rank] = length_of(host_stretches_of(plans[rank].graph), is_between);
	sort_doubles(values, count);
	usual_ns = values[(count - 1) / 2];
	free(values);
	return usual_ns;
}

/* Returns what share of the recorded steps with operators that time is. */
static double share_of(const struct replay_plan *plan, double time_ns)
{
	const struct replay_graph *graph = plan->graph;
	double sum_ns = 0;

	for (uint32_t s = 1; s < graph->step_count; s++)
		if (graph->steps[s].has_operators)
			sum_ns += graph->steps[s].end_ns - graph->steps[s - 1].end_ns;
	return sum_ns > 0 ? fmin(1, time_ns / sum_ns) : 0;
}

bool cut_recorded_host(struct replay_plan *plans, uint32_t count, bool is_between)
{
	double usual_ns = usual_length(plans, count, is_between);
	bool is_any = false;

	for (uint32_t rank = 0; rank < count; rank++) {
		const struct host_stretches *found = host_stretches_of(plans[rank].graph);
		double own_ns = length_of(found, is_between), share = own_ns > usual_ns ? usual_ns / own_ns : 1;
		struct replay_stretches stretches = {0};

		for (uint32_t i = 0; i < found->count; i++)
			if (found->list[i].is_between == is_between)
				plan_stretches_add(&stretches, &plans[rank], found->list[i].start_ns,
				                   found->list[i].start_ns +
				                           share * (found->list[i].end_ns - found->list[i].start_ns));
		is_any |= replay_plan_remove(&plans[rank], plans[rank].graph->main_thread, &stretches);
		plans[rank].more_ratio = fmax(plans[rank].more_ratio,
		                              FREED_RATIO * share_of(&plans[rank], share * own_ns));
	}
	return is_any;
}

/* ---- operators ---- */

static bool converts_or_copies(const char *name)
{
	return pytorch_converts(name) || pytorch_copies(name);
}

/* Removes the outermost operators with such names. */
static bool remove_operators(struct replay_plan *plan, bool (*is_wanted)(const char *name))
{
	const struct replay_graph *graph = plan->graph;
	const struct replay_thread *thread = &graph->threads[graph->main_thread];
	struct replay_stretches stretches = {0};

	for (uint32_t i = 0; i < thread->operator_count; i++)
		if (is_wanted(model_text(graph->model, thread->operators[i].name)))
			plan_stretches_add(&stretches, plan, thread->operators[i].start_ns,
			                   thread->operators[i].end_ns);
	return replay_plan_remove(plan, graph->main_thread, &stretches);
}

static uint8_t phase_of(const struct replay_graph *graph, const struct replay_operator *outermost)
{
	uint32_t i;
	const struct span_chunk *chunk = track_chunk(graph->model->tracks[outermost->track], outermost->row, &i);

	return chunk->phase[i];
}

static bool has_phase(const struct replay_graph *graph, enum stepscope_phase phase)
{
	const struct replay_thread *thread = &graph->threads[graph->main_thread];

	for (uint32_t i = 0; i < thread->operator_count; i++)
		if (phase_of(graph, &thread->operators[i]) == phase)
			return true;
	return false;
}

/* Where the program has a forward and a backward, an operator that is in neither may be work that no step needs. Reads of
 * values, conversions and collectives are cuts of their own. */
bool cut_recorded_no_phase(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	const struct replay_thread *thread = &graph->threads[graph->main_thread];
	struct replay_stretches stretches = {0};

	if (!graph->recording.is_of_torch || !has_phase(graph, STEPSCOPE_PHASE_FORWARD) ||
	    !has_phase(graph, STEPSCOPE_PHASE_BACKWARD))
		return false;
	for (uint32_t i = 0; i < thread->operator_count; i++) {
		const struct replay_operator *outermost = &thread->operators[i];
		const char *name = model_text(graph->model, outermost->name);

		if (!phase_of(graph, outermost) && !pytorch_reads_value(name) && !converts_or_copies(name) &&
		    !pytorch_begins(name, PYTORCH_COLLECTIVE))
			plan_stretches_add(&stretches, plan, outermost->start_ns, outermost->end_ns);
	}
	return replay_plan_remove(plan, graph->main_thread, &stretches);
}

/* Without a device a read waits for nothing, but takes its own time. */
bool cut_recorded_sync(struct replay_plan *plan)
{
	return remove_operators(plan, pytorch_reads_value);
}

bool cut_recorded_conversions(struct replay_plan *plan)
{
	return remove_operators(plan, converts_or_copies);
}

/* ---- the optimizer ---- */

static const char *optimizer_fact(const struct replay_graph *graph, uint32_t number, const char *fact)
{
	char key[64];

	snprintf(key, sizeof(key), "optimizer.%u%s%s", number, *fact ? "." : "", fact);
	return model_meta(graph->model, graph->process, key);
}

static bool can_be_fused(const struct replay_graph *graph, uint32_t number)
{
	static const char *const kinds[] = {"Adam", "AdamW", "Adagrad", "SGD"};
	const char *kind = optimizer_fact(graph, number, ""), *fused = optimizer_fact(graph, number, "fused");
	const char *devices = optimizer_fact(graph, number, "parameter_devices");

	if (!devices || strcmp(devices, "cpu") != 0 || (fused && !strcmp(fused, "true")))
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kind, kinds[i]))
			return true;
	return false;
}

/* Returns what a call of an optimizer takes if it is fused, mean of all; INFINITY: one of them cannot be, or nothing is
 * known. */
static double fused_ns(const struct replay_graph *graph)
{
	double sum_ns = 0;
	uint32_t number = 0;

	for (; optimizer_fact(graph, number, ""); number++) {
		const char *tensors = optimizer_fact(graph, number, "parameter_tensors");
		const char *bytes = optimizer_fact(graph, number, "parameter_bytes");

		if (!tensors || !bytes || !can_be_fused(graph, number))
			return INFINITY;
		sum_ns += TENSOR_NS * strtod(tensors, NULL) + BYTE_NS * strtod(bytes, NULL);
	}
	return number ? sum_ns / number : INFINITY;
}

bool cut_recorded_optimizer(struct replay_plan *plan, bool is_whole)
{
	const struct replay_graph *graph = plan->graph;
	const struct replay_stretches *calls = &graph->threads[graph->main_thread].optimizers;
	double left_ns = is_whole ? 0 : fused_ns(graph);
	struct replay_stretches stretches = {0};

	for (uint32_t i = 0; i < calls->count; i++)
		plan_stretches_add(&stretches, plan, calls->list[i].start_ns + left_ns, calls->list[i].end_ns);
	return replay_plan_remove(plan, graph->main_thread, &stretches);
}

/* ---- growth ---- */

struct line {
	double first_ns, slope_ns; /* at step 0; per step */
};

/* The line of least squares through the medians of the parts. *fit: how much of their variance it explains. */
static struct line line_through(const double *steps_ns, uint32_t count, double *fit)
{
	double sums[5] = {0};

	for (uint32_t part = 0; part < PARTS; part++) {
		uint32_t first = part * count / PARTS, end = (part + 1) * count / PARTS;
		double x = (first + end - 1) / 2.0, y = median_of_values(steps_ns + first, end - first);

		sums[0] += x;
		sums[1] += y;
		sums[2] += x * x;
		sums[3] += x * y;
		sums[4] += y * y;
	}
	double covariance = PARTS * sums[3] - sums[0] * sums[1];
	double slope_ns = covariance / (PARTS * sums[2] - sums[0] * sums[0]);
	double variance = PARTS * sums[4] - sums[1] * sums[1];
	*fit = variance > 0 ? slope_ns * covariance / variance : 0;
	return (struct line){(sums[1] - slope_ns * sums[0]) / PARTS, slope_ns};
}

/* A step whose wait for processors is not known gets the work of the step before, if most are known. */
static void fill_unknown(const struct replay_graph *graph, double *works_ns)
{
	uint32_t known = 0;

	for (uint32_t s = 0; s < graph->step_count; s++)
		known += graph->steps[s].delay_ns >= 0;
	for (uint32_t s = 1; s < graph->step_count && 2 * known > graph->step_count; s++)
		if (graph->steps[s].delay_ns < 0)
			works_ns[s] = works_ns[s - 1];
}

/* Work of the thread in each step: without waits for batches, ranks and processors, and without known causes. */
static double *work_of_steps(const struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	struct replay_plan known;
	double *gaps_ns;

	replay_plan_init(&known, graph);
	cut_garbage(&known);
	cut_compile(&known);
	cut_checkpoint(&known);
	cut_evaluation(&known);
	cut_data(&known);
	cut_processors(&known);
	gaps_ns = replay_step_gaps(&known);
	for (uint32_t i = 0; i < graph->item_count; i++)
		if (graph->items[i].kind == REPLAY_MEET)
			gaps_ns[graph->items[i].step] -= graph->items[i].own_ns;
	replay_plan_release(&known);
	fill_unknown(graph, gaps_ns);
	return gaps_ns;
}

/* Returns the median distance of the steps from the line. */
static double distance_from(const struct line *line, const double *steps_ns, uint32_t count)
{
	double *values = memory_resize(NULL, count, sizeof(*values)), median_ns;

	for (uint32_t s = 0; s < count; s++)
		values[s] = fabs(steps_ns[s] - line->first_ns - line->slope_ns * s);
	median_ns = median_of_values(values, count);
	free(values);
	return median_ns;
}

/* Returns the line along which the steps grow; slope 0: they do not. */
static struct line growth_of(const double *works_ns, uint32_t count)
{
	double fit, rise_ns;

	if (count < LEAST_GROWING_STEPS)
		return (struct line){0};
	struct line line = line_through(works_ns, count, &fit);
	rise_ns = line.slope_ns * (count - 1);
	if (fit < LEAST_FIT || line.first_ns <= 0 || rise_ns < (LEAST_GROWTH - 1) * line.first_ns ||
	    rise_ns < LEAST_DISTANCES * distance_from(&line, works_ns, count))
		return (struct line){0};
	return line;
}

bool cut_recorded_growth(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	double *works_ns = work_of_steps(plan), *gaps_ns = replay_step_gaps(plan);
	struct line line = growth_of(works_ns, graph->step_count);

	for (uint32_t i = 1; i < graph->item_count && line.slope_ns > 0; i++) {
		uint32_t step = (uint32_t)graph->items[i].step;
		double share = line.slope_ns * step / (line.first_ns + line.slope_ns * step);
		double all_ns = works_ns[step] +
		                fmax(0, graph->steps[step].delay_ns); /* the work takes its waits along */

		if (graph->items[i].thread == graph->main_thread)
			plan->items[i].gap_ns *= 1 - share * fmin(1, all_ns / fmax(1, gaps_ns[step]));
	}
	free(works_ns);
	free(gaps_ns);
	return line.slope_ns > 0;
}

/* ---- what comes each Nth step ---- */

struct rhythm {
	uint32_t period, first; /* period 0: there is none */
	uint32_t count;
};

/* Counts the steps of a rhythm, and the slow ones among them. */
static bool is_rhythm(const bool *slow, uint32_t count, uint32_t all_slow, struct rhythm *rhythm)
{
	uint32_t there = 0;

	rhythm->count = 0;
	for (uint32_t s = rhythm->first; s < count; s += rhythm->period) {
		there++;
		rhythm->count += slow[s];
	}
	if (rhythm->count >= FEW_SLOW && rhythm->count == there && rhythm->count == all_slow)
		return true;
	return rhythm->count >= MANY_SLOW && rhythm->count >= LEAST_HITS * there &&
	       rhythm->count >= LEAST_HITS * all_slow;
}

/* Tries each period with the first slow steps, one of which is in the rhythm if there is one. */
static struct rhythm find_rhythm(const bool *slow, uint32_t count)
{
	uint32_t firsts[TRIED_STEPS], tried = 0, all_slow = 0;
	struct rhythm best = {0};

	for (uint32_t s = 0; s < count; s++) {
		if (slow[s] && tried < TRIED_STEPS)
			firsts[tried++] = s;
		all_slow += slow[s];
	}
	for (uint32_t period = 2; period <= count / FEW_SLOW && period <= MOST_PERIOD && 2 * all_slow < count; period++)
		for (uint32_t i = 0; i < tried; i++) {
			struct rhythm rhythm = {period, firsts[i] % period, 0};

			if (is_rhythm(slow, count, all_slow, &rhythm) && rhythm.count > best.count)
				best = rhythm;
		}
	return best;
}

bool cut_recorded_periodic(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	double *works_ns = work_of_steps(plan), *gaps_ns = replay_step_gaps(plan);
	double usual_ns = median_of_values(works_ns, graph->step_count);
	double *shares = replay_delay_shares(graph); /* which are removed after the cut */
	bool *slow = memory_resize(NULL, graph->step_count, sizeof(*slow));

	for (uint32_t s = 0; s < graph->step_count; s++)
		slow[s] = works_ns[s] > SLOW_RATIO * usual_ns;
	for (uint32_t s = 0; s < graph->step_count && !replay_is_quiet_known(graph); s++)
		shares[s] = 0;
	struct rhythm rhythm = find_rhythm(slow, graph->step_count);
	for (uint32_t i = 1; i < graph->item_count && rhythm.period; i++) {
		uint32_t step = (uint32_t)graph->items[i].step;
		double excess_ns = works_ns[step] - usual_ns, quiet_ns = (1 - shares[step]) * gaps_ns[step];

		if (graph->items[i].thread == graph->main_thread && step % rhythm.period == rhythm.first &&
		    excess_ns > 0)
			plan->items[i].gap_ns *= fmax(0, 1 - excess_ns / fmax(1, quiet_ns));
	}
	free(works_ns);
	free(gaps_ns);
	free(shares);
	free(slow);
	return rhythm.period > 0;
}

/* ---- ranks ---- */

/* Where they are known they are stretches, which other cuts may contain; elsewhere the meeting knows how long they are. */
void cut_recorded_waits(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	const struct replay_stretches *waits = &graph->threads[graph->main_thread].waits;
	struct replay_stretches stretches = {0};
	uint32_t at = 0;

	for (uint32_t s = 0; s < graph->step_count; s++)
		for (; at < waits->count && waits->list[at].start_ns < graph->steps[s].end_ns; at++)
			if (graph->steps[s].has_operators && waits->list[at].start_ns >= graph->steps[s].start_ns)
				plan_stretches_add(&stretches, plan, waits->list[at].start_ns, waits->list[at].end_ns);
	replay_plan_remove(plan, graph->main_thread, &stretches);
	for (uint32_t i = 0; i < graph->item_count; i++)
		if (graph->items[i].kind == REPLAY_MEET && graph->steps[graph->items[i].step].has_operators)
			plan->items[i].own_ns = 0;
}

/* Returns, by step, the time of waits for batches. The caller frees it. */
static double *batches_of_steps(const struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	double *waits_ns = memory_resize(NULL, graph->step_count, sizeof(*waits_ns));

	for (uint32_t s = 0; s < graph->step_count; s++)
		waits_ns[s] = 0;
	for (uint32_t i = 0; i < graph->item_count; i++)
		if (graph->items[i].kind == REPLAY_BATCH)
			waits_ns[graph->items[i].step] += plan->items[i].own_ns;
	return waits_ns;
}

/* Returns the time of each step in which the rank does not wait for the others. The caller frees it. */
static double *own_of_steps(const struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	double *own_ns = replay_step_gaps(plan), *waits_ns = batches_of_steps(plan);

	for (uint32_t i = 0; i < graph->item_count; i++)
		if (graph->items[i].kind == REPLAY_MEET)
			own_ns[graph->items[i].step] -= plan->items[i].own_ns;
	for (uint32_t s = 0; s < graph->step_count; s++)
		own_ns[s] += waits_ns[s];
	free(waits_ns);
	return own_ns;
}

/* Returns the median of all values but one; `sorted` has all of them. */
static double median_of_others(const double *sorted, uint32_t count, double own)
{
	uint32_t low = 0, high = count; /* the first value that is not below the own one */

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sorted[middle] < own)
			low = middle + 1;
		else
			high = middle;
	}
	uint32_t first = (count - 2) / 2, second = (count - 1) / 2; /* of the others */

	return (sorted[first < low ? first : first + 1] + sorted[second < low ? second : second + 1]) / 2;
}

/* Sets differences[rank * steps + step]: how much more the rank has than the median of the others. */
static void differences_of(double *differences, double *const *values, uint32_t ranks, uint32_t steps)
{
	double *sorted = memory_resize(NULL, ranks, sizeof(*sorted));

	for (uint32_t s = 0; s < steps; s++) {
		for (uint32_t rank = 0; rank < ranks; rank++)
			sorted[rank] = values[rank][s];
		sort_doubles(sorted, ranks);
		for (uint32_t rank = 0; rank < ranks; rank++)
			differences[(size_t)rank * steps + s] = values[rank][s] -
			                                        median_of_others(sorted, ranks, values[rank][s]);
	}
	free(sorted);
}

/* Takes what the rank waits longer for batches than the others, and that from its excess. */
static void level_batches(struct replay_plan *plan, const double *late_ns, double *excess_ns)
{
	const struct replay_graph *graph = plan->graph;
	double *waits_ns = batches_of_steps(plan);

	for (uint32_t i = 1; i < graph->item_count; i++) {
		uint32_t step = (uint32_t)graph->items[i].step;
		double share = waits_ns[step] > 0 ? fmin(late_ns[step], excess_ns[step]) / waits_ns[step] : 0;

		if (graph->items[i].kind != REPLAY_BATCH || share <= 0)
			continue;
		plan->items[i].own_ns *= 1 - share;
		plan->items[i].is_free = true;
	}
	for (uint32_t s = 0; s < graph->step_count; s++)
		if (late_ns[s] > 0 && excess_ns[s] > 0)
			excess_ns[s] -= fmin(late_ns[s], excess_ns[s]);
	free(waits_ns);
}

static bool level_rank(struct replay_plan *plan, const double *late_ns, double *excess_ns)
{
	const struct replay_graph *graph = plan->graph;
	double *gaps_ns = replay_step_gaps(plan);
	bool is_any = false;

	for (uint32_t s = 0; s < graph->step_count; s++)
		is_any |= excess_ns[s] > 0;
	level_batches(plan, late_ns, excess_ns);
	for (uint32_t i = 1; i < graph->item_count; i++) {
		uint32_t step = (uint32_t)graph->items[i].step;

		if (graph->items[i].thread == graph->main_thread && excess_ns[step] > 0 && gaps_ns[step] > 0)
			plan->items[i].gap_ns *= fmax(0, 1 - excess_ns[step] / gaps_ns[step]);
	}
	free(gaps_ns);
	return is_any;
}

bool cut_recorded_rank(struct replay_plan *plans, uint32_t count)
{
	uint32_t steps = plans[0].graph->step_count;
	bool is_any = false;

	if (count < 2 || !plans[0].graph->recording.has_meetings)
		return false;
	double **own_ns = memory_resize(NULL, 2 * (size_t)count, sizeof(double *)), **waits_ns = own_ns + count;
	double *excess_ns = memory_resize(NULL, 2 * (size_t)count * steps, sizeof(*excess_ns));
	double *late_ns = excess_ns + (size_t)count * steps;
	for (uint32_t rank = 0; rank < count; rank++) {
		own_ns[rank] = own_of_steps(&plans[rank]);
		waits_ns[rank] = batches_of_steps(&plans[rank]);
	}
	differences_of(excess_ns, own_ns, count, steps);
	differences_of(late_ns, waits_ns, count, steps);
	for (uint32_t rank = 0; rank < count; rank++)
		is_any |= level_rank(&plans[rank], late_ns + (size_t)rank * steps, excess_ns + (size_t)rank * steps);
	for (uint32_t rank = 0; rank < count; rank++) {
		free(own_ns[rank]);
		free(waits_ns[rank]);
	}
	free(own_ns);
	free(excess_ns);
	return is_any;
}
