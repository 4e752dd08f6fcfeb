/* SPDX-License-Identifier: Apache-2.0
 *
 * op_totals.c: see the header.
 */
#include "analysis/operators/op_totals.h"

#include "base/clamped.h"

#include <math.h>

/* Sums up the work of devices that counts: if it has a launch, the launch is in a measured step, otherwise the work
 * itself is in one. */
static void op_sum_device(struct op_totals *totals, const struct op_fold *fold)
{
	const struct model *model = fold->model;

	for (uint32_t number = 0; number < fold->launches->track_count; number++) {
		const struct track *track = model->tracks[number];

		for (uint32_t c = 0; fold->launches->by_track[number] && c < track->chunk_count; c++) {
			const struct span_chunk *chunk = track->chunks[c], *at;

			for (uint32_t i = 0, k; i < chunk->count; i++) {
				const struct launch *launch = launches_of(fold->launches, number, chunk->first_row + i);
				bool is_launched = launch->track != MODEL_NONE;

				if (!span_is_device_work(chunk->kind[i]))
					continue;
				at = is_launched ? track_chunk(model->tracks[launch->track], launch->row, &k)
				                 : track_chunk(track, chunk->first_row + i, &k);
				if (!step_times_measures(fold->times, at->step[k]))
					continue;
				clamped_add(&totals->device_ns, chunk->dur_ns[i]);
				clamped_add(&totals->unlaunched_ns, is_launched ? 0 : chunk->dur_ns[i]);
				totals->unlaunched += !is_launched;
			}
			model_chunk_done(model, chunk);
		}
	}
}

/* Returns the bytes that were allocated minus freed inside spans of measured steps. */
static int64_t op_sum_memory(const struct op_fold *fold)
{
	const struct model *model = fold->model;
	wide_bytes sum = 0;

	for (uint32_t i = 0; i < model->memory_count; i++) {
		const struct memory_event *event = &model->memory[i];
		uint32_t index;

		if (event->row == MODEL_NONE || event->is_found || event->device >= 0 ||
		    (event->is_free && event->partner == MODEL_NONE))
			continue;
		if (step_times_measures(fold->times,
		                        track_chunk(model->tracks[event->track], event->row, &index)->step[index]))
			sum += event->is_free ? -(wide_bytes)event->bytes : (wide_bytes)event->bytes;
	}
	return bytes_that_fit(sum);
}

static double op_rest_factor(const struct op_fold *fold, const struct op_group *rest)
{
	return rest->seen.amount > 0 ? rest->seen.weighted / rest->seen.amount : fold->times->scale.factor;
}

/* Joins each sampled group with the group of the same row. The totals of memory and devices grow by as much as the
 * groups do. */
static void op_join_groups(struct op_totals *totals, struct op_fold *fold)
{
	uint32_t count = fold->groups.count;

	for (uint32_t i = 0; i < count; i++) {
		const struct op_group sampled = fold->groups.list[i];
		bool is_rest = i == OP_GROUP_REST_SAMPLED;
		struct op_key key = sampled.key;

		if (!is_rest && !key.is_sampled)
			continue;
		key.is_sampled = 0;
		uint32_t number = is_rest ? OP_GROUP_REST : op_groups_find(&fold->groups, &key);
		struct op_group *group = &fold->groups.list[number];
		int64_t self_memory = group->self_memory + sampled.self_memory;
		int64_t self_device_ns = group->self_device_ns + sampled.self_device_ns;

		op_group_join(group, &sampled,
		              is_rest ? op_rest_factor(fold, &sampled) : step_kinds_factor(fold->times, &sampled.seen));
		clamped_add(&totals->memory, group->self_memory - self_memory);
		clamped_add(&totals->device_ns, group->self_device_ns - self_device_ns);
	}
	totals->unseen_ns = fold->unseen_ns;
	clamped_add(&totals->unseen_ns, clamped_int(round(fold->unseen_sampled_ns)));
}

void op_totals_compute(struct op_totals *totals, struct op_fold *fold)
{
	*totals = (struct op_totals){.steps = fold->counts_actions ? fold->times->complete
	                                                           : step_kinds_sum_steps(fold->times),
	                             .memory = op_sum_memory(fold)};
	op_sum_device(totals, fold);
	op_join_groups(totals, fold);
	for (uint32_t i = 0; i < fold->groups.count; i++) {
		const struct op_group *group = &fold->groups.list[i];

		if (i == OP_GROUP_REST_SAMPLED || group->key.is_sampled)
			continue;
		clamped_add(&totals->self_ns, group->self_ns);
		clamped_add(&totals->step_self_ns, group->step_self_ns);
	}
}
