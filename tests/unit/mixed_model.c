/* SPDX-License-Identifier: Apache-2.0
 *
 * mixed_model.c: see the header.
 */
#include "mixed_model.h"

#include <stepscope/format.h>
#include <stepscope/stepscope.h>

#define MS 1e6

static void put_span(struct model *model, uint32_t track, int64_t start_ns, int64_t end_ns, enum span_kind kind,
                     const char *name, const struct mixed_run *run)
{
	uint32_t index, row = model_span_complete(model, track, start_ns, end_ns - start_ns, kind,
	                                          intern_add(&model->strings, name));
	struct span_chunk *chunk = track_chunk(model->tracks[track], row, &index);

	if (kind != SPAN_PHASE)
		return;
	chunk->phase[index] = name[0] == 'd' ? STEPSCOPE_PHASE_DATA : STEPSCOPE_PHASE_FORWARD;
	if (run->infers)
		chunk->flags[index] |= SPAN_IS_INFERRED;
}

static int64_t put_step(struct model *model, uint32_t track, int64_t start_ns, const struct mixed_run *run, int64_t i)
{
	char kind = run->kinds[i];
	int64_t end_ns = start_ns + (int64_t)(MS * (run->step_ms + (kind == '.' ? 0 : run->cost_ms) +
	                                            (run->more_ms ? run->more_ms[i] : 0)));
	struct model_step step = {.process = model->tracks[track]->process,
	                          .track = track,
	                          .row = model->tracks[track]->span_count,
	                          .number = i,
	                          .start_ns = start_ns,
	                          .end_ns = end_ns,
	                          .capture = STEPSCOPE_CAPTURE_RECORD,
	                          .has_detail = kind == 'o',
	                          .has_any_detail = kind != '.',
	                          .has_rare = run->has_rare && kind != 'r',
	                          .has_lost_phases = kind == 'r' && run->infers,
	                          .has_calls_only = kind == '.' && run->infers,
	                          .has_tokens = true,
	                          .tokens = 1000};

	put_span(model, track, start_ns, end_ns, SPAN_STEP, "step", run);
	put_span(model, track, start_ns, start_ns + (int64_t)MS, SPAN_PHASE, "data", run);
	put_span(model, track, start_ns + (int64_t)MS, end_ns, SPAN_PHASE, "forward", run);
	if (kind == 'o')
		put_span(model, track, start_ns + (int64_t)(2 * MS), start_ns + (int64_t)(6 * MS), SPAN_OP, "matmul",
		         run);
	if (run->garbage && run->garbage[i] == 'g')
		put_span(model, track, start_ns + (int64_t)(7 * MS), start_ns + (int64_t)(8 * MS), SPAN_RANGE,
		         "garbage collection 2", run);
	if (run->seldom && run->seldom[i] == 's' && kind == 'o')
		put_span(model, track, start_ns + (int64_t)(8 * MS), start_ns + (int64_t)(9 * MS), SPAN_OP, "seldom",
		         run);
	*model_add_step(model) = step;
	return end_ns;
}

uint32_t mixed_model_add(struct model *model, const struct mixed_run *run)
{
	uint32_t number = model_add_process(model), track = model_add_track(model, number, TRACK_THREAD);
	struct process *process = &model->processes[number];
	int64_t now_ns = run->first_ns;

	process->pid = 4242 + (run->rank < 0 ? (int32_t)number : run->rank);
	process->rank = run->rank;
	process->host = intern_add(&model->strings, "node-1");
	process->name = intern_add(&model->strings, "train");
	process->has_cost = true;
	process->is_closed = true;
	process->end_reason = intern_add(&model->strings, "exit");
	model->tracks[track]->tid = process->pid;
	model->tracks[track]->is_main = true;
	for (int64_t i = 0; run->kinds[i]; i++)
		now_ns = put_step(model, track, now_ns, run, i);
	if (run->budget)
		model_add_meta(model, number, "budget", run->budget);
	process->has_times = true;
	process->first_ns = run->first_ns;
	process->last_ns = now_ns;
	return number;
}

void mixed_model_init(struct model *model, const char *kinds, double step_ms, double cost_ms)
{
	model_init(model, 0);
	mixed_model_add(model, &(struct mixed_run){.kinds = kinds, .step_ms = step_ms, .cost_ms = cost_ms, .rank = -1});
	model_finish(model);
}
