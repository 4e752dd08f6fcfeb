/* SPDX-License-Identifier: Apache-2.0
 *
 * step_budget.c: see the header. There is no clock read, count or system call per event: the words that threads wrote
 * are counted between two steps.
 */
#include "recorder/step_budget.h"

#include "base/time_now.h"
#include "recorder/session_facts.h"
#include "recorder/session_state.h"
#include "recorder/stream.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define OBSERVED_WORD_NS 150.0 /* PyTorch: 0.3 us per operator and 1.4 us per backward node, with 2 to 4 words each */
#define SHAPED_WORD_NS 130.0   /* with inputs: 0.17 us more for one or two words */
#define MEMORY_WORD_NS 105.0   /* with allocations: 60 ns for 3 words */
/* Part of the last two for inputs and allocations. The rest is the cost of the calls, which emit_note_observer() may
 * lower. */
#define OTHER_PART 0.36
#define EVENT_FACTOR 2 /* an event costs twice as much in a program as in the measuring loop */
#define RANGE_PART 10  /* values of N that fewer than one in this many steps had are not reported */
#define USEFUL_BOUND 2 /* a bound of up to this many times the estimate is useful */
#define LEAST_BOUND 0.01
#define STEPS_PER_QUESTION 64 /* steps between two readings of the recorder thread's CPU time, a system call */

void step_budget_start(struct step_budget *budget, const struct record_options *options, bool is_worker)
{
	bool is_paused = is_worker && budget->step.is_paused, has_inputs = !is_worker || budget->step.has_inputs;
	host_share_forget(&budget->share);
	*budget = (struct step_budget){.is_on = options->mode == RECORD_ALWAYS && options->budget > 0,
	                               .told = -1,
	                               .told_most = BUDGET_MOST_BITS + 1};
	budget->step.is_paused = is_paused && budget->is_on;
	budget->step.has_inputs = has_inputs || !budget->is_on;
	budget->is_whole = options->with_memory;
	if (budget->is_on)
		budget_start(&budget->rule, options->budget, budget->is_whole ? 1 : options->cost_every);
}

void step_budget_forget(struct step_budget *budget)
{
	host_share_forget(&budget->share);
}

void step_budget_stop(struct step_budget *budget, const char *directory)
{
	host_share_close(&budget->share, directory);
	budget->is_on = budget->step.is_paused = false;
}

static double ns_since(uint64_t ticks)
{
	return (double)(clock_ticks() - ticks) * 1e9 / (double)recorder_clock.tick_hz;
}

static double word_ns(bool has_inputs)
{
	if (!session.agent.observer)
		return EVENT_FACTOR * session.cost_event_ns;
	if (session.options.with_memory)
		return MEMORY_WORD_NS * (OTHER_PART + (1 - OTHER_PART) * session.agent.observer_share);
	if (session.options.with_shapes && has_inputs)
		return SHAPED_WORD_NS * (OTHER_PART + (1 - OTHER_PART) * session.agent.observer_share);
	return OBSERVED_WORD_NS * session.agent.observer_share;
}

static enum budget_kind step_budget_kind_of(const struct step_budget *budget)
{
	if (!budget->step.has_begun || budget->step.is_mixed || session.windows.open ||
	    budget->step.windows != session.windows.count)
		return BUDGET_OTHER;
	return budget->step.is_paused ? BUDGET_WITHOUT : BUDGET_WITH;
}

static void ask_background(struct step_budget *budget)
{
	clockid_t clock;
	struct timespec now;
	if (budget->rule.ended % STEPS_PER_QUESTION == 0 && drain_mode(&session.drain) == DRAIN_BY_THREAD &&
	    pthread_getcpuclockid(session.drain.thread, &clock) == 0 && clock_gettime(clock, &now) == 0)
		budget_note_background(&budget->rule, (double)timespec_ns(&now));
}

/* Finds the range of the bits that at least a tenth of the steps had each. Bits that few steps had belong to the search
 * for the others. */
static void find_range(const struct step_budget *budget, unsigned *least, unsigned *most)
{
	int64_t total = 0;
	for (unsigned bits = 0; bits <= BUDGET_MOST_BITS; bits++)
		total += budget->steps_of[bits];
	*least = *most = budget->rule.bits;
	for (unsigned bits = 0, found = 0; bits <= BUDGET_MOST_BITS; bits++) {
		if (!budget->steps_of[bits] || budget->steps_of[bits] * RANGE_PART < total)
			continue;
		*least = found++ ? *least : bits;
		*most = bits;
	}
}

static void tell_range(struct step_budget *budget)
{
	char text[32];
	unsigned least, most;
	find_range(budget, &least, &most);
	if (least == budget->told_least && most == budget->told_most)
		return;
	budget->told_least = least;
	budget->told_most = most;
	if (least == most)
		snprintf(text, sizeof(text), "%u", 1u << most);
	else
		snprintf(text, sizeof(text), "%u to %u", 1u << least, 1u << most);
	session_meta("budget.range", text);
}

static void tell_every(struct step_budget *budget)
{
	char text[16];
	if (budget->rule.ended < BUDGET_SKIPPED)
		return;
	if (budget->rule.ended % STEPS_PER_QUESTION == 0)
		tell_range(budget);
	if (budget->told == (int)budget->rule.bits)
		return;
	budget->told = (int)budget->rule.bits;
	snprintf(text, sizeof(text), "%u", 1u << budget->rule.bits);
	session_meta("budget.every", text);
}

