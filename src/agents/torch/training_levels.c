/* SPDX-License-Identifier: Apache-2.0
 *
 * training_levels.c: see the header.
 */
#include "agents/torch/training_levels.h"

#include "agents/torch/training_count.h"
#include "agents/torch/training_state.h"
#include "agents/torch/training_stretch.h"
#include "pytorch/names.h"
#include "recorder/emit.h"

#include <string.h>

static void begin_hooked(void)
{
	if (HERE.hook_level || training_is_detail())
		return;
	HERE.hook_level = HERE.hidden;
	HERE.hook_start = emit_now();
}

static void end_hooked(void)
{
	HERE.hook_level = 0;
	if (!training_is_detail())
		training_put(STEPSCOPE_TRAINING_HOOKED, 0, HERE.hook_start, emit_now(), 0);
}

/* The open backward has come to its first gradient. */
void training_note_gradients(void)
{
	bool is_known = HERE.stretch.flags & STEPSCOPE_TRAINING_IS_TRAINING;
	HERE.is_training = true;
	HERE.stretch.flags |= STEPSCOPE_TRAINING_IS_TRAINING;
	HERE.call[0].is_closure = HERE.calls > 0;
	if (!is_known)
		training_count_gradients();
}

void training_note_range_in_backward(const char *name)
{
	if (!pytorch_begins(name, PYTORCH_OPTIMIZER_STEP))
		return;
	count_hooked(&training.count);
	begin_hooked();
}

static void end_work(void)
{
	bool is_node = HERE.work.sequence >= 0 && training.next_sequence &&
	               training.next_sequence() > HERE.work.sequence;
	HERE.work.is_open = false;
	training_begin_stretch(is_node ? STEPSCOPE_TRAINING_FORWARD : STEPSCOPE_TRAINING_OP, HERE.work.start);
}

/* The call of a module that trains by itself, or has trained: from here on it is as a range is, and what is in it is looked at. */
void training_open_module(void)
{
	if (HERE.work.is_open)
		end_work();
	if (HERE.stretch.is_any)
		training_end_stretch();
	training_flush();
	HERE.module = 0;
	HERE.is_module = false;
	HERE.hidden = 0;
	HERE.open++;
	training_note_level(LEVEL_TRANSPARENT);
}

static void begin_call(void)
{
	training_flush();
	if (HERE.calls == TRAINING_CALLS)
		return;
	HERE.call[HERE.calls].level = HERE.open;
	HERE.call[HERE.calls].start = emit_now();
	HERE.call[HERE.calls].identity = 0;
	HERE.call[HERE.calls].is_detail = training_is_detail();
	HERE.call[HERE.calls].is_closure = false;
	HERE.calls++;
}

static void end_call(uint32_t call)
{
	uint64_t identity = HERE.call[call].identity;
	training_flush();
	/* those inside were noted before it: the reader puts them in order */
	if (!HERE.call[call].is_detail && !training_is_detail())
		training_put(STEPSCOPE_TRAINING_OPTIMIZER, call ? STEPSCOPE_TRAINING_IS_INSIDE : 0,
		             HERE.call[call].start, emit_now(), identity);
	HERE.calls--;
	memmove(&HERE.call[call], &HERE.call[call + 1], (HERE.calls - call) * sizeof(HERE.call[0]));
}

void training_begin_mark(uint32_t step, bool has_schedule)
{
	if (!step)
		return;
	training_flush();
	HERE.mark.level = HERE.open;
	HERE.mark.step = step;
	HERE.mark.start = emit_now();
	HERE.mark.is_detail = training_is_detail();
	HERE.mark.has_work = HERE.mark.is_none = false;
	HERE.mark.is_first = step == 1 && !has_schedule;
	HERE.mark.ended = 0;
}

/* A step, if something trained in it; the reader decides anew. */
static void end_mark(void)
{
	bool is_step = HERE.mark.has_work && !(HERE.mark.is_first ? HERE.mark.ended > 0 : HERE.mark.is_none);
	HERE.mark.level = 0;
	if (HERE.mark.ended > HERE.mark.most)
		HERE.mark.most = HERE.mark.ended;
	training_flush();
	if (!HERE.mark.is_detail && !HERE.mark.is_none)
		training_put(STEPSCOPE_TRAINING_PROFILER_STEP, 0, HERE.mark.start, emit_now(), HERE.mark.step);
	HERE.mark.is_counted |= is_step;
	training_count_told(is_step, "the steps of torch.profiler");
}

