/* SPDX-License-Identifier: Apache-2.0
 *
 * test_collectives.c: which issue of a collective is which execution, and how many bytes one has.
 */
#include "analysis/analysis_context.h"
#include "analysis/ranks/collective_calls.h"
#include "analysis/ranks/communication_waits.h"
#include "model/number_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct job {
	struct model model;
	uint32_t process, main, gloo;
	struct collective_calls calls;
};

static void job_init(struct job *job)
{
	*job = (struct job){0};
	model_init(&job->model, 0);
	job->process = model_add_process(&job->model);
	job->main = model_add_track(&job->model, job->process, TRACK_THREAD);
	job->gloo = model_add_track(&job->model, job->process, TRACK_THREAD);
}

static void add(struct job *job, uint32_t track, int64_t start_ns, int64_t end_ns, const char *name, const char *inputs)
{
	struct intern *strings = &job->model.strings;
	uint32_t row = model_span_begin(&job->model, track, start_ns, SPAN_OP, intern_add(strings, name));

	if (inputs)
		model_span_set_inputs(&job->model, track, row, intern_add(strings, inputs));
	model_span_end(&job->model, track, end_ns, 0);
}

static void find(struct job *job)
{
	model_finish(&job->model);
	collective_calls_find(&job->calls, &job->model);
}

static int64_t issue_of(const struct job *job, uint32_t execution)
{
	uint32_t partner = job->calls.executions[execution].partner;

	return partner == MODEL_NONE ? -1 : job->calls.issues[partner].start_ns;
}

static void job_release(struct job *job)
{
	collective_calls_release(&job->calls);
	model_release(&job->model);
}

/* Those of one group wait for each other, those of another overtake them. */
static void groups_do_not_wait_for_each_other(void **state)
{
	struct job job;

	job_init(&job);
	add(&job, job.main, 10, 12, "c10d::allreduce_", "[[100]] []\nt TensorList;");
	add(&job, job.main, 20, 22, "c10d::allreduce_", "[[200]] []\nt TensorList;");
	add(&job, job.main, 30, 32, "c10d::broadcast_", "[[4, 25]] []\nt TensorList;");
	add(&job, job.gloo, 11, 35, "gloo:all_reduce", "[100]\nt float");
	add(&job, job.gloo, 35, 40, "gloo:broadcast", "[4, 25]\nt float");
	add(&job, job.gloo, 50, 60, "gloo:all_reduce", "[200]\nt float");
	find(&job);
	assert_int_equal(job.calls.execution_count, 3);
	assert_int_equal(issue_of(&job, 0), 10);
	assert_int_equal(issue_of(&job, 1), 30);
	assert_int_equal(issue_of(&job, 2), 20);
	job_release(&job);
}

static void without_sizes_the_kind_must_do(void **state)
{
	struct job job;

	job_init(&job);
	add(&job, job.main, 10, 12, "c10d::_reduce_scatter_base_", NULL); /* which gloo does by reducing all */
	add(&job, job.main, 20, 22, "c10d::barrier", NULL);
	add(&job, job.gloo, 21, 35, "gloo:barrier", NULL);
	add(&job, job.gloo, 36, 40, "gloo:all_reduce", NULL);
	find(&job);
	assert_int_equal(issue_of(&job, 0), 20);
	assert_int_equal(issue_of(&job, 1), 10);
	job_release(&job);
}

static void what_does_not_agree_is_not_known(void **state)
{
	struct job job;

	job_init(&job);
	add(&job, job.main, 10, 12, "c10d::allreduce_", "[[100]]\nt TensorList");
	add(&job, job.main, 20, 22, "c10d::allreduce_", "[[100]]\nt TensorList");
	add(&job, job.main, 30, 32, "c10d::allreduce_", "[[7], [3]]\nt TensorList");
	add(&job, job.main, 40, 42, "c10d::new_in_this_version", NULL);
	add(&job, job.gloo, 21, 35, "gloo:all_reduce", "[100]\nt float");
	add(&job, job.gloo, 36, 40, "gloo:all_reduce", "[7] [3]\nt float;float");
	add(&job, job.gloo, 41, 45, "gloo:new_in_this_version", NULL);
	find(&job);
	assert_int_equal(issue_of(&job, 0), -1); /* one of two */
	assert_int_equal(issue_of(&job, 1), 30);
	assert_int_equal(issue_of(&job, 2), -1);
	job_release(&job);
}

