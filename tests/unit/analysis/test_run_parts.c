/* SPDX-License-Identifier: Apache-2.0
 *
 * The wall time of a run in parts: each instant is in one part, and a part that was not measured is missing.
 */
#include "computed.h"
#include "hand_model.h"
#include "near.h"
#include "pytorch/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stepscope/format.h>
#include <stepscope/stepscope.h>

#include <cmocka.h>

struct program {
	struct model model;
	uint32_t process, track;
};

static void add_span(struct program *program, enum span_kind kind, const char *name, int64_t start_ms, int64_t end_ms)
{
	model_span_complete(&program->model, program->track, start_ms * MS, (end_ms - start_ms) * MS, kind,
	                    intern_add(&program->model.strings, name));
}

static void add_step(struct program *program, int64_t number, int64_t start_ms, int64_t end_ms)
{
	struct model_step step = {.process = program->process,
	                          .track = program->track,
	                          .number = number,
	                          .start_ns = start_ms * MS,
	                          .end_ns = end_ms * MS,
	                          .has_detail = true,
	                          .has_rare = true};

	step.row = model_span_complete(&program->model, program->track, step.start_ns, step.end_ns - step.start_ns,
	                               SPAN_STEP, intern_add(&program->model.strings, "step"));
	*model_add_step(&program->model) = step;
}

static void add_reading(struct program *program, int64_t time_ms, int64_t cpu_ms)
{
	model_add_reading(&program->model, &(struct thread_reading){.time_ns = time_ms * MS,
	                                                            .track = program->track,
	                                                            .cpu_ns = (uint64_t)(cpu_ms * MS),
	                                                            .wait_ns = STEPSCOPE_USE_UNKNOWN,
	                                                            .process_ns = STEPSCOPE_USE_UNKNOWN});
}

static void add_process(struct program *program, int64_t start_ms, bool has_torch)
{
	program->process = model_add_process(&program->model);
	program->track = model_add_track(&program->model, program->process, TRACK_THREAD);
	program->model.tracks[program->track]->is_main = true;
	program->model.processes[program->process].role = STEPSCOPE_ROLE_TRAINER;
	program->model.processes[program->process].host = intern_add(&program->model.strings, "node-1");
	program->model.processes[program->process].pid = 100 + program->process;
	if (has_torch)
		model_add_meta(&program->model, program->process, "torch.version", "2.13");
	program->model.processes[program->process].first_ns = start_ms * MS;
	program->model.processes[program->process].last_ns = start_ms * MS + 1;
}

/* `stepscope run` from 0 on. */
static void add_host(struct program *program, int64_t end_ms)
{
	uint32_t host = model_add_process(&program->model);

	program->model.processes[host].role = STEPSCOPE_ROLE_HOST;
	program->model.processes[host].host = intern_add(&program->model.strings, "node-1");
	program->model.processes[host].last_ns = end_ms * MS;
}

static double part_ms(const struct table *table, const char *part)
{
	return number(table, find_row(table, "part", part), "total_ns") / MS;
}

static void assert_sums_to(const struct table *table, double wall_ms)
{
	double sum_ms = 0;

	for (int row = 0; row < table->row_count; row++) {
		double part_ns;

		if (table_number(table, row, table_find_column(table, "total_ns"), &part_ns))
			sum_ms += part_ns / MS;
	}
	assert_double_equal(sum_ms, wall_ms, 1e-6);
}

static void each_instant_is_in_one_part(void **state)
{
	struct program program;
	struct table table;

	model_init(&program.model, 0);
	add_process(&program, 50, true);
	add_span(&program, SPAN_RANGE, PYTORCH_COMPILE, 100, 300);
	add_step(&program, 0, 310, 500);
	add_span(&program, SPAN_RANGE, PYTORCH_LOADER_START, 310, 320);
	add_span(&program, SPAN_PHASE, "data", 320, 340);
	add_span(&program, SPAN_RANGE, PYTORCH_COMPILE, 350, 400);
	add_span(&program, SPAN_PHASE, "evaluation", 500, 600);
	add_span(&program, SPAN_RANGE, PYTORCH_SAVE, 520, 540);
	add_span(&program, SPAN_PHASE, "data", 620, 640);
	add_step(&program, 1, 640, 700);
	add_span(&program, SPAN_PHASE, "data", 640, 650);
	add_host(&program, 1000);
	model_finish(&program.model);
	compute("run_time", &program.model, &all_steps, &table);
	assert_sums_to(&table, 1000);
	assert_double_equal(part_ms(&table, "start"), 110, 1e-6);
	assert_double_equal(part_ms(&table, "compilation"), 250, 1e-6);
	assert_double_equal(part_ms(&table, "first batches"), 30, 1e-6);
	assert_double_equal(part_ms(&table, "steps"), 190 - 80 + 60 + 20, 1e-6);
	assert_double_equal(part_ms(&table, "evaluation"), 80, 1e-6);
	assert_double_equal(part_ms(&table, "checkpoints"), 20, 1e-6);
	assert_double_equal(part_ms(&table, "unknown"), 20, 1e-6);
	assert_double_equal(part_ms(&table, "end"), 300, 1e-6);
	assert_null(table.note);
	table_release(&table);
	model_release(&program.model);
}

