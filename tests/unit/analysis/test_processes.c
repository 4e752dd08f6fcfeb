/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables about processes: ranks and workers, the window of the run, the recorder's cost, and how each process ended.
 */
#include "computed.h"
#include "hand_model.h"
#include "near.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void the_rank_that_makes_others_wait_is_the_slowest(void **state)
{
	struct table table;
	struct model model;

	hand_model_init(&model);
	compute("ranks", &model, &all_steps, &table);
	assert_double_equal(number(&table, find_row(&table, "process", "rank 0"), "is_slowest"), 0, 0);
	assert_double_equal(number(&table, find_row(&table, "process", "rank 1"), "is_slowest"), 1, 0);
	table_release(&table);
	model_release(&model);
}

static const char *text(const struct table *table, int row, const char *column)
{
	const struct table_cell *cell = table_get(table, row, table_find_column(table, column));

	return cell->has_value ? cell->text : NULL;
}

static void the_window_counts_a_step_of_all_ranks_once(void **state)
{
	struct table table;
	struct model model;

	hand_model_init(&model);
	compute("run", &model, &all_steps, &table);
	assert_double_equal(number(&table, 0, "steps"), 5, 0);
	assert_double_equal(number(&table, 0, "detail_steps"), 5, 0);
	assert_double_equal(number(&table, 0, "incomplete_steps"), 1, 0);
	assert_double_equal(number(&table, 0, "skipped_steps"), 0, 0);
	table_release(&table);
	model_release(&model);
}

static void the_recorded_time_of_a_window_is_that_of_its_steps(void **state)
{
	struct analysis_options one = {.filter = {.has_steps = true, .first_step = 1, .last_step = 1}};
	struct table table, between;
	struct model model;
	double parts_ns = 0;

	hand_model_init(&model);
	compute("run", &model, &one, &table);
	compute("between_steps", &model, &one, &between);
	for (int row = 0; row < between.row_count; row++)
		parts_ns += number(&between, row, "total_ns");
	/* from 155 to 265 ms in one rank, from 175 to 305 in the other */
	assert_double_equal(number(&table, 0, "duration_ns"), 150 * MS, 0);
	assert_double_equal(parts_ns, 240 * MS, 0);
	assert_false(table_get(&table, 0, table_find_column(&table, "overhead_ratio"))->has_value);
	table_release(&table);
	table_release(&between);
	compute("processes", &model, &one, &table);
	for (int row = 0; row < table.row_count; row++) {
		assert_false(table_get(&table, row, table_find_column(&table, "wall_ns"))->has_value);
		assert_false(table_get(&table, row, table_find_column(&table, "cpu_ns"))->has_value);
	}
	table_release(&table);
	model_release(&model);
}

static void a_process_without_times_is_in_no_time(void **state)
{
	struct model model;
	struct table table;
	double before_ns;

	hand_model_init(&model);
	compute("run", &model, &all_steps, &table);
	before_ns = number(&table, 0, "duration_ns");
	table_release(&table);
	model.processes[model_add_process(&model)].pid = 7;
	compute("run", &model, &all_steps, &table);
	assert_double_equal(number(&table, 0, "duration_ns"), before_ns, 0);
	table_release(&table);
	compute("processes", &model, &all_steps, &table);
	assert_false(table_get(&table, 2, table_find_column(&table, "wall_ns"))->has_value);
	assert_false(table_get(&table, 2, table_find_column(&table, "program"))->has_value);
	table_release(&table);
	model_release(&model);
}

/* stepscope run -- sh -c './train; exit 3': sh recorded nothing, but what it started did. */
static void every_process_has_the_name_of_its_own_program(void **state)
{
	struct table table;
	struct model model;
	uint32_t host;

	hand_model_init(&model);
	host = model_add_process(&model);
	model.processes[host].role = STEPSCOPE_ROLE_HOST;
	model.processes[host].name = intern_add(&model.strings, "sh");
	model_add_meta(&model, 0, "program", "train");
	model_add_meta(&model, host, "program", "sh");
	model_add_meta(&model, host, "child", "77");
	model_add_meta(&model, host, "child.77.status", "3");
	model_add_meta(&model, host, "child.78.status", "0");
	compute("processes", &model, &all_steps, &table);
	assert_int_equal(table.row_count, 5);
	assert_int_equal(find_row(&table, "program", "train"), 0);
	assert_int_equal(find_row(&table, "program", "stepscope"), 2);
	assert_int_equal(find_row(&table, "program", "sh"), 3);
	assert_false(table_get(&table, 4, table_find_column(&table, "program"))->has_value);
	table_release(&table);
	model_release(&model);
}

