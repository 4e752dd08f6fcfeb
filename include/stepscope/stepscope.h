/* SPDX-License-Identifier: Apache-2.0
 *
 * stepscope.h: mark what a training program does, so that stepscope can say where each step goes.
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
 * recorder when `stepscope run` (or STEPSCOPE=1 in the environment) asked for it, and the exit of the process ends it.
 * A program that is started without either records nothing, and then a call costs one predictable branch.
 *
 * WHAT IT COSTS. A begin/end pair costs two clock reads. After a thread's first events there is no allocation, lock,
 * system call or page fault on its path. Memory is bounded (16 MiB by default). When the buffers are full, events are
 * dropped and counted, and every report prints the count; the program is never blocked or stopped.
 *
 * THREADS. Every function may be called from any thread. A signal handler may call them once its thread has recorded an
 * event (the first event of a process starts the recorder, that of a thread registers it), except where a comment says
 * otherwise; a handler that leaves by siglongjmp() sends the rest of its thread's events to a stream of their own. Ranges, phases, ops and micro-batches nest per thread: an end closes the innermost open one of the calling
 * thread. Steps belong to the process: begin and end them from one thread (the training loop's).
 *
 * NAMES are UTF-8, copied at the first use (the pointer may be freed or unmapped right after the call), and at most
 * 65,000 bytes long; longer ones are cut. Names of threads are cut to 31 bytes, keys and values of metadata to 256 and
 * 2,100. A name passed as a string is looked up by content on each call (about 10 ns); hot places should
 * intern it once with stepscope_name(), or use the STEPSCOPE_* macros at the end, which do so per call site.
 *
 * ERRORS. Nothing here fails towards the caller: a recorder that cannot work turns itself off and says why in one line
 * on stderr and in the recording. Only stepscope_init() reports, because its caller may want to print the reason.
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

/* What a stretch of a step is for. A phase may contain ranges and ops; time of a step outside all phases is reported as
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

/* Whose memory an allocation is. */
enum stepscope_memory {
	STEPSCOPE_MEMORY_OTHER = 0,
	STEPSCOPE_MEMORY_PARAMETER = 1,
	STEPSCOPE_MEMORY_GRADIENT = 2,
	STEPSCOPE_MEMORY_OPTIMIZER = 3, /* optimizer state */
	STEPSCOPE_MEMORY_ACTIVATION = 4,
	STEPSCOPE_MEMORY_INPUT = 5,
	STEPSCOPE_MEMORY_TEMPORARY = 6,
	STEPSCOPE_MEMORY_AUTOGRAD = 7, /* what a backward needs on its way to the gradients */
	STEPSCOPE_MEMORY_BUFFER = 8,   /* what a model keeps besides its parameters */
};

#define STEPSCOPE_DEVICE_CPU (-1) /* device of host memory; devices are numbered from 0 */

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

/* Optional facts about one op. Everything left zero is "not given", which reports show as "not measured". */
struct stepscope_op_info {
	int input_count;                                         /* tensors below, 0..STEPSCOPE_MAX_INPUTS */
	int rank[STEPSCOPE_MAX_INPUTS];                          /* dimensions of each, 0..STEPSCOPE_MAX_DIMS */
	int64_t shape[STEPSCOPE_MAX_INPUTS][STEPSCOPE_MAX_DIMS]; /* sizes in elements, outermost first */
	enum stepscope_dtype dtype;                              /* of the first input */
	double flops;                                            /* floating point operations of this call */
	double bytes;                                            /* bytes read and written by this call */
};

/* An interned name. 0 is "no name": what begins with it is recorded as "(no name)", so that its end closes nothing else; a value
 * or mark with it is dropped and counted. */
typedef uint32_t stepscope_name_t;

/* What stepscope_name() makes the name a name of. A string interned under two kinds is two names. */
enum stepscope_kind {
	STEPSCOPE_KIND_RANGE = 1,
	STEPSCOPE_KIND_OP = 3,
	STEPSCOPE_KIND_COUNTER = 4,
	STEPSCOPE_KIND_MARK = 5,
	STEPSCOPE_KIND_METRIC = 6,
};

/* ---- is anything recorded? ------------------------------------------------------------------------------------- */

/* Bits of stepscope_active: what is being recorded now. Read it, never write it. During the wait steps of a schedule
 * only STEPSCOPE_ACTIVE_STEPS is set; with STEPSCOPE_DISABLE it is the constant 0. */
#define STEPSCOPE_ACTIVE_STEPS 1u  /* steps, phases, counters, metrics, marks */
#define STEPSCOPE_ACTIVE_DETAIL 2u /* ranges and ops */
#define STEPSCOPE_ACTIVE_SHAPES 4u /* the facts of struct stepscope_op_info */
#define STEPSCOPE_ACTIVE_MEMORY 8u /* alloc and free */
#define STEPSCOPE_ACTIVE_CALLS 16u /* an agent sees no operators, and notes calls of PyTorch's functions instead */
#define STEPSCOPE_ACTIVE_RARE                                                                                          \
	32u /* the budget leaves out the operators of this step: agents record what is rare, such as garbage collections */

