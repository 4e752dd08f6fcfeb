/* SPDX-License-Identifier: Apache-2.0
 *
 * stepscope.h: marks steps, phases and operations of a training program, so that stepscope can report where each step's
 * time goes.
 *
 *     #include <stepscope/stepscope.h>
 *
 *     for (long n = 0; n < steps; n++) {
 *         stepscope_step_begin(n);
 *         stepscope_phase_begin(STEPSCOPE_PHASE_DATA);
 *         load_batch(&batch);
 *         stepscope_phase_switch(STEPSCOPE_PHASE_FORWARD);
 *         loss = forward(&model, &batch);
 *         stepscope_phase_end();
 *         stepscope_step_tokens(batch.tokens);
 *         stepscope_metric("loss", loss);
 *         stepscope_step_end();
 *     }
 *
 * Build with `cc train.c $(pkg-config --cflags --libs stepscope)` and start the program with
 * `stepscope run -- ./train`; then `stepscope report`. No call is needed to start or stop: the first event starts the
 * recorder if `stepscope run` (or STEPSCOPE=1 in the environment) asks for it, and the exit of the process ends it.
 * Without either, nothing is recorded and a call costs one predictable branch.
 *
 * COST. A pair of begin and end calls costs two clock reads. After a thread's first events, its path has no allocation,
 * lock, system call or page fault. Memory is bounded (16 MiB by default). If the buffers are full, events are dropped
 * and counted, and every report prints the count. The program is never blocked or stopped.
 *
 * THREADS. Every function may be called from any thread. The first event of a process starts the recorder; the first
 * event of a thread registers the thread. After that event, signal handlers of the thread may call a function too,
 * unless its comment says otherwise. If a handler leaves by siglongjmp(), the thread's later events go to a separate
 * stream.
 *
 * Ranges, phases, ops and micro-batches nest per thread: an end closes the innermost open one of the calling thread.
 * Steps belong to the process: mark them from one thread (the training loop's).
 *
 * NAMES are UTF-8 and at most 65,000 bytes long; longer ones are cut. They are copied at the first use, so the pointer
 * may be freed or unmapped right after the call. Thread names are cut to 31 bytes, metadata keys to 256 bytes and
 * metadata values to 2,100.
 *
 * A name passed as a string is looked up by content on each call (about 10 ns). Hot code should intern it once with
 * stepscope_name(), or use the STEPSCOPE_* macros at the end, which do so per call site.
 *
 * ERRORS. No function reports an error to the caller, except stepscope_init(), whose caller may want to print the
 * reason. If the recorder cannot work, it turns itself off and writes the reason in one line to stderr and into the
 * recording.
 *
 * Define STEPSCOPE_DISABLE before including this header to compile every call away.
 * Times are in nanoseconds, sizes in bytes, counts are plain numbers. C11 and C++17.
 */
#ifndef STEPSCOPE_H
#define STEPSCOPE_H

#include <stddef.h>
#include <stdint.h>

#define STEPSCOPE_VERSION "0.1.0"

#if defined(__GNUC__)
#define STEPSCOPE_API __attribute__((visibility("default")))
#define STEPSCOPE_UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define STEPSCOPE_API
#define STEPSCOPE_UNLIKELY(x) (x)
#endif

#ifdef __cplusplus
#define STEPSCOPE_INT_(x) static_cast<int>(x)
#else
#define STEPSCOPE_INT_(x) ((int)(x))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- vocabulary ------------------------------------------------------------------------------------------------ */

/* The purpose of a part of a step. A phase may contain ranges and ops. Step time outside all phases is reported as
 * "other". */
enum stepscope_phase {
	STEPSCOPE_PHASE_DATA = 1, /* waiting for the next batch, and moving it into place */
	STEPSCOPE_PHASE_FORWARD = 2,
	STEPSCOPE_PHASE_BACKWARD = 3,
	STEPSCOPE_PHASE_OPTIMIZER = 4,
	STEPSCOPE_PHASE_COMMUNICATION = 5,
	STEPSCOPE_PHASE_CHECKPOINT = 6,
	STEPSCOPE_PHASE_EVALUATION = 7,
};

