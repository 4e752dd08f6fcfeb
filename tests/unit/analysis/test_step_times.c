/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of steps and phases: means of the job, phases around, in and across steps, and waits for collectives.
 */
#include "analysis/step_times/step_times.h"
#include "computed.h"
#include "hand_model.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stepscope/format.h>
#include <stepscope/stepscope.h>

#include <cmocka.h>

static void add_op(struct model *model, uint32_t track, int64_t start_ns, int64_t end_ns, const char *name)
{
	model_span_complete(model, track, start_ns, end_ns - start_ns, SPAN_OP, intern_add(&model->strings, name));
}

/* The first wait begins in an operator and ends in the next, in which the second begins. */
static void waits_that_overlap_operators_count_once(void **state)
{
	struct model model;
	struct table table;

	model_init(&model, 0);
	uint32_t first = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	uint32_t gloo = model_add_track(&model, 0, TRACK_THREAD);
	uint32_t row = model_span_complete(&model, first, 0, 300, SPAN_STEP, intern_add(&model.strings, "step"));
	*model_add_step(&model) = (struct model_step){.track = first, .row = row, .end_ns = 300, .has_detail = true};
	add_op(&model, first, 10, 20, "c10d::allreduce_");
	add_op(&model, first, 95, 130, "c10d::allreduce_");
	add_op(&model, first, 210, 220, "aten::mm");
	add_op(&model, gloo, 15, 100, "gloo:all_reduce");
	add_op(&model, gloo, 110, 200, "gloo:all_reduce");
	model_finish(&model);
	compute("host_waits", &model, &all_steps, &table);
	int waiting = find_row(&table, "cause", "communication: waiting for it");
	int issuing = find_row(&table, "cause", "communication: issuing it");
	assert_double_equal(number(&table, waiting, "count"), 2, 0);
	assert_double_equal(number(&table, waiting, "total_ns"), 85 + 90, 0);
	assert_double_equal(number(&table, waiting, "own_ns"), 80 + 90, 0);
	assert_double_equal(number(&table, issuing, "total_ns"), 10 + 35, 0);
	assert_double_equal(number(&table, issuing, "own_ns"), 5 + 15, 0);
	table_release(&table);
	model_release(&model);
}

static void the_job_step_is_the_mean_of_its_processes(void **state)
{
	struct table table;
	struct model model;

	hand_model_init(&model);
	compute("step_time", &model, &all_steps, &table);
	/* steps 0..3 of both: 100 + 10 n + 10; step 4 of rank 0 alone: 140 */
	assert_double_equal(number(&table, 0, "count"), 5, 0);
	assert_double_equal(number(&table, 0, "incomplete"), 1, 0);
	assert_double_equal(number(&table, 0, "mean_ns"), 128.0 * MS, 1);
	assert_double_equal(number(&table, 0, "max_ns"), 140.0 * MS, 1);
	assert_double_equal(number(&table, 0, "tokens_per_s"), 9000 / 0.64, 1e-6);
	assert_double_equal(number(&table, find_row(&table, "process", "rank 0"), "mean_ns"), 120.0 * MS, 1);
	assert_double_equal(number(&table, find_row(&table, "process", "rank 1"), "count"), 4, 0);
	table_release(&table);
	model_release(&model);
}

static void phases_sum_to_the_step(void **state)
{
	struct table table;
	struct model model;

	hand_model_init(&model);
	compute("phases", &model, &all_steps, &table);
	assert_double_equal(number(&table, find_row(&table, "name", "data"), "mean_ns"), 18.0 * MS, 1);
	assert_double_equal(number(&table, find_row(&table, "name", "forward"), "mean_ns"), 20.0 * MS, 1);
	assert_double_equal(number(&table, find_row(&table, "name", "other"), "mean_ns"), 50.0 * MS, 1);
	assert_double_equal(number(&table, find_row(&table, "name", "backward"), "ratio"), 30.0 / 128, 1e-9);
	table_release(&table);
	model_release(&model);
}

static void lost_steps_are_said_with_the_step_time(void **state)
{
	struct table table;
	struct model model;

	hand_model_init(&model);
	model_add_ledger(&model, LEDGER_DROPPED, 0, "begin", 100, "events were dropped");
	compute("step_time", &model, &all_steps, &table);
	assert_null(table.note);
	table_release(&table);
	model_add_ledger(&model, LEDGER_DROPPED, 0, "step", 7, "events were dropped");
	model_add_ledger(&model, LEDGER_DROPPED, 1, "step", 2, "events were dropped");
	model_add_ledger(&model, LEDGER_DROPPED, 0, "switch", 3, "events were dropped");
	compute("step_time", &model, &all_steps, &table);
	assert_string_equal(table.note,
	                    "steps were lost (12 dropped events of steps and phases): the figures cover the "
	                    "remaining steps, which may not be typical");
	table_release(&table);
	model_release(&model);
}

