/* SPDX-License-Identifier: Apache-2.0
 *
 * training_calls.c: see the header.
 */
#include "agents/torch/training_calls.h"

#include "agents/torch/compiled.h"
#include "agents/torch/training.h"
#include "agents/torch/training_levels.h"
#include "agents/torch/training_state.h"
#include "agents/torch/training_stretch.h"
#include "recorder/emit.h"

static bool is_in_backward(void)
{
	return !HERE.work.is_open && HERE.stretch.is_any && HERE.stretch.token == STEPSCOPE_TRAINING_BACKWARD;
}

static void begin_hidden_call(const struct training_call *call)
{
	HERE.hidden++;
	training_note_level(call->kind == TRAINING_RANGE ? training_level_of_range(call->name) : LEVEL_NOTHING);
	if (call->kind == TRAINING_RANGE && is_in_backward())
		training_note_range_in_backward(call->name);
}

/* Each of its own, where records of one follow each other node by node. */
static void begin_backward_call(bool is_training)
{
	training_flush();
	training_begin_level(STEPSCOPE_TRAINING_BACKWARD, -1);
	if (is_training)
		training_note_gradients();
}

static void begin_module_call(const struct training_call *call)
{
	training_flush();
	HERE.module = call->module;
	HERE.module_symbol = call->symbol;
	training_begin_level(STEPSCOPE_TRAINING_FORWARD, training.next_sequence ? training.next_sequence() : -1);
	HERE.is_module = true;
}

bool training_wants_module(void)
{
	return !HERE.hidden && !HERE.calls;
}

/* Ranges of the program's that say nothing are left out: nothing would end one that is not left. */
static bool is_told_of(const struct training_call *call)
{
	return call->kind == TRAINING_MODULE
	               ? training_wants_module()
	               : call->kind != TRAINING_RANGE || training_level_of_range(call->name) != LEVEL_TRANSPARENT;
}

bool training_call_begin(const struct training_call *call)
{
	if (!is_told_of(call))
		return false;
	if (training_is_in_module())
		training_open_module();
	if (HERE.hidden) {
		begin_hidden_call(call);
		return true;
	}
	switch (call->kind) {
	case TRAINING_RANGE:
		training_begin_level(training_level_of_range(call->name), -1);
		break;
	case TRAINING_BACKWARD:
		begin_backward_call(call->is_training);
		break;
	case TRAINING_SCALER:
		training_begin_level(STEPSCOPE_TRAINING_SCALER, -1);
		break;
	case TRAINING_MODULE:
		begin_module_call(call);
		break;
	}
	return true;
}

void training_sees_calls(void)
{
	training.sees_calls = true;
}

/* Code of torch.compile may be an optimizer's call, and only its record says so. */
bool training_needs_records(void)
{
	return !training.sees_calls || (!emit_has_marked() && (!training.count.has_group || compiled_is_any()));
}

void training_profiler_step(uint32_t step)
{
	if (training_is_in_module())
		training_open_module();
	if (HERE.hidden) {
		HERE.hidden++;
		training_note_level(LEVEL_PROFILER_STEP);
		return;
	}
	training_begin_level(LEVEL_PROFILER_STEP, -1);
	training_begin_mark(step & ~TRAINING_HAS_SCHEDULE, (step & TRAINING_HAS_SCHEDULE) != 0);
}

void training_batch(bool has_come)
{
	if (torch_thread && HERE.is_waiting)
		HERE.has_work = has_come;
}

/* What it does with tensors is of no interest. */
void training_stretch(uint8_t token)
{
	if (training_is_in_module())
		training_open_module();
	HERE.hidden++;
	training_note_level(LEVEL_NOTHING);
	if (HERE.hidden > 1)
		return;
	HERE.is_training = HERE.has_work = HERE.work.is_open = HERE.is_waiting = false;
	if (HERE.calls)
		training_flush();
	else
		training_begin_stretch(token, training_is_detail() ? 0 : emit_now());
}