/* The purpose of an allocation. */
enum stepscope_memory {
	STEPSCOPE_MEMORY_OTHER = 0,
	STEPSCOPE_MEMORY_PARAMETER = 1,
	STEPSCOPE_MEMORY_GRADIENT = 2,
	STEPSCOPE_MEMORY_OPTIMIZER = 3, /* optimizer state */
	STEPSCOPE_MEMORY_ACTIVATION = 4,
	STEPSCOPE_MEMORY_INPUT = 5,
	STEPSCOPE_MEMORY_TEMPORARY = 6,
	STEPSCOPE_MEMORY_AUTOGRAD = 7, /* temporary state of the backward pass */
	STEPSCOPE_MEMORY_BUFFER = 8,   /* model state other than parameters */
};

#define STEPSCOPE_DEVICE_CPU (-1) /* device number of host memory; devices are numbered from 0 */

/* Element types of tensors, for stepscope_op_begin_info(). */
enum stepscope_dtype {
	STEPSCOPE_DTYPE_UNKNOWN = 0,
	STEPSCOPE_DTYPE_F64,
	STEPSCOPE_DTYPE_F32,
	STEPSCOPE_DTYPE_F16,
	STEPSCOPE_DTYPE_BF16,
	STEPSCOPE_DTYPE_F8,
	STEPSCOPE_DTYPE_I64,
	STEPSCOPE_DTYPE_I32,
	STEPSCOPE_DTYPE_I16,
	STEPSCOPE_DTYPE_I8,
	STEPSCOPE_DTYPE_U8,
	STEPSCOPE_DTYPE_BOOL,
};

#define STEPSCOPE_MAX_DIMS 8
#define STEPSCOPE_MAX_INPUTS 4

/* Optional facts about one op. A member left zero is not given, and reports show "not measured" for it. */
struct stepscope_op_info {
	int input_count;                                         /* number of tensors below, 0..STEPSCOPE_MAX_INPUTS */
	int rank[STEPSCOPE_MAX_INPUTS];                          /* dimensions of each tensor, 0..STEPSCOPE_MAX_DIMS */
	int64_t shape[STEPSCOPE_MAX_INPUTS][STEPSCOPE_MAX_DIMS]; /* sizes in elements, outermost first */
	enum stepscope_dtype dtype;                              /* element type of the first input */
	double flops;                                            /* floating point operations of this call */
	double bytes;                                            /* bytes read and written by this call */
};

/* An interned name; 0 means no name. A range or op that begins with 0 is recorded as "(no name)", so that its end does
 * not close another span. A value or mark with 0 is dropped and counted. */
typedef uint32_t stepscope_name_t;

/* The kind of event that a name is for. A string interned under two kinds has two numbers. */
enum stepscope_kind {
	STEPSCOPE_KIND_RANGE = 1,
	STEPSCOPE_KIND_OP = 3,
	STEPSCOPE_KIND_COUNTER = 4,
	STEPSCOPE_KIND_MARK = 5,
	STEPSCOPE_KIND_METRIC = 6,
};

/* ---- recording state ------------------------------------------------------------------------------------------ */

/* Bits of stepscope_active: the kinds of events that are recorded now. Read it, never write it. In the wait steps of a
 * schedule only STEPSCOPE_ACTIVE_STEPS is set. With STEPSCOPE_DISABLE it is the constant 0. */
#define STEPSCOPE_ACTIVE_STEPS 1u  /* steps, phases, counters, metrics, marks */
#define STEPSCOPE_ACTIVE_DETAIL 2u /* ranges and ops */
#define STEPSCOPE_ACTIVE_SHAPES 4u /* facts of struct stepscope_op_info */
#define STEPSCOPE_ACTIVE_MEMORY 8u /* memory allocations and releases */
#define STEPSCOPE_ACTIVE_CALLS 16u /* an agent gets no operators and records calls of PyTorch functions instead */
#define STEPSCOPE_ACTIVE_RARE 32u  /* budget skips operators; agents record rare events (garbage collections) */

#ifndef STEPSCOPE_DISABLE

extern STEPSCOPE_API unsigned stepscope_active;
#if defined(__GNUC__)
#define STEPSCOPE_ACTIVE_ __atomic_load_n(&stepscope_active, __ATOMIC_RELAXED)
#else
#define STEPSCOPE_ACTIVE_ stepscope_active
#endif

