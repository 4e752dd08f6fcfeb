/* SPDX-License-Identifier: Apache-2.0
 *
 * api.c: the functions of stepscope/stepscope.h and of emit.h. Their callers have found stepscope_active set.
 */
#include "recorder/background.h"
#include "recorder/emit.h"
#include "recorder/session.h"
#include "recorder/session_capture.h"
#include "recorder/session_facts.h"
#include "recorder/session_identity.h"
#include "recorder/session_owner.h"
#include "recorder/session_state.h"
#include "recorder/session_steps.h"
#include "recorder/shapes.h"
#include "recorder/stream.h"
#include "recorder/symbols.h"
#include "recorder/thread_use.h"

#include <unistd.h>

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* Returns a name for a span without one, because without a beginning its end would close another span. Returns 0 if
 * nothing is recorded, or if another thread takes long to start the recorder or has begun to stop it. */
static __attribute__((noinline, cold)) uint32_t no_name(void)
{
	return emit_symbol(STEPSCOPE_SYMBOL_RANGE, "(no name)", 9);
}

void stepscope_emit_begin(stepscope_name_t name)
{
	if (__builtin_expect(!name, 0) && !(name = no_name()))
		stream_drop(STEPSCOPE_EVENT_BEGIN);
	else
		stream_put(STEPSCOPE_EVENT_BEGIN, name, NULL, 0);
}

__attribute__((hot)) void stepscope_emit_end(void)
{
	stream_put(STEPSCOPE_EVENT_END, STEPSCOPE_END_DETAIL, NULL, 0);
}

void stepscope_emit_switch(stepscope_name_t name)
{
	if (__builtin_expect(!name, 0) && !(name = no_name()))
		stream_drop(STEPSCOPE_EVENT_SWITCH);
	else
		stream_put(STEPSCOPE_EVENT_SWITCH, name, NULL, 0);
}

static bool is_phase(int phase)
{
	return phase >= STEPSCOPE_PHASE_DATA && phase <= STEPSCOPE_PHASE_EVALUATION;
}

void stepscope_emit_phase_begin(int phase)
{
	if (!is_phase(phase))
		return;
	stream_put(STEPSCOPE_EVENT_BEGIN, (uint32_t)phase, NULL, 0);
	thread_use_note();
}

void stepscope_emit_phase_switch(int phase)
{
	if (!is_phase(phase))
		return;
	stream_put(STEPSCOPE_EVENT_SWITCH, (uint32_t)phase, NULL, 0);
	thread_use_note();
}

void stepscope_emit_phase_end(void)
{
	stream_put(STEPSCOPE_EVENT_END, STEPSCOPE_END_PHASE, NULL, 0);
	thread_use_note();
}

static void api_put_arg(uint32_t key, enum stepscope_arg type, uint64_t value)
{
	const uint64_t payload[2] = {(uint64_t)type, value};
	stream_put(STEPSCOPE_EVENT_ARG, key, payload, 2);
}