struct line {
	struct model model;
	uint32_t process, track;
};

static void line_init(struct line *line, int64_t last_ns)
{
	model_init(&line->model, 0);
	line->process = model_add_process(&line->model);
	line->model.processes[line->process].pid = 1;
	line->model.processes[line->process].last_ns = last_ns;
	line->track = model_add_track(&line->model, line->process, TRACK_THREAD);
}

static void line_begin(struct line *line, int64_t at, enum span_kind kind, const char *name)
{
	model_span_begin(&line->model, line->track, at, kind, intern_add(&line->model.strings, name));
}

static void line_end(struct line *line, int64_t at)
{
	model_span_end(&line->model, line->track, at, 0);
}

static void line_step(struct line *line, int64_t start_ns, int64_t end_ns)
{
	struct model_step step = {.process = line->process,
	                          .track = line->track,
	                          .start_ns = start_ns,
	                          .end_ns = end_ns,
	                          .has_detail = true,
	                          .number = start_ns};

	step.row = model_span_innermost(&line->model, line->track, &(enum span_kind){0});
	*model_add_step(&line->model) = step;
}

static void line_op(struct line *line, uint32_t track, int64_t start_ns, int64_t end_ns, const char *name)
{
	model_span_begin(&line->model, track, start_ns, name[0] == 'g' ? SPAN_ANNOTATION : SPAN_OP,
	                 intern_add(&line->model.strings, name));
	model_span_end(&line->model, track, end_ns, 0);
}

static void line_phase(struct line *line, int64_t start_ns, const char *name, bool is_inferred)
{
	uint32_t row, index;
	enum span_kind kind;

	line_begin(line, start_ns, SPAN_PHASE, name);
	row = model_span_innermost(&line->model, line->track, &kind);
	if (is_inferred)
		track_chunk(line->model.tracks[line->track], row, &index)->flags[index] |= SPAN_IS_INFERRED;
}

/* A backward 10-40 with an operator 10-30, then nothing until the optimizer's 90-95 in its phase 85-100; collectives beside it. */
static void line_backward(struct line *line, bool is_inferred)
{
	line_init(line, 100);
	line_begin(line, 0, SPAN_STEP, "step");
	line_step(line, 0, 100);
	line_phase(line, 10, "backward", is_inferred);
	line_op(line, line->track, 10, 30, "aten::mm");
	line_end(line, 40);
	line_phase(line, 85, "optimizer", is_inferred);
	line_op(line, line->track, 90, 95, "aten::add_");
	line_end(line, 100);
	line_end(line, 100);
}

static void check_waits(struct line *line, int64_t backward, int64_t communication, int64_t optimizer)
{
	struct analysis_context context;
	const struct step_times *times;

	model_finish(&line->model);
	analysis_context_init(&context, &line->model, &all_steps);
	times = analysis_context_step_times(&context);
	assert_int_equal(times->steps[0].phase_ns[STEPSCOPE_PHASE_BACKWARD], backward);
	assert_int_equal(times->steps[0].phase_ns[STEPSCOPE_PHASE_COMMUNICATION], communication);
	assert_int_equal(times->steps[0].phase_ns[STEPSCOPE_PHASE_OPTIMIZER], optimizer);
	assert_int_equal(times->steps[0].phase_ns[PHASE_OTHER], 100 - backward - communication - optimizer);
	analysis_context_release(&context);
	model_release(&line->model);
}

static void waiting_for_a_collective_is_communication(void **state)
{
	struct line line;
	uint32_t gloo;

	line_backward(&line, true);
	gloo = model_add_track(&line.model, line.process, TRACK_THREAD);
	line_op(&line, gloo, 20, 60, "gloo:all_reduce"); /* 30-60 */
	line_op(&line, gloo, 60, 87, "gloo:all_reduce"); /* goes on into the optimizer */
	line_op(&line, gloo, 91, 94, "gloo:all_reduce"); /* beside an operator */
	check_waits(&line, 20, 57, 13);
	/* what the program marks is what it says */
	line_backward(&line, false);
	gloo = model_add_track(&line.model, line.process, TRACK_THREAD);
	line_op(&line, gloo, 20, 60, "gloo:all_reduce");
	check_waits(&line, 30, 20, 15);
}

