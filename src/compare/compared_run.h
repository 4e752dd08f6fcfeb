/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_run.h: the data of one run that a comparison needs, copied from the run's tables. Many runs can therefore
 * be read one after the other with only one trace in memory.
 *
 *     struct compared_run run;
 *     compared_run_init(&run, &report);
 *     ...the report and its model may be released...
 *     compared_run_release(&run);
 *
 * A run owns everything in it. It can also be filled by hand (from a history of runs); absent data counts as not
 * measured.
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
	double dur_ns;  /* of the device if the host runs ahead */
	double host_ns; /* of the host: the sum of the phases */
	bool has_phases;
	double phase_ns[PHASE_COUNT];
	bool has_tokens, has_samples;
	double tokens, samples; /* sums over the ranks */
	bool has_cpu;
	double cpu_ns; /* of the threads that mark the step */
	/* duration without waits for a processor; the whole duration if the thread also waited for something else */
	double running_ns;
};

enum fact_kind {
	FACT_WORK, /* the work of a step */
	FACT_HARDWARE,
	FACT_SOFTWARE,
	FACT_SETTINGS,  /* of the program: explain a difference, but do not forbid the comparison */
	FACT_RECORDING, /* which events were recorded, and how */
	FACT_CLOCK,     /* of devices and processors, mean over the run: explain a difference */
	FACT_KINDS,
};
extern const char *const fact_kind_names[FACT_KINDS]; /* "work", "hardware", ... */

/* Name of the fact that the input is damaged or lacks events; its value says how. Absent if the input is complete. */
#define COMPARED_DAMAGE "damage"
/* Prefix of the reason of a value that was only partly recorded. No other quantity may replace such a value. */
#define COMPARED_IN_PART "not all of it was recorded: "
/* Name of the fact that says in words how the program failed. Only recordings have it. */
#define COMPARED_END "end"
/* Name of the fact that says how the run ended. Only a metrics.json has it. */
#define COMPARED_STATUS "status"
#define COMPARED_COMPLETED "completed"
#define COMPARED_DIVERGED "loss_diverged" /* a value: 0 or 1 */
/* Name of the fact with the forward and backward passes per step, if nearly all steps have the same number of them. */
#define COMPARED_PASSES "forwards and backwards per step"
/* Name of the fact with the time between two queries of the GPUs, in seconds. */
#define COMPARED_PERIOD "period of telemetry (s)"

/* Name of the fact that says which steps of a recording have operators, and which of them are compared. */
#define COMPARED_OPERATORS "steps with operators"
#define COMPARED_ALL "all"
#define COMPARED_MIXED "some, and all are compared"
#define COMPARED_SOME "some, and the others are compared"
#define COMPARED_NONE "none"
/* Name of the fact with the budget's choice N, operators in one step of N: "8" or "8 to 16". */
#define COMPARED_EVERY "operators in one step of"
/* Names of values: the added duration of a step with operators and half its 95 % interval, both in ns; the number of
 * operators and ranges called per step. */
#define COMPARED_PRICE "operator_cost_ns"
#define COMPARED_PRICE_HALF "operator_cost_half_ns"
#define COMPARED_CALLS "operators_per_step"
/* Name of the value with the cost of recording a program without PyTorch, computed from its number of events. */
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

struct compared_part {      /* of a step; of the whole run if it has no steps; of the peak, for memory */
	const char *level;  /* CONTRIBUTION_LEVEL; levels of memory begin with COMPARED_MEMORY */
	const char *name;   /* CONTRIBUTION_NAME */
	const char *family; /* identifies a kernel or module if its name changes; NULL: use the name */
	double amount;      /* ns, mean per step; bytes for memory */
	bool has_calls;
	double calls; /* mean per step; allocations for memory */
};

#define COMPARED_MEMORY "memory "
/* Levels that begin with this hold savings of replays (compare/cuts/compared_replay.h). */
#define COMPARED_REPLAY "replay "
#define COMPARED_KERNEL "kernel"
#define COMPARED_LATE_RANK "late rank"
/* Levels that begin with this list only the longest parts of a run: a name that is absent took less time, not none. */
#define COMPARED_TOP "top "

struct compared_function {       /* of sampled stacks */
	const char *what;        /* quantity that the samples count: "time", "bytes", "samples", ... */
	const char *name, *file; /* NULL: the frame has no file */
	double self, total;
	double self_ratio, total_ratio; /* share of all samples with the same `what` */
};

#define COMPARED_ARRAY(type, name)                                                                                     \
	type *name;                                                                                                    \
	size_t name##_count, name##_capacity

#define COMPARED_FUNCTIONS 5000
#define COMPARED_OTHERS "(others)" /* sum of the self values of all functions beyond these, the smallest ones */

struct compared_telemetry { /* one quantity of a GPU, measured from outside */
	const char *of, *quantity;
	const char *unit; /* NULL: the file has no unit */
	double median;
	double error; /* standard error of the median, from the values of the run */
	double block; /* mean length of stretches of values that depend on each other */
	int64_t count;
};

struct compared_summary { /* summary of steps that are not in the input */
	int64_t steps;    /* 0: there is no summary */
	double median_ns;
	double error;  /* standard error of the median, as a ratio */
	double tokens; /* per step; 0: unknown */
};

struct compared_run {
	struct arena arena;
	const char *name, *path;
	const char *created;                         /* wall clock; NULL: unknown */
	bool has_created;                            /* created_ns is known */
	int64_t created_ns;                          /* `created` in ns since 1970 */
	const char *no_steps;                        /* why there are no steps */
	int64_t warm_up;                             /* steps left out at the start, before steps[0] */
	const char *warm_up_reason;                  /* NULL: no steps were left out */
	COMPARED_ARRAY(struct compared_step, steps); /* complete ones, in order, without the warm-up */
	struct compared_summary summary;             /* instead of steps */
	bool is_changed; /* a copy that owns only its steps, values and parts: comparison_operators.h */
	COMPARED_ARRAY(struct compared_fact, facts);
	COMPARED_ARRAY(struct compared_value, values);
	COMPARED_ARRAY(struct compared_part, parts);
	COMPARED_ARRAY(struct compared_function, functions);
	COMPARED_ARRAY(struct compared_telemetry, telemetry);
};

void compared_run_init(struct compared_run *run, struct report *report);
void compared_run_release(struct compared_run *run); /* accepts an empty run */

/* These functions copy the texts. */
void compared_run_add_fact(struct compared_run *run, enum fact_kind kind, const char *name, const char *value);
void compared_run_add_number(struct compared_run *run, enum fact_kind kind, const char *name, double value);
void compared_run_add_value(struct compared_run *run, const char *name, double value);
void compared_run_add_missing(struct compared_run *run, const char *name, const char *reason);
void compared_run_add_part(struct compared_run *run, const struct compared_part *part);
void compared_run_add_function(struct compared_run *run, const struct compared_function *function);
void compared_run_add_telemetry(struct compared_run *run, const struct compared_telemetry *telemetry);

const struct compared_value *compared_run_value(const struct compared_run *run, const char *name); /* NULL if absent */
const char *compared_run_fact(const struct compared_run *run, const char *name);                   /* NULL if absent */
/* Returns how the program failed and which input is missing, in words, or NULL if neither applies. */
const char *compared_run_trouble(const struct compared_run *run, struct arena *arena);

#endif