/* ---- out-of-line parts; call the inline functions below instead ------------------------------------------------- */
STEPSCOPE_API void stepscope_emit_step_begin(int64_t number);
STEPSCOPE_API void stepscope_emit_step_end(void);
STEPSCOPE_API void stepscope_emit_step_count(int what, uint64_t count);
STEPSCOPE_API void stepscope_emit_micro_batch_begin(int64_t index);
STEPSCOPE_API void stepscope_emit_phase_begin(int phase);
STEPSCOPE_API void stepscope_emit_phase_switch(int phase);
STEPSCOPE_API void stepscope_emit_phase_end(void);
STEPSCOPE_API void stepscope_emit_begin(stepscope_name_t name);
STEPSCOPE_API void stepscope_emit_switch(stepscope_name_t name);
STEPSCOPE_API void stepscope_emit_end(void);
STEPSCOPE_API void stepscope_emit_op_info(stepscope_name_t name, const struct stepscope_op_info *info);
STEPSCOPE_API void stepscope_emit_alloc(const void *address, uint64_t bytes, int category, int device);
STEPSCOPE_API void stepscope_emit_free(const void *address, int device);
STEPSCOPE_API void stepscope_emit_value(stepscope_name_t name, double value);
STEPSCOPE_API void stepscope_emit_mark(stepscope_name_t name);
STEPSCOPE_API void stepscope_emit_metadata(const char *key, const char *value);
STEPSCOPE_API void stepscope_emit_thread_name(const char *name);

/* ---- start and stop (optional) ---------------------------------------------------------------------------------- */

/* Starts recording now instead of at the first event. `options` is NULL (use the environment) or a list such as
 * "wait=1,warmup=1,active=3,with=shapes:memory,out=/tmp/run", with the option names of `stepscope run --help`. If both
 * set an option, the environment wins. Not for signal handlers.
 *
 * Returns 0 if the recorder runs, also if it ran before the call. Returns 0 too if the environment does not ask for
 * recording, or if recording is off (enabled=false). Otherwise returns -1, and stepscope_error() returns the reason in
 * one line. */
STEPSCOPE_API int stepscope_init(const char *options);

/* Returns the reason why the last stepscope_init() failed, or "" if it did not fail. Valid until the next call of
 * stepscope_init(). */
STEPSCOPE_API const char *stepscope_error(void);

/* Returns the directory of this process's recording as an absolute path, or "" if nothing has been recorded yet. Valid
 * until the next start of the recorder. */
STEPSCOPE_API const char *stepscope_run_directory(void);

/* Writes all pending events and closes the recording. This takes at most 50 ms with full buffers and a working disk. It
 * waits at most 1 s for threads that are stopped inside a call and 10 s for a disk that does not answer; the rescue
 * writes the rest. Called automatically at exit; no recording starts after that. Not for signal handlers.
 *
 * stepscope_init() starts recording again. Open steps, phases and ranges end with the recording. If their end call
 * comes in a later recording, it closes nothing there, and reports count it. */
STEPSCOPE_API void stepscope_shutdown(void);

/* Writes everything recorded so far to the file before it returns. If the disk does not accept the data, it returns
 * after one second. Not for signal handlers. */
STEPSCOPE_API void stepscope_flush(void);

/* Returns the number of the name: the same for equal strings of the same kind, for the life of the process and in
 * forked children. Returns 0 if the recorder is off. If the table of names is full (about 250,000), returns the number
 * of "(too many names)", or 0 for counters and metrics. */
STEPSCOPE_API stepscope_name_t stepscope_name(enum stepscope_kind kind, const char *name);

/* Returns 1 if detail is recorded now. For callers that compute something for the recording only. */
static inline int stepscope_is_recording(void)
{
	return (STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_DETAIL) != 0;
}

#define STEPSCOPE_IF_(bits, call)                                                                                      \
	do {                                                                                                           \
		if (STEPSCOPE_UNLIKELY(STEPSCOPE_ACTIVE_ & (bits)))                                                    \
			call;                                                                                          \
	} while (0)

/* ---- steps ------------------------------------------------------------------------------------------------------ */

/* Begins optimizer step `number` (any numbering; 0-based is usual). If a step is open, it ends first. */
static inline void stepscope_step_begin(int64_t number)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_step_begin(number));
}

/* Ends the open step and advances the schedule. Without an open step, it has no effect. */
static inline void stepscope_step_end(void)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_step_end());
}