/* DTensor's are inside of the operator that needs the result; what they run themselves is part of them. */
static void operators_that_wait_for_a_collective_are_waits(void **state)
{
	struct line line;
	uint32_t gloo;

	line_init(&line, 100);
	line_begin(&line, 0, SPAN_STEP, "step");
	line_step(&line, 0, 100);
	line_phase(&line, 10, "backward", true);
	line_begin(&line, 10, SPAN_OP, "aten::sub");
	line_begin(&line, 15, SPAN_OP, "_c10d_functional::wait_tensor");
	line_op(&line, line.track, 20, 25, "aten::alias");
	line_end(&line, 45);
	line_op(&line, line.track, 45, 50, "aten::sub");
	line_end(&line, 60);
	line_begin(&line, 62, SPAN_OP, "_c10d_functional::wait_tensor");
	line_op(&line, line.track, 63, 64, "aten::alias");
	line_end(&line, 80);
	line_end(&line, 85);
	line_phase(&line, 85, "optimizer", true);
	line_end(&line, 100);
	line_end(&line, 100);
	gloo = model_add_track(&line.model, line.process, TRACK_THREAD);
	line_op(&line, gloo, 12, 44, "gloo:all_reduce"); /* 15-44 */
	line_op(&line, gloo, 50, 58, "gloo:all_reduce"); /* hidden */
	line_op(&line, gloo, 61, 79, "gloo:all_reduce");
	check_waits(&line, 75 - 29 - 18, 29 + 18, 15);
}

static void a_collective_that_goes_on_is_not_waited_for(void **state)
{
	struct line line;
	uint32_t gloo;

	line_backward(&line, true);
	gloo = model_add_track(&line.model, line.process, TRACK_THREAD);
	line_op(&line, gloo, 35, 94, "gloo:all_reduce"); /* its end is told a little late: 35-90 */
	check_waits(&line, 25, 55, 10);
	line_backward(&line, true);
	line_op(&line, line.track, 100, 100, "gloo:all_reduce"); /* of the thread itself */
	check_waits(&line, 30, 0, 15);
	line_init(&line, 100);
	gloo = model_add_track(&line.model, line.process, TRACK_THREAD);
	line_begin(&line, 0, SPAN_STEP, "step");
	line_step(&line, 0, 100);
	for (int64_t at = 0; at < 100; at += 10)
		line_op(&line, line.track, at, at + 8, "aten::mm");
	line_end(&line, 100);
	line_op(&line, gloo, 5, 75, "gloo:all_reduce");
	check_waits(&line, 0, 0, 0);
}

static void a_step_that_was_cut_off_is_measured_only_alone(void **state)
{
	struct analysis_context context;
	const struct step_times *times;
	struct line line;

	for (int complete = 0; complete < 2; complete++) {
		line_init(&line, 100);
		if (complete) {
			line_begin(&line, 0, SPAN_STEP, "step");
			line_step(&line, 0, 50);
			line_end(&line, 50);
		}
		line_begin(&line, 60, SPAN_STEP, "step");
		line_step(&line, 60, 100);
		line.model.steps[complete].is_open = true;
		model_finish(&line.model);
		analysis_context_init(&context, &line.model, &all_steps);
		times = analysis_context_step_times(&context);
		assert_int_equal(times->steps[complete].is_measured, !complete);
		assert_true(times->steps[0].is_measured);
		assert_false(step_times_measures(times, -1));
		analysis_context_release(&context);
		model_release(&line.model);
	}
}

static void nested_phases_belong_to_the_innermost(void **state)
{
	struct analysis_context context;
	const struct step_times *times;
	struct line line;

	line_init(&line, 100);
	line_begin(&line, 0, SPAN_STEP, "step");
	line_step(&line, 0, 100);
	line_begin(&line, 10, SPAN_PHASE, "forward");
	line_begin(&line, 20, SPAN_RANGE, "layer");
	line_begin(&line, 30, SPAN_PHASE, "communication");
	line_end(&line, 40);
	line_end(&line, 50);
	line_end(&line, 60);
	line_end(&line, 100);
	model_finish(&line.model);
	analysis_context_init(&context, &line.model, &all_steps);
	times = analysis_context_step_times(&context);
	assert_int_equal(times->steps[0].phase_ns[STEPSCOPE_PHASE_FORWARD], 40);
	assert_int_equal(times->steps[0].phase_ns[STEPSCOPE_PHASE_COMMUNICATION], 10);
	assert_int_equal(times->steps[0].phase_ns[PHASE_OTHER], 50);
	analysis_context_release(&context);
	model_release(&line.model);
}