/* It has no steps: what counts are the values that were seen while those of the ranks ran. */
static void chosen_steps_choose_the_machines_values(void **state)
{
	struct analysis_options one = {.filter = {.has_steps = true, .first_step = 1, .last_step = 1}};
	struct table table;
	struct model model;
	uint32_t host;

	hand_model_init(&model);
	host = model_add_process(&model);
	model.processes[host].role = STEPSCOPE_ROLE_HOST;
	for (int i = 0; i < 100; i++)
		model_add_value(&model, host, intern_add(&model.strings, "host.cpu.busy_ratio"), false, i * 10 * MS,
		                i * 10.0);
	model_finish(&model);
	compute("counters", &model, &one, &table);
	int row = find_row(&table, "name", "host.cpu.busy_ratio");
	assert_double_equal(number(&table, row, "count"), 15, 0);
	assert_double_equal(number(&table, row, "min"), 160, 0); /* from 155 ms in one rank to 305 in the other */
	assert_double_equal(number(&table, row, "max"), 300, 0);
	table_release(&table);
	model_release(&model);
}

/* The drainer works on a core of its own: with the threads' part it may be more than the wall time. */
static void the_cost_is_a_share_of_cpu_time(void **state)
{
	struct table table;
	struct model model;

	hand_model_init(&model);
	model.processes[0].drainer_cpu_ns = 600 * MS;
	model.processes[0].cost_per_event_ns = 3 * MS; /* of 100 events */
	model.processes[1].has_cost = false;
	model_add_value(&model, 0, intern_add(&model.strings, "process.cpu_ns"), false, 700 * MS, 1200 * MS);
	compute("run", &model, &all_steps, &table);
	assert_double_equal(number(&table, 0, "overhead_ratio"), 0.75, 1e-12);
	table_release(&table);
	/* a sample from before the end, and an estimate per event: still no more than all of it */
	model.processes[0].drainer_cpu_ns = 5000 * MS;
	compute("cost", &model, &all_steps, &table);
	assert_double_equal(number(&table, 0, "ratio"), 1, 0);
	table_release(&table);
	model_release(&model);
}

static void the_cost_without_cpu_time_is_a_share_of_the_threads_time(void **state)
{
	struct table table;
	struct model model;
	double wall_ns;

	hand_model_init(&model);
	wall_ns = (double)(model.processes[0].last_ns - model.processes[0].first_ns);
	compute("cost", &model, &all_steps, &table);
	/* 100 events of 40 ns and 1 ms of the recorder's thread; one thread of the program and the recorder's */
	assert_double_equal(number(&table, 0, "ratio"), (4000 + MS) / (2 * wall_ns), 1e-12);
	table_release(&table);
	model_release(&model);
}

static void steps_whose_operators_were_removed_are_no_pauses(void **state)
{
	struct table table;
	struct model model;
	uint32_t steps = 0;

	hand_model_init(&model);
	model.ledger_count = 0;
	model_add_ledger(&model, LEDGER_REMOVED, 0, "a host", 1000, "words of older events were removed");
	for (uint32_t i = 0; i < model.steps_count; i++)
		steps += model.steps[i].process == 0;
	for (uint32_t i = 0, n = 0; i < model.steps_count; i++) {
		model.steps[i].has_detail = model.steps[i].process != 0 || n++ >= steps / 2;
		model.steps[i].has_any_detail = true;
	}
	compute("run", &model, &all_steps, &table);
	assert_null(strstr(text(&table, 0, "cost"), "compared with their neighbours"));
	assert_non_null(strstr(text(&table, 0, "cost"), "% of the CPU time"));
	table_release(&table);
	model_release(&model);
}

/* Of rank 1, beside rank 0 that is on "node-1" and has the id "a boot". */
static const struct {
	const char *host, *machine;
	bool has_its_clock, has_its_ids;
} places[] = {
	{"node-1", "a boot", true, true},
	{"container", "a boot", true, false},
	{"node-1", "another", false, false}, /* cloned */
};

static void machines_are_told_by_their_boots(void **state)
{
	struct table table;
	struct model model;

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		hand_model_init(&model);
		model.processes[0].machine = intern_add(&model.strings, "a boot");
		model.processes[1].host = intern_add(&model.strings, places[i].host);
		model.processes[1].machine = intern_add(&model.strings, places[i].machine);
		compute("ranks", &model, &all_steps, &table);
		const struct table_cell *late = table_get(&table, 1, table_find_column(&table, "late_ns"));
		assert_true(late->has_value || late->reason);
		assert_int_equal(late->has_value || !strstr(late->reason, "several or unknown machines"),
		                 places[i].has_its_clock);
		table_release(&table);
		model.processes[1].parent_pid = model.processes[0].pid;
		model.processes[1].rank = model.processes[0].rank;
		compute("ranks", &model, &all_steps, &table);
		assert_int_equal(table.row_count, places[i].has_its_ids ? 1 : 2);
		table_release(&table);
		model_release(&model);
	}
}