/* Adds tokens or samples to the open step; reports turn them into rates such as tokens/s. */
static inline void stepscope_step_tokens(uint64_t tokens)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_step_count(0, tokens));
}
static inline void stepscope_step_samples(uint64_t samples)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_step_count(1, samples));
}

/* Begins one forward/backward pass of gradient accumulation inside a step; `index` counts from 0 in each step. */
static inline void stepscope_micro_batch_begin(int64_t index)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_micro_batch_begin(index));
}
static inline void stepscope_micro_batch_end(void)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_phase_end());
}

/* ---- phases: recorded in every step, also in the wait steps of a schedule ---------------------------------------- */

static inline void stepscope_phase_begin(enum stepscope_phase phase)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_phase_begin(STEPSCOPE_INT_(phase)));
}
static inline void stepscope_phase_end(void)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_phase_end());
}
/* Ends the innermost open phase and begins `phase` at the same instant, with one clock read. */
static inline void stepscope_phase_switch(enum stepscope_phase phase)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_phase_switch(STEPSCOPE_INT_(phase)));
}

/* ---- ranges and ops ---------------------------------------------------------------------------------------------- */

/* Begins a range for any part of the program: a function, a layer, ... */
static inline void stepscope_range_push(const char *name)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_DETAIL, stepscope_emit_begin(stepscope_name(STEPSCOPE_KIND_RANGE, name)));
}
static inline void stepscope_range_push_name(stepscope_name_t name)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_DETAIL, stepscope_emit_begin(name));
}
static inline void stepscope_range_pop(void)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_DETAIL, stepscope_emit_end());
}
/* Ends the innermost open range and begins `name` at the same instant: one event and one clock read instead of two. */
static inline void stepscope_range_switch(const char *name)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_DETAIL, stepscope_emit_switch(stepscope_name(STEPSCOPE_KIND_RANGE, name)));
}
static inline void stepscope_range_switch_name(stepscope_name_t name)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_DETAIL, stepscope_emit_switch(name));
}

/* Begins a mathematical operation, with or without facts. `info` is read only during the call. Its facts are recorded
 * only with `--with shapes`. */
static inline void stepscope_op_begin(const char *name)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_DETAIL, stepscope_emit_begin(stepscope_name(STEPSCOPE_KIND_OP, name)));
}
static inline void stepscope_op_begin_name(stepscope_name_t name)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_DETAIL, stepscope_emit_begin(name));
}
static inline void stepscope_op_begin_info(stepscope_name_t name, const struct stepscope_op_info *info)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_DETAIL, stepscope_emit_op_info(name, info));
}
static inline void stepscope_op_end(void)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_DETAIL, stepscope_emit_end());
}

/* ---- memory (`--with memory`) ------------------------------------------------------------------------------------ */

static inline void stepscope_memory_alloc(const void *address, uint64_t bytes, enum stepscope_memory category,
                                          int device)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_MEMORY, stepscope_emit_alloc(address, bytes, STEPSCOPE_INT_(category), device));
}
static inline void stepscope_memory_free(const void *address, int device)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_MEMORY, stepscope_emit_free(address, device));
}

/* ---- values, marks, metadata ------------------------------------------------------------------------------------- */

/* Sets a quantity over time (queue length, bytes in flight) to `value` from now on. */
static inline void stepscope_counter(const char *name, double value)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS,
	              stepscope_emit_value(stepscope_name(STEPSCOPE_KIND_COUNTER, name), value));
}
/* Records a result of the open step (loss, gradient norm, learning rate). NaN and infinity are kept. */
static inline void stepscope_metric(const char *name, double value)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_value(stepscope_name(STEPSCOPE_KIND_METRIC, name), value));
}
static inline void stepscope_value_name(stepscope_name_t name, double value)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_value(name, value));
}
/* Records that something happened at this instant. */
static inline void stepscope_mark(const char *name)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_mark(stepscope_name(STEPSCOPE_KIND_MARK, name)));
}
/* Records a fact about the run (model name, batch size). The last value of a key wins. Not for signal handlers. */
static inline void stepscope_metadata(const char *key, const char *value)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_metadata(key, value));
}
/* Names the calling thread in reports, which otherwise show its kernel name. Not for signal handlers. */
static inline void stepscope_thread_name(const char *name)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_thread_name(name));
}