static void a_phase_between_steps_is_not_in_them(void **state)
{
	struct analysis_context context;
	const struct step_times *times;
	struct table table;
	struct line line;

	line_init(&line, 300);
	line_begin(&line, 0, SPAN_STEP, "step");
	line_step(&line, 0, 100);
	line_end(&line, 100);
	line_begin(&line, 110, SPAN_PHASE, "evaluation");
	line_end(&line, 190);
	line_begin(&line, 200, SPAN_STEP, "step");
	line_step(&line, 200, 300);
	line_end(&line, 300);
	model_finish(&line.model);
	analysis_context_init(&context, &line.model, &all_steps);
	times = analysis_context_step_times(&context);
	assert_int_equal(times->steps[0].phase_ns[STEPSCOPE_PHASE_EVALUATION], 0);
	assert_int_equal(times->spans[0].phase_ns[STEPSCOPE_PHASE_EVALUATION], 80);
	assert_int_equal(times->spans[0].phase_ns[PHASE_OTHER], 20);
	analysis_context_release(&context);
	compute("between_steps", &line.model, &all_steps, &table);
	assert_double_equal(number(&table, find_row(&table, "part", "between steps: evaluation"), "total_ns"), 80, 0);
	assert_double_equal(number(&table, find_row(&table, "part", "steps"), "ratio"), 200.0 / 300, 1e-12);
	table_release(&table);
	model_release(&line.model);
}

static void steps_that_overlap_take_their_time_once(void **state)
{
	struct table table;
	struct line line;

	line_init(&line, 300);
	line_begin(&line, 0, SPAN_STEP, "step");
	line_step(&line, 0, 200);
	line_step(&line, 0, 100);
	line_step(&line, 150, 250);
	line_end(&line, 250);
	model_finish(&line.model);
	compute("between_steps", &line.model, &all_steps, &table);
	assert_double_equal(number(&table, find_row(&table, "part", "steps"), "total_ns"), 250, 0);
	assert_double_equal(number(&table, find_row(&table, "part", "between steps: other"), "total_ns"), 0, 0);
	table_release(&table);
	model_release(&line.model);
}

static void a_phase_around_steps_is_dealt_out_to_them(void **state)
{
	struct analysis_context context;
	const struct step_times *times;
	struct line line;

	line_init(&line, 100);
	line_begin(&line, 0, SPAN_PHASE, "forward");
	line_begin(&line, 10, SPAN_STEP, "step");
	line_step(&line, 10, 40);
	line_end(&line, 40);
	line_begin(&line, 60, SPAN_STEP, "step");
	line_step(&line, 60, 90);
	line_end(&line, 90);
	line_end(&line, 100);
	model_finish(&line.model);
	analysis_context_init(&context, &line.model, &all_steps);
	times = analysis_context_step_times(&context);
	assert_int_equal(times->steps[0].phase_ns[STEPSCOPE_PHASE_FORWARD], 30);
	assert_int_equal(times->steps[1].phase_ns[STEPSCOPE_PHASE_FORWARD], 30);
	assert_int_equal(times->spans[0].phase_ns[STEPSCOPE_PHASE_FORWARD], 20);
	analysis_context_release(&context);
	model_release(&line.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_that_overlap_operators_count_once),
		cmocka_unit_test(the_job_step_is_the_mean_of_its_processes),
		cmocka_unit_test(phases_sum_to_the_step),
		cmocka_unit_test(lost_steps_are_said_with_the_step_time),
		cmocka_unit_test(waiting_for_a_collective_is_communication),
		cmocka_unit_test(operators_that_wait_for_a_collective_are_waits),
		cmocka_unit_test(a_collective_that_goes_on_is_not_waited_for),
		cmocka_unit_test(a_step_that_was_cut_off_is_measured_only_alone),
		cmocka_unit_test(nested_phases_belong_to_the_innermost),
		cmocka_unit_test(a_phase_between_steps_is_not_in_them),
		cmocka_unit_test(steps_that_overlap_take_their_time_once),
		cmocka_unit_test(a_phase_around_steps_is_dealt_out_to_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