static uint64_t double_bits(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

void stepscope_emit_micro_batch_begin(int64_t index)
{
	stream_put(STEPSCOPE_EVENT_BEGIN, STEPSCOPE_BUILTIN_MICRO_BATCH, NULL, 0);
	api_put_arg(STEPSCOPE_BUILTIN_KEY_INDEX, STEPSCOPE_ARG_I64, (uint64_t)index);
}

/* Returns true if facts of the program's operators are recorded. They cost little, so they are kept in all steps with
 * operators, even if PyTorch is not asked for inputs. */
static bool wants_info(void)
{
	unsigned active = STEPSCOPE_ACTIVE_;
	return active & STEPSCOPE_ACTIVE_SHAPES ||
	       (active & STEPSCOPE_ACTIVE_DETAIL && session.capture.mask_detail & STEPSCOPE_ACTIVE_SHAPES);
}

void stepscope_emit_op_info(stepscope_name_t name, const struct stepscope_op_info *info)
{
	stepscope_emit_begin(name);
	if (!info || !wants_info())
		return;
	uint32_t shape = shapes_symbol(info);
	uint32_t dtype = shapes_dtype_symbol(info->dtype);
	if (shape)
		api_put_arg(STEPSCOPE_BUILTIN_KEY_SHAPE, STEPSCOPE_ARG_SYMBOL, shape);
	else if (info->input_count > 0) /* the table of names is full */
		stream_drop(STEPSCOPE_EVENT_ARG);
	if (dtype)
		api_put_arg(STEPSCOPE_BUILTIN_KEY_DTYPE, STEPSCOPE_ARG_SYMBOL, dtype);
	if (info->flops > 0)
		api_put_arg(STEPSCOPE_BUILTIN_KEY_FLOPS, STEPSCOPE_ARG_F64, double_bits(info->flops));
	if (info->bytes > 0)
		api_put_arg(STEPSCOPE_BUILTIN_KEY_BYTES, STEPSCOPE_ARG_F64, double_bits(info->bytes));
}

void stepscope_emit_alloc(const void *address, uint64_t bytes, int category, int device)
{
	const uint64_t payload[2] = {(uint64_t)(uintptr_t)address, bytes};
	if (!address || category < STEPSCOPE_MEMORY_OTHER || category > STEPSCOPE_MEMORY_BUFFER || device < -1 ||
	    device > 65000)
		return;
	stream_put(STEPSCOPE_EVENT_ALLOC, STEPSCOPE_MEMORY_ID(category, device), payload, 2);
}

void stepscope_emit_free(const void *address, int device)
{
	const uint64_t payload = (uint64_t)(uintptr_t)address;
	if (address && device >= -1 && device <= 65000)
		stream_put(STEPSCOPE_EVENT_FREE, STEPSCOPE_MEMORY_ID(0, device), &payload, 1);
}

void stepscope_emit_value(stepscope_name_t name, double value)
{
	const uint64_t bits = double_bits(value);
	if (name)
		stream_put(STEPSCOPE_EVENT_VALUE, name, &bits, 1);
	else
		stream_drop(STEPSCOPE_EVENT_VALUE);
}

void stepscope_emit_mark(stepscope_name_t name)
{
	if (name)
		stream_put(STEPSCOPE_EVENT_MARK, name, NULL, 0);
	else
		stream_drop(STEPSCOPE_EVENT_MARK);
}

void stepscope_emit_metadata(const char *key, const char *value)
{
	if (key && value && key[0] && session_enter())
		session_meta(key, value);
}

void stepscope_emit_thread_name(const char *name)
{
	if (name)
		stream_name_thread(name);
}

void stepscope_emit_step_begin(int64_t number)
{
	session_step_begin(number);
}

void stepscope_emit_step_end(void)
{
	session_step_end(false);
}

void stepscope_step_abandon(void)
{
	session_step_end(true);
}

void stepscope_emit_step_count(int what, uint64_t count)
{
	stream_put(STEPSCOPE_EVENT_STEP, what == 0 ? STEPSCOPE_STEP_TOKENS : STEPSCOPE_STEP_SAMPLES, &count, 1);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

stepscope_name_t stepscope_name(enum stepscope_kind kind, const char *name)
{
	if (!name || !STEPSCOPE_ACTIVE_)
		return 0;
	return emit_symbol((enum stepscope_symbol_kind)kind, name, (uint32_t)strnlen(name, SYMBOLS_MAX_TEXT + 1));
}

uint32_t emit_symbol(enum stepscope_symbol_kind kind, const char *text, uint32_t length)
{
	uint32_t number = symbols_intern(kind, text, length);
	/* no table exists before the first event */
	if (number == 0 && session_enter())
		number = symbols_intern(kind, text, length);
	return number;
}

/* ---- agents ------------------------------------------------------------------------------------------------------ */

static bool has_name(enum stepscope_event type)
{
	return type == STEPSCOPE_EVENT_BEGIN || type == STEPSCOPE_EVENT_SWITCH || type == STEPSCOPE_EVENT_VALUE ||
	       type == STEPSCOPE_EVENT_MARK || type == STEPSCOPE_EVENT_SPAN || type == STEPSCOPE_EVENT_SAMPLE;
}

void emit_event(enum stepscope_event type, uint32_t id, const uint64_t *payload, unsigned count)
{
	if (count > 15 || (!STEPSCOPE_ACTIVE_ && !__atomic_load_n(&session.is_ending, __ATOMIC_RELAXED)))
		return;
	if (__builtin_expect(!id, 0) && (type == STEPSCOPE_EVENT_BEGIN || type == STEPSCOPE_EVENT_SWITCH))
		id = no_name();
	if (__builtin_expect(!id, 0) && has_name(type))
		stream_drop(type);
	else
		stream_put(type, id, payload, count);
}

static __attribute__((noinline)) void put_words_slow(struct cursor *cursor, uint32_t was_busy, uint32_t head,
                                                     uint64_t first, uint64_t second)
{
	const uint64_t words[] = {first, second};
	stream_put_slow(cursor, was_busy, head, words);
}

__attribute__((hot, aligned(64))) void emit_words(uint32_t head, uint64_t first, uint64_t second)
{
	struct cursor *cursor = cursor_mine;
	uint32_t was_busy;
	if (__builtin_expect(!stream_try(cursor, &was_busy, head, (const uint64_t[]){first, second}, head >> 4 & 15, 2),
	                     0))
		put_words_slow(cursor, was_busy, head, first, second);
}

unsigned stepscope_session_number(void)
{
	return __atomic_load_n(&emit_first_start, __ATOMIC_RELAXED);
}

void emit_enter(void)
{
	(void)session_enter();
}

uint32_t emit_call(uint32_t symbol)
{
	return stream_call(symbol);
}

void stepscope_read_use(void)
{
	thread_use_note();
}

void emit_drop(enum stepscope_event type)
{
	stream_drop(type);
}

void emit_note_observer(const char *name, double cost_share)
{
	session.agent.observer = name;
	session.agent.observer_share = cost_share;
}

void emit_at_fork(void (*call)(void))
{
	__atomic_store_n(&session.agent.at_fork, call, __ATOMIC_RELEASE);
}

void emit_at_end(void (*call)(void))
{
	__atomic_store_n(&session.agent.at_end, call, __ATOMIC_RELEASE);
}

void emit_at_switch(unsigned (*call)(unsigned bits))
{
	__atomic_store_n(&session.agent.at_switch, call, __ATOMIC_RELEASE);
	session_apply_capture();
}

bool emit_has_marked(void)
{
	return __atomic_load_n(&session.steps.has_marked, __ATOMIC_RELAXED);
}

void emit_in_background(void (*call)(void))
{
	background_ask(call);
	if (drain_mode(&session.drain) == DRAIN_HERE)
		background_work();
}

bool emit_wants_count(void)
{
	return session_wants_count();
}

void emit_count_steps(unsigned count, const char *by)
{
	session_count_steps(count, by);
}

void emit_note_steps(unsigned count)
{
	session_note_steps(count);
}

void emit_note_uncounted(void)
{
	session.agent.has_uncounted = true;
}

void emit_note_profiler(const char *name)
{
	session.agent.profiler = name;
}

void emit_trains(void)
{
	session_trains();
}

void emit_rank(int32_t rank, int32_t world_size)
{
	session_tell_rank(rank, world_size);
}

bool emit_wants_shapes(void)
{
	return session_enter() && (session.options.with_shapes || session.windows.mask & STEPSCOPE_ACTIVE_SHAPES);
}

bool emit_wants_memory(void)
{
	return session_enter() && session.options.with_memory;
}

bool emit_wants_lines(void)
{
	return session_enter() && session.options.with_lines;
}

uint64_t emit_now(void)
{
	return STEPSCOPE_ACTIVE_ ? clock_ticks() : 0;
}

/* ---- a profiler in the program: python/stepscope/profiler.py ----------------------------------------------------- */

uint32_t stepscope_window_begin(unsigned with)
{
	return session_window_begin(with);
}

void stepscope_window_end(uint32_t number)
{
	session_window_end(number);
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

int stepscope_init(const char *options)
{
	const char *wish = getenv("STEPSCOPE");
	bool is_refused = wish && (strcmp(wish, "0") == 0 || strcmp(wish, "off") == 0);
	if (is_refused || (!options && !__atomic_load_n(&session.is_wanted, __ATOMIC_RELAXED))) {
		session.problem[0] = 0;
		return 0;
	}
	const struct session_start how = {.options = options, .role = STEPSCOPE_ROLE_TRAINER, .is_explicit = true};
	return session_start(&how) == START_OK ? 0 : -1;
}

const char *stepscope_error(void)
{
	return session_problem();
}

const char *stepscope_run_directory(void)
{
	return session_is_own() ? session.options.run_directory : "";
}

void stepscope_shutdown(void)
{
	session_stop("stepscope_shutdown()");
}

void stepscope_flush(void)
{
	session_flush();
}
