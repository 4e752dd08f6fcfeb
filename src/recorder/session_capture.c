/* SPDX-License-Identifier: Apache-2.0
 *
 * session_capture.c: see the header. Runs at the start and end of steps and windows, never per event.
 */
#include "recorder/session_capture.h"

#include "recorder/ranks.h"
#include "recorder/session.h"
#include "recorder/session_owner.h"
#include "recorder/session_state.h"
#include "recorder/stream.h"

void session_set_active(unsigned bits)
{
	__atomic_store_n(&stepscope_active, bits, __ATOMIC_SEQ_CST);
}

static bool captures_detail(enum stepscope_capture capture)
{
	return capture == STEPSCOPE_CAPTURE_RECORD || capture == STEPSCOPE_CAPTURE_SAVE;
}

/* A worker keeps the bits that its parent had at the fork. To switch, an agent takes a lock of the program that another
 * thread may have held at the fork. */
unsigned session_ask_agent(unsigned bits)
{
	unsigned (*at_switch)(unsigned) = __atomic_load_n(&session.agent.at_switch, __ATOMIC_ACQUIRE);
	bool is_over = __atomic_load_n(&session.is_over,
	                               __ATOMIC_SEQ_CST); /* the program's libraries are being unloaded too */
	if (at_switch && session.identity.role == STEPSCOPE_ROLE_TRAINER && !is_over)
		session.capture.switched = at_switch(bits);
	return session.capture.switched;
}

/* Returns the bits of `capture`. A step that the budget chose may have operators without inputs. If only the budget
 * leaves the operators out, rare events are still recorded. */
static unsigned capture_bits(enum stepscope_capture capture)
{
	unsigned bits = session.budget.step.has_inputs ? session.capture.mask_detail
	                                               : session.capture.mask_detail & ~STEPSCOPE_ACTIVE_SHAPES;
	if (!captures_detail(capture) || !session.capture.mask_detail)
		return STEPSCOPE_ACTIVE_STEPS;
	return STEPSCOPE_ACTIVE_STEPS | (session.budget.step.is_paused ? STEPSCOPE_ACTIVE_RARE : bits);
}

void session_switch_capture(enum stepscope_capture capture, bool is_first)
{
	bool has_detail = captures_detail(capture) && !session.budget.step.is_paused;
	bool is_window = session.windows.mask && !has_detail;
	unsigned bits = capture_bits(capture) | session.windows.mask;
	bits |= session_ask_agent(bits);
	const uint64_t payload[3] = {is_window ? STEPSCOPE_CAPTURE_RECORD : (uint64_t)capture, bits,
	                             (uint64_t)session.steps.index};
	if (!is_first && bits == STEPSCOPE_ACTIVE_ && capture == session.capture.now)
		return;
	session.capture.now = capture;
	/* the CAPTURE event must be outside the time in which detail is complete */
	if (!has_detail && !is_window)
		session_set_active(bits);
	stream_put(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_CAPTURE, payload, session.progress.counted_by ? 3 : 2);
	session_set_active(bits);
	if (session_word_phase(__atomic_load_n(&session.owner.word, __ATOMIC_SEQ_CST)) != SESSION_ON)
		session_set_active(0); /* another thread has begun a stop meanwhile */
}

bool session_lock_steps(void)
{
	/* bounded: a signal handler that marks a step while its own thread marks one must not hang */
	for (int i = 0; i < 10000; i++)
		if (__atomic_exchange_n(&session.capture.lock, 1, __ATOMIC_ACQUIRE) == 0)
			return true;
	return false;
}

void session_unlock_steps(void)
{
	__atomic_store_n(&session.capture.lock, 0, __ATOMIC_RELEASE);
}

void session_apply_capture(void)
{
	if (!session_enter() || !session_lock_steps())
		return;
	session_switch_capture(session.capture.now, false);
	session_unlock_steps();
}

/* A step that the budget leaves out has operators if a window of a profiler in the program is open. */
enum stepscope_capture session_capture_of_step(enum stepscope_capture asked)
{
	if (!session.budget.step.is_paused)
		return asked;
	return session.windows.mask ? STEPSCOPE_CAPTURE_RECORD : STEPSCOPE_CAPTURE_NONE;
}

bool session_captures_inputs(enum stepscope_capture asked)
{
	bool is_of_schedule = captures_detail(asked) && !session.budget.step.is_paused;
	unsigned bits = (is_of_schedule ? capture_bits(asked) : 0) | session.windows.mask;
	return bits & STEPSCOPE_ACTIVE_SHAPES;
}

void session_choose_detail(void)
{
	session.capture.mask_detail = STEPSCOPE_ACTIVE_DETAIL |
	                              (session.options.with_shapes ? STEPSCOPE_ACTIVE_SHAPES : 0) |
	                              (session.options.with_memory ? STEPSCOPE_ACTIVE_MEMORY : 0);
	session.progress.rank = session.identity.job.rank;
	session.progress.is_left_out = !ranks_selected(&session.options, &session.identity.job);
	if (session.progress.is_left_out)
		session.capture.mask_detail = 0;
}

/* ---- windows of a profiler in the program, beside the schedule ---------------- */

static void put_window(uint32_t number, bool is_begin)
{
	const uint64_t payload[2] = {number, is_begin};
	stream_put(STEPSCOPE_EVENT_STEP, STEPSCOPE_STEP_WINDOW, payload, 2);
}

uint32_t session_window_begin(unsigned with)
{
	if (!session_enter() || !session_lock_steps())
		return 0;
	uint32_t number = ++session.windows.count;
	session.windows.open++;
	session.windows.mask |= STEPSCOPE_ACTIVE_DETAIL | (with & SESSION_ALL_BITS);
	put_window(number, true);
	__atomic_fetch_add(&emit_starts, 1, __ATOMIC_RELAXED);
	session_switch_capture(session.capture.now, false);
	session_unlock_steps();
	return number;
}

void session_window_end(uint32_t number)
{
	if (!number || !session_enter() || !session_lock_steps())
		return;
	if (session.windows.open && --session.windows.open == 0)
		session.windows.mask = 0;
	put_window(number, false);
	session_switch_capture(session.capture.now, false);
	session_unlock_steps();
}
