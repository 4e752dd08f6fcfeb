/* SPDX-License-Identifier: Apache-2.0
 *
 * training_stretch.c: see the header.
 */
#include "agents/torch/training_stretch.h"

#include "agents/torch/training_state.h"
#include "recorder/emit.h"

void training_put(uint8_t token, uint32_t flags, uint64_t start, uint64_t end, uint64_t identity)
{
	const uint64_t payload[4] = {token | flags, start, end, identity};
	emit_event(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, payload, identity ? 4 : 3);
}

static void put_module(const struct noted_stretch *stretch)
{
	const uint64_t payload[5] = {stretch->token | stretch->flags, stretch->start, stretch->end, stretch->object,
	                             stretch->symbol};
	emit_event(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_TRAINING, payload, 5);
}

void training_flush(void)
{
	struct noted_stretch *stretch = &HERE.stretch;
	bool is_told = stretch->is_any && !stretch->is_detail && stretch->start;
	if (is_told && stretch->object)
		put_module(stretch);
	else if (is_told)
		training_put(stretch->token, stretch->flags, stretch->start, stretch->end, 0);
	stretch->is_any = false;
}

void training_new_stretch(uint8_t token, uint64_t start)
{
	training_flush();
	HERE.stretch = (struct noted_stretch){.token = token,
	                                      .is_any = true,
	                                      .is_detail = training_is_detail(),
	                                      .flags = HERE.calls ? STEPSCOPE_TRAINING_IS_INSIDE : 0,
	                                      .object = HERE.module,
	                                      .symbol = HERE.module_symbol,
	                                      .start = training_is_detail() ? 0 : start};
}

void training_note_work(void)
{
	HERE.is_waiting = false;
	training_begin_stretch(STEPSCOPE_TRAINING_OP, training_is_detail() ? 0 : emit_now());
	training_end_stretch();
}
