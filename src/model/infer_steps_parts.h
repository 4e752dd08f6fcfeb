/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps_parts.h: what the parts of infer_steps.c share: first the ends of the steps, by calls of optimizers or by backwards, then
 * which records are evaluations, then intervals. Private to infer_steps*.c.
 */
#ifndef MODEL_INFER_STEPS_PARTS_H
#define MODEL_INFER_STEPS_PARTS_H

#include "model/infer_steps.h"
#include "model/optimizer_rates.h"

#define NONE SIZE_MAX

struct inferrer {
	struct inference *out;
	const struct train_record *records;
	size_t count;
	const struct train_range *ranges;
	const struct train_call *hooked, *hooked_end; /* those that are not in a phase yet */
	struct optimizer_rates rates;                 /* of those that are known */
	size_t *ends;                                 /* of steps: the last record of each */
	size_t end_count;
	bool *is_evaluation; /* record of an evaluation */
	bool *is_update;     /* record of an update by hand */
	bool *is_unused;     /* record of a forward that leads to no backward */
	bool is_functional;  /* no backward leaves gradients: all train */
	bool has_modules;    /* forwards are calls of them */
	bool is_cut;
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

void infer_ends_by_calls(struct inferrer *in);     /* rules 1, 2 and 4 */
void infer_ends_by_backwards(struct inferrer *in); /* rule 3 */
void infer_evaluations(struct inferrer *in);       /* behind the ends */
void infer_intervals(struct inferrer *in);         /* of steps and phases, last */

#endif
