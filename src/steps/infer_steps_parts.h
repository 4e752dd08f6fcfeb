/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps_parts.h: what the parts of infer_steps.c share: first the ends of the steps, by calls of optimizers or by backwards, then
 * which records are evaluations, then intervals. Private to infer_steps*.c.
 */
#ifndef STEPS_INFER_STEPS_PARTS_H
#define STEPS_INFER_STEPS_PARTS_H

#include "steps/infer_steps.h"
#include "steps/optimizer_rates.h"

#define NONE SIZE_MAX
#define EVALUATION_PAUSE_NS INT64_C(50000000) /* so long without an operator ends an evaluation, if that was shorter */
#define STEPS_TO_COMPARE 8                    /* so many, behind the first one, tell what steps are like */

struct inferrer {
	struct inference *out;
	const struct train_record *records;
	size_t count;
	const struct train_range *ranges;
	const struct train_call *hooked, *hooked_end; /* those that are not in a phase yet */
	struct optimizer_rates rates;                 /* of those that are known */
	size_t *ends;                                 /* of steps: the last record of each */
	size_t end_count;
	struct {                     /* by record */
		bool *is_evaluation; /* record of an evaluation */
		bool *is_generation; /* record of a run of calls that makes samples to train on */
		bool *is_update; /* record of an update by hand, or of an optimizer's own work in a call with a closure */
		bool *is_unused; /* record of a forward that leads to no backward */
	};
	bool is_functional; /* no backward leaves gradients: all train */
	bool has_modules;   /* forwards are calls of them */
	bool is_cut;
	int64_t own_ns;    /* so long optimizers usually work behind their closure's last backward; 0: not known */
	int64_t lead_ns;   /* so long a step takes before its first work, where no evaluation is before it */
	size_t lead_calls; /* so many calls of modules without a graph are in that, at most */
	/* of infer_steps_intervals.c, while it goes through the steps */
	size_t next;         /* record behind the step before */
	uint32_t last_range; /* around the end of the step before */
	int64_t last_end_ns;
	int64_t phase_end_ns; /* of the phase before */
};

static inline bool is_call(const struct train_record *record)
{
	return record->token == TOKEN_OPTIMIZER && !record->is_inside;
}

static inline bool trains(const struct inferrer *in, const struct train_record *record)
{
	return record->token == TOKEN_BACKWARD && (record->is_training || in->is_functional);
}

static inline bool is_batch(const struct train_record *record)
{
	return record->token == TOKEN_DATA && !record->is_empty;
}

/* A training backward in the call. */
static inline bool has_closure(const struct inferrer *in, size_t call)
{
	for (size_t i = call + 1; i < in->count && in->records[i].is_inside; i++) {
		if (trains(in, &in->records[i]))
			return true;
	}
	return false;
}

/* The innermost range around both. Parents have smaller indices. */
static inline uint32_t common_range(const struct inferrer *in, uint32_t a, uint32_t b)
{
	while (a != b && a != NO_RANGE && b != NO_RANGE) {
		if (a > b)
			a = in->ranges[a].parent;
		else
			b = in->ranges[b].parent;
	}
	return a == b ? a : NO_RANGE;
}

void infer_ends_by_calls(struct inferrer *in);                        /* rules 1, 2 and 4 */
void infer_ends_by_backwards(struct inferrer *in);                    /* rule 3 */
void infer_evaluations(struct inferrer *in);                          /* behind the ends */
int64_t infer_evaluation_end(const struct inferrer *in, size_t last); /* of one with that last record */
void infer_generations(struct inferrer *in);                          /* behind the evaluations of batches */
void infer_own_work(struct inferrer *in);                             /* of optimizers that call closures */
void infer_intervals(struct inferrer *in);                            /* of steps and phases, last */

#endif
