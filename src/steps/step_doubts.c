/* SPDX-License-Identifier: Apache-2.0
 *
 * step_doubts.c: see step_doubts.h.
 */
#include "steps/step_doubts.h"

struct doubts {
	struct model *model;
	uint32_t process;
	const struct inference *inference;
};

static void step_doubts_add(const struct doubts *doubts, enum ledger_code code, const char *text)
{
	model_add_ledger(doubts->model, LEDGER_OTHER, doubts->process, "steps", 1, text)->code = code;
}

static void say_uncertain(const struct doubts *doubts, enum step_doubts_of source)
{
	if (doubts->inference->is_joined)
		step_doubts_add(
			doubts, LEDGER_CODE_UNCERTAIN_STEPS,
			"the number of steps is uncertain: optimizers that step without data between them were taken "
			"for one step");
	if (doubts->inference->is_each_update)
		step_doubts_add(
			doubts, LEDGER_CODE_UNCERTAIN_STEPS,
			source == DOUBTS_OF_TRACE
				? "the number of steps is uncertain: a trace does not tell optimizers apart, so every "
				  "update was taken for a step"
				: "the number of steps is uncertain: this PyTorch does not tell optimizers apart, so "
				  "every update was taken for a step");
}

static void say_ambiguous(const struct doubts *doubts)
{
	struct arena *arena = &doubts->model->arena;
	const struct inference *inference = doubts->inference;

	if (inference->rare_calls)
		step_doubts_add(
			doubts, LEDGER_CODE_AMBIGUOUS_STEPS,
			arena_printf(
				arena,
				"the number of steps is ambiguous: not all optimizers are called in the same ones; one is in %zu "
				"of the %zu steps from its first to its last only; stepscope.step() says what a step is",
				inference->rare_calls, inference->rare_steps));
	if (inference->thrown_away)
		step_doubts_add(
			doubts, LEDGER_CODE_AMBIGUOUS_STEPS,
			arena_printf(
				arena,
				"the number of steps is ambiguous: gradients were thrown away behind %zu backward%s, before an update, and "
				"each was taken for a step whose update was left out; stepscope.step() says what a step is",
				inference->thrown_away, inference->thrown_away == 1 ? "" : "s"));
}

/* Of steps without optimizers. */
static const char *reason_of_doubt(struct arena *arena, const struct inference *inference)
{
	switch (inference->doubt) {
	case DOUBT_ADDING:
		return arena_printf(
			arena,
			"gradients add up over all %zu backwards and nothing is written to in place between "
			"them, so each was taken for a step",
			inference->backwards);
	case DOUBT_NO_DETAIL:
		return arena_printf(arena,
		                    "where no operators are recorded it is not known which of the %zu backwards add to "
		                    "the same gradients, so each was taken for a step there",
		                    inference->backwards);
	case DOUBT_RARE:
		return arena_printf(arena,
		                    "each of the %zu backwards makes new gradients, so each was taken for a step, but "
		                    "updates in place were seen behind %zu of them only",
		                    inference->backwards, inference->hand_updates);
	case DOUBT_OF_BATCH:
		return arena_printf(
			arena,
			"several of the %zu backwards work on the same batch, each makes new gradients, and each "
			"was taken for a step",
			inference->backwards);
	case DOUBT_NO_GRADIENTS:
		return arena_printf(arena,
		                    "none of the %zu backwards leaves gradients, so what is written to in place behind "
		                    "%zu of them was taken for an update",
		                    inference->backwards, inference->hand_updates);
	case DOUBT_NONE:
		break;
	}
	return NULL;
}

static void say_without_optimizers(const struct doubts *doubts)
{
	struct arena *arena = &doubts->model->arena;
	const char *reason = reason_of_doubt(arena, doubts->inference);

	if (reason)
		step_doubts_add(doubts, LEDGER_CODE_AMBIGUOUS_STEPS,
		                arena_printf(arena,
		                             "the number of steps is ambiguous: no optimizer is called; %s; "
		                             "stepscope.step() says it otherwise",
		                             reason));
}

void step_doubts_say(struct model *model, uint32_t process, const struct inference *inference,
                     enum step_doubts_of source)
{
	const struct doubts doubts = {model, process, inference};

	say_uncertain(&doubts, source);
	if (source == DOUBTS_OF_TRACE)
		return;
	say_ambiguous(&doubts);
	say_without_optimizers(&doubts);
}