/* ---- interning per call site: a name is looked up once, then costs one load -------------------------------------- */
#define STEPSCOPE_SITE_(kind, literal, call)                                                                           \
	do {                                                                                                           \
		static stepscope_name_t stepscope_site_;                                                               \
		if (STEPSCOPE_UNLIKELY(STEPSCOPE_ACTIVE_ & STEPSCOPE_ACTIVE_DETAIL)) {                                 \
			stepscope_name_t stepscope_n_ = __atomic_load_n(&stepscope_site_, __ATOMIC_RELAXED);           \
			if (stepscope_n_ == 0) {                                                                       \
				stepscope_n_ = stepscope_name(kind, literal);                                          \
				__atomic_store_n(&stepscope_site_, stepscope_n_, __ATOMIC_RELAXED);                    \
			}                                                                                              \
			call(stepscope_n_);                                                                            \
		}                                                                                                      \
	} while (0)
#define STEPSCOPE_RANGE_PUSH(literal) STEPSCOPE_SITE_(STEPSCOPE_KIND_RANGE, literal, stepscope_emit_begin)
#define STEPSCOPE_RANGE_SWITCH(literal) STEPSCOPE_SITE_(STEPSCOPE_KIND_RANGE, literal, stepscope_emit_switch)
#define STEPSCOPE_OP_BEGIN(literal) STEPSCOPE_SITE_(STEPSCOPE_KIND_OP, literal, stepscope_emit_begin)

#else  /* STEPSCOPE_DISABLE: the same names without effect */
/* clang-format off */

enum { stepscope_active = 0 };
static inline int stepscope_init(const char *options) { (void)options; return 0; }
static inline const char *stepscope_error(void) { return ""; }
static inline const char *stepscope_run_directory(void) { return ""; }
static inline void stepscope_shutdown(void) {}
static inline void stepscope_flush(void) {}
static inline stepscope_name_t stepscope_name(enum stepscope_kind kind, const char *name) { (void)kind; (void)name; return 0; }
static inline int stepscope_is_recording(void) { return 0; }
static inline void stepscope_step_begin(int64_t number) { (void)number; }
static inline void stepscope_step_end(void) {}
static inline void stepscope_step_tokens(uint64_t tokens) { (void)tokens; }
static inline void stepscope_step_samples(uint64_t samples) { (void)samples; }
static inline void stepscope_micro_batch_begin(int64_t index) { (void)index; }
static inline void stepscope_micro_batch_end(void) {}
static inline void stepscope_phase_begin(enum stepscope_phase phase) { (void)phase; }
static inline void stepscope_phase_end(void) {}
static inline void stepscope_phase_switch(enum stepscope_phase phase) { (void)phase; }
static inline void stepscope_range_push(const char *name) { (void)name; }
static inline void stepscope_range_push_name(stepscope_name_t name) { (void)name; }
static inline void stepscope_range_pop(void) {}
static inline void stepscope_range_switch(const char *name) { (void)name; }
static inline void stepscope_range_switch_name(stepscope_name_t name) { (void)name; }
static inline void stepscope_op_begin(const char *name) { (void)name; }
static inline void stepscope_op_begin_name(stepscope_name_t name) { (void)name; }
static inline void stepscope_op_begin_info(stepscope_name_t name, const struct stepscope_op_info *info) { (void)name; (void)info; }
static inline void stepscope_op_end(void) {}
static inline void stepscope_memory_alloc(const void *address, uint64_t bytes, enum stepscope_memory category, int device)
{
	(void)address; (void)bytes; (void)category; (void)device;
}
static inline void stepscope_memory_free(const void *address, int device) { (void)address; (void)device; }
static inline void stepscope_counter(const char *name, double value) { (void)name; (void)value; }
static inline void stepscope_metric(const char *name, double value) { (void)name; (void)value; }
static inline void stepscope_value_name(stepscope_name_t name, double value) { (void)name; (void)value; }
static inline void stepscope_mark(const char *name) { (void)name; }
static inline void stepscope_metadata(const char *key, const char *value) { (void)key; (void)value; }
static inline void stepscope_thread_name(const char *name) { (void)name; }
#define STEPSCOPE_RANGE_PUSH(literal) ((void)0)
#define STEPSCOPE_RANGE_SWITCH(literal) ((void)0)
#define STEPSCOPE_OP_BEGIN(literal) ((void)0)

/* clang-format on */
#endif /* STEPSCOPE_DISABLE */

#ifdef __cplusplus
}
#endif
#endif
