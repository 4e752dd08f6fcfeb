/* SPDX-License-Identifier: Apache-2.0
 *
 * training_count.c: see the header. What threads share is changed under a lock that no thread waits for.
 */
#include "agents/torch/training_count.h"

#include "agents/torch/count.h"
#include "agents/torch/training_state.h"
#include "agents/torch/training_stretch.h"
#include "recorder/emit.h"

#include <string.h>

/* Bounded: two threads that train at once are rare, a thread that is stopped in here is rarer. */
static bool lock_count(void)
{
	for (int i = 0; i < 10000; i++)
		if (__atomic_exchange_n(&training.lock, 1, __ATOMIC_ACQUIRE) == 0)
			return true;
	return false;
}

/* In a forked child the thread that held the lock does not exist: what it was changing is not to be trusted either. */
void training_count_forked(void)
{
	if (training.lock)
		memset(&training.count, 0, sizeof(training.count));
	else
		count_forked(&training.count);
	training.lock = 0;
}

static void unlock_count(void)
{
	__atomic_store_n(&training.lock, 0, __ATOMIC_RELEASE);
}

/* In a range that marks a step nothing else is one. With more updates than in those before, it may be as long as the training. */
static unsigned not_marked(unsigned ended)
{
	if (HERE.mark.is_counted)
		return 0;
	if (!HERE.mark.level || !HERE.mark.has_work || HERE.mark.is_none)
		return ended;
	HERE.mark.ended += ended;
	if (HERE.mark.is_first)
		return ended;
	HERE.mark.is_none = HERE.mark.ended > 1 && HERE.mark.ended > HERE.mark.most;
	return HERE.mark.is_none ? HERE.mark.ended : 0;
}

static void note_training(void)
{
	HERE.mark.has_work = true;
	HERE.mark.is_counted = false;
}

/* What came before the end of a step is noted before it. */
void training_count_told(unsigned ended, const char *by)
{
	if (!ended)
		return;
	if (HERE.hidden && HERE.stretch.is_any && !HERE.stretch.is_detail)
		HERE.stretch.end = emit_now();
	training_flush();
	emit_count_steps(ended, by);
}

static void tell_ended(unsigned ended)
{
	training_count_told(not_marked(ended),
	                    count_has_optimizers(&training.count) ? "the calls of optimizers" : "backward passes");
}

/* What lies at the same address does the same there, as a rule. */
static unsigned count_optimizer(uint64_t identity, bool is_inside, bool is_closure)
{
	return count_call(&training.count,
	                  &(struct counted_call){.identity = identity & STEPSCOPE_OPTIMIZER_ADDRESS,
	                                         .is_new = (identity & STEPSCOPE_OPTIMIZER_IS_NEW) != 0,
	                                         .is_inside = is_inside,
	                                         .is_closure = is_closure});
}

void training_count_call(uint64_t identity, bool is_inside, bool is_closure)
{
	if (!lock_count())
		return;
	unsigned ended = count_optimizer(identity, is_inside, is_closure);
	unlock_count();
	HERE.trains = true;
	emit_trains();
	note_training();
	tell_ended(ended);
}

void training_count_gradients(void)
{
	if (!lock_count())
		return;
	unsigned ended = count_backward(&training.count);
	unlock_count();
	emit_trains();
	tell_ended(ended); /* of what was before */
	note_training();
}

/* At its begin; a thread that only evaluates says nothing. */
void training_count_news(uint8_t token, bool is_first)
{
	unsigned ended = 0;
	if ((!HERE.trains && !is_first) || HERE.calls || !lock_count())
		return;
	if (token == STEPSCOPE_TRAINING_DATA)
		ended = count_batch(&training.count);
	else if (token == STEPSCOPE_TRAINING_ZERO_GRAD)
		count_zero_grad(&training.count);
	else if (training_is_operator(token))
		ended = count_operator(&training.count);
	unlock_count();
	tell_ended(ended);
}

void training_count_end(uint8_t token)
{
	if (token != STEPSCOPE_TRAINING_SCALER || HERE.calls || !lock_count())
		return;
	unsigned ended = count_scaler(&training.count);
	unlock_count();
	tell_ended(ended);
}

bool training_optimizer_made(void)
{
	if (!lock_count())
		return false;
	count_made(&training.count);
	unlock_count();
	return true;
}

unsigned training_optimizer_done(uint64_t identity)
{
	if (!lock_count())
		return 0;
	unsigned ended = count_optimizer(identity, false, false);
	unlock_count();
	return ended;
}
