/* SPDX-License-Identifier: Apache-2.0
 *
 * emit.h: the recorder's interface for agents, host telemetry and the sampler. They include no other header of the
 * recorder, except that host uses session.h to start and stop its session. Any thread; no function reports an error to
 * the caller.
 */
#ifndef RECORDER_EMIT_H
#define RECORDER_EMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stepscope/format.h>
#include <stepscope/stepscope.h>

/* Interns a name of any kind (stepscope_name() takes only the public ones). Returns 0 if the recorder is off, or, for
 * values, texts, facts, inputs and frames, if the table is full. */
uint32_t emit_symbol(enum stepscope_symbol_kind kind, const char *text, uint32_t length);

/* Emits one event with up to 15 payload words at the current time. If an event that needs a name has none (id 0), it is
 * counted as dropped, except that BEGIN and SWITCH are recorded as "(no name)". */
void emit_event(enum stepscope_event type, uint32_t id, const uint64_t *payload, unsigned count);

#define EMIT_HEAD(type, count, id) ((uint32_t)(id) << 8 | (uint32_t)(count) << 4 | (uint32_t)(type))

/* emit_event() in fewer instructions, for frequent events. Call it only while something is recorded. `head` is an
 * EMIT_HEAD() with a name and up to two payload words; words that it does not count must be 0. All such events share
 * two cache lines of code. Between two events the program's kernels evict other code from the caches, but these lines
 * were just used. */
void emit_words(uint32_t head, uint64_t first, uint64_t second);

/* Emits the BEGIN of a span with the words STEPSCOPE_BEGIN_SEQUENCE and STEPSCOPE_BEGIN_WHERE, without trailing empty
 * ones. */
static inline void emit_begin(uint32_t name, uint64_t sequence, uint64_t where)
{
	bool has_number = sequence != STEPSCOPE_NO_SEQUENCE;
	unsigned count = where ? 2 : has_number;
	emit_words(EMIT_HEAD(STEPSCOPE_EVENT_BEGIN, count, name), count ? sequence : 0, where);
}

/* Ends the innermost span. */
static inline void emit_end(void)
{
	emit_words(EMIT_HEAD(STEPSCOPE_EVENT_END, 0, STEPSCOPE_END_DETAIL), 0, 0);
}

/* Records a CPU allocation, whose category readers infer, or its release. */
static inline void emit_alloc(const void *address, uint64_t bytes)
{
	uint32_t id = STEPSCOPE_MEMORY_ID(STEPSCOPE_MEMORY_UNKNOWN, STEPSCOPE_DEVICE_CPU);
	emit_words(EMIT_HEAD(STEPSCOPE_EVENT_ALLOC, 2, id), (uint64_t)(uintptr_t)address, bytes);
}

static inline void emit_free(const void *address)
{
	uint32_t id = STEPSCOPE_MEMORY_ID(0, STEPSCOPE_DEVICE_CPU);
	emit_words(EMIT_HEAD(STEPSCOPE_EVENT_FREE, 1, id), (uint64_t)(uintptr_t)address, 0);
}

/* Starts the recording as the first event would, for example in a forked child. */
void emit_enter(void);

/* Notes for the rescue that this thread is in a call named `symbol` (0: in no call) that no event records. Returns the
 * previous symbol, which the caller restores at the end of the call. */
uint32_t emit_call(uint32_t symbol);

/* Reads the CPU time of the calling thread, see thread_use.h. Call it only while something is recorded, at the start and
 * end of a wait or of a part of a step. Called from Python. */
STEPSCOPE_API void stepscope_read_use(void);

/* Counts an event that the agent could not record. */
void emit_drop(enum stepscope_event type);

/* Emits a value of a counter. */
static inline void emit_counter(uint32_t symbol, double value)
{
	uint64_t bits;
	__builtin_memcpy(&bits, &value, 8);
	emit_event(STEPSCOPE_EVENT_VALUE, symbol, &bits, 1);
}