/* An execution of what was issued before the recording of operators began, and one that was still to come when it ended. */
static void what_is_executed_before_its_issue_is_another(void **state)
{
	struct job job;

	job_init(&job);
	add(&job, job.main, 20, 22, "c10d::allreduce_", NULL);
	add(&job, job.main, 40, 42, "c10d::allreduce_", NULL);
	add(&job, job.gloo, 15, 18, "gloo:all_reduce", NULL);
	add(&job, job.gloo, 25, 30, "gloo:all_reduce", NULL);
	find(&job);
	assert_int_equal(issue_of(&job, 0), -1);
	assert_int_equal(issue_of(&job, 1), -1);
	job_release(&job);
}

/* Of seven calls what was recorded before 100 was removed again, the third's issue, too; the last one was not executed any more. `lost`: what happened
 * to others of them. */
static void removed_init(struct job *job, bool is_lost)
{
	job_init(job);
	job->model.processes[job->process].has_removed = true;
	job->model.processes[job->process].removed_until_ns = 100;
	if (is_lost)
		model_add_ledger(&job->model, LEDGER_DROPPED, job->process, "pool", 2, "events were dropped");
	add(job, job->main, 70, 72, "c10d::allreduce_",
	    "[[100]] []\nt TensorList;"); /* its thread's were written later */
	add(job, job->main, 80, 82, "c10d::barrier", NULL);
	add(job, job->gloo, 101, 105, "gloo:all_reduce", "[100]\nt float");
	add(job, job->gloo, 110, 115, "gloo:all_reduce", "[100]\nt float");
	add(job, job->main, 120, 122, "c10d::allreduce_", "[[100]] []\nt TensorList;");
	add(job, job->main, 123, 125, "c10d::allreduce_", "[[100]] []\nt TensorList;");
	add(job, job->main, 126, 136, "aten::mm", NULL);
	add(job, job->gloo, 124, 140, "gloo:all_reduce", "[100]\nt float");
	add(job, job->gloo, 141, 150, "gloo:all_reduce", "[100]\nt float");
	add(job, job->main, 160, 162, "c10d::allreduce_", "[[100]] []\nt TensorList;");
}

static void executions_of_removed_issues_have_no_partner(void **state)
{
	struct job job;

	removed_init(&job, false);
	find(&job);
	assert_int_equal(job.calls.issue_count, 3);
	assert_int_equal(job.calls.execution_count, 4);
	assert_int_equal(issue_of(&job, 0), -1);
	assert_int_equal(issue_of(&job, 1), -1);
	assert_int_equal(issue_of(&job, 2), 120);
	assert_int_equal(issue_of(&job, 3), 123);
	assert_int_equal(job.calls.issues[2].partner, MODEL_NONE);
	job_release(&job);
	removed_init(&job, true); /* then nobody knows how many there should be */
	find(&job);
	for (uint32_t i = 0; i < job.calls.execution_count; i++)
		assert_int_equal(issue_of(&job, i), -1);
	job_release(&job);
}

static double number_at(const struct table *table, int row, const char *column)
{
	double value;

	assert_true(table_number(table, row, table_find_column(table, column), &value));
	return value;
}

static void the_table_is_of_what_has_both(void **state)
{
	const struct analysis_options options = {.filter = {.has_steps = false}};
	struct analysis_context context;
	struct job job;
	struct table table;
	struct error err;

	removed_init(&job, false);
	model_finish(&job.model);
	analysis_context_init(&context, &job.model, &options);
	assert_int_equal(analysis_collectives.run(&context, &table, &err), STATUS_OK);
	analysis_context_release(&context);
	assert_int_equal(table.row_count, 2); /* and the issue that was not executed */
	assert_true(number_at(&table, 0, "count") == 4 && number_at(&table, 0, "total_ns") == 4 + 5 + 16 + 9);
	assert_true(number_at(&table, 0, "queue_ns") == (4 + 18) / 2.0);
	assert_true(number_at(&table, 0, "exposed_ratio") == (16 - 10 + 9) / 25.0);
	assert_non_null(strstr(table.note, "the calls that issued 2 collectives were removed again"));
	table_release(&table);
	job_release(&job);
}

/* ---- that looking at many takes no longer for each ---- */

static uint64_t chunk_looks, group_looks;

void __real_model_chunk_done(const struct model *model, const struct span_chunk *chunk);
void __wrap_model_chunk_done(const struct model *model, const struct span_chunk *chunk);
uint32_t __real_number_map_add(struct number_map *map, uint64_t key, uint32_t value);
uint32_t __wrap_number_map_add(struct number_map *map, uint64_t key, uint32_t value);

void __wrap_model_chunk_done(const struct model *model, const struct span_chunk *chunk)
{
	chunk_looks++;
	__real_model_chunk_done(model, chunk);
}

uint32_t __wrap_number_map_add(struct number_map *map, uint64_t key, uint32_t value)
{
	group_looks++;
	return __real_number_map_add(map, key, value);
}

