/* SPDX-License-Identifier: Apache-2.0
 *
 * observer.c: no malloc, no lock, no Python, and no call into PyTorch but name(). Once per thread and window it also
 * asks for the thread's number, and whether a profiler in the program follows the thread.
 */
#include "agents/torch/observer.h"

#include "agents/torch/inputs.h"
#include "agents/torch/lean.h"
#include "agents/torch/lines.h"
#include "agents/torch/names.h"
#include "agents/torch/thread.h"
#include "agents/torch/training.h"
#include "agents/torch/training_levels.h"
#include "base/hot.h"
#include "recorder/emit.h"

#include <pthread.h>
#include <string.h>

#define KINDS 6
#define KEPT_LEAST 8 /* steps: the first ones have callbacks until an optimizer was seen */

static HOT struct {
	uint64_t (*thread_id)(void);
	bool (*is_followed)(void);
	struct torch_layout layout;
	bool has_inputs, has_lines;
	bool is_counting;  /* steps, see training.h */
	uint64_t too_deep; /* records that were left out; atomic */
} observer;

/* Not in `observer`, which each record reads. Changed under `lock`. */
static struct {
	uint64_t (*add)(struct torch_callback callback);
	void (*remove)(uint64_t handle);
	void (*callbacks_of)(void *result, int scope);
	uint64_t handles[KINDS];
	bool is_started; /* by observer_start() */
	bool has_detail; /* operators are recorded */
	bool has_shapes; /* their inputs are recorded */
	bool is_on;      /* the callbacks are registered */
	bool is_asking;  /* the callbacks that ask for inputs are registered */
	uint32_t kept;   /* number of switches at which they stayed although no operators are recorded */
	uint32_t lock;
} registered;

/* Spans that started in an earlier recording do not end in this one. */
static __attribute__((noinline, cold)) void forget_earlier(struct open_records *open)
{
	uint32_t recording = __atomic_load_n(&emit_first_start, __ATOMIC_RELAXED);
	if (open->recording == recording)
		return;
	open->recording = recording;
	open_forget_begun(open);
}

static inline __attribute__((always_inline)) bool is_told(const struct open_records *open)
{
	return __builtin_expect(open->told == __atomic_load_n(&emit_starts, __ATOMIC_RELAXED), 1);
}

static uint64_t word_at(const void *record, int offset)
{
	uint64_t word;
	memcpy(&word, (const char *)record + offset, sizeof(word));
	return word;
}

static inline __attribute__((always_inline)) uint64_t sequence_of(enum torch_scope scope, const void *record)
{
	if (__builtin_expect(observer.layout.sequence < 0, 0))
		return STEPSCOPE_NO_SEQUENCE;
	uint64_t sequence = word_at(record, observer.layout.sequence);
	bool has_thread = scope == TORCH_SCOPE_BACKWARD && observer.layout.forward_thread >= 0;
	uint64_t thread = has_thread ? word_at(record, observer.layout.forward_thread) : 0;
	return (int64_t)sequence < 0 ? STEPSCOPE_NO_SEQUENCE : (sequence & 0xffffffffffffu) | thread << 48;
}

static __attribute__((noinline, cold)) void tell_thread(struct open_records *open)
{
	emit_enter(); /* in a forked child the recording starts here, not in the middle of this record's start */
	const uint64_t words[2] = {observer.thread_id ? observer.thread_id() : 0,
	                           observer.is_followed && observer.is_followed()};
	forget_earlier(open);
	open->told = __atomic_load_n(&emit_starts, __ATOMIC_RELAXED);
	if (words[0])
		emit_event(STEPSCOPE_EVENT_EXTENDED, STEPSCOPE_EXTENDED_TORCH_THREAD, words,
		           observer.is_followed ? 2 : 1);
}

static __attribute__((noinline, cold)) void leave_out(void)
{
	__atomic_add_fetch(&observer.too_deep, 1, __ATOMIC_RELAXED);
	emit_drop(STEPSCOPE_EVENT_BEGIN);
}

/* ---- ends of records that are not the innermost ------------------------------------------------------------------ */

