/* SPDX-License-Identifier: Apache-2.0
 *
 * run_parts.h: the wall time of a whole run, divided into parts: start, compilation, first batches, steps, and so on.
 * An instant belongs to one part, so the parts sum to the wall time.
 *
 *     const struct run_parts *parts = run_parts_get(context);
 *     if (!parts->unknown)
 *             printf("%.0f of %.0f ns are steps\n", parts->ns[RUN_PART_STEPS], parts->wall_ns);
 *
 * The time of a part that was not measured is in the other parts, mostly in RUN_PART_UNKNOWN.
 */
#ifndef ANALYSIS_STEP_TIMES_RUN_PARTS_H
#define ANALYSIS_STEP_TIMES_RUN_PARTS_H

#include "analysis/analysis_context.h"

enum run_part {
	RUN_PART_START,       /* up to the first step */
	RUN_PART_COMPILATION, /* torch.compile, at any time */
	RUN_PART_FIRST_BATCHES,
	RUN_PART_STEPS, /* and phases of the training between steps */
	RUN_PART_EVALUATION,
	RUN_PART_CHECKPOINTS,
	RUN_PART_IDLE,    /* the loop's thread did not run, and nothing says why */
	RUN_PART_UNKNOWN, /* between steps, in nothing that was recorded */
	RUN_PART_END,     /* after the last step */
	RUN_PART_COUNT,
};

#define RUN_PARTS_NO_TIME "the run took no time"

struct run_parts {
	double ns[RUN_PART_COUNT]; /* means over the ranks */
	double wall_ns;
	const char *missing[RUN_PART_COUNT]; /* why a part was not measured; NULL: it was */
	const char *unknown; /* why the wall time is unknown; then there are no parts. NULL: it is known */
	bool has_launch;     /* it counts from the start of the program by `stepscope run` to its end */
};

/* Returns the parts, owned by the context. */
const struct run_parts *run_parts_get(struct analysis_context *context);

const char *run_part_name(enum run_part part); /* "start", "first batches", ... */
const char *run_part_key(enum run_part part);  /* the same as a key of JSON: "first_batches" */

/* Returns the part with the most time, of those outside of steps. */
enum run_part run_parts_largest(const struct run_parts *parts);

/* Sets the cell of the first row: "compilation 80.9 %, steps 5.1 %, ... of 22.03 s", the largest first. */
void run_parts_set_text(const struct run_parts *parts, struct table *table, int column);

#endif
