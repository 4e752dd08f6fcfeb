/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_run.h: what a comparison needs of one run, taken out of the run's tables, so that many runs can be read one after
 * the other and only one trace is in memory at a time.
 *
 *     struct compared_run run;
 *     compared_run_init(&run, &report);
 *     ...the report and its model may go...
 *     compared_run_release(&run);
 *
 * It owns everything in it. It can be filled by hand as well (from a history of runs): what is absent is not measured.
 */
#ifndef COMPARE_COMPARED_RUN_H
#define COMPARE_COMPARED_RUN_H

#include "analysis/report.h"
#include "analysis/step_times/step_times.h"
#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct compared_step { /* of the job: mean over its ranks */
	int64_t number;
	double dur_ns;
	bool has_phases;
	double phase_ns[PHASE_COUNT];
	bool has_tokens, has_samples;
	double tokens, samples; /* sums over the ranks */
	bool has_cpu;
	double cpu_ns;     /* of the threads that mark the step */
	double running_ns; /* duration without waits for a processor, as far as they can be told from others */
};

enum fact_kind {
	FACT_WORK, /* what a step has to do */
	FACT_HARDWARE,
	FACT_SOFTWARE,
	FACT_SETTINGS,  /* of the program: explains a difference, does not forbid the comparison */
	FACT_RECORDING, /* what was recorded, and how */
	FACT_CLOCK,     /* of devices and processors, mean over the run: explains a difference */
	FACT_KINDS,
};
extern const char *const fact_kind_names[FACT_KINDS]; /* "work", "hardware", ... */

/* Name of the fact that the input is damaged or lacks events; its value says how. Absent: it is whole. */
#define COMPARED_DAMAGE "damage"
/* What the reason of a value begins with that was recorded in part: no other quantity may stand for it. */
#define COMPARED_IN_PART "not all of it was recorded: "
/* ... of how the program ended where it failed, in words. A recording says it. */
#define COMPARED_END "end"
/* ... of how the run ended, which only a metrics.json says. */
#define COMPARED_STATUS "status"
#define COMPARED_COMPLETED "completed"
#define COMPARED_DIVERGED "loss_diverged" /* a value: 0 or 1 */
/* ... of how often a step goes forward and back, where nearly all do as often. */
#define COMPARED_PASSES "forwards and backwards per step"
/* ... of how often GPUs were asked, in seconds. */
#define COMPARED_PERIOD "period of telemetry (s)"

/* ... of which of its steps have operators, in a recording; it says of which kind the compared steps are. */
#define COMPARED_OPERATORS "steps with operators"
#define COMPARED_ALL "all"
#define COMPARED_MIXED "some, and all are compared"
#define COMPARED_SOME "some, and the others are compared"
#define COMPARED_NONE "none"
/* ... of a budget's choice: one in so many, "8" or "8 to 16". */
#define COMPARED_EVERY "operators in one step of"
/* Values: how much longer a step with operators is, half its 95 % interval, both in ns; operators and ranges called in a step. */
#define COMPARED_PRICE "operator_cost_ns"
#define COMPARED_PRICE_HALF "operator_cost_half_ns"
#define COMPARED_CALLS "operators_per_step"
/* ... and what recording costs a program without PyTorch, as its events were counted. */
#define COMPARED_COUNTED "operator_cost_counted_ratio"

struct compared_fact {
	enum fact_kind kind;
	const char *name;  /* "micro-batch", in words */
	const char *value; /* as text */
};

struct compared_value {   /* one number of the whole run */
	const char *name; /* METRIC_NAME */
	bool has_value;
	double value;
	const char *reason; /* !has_value */
};

struct compared_part {      /* of a step; of a run without steps, of all of it; of memory, of its peak */
	const char *level;  /* CONTRIBUTION_LEVEL; those of memory begin with COMPARED_MEMORY */
	const char *name;   /* CONTRIBUTION_NAME */
	const char *family; /* of kernels and modules: what it is when names change; NULL: the name */
	double amount;      /* ns, mean of a step; of memory: bytes */
	bool has_calls;
	double calls; /* mean of a step; of memory: allocations */
};

#define COMPARED_MEMORY "memory "
#define COMPARED_KERNEL "kernel"
#define COMPARED_LATE_RANK "late rank"
/* Levels that begin with this hold only what takes longest of a part of the run: a name that is not there took less, not nothing. */
#define COMPARED_TOP "top "

struct compared_function {       /* in sampled stacks */
	const char *what;        /* the samples count: "time", "bytes", "samples", ... */
	const char *name, *file; /* NULL: the frame has no file */
	double self, total;
	double self_ratio, total_ratio; /* of all samples that count this */
};

#define COMPARED_ARRAY(type, name)                                                                                     \
	type *name;                                                                                                    \
	size_t name##_count, name##_capacity

#define COMPARED_FUNCTIONS 5000
#define COMPARED_OTHERS "(others)" /* functions beyond these together, those that take least: their self */

struct compared_telemetry { /* of a GPU, from outside */
	const char *of, *quantity;
	const char *unit; /* NULL: the file gives it none */
	double median;
	double error; /* standard error of it, from the values of the run */
	double block; /* values that depend on each other */
	int64_t count;
};

struct compared_summary { /* what is known of steps that the input does not hold */
	int64_t steps;    /* 0: nothing */
	double median_ns;
	double error;  /* standard error of the median, as a ratio */
	double tokens; /* of a step; 0: not known */
};

struct compared_run {
	struct arena arena;
	const char *name, *path;
	const char *created;                         /* wall clock; NULL: unknown */
	bool has_created;                            /* of the next */
	int64_t created_ns;                          /* the same since 1970 */
	const char *no_steps;                        /* why there are no steps */
	int64_t warm_up;                             /* steps left out at the begin, before steps[0] */
	const char *warm_up_reason;                  /* NULL: none were */
	COMPARED_ARRAY(struct compared_step, steps); /* complete ones, in order, without the warm-up */
	struct compared_summary summary;             /* in place of steps */
	bool is_changed; /* a copy whose steps, values and parts are its own: comparison_operators.h */
	COMPARED_ARRAY(struct compared_fact, facts);
	COMPARED_ARRAY(struct compared_value, values);
	COMPARED_ARRAY(struct compared_part, parts);
	COMPARED_ARRAY(struct compared_function, functions);
	COMPARED_ARRAY(struct compared_telemetry, telemetry);
};

void compared_run_init(struct compared_run *run, struct report *report);
void compared_run_release(struct compared_run *run); /* accepts an empty one */

/* Texts are copied. */
void compared_run_add_fact(struct compared_run *run, enum fact_kind kind, const char *name, const char *value);
void compared_run_add_number(struct compared_run *run, enum fact_kind kind, const char *name, double value);
void compared_run_add_value(struct compared_run *run, const char *name, double value);
void compared_run_add_missing(struct compared_run *run, const char *name, const char *reason);
void compared_run_add_part(struct compared_run *run, const struct compared_part *part);
void compared_run_add_function(struct compared_run *run, const struct compared_function *function);
void compared_run_add_telemetry(struct compared_run *run, const struct compared_telemetry *telemetry);

const struct compared_value *compared_run_value(const struct compared_run *run, const char *name); /* NULL: none */
const char *compared_run_fact(const struct compared_run *run, const char *name);                   /* NULL: none */
/* How it failed, and what is missing of its input, in words; NULL: neither. */
const char *compared_run_trouble(const struct compared_run *run, struct arena *arena);

#endif