/* tick: time of the end; 0: now. */
static void end_level(struct open_records *open, uint32_t level, uint64_t tick)
{
	const uint64_t words[2] = {open_count_above(open, level, OPEN_IS_BEGUN), tick};
	uint32_t counted = open_count_above(open, level, OPEN_IS_COUNTED);
	uint64_t flags = open_remove(open, level);
	if (observer.has_lines)
		lines_end(level - 1);
	if (flags & OPEN_IS_BEGUN && (words[0] || tick))
		emit_event(STEPSCOPE_EVENT_END, STEPSCOPE_END_BENEATH, words, tick ? 2 : 1);
	else if (flags & OPEN_IS_BEGUN)
		emit_event(STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, NULL, 0);
	if (flags & OPEN_IS_COUNTED)
		training_end_beneath(counted);
}

/* Ends the spans that started in this thread and have ended in another one. */
static __attribute__((noinline, cold)) void end_marked(struct open_records *open)
{
	uint64_t tick;
	for (uint32_t level; (level = open_find_ended(open, &tick)) != 0;)
		end_level(open, level, tick);
}

void observer_end_elsewhere(const void *record)
{
	if (!open_end_elsewhere(record, emit_now()))
		emit_drop(STEPSCOPE_EVENT_END);
}

/* Ends a record that this thread's levels do not have: it found no room, or is open in another thread. */
static void end_unknown(struct open_records *open, const void *record)
{
	if (!open || !open->deeper) {
		observer_end_elsewhere(record);
		return;
	}
	open->deeper--;
	if (observer.is_counting)
		training_end();
}