/* Ends the open step because a profiler in the program stops. The step was most likely only announced, or is cut short,
 * so it does not count as complete. */
STEPSCOPE_API void stepscope_step_abandon(void);
/* Start and end of a window, in which a profiler in the program records detail whatever the schedule says, plus the
 * STEPSCOPE_ACTIVE_* bits of `with`. The number identifies the window to readers; 0: nothing is recorded. Called from
 * Python. */
STEPSCOPE_API uint32_t stepscope_window_begin(unsigned with);
STEPSCOPE_API void stepscope_window_end(uint32_t number);

/* Notes that `name` ("PyTorch", a literal) records operators without calls from the program, for the closing line.
 * `cost_share` is its cost relative to the cost without any optimization, for the budget's table. */
void emit_note_observer(const char *name, double cost_share);

/* Returns true if only some steps are recorded, so that the agent must count steps that the program does not mark. */
bool emit_wants_count(void);

/* Notes that `count` steps have just ended in this thread; `by` (a literal) names the method that found them. Has no
 * effect once the program has marked a step. */
void emit_count_steps(unsigned count, const char *by);

/* Like emit_count_steps(), if emit_wants_count() is false and the recording does not depend on the count. It is used
 * only in the message about a program that was killed. */
void emit_note_steps(unsigned count);

/* Notes that from now on some steps end without being counted. */
void emit_note_uncounted(void);

/* Notes that a profiler in the program (`name`, a literal) marks steps with ranges, which the report takes as steps. */
void emit_note_profiler(const char *name);

/* Notes that this process trains: it calls an optimizer or accumulates gradients. A forked child that trains is not a
 * worker of its parent and has its own schedule. Call it each time; only the first call has a cost. */
void emit_trains(void);

/* Sets the rank that the program reports, which overrides the environment. world_size -1: unknown. */
void emit_rank(int32_t rank, int32_t world_size);

/* Returns true if shapes are wanted: by the user (--with shapes) or by an open window. Valid before the first event is
 * captured. */
bool emit_wants_shapes(void);
bool emit_wants_memory(void); /* likewise for --with memory */
bool emit_wants_lines(void);  /* likewise for --with lines */

/* Sets the function (one for all agents) that the recorder calls at the end of a recording, in the thread that ends it,
 * while events are still accepted. */
void emit_at_end(void (*call)(void));

/* Sets the function (one for all agents) that the recorder calls now, and later before each change of the capture, in
 * the thread that makes the change. `bits` are the STEPSCOPE_ACTIVE_* bits to come, 0 at the end of the recording; the
 * function returns the bits that the agent adds to them. It runs under the lock of steps, so it must not mark steps. It
 * is called in trainers only, not in workers. */
void emit_at_switch(unsigned (*call)(unsigned bits));

/* Returns true if the program marks its steps. */
bool emit_has_marked(void);

/* Sets the function (one for all agents) that the recorder calls in a child of fork(), where no other thread runs yet.
 * The parent's names of inputs and frames are then not part of the child's recording, and the agent must intern them
 * again, under new numbers. Without such a function they keep their numbers. */
void emit_at_fork(void (*call)(void));

/* Runs `call` once, soon: in the recorder's thread, or in the calling thread if the recorder has none. If the recorder
 * is off, `call` runs at the next start. A fork waits for it. One request at a time. */
void emit_in_background(void (*call)(void));

/* Counts starts of the recorder, forks, and windows of profilers. After each of them, facts about a thread must be
 * emitted again. Atomic. */
extern uint32_t emit_starts;

/* The value of emit_starts at the start of the recording. A span that began in an earlier recording must not end in
 * this one. Atomic. */
extern uint32_t emit_first_start;

/* Counts files after the first one, if rotation removes older ones. The content of the removed files must be emitted
 * again if later events need it. Atomic. */
extern uint32_t emit_rotations;
STEPSCOPE_API unsigned stepscope_session_number(void); /* for Python */

/* Returns the current tick of the session's clock, or 0 if the recorder is off. */
uint64_t emit_now(void);

#endif
