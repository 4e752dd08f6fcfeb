/* SPDX-License-Identifier: Apache-2.0
 *
 * emit.h: the only header of the recorder that agents, host telemetry and the sampler may include (host also starts and
 * stops its own session, see session.h). Any thread; never fails towards the caller.
 */
#ifndef RECORDER_EMIT_H
#define RECORDER_EMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stepscope/format.h>
#include <stepscope/stepscope.h>

/* Interns a name of any kind (stepscope_name() takes only the public ones). 0 when off, and for values and texts when full. */
uint32_t emit_symbol(enum stepscope_symbol_kind kind, const char *text, uint32_t length);

/* Emits one event with up to 15 payload words at the current time. Without a name (id 0) it is counted as dropped, but what
 * begins is recorded as "(no name)". */
void emit_event(enum stepscope_event type, uint32_t id, const uint64_t *payload, unsigned count);

#define EMIT_HEAD(type, count, id) ((uint32_t)(id) << 8 | (uint32_t)(count) << 4 | (uint32_t)(type))

/* emit_event() in fewer instructions, for what an agent emits often, and only while something is recorded: up to two words, and 0 for those that
 * `head`, an EMIT_HEAD() with a name, does not count. All of it goes through these same two lines of code: between two events the program's kernels
 * push code out of the processor's caches, and what an event has just used is there for the next one. */
void emit_words(uint32_t head, uint64_t first, uint64_t second);

/* The beginning of a span with its name and the words STEPSCOPE_BEGIN_SEQUENCE and STEPSCOPE_BEGIN_WHERE, as many as are needed. */
static inline void emit_begin(uint32_t name, uint64_t sequence, uint64_t where)
{
	bool has_number = sequence != STEPSCOPE_NO_SEQUENCE;
	unsigned count = where ? 2 : has_number;
	emit_words(EMIT_HEAD(STEPSCOPE_EVENT_BEGIN, count, name), count ? sequence : 0, where);
}

/* Of the innermost one. */
static inline void emit_end(void)
{
	emit_words(EMIT_HEAD(STEPSCOPE_EVENT_END, 0, STEPSCOPE_END_DETAIL), 0, 0);
}

/* Memory of the CPU whose category is found out later, and its release. */
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

/* Begins what the first event would: the recording of a forked child. */
void emit_enter(void);

/* Notes for the rescue that this thread is in a call with that name (0: in none), which no event tells of. Returns the name before, which the
 * end of the call gives back. */
uint32_t emit_call(uint32_t symbol);

/* Counts an event that the agent could not record. */
void emit_drop(enum stepscope_event type);

/* A value of a counter in the process's own time line. */
static inline void emit_counter(uint32_t symbol, double value)
{
	uint64_t bits;
	__builtin_memcpy(&bits, &value, 8);
	emit_event(STEPSCOPE_EVENT_VALUE, symbol, &bits, 1);
}

/* Ends the open step where a profiler in the program stops: most likely the step had only been announced, or is cut short. It does not
 * count as a complete one. */
STEPSCOPE_API void stepscope_step_abandon(void);
/* Between them a profiler in the program wants detail, whatever the schedule says, and what else its bits (STEPSCOPE_ACTIVE_*) say. The
 * number tells readers which stretch; 0: nothing is recorded. Called from Python. */
STEPSCOPE_API uint32_t stepscope_window_begin(unsigned with);
STEPSCOPE_API void stepscope_window_end(uint32_t number);

/* Operators are recorded without the program's doing: by whom ("PyTorch", a literal), for what is said at the end; and what that costs, as a share
 * of what it costs without anything that makes it cheaper, for the budget's table. */
void emit_note_observer(const char *name, double cost_share);

/* Is the recording of a part of the steps, so that they must be counted where the program does not mark them? */
bool emit_wants_count(void);

/* So many steps have just ended in this thread; `by` (a literal) says how that was found out. No effect once the program has marked
 * a step itself. */
void emit_count_steps(unsigned count, const char *by);

/* The same where nothing depends on it (emit_wants_count() is false): for what is said of a program that is killed. */
void emit_note_steps(unsigned count);

/* From now on not all that end are told that way. */
void emit_note_uncounted(void);

/* A profiler of the program's own (a literal says which) marks steps, in ranges that the report takes for steps. */
void emit_note_profiler(const char *name);

/* This process trains: it calls an optimizer, or accumulates gradients. A forked child that does is no worker of its parent, and has a
 * schedule of its own. Each time; only the first one costs anything. */
void emit_trains(void);

/* What the program says it is, which wins over the environment: world_size -1: not known. */
void emit_rank(int32_t rank, int32_t world_size);

/* Did the user ask for shapes (--with shapes)? To be known before the first event is captured. */
bool emit_wants_shapes(void);
bool emit_wants_memory(void); /* the same for --with memory */
bool emit_wants_lines(void);  /* and for --with lines */

/* Called when a recording ends, by the thread that ends it, while events are still taken. A function of an agent's, one for all. */
void emit_at_end(void (*call)(void));

/* Called now, and by the thread that switches, before what is captured changes: `bits` are the STEPSCOPE_ACTIVE_* bits to come, 0 when the recording ends.
 * Returns the bits that the agent adds to them. Under the lock of steps: it must not mark steps. Not in workers. A function of an agent's, one
 * for all. */
void emit_at_switch(unsigned (*call)(unsigned bits));

/* True if the program marks its steps itself. */
bool emit_has_marked(void);

/* Called in a child that fork() made, where no other thread runs yet: names of inputs and frames that were made before it have no place in the
 * child's recording, and are made anew, with other numbers. A function of an agent's, one for all; without it they keep theirs. */
void emit_at_fork(void (*call)(void));

/* Once, soon: by the recorder's own thread, or by this one where that has none. Later, with the next start, when it is off. A fork
 * waits for it. One at a time. */
void emit_in_background(void (*call)(void));

/* Counts the starts of the recorder, forks, and the windows of profilers: what was said of a thread before one has to
 * be said again. Atomic. */
extern uint32_t emit_starts;

/* emit_starts as the recording began with it: what began in an earlier one does not end in this one. Atomic. */
extern uint32_t emit_first_start;

/* Counts the files after the first one where older ones are removed: what was said in those has to be said again. Atomic. */
extern uint32_t emit_rotations;
STEPSCOPE_API unsigned stepscope_session_number(void); /* for Python */

/* Ticks of the session's clock now; 0 when off. */
uint64_t emit_now(void);

#endif
