/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of a device, of a run made by hand (device_model.h), against numbers worked out on paper. Every table must keep its columns'
 * promises.
 */
#include "analysis/devices/device_peaks.h"
#include "analysis/shared/intervals.h"
#include "computed.h"
#include "device_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stepscope/format.h>
#include <string.h>

#include <cmocka.h>

static void check(const struct table *table, int row, const char *column, double expected)
{
	double value;

	if (!table_number(table, row, table_find_column(table, column), &value))
		fail_msg("'%s' of row %d of table '%s' was not measured", column, row, table->name);
	if (fabs(value - expected) > 1e-12 * fabs(expected))
		fail_msg("'%s' of row %d of table '%s' is %f, not %f", column, row, table->name, value, expected);
}

static void check_missing(const struct table *table, int row, const char *column)
{
	const struct table_cell *cell = table_get(table, row, table_find_column(table, column));

	assert_false(cell->has_value);
	assert_non_null(cell->reason);
}

struct device_run {
	struct model model;
	struct table table;
};

static void run_table(struct device_run *run, const char *name)
{
	device_model_init(&run->model);
	compute(name, &run->model, &all_steps, &run->table);
}

static void run_release(struct device_run *run)
{
	table_release(&run->table);
	model_release(&run->model);
}

static void a_step_is_what_the_device_does_and_why_it_does_nothing(void **state)
{
	static const struct {
		const char *column;
		double steps_us[2];
	} parts[] = {{"step_ns", {100, 100}}, {"compute_ns", {30, 32}}, {"communication_ns", {0, 9}},
	             {"copies_ns", {10, 0}},  {"queued_ns", {0, 0}},    {"launch_ns", {10, 10}},
	             {"data_ns", {20, 0}},    {"sync_ns", {15, 0}},     {"runtime_ns", {0, 0}},
	             {"host_ns", {5, 5}},     {"other_ns", {10, 44}}};
	struct device_run run;

	run_table(&run, "step_parts");
	assert_int_equal(run.table.row_count, 2);
	for (int step = 0; step < 2; step++)
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			check(&run.table, step, parts[i].column, parts[i].steps_us[step] * US);
	run_release(&run);
	run_table(&run, "step_breakdown");
	check(&run.table, find_row(&run.table, "part", "compute kernels"), "mean_ns", 31 * US);
	check(&run.table, find_row(&run.table, "part", "compute kernels"), "ratio", 0.31);
	run_release(&run);
}

static void devices_are_busy_or_idle_for_a_reason(void **state)
{
	static const struct {
		const char *column;
		double whole_us, steps_us[2];
	} times[] = {{"busy_ns", 81, {40, 41}},
	             {"kernel_ns", 71, {30, 41}},
	             {"compute_ns", 62, {30, 32}},
	             {"communication_ns", 20, {0, 20}},
	             {"exposed_communication_ns", 9, {0, 9}},
	             {"copies_ns", 10, {10, 0}},
	             {"hidden_copies_ns", 0, {0, 0}},
	             {"idle_ns", 66, {60, 59}},
	             {"idle_queued_ns", 0, {0, 0}},
	             {"idle_launch_ns", 10, {10, 10}},
	             {"idle_unlaunched_ns", 50, {25, 25}},
	             {"idle_unknown_ns", 6, {25, 24}}};
	struct device_run run;

	run_table(&run, "device_busy");
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		check(&run.table, 0, times[i].column, times[i].whole_us * US);
	check(&run.table, 0, "extent_ns", 147 * US);
	check(&run.table, 0, "sum_ns", 92 * US);
	check(&run.table, 0, "kernel_count", 5);
	check(&run.table, 0, "copy_count", 1);
	check(&run.table, 0, "unlaunched_count", 1);
	check(&run.table, 0, "streams", 2);
	check(&run.table, 0, "busy_ratio", 81.0 / 147);
	check(&run.table, 0, "step_kernel_ratio", 71.0 / 200);
	check(&run.table, 0, "sm_efficiency_ratio", 0.5);
	check(&run.table, 0, "occupancy_ratio", 0.25);
	check(&run.table, 0, "tensor_core_ratio", 60.0 / 82);
	check(&run.table, 0, "step_sm_ratio", 0.15);
	run_release(&run);
	run_table(&run, "device_steps");
	for (int step = 0; step < 2; step++) {
		check(&run.table, step, "sm_efficiency_ratio", 0.5);
		check(&run.table, step, "occupancy_ratio", 0.25);
		check(&run.table, step, "tensor_core_ratio", step ? 30.0 / 52 : 1);
		check(&run.table, step, "step_sm_ratio", 0.15);
	}
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		for (int step = 0; step < 2; step++)
			check(&run.table, step, times[i].column, times[i].steps_us[step] * US);
	run_release(&run);
}

