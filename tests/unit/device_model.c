/* SPDX-License-Identifier: Apache-2.0
 *
 * device_model.c: see the header.
 */
#include "device_model.h"

#include "model/launch_config.h"

static uint32_t text(struct model *model, const char *string)
{
	return intern_add(&model->strings, string);
}

static uint32_t add(struct model *model, uint32_t track, int64_t start_us, int64_t end_us, enum span_kind kind,
                    const char *name, uint64_t correlation)
{
	uint32_t row = model_span_complete(model, track, start_us * US, (end_us - start_us) * US, kind,
	                                   text(model, name));

	if (correlation)
		model_span_set_correlation(model, track, row, correlation);
	return row;
}

static void configure(struct model *model, uint32_t track, uint32_t row, const char *config)
{
	model_span_set_inputs(model, track, row, text(model, config));
}

static void add_step(struct model *model, int64_t number, uint32_t row)
{
	*model_add_step(model) = (struct model_step){.track = DEVICE_MODEL_HOST,
	                                             .row = row,
	                                             .number = number,
	                                             .start_ns = number * 100 * US,
	                                             .end_ns = (number + 1) * 100 * US,
	                                             .has_detail = true};
}

static void add_host(struct model *model)
{
	uint32_t host = DEVICE_MODEL_HOST;

	add_step(model, 0, add(model, host, 0, 100, SPAN_STEP, "ProfilerStep#0", 0));
	add(model, host, 0, 20, SPAN_ANNOTATION, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0);
	add(model, host, 20, 40, SPAN_OP, "aten::mm", 0);
	add(model, host, 25, 30, SPAN_RUNTIME, "cudaLaunchKernel", 1);
	add(model, host, 40, 60, SPAN_OP, "aten::copy_", 0);
	add(model, host, 45, 50, SPAN_RUNTIME, "cudaMemcpyAsync", 2);
	add(model, host, 80, 95, SPAN_RUNTIME, "cudaDeviceSynchronize", 3);
	add_step(model, 1, add(model, host, 100, 200, SPAN_STEP, "ProfilerStep#1", 0));
	add(model, host, 120, 140, SPAN_OP, "aten::mm", 0);
	add(model, host, 125, 130, SPAN_RUNTIME, "cuLaunchKernel", 4);
	add(model, host, 140, 150, SPAN_OP, "c10d::allreduce_", 0);
	add(model, host, 142, 144, SPAN_RUNTIME, "cudaLaunchKernel", 5);
	add(model, host, 160, 162, SPAN_RUNTIME, "cudaLaunchKernel", 6);
}

static void add_streams(struct model *model)
{
	static const char gemm[] = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64";
	static const char
		shape[] = "grid=4,1,1;block=128,1,1;registers=32;shared_bytes=1024;blocks_per_sm=0.5;occupancy=0.25";
	uint32_t seven = DEVICE_MODEL_STREAM_7, nine = DEVICE_MODEL_STREAM_9;

	configure(model, seven, add(model, seven, 35, 65, SPAN_KERNEL, gemm, 1), shape);
	configure(model, seven, add(model, seven, 65, 75, SPAN_MEMCPY, "Memcpy HtoD (Pageable -> Device)", 2),
	          "bytes=1000000");
	configure(model, seven, add(model, seven, 135, 155, SPAN_KERNEL, gemm, 4), shape);
	configure(model, seven, add(model, seven, 164, 174, SPAN_KERNEL, gemm, 6), shape);
	add(model, seven, 180, 182, SPAN_KERNEL, "lonely", 77);
	configure(model, nine,
	          add(model, nine, 150, 170, SPAN_KERNEL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)",
	              5),
	          "in_count=1000;out_count=1000;group_ranks=4;collective=allreduce;dtype=Float");
}

void device_model_init(struct model *model)
{
	uint32_t process;

	model_init(model, 0);
	process = model_add_process(model);
	model->processes[process].pid = 4242;
	model_add_track(model, process, TRACK_THREAD);
	model_add_track(model, process, TRACK_DEVICE);
	model_add_track(model, process, TRACK_DEVICE);
	model->tracks[DEVICE_MODEL_HOST]->is_main = true;
	model->tracks[DEVICE_MODEL_STREAM_7]->device = model->tracks[DEVICE_MODEL_STREAM_9]->device = 0;
	model->tracks[DEVICE_MODEL_STREAM_7]->tid = 7;
	model->tracks[DEVICE_MODEL_STREAM_9]->tid = 9;
	add_host(model);
	add_streams(model);
	model_finish(model);
}
