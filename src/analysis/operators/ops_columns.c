/* SPDX-License-Identifier: Apache-2.0
 *
 * ops_columns.c: see the header.
 */
#include "analysis/operators/ops_columns.h"

#include "analysis/shared/durations.h"
#include "analysis/step_times/step_kinds.h"

const struct table_column operation_columns[OP_COLUMNS] = {
	[OP_NAME] = {.name = "name",
                     .type = TABLE_TEXT,
                     .role = ROLE_KEY,
                     .definition = "name of the operation or range; \"(in no operation or range)\": time of steps, "
                                   "phases and micro-batches outside everything nested in them; \"(more names)\": sum "
                                   "of all rows except the 100000 with the most self time"},
	[OP_KIND] = {.name = "kind",
                     .type = TABLE_TEXT,
                     .role = ROLE_KEY,
                     .definition = "op, range, annotation, phase, step, micro-batch, collective, module, or a call of "
                                   "Python or of the runtime; overhead: time of the profiler; rest: not a span"},
	[OP_SHAPE] = {.name = "shape", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "shapes of the inputs"},
	[OP_THREAD] = {.name = "thread", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "thread that ran it"},
	[OP_PHASE] = {.name = "phase",
                      .type = TABLE_TEXT,
                      .role = ROLE_KEY,
                      .definition = "innermost phase around it on its thread"},
	[OP_STEP_MEAN] =
		{.name = "step_mean_ns",
                 .title = "per step",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_NS,
                 .definition =
                         "self time per step on the threads that mark steps, mean over the steps that the sums cover",
                 .rules = RULE_NOT_NEGATIVE,
                 .more = MORE_SUM},
	[OP_STEP_SELF] = {.name = "step_self_ns",
                          .title = "self in steps",
                          .type = TABLE_INT,
                          .unit = UNIT_NS,
                          .definition = "self time on the threads that mark steps: the time that a step waits for",
                          .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                          .other = "self_ns",
                          .more = MORE_SUM},
	[OP_STEP_RATIO] =
		{.name = "step_self_ratio",
                 .title = "% of steps",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .definition = "share of the self time on the threads that mark steps",
                 .denominator = "time inside measured steps, and inside spans that start in them, on the threads "
                                "that mark steps",
                 .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE | RULE_SUMS_TO_ONE,
                 .more = MORE_SUM},
	[OP_UNSEEN] = {.name = "step_unseen_ratio",
                       .title = "% outside all",
                       .type = TABLE_DOUBLE,
                       .unit = UNIT_RATIO,
                       .role = ROLE_EVIDENCE,
                       .definition = "share of step time outside every operation, range, phase and module (same "
                                     "denominator as step_self_ratio)",
                       .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                       .other = "step_self_ratio",
                       .is_hidden = true},
	[OP_SELF] = {.name = "self_ns",
                     .title = "self",
                     .type = TABLE_INT,
                     .unit = UNIT_NS,
                     .definition = "time in it, without nested spans; the rows sum to all time inside spans. If spans "
                                   "of a thread overlap without nesting, the time belongs to the span that started last",
                     .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER | RULE_SUMS_TO_TOTAL,
                     .other = "total_ns",
                     .more = MORE_SUM},
	[OP_RATIO] = {.name = "self_ratio",
                      .title = "%",
                      .type = TABLE_DOUBLE,
                      .unit = UNIT_RATIO,
                      .role = ROLE_SHARE,
                      .definition = "share of the self time",
                      .denominator = "time of all recorded threads inside spans (steps, phases, ranges, operations) that "
                                     "start in measured steps",
                      .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE | RULE_SUMS_TO_ONE,
                      .more = MORE_SUM},
	[OP_CALLS] = {.name = "calls",
                      .type = TABLE_INT,
                      .unit = UNIT_COUNT,
                      .definition = "number of times that it started",
                      .rules = RULE_NOT_NEGATIVE,
                      .more = MORE_SUM},
	[OP_TOTAL] = {.name = "total_ns",
                      .title = "total",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "time from start to end, including nested spans; a call inside a call of the same "
                                    "row counts once",
                      .rules = RULE_NOT_NEGATIVE},
	[OP_MEAN] = {.name = "mean_ns",
                     .title = "mean",
                     .type = TABLE_DOUBLE,
                     .unit = UNIT_NS,
                     .definition = "mean duration of a call"},
	[OP_MIN] = {.name = "min_ns",
                    .title = "min",
                    .type = TABLE_INT,
                    .unit = UNIT_NS,
                    .definition = "shortest call",
                    .rules = RULE_NOT_NEGATIVE,
                    .more = MORE_LEAST},
	[OP_MAX] = {.name = "max_ns",
                    .title = "max",
                    .type = TABLE_INT,
                    .unit = UNIT_NS,
                    .definition = "longest call",
                    .more = MORE_MOST},
	[OP_INCOMPLETE] = DURATIONS_INCOMPLETE,
	[OP_FLOPS] = {.name = "flops",
                      .title = "FLOP",
                      .type = TABLE_DOUBLE,
                      .unit = UNIT_FLOP,
                      .definition = "floating point operations that the calls reported, or those of PyTorch's operators "
                                    "by the formulas of its flop_counter; an operator counts only if no operator nested "
                                    "in it counts",
                      .more = MORE_SUM},
	[OP_FLOP_RATE] =
		{.name = "flops_per_s",
                 .title = "FLOP/s",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_FLOP_PER_SECOND,
                 .definition = "floating point operations divided by the time of their work: the total duration of "
                               "the kernels, copies and fills that a call and its nested spans launched; if it "
                               "launched none, the duration of the call. Calls whose device work is not fully "
                               "recorded are excluded"},
	[OP_PROFILER_FLOPS] =
		{.name = "profiler_flops",
                 .title = "FLOP (profiler)",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_FLOP,
                 .definition = "floating point operations as torch.profiler counts them with with_flops: mm, addmm, "
                               "bmm, baddbmm, conv2d, and one per element of mul and add; only operators with these "
                               "names have a value",
                 .is_hidden = true,
                 .more = MORE_SUM},
	[OP_BYTES] = {.name = "moved_bytes",
                      .title = "moved",
                      .type = TABLE_DOUBLE,
                      .unit = UNIT_BYTES,
                      .definition = "bytes read and written by the calls that reported them",
                      .more = MORE_SUM},
	[OP_SELF_MEMORY] =
		{.name = "self_memory_bytes",
                 .title = "self memory",
                 .type = TABLE_INT,
                 .unit = UNIT_BYTES,
                 .definition = "host memory that it allocated itself minus memory that it freed itself; the rows "
                               "sum to the memory allocated minus freed inside spans",
                 .rules = RULE_SUMS_TO_TOTAL,
                 .more = MORE_SUM},
	[OP_MEMORY] = {.name = "memory_bytes",
                       .title = "memory",
                       .type = TABLE_INT,
                       .unit = UNIT_BYTES,
                       .definition = "the same as self_memory_bytes, including nested spans; a call inside a call of the "
                                     "same row counts once"},
	[OP_SELF_DEVICE] =
		{.name = "self_device_ns",
                 .title = "self device",
                 .type = TABLE_INT,
                 .unit = UNIT_NS,
                 .definition = "time of the kernels, copies and fills for which this operator is the innermost "
                               "around the launch, or, outside operators, this range; the rows sum to the time of "
                               "all work launched in measured steps",
                 .rules = RULE_NOT_NEGATIVE | RULE_SUMS_TO_TOTAL,
                 .more = MORE_SUM},
	[OP_DEVICE] = {.name = "device_ns",
                       .title = "device",
                       .type = TABLE_INT,
                       .unit = UNIT_NS,
                       .definition = "the same as self_device_ns, including nested spans; a call inside a call of the "
                                     "same row counts once",
                       .rules = RULE_NOT_NEGATIVE},
	[OP_LAUNCHED] = {.name = "launched_count",
                         .title = "launched",
                         .type = TABLE_INT,
                         .unit = UNIT_COUNT,
                         .definition = "number of kernels, copies and fills in self_device_ns",
                         .rules = RULE_NOT_NEGATIVE,
                         .more = MORE_SUM},
	[OP_LEAST] = STEP_KINDS_LEAST_COLUMN,
};
