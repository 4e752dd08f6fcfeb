/* SPDX-License-Identifier: Apache-2.0
 *
 * export_sample.c: see export_sample.h.
 */
#include "export_sample.h"

#include "stepscope/format.h"
#include "stepscope/stepscope.h"

#include <math.h>
#include <stdio.h>

#define STEP_NS 1000000
#define STEPS 3

struct rank {
	struct model *model;
	uint32_t process, main, loader, stream7, stream20;
	uint64_t correlation;
};

static uint32_t word(struct model *model, const char *text)
{
	return intern_add(&model->strings, text);
}

static uint32_t track(struct rank *rank, enum track_kind kind, int64_t tid, int32_t device, const char *name)
{
	uint32_t number = model_add_track(rank->model, rank->process, kind);
	struct track *added = rank->model->tracks[number];

	added->tid = tid;
	added->device = device;
	added->name = name ? word(rank->model, name) : 0;
	added->sort = number;
	return number;
}

/* An op that launches a kernel: runtime call inside it, kernel on the stream, link between them. */
static void launch(struct rank *rank, int64_t at_ns, uint32_t stream, const char *name, const char *kernel)
{
	struct model *model = rank->model;
	uint32_t op = model_span_begin(model, rank->main, at_ns, SPAN_OP, word(model, name));
	uint32_t call, run;

	model_span_set_shape(model, rank->main, op, word(model, "[[32, 64], [64, 128]]"));
	call = model_span_complete(model, rank->main, at_ns + 2000, 5125, SPAN_RUNTIME,
	                           word(model, "cudaLaunchKernel"));
	model_span_end(model, rank->main, at_ns + 10001, 0);
	run = model_span_complete(model, stream, at_ns + 20000, 40250, SPAN_KERNEL, word(model, kernel));
	model_add_link(model,
	               &(struct model_link){STEPSCOPE_LINK_LAUNCH, ++rank->correlation, rank->main, call, stream, run});
}

static void add_step(struct rank *rank, int64_t number)
{
	struct model *model = rank->model;
	int64_t at = 5000 + number * STEP_NS;
	struct model_step *step = model_add_step(model);

	*step = (struct model_step){.process = rank->process,
	                            .track = rank->main,
	                            .number = number + 10,
	                            .start_ns = at,
	                            .end_ns = at + STEP_NS - 1000,
	                            .has_tokens = true,
	                            .tokens = 2048,
	                            .has_detail = true,
	                            .has_shapes = true,
	                            .has_memory = true};
	step->row = model_span_begin(model, rank->main, at, SPAN_STEP, word(model, "step"));
	model_span_complete(model, rank->main, at + 100, 99900, SPAN_PHASE, word(model, "data"));
	model_span_begin(model, rank->main, at + 100000, SPAN_PHASE, word(model, "forward"));
	launch(rank, at + 101000, rank->stream7, "mm", "gemm<128, 64>");
	launch(rank, at + 201000, rank->stream20, "quo\"te\\back\nline\ttab\x01 \xc3\xa9 \xff", "copy");
	launch(rank, at + 301000, rank->stream20, "softmax", "softmax_warp");
	model_span_complete(model, rank->main, at + 350000, 0, SPAN_OP, word(model, "empty"));
	model_span_end(model, rank->main, at + 400000, 0);
	model_span_complete(model, rank->loader, at + 50, 300000, SPAN_RANGE, word(model, "load batch"));
	model_add_memory(model, &(struct memory_event){.time_ns = at + 110000,
	                                               .address = 0x1000,
	                                               .bytes = 4096,
	                                               .process = rank->process,
	                                               .track = rank->main,
	                                               .row = MODEL_NONE,
	                                               .device = 0,
	                                               .category = STEPSCOPE_MEMORY_ACTIVATION,
	                                               .has_bytes = true});
	model_add_value(model, rank->process, word(model, "loss"), true, at + 600000,
	                number == 1 ? NAN : 2.5 / (double)(number + 1));
	model_add_value(model, rank->process, word(model, "queue length"), false, at + 10, (double)number);
	model_add_mark(model, rank->main, at + 500000, word(model, "checkpoint written"));
	model_span_end(model, rank->main, at + STEP_NS - 1000, 0);
}

static void add_rank(struct model *model, unsigned number)
{
	struct rank rank = {.model = model, .process = model_add_process(model)};
	struct process *process = &model->processes[rank.process];
	struct span_arg arg = {.type = STEPSCOPE_ARG_F64, .f64 = 1048576};

	process->host = word(model, "node1");
	process->pid = 4242 + number;
	process->rank = (int32_t)number;
	process->world_size = 2;
	process->name = word(model, "train");
	process->realtime_offset_ns = INT64_C(1790857026000000123);
	rank.main = track(&rank, TRACK_THREAD, 4242 + number, -1, "train");
	model->tracks[rank.main]->is_main = true;
	rank.loader = track(&rank, TRACK_THREAD, 4250 + number, -1, "loader");
	rank.stream7 = track(&rank, TRACK_DEVICE, 0, (int32_t)number, NULL); /* the default stream */
	rank.stream20 = track(&rank, TRACK_DEVICE, 20, (int32_t)number, NULL);
	for (int64_t step = 0; step < STEPS; step++)
		add_step(&rank, step);
	arg.track = rank.main;
	arg.row = model_span_begin(model, rank.main, 5000 + STEPS * STEP_NS, SPAN_OP, word(model, "hangs here"));
	arg.key = word(model, "flops");
	model_span_arg(model, &arg);
	model->processes[rank.process].last_ns = 5000 + STEPS * STEP_NS + 12345;
	model->processes[rank.process].first_ns = 1000;
}

void sample_fill(struct model *model, unsigned rank_count)
{
	for (unsigned i = 0; i < rank_count; i++)
		add_rank(model, i);
	model_add_meta(model, 0, "model", "gpt \"small\"");
	model_finish(model);
}

void sample_cross_kernels(struct model *model)
{
	struct span_chunk *chunk = model->tracks[3]->chunks[0];

	chunk->dur_ns[0] = chunk->start_ns[1] - chunk->start_ns[0] + 1000; /* ends inside the second one */
}

struct sample_sum sample_sum(const struct model *model)
{
	struct sample_sum sum = {0, 0};

	for (uint32_t i = 0; i < model->tracks_count; i++) {
		const struct track *each = model->tracks[i];

		for (uint32_t k = 0; k < each->chunk_count; k++)
			for (uint32_t row = 0; row < each->chunks[k]->count; row++)
				sum.dur_ns += each->chunks[k]->dur_ns[row];
		sum.spans += each->span_count;
	}
	return sum;
}