static __attribute__((noinline)) void end_other(const void *record)
{
	struct open_records *open = torch_thread ? &torch_thread->open : NULL;
	uint32_t level = 0;
	if (open) {
		if (!is_told(open))
			forget_earlier(open);
		end_marked(open);
		level = open_find(open, record);
	}
	if (level)
		end_level(open, level, 0);
	else
		end_unknown(open, record);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* asks: the record's callback asks for inputs. Other records have none to read: the bytes at that place may be
 * anything. */
static inline __attribute__((always_inline)) void begin(enum torch_scope scope, const void *record, bool asks)
{
	if (__builtin_expect(!torch_thread, 0) && !thread_make())
		return;
	struct open_records *open = &torch_thread->open;
	uint64_t flags = 0;
	if (__builtin_expect(__atomic_load_n(&open->ended, __ATOMIC_RELAXED), 0))
		end_marked(open);
	if (__builtin_expect(observer.is_counting, 0)) { /* first: it may start or end a stretch of detail */
		training_begin(scope, record);
		flags = OPEN_IS_COUNTED;
	}
	bool is_wanted = STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_DETAIL;
	if (__builtin_expect(open->depth >= OPEN_MAX, 0)) {
		open->deeper++;
		if (is_wanted)
			leave_out();
		return;
	}
	uint32_t symbol = is_wanted ? names_symbol(scope, record) : 0;
	if (__builtin_expect(!symbol, 0)) {
		open_push(open, record, flags);
		return;
	}
	if (!is_told(open))
		tell_thread(open);
	open_push(open, record, flags | OPEN_IS_BEGUN);
	bool has_inputs = asks && observer.has_inputs && (STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_SHAPES);
	uint64_t frame = observer.has_lines ? lines_begin(record, open->depth - 1) : 0;
	uint64_t where = (has_inputs ? inputs_symbol(record) : 0) | frame << 32;
	emit_begin(symbol, sequence_of(scope, record), where);
}

TORCH_START_BODY static void begin_function(const void *record)
{
	begin(TORCH_SCOPE_FUNCTION, record, false);
}
TORCH_START(start_function, begin_function)

TORCH_START_BODY static void begin_function_asking(const void *record)
{
	begin(TORCH_SCOPE_FUNCTION, record, true);
}
TORCH_START(start_function_asking, begin_function_asking)

TORCH_START_BODY static void begin_backward(const void *record)
{
	begin(TORCH_SCOPE_BACKWARD, record, false);
}
TORCH_START(start_backward, begin_backward)

TORCH_START_BODY static void begin_backward_asking(const void *record)
{
	begin(TORCH_SCOPE_BACKWARD, record, true);
}
TORCH_START(start_backward_asking, begin_backward_asking)

TORCH_START_BODY static void begin_script(const void *record)
{
	begin(TORCH_SCOPE_TORCHSCRIPT, record, false);
}
TORCH_START(start_script, begin_script)

TORCH_START_BODY static void begin_script_asking(const void *record)
{
	begin(TORCH_SCOPE_TORCHSCRIPT, record, true);
}
TORCH_START(start_script_asking, begin_script_asking)

TORCH_START_BODY static void begin_user(const void *record)
{
	begin(TORCH_SCOPE_USER, record, false);
}
TORCH_START(start_user, begin_user)

TORCH_START_BODY static void begin_user_asking(const void *record)
{
	begin(TORCH_SCOPE_USER, record, true);
}
TORCH_START(start_user_asking, begin_user_asking)

TORCH_START_BODY static void begin_static_op(const void *record)
{
	begin(TORCH_SCOPE_STATIC_OP, record, false);
}
TORCH_START(start_static_op, begin_static_op)

TORCH_START_BODY static void begin_static_model(const void *record)
{
	begin(TORCH_SCOPE_STATIC_MODEL, record, false);
}
TORCH_START(start_static_model, begin_static_model)

/* Ends a record, the innermost or another one. */
static __attribute__((noinline)) void end_any(const void *record)
{
	struct open_records *open = torch_thread ? &torch_thread->open : NULL;
	uint64_t flags = open ? open_innermost_flags(open, record) : OPEN_HAS_ENDED;
	if (flags >= OPEN_HAS_ENDED || (flags & OPEN_IS_BEGUN && !is_told(open)) || observer.has_lines) {
		end_other(record);
		return;
	}
	open_pop(open);
	if (flags & OPEN_IS_BEGUN)
		emit_event(STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, NULL, 0);
	if (flags & OPEN_IS_COUNTED)
		training_end();
}

/* The part of end_any() that nearly all records need, and no more: between two operators the caches lose our code,
 * too. */
__attribute__((hot)) static void end(const void *record, void *context)
{
	struct torch_thread *thread = torch_thread;
	if (__builtin_expect(!thread || open_innermost_flags(&thread->open, record) != OPEN_IS_BEGUN, 0) ||
	    !is_told(&thread->open) || __builtin_expect(observer.has_lines || !STEPSCOPE_ACTIVE_, 0)) {
		end_any(record);
		return;
	}
	open_pop(&thread->open);
	emit_end();
}

/* ---- our own ranges ---------------------------------------------------------------------------------------------- */

/* The number of the present start or window, for `checked`. It works like is_told(), for threads that may never run an
 * operator and so have nothing to report. It counts from 1, because the first start may be that of the range itself. */
static inline uint32_t checked_now(void)
{
	return __atomic_load_n(&emit_starts, __ATOMIC_RELAXED) + 1;
}

static __attribute__((noinline, cold)) void check_thread(struct torch_thread *thread)
{
	emit_enter(); /* as in tell_thread() */
	forget_earlier(&thread->open);
	thread->checked = checked_now();
}

/* A module's frame is the frame that calls it, so that a reader can tell frames around the module from frames in it. */
static void observer_begin_range(uint32_t symbol)
{
	uint64_t frame = observer.has_lines && registered.is_started ? lines_here() : 0;
	const uint64_t words[2] = {STEPSCOPE_NO_SEQUENCE, frame << 32};
	if (frame)
		emit_event(STEPSCOPE_EVENT_BEGIN, symbol, words, 2);
	else
		stepscope_emit_begin(symbol);
}

void observer_count(void)
{
	observer.is_counting |= emit_wants_count(); /* never unset: the ends of open records must be seen */
}

bool observer_range(uint32_t symbol, uint8_t stretch, uint32_t step, const void *key)
{
	if (!torch_thread && !thread_make())
		return false;
	struct open_records *open = &torch_thread->open;
	if (__builtin_expect(__atomic_load_n(&open->ended, __ATOMIC_RELAXED), 0))
		end_marked(open);
	if (open->depth >= OPEN_MAX) {
		if (symbol)
			leave_out();
		return false;
	}
	if (symbol && torch_thread->checked != checked_now())
		check_thread(torch_thread);
	bool is_counted = (stretch || step) && observer.is_counting;
	if (is_counted && step)
		training_profiler_step(step);
	else if (is_counted)
		training_stretch(stretch);
	if (symbol)
		observer_begin_range(symbol);
	if (symbol || is_counted)
		open_push(open, key, (symbol ? OPEN_IS_BEGUN : 0) | (is_counted ? OPEN_IS_COUNTED : 0));
	return symbol || is_counted;
}

bool observer_range_end(const void *key)
{
	struct torch_thread *thread = torch_thread;
	if (__builtin_expect(!thread, 0))
		return false;
	bool is_plain = open_innermost_flags(&thread->open, key) == OPEN_IS_BEGUN && thread->checked == checked_now() &&
	                !observer.has_lines;
	if (__builtin_expect(is_plain && STEPSCOPE_ACTIVE_, 1)) {
		open_pop(&thread->open);
		stepscope_emit_end(); /* as end_other(), but shorter */
		return true;
	}
	bool is_here = open_find(&thread->open, key) != 0;
	if (is_here)
		end_other(key);
	return is_here;
}

bool observer_range_end_with(const void *key, const uint64_t *words, unsigned count)
{
	struct torch_thread *thread = torch_thread;
	bool is_plain = thread && open_innermost_flags(&thread->open, key) == OPEN_IS_BEGUN &&
	                thread->checked == checked_now() && STEPSCOPE_ACTIVE_;
	if (!is_plain)
		return observer_range_end(key);
	open_pop(&thread->open);
	if (observer.has_lines)
		lines_end(thread->open.depth);
	emit_event(STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, words, count);
	return true;
}

bool observer_is_counting(void)
{
	return observer.is_counting;
}

static void forget_details(void)
{
	lines_forget();
	inputs_forget();
}

bool observer_call_begin(const struct training_call *call, const void *key)
{
	if ((!torch_thread && !thread_make()) || !observer.is_counting || torch_thread->open.depth >= OPEN_MAX ||
	    !training_call_begin(call))
		return false;
	open_push(&torch_thread->open, key, OPEN_IS_COUNTED);
	return true;
}

bool observer_wants_module(void)
{
	return observer.is_counting && (!torch_thread || training_wants_module());
}

/* ---- on and off -------------------------------------------------------------------------------------------------- */

/* Bounded: a signal handler may mark a step while its own thread switches. A switch that fails now comes with the next
 * step. */
static bool lock(void)
{
	for (int i = 0; i < 100000; i++)
		if (__atomic_exchange_n(&registered.lock, 1, __ATOMIC_ACQUIRE) == 0)
			return true;
	return false;
}

static void unlock(void)
{
	__atomic_store_n(&registered.lock, 0, __ATOMIC_RELEASE);
}

/* PyTorch makes a list of an operator's inputs only if a callback asks for it. The list takes up to half of the cost
 * of being observed. */
static void add_callbacks(void)
{
	static const struct {
		torch_start *start,
			*asking; /* without and with inputs; calibration did not look at the static runtime */
		enum torch_scope scope;
	} kinds[KINDS] = {{start_function, start_function_asking, TORCH_SCOPE_FUNCTION},
	                  {start_backward, start_backward_asking, TORCH_SCOPE_BACKWARD},
	                  {start_script, start_script_asking, TORCH_SCOPE_TORCHSCRIPT},
	                  {start_user, start_user_asking, TORCH_SCOPE_USER},
	                  {start_static_op, NULL, TORCH_SCOPE_STATIC_OP},
	                  {start_static_model, NULL, TORCH_SCOPE_STATIC_MODEL}};
	for (unsigned i = 0; i < KINDS; i++) {
		bool asks = registered.is_asking && kinds[i].asking;
		struct torch_callback callback = {.start = asks ? kinds[i].asking : kinds[i].start,
		                                  .end = end,
		                                  .probability = 1.0,
		                                  .needs_inputs = asks};
		callback.scopes[kinds[i].scope] = true;
		registered.handles[i] = registered.add(callback);
	}
}

static void remove_callbacks(void)
{
	for (unsigned i = KINDS; i-- > 0;)
		registered.remove(registered.handles[i]);
}

/* Call under the lock. */
static void follow_wishes(void)
{
	bool is_wanted = registered.is_started &&
	                 (registered.has_detail || (observer.is_counting && training_needs_records()));
	bool is_asking = is_wanted && registered.has_shapes && observer.has_inputs;
	if (is_wanted == registered.is_on && is_asking == registered.is_asking)
		return;
	if (registered.is_on)
		remove_callbacks();
	registered.is_asking = is_asking;
	if (is_wanted)
		add_callbacks();
	registered.is_on = is_wanted;
}

/* Steps without operators then pay for being observed, too, and cannot be used to measure that cost. */
static void note_kept(unsigned bits)
{
	if (!bits)
		registered.kept = 0; /* the recording ends */
	else if (registered.is_on && !registered.has_detail && ++registered.kept == KEPT_LEAST)
		stepscope_metadata("torch.callbacks", "in all steps: only operators show the steps");
}

static unsigned on_switch(unsigned bits)
{
	if (!lock())
		return registered.is_on ? 0 : STEPSCOPE_ACTIVE_CALLS;
	registered.has_detail = bits & STEPSCOPE_ACTIVE_DETAIL;
	registered.has_shapes = bits & STEPSCOPE_ACTIVE_SHAPES;
	follow_wishes();
	unsigned added = bits && registered.is_started && !registered.is_on ? STEPSCOPE_ACTIVE_CALLS : 0;
	note_kept(bits);
	unlock();
	return added;
}

/* A thread's first record after a switch takes a lock of PyTorch's. If another thread held it during a fork, the child
 * would have it locked for ever. So the thread that forks takes it before, and no switch happens until the fork is
 * over. */
static void hold_for_fork(void)
{
	uint64_t result[64] = {0}; /* larger than the result of PyTorch */
	(void)lock();
	if (registered.callbacks_of)
		registered.callbacks_of(result,
		                        TORCH_SCOPE_CUSTOM_CLASS); /* without callbacks, so it allocates nothing */
}

static void watch_forks(void)
{
	static bool is_watched;
	if (!is_watched)
		is_watched = pthread_atfork(hold_for_fork, unlock, unlock) == 0;
}

void observer_start(const struct torch_entry *entry, const struct torch_layout *layout, bool has_inputs, bool has_lines)
{
	training_start(entry, layout);
	observer_count();
	if (registered.is_started)
		return;
	observer.thread_id = entry->thread_id;
	observer.is_followed = entry->has_thread_callbacks;
	observer.layout = *layout;
	observer.has_inputs = has_inputs;
	observer.has_lines = has_lines;
	registered.add = entry->add_global_callback;
	registered.remove = entry->remove_callback;
	registered.callbacks_of = entry->callbacks_of;
	emit_at_fork(forget_details);
	lean_observer(start_function_asking, end); /* nodes that lean_engine.c reports have an empty list of inputs */
	watch_forks();
	bool is_held = lock();
	registered.is_started = true;
	registered.has_detail = STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_DETAIL;
	registered.has_shapes = STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_SHAPES;
	follow_wishes();
	if (is_held)
		unlock();
	emit_at_switch(on_switch);
}

void observer_follow_wishes(void)
{
	if (registered.is_started)
		emit_at_switch(on_switch);
}

void observer_settled(const struct torch_entry *entry, const struct torch_layout *layout)
{
	names_start(entry, layout->schema);
}

TORCH_START_BODY static void nothing(const void *record) {}
TORCH_START(start_nothing, nothing)

static void end_nothing(const void *record, void *context) {}

uint64_t observer_follow(const struct torch_entry *entry)
{
	struct torch_callback callback = {.start = start_nothing, .end = end_nothing, .probability = 1.0};
	callback.scopes[TORCH_SCOPE_CUSTOM_CLASS] = true;
	return entry->add_thread_callback ? entry->add_thread_callback(callback) : 0;
}

uint64_t observer_too_deep(void)
{
	return __atomic_load_n(&observer.too_deep, __ATOMIC_RELAXED);
}

void observer_stop(void)
{
	bool is_held = lock();
	registered.is_started = false;
	follow_wishes();
	if (is_held)
		unlock();
	emit_at_switch(on_switch); /* on_switch() reports that calls need not be noted either */
}
