/* SPDX-License-Identifier: Apache-2.0
 *
 * session_steps.c: see the header. Functions that change a step take the lock of steps of session_capture.h.
 */
#include "recorder/session_steps.h"

#include "recorder/schedule.h"
#include "recorder/session.h"
#include "recorder/session_capture.h"
#include "recorder/session_state.h"
#include "recorder/step_budget.h"
#include "recorder/step_cpu.h"
#include "recorder/stream.h"
#include "recorder/thread_use.h"

static void end_open_step(bool is_abandoned)
{
	struct thread_use use = {0};
	if (!session.steps.is_open)
		return;
	session.steps.is_open = false;
	bool has_use = step_cpu_end(&session.steps.cpu, &use);
	const uint64_t payload[5] = {(uint64_t)session.steps.number, is_abandoned, use.cpu_ns, use.waits,
	                             use.page_faults};
	stream_put(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_END, payload, has_use ? 5 : is_abandoned ? 2 : 1);
	/* the time between two steps belongs to the next one */
	step_budget_end(&session.budget, session.steps.number, is_abandoned);
	step_budget_choose(&session.budget, session.steps.number + 1);
	session_switch_capture(schedule_action(&session.options, session.steps.index, session.steps.number + 1), false);
}

/* The program marks its steps after all: restarts the index at 0. Everything captured before stays. */
static void forget_counted(void)
{
	session.steps.has_marked = true;
	if (!session.progress.counted_by)
		return;
	schedule_forget_counted(&session.progress);
	session.steps.index = 0;
}

static void note_step(enum stepscope_capture asked, int64_t number)
{
	schedule_note(&session.progress, session_capture_of_step(asked), number);
	if (session_captures_inputs(asked))
		schedule_note_inputs(&session.progress, number);
}

void session_step_begin(int64_t number)
{
	const uint64_t payload = (uint64_t)number;
	if (!session_enter() || !session_lock_steps())
		return;
	end_open_step(false);
	if (!session.steps.has_marked)
		forget_counted();
	int64_t index = session.steps.index++;
	enum stepscope_capture capture = schedule_action(&session.options, index, number);
	step_budget_choose(&session.budget, number);
	session_switch_capture(capture, false);
	note_step(capture, number);
	session.steps.number = number;
	session.steps.is_open = true;
	stream_put(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_BEGIN, &payload, 1);
	step_cpu_begin(&session.steps.cpu);
	session_unlock_steps();
	thread_use_read(true);
}

void session_step_end(bool is_abandoned)
{
	if (!session_enter() || !session_lock_steps())
		return;
	if (is_abandoned && session.steps.is_open)
		schedule_take_back(&session.progress, session.steps.number);
	end_open_step(is_abandoned);
	session_unlock_steps();
	thread_use_read(true);
}

/* ---- steps that the program does not mark ---- */

bool session_wants_count(void)
{
	return session_enter() && session.identity.role != STEPSCOPE_ROLE_HOST &&
	       (session.options.mode != RECORD_ALWAYS || session.budget.is_on || session.progress.is_left_out);
}

/* The reading comes last: a change of the capture belongs to the event before it. */
static void tell_count(uint64_t ended)
{
	stream_put(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_COUNTED, &ended, 1);
	thread_use_read(true);
}

/* `is_odd`: several steps ended at once, so the duration of each is unknown. */
static void count_step(bool is_odd)
{
	int64_t ended = session.steps.index++;
	enum stepscope_capture was = schedule_action(&session.options, ended, ended);
	note_step(was, ended);
	session.steps.number = ended;
	step_budget_end(&session.budget, ended, is_odd);
	step_budget_choose(&session.budget, session.steps.index);
	session_switch_capture(schedule_action(&session.options, session.steps.index, session.steps.index), false);
}

void session_count_steps(unsigned count, const char *by)
{
	if (!session_enter() || session.identity.role != STEPSCOPE_ROLE_TRAINER || !session_lock_steps())
		return;
	if (!session.steps.has_marked)
		session.progress.counted_by = by;
	bool is_odd = count > 1;
	for (; count && !session.steps.has_marked; count--)
		count_step(is_odd);
	if (!session.steps.has_marked)
		tell_count((uint64_t)session.steps.index);
	session_unlock_steps();
}

void session_note_steps(unsigned count)
{
	if (session_enter() && session.identity.role == STEPSCOPE_ROLE_TRAINER && !session.steps.has_marked)
		tell_count(__atomic_add_fetch(&session.steps.noted, count, __ATOMIC_RELAXED));
}
