/* SPDX-License-Identifier: Apache-2.0
 *
 * hand_model.c: see the header.
 */
#include "hand_model.h"

#include <stepscope/format.h>
#include <stepscope/stepscope.h>

struct rank {
	struct model *model;
	uint32_t process, track;
	int64_t now_ns;
};

static void begin(struct rank *rank, enum span_kind kind, const char *name)
{
	model_span_begin(rank->model, rank->track, rank->now_ns, kind, intern_add(&rank->model->strings, name));
}

static void end(struct rank *rank, int64_t after_ns)
{
	rank->now_ns += after_ns;
	model_span_end(rank->model, rank->track, rank->now_ns, 0);
}

static void add_matmul(struct rank *rank)
{
	enum span_kind kind;
	uint32_t row;

	rank->now_ns += 2 * MS;
	begin(rank, SPAN_OP, "matmul");
	rank->now_ns += 2 * MS;
	begin(rank, SPAN_OP, "matmul");
	row = model_span_innermost(rank->model, rank->track, &kind);
	model_span_set_shape(rank->model, rank->track, row, intern_add(&rank->model->strings, "[8, 16] x [16, 4]"));
	model_span_arg(rank->model, &(struct span_arg){.track = rank->track,
	                                               .row = row,
	                                               .key = intern_add(&rank->model->strings, "flops"),
	                                               .type = STEPSCOPE_ARG_F64,
	                                               .f64 = 4e6});
	end(rank, 4 * MS);
	end(rank, 4 * MS);
	rank->now_ns += 2 * MS;
	begin(rank, SPAN_RANGE, "layer");
	end(rank, 4 * MS);
	rank->now_ns += 2 * MS;
}

static void add_phases(struct rank *rank, int64_t wait_ns)
{
	begin(rank, SPAN_PHASE, "data");
	end(rank, 10 * MS + wait_ns);
	begin(rank, SPAN_PHASE, "forward");
	add_matmul(rank);
	end(rank, 0);
	begin(rank, SPAN_PHASE, "backward");
	end(rank, 30 * MS);
	begin(rank, SPAN_PHASE, "optimizer");
	end(rank, 10 * MS);
}

static void add_step(struct rank *rank, int64_t number, int64_t wait_ns, bool is_open)
{
	struct model_step step = {.process = rank->process,
	                          .track = rank->track,
	                          .number = number,
	                          .start_ns = rank->now_ns,
	                          .capture = STEPSCOPE_CAPTURE_RECORD,
	                          .has_detail = true,
	                          .has_shapes = true,
	                          .has_memory = true,
	                          .has_tokens = true,
	                          .tokens = 1000};

	step.row = model_span_begin(rank->model, rank->track, rank->now_ns, SPAN_STEP,
	                            intern_add(&rank->model->strings, "step"));
	add_phases(rank, wait_ns);
	rank->now_ns += 30 * MS + 10 * MS * number;
	if (!is_open)
		model_span_end(rank->model, rank->track, rank->now_ns, 0);
	step.end_ns = rank->now_ns;
	step.is_open = is_open;
	*model_add_step(rank->model) = step;
	rank->now_ns += is_open ? 0 : 5 * MS;
}

static void add_memory(struct rank *rank, int64_t time_ns, uint64_t address, uint64_t bytes, int category, bool is_free)
{
	model_add_memory(rank->model, &(struct memory_event){.time_ns = time_ns,
	                                                     .address = address,
	                                                     .bytes = is_free ? 0 : bytes,
	                                                     .process = rank->process,
	                                                     .track = rank->track,
	                                                     .row = MODEL_NONE,
	                                                     .device = STEPSCOPE_DEVICE_CPU,
	                                                     .category = (uint8_t)category,
	                                                     .is_free = is_free,
	                                                     .has_bytes = !is_free});
}

/* 1000 bytes of parameters for good, 500 of activations in each step, and 10 per step that nobody frees. */
static void add_allocations(struct rank *rank, int64_t start_ns, int64_t number)
{
	if (number == 0)
		add_memory(rank, start_ns + MS, 0x1000, 1000, STEPSCOPE_MEMORY_PARAMETER, false);
	add_memory(rank, start_ns + 11 * MS, 0x2000, 500, STEPSCOPE_MEMORY_ACTIVATION, false);
	add_memory(rank, start_ns + 12 * MS, 0x9000 + (uint64_t)number * 16, 10, STEPSCOPE_MEMORY_OTHER, false);
	add_memory(rank, start_ns + 50 * MS, 0x2000, 0, STEPSCOPE_MEMORY_ACTIVATION, true);
}

static void add_rank(struct model *model, int32_t number)
{
	struct rank rank = {.model = model, .process = model_add_process(model), .now_ns = 50 * MS};
	struct process *process = &model->processes[rank.process];

	process->pid = 4242 + number;
	process->rank = number;
	process->world_size = 2;
	process->host = intern_add(&model->strings, "node-1");
	process->name = intern_add(&model->strings, "train");
	process->realtime_offset_ns = 1795248189000000000;
	process->has_cost = true;
	process->cost_per_event_ns = 40;
	process->event_count = 100;
	process->drainer_cpu_ns = MS;
	process->is_closed = number == 0;
	process->end_reason = number == 0 ? intern_add(&model->strings, "exit") : 0;
	rank.track = model_add_track(model, rank.process, TRACK_THREAD);
	model->tracks[rank.track]->tid = 4242 + number;
	model->tracks[rank.track]->is_main = true;
	for (int64_t step = 0; step < 5; step++) {
		int64_t start_ns = rank.now_ns;

		add_step(&rank, step, number == 1 ? 20 * MS : 0, number == 1 && step == 4);
		add_allocations(&rank, start_ns, step);
		model_add_value(model, rank.process, intern_add(&model->strings, "loss"), true, rank.now_ns - 6 * MS,
		                5.0 - (double)step);
	}
	process = &model->processes[rank.process];
	process->last_ns = rank.now_ns;
}

void hand_model_init(struct model *model)
{
	model_init(model, 0);
	add_rank(model, 0);
	add_rank(model, 1);
	model_add_meta(model, 0, "capture", "recorded steps 0 to 4: everything, all the time");
	model_add_meta(model, 0, "argv", "./train --steps 5");
	model_add_ledger(model, LEDGER_DROPPED, 0, "loader", 7, "events were dropped because the buffer was full");
	model_finish(model);
}
