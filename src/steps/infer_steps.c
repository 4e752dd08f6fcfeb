/* SPDX-License-Identifier: Apache-2.0
 *
 * infer_steps.c: see infer_steps.h. What the parts (infer_steps_parts.h) have to work on, in which order they work, and what is said of it.
 */
#include "steps/infer_steps.h"

#include "base/memory.h"
#include "steps/infer_steps_parts.h"
#include "steps/optimizer_rates.h"

#include <stdlib.h>
#include <string.h>

static void infer_steps_find_ends(struct inferrer *in)
{
	for (size_t i = 0; i < in->count; i++)
		in->out->update_count += is_call(&in->records[i]);
	if (in->out->update_count)
		infer_ends_by_calls(in);
	else
		infer_ends_by_backwards(in);
}

/* Of several optimizers. */
static void find_rare_calls(struct inferrer *in)
{
	size_t step = 0, with_calls = 0;
	bool has_call = false;

	for (size_t i = 0; i < in->count && step < in->end_count; i++) {
		if (is_call(&in->records[i]) && in->records[i].object) {
			optimizer_rates_add_step(&in->rates, in->records[i].object, with_calls);
			has_call = true;
		}
		if (i == in->ends[step]) {
			step++;
			with_calls += has_call;
			has_call = false;
		}
	}
	const struct optimizer_rate *rarest = optimizer_rates_rarest(&in->rates);
	if (rarest) {
		in->out->rare_calls = rarest->steps;
		in->out->rare_steps = rarest->last_step - rarest->first_step + 1;
	}
}

/* Several updates of a batch may be as many steps, or parts of one. */
static void find_doubt_of_batches(struct inferrer *in)
{
	size_t batches = 0;

	for (size_t i = 0; i < in->count; i++)
		batches += is_batch(&in->records[i]) && !in->is_evaluation[i];
	if (batches > 1 && in->end_count >= 2 * batches && in->end_count % batches == 0)
		in->out->doubt = DOUBT_OF_BATCH;
}

void infer_steps(struct inference *inference, const struct train_loop *loop)
{
	const struct train_record *records = loop->records;
	size_t count = loop->count;
	struct inferrer in = {.out = inference,
	                      .records = records,
	                      .count = count,
	                      .ranges = loop->ranges,
	                      .hooked = loop->hooked,
	                      .hooked_end = loop->hooked_count ? loop->hooked + loop->hooked_count : loop->hooked,
	                      .last_range = NO_RANGE,
	                      .last_end_ns = INT64_MIN,
	                      .phase_end_ns = INT64_MIN};

	memset(inference, 0, sizeof(*inference));
	in.is_cut = count && records[count - 1].token == TOKEN_CUT;
	in.ends = memory_resize(NULL, count + 1, sizeof(*in.ends));
	in.is_evaluation = memory_resize(NULL, count + 1, sizeof(*in.is_evaluation));
	memset(in.is_evaluation, 0, (count + 1) * sizeof(*in.is_evaluation));
	in.is_generation = memory_resize(NULL, count + 1, sizeof(*in.is_generation));
	memset(in.is_generation, 0, (count + 1) * sizeof(*in.is_generation));
	in.is_update = memory_resize(NULL, count + 1, sizeof(*in.is_update));
	memset(in.is_update, 0, (count + 1) * sizeof(*in.is_update));
	in.is_unused = memory_resize(NULL, count + 1, sizeof(*in.is_unused));
	infer_steps_find_ends(&in);
	find_rare_calls(&in);
	infer_evaluations(&in);
	if (!inference->update_count && !inference->doubt && !loop->hooked_count)
		find_doubt_of_batches(&in);
	infer_own_work(&in);
	infer_intervals(&in);
	optimizer_rates_release(&in.rates);
	free(in.ends);
	free(in.is_evaluation);
	free(in.is_generation);
	free(in.is_update);
	free(in.is_unused);
}
