/* SPDX-License-Identifier: Apache-2.0
 *
 * analysis_context.h: the input of all tables of a run: the model, the options, and results that several tables share.
 * Each shared result is made at its first use and kept until the context is released.
 *
 *     struct analysis_context context;
 *     analysis_context_init(&context, &model, &options);
 *     const struct step_times *times = analysis_context_step_times(&context);
 *     analysis_find("ops")->run(&context, &table, &err);
 *     analysis_context_release(&context);
 *
 * Shared results do not depend on options.by, which may change between tables. Only analysis_context_choose_steps()
 * changes the steps.
 */
#ifndef ANALYSIS_ANALYSIS_CONTEXT_H
#define ANALYSIS_ANALYSIS_CONTEXT_H

#include "analysis/analysis.h"

#include <stddef.h>

struct step_times;
struct launches;
struct collective_calls;
struct flop_likeness;

struct analysis_context {
	const struct model *model;
	struct analysis_options options;
	int64_t shared_cpu_ns; /* CPU time that making shared results took */
	/* below: results of the functions of the same names, NULL until the first use */
	struct step_times *step_times;
	struct launches *launches;
	struct collective_calls *collective_calls;
	struct flop_likeness *flop_likeness;
	struct kept_device *kept_devices; /* made by device_work_get(), owned by the context */
	struct shared_fold *folds;
	unsigned making; /* number of shared results being made, each for another one */
	int64_t making_cpu_ns;
};

/* The model must outlive the context. */
void analysis_context_init(struct analysis_context *context, const struct model *model,
                           const struct analysis_options *options);
void analysis_context_release(struct analysis_context *context);

const struct step_times *analysis_context_step_times(struct analysis_context *context);
const struct launches *analysis_context_launches(struct analysis_context *context);
const struct collective_calls *analysis_context_collective_calls(struct analysis_context *context);
const struct flop_likeness *analysis_context_flop_likeness(struct analysis_context *context);

/* From here on only the time of these steps counts. Events still count in the same steps as before. Drops all results
 * that depend on the steps. */
void analysis_context_choose_steps(struct analysis_context *context, int64_t first, int64_t last);

/* A result computed over the model that several tables read. It must not depend on options.by. */
struct analysis_fold {
	size_t size;
	void (*init)(void *fold, struct analysis_context *context);
	void (*release)(void *fold);
};
/* Returns the fold, of `size` bytes. */
void *analysis_context_fold(struct analysis_context *context, const struct analysis_fold *kind);

/* Returns the CPU time of this process so far. */
int64_t analysis_cpu_clock_ns(void);

#endif