/* A range, or a call, which is counted; what is in it goes on. */
static void end_open(uint32_t level)
{
	uint64_t identity = 0;
	uint32_t call = 0;
	bool is_closure = false;
	while (call < HERE.calls && HERE.call[call].level < level)
		call++;
	bool is_call = call < HERE.calls && HERE.call[call].level == level;
	if (is_call) {
		identity = HERE.call[call].identity;
		is_closure = HERE.call[call].is_closure;
		end_call(call);
	}
	for (uint32_t i = call; i < HERE.calls; i++)
		HERE.call[i].level--;
	HERE.open--;
	if (HERE.mark.level == level)
		end_mark();
	HERE.mark.level -= HERE.mark.level > level;
	if (is_call)
		training_count_call(identity, call > 0, is_closure);
}

/* In nothing that hides it. sequence: of an operator. */
void training_begin_level(uint8_t level, int64_t sequence)
{
	bool is_open = level == LEVEL_TRANSPARENT || level == LEVEL_COMPILED || level == LEVEL_PROFILER_STEP ||
	               level == STEPSCOPE_TRAINING_OPTIMIZER;
	HERE.open += is_open;
	HERE.hidden = !is_open;
	training_note_level(level);
	if (level == STEPSCOPE_TRAINING_OPTIMIZER)
		begin_call();
	if (level == LEVEL_COMPILED && !HERE.calls)
		training_note_work();
	if (is_open)
		return;
	HERE.is_training = HERE.has_work = HERE.work.is_open = false;
	HERE.is_waiting = level == LEVEL_DATA_HERE;
	if (level == LEVEL_NOTHING || (HERE.calls && level != STEPSCOPE_TRAINING_BACKWARD)) {
		training_flush();
		return;
	}
	uint8_t token = level == LEVEL_DATA_HERE ? STEPSCOPE_TRAINING_DATA : level;
	training_count_begin(token);
	uint64_t start = training_is_detail() ? 0 : emit_now();
	if (token == STEPSCOPE_TRAINING_OP || token == STEPSCOPE_TRAINING_FORWARD) {
		HERE.work.is_open = true;
		HERE.work.start = start;
		HERE.work.sequence = sequence;
	} else {
		training_begin_stretch(token, start);
	}
}

void training_end(void)
{
	if (HERE.hidden) {
		if (HERE.hidden == HERE.hook_level)
			end_hooked();
		if (--HERE.hidden)
			return;
		if (HERE.work.is_open)
			end_work();
		HERE.module = 0;
		HERE.is_module = false;
		if (!HERE.stretch.is_any)
			return;
		training_end_stretch();
		training_count_end(HERE.stretch.token);
		if (!training_is_work(HERE.stretch.token) || HERE.stretch.object)
			training_flush();
	} else if (HERE.open) { /* else it was open before we came */
		end_open(HERE.open);
	}
}

/* The outermost that hides is over: what it hid is looked at from here on. */
static void end_hiding(uint32_t above)
{
	uint8_t levels[OPEN_MAX];
	memcpy(levels, HERE.levels + HERE.open + 1, above);
	if (HERE.hook_level)
		end_hooked();
	HERE.hidden = 1;
	training_end();
	for (uint32_t i = 0; i < above; i++) {
		if (!HERE.hidden) {
			training_begin_level(levels[i], -1);
			continue;
		}
		HERE.hidden++;
		training_note_level(levels[i]);
	}
}

static void end_hidden(uint32_t hidden)
{
	if (HERE.hook_level == hidden)
		end_hooked();
	HERE.hook_level -= HERE.hook_level > hidden;
	HERE.hidden--;
}

void training_end_beneath(uint32_t above)
{
	uint32_t depth = HERE.open + HERE.hidden;
	if (above >= depth || !above || depth > OPEN_MAX) {
		if (above < depth)
			training_end();
		return;
	}
	uint32_t level = depth - above;
	if (level == HERE.open + 1) {
		end_hiding(above);
		return;
	}
	memmove(&HERE.levels[level - 1], &HERE.levels[level], above);
	if (level > HERE.open)
		end_hidden(level - HERE.open);
	else
		end_open(level);
}
