/* SPDX-License-Identifier: Apache-2.0
 *
 * step_budget.c: see the header. No clock, no count and no system call per event: words that threads wrote are counted between two steps.
 */
#include "recorder/step_budget.h"

#include "recorder/session.h"
#include "recorder/session_state.h"
#include "recorder/stream.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define OBSERVED_WORD_NS 150.0 /* PyTorch: 0.3 us per operator and 1.4 us per backward node, with 2 to 4 words each */
#define SHAPED_WORD_NS 130.0   /* with inputs: 0.17 us more for one word or two */
#define MEMORY_WORD_NS 105.0   /* with allocations: 60 ns for 3 words */
#define OTHER_PART                                                                                                     \
	0.36 /* of these two: inputs, allocations; the rest is being called at all, which emit_note_observer() may make less */
#define EVENT_FACTOR 2        /* an event in a loop of its own costs half of what it does in a program */
#define STEPS_PER_QUESTION 64 /* how much CPU time the recorder's thread took: a system call */

void step_budget_start(struct step_budget *budget, const struct record_options *options, bool is_worker)
{
	bool is_paused = is_worker && budget->is_paused, has_inputs = !is_worker || budget->has_inputs;
	host_share_forget(&budget->share);
	*budget = (struct step_budget){.is_on = options->mode == RECORD_ALWAYS && options->budget > 0, .told = -1};
	budget->is_paused = is_paused && budget->is_on;
	budget->has_inputs = has_inputs || !budget->is_on;
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
	budget->is_on = budget->is_paused = false;
}

static double ns_since(uint64_t ticks)
{
	return (double)(clock_ticks() - ticks) * 1e9 / (double)recorder_clock.tick_hz;
}

static double word_ns(bool has_inputs)
{
	if (!session.observer)
		return EVENT_FACTOR * session.cost_event_ns;
	if (session.options.with_memory)
		return MEMORY_WORD_NS * (OTHER_PART + (1 - OTHER_PART) * session.observer_share);
	if (session.options.with_shapes && has_inputs)
		return SHAPED_WORD_NS * (OTHER_PART + (1 - OTHER_PART) * session.observer_share);
	return OBSERVED_WORD_NS * session.observer_share;
}

static enum budget_kind kind_of(const struct step_budget *budget)
{
	if (!budget->has_begun || budget->is_mixed || session.windows_open || budget->windows != session.window_count)
		return BUDGET_OTHER;
	return budget->is_paused ? BUDGET_WITHOUT : BUDGET_WITH;
}

static void ask_background(struct step_budget *budget)
{
	clockid_t clock;
	struct timespec now;
	if (budget->rule.ended % STEPS_PER_QUESTION == 0 && drain_mode(&session.drain) == DRAIN_BY_THREAD &&
	    pthread_getcpuclockid(session.drain.thread, &clock) == 0 && clock_gettime(clock, &now) == 0)
		budget_note_background(&budget->rule, (double)now.tv_sec * 1e9 + (double)now.tv_nsec);
}

static void tell_every(struct step_budget *budget)
{
	char text[16];
	if (budget->told == (int)budget->rule.bits || budget->rule.ended < BUDGET_SKIPPED)
		return;
	budget->told = (int)budget->rule.bits;
	snprintf(text, sizeof(text), "%u", 1u << budget->rule.bits);
	session_meta("budget.every", text);
}

void step_budget_end(struct step_budget *budget, int64_t number, bool is_odd)
{
	if (!budget->is_on || !session.mask_detail)
		return;
	struct budget_step step = {.number = number, .kind = is_odd ? BUDGET_OTHER : kind_of(budget)};
	step.ns = budget->has_begun ? ns_since(budget->ticks) : 0;
	if (step.kind == BUDGET_WITH) {
		uint64_t words = streams_words();
		step.table_ns = words > budget->words ? (double)(words - budget->words) * word_ns(budget->has_inputs)
		                                      : 0;
	}
	unsigned own = budget->rule.own;
	budget_end(&budget->rule, &step);
	ask_background(budget);
	if (budget->rule.ended == BUDGET_SKIPPED && !budget->rule.is_fixed)
		host_share_open(&budget->share, session.options.run_directory);
	if (own < budget->rule.own)
		host_share_put(&budget->share, (number >> BUDGET_EPOCH) + 1, budget->rule.own);
	budget->has_begun = false;
}

static void enter(struct step_budget *budget, int64_t number)
{
	bool is_epoch = budget_is_epoch(&budget->rule, number);
	int64_t epoch = number >> BUDGET_EPOCH;
	budget_enter(&budget->rule, number, is_epoch ? host_share_get(&budget->share, epoch) : -1);
	if (is_epoch)
		host_share_put(&budget->share, epoch + 1, budget->rule.own);
}

/* PyTorch's operators: their inputs cost half as much as they do themselves. A program that tells of its own gives theirs in all of its steps. */
static bool wants_inputs(const struct step_budget *budget, int64_t number)
{
	return budget->is_whole || !session.options.with_shapes || !session.observer ||
	       budget_selects(number, budget->rule.bits + BUDGET_INPUT_BITS);
}

void step_budget_choose(struct step_budget *budget, int64_t number)
{
	if (!budget->is_on || !session.mask_detail || (budget->has_begun && budget->number == number))
		return;
	enter(budget, number);
	bool is_paused = !budget->is_whole && !budget_wants(&budget->rule, number);
	bool has_inputs = wants_inputs(budget, number);
	budget->is_mixed = budget->has_begun && (is_paused != budget->is_paused || has_inputs != budget->has_inputs);
	budget->is_paused = is_paused;
	budget->has_inputs = has_inputs;
	budget->number = number;
	tell_every(budget);
	if (budget->has_begun)
		return;
	budget->has_begun = true;
	budget->windows = session.window_count;
	budget->words = is_paused ? 0 : streams_words();
	budget->ticks = clock_ticks();
}

/* ---- what is said of it ---------------------------------------------------------------------------------------------------- */

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

void step_budget_describe(const struct step_budget *budget, struct schedule_progress *progress)
{
	struct budget_cost cost = budget_cost(&budget->rule);
	progress->every = budget->is_on ? INT64_C(1) << budget->rule.bits : 0;
	progress->every_inputs = 0;
	if (session.options.with_shapes && session.observer && !budget->is_whole)
		progress->every_inputs = progress->every << BUDGET_INPUT_BITS;
	progress->cost = !budget->is_on || !cost.is_known        ? COST_UNKNOWN
	                 : cost.has_interval && cost.high < 0.01 ? COST_BELOW
	                 : cost.is_sure                          ? COST_MEASURED
	                                                         : COST_ESTIMATED;
	progress->cost_ratio = cost.is_sure ? cost.measured : cost.ratio;
}