void step_budget_end(struct step_budget *budget, int64_t number, bool is_odd)
{
	if (!budget->is_on || !session.capture.mask_detail)
		return;
	struct budget_step step = {.number = number, .kind = is_odd ? BUDGET_OTHER : step_budget_kind_of(budget)};
	step.ns = budget->step.has_begun ? ns_since(budget->step.ticks) : 0;
	if (step.kind == BUDGET_WITH) {
		uint64_t words = streams_words();
		step.table_ns = words > budget->step.words
		                        ? (double)(words - budget->step.words) * word_ns(budget->step.has_inputs)
		                        : 0;
	}
	unsigned own = budget->rule.own;
	if (budget->rule.ended >= BUDGET_SKIPPED)
		budget->steps_of[budget->rule.bits]++;
	budget_end(&budget->rule, &step);
	ask_background(budget);
	if (budget->rule.ended == BUDGET_SKIPPED && !budget->rule.is_fixed)
		host_share_open(&budget->share, session.options.run_directory);
	if (own < budget->rule.own)
		host_share_put(&budget->share, (number >> BUDGET_EPOCH) + 1, budget->rule.own);
	budget->step.has_begun = false;
}

static void step_budget_enter(struct step_budget *budget, int64_t number)
{
	bool is_epoch = budget_is_epoch(&budget->rule, number);
	int64_t epoch = number >> BUDGET_EPOCH;
	budget_enter(&budget->rule, number, is_epoch ? host_share_get(&budget->share, epoch) : -1);
	if (is_epoch)
		host_share_put(&budget->share, epoch + 1, budget->rule.own);
}

/* Returns true if the step's operators have inputs. Recording the inputs of PyTorch's operators costs half as much as
 * recording the operators. Operators that the program marks have inputs in all its steps. */
static bool wants_inputs(const struct step_budget *budget, int64_t number)
{
	return budget->is_whole || !session.options.with_shapes || !session.agent.observer ||
	       budget_selects(number, budget->rule.bits + BUDGET_INPUT_BITS);
}

void step_budget_choose(struct step_budget *budget, int64_t number)
{
	struct chosen_step *step = &budget->step;
	if (!budget->is_on || !session.capture.mask_detail || (step->has_begun && step->number == number))
		return;
	step_budget_enter(budget, number);
	bool is_paused = !budget->is_whole && !budget_wants(&budget->rule, number);
	bool has_inputs = wants_inputs(budget, number);
	step->is_mixed = step->has_begun && (is_paused != step->is_paused || has_inputs != step->has_inputs);
	step->is_paused = is_paused;
	step->has_inputs = has_inputs;
	step->number = number;
	tell_every(budget);
	if (step->has_begun)
		return;
	step->has_begun = true;
	step->windows = session.windows.count;
	step->words = is_paused ? 0 : streams_words();
	step->ticks = clock_ticks();
}

/* ---- facts and closing line -------------------------------------------------------------------------------------- */

void step_budget_tell(const struct record_options *options)
{
	char text[64];
	if (options->with_memory && options->mode == RECORD_ALWAYS && options->budget > 0)
		snprintf(text, sizeof(text), "none: --with memory");
	else if (options->cost_every)
		snprintf(text, sizeof(text), "--cost-every %d", (int)options->cost_every);
	else if (options->budget > 0)
		snprintf(text, sizeof(text), "%.4g %%", options->budget * 100);
	else if (options->asked)
		snprintf(text, sizeof(text), "none: %s", options->asked);
	else
		snprintf(text, sizeof(text), "none");
	session_meta("budget", text);
}

/* Chooses the figure as a report does: the measurement if its interval is within a third of it, otherwise an upper
 * bound. If the bound says less than the estimate from the number of operators, chooses the estimate. */
static enum cost_known know(const struct budget_cost *cost, double *ratio)
{
	double half = cost->high - cost->measured, bound = cost->high > LEAST_BOUND ? cost->high : LEAST_BOUND;
	bool is_useful = bound <= LEAST_BOUND || bound <= USEFUL_BOUND * cost->ratio;
	*ratio = cost->ratio;
	if (!cost->is_known)
		return COST_UNKNOWN;
	if (!cost->has_interval)
		return COST_ESTIMATED;
	if (half <= cost->measured / 3 && cost->high >= LEAST_BOUND) {
		*ratio = cost->measured;
		return COST_MEASURED;
	}
	if (!is_useful)
		return COST_ESTIMATED;
	*ratio = bound;
	return COST_BELOW;
}

void step_budget_describe(struct step_budget *budget, struct schedule_progress *progress)
{
	struct budget_cost cost = budget_cost(&budget->rule);
	unsigned least, most;
	progress->every = progress->least_every = progress->every_inputs = 0;
	progress->cost = COST_UNKNOWN;
	if (!budget->is_on)
		return;
	find_range(budget, &least, &most);
	progress->every = INT64_C(1) << most;
	progress->least_every = least < most ? INT64_C(1) << least : 0;
	if (session.options.with_shapes && session.agent.observer && !budget->is_whole)
		progress->every_inputs = progress->every << BUDGET_INPUT_BITS;
	progress->cost = know(&cost, &progress->cost_ratio);
	if (budget->rule.ended >= BUDGET_SKIPPED)
		tell_range(budget);
}