static void workers_and_what_ranks_start_are_no_ranks(void **state)
{
	struct table table;
	struct model model;

	hand_model_init(&model);
	model.processes[1].role = STEPSCOPE_ROLE_WORKER;
	compute("ranks", &model, &all_steps, &table);
	assert_int_equal(table.row_count, 1);
	assert_string_equal(text(&table, 0, "process"), "rank 0");
	table_release(&table);
	model.processes[1].role = STEPSCOPE_ROLE_TRAINER;
	model.processes[1].parent_pid = model.processes[0].pid;
	compute("ranks", &model, &all_steps, &table);
	assert_int_equal(table.row_count, 2);
	table_release(&table);
	model.processes[1].rank = model.processes[0].rank;
	compute("ranks", &model, &all_steps, &table);
	assert_int_equal(table.row_count, 1);
	table_release(&table);
	compute("step_time", &model, &all_steps, &table);
	assert_double_equal(number(&table, 0, "count"), 5, 0);
	assert_double_equal(number(&table, 0, "incomplete"), 0, 0);
	table_release(&table);
	model_release(&model);
}

static void ranks_whose_steps_have_other_numbers_are_not_compared(void **state)
{
	struct table table;
	struct model model;

	hand_model_init(&model);
	compute("ranks", &model, &all_steps, &table);
	assert_true(table_get(&table, 0, table_find_column(&table, "behind_ns"))->has_value);
	table_release(&table);
	model.processes[1].has_lost_numbers = true;
	compute("ranks", &model, &all_steps, &table);
	assert_int_equal(table.row_count, 2);
	assert_false(table_get(&table, 0, table_find_column(&table, "behind_ns"))->has_value);
	assert_false(table_get(&table, 1, table_find_column(&table, "is_slowest"))->has_value);
	table_release(&table);
	model_release(&model);
}

/* A worker dies of the death of its training; it is told of where nothing else is. */
static void of_several_that_did_not_end_well_a_training_is_told(void **state)
{
	struct table table;
	struct model model;

	hand_model_init(&model);
	model.processes[0].is_closed = false;
	model.processes[1].role = STEPSCOPE_ROLE_WORKER;
	compute("run", &model, &all_steps, &table);
	assert_non_null(strstr(text(&table, 0, "ended"), "2 of 2 processes"));
	assert_non_null(strstr(text(&table, 0, "ended"), "; rank 0: "));
	table_release(&table);
	model.processes[0].is_closed = true;
	compute("run", &model, &all_steps, &table);
	assert_non_null(strstr(text(&table, 0, "ended"), "1 of 2 processes"));
	assert_null(strstr(text(&table, 0, "ended"), "rank 0"));
	table_release(&table);
	model_release(&model);
}

static void workers_are_ranks_when_nothing_else_marks_steps(void **state)
{
	struct table table;
	struct model model;

	hand_model_init(&model);
	model.processes[0].role = model.processes[1].role = STEPSCOPE_ROLE_WORKER;
	compute("ranks", &model, &all_steps, &table);
	assert_int_equal(table.row_count, 2);
	table_release(&table);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rank_that_makes_others_wait_is_the_slowest),
		cmocka_unit_test(the_window_counts_a_step_of_all_ranks_once),
		cmocka_unit_test(the_recorded_time_of_a_window_is_that_of_its_steps),
		cmocka_unit_test(a_process_without_times_is_in_no_time),
		cmocka_unit_test(every_process_has_the_name_of_its_own_program),
		cmocka_unit_test(chosen_steps_choose_the_machines_values),
		cmocka_unit_test(the_cost_is_a_share_of_cpu_time),
		cmocka_unit_test(the_cost_without_cpu_time_is_a_share_of_the_threads_time),
		cmocka_unit_test(steps_whose_operators_were_removed_are_no_pauses),
		cmocka_unit_test(workers_and_what_ranks_start_are_no_ranks),
		cmocka_unit_test(ranks_whose_steps_have_other_numbers_are_not_compared),
		cmocka_unit_test(machines_are_told_by_their_boots),
		cmocka_unit_test(of_several_that_did_not_end_well_a_training_is_told),
		cmocka_unit_test(workers_are_ranks_when_nothing_else_marks_steps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