static void a_thread_that_does_not_run_is_idle(void **state)
{
	struct program program;
	struct table table;

	model_init(&program.model, 0);
	add_process(&program, 0, true);
	for (int step = 0; step < 3; step++) {
		add_step(&program, step, 100 + 1000 * step, 200 + 1000 * step);
		add_span(&program, SPAN_OP, "aten::mm", 100 + 1000 * step, 200 + 1000 * step);
	}
	/* after step 0 it sleeps for 790 of 900 ms, after step 1 it runs */
	add_reading(&program, 200, 100);
	add_reading(&program, 1100, 210);
	add_reading(&program, 1200, 310);
	add_reading(&program, 2100, 1210);
	model_finish(&program.model);
	compute("run_time", &program.model, &all_steps, &table);
	assert_sums_to(&table, 2200);
	assert_double_equal(part_ms(&table, "idle"), 790, 1e-6);
	assert_double_equal(part_ms(&table, "unknown"), 110 + 900, 1e-6);
	assert_double_equal(part_ms(&table, "steps"), 300, 1e-6);
	table_release(&table);
	model_release(&program.model);
}

/* The steps of such a program follow each other, so a pause is in one of them. */
static void a_long_pause_in_a_step_is_idle(void **state)
{
	struct program program;
	struct table table;

	model_init(&program.model, 0);
	add_process(&program, 0, true);
	for (int step = 0; step < 4; step++) {
		add_step(&program, step, 100 * step, 100 * step + 100);
		add_span(&program, SPAN_OP, "aten::mm", 100 * step + 30, 100 * step + 90);
	}
	add_step(&program, 4, 400, 5400);
	add_span(&program, SPAN_OP, "aten::mm", 5350, 5400);
	add_reading(&program, 390, 390);
	add_reading(&program, 5350, 440);
	model_finish(&program.model);
	compute("run_time", &program.model, &all_steps, &table);
	assert_sums_to(&table, 5400);
	assert_double_equal(part_ms(&table, "idle"), 4960 - 50, 1e-6);
	assert_double_equal(part_ms(&table, "steps"), 5400 - 4910, 1e-6);
	table_release(&table);
	model_release(&program.model);
}

static void trainings_after_each_other_divide_the_run(void **state)
{
	struct program program;
	struct table table;

	model_init(&program.model, 0);
	add_process(&program, 100, false);
	add_step(&program, 0, 200, 400);
	add_process(&program, 500, false);
	add_step(&program, 0, 600, 900);
	add_host(&program, 1000);
	model_finish(&program.model);
	compute("run_time", &program.model, &all_steps, &table);
	assert_sums_to(&table, 1000);
	assert_double_equal(part_ms(&table, "start"), 200 + 200, 1e-6);
	assert_double_equal(part_ms(&table, "steps"), 500, 1e-6);
	assert_double_equal(part_ms(&table, "end"), 100, 1e-6);
	table_release(&table);
	model_release(&program.model);
}

static void ranks_at_the_same_time_give_their_mean(void **state)
{
	struct program program;
	struct table table;

	model_init(&program.model, 0);
	add_process(&program, 100, false);
	add_step(&program, 0, 200, 400);
	add_process(&program, 150, false);
	add_step(&program, 0, 300, 400);
	add_host(&program, 1000);
	model_finish(&program.model);
	compute("run_time", &program.model, &all_steps, &table);
	assert_sums_to(&table, 1000);
	assert_double_equal(part_ms(&table, "start"), 250, 1e-6);
	assert_double_equal(part_ms(&table, "steps"), 150, 1e-6);
	table_release(&table);
	model_release(&program.model);
}

static const char *why_missing(const struct table *table, const char *part)
{
	const struct table_cell *cell = table_get(table, find_row(table, "part", part),
	                                          table_find_column(table, "total_ns"));

	return cell->has_value ? NULL : cell->reason;
}

static void what_was_not_measured_is_missing(void **state)
{
	struct program program;
	struct table table;

	model_init(&program.model, 0);
	add_process(&program, 0, false);
	add_step(&program, 0, 100, 200);
	model_finish(&program.model);
	compute("run_time", &program.model, &all_steps, &table);
	assert_string_equal(why_missing(&table, "compilation"), "PyTorch was not recorded");
	assert_string_equal(why_missing(&table, "first batches"), "no waits for data were recorded");
	assert_non_null(why_missing(&table, "evaluation"));
	assert_non_null(why_missing(&table, "checkpoints"));
	assert_non_null(why_missing(&table, "idle"));
	assert_null(why_missing(&table, "steps"));
	assert_null(why_missing(&table, "unknown"));
	assert_non_null(table.note); /* the time before the first instant is unknown */
	table_release(&table);
	model_release(&program.model);
}

static void a_trace_is_only_a_part_of_the_run(void **state)
{
	struct program program;
	struct table table;

	model_init(&program.model, 0);
	add_process(&program, 0, false);
	add_step(&program, 0, 100, 200);
	model_add_meta(&program.model, MODEL_NONE, "trace.format", "kineto");
	model_finish(&program.model);
	compute("run_time", &program.model, &all_steps, &table);
	for (int row = 0; row < table.row_count; row++)
		assert_false(table_get(&table, row, table_find_column(&table, "total_ns"))->has_value);
	table_release(&table);
	model_release(&program.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instant_is_in_one_part),
		cmocka_unit_test(a_thread_that_does_not_run_is_idle),
		cmocka_unit_test(a_long_pause_in_a_step_is_idle),
		cmocka_unit_test(trainings_after_each_other_divide_the_run),
		cmocka_unit_test(ranks_at_the_same_time_give_their_mean),
		cmocka_unit_test(what_was_not_measured_is_missing),
		cmocka_unit_test(a_trace_is_only_a_part_of_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