static void peaks_are_found_by_whole_words(void **state)
{
	struct device_peak peak;

	assert_true(device_peak_find(&peak, "NVIDIA A100-SXM4-80GB", "bfloat16", true));
	assert_true(peak.flops_per_s > 311e12 && peak.flops_per_s < 313e12);
	assert_true(device_peak_find(&peak, "NVIDIA A100-SXM4-80GB", "float32", false));
	assert_true(peak.flops_per_s < 20e12);
	assert_true(device_peak_find(&peak, "NVIDIA A100-SXM4-80GB", "float32", true));
	assert_true(peak.flops_per_s > 150e12);
	assert_true(device_peak_find(&peak, "NVIDIA H100 PCIe", "float16", true));
	assert_string_equal(peak.device, "H100 PCIe");
	assert_true(device_peak_find(&peak, "NVIDIA H100 80GB HBM3", "float16", true));
	assert_string_equal(peak.device, "H100 SXM");
	assert_true(device_peak_find(&peak, "Tesla V100-PCIE-16GB", "float32", true)); /* which has no TF32 */
	assert_true(peak.flops_per_s < 15e12);
	assert_false(device_peak_find(&peak, "NVIDIA A10G", "float16", true));
	assert_false(device_peak_find(&peak, "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "float16", true));
	assert_false(device_peak_find(&peak, "NVIDIA A100-SXM4-80GB", "complex64", true));
	assert_false(device_peak_find(&peak, "", "float16", true));
}

/* A product of 1024 x 1024 matrices in a step of 1 ms, as TF32, and one whose sizes are not known. */
static void mfu_has_a_numerator_and_a_denominator(void **state)
{
	for (int is_unknown = 0; is_unknown < 2; is_unknown++) {
		struct device_run run;
		struct intern *strings = &run.model.strings;
		uint32_t host, stream, row;

		model_init(&run.model, 0);
		host = model_add_track(&run.model, model_add_process(&run.model), TRACK_THREAD);
		stream = model_add_track(&run.model, 0, TRACK_DEVICE);
		run.model.tracks[stream]->device = 0;
		model_add_meta(&run.model, 0, "device.0.name", "NVIDIA A100-SXM4-80GB");
		row = model_span_complete(&run.model, host, 0, 1000 * US, SPAN_STEP, intern_add(strings, "step"));
		*model_add_step(&run.model) = (struct model_step){
			.track = host, .row = row, .end_ns = 1000 * US, .has_detail = true};
		for (int i = 0; i <= is_unknown; i++) {
			row = model_span_complete(&run.model, host, (10 + i * 100) * US, 20 * US, SPAN_OP,
			                          intern_add(strings, "aten::mm"));
			model_span_set_inputs(&run.model, host, row,
			                      intern_add(strings, i ? "[] []\nt float;float"
			                                            : "[1024, 1024] [1024, 1024]\nt float;float"));
			row = model_span_complete(&run.model, host, (15 + i * 100) * US, US, SPAN_RUNTIME,
			                          intern_add(strings, "cudaLaunchKernel"));
			model_span_set_correlation(&run.model, host, row, (uint64_t)i + 1);
			row = model_span_complete(&run.model, stream, (20 + i * 100) * US, 50 * US, SPAN_KERNEL,
			                          intern_add(strings, "sm80_xmma_gemm_f32f32_tf32f32"));
			model_span_set_correlation(&run.model, stream, row, (uint64_t)i + 1);
		}
		model_finish(&run.model);
		compute("mfu", &run.model, &all_steps, &run.table);
		assert_int_equal(run.table.row_count, 2);
		check(&run.table, 0, "measured_ns", 1000 * US);
		check(&run.table, 0, "kernel_ns", 50 * US);
		check(&run.table, 0, "peak_flops_per_s", 156e12);
		check(&run.table, 0, "kernel_mfu_ratio", 2.0 * 1024 * 1024 * 1024 / 50e-6 / 156e12);
		for (int i = 0; i < 2; i++) {
			if (is_unknown) { /* the other half of the kernels' time is not in it */
				check_missing(&run.table, i, "flops");
				check_missing(&run.table, i, "flops_per_s");
				check_missing(&run.table, i, "mfu_ratio");
			} else {
				check(&run.table, i, "flops", 2.0 * 1024 * 1024 * 1024);
				check(&run.table, i, "flops_per_s", 2.0 * 1024 * 1024 * 1024 / 1e-3);
				check(&run.table, i, "mfu_ratio", 2.0 * 1024 * 1024 * 1024 / 1e-3 / 156e12);
			}
		}
		run_release(&run);
	}
}

static const char *text_of(const struct table *table, int row, const char *column)
{
	const struct table_cell *cell = table_get(table, row, table_find_column(table, column));

	assert_true(cell->has_value);
	return cell->text;
}

static void gaps_say_why_and_between_what(void **state)
{
	struct device_run run;

	run_table(&run, "device_gaps");
	assert_int_equal(run.table.row_count, 2);
	check(&run.table, 0, "gap_ns", 60 * US);
	check(&run.table, 0, "start_ns", 75 * US);
	check(&run.table, 0, "step", 0);
	check(&run.table, 0, "launch_ns", 10 * US);
	check(&run.table, 0, "sync_ns", 15 * US);
	check(&run.table, 0, "host_ns", 5 * US);
	check(&run.table, 0, "other_ns", 30 * US);
	assert_string_equal(text_of(&run.table, 0, "cause"), "nothing recorded");
	assert_string_equal(text_of(&run.table, 0, "operation_before"), "aten::copy_");
	assert_string_equal(text_of(&run.table, 0, "operation_after"), "aten::mm");
	check_missing(&run.table, 0, "host_call");
	check(&run.table, 1, "gap_ns", 6 * US);
	check_missing(&run.table, 1, "operation_after"); /* its launch is not there */
	run_release(&run);
}

static void add_launched(struct model *model, uint32_t host, int64_t call_us, int64_t call_end_us, const char *call,
                         int64_t start_us, int64_t end_us, const char *work)
{
	static uint64_t correlation;
	uint32_t stream = host + 1;
	uint32_t row = model_span_complete(model, host, call_us * US, (call_end_us - call_us) * US, SPAN_RUNTIME,
	                                   intern_add(&model->strings, call));

	model_span_set_correlation(model, host, row, ++correlation);
	row = model_span_complete(model, stream, start_us * US, (end_us - start_us) * US,
	                          strncmp(work, "Memcpy", 6) != 0 ? SPAN_KERNEL : SPAN_MEMCPY,
	                          intern_add(&model->strings, work));
	model_span_set_correlation(model, stream, row, correlation);
}

/* .item() behind a kernel, and a copy into pinned memory for which nobody waits. loading_us: wait for the next batch between them. */
static void copies_init_with(struct model *model, int64_t loading_us)
{
	uint32_t host;

	model_init(model, 0);
	host = model_add_track(model, model_add_process(model), TRACK_THREAD);
	model_add_track(model, 0, TRACK_DEVICE);
	add_launched(model, host, 0, 1, "cudaLaunchKernel", 2, 20, "x");
	model_span_complete(model, host, 5 * US, 25 * US, SPAN_OP,
	                    intern_add(&model->strings, "aten::_local_scalar_dense"));
	add_launched(model, host, 6, 8, "cudaMemcpyAsync", 20, 24, "Memcpy DtoH (Device -> Pageable)");
	model_span_complete(model, host, 8 * US, 17 * US, SPAN_RUNTIME,
	                    intern_add(&model->strings, "cudaStreamSynchronize"));
	if (loading_us)
		model_span_complete(model, host, 31 * US, loading_us * US, SPAN_RANGE,
		                    intern_add(&model->strings, "enumerate(DataLoader)#Iter.__next__"));
	add_launched(model, host, 40, 41, "cudaLaunchKernel", 45, 50, "x");
	model_span_complete(model, host, 60 * US, 5 * US, SPAN_OP, intern_add(&model->strings, "aten::copy_"));
	add_launched(model, host, 60, 61, "cudaMemcpyAsync", 70, 72, "Memcpy DtoH (Device -> Pinned)");
	add_launched(model, host, 80, 81, "cudaMemcpyAsync", 82, 84, "Memcpy HtoD (Pageable -> Device)");
	model_finish(model);
}

/* Kernels from 2 us to 20, 45 to 50 and 70 to 75; the device is idle in both calls that wait. */
static void syncs_init(struct model *model)
{
	static const char call[] = "cudaDeviceSynchronize";
	uint32_t host;

	model_init(model, 0);
	host = model_add_track(model, model_add_process(model), TRACK_THREAD);
	model_add_track(model, 0, TRACK_DEVICE);
	add_launched(model, host, 0, 1, "cudaLaunchKernel", 2, 20, "x");
	add_launched(model, host, 40, 41, "cudaLaunchKernel", 45, 50, "x");
	model_span_complete(model, host, 41 * US, 10 * US, SPAN_RUNTIME, intern_add(&model->strings, call));
	model_span_complete(model, host, 55 * US, 5 * US, SPAN_RUNTIME, intern_add(&model->strings, call));
	add_launched(model, host, 66, 67, "cudaLaunchKernel", 70, 75, "x");
	model_finish(model);
}

static void copies_init(struct model *model)
{
	copies_init_with(model, 0);
}

/* The device is idle from 24 us to 45 us, the last 5 us of it within the launch; of the rest the thread waits 6 us for the next batch. */
static void what_a_loader_keeps_idle_is_not_the_copys(void **state)
{
	struct device_run run;

	copies_init_with(&run.model, 6);
	compute("copy_waits", &run.model, &all_steps, &run.table);
	check(&run.table, find_row(&run.table, "operation", "aten::_local_scalar_dense"), "idle_after_ns", 15 * US);
	run_release(&run);
}

/* A call waits for the second kernel from 41 us to 51 us, and one for nothing from 55 us on; the copy's own wait is none of them. */
static void what_waits_until_the_device_is_done_is_told(void **state)
{
	struct device_run run;
	int row;

	copies_init_with(&run.model, 0);
	compute("sync_waits", &run.model, &all_steps, &run.table);
	assert_int_equal(run.table.row_count, 0);
	run_release(&run);
	syncs_init(&run.model);
	compute("sync_waits", &run.model, &all_steps, &run.table);
	assert_int_equal(run.table.row_count, 1);
	row = find_row(&run.table, "call", "cudaDeviceSynchronize");
	check(&run.table, row, "calls", 1);
	check(&run.table, row, "wait_ns", 10 * US);
	check(&run.table, row, "kept_idle_ns", 10 * US); /* of 20 */
	check(&run.table, row, "kept_idle_ratio", 10.0 / 73);
	run_release(&run);
}

static void copies_to_the_host_are_waited_for(void **state)
{
	struct device_run run;
	int row;

	copies_init(&run.model);
	compute("copy_waits", &run.model, &all_steps, &run.table);
	assert_int_equal(run.table.row_count, 2);
	row = find_row(&run.table, "operation", "aten::_local");
	check(&run.table, row, "waited_count", 1);
	check(&run.table, row, "pageable_count", 1);
	check(&run.table, row, "copy_ns", 4 * US);
	check(&run.table, row, "wait_ns", 19 * US);
	check(&run.table, row, "idle_after_ns", 21 * US);
	check(&run.table, row, "idle_after_ratio", 21.0 / 82);
	row = find_row(&run.table, "operation", "aten::copy_");
	check(&run.table, row, "waited_count", 0);
	check(&run.table, row, "wait_ns", 0);
	check(&run.table, row, "idle_after_ns", 10 * US);
	run_release(&run);
}

/* Copies on two streams end at 24 us; the device is idle until 30. */
static void time_behind_copies_that_end_together_counts_once(void **state)
{
	struct device_run run;
	struct model *model = &run.model;

	model_init(model, 0);
	model_add_track(model, model_add_process(model), TRACK_THREAD);
	model_add_track(model, 0, TRACK_DEVICE);
	model_add_track(model, 0, TRACK_DEVICE);
	for (uint32_t stream = 1; stream <= 2; stream++)
		model_span_complete(model, stream, 20 * US, 4 * US, SPAN_MEMCPY,
		                    intern_add(&model->strings, "Memcpy DtoH (Device -> Pinned)"));
	model_span_complete(model, 1, 30 * US, 2 * US, SPAN_KERNEL, intern_add(&model->strings, "x"));
	model_finish(model);
	compute("copy_waits", model, &all_steps, &run.table);
	assert_int_equal(run.table.row_count, 1);
	check(&run.table, 0, "calls", 2);
	check(&run.table, 0, "idle_after_ns", 6 * US);
	check(&run.table, 0, "idle_after_ratio", 6.0 / 12);
	run_release(&run);
}

struct part_us {
	const char *column;
	double us;
};

static void check_parts(const struct table *table, int row, const struct part_us *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(table, row, parts[i].column, parts[i].us * US);
}

static void a_critical_path_is_one_thing_at_each_instant(void **state)
{
	static const struct part_us first[] = {{"path_ns", 100},   {"data_ns", 20},  {"operator_ns", 30},
	                                       {"runtime_ns", 10}, {"sync_ns", 15},  {"other_ns", 25},
	                                       {"compute_ns", 0},  {"queued_ns", 0}, {"launch_ns", 0}},
				    second[] = {{"path_ns", 100},
	                                        {"operator_ns", 23},
	                                        {"runtime_ns", 9},
	                                        {"other_ns", 68}},
				    waits[] = {{"path_ns", 84},   {"compute_ns", 18}, {"copies_ns", 6},
	                                       {"launch_ns", 4},  {"sync_ns", 1},     {"operator_ns", 9},
	                                       {"runtime_ns", 2}, {"other_ns", 44},   {"queued_ns", 0}};
	struct device_run run;

	run_table(&run, "critical_steps");
	check_parts(&run.table, 0, first, sizeof(first) / sizeof(first[0]));
	check_parts(&run.table, 1, second, sizeof(second) / sizeof(second[0]));
	run_release(&run);
	copies_init(&run.model); /* without steps, through the device */
	compute("critical_steps", &run.model, &all_steps, &run.table);
	check_parts(&run.table, 0, waits, sizeof(waits) / sizeof(waits[0]));
	table_release(&run.table);
	compute("critical_path", &run.model, &all_steps, &run.table);
	check(&run.table, find_row(&run.table, "name", "x"), "total_ns", 18 * US);
	run_release(&run);
}

/* The thread that marks the step is in a range; another one, in an operator, launches a kernel that the range waits for in the end.
 * A second kernel, on another stream, begins when the first ends, 30 us behind its own launch. */
static void a_critical_path_goes_through_other_threads_and_streams(void **state)
{
	static const struct part_us parts[] = {{"path_ns", 100}, {"host_ns", 15},    {"operator_ns", 10},
	                                       {"launch_ns", 5}, {"compute_ns", 60}, {"queued_ns", 5},
	                                       {"sync_ns", 5},   {"other_ns", 0}};
	struct device_run run;
	uint32_t host, stream, row;
	struct intern *strings = &run.model.strings;

	model_init(&run.model, 0);
	host = model_add_track(&run.model, model_add_process(&run.model), TRACK_THREAD);
	for (int i = 0; i < 2; i++) {
		run.model.tracks[model_add_track(&run.model, 0, TRACK_THREAD)]->tid = 2 + i;
		stream = model_add_track(&run.model, 0, TRACK_DEVICE);
		run.model.tracks[stream]->tid = 7 + i;
	}
	row = model_span_complete(&run.model, host, 0, 100 * US, SPAN_STEP, intern_add(strings, "step"));
	*model_add_step(&run.model) = (struct model_step){
		.track = host, .row = row, .end_ns = 100 * US, .has_detail = true};
	model_span_complete(&run.model, host, 0, 100 * US, SPAN_RANGE, intern_add(strings, "backward"));
	model_span_complete(&run.model, host, 90 * US, 10 * US, SPAN_RUNTIME,
	                    intern_add(strings, "cudaDeviceSynchronize"));
	model_span_complete(&run.model, 1, 15 * US, 20 * US, SPAN_OP, intern_add(strings, "aten::mm"));
	add_launched(&run.model, 1, 25, 26, "cudaLaunchKernel", 30, 60, "x");
	add_launched(&run.model, 3, 35, 36, "cudaLaunchKernel", 65, 95, "y");
	model_finish(&run.model);
	compute("critical_steps", &run.model, &all_steps, &run.table);
	check_parts(&run.table, 0, parts, sizeof(parts) / sizeof(parts[0]));
	run_release(&run);
}

#define CLOCK_OFF (11560000 * US)
#define REDUCTIONS 5
#define ALL_REDUCE "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
#define REDUCED "collective=allreduce;dtype=Float;in_count=100000;group_ranks=2"

/* Two ranks whose clocks lie 11.56 s apart, five reductions: rank 1 comes 1600 us behind rank 0, and both end together; one of them has
 * a collective more when `is_odd`. */
static void two_ranks_init(struct model *model, bool is_odd)
{
	uint32_t kernel, stream;

	model_init(model, 0);
	kernel = intern_add(&model->strings, ALL_REDUCE);
	for (int64_t rank = 0; rank < 2; rank++) {
		int64_t late_ns = rank * 1600 * US, clock_ns = rank * CLOCK_OFF;
		uint32_t process = model_add_process(model);

		model->processes[process].rank = (int32_t)rank;
		stream = model_add_track(model, process, TRACK_DEVICE);
		for (int64_t i = 0; i < REDUCTIONS + (is_odd && rank); i++)
			model_span_set_inputs(model, stream,
			                      model_span_complete(model, stream, clock_ns + i * 5000 * US + late_ns,
			                                          2000 * US - late_ns, SPAN_KERNEL, kernel),
			                      intern_add(&model->strings, REDUCED));
	}
	model_finish(model);
}

static void clocks_of_ranks_are_put_right_by_collectives(void **state)
{
	struct device_run run;
	double ahead[2];

	two_ranks_init(&run.model, false);
	compute("rank_collectives", &run.model, &all_steps, &run.table);
	assert_int_equal(run.table.row_count, 2);
	for (int rank = 0; rank < 2; rank++) {
		assert_true(
			table_number(&run.table, rank, table_find_column(&run.table, "clock_ahead_ns"), &ahead[rank]));
		check(&run.table, rank, "collectives", REDUCTIONS);
		check(&run.table, rank, "clock_residual_ns", 0);
		check(&run.table, rank, "late_mean_ns", rank * 1600 * US);
		check(&run.table, rank, "last_count", rank * REDUCTIONS);
		check(&run.table, rank, "caused_total_ns", rank * REDUCTIONS * 1600 * US);
		check(&run.table, rank, "waits_total_ns", (1 - rank) * REDUCTIONS * 1600 * US);
	}
	assert_true(ahead[1] - ahead[0] == CLOCK_OFF);
	assert_true(strstr(text_of(&run.table, 0, "waits_for"), "rank 1"));
	table_release(&run.table);
	compute("collective_times", &run.model, &all_steps, &run.table);
	check(&run.table, 0, "skew_mean_ns", 1600 * US);
	check(&run.table, 0, "exchange_mean_ns", 400 * US);
	check(&run.table, 0, "exchange_ratio", 400.0 / 1200);
	check(&run.table, 0, "bus_bytes_per_s", 400000 / 400e-6);
	run_release(&run);
	two_ranks_init(&run.model, true); /* nobody can tell which is which */
	compute("rank_collectives", &run.model, &all_steps, &run.table);
	assert_int_equal(run.table.row_count, 0);
	assert_non_null(run.table.empty);
	run_release(&run);
}

/* Two ranks, four steps of 5 ms; rank 1 is late by 1 ms in the reduction of each. Operators of the first two were not recorded, or removed again;
 * a reduction of the second is still there. */
static void waits_for_a_rank_are_those_of_steps_with_operators(void **state)
{
	struct device_run run;
	int row;

	model_init(&run.model, 0);
	for (int64_t rank = 0; rank < 2; rank++) {
		uint32_t process = model_add_process(&run.model), name = intern_add(&run.model.strings, ALL_REDUCE);
		uint32_t host = model_add_track(&run.model, process, TRACK_THREAD);
		uint32_t stream = model_add_track(&run.model, process, TRACK_DEVICE);

		run.model.processes[process].rank = (int32_t)rank;
		for (int64_t i = 0; i < 4; i++) {
			int64_t start_ns = i * 5000 * US;
			uint32_t step = model_span_complete(&run.model, host, start_ns, 5000 * US, SPAN_STEP, name);

			*model_add_step(&run.model) = (struct model_step){.process = process,
			                                                  .track = host,
			                                                  .row = step,
			                                                  .number = i,
			                                                  .start_ns = start_ns,
			                                                  .end_ns = start_ns + 5000 * US,
			                                                  .has_detail = i >= 2};
			if (i >= 1)
				model_span_set_inputs(&run.model, stream,
				                      model_span_complete(&run.model, stream,
				                                          start_ns + (1000 + rank * 1000) * US,
				                                          (3000 - rank * 1000) * US, SPAN_KERNEL, name),
				                      intern_add(&run.model.strings, REDUCED));
		}
	}
	model_finish(&run.model);
	compute("ranks", &run.model, &all_steps, &run.table);
	row = find_row(&run.table, "process", "rank 1");
	check(&run.table, row, "steps", 4);
	check(&run.table, row, "caused_ns", 1000 * US);
	check(&run.table, row, "excess_ns", 1000 * US);
	assert_non_null(strstr(run.table.note, "are from 2 of 4 steps"));
	run_release(&run);
}

/* Kernels with 3/4 of a block per multiprocessor: 0-10 and 5-15 together have more than one for 5 us; one lies across the border of
 * the steps 0-20 and 20-40. */
static void kernels_that_run_together_share_the_multiprocessors(void **state)
{
	static const int64_t starts[] = {0, 5, 15};
	struct device_run run;
	uint32_t host, stream, row, name, config;

	model_init(&run.model, 0);
	host = model_add_track(&run.model, model_add_process(&run.model), TRACK_THREAD);
	name = intern_add(&run.model.strings, "x");
	config = intern_add(&run.model.strings, "blocks_per_sm=0.75");
	for (int64_t i = 0; i < 2; i++) {
		row = model_span_complete(&run.model, host, i * 20 * US, 20 * US, SPAN_STEP, name);
		*model_add_step(&run.model) = (struct model_step){.track = host,
		                                                  .row = row,
		                                                  .number = i,
		                                                  .start_ns = i * 20 * US,
		                                                  .end_ns = (i + 1) * 20 * US,
		                                                  .has_detail = true};
	}
	for (int i = 0; i < 3; i++) {
		stream = model_add_track(&run.model, 0, TRACK_DEVICE);
		row = model_span_complete(&run.model, stream, starts[i] * US, 10 * US, SPAN_KERNEL, name);
		model_span_set_inputs(&run.model, stream, row, config);
	}
	model_finish(&run.model);
	compute("device_steps", &run.model, &all_steps, &run.table);
	check(&run.table, 0, "sm_efficiency_ratio", 0.75);
	check(&run.table, 0, "step_sm_ratio", (10 * 0.75 + 5 + 5 * 0.75) / 20);
	check(&run.table, 1, "step_sm_ratio", 5 * 0.75 / 20);
	check_missing(&run.table, 0, "occupancy_ratio");
	table_release(&run.table);
	compute("device_busy", &run.model, &all_steps, &run.table);
	check(&run.table, 0, "step_sm_ratio", (15 * 0.75 + 5 + 5 * 0.75) / 40);
	run_release(&run);
}

static void kernels_sum_to_their_time(void **state)
{
	struct device_run run;
	int row;

	run_table(&run, "kernels");
	row = find_row(&run.table, "kernel", "sm90_");
	check(&run.table, row, "calls", 3);
	check(&run.table, row, "total_ns", 60 * US);
	check(&run.table, row, "min_ns", 10 * US);
	check(&run.table, row, "max_ns", 30 * US);
	check(&run.table, row, "ratio", 60.0 / 82);
	check(&run.table, row, "blocks_per_sm", 0.5);
	check(&run.table, row, "sm_efficiency_ratio", 0.5);
	check(&run.table, row, "registers", 32);
	assert_string_equal(table_get(&run.table, row, table_find_column(&run.table, "grid"))->text, "4,1,1");
	assert_true(table_get(&run.table, row, table_find_column(&run.table, "is_tensor_core"))->b);
	row = find_row(&run.table, "kernel", "lonely");
	check_missing(&run.table, row, "registers");
	check_missing(&run.table, row, "grid");
	check_missing(&run.table, row, "operation");
	row = find_row(&run.table, "kernel", "nccl");
	assert_string_equal(table_get(&run.table, row, table_find_column(&run.table, "class"))->text, "communication");
	run_release(&run);
}

static void work_counts_for_the_step_that_launched_it(void **state)
{
	struct analysis_options second = {.filter = {.has_steps = true, .first_step = 1, .last_step = 1}};
	struct device_run run;

	device_model_init(&run.model);
	compute("kernels", &run.model, &second, &run.table);
	check(&run.table, find_row(&run.table, "kernel", "sm90_"), "calls", 2);
	assert_non_null(run.table.note);
	run_release(&run);
}

static void copies_have_bytes_and_a_rate(void **state)
{
	struct device_run run;

	run_table(&run, "copies");
	check(&run.table, 0, "total_bytes", 1e6);
	check(&run.table, 0, "bytes_per_s", 1e11);
	assert_string_equal(table_get(&run.table, 0, table_find_column(&run.table, "from"))->text, "Pageable");
	assert_string_equal(table_get(&run.table, 0, table_find_column(&run.table, "to"))->text, "Device");
	assert_string_equal(table_get(&run.table, 0, table_find_column(&run.table, "direction"))->text,
	                    "host to device");
	run_release(&run);
}

static void launches_have_delays_and_work_without_one_is_counted(void **state)
{
	struct device_run run;
	int row;

	run_table(&run, "launches");
	row = find_row(&run.table, "call", "cudaLaunchKernel");
	check(&run.table, row, "work_count", 3);
	check(&run.table, row, "call_ns", 3 * US);
	check(&run.table, row, "delay_mean_ns", 22.0 / 3 * US);
	check(&run.table, row, "delay_p50_ns", 8 * US);
	check(&run.table, row, "delay_max_ns", 10 * US);
	check(&run.table, row, "depth_max", 0);
	check(&run.table, row, "short_count", 0);
	row = find_row(&run.table, "call", "(not in the trace)");
	check(&run.table, row, "work_count", 1);
	check_missing(&run.table, row, "delay_mean_ns");
	run_release(&run);
	run_table(&run, "ledger");
	check(&run.table, find_row(&run.table, "where", "kernels, copies and fills"), "count", 1);
	run_release(&run);
	run_table(&run, "runtime_calls");
	check(&run.table, find_row(&run.table, "call", "cudaLaunchKernel"), "total_ns", 9 * US);
	check(&run.table, find_row(&run.table, "call", "cudaDeviceSynchronize"), "ratio", 15.0 / 34);
	run_release(&run);
}

/* Ten calls of 1 us, one after the other, whose kernels of 10 us queue up behind each other; the first starts at 5 us. */
static void a_queue_has_a_depth(void **state)
{
	struct device_run run;
	uint32_t host, stream, name;
	int row;

	model_init(&run.model, 0);
	host = model_add_track(&run.model, model_add_process(&run.model), TRACK_THREAD);
	stream = model_add_track(&run.model, 0, TRACK_DEVICE);
	name = intern_add(&run.model.strings, "x");
	for (int64_t i = 0; i < 10; i++) {
		row = (int)model_span_complete(&run.model, host, i * US, US, SPAN_RUNTIME, name);
		model_span_set_correlation(&run.model, host, (uint32_t)row, (uint64_t)i + 1);
		row = (int)model_span_complete(&run.model, stream, (5 + i * 10) * US, 10 * US, SPAN_KERNEL, name);
		model_span_set_correlation(&run.model, stream, (uint32_t)row, (uint64_t)i + 1);
	}
	model_finish(&run.model);
	compute("launches", &run.model, &all_steps, &run.table);
	check(&run.table, 0, "depth_max", 8); /* before the call at 9: nine launched, one begun */
	check(&run.table, 0, "depth_mean", (0 + 1 + 2 + 3 + 4 + 4 + 5 + 6 + 7 + 8) / 10.0);
	check(&run.table, 0, "delay_max_ns", (95 - 9) * US);
	table_release(&run.table);
	compute("queue_depth", &run.model, &all_steps, &run.table); /* no steps: twentieths of 0-95 */
	assert_int_equal(run.table.row_count, 20);
	check(&run.table, 1, "launched_count", 5); /* 4.75-9.5 */
	check(&run.table, 1, "depth_max", 9);
	check(&run.table, 1, "depth_mean", (5 * 0.25 + 5 + 6 + 7 + 8 + 9 * 0.5) / 4.75);
	check(&run.table, 19, "depth_mean", 1);
	check(&run.table, 19, "empty_ns", 0);
	check_missing(&run.table, 0, "step");
	table_release(&run.table);
	compute("device_busy", &run.model, &all_steps, &run.table);
	check(&run.table, 0, "busy_ns", 100 * US);
	check(&run.table, 0, "idle_ns", 0);
	table_release(&run.table);
	compute("step_breakdown", &run.model, &all_steps, &run.table); /* without steps: all of it */
	check(&run.table, find_row(&run.table, "part", "compute"), "total_ns", 100 * US);
	check(&run.table, find_row(&run.table, "part", "idle: launch"), "total_ns", 5 * US);
	assert_non_null(run.table.note);
	run_release(&run);
}

/* One call launches three kernels. */
static void a_graph_does_not_wait_for_itself(void **state)
{
	struct device_run run;
	uint32_t host, stream, name, row;

	model_init(&run.model, 0);
	host = model_add_track(&run.model, model_add_process(&run.model), TRACK_THREAD);
	stream = model_add_track(&run.model, 0, TRACK_DEVICE);
	name = intern_add(&run.model.strings, "cudaGraphLaunch");
	row = model_span_complete(&run.model, host, 0, US, SPAN_RUNTIME, name);
	model_span_set_correlation(&run.model, host, row, 1);
	for (int64_t i = 0; i < 3; i++) {
		row = model_span_complete(&run.model, stream, (5 + i) * US, US, SPAN_KERNEL, name);
		model_span_set_correlation(&run.model, stream, row, 1);
	}
	model_finish(&run.model);
	compute("launches", &run.model, &all_steps, &run.table);
	check(&run.table, 0, "work_count", 3);
	check(&run.table, 0, "depth_max", 0);
	check(&run.table, 0, "delay_max_ns", 7 * US);
	run_release(&run);
}

/* 0-10 and 5-15 on stream 7, of which the second lies in a lane of its own. */
static void lanes_of_a_stream_are_one_stream(void **state)
{
	struct device_run run;
	uint32_t name, lanes[2];

	model_init(&run.model, 0);
	name = intern_add(&run.model.strings, "x");
	model_add_process(&run.model);
	for (int i = 0; i < 2; i++) {
		lanes[i] = model_add_track(&run.model, 0, TRACK_DEVICE);
		run.model.tracks[lanes[i]]->tid = 7;
		model_span_complete(&run.model, lanes[i], i * 5 * US, 10 * US, SPAN_KERNEL, name);
	}
	model_finish(&run.model);
	compute("device_busy", &run.model, &all_steps, &run.table);
	check(&run.table, 0, "streams", 1);
	check(&run.table, 0, "busy_ns", 15 * US);
	check(&run.table, 0, "sum_ns", 20 * US);
	table_release(&run.table);
	compute("kernels", &run.model, &all_steps, &run.table);
	assert_string_equal(table_get(&run.table, 0, table_find_column(&run.table, "stream"))->text, "7");
	run_release(&run);
}

static void communication_has_bandwidth_and_what_is_exposed(void **state)
{
	struct device_run run;

	run_table(&run, "communication");
	assert_int_equal(run.table.row_count, 1);
	check(&run.table, 0, "bytes", 4000);
	check(&run.table, 0, "ranks", 4);
	check(&run.table, 0, "exposed_ns", 9 * US);
	check(&run.table, 0, "algorithm_bytes_per_s", 2e8);
	check(&run.table, 0, "bus_bytes_per_s", 3e8);
	run_release(&run);
}

/* Traces of PyTorch 2.0 say it of the operator, older ones only of an annotation. */
static void sizes_of_communication_are_looked_for_around_the_launch(void **state)
{
	struct device_run run;
	uint32_t host, stream, row, kernel;
	struct intern *strings = &run.model.strings;

	model_init(&run.model, 0);
	kernel = intern_add(strings, "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t");
	host = model_add_track(&run.model, model_add_process(&run.model), TRACK_THREAD);
	stream = model_add_track(&run.model, 0, TRACK_DEVICE);
	for (int64_t i = 0; i < 2; i++) {
		row = model_span_complete(&run.model, host, i * 10 * US, 10 * US, SPAN_OP,
		                          intern_add(strings, "record_param_comms"));
		if (i == 0) {
			model_span_arg(&run.model, &(struct span_arg){.track = host,
			                                              .row = row,
			                                              .type = STEPSCOPE_ARG_SYMBOL,
			                                              .key = intern_add(strings, "Collective name"),
			                                              .text = intern_add(strings, "all_to_allv")});
			model_span_arg(&run.model, &(struct span_arg){.track = host,
			                                              .row = row,
			                                              .type = STEPSCOPE_ARG_SYMBOL,
			                                              .key = intern_add(strings, "dtype"),
			                                              .text = intern_add(strings, "BFloat16")});
			model_span_arg(&run.model, &(struct span_arg){.track = host,
			                                              .row = row,
			                                              .type = STEPSCOPE_ARG_I64,
			                                              .key = intern_add(strings, "In msg nelems"),
			                                              .i64 = 500});
			model_span_arg(&run.model, &(struct span_arg){.track = host,
			                                              .row = row,
			                                              .type = STEPSCOPE_ARG_I64,
			                                              .key = intern_add(strings, "Group size"),
			                                              .i64 = 8});
		}
		row = model_span_complete(&run.model, host, (i * 10 + 1) * US, 8 * US, SPAN_ANNOTATION,
		                          intern_add(strings, "nccl:all_reduce"));
		if (i == 1)
			model_span_set_inputs(&run.model, host, row, intern_add(strings, "[6, 100]\nt float"));
		row = model_span_complete(&run.model, host, (i * 10 + 2) * US, US, SPAN_RUNTIME,
		                          intern_add(strings, "cudaLaunchKernelExC"));
		model_span_set_correlation(&run.model, host, row, (uint64_t)i + 1);
		row = model_span_complete(&run.model, stream, (i * 10 + 4) * US, (2 - i) * US, SPAN_KERNEL, kernel);
		model_span_set_correlation(&run.model, stream, row, (uint64_t)i + 1);
	}
	model_finish(&run.model);
	compute("communication", &run.model, &all_steps, &run.table);
	assert_int_equal(run.table.row_count, 2);
	assert_string_equal(table_get(&run.table, 0, table_find_column(&run.table, "collective"))->text, "alltoall");
	check(&run.table, 0, "bytes", 1000);
	check(&run.table, 0, "bus_bytes_per_s", 1000 / 2e-6 * 7 / 8);
	assert_string_equal(table_get(&run.table, 1, table_find_column(&run.table, "collective"))->text, "allreduce");
	check(&run.table, 1, "bytes", 2400);
	check_missing(&run.table, 1, "bus_bytes_per_s");
	run_release(&run);
}

static void operations_have_the_time_of_what_they_launched(void **state)
{
	struct device_run run;
	int row;

	run_table(&run, "ops");
	row = find_row(&run.table, "name", "aten::mm");
	check(&run.table, row, "self_device_ns", 50 * US);
	check(&run.table, row, "device_ns", 50 * US);
	check(&run.table, row, "launched_count", 2);
	row = find_row(&run.table, "name", "aten::copy_");
	check(&run.table, row, "self_device_ns", 10 * US);
	row = find_row(&run.table, "name", "cudaLaunchKernel");
	check(&run.table, row, "self_device_ns", 0);
	check(&run.table, row, "device_ns", 60 * US);
	row = find_row(&run.table, "name", "(in no operation or range)");
	check(&run.table, row, "self_device_ns", 10 * US);
	row = find_row(&run.table, "name", "(launched by nothing in the trace)");
	check(&run.table, row, "self_device_ns", 2 * US);
	run_release(&run);
}

static void every_device_table_keeps_its_promises(void **state)
{
	struct analysis_options none = {.filter = {.has_steps = true, .first_step = 7, .last_step = 9}};
	struct device_run run;

	device_model_init(&run.model);
	for (int i = 0; analyses[i]; i++) {
		compute(analyses[i]->name, &run.model, &all_steps, &run.table);
		table_release(&run.table);
		compute(analyses[i]->name, &run.model, &none, &run.table);
		if (!run.table.row_count)
			assert_non_null(run.table.empty);
		table_release(&run.table);
	}
	model_release(&run.model);
}

static void check_list(const struct intervals *list, const struct interval *expected, size_t count)
{
	assert_int_equal(list->count, count);
	assert_memory_equal(list->items, expected, count * sizeof(*expected));
}

static void sets_of_instants_can_be_joined_cut_and_measured(void **state)
{
	struct intervals a = {0}, b = {0}, out = {0};
	const struct intervals none = {0};

	intervals_add(&a, 0, 10);
	intervals_add(&a, 5, 12);
	intervals_add(&a, 20, 30);
	intervals_add(&a, 25, 25);
	intervals_add(&b, 3, 4);
	intervals_add(&b, 8, 22);
	intervals_add(&b, 28, 40);
	intervals_subtract(&out, &a, &b);
	check_list(&out, (struct interval[]){{0, 3}, {4, 8}, {22, 28}}, 3);
	intervals_intersect(&out, &a, &b);
	check_list(&out, (struct interval[]){{3, 4}, {8, 12}, {20, 22}, {28, 30}}, 4);
	intervals_join(&out, &a, &b);
	check_list(&out, (struct interval[]){{0, 40}}, 1);
	assert_int_equal(intervals_within(&a, 11, 21), 2);
	assert_int_equal(intervals_within(&a, 12, 20), 0);
	intervals_lend(&out, &a); /* as a result it is a list of its own again */
	intervals_join(&out, &a, &none);
	check_list(&out, (struct interval[]){{0, 12}, {20, 30}}, 2);
	assert_false(out.is_lent);
	intervals_join(&out, &none, &b);
	check_list(&out, (struct interval[]){{3, 4}, {8, 22}, {28, 40}}, 3);
	intervals_lend(&out, &a);
	intervals_subtract(&out, &b, &none);
	check_list(&out, (struct interval[]){{3, 4}, {8, 22}, {28, 40}}, 3);
	intervals_join(&out, &none, &none);
	assert_int_equal(out.count, 0);
	check_list(&a, (struct interval[]){{0, 12}, {20, 30}}, 2);
	intervals_release(&a);
	intervals_release(&b);
	intervals_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_what_the_device_does_and_why_it_does_nothing),
		cmocka_unit_test(devices_are_busy_or_idle_for_a_reason),
		cmocka_unit_test(peaks_are_found_by_whole_words),
		cmocka_unit_test(mfu_has_a_numerator_and_a_denominator),
		cmocka_unit_test(gaps_say_why_and_between_what),
		cmocka_unit_test(copies_to_the_host_are_waited_for),
		cmocka_unit_test(time_behind_copies_that_end_together_counts_once),
		cmocka_unit_test(what_waits_until_the_device_is_done_is_told),
		cmocka_unit_test(what_a_loader_keeps_idle_is_not_the_copys),
		cmocka_unit_test(a_critical_path_is_one_thing_at_each_instant),
		cmocka_unit_test(a_critical_path_goes_through_other_threads_and_streams),
		cmocka_unit_test(clocks_of_ranks_are_put_right_by_collectives),
		cmocka_unit_test(waits_for_a_rank_are_those_of_steps_with_operators),
		cmocka_unit_test(kernels_that_run_together_share_the_multiprocessors),
		cmocka_unit_test(kernels_sum_to_their_time),
		cmocka_unit_test(work_counts_for_the_step_that_launched_it),
		cmocka_unit_test(copies_have_bytes_and_a_rate),
		cmocka_unit_test(launches_have_delays_and_work_without_one_is_counted),
		cmocka_unit_test(a_queue_has_a_depth),
		cmocka_unit_test(a_graph_does_not_wait_for_itself),
		cmocka_unit_test(lanes_of_a_stream_are_one_stream),
		cmocka_unit_test(communication_has_bandwidth_and_what_is_exposed),
		cmocka_unit_test(sizes_of_communication_are_looked_for_around_the_launch),
		cmocka_unit_test(operations_have_the_time_of_what_they_launched),
		cmocka_unit_test(every_device_table_keeps_its_promises),
		cmocka_unit_test(sets_of_instants_can_be_joined_cut_and_measured),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
