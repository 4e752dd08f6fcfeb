/* SPDX-License-Identifier: Apache-2.0
 *
 * reasons.h: why a value is missing, in words that depend on the kind of input. A recording of ours says which option records the value;
 * a trace of torch.profiler, a profile of stacks or a snapshot of memory says how that tool is asked for it, or that its files never have it.
 *
 *     table_set_missing(table, row, column, model_reason(model, REASON_NO_SHAPES));
 *
 * Reasons that are the same for all inputs stand beside the cell they explain. No code decides by the words of a reason.
 */
#ifndef MODEL_REASONS_H
#define MODEL_REASONS_H

struct model;

/* Name, words for a recording of ours. Importers hold the words for other files: struct importer, `reasons`. */
#define REASONS(X)                                                                                                     \
	X(REASON_NO_STEPS, "no steps were recorded: mark steps with stepscope_step_begin() in C, "                     \
	                   "stepscope.step() in Python")                                                               \
	X(REASON_NO_PHASES, "no phases were marked: stepscope_phase_begin(), stepscope_phase_switch()")                \
	X(REASON_NO_OPERATORS, "the program marked no operations and no ranges: stepscope_op_begin(), "                \
	                       "stepscope_range_push()")                                                               \
	X(REASON_NO_MODULES, "no module calls were recorded: they are recorded together with PyTorch's operators")     \
	X(REASON_NO_ALLOCATIONS, "memory was not recorded: record with --with memory; a program without PyTorch "      \
	                         "calls stepscope_memory_alloc()")                                                     \
	X(REASON_NO_TOTALS, "only traces of torch.profiler have allocator totals, with profile_memory=True")           \
	X(REASON_NO_SHAPES, "input sizes were not recorded: record with --with shapes")                                \
	X(REASON_NO_FORMULA, "the program gave no FLOP count, and the operator has no formula")                        \
	X(REASON_NO_FLOPS, "input sizes were not recorded (record with --with shapes), or no operator has a "          \
	                   "formula")                                                                                  \
	X(REASON_NO_BYTES, "the program gave no byte count")                                                           \
	X(REASON_NO_LINES, "no Python lines were recorded: record with --with lines")                                  \
	X(REASON_NO_METRICS, "the program reported no metrics: stepscope_metric() in C, stepscope.metric() in Python") \
	X(REASON_NO_MARKS, "the program set no marks: stepscope_mark()")                                               \
	X(REASON_NO_TIMES, "no event has a time")                                                                      \
	X(REASON_NO_THREAD_USE,                                                                                        \
	  "CPU time, waits and page faults are recorded only for steps that the program marks, except "                \
	  "the first step and steps after very short ones")                                                            \
	X(REASON_NO_READINGS,                                                                                          \
	  "not measured: no reading of the thread's CPU time is within 2 % of the step's start and end, as for very "  \
	  "short steps, or the recording is from a version that did not read it")                                      \
	X(REASON_NO_COST, "the recorder did not measure itself")                                                       \
	X(REASON_NO_CAPTURE, "the recorder writes this when the program ends, but the program did not reach its end")

#define REASON_NAME(name, words) name,
enum reason {
	REASONS(REASON_NAME) REASON_COUNT
};
#undef REASON_NAME

/* The words that fit the model's input. They last as long as the program. */
const char *model_reason(const struct model *model, enum reason reason);

#endif