/* Two threads issue by turns, and each size is another group. */
static void each_is_looked_at_as_often_whatever_their_number(void **state)
{
	enum {
		COUNT = 4000
	};
	struct analysis_context context;
	struct job job;
	struct table table;
	struct error err;
	struct analysis_options options = {.filter = {.has_steps = false}};
	char inputs[64];
	uint64_t chunks = 0;

	job_init(&job);
	uint32_t threads[2] = {job.main, model_add_track(&job.model, job.process, TRACK_THREAD)};
	for (int i = 0; i < COUNT; i++) {
		snprintf(inputs, sizeof(inputs), "[%d]\nt float", i + 1);
		add(&job, threads[i % 2], 100 * i, 100 * i + 10, "c10d::allreduce_", inputs);
		add(&job, job.gloo, 100 * i + 10, 100 * i + 90, "gloo:all_reduce", inputs);
	}
	model_finish(&job.model);
	chunk_looks = group_looks = 0;
	analysis_context_init(&context, &job.model, &options);
	assert_int_equal(analysis_collectives.run(&context, &table, &err), STATUS_OK);
	analysis_context_release(&context);
	assert_int_equal(table.row_count, COUNT);
	assert_int_equal(group_looks, 3 * COUNT);
	for (uint32_t track = 0; track < job.model.tracks_count; track++)
		chunks += job.model.tracks[track]->chunk_count;
	assert_in_range(chunk_looks, 3, 2 * chunks);
	table_release(&table);
	job_release(&job);
}

static int bytes_of(const char *inputs)
{
	const char *reason;
	double bytes;

	return collective_bytes(inputs, &bytes, &reason) ? (int)bytes : -1;
}

static void bytes_are_those_of_all_tensors(void **state)
{
	assert_int_equal(bytes_of("[2, 3] [] [10]\nt float;Scalar;double"), 24 + 80);
	assert_int_equal(bytes_of("[2, 3] []\nt float;"), 24);
	assert_int_equal(bytes_of("[2, 3] [10]\nt float;a new one"), -1);
	assert_int_equal(bytes_of("[2, 3] [10]\nt float;"), -1);
	assert_int_equal(bytes_of("[2, 3] [[10]]\nt float;TensorList"), -1);
	assert_int_equal(bytes_of("[2, 3]"), -1);
	assert_int_equal(bytes_of(NULL), -1);
}

/* From 1 ms, behind the last operator of a backward, to `wait_end_ms`; then operators of 10 us, with as much between them. */
static int64_t wait_of(int64_t wait_end_ms, int64_t execution_end_ms)
{
	struct job job;
	struct communication_waits waits;
	const int64_t ms = 1000000;

	job_init(&job);
	model_span_begin(&job.model, job.main, 0, SPAN_STEP, intern_add(&job.model.strings, "step"));
	*model_add_step(&job.model) = (struct model_step){.process = job.process, .track = job.main, .end_ns = 50 * ms};
	add(&job, job.main, 0, ms, "aten::mm", NULL);
	add(&job, job.gloo, ms / 2, execution_end_ms * ms, "gloo:all_reduce", NULL);
	for (int64_t at = wait_end_ms * ms; at < 50 * ms; at += 20000)
		add(&job, job.main, at, at + 10000, "aten::copy_", NULL);
	model_span_end(&job.model, job.main, 50 * ms, 0);
	find(&job);
	communication_waits_find(&waits, &job.model, &job.calls);
	int64_t found_ms = 0;
	for (uint32_t i = 0; i < waits.count; i++)
		found_ms += (waits.list[i].end_ns - waits.list[i].start_ns) / ms;
	communication_waits_release(&waits);
	job_release(&job);
	return found_ms;
}

/* gloo's thread wakes the one that waits, and may have to let others go first before PyTorch is told. */
static void an_execution_may_end_a_turn_of_the_scheduler_late(void **state)
{
	assert_int_equal(wait_of(21, 21), 20);
	assert_int_equal(wait_of(21, 26), 20);
	assert_int_equal(wait_of(21, 30), 0); /* the thread did something else all the time */
	assert_int_equal(wait_of(5, 9), 0);
	assert_int_equal(wait_of(5, 7), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_execution_may_end_a_turn_of_the_scheduler_late),
		cmocka_unit_test(groups_do_not_wait_for_each_other),
		cmocka_unit_test(without_sizes_the_kind_must_do),
		cmocka_unit_test(what_does_not_agree_is_not_known),
		cmocka_unit_test(what_is_executed_before_its_issue_is_another),
		cmocka_unit_test(executions_of_removed_issues_have_no_partner),
		cmocka_unit_test(the_table_is_of_what_has_both),
		cmocka_unit_test(each_is_looked_at_as_often_whatever_their_number),
		cmocka_unit_test(bytes_are_those_of_all_tensors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