#ifndef STEPSCOPE_DISABLE

extern STEPSCOPE_API unsigned stepscope_active;
#if defined(__GNUC__)
#define STEPSCOPE_ACTIVE_ __atomic_load_n(&stepscope_active, __ATOMIC_RELAXED)
#else
#define STEPSCOPE_ACTIVE_ stepscope_active
#endif

/* ---- out-of-line halves; call the inline functions below instead ------------------------------------------------ */
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
 * "wait=1,warmup=1,active=3,with=shapes:memory,out=/tmp/run" in the names of `stepscope run --help`; the environment
 * wins over it. Returns 0 when the recorder runs (also when it ran already), was not asked for or was switched off
 * (enabled=false), otherwise -1, and then stepscope_error() says why in one line. Not from signal handlers. */
STEPSCOPE_API int stepscope_init(const char *options);

/* The reason of the last failed stepscope_init(); "" when there is none. Valid until the next call of it. */
STEPSCOPE_API const char *stepscope_error(void);

/* The directory of this process's recording, as an absolute path; "" when nothing has been recorded yet. Valid until the next
 * start. */
STEPSCOPE_API const char *stepscope_run_directory(void);

/* Writes out what is pending and closes the recording: at most 50 ms with full buffers and a disk that takes them; it waits
 * at most 1 s for threads that are stopped inside a call and 10 s for a disk that does not answer, and leaves the rest to
 * the rescue. Recording can be started again with stepscope_init(). What is open ends with the recording: its own end, when it
 * comes in the next one, ends nothing there, and reports count it. Happens by itself at exit, after which nothing starts. Not from
 * signal handlers. */
STEPSCOPE_API void stepscope_shutdown(void);

/* Writes out everything recorded so far; returns when it is in the file, at the latest after a second of waiting for a
 * disk that does not take it. Not from signal handlers. */
STEPSCOPE_API void stepscope_flush(void);

/* Returns the name's number, the same for equal strings of the same kind, for the life of the process (also in forked
 * children). 0 when the recorder is off. When the table of names is full (about 250,000), the number of "(too many names)",
 * and 0 for counters and metrics. */
STEPSCOPE_API stepscope_name_t stepscope_name(enum stepscope_kind kind, const char *name);

/* 1 when detail is being recorded now, for callers that must compute something only then. */
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

/* Begins optimizer step `number` (any numbering; 0-based is usual). An open step is ended first. */
static inline void stepscope_step_begin(int64_t number)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_step_begin(number));
}

/* Ends the open step. Schedules advance here. No open step: no effect. */
static inline void stepscope_step_end(void)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_step_end());
}

/* Adds tokens (samples) to the open step; reports turn them into tokens/s. */
static inline void stepscope_step_tokens(uint64_t tokens)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_step_count(0, tokens));
}
static inline void stepscope_step_samples(uint64_t samples)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_step_count(1, samples));
}

/* One forward/backward pass of gradient accumulation inside a step; `index` counts from 0 in each step. */
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

/* Begins a range of your own: a function, a layer, anything. */
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

/* Begins a mathematical operation, with or without facts. `info` is read only during the call; the facts are kept when
 * `--with shapes` is on. */
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

/* ---- memory (`--with memory`) -------------------------------------------------------------------------------------- */

static inline void stepscope_memory_alloc(const void *address, uint64_t bytes, enum stepscope_memory category,
                                          int device)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_MEMORY, stepscope_emit_alloc(address, bytes, STEPSCOPE_INT_(category), device));
}
static inline void stepscope_memory_free(const void *address, int device)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_MEMORY, stepscope_emit_free(address, device));
}

/* ---- values, marks, metadata ----------------------------------------------------------------------------------------- */

/* A quantity over time (queue length, bytes in flight): each call sets its value from now on. */
static inline void stepscope_counter(const char *name, double value)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS,
	              stepscope_emit_value(stepscope_name(STEPSCOPE_KIND_COUNTER, name), value));
}
/* A result of the open step (loss, gradient norm, learning rate). NaN and infinity are kept as they are. */
static inline void stepscope_metric(const char *name, double value)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_value(stepscope_name(STEPSCOPE_KIND_METRIC, name), value));
}
static inline void stepscope_value_name(stepscope_name_t name, double value)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_value(name, value));
}
/* Something that happened at one instant. */
static inline void stepscope_mark(const char *name)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_mark(stepscope_name(STEPSCOPE_KIND_MARK, name)));
}
/* A fact about the run (model name, batch size). The last value of a key wins. Not from signal handlers. */
static inline void stepscope_metadata(const char *key, const char *value)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_metadata(key, value));
}
/* Names the calling thread in reports; otherwise the name the kernel knows is used. Not from signal handlers. */
static inline void stepscope_thread_name(const char *name)
{
	STEPSCOPE_IF_(STEPSCOPE_ACTIVE_STEPS, stepscope_emit_thread_name(name));
}

/* ---- per call site interning: the name is looked up once, then costs one load ------------------------------------------ */
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

#else  /* STEPSCOPE_DISABLE: the same names, nothing behind them */
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
