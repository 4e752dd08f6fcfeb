/* SPDX-License-Identifier: Apache-2.0
 *
 * Analyses of a run made by hand (hand_model.h), against numbers worked out on paper, and of odd models: phases around
 * steps, recursion, nothing at all. Every table must keep its columns' promises.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/step_times/step_times.h"
#include "computed.h"
#include "hand_model.h"
#include "near.h"

#include <stepscope/format.h>
#include <stepscope/stepscope.h>
#include <string.h>

static double number(const struct table *table, int row, const char *column)
{
	double value;

	if (!table_number(table, row, table_find_column(table, column), &value))
		fail_msg("'%s' of row %d of table '%s' was not measured", column, row, table->name);
	return value;
}

static void every_table_keeps_its_promises(void **state)
{
	struct analysis_options by_all = {.by = BY_SHAPE | BY_THREAD | BY_PHASE};
	struct analysis_options some = {.has_steps = true, .first_step = 2, .last_step = 3};
	struct table table;
	struct model model;

	hand_model_init(&model);
	for (int i = 0; analyses[i]; i++) {
		compute(analyses[i]->name, &model, &all_steps, &table);
		assert_string_equal(table.name, analyses[i]->name);
		table_release(&table);
		compute(analyses[i]->name, &model, &by_all, &table);
		table_release(&table);
		compute(analyses[i]->name, &model, &some, &table);
		table_release(&table);
	}
	model_release(&model);
}

static void every_table_of_nothing_says_why_it_is_empty(void **state)
{
	struct table table;
	struct model model;

	model_init(&model, 0);
	model_finish(&model);
	for (int i = 0; analyses[i]; i++) {
		compute(analyses[i]->name, &model, &all_steps, &table);
		if (!table.row_count)
			assert_non_null(table.empty);
		table_release(&table);
	}
	model_release(&model);
}

static void every_column_is_defined(void **state)
{
	struct table table;
	struct model model;

	hand_model_init(&model);
	for (int i = 0; analyses[i]; i++) {
		compute(analyses[i]->name, &model, &all_steps, &table);
		for (int column = 0; column < table.column_count; column++) {
			assert_non_null(table.columns[column].definition);
			if (table.columns[column].role == ROLE_SHARE)
				assert_non_null(table.columns[column].denominator);
		}
		table_release(&table);
	}
	model_release(&model);
}

/* A step that crosses calls of Python lies in a lane of its own: what the thread does lies in the first one, and is time of the step. */
static void lanes_of_a_thread_count_their_steps_once(void **state)
{
	struct table table;
	struct model model;
	uint32_t first, second;

	model_init(&model, 0);
	first = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	second = model_add_track(&model, 0, TRACK_THREAD);
	model.tracks[first]->tid = model.tracks[second]->tid = 7;
	model_span_complete(&model, first, 0, 150 * MS, SPAN_PYTHON, intern_add(&model.strings, "train"));
	model_span_complete(&model, first, 110 * MS, 20 * MS, SPAN_OP, intern_add(&model.strings, "mm"));
	*model_add_step(&model) = (struct model_step){.track = second,
	                                              .row = model_span_complete(&model, second, 100 * MS, 100 * MS,
	                                                                         SPAN_STEP,
	                                                                         intern_add(&model.strings, "step")),
	                                              .start_ns = 100 * MS,
	                                              .end_ns = 200 * MS,
	                                              .has_detail = true};
	model_finish(&model);
	compute("ops", &model, &all_steps, &table);
	assert_double_equal(number(&table, find_row(&table, "name", "mm"), "step_self_ns"), 20 * MS, 0);
	assert_double_equal(number(&table, find_row(&table, "name", "mm"), "step_self_ratio"), 0.2, 1e-12);
	assert_double_equal(number(&table, find_row(&table, "kind", "rest"), "step_self_ns"), 80 * MS, 0);
	table_release(&table);
	model_release(&model);
}

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

static void recursion_counts_once_in_total_and_wholly_in_self(void **state)
{
	struct table table;
	struct model model;
	int row;

	hand_model_init(&model);
	compute("ops", &model, &all_steps, &table);
	row = find_row(&table, "name", "matmul");
	assert_double_equal(number(&table, row, "calls"), 18, 0); /* not those of the step that was cut off */
	assert_double_equal(number(&table, row, "total_ns"), 9 * 10.0 * MS, 0);
	assert_double_equal(number(&table, row, "self_ns"), 9 * 10.0 * MS, 0);
	assert_double_equal(number(&table, row, "min_ns"), 4.0 * MS, 0);
	assert_double_equal(number(&table, row, "flops"), 9 * 4e6, 0);
	assert_double_equal(number(&table, row, "flops_per_s"), 1e9, 1);
	table_release(&table);
	model_release(&model);
}

static void memory_has_its_peak_and_its_growth(void **state)
{
	struct table table;
	struct model model;
	int row;

	hand_model_init(&model);
	compute("memory", &model, &all_steps, &table);
	row = find_row(&table, "category", "all");
	assert_double_equal(number(&table, row, "peak_bytes"), 1000 + 500 + 5 * 10, 0);
	assert_double_equal(number(&table, row, "live_bytes"), 1000 + 5 * 10, 0);
	assert_double_equal(number(&table, row, "growth_bytes_per_step"), 10, 1e-9);
	row = find_row(&table, "category", "activation");
	assert_double_equal(number(&table, row, "allocated_bytes"), 5 * 500, 0);
	assert_double_equal(number(&table, row, "live_bytes"), 0, 0);
	table_release(&table);
	compute("memory_peak", &model, &all_steps, &table);
	row = find_row(&table, "category", "other");
	assert_double_equal(number(&table, row, "alive_bytes"), 50, 0);
	assert_double_equal(number(&table, row, "live_allocations"), 5, 0);
	table_release(&table);
	model_release(&model);
}

static void add_step(struct model *model, uint32_t track, int64_t ordinal, int64_t start_ns)
{
	struct model_step step = {.number = ordinal,
	                          .start_ns = start_ns,
	                          .end_ns = start_ns + 10,
	                          .track = track,
	                          .capture = STEPSCOPE_CAPTURE_RECORD,
	                          .has_detail = true,
	                          .has_memory = true};

	step.row = model_span_begin(model, track, start_ns, SPAN_STEP, intern_add(&model->strings, "step"));
	model_span_end(model, track, step.end_ns, 0);
	*model_add_step(model) = step;
}

static void add_memory(struct model *model, int64_t time_ns, uint64_t address, uint64_t bytes)
{
	model_add_memory(model, &(struct memory_event){.time_ns = time_ns,
	                                               .address = address,
	                                               .bytes = bytes,
	                                               .track = MODEL_NONE,
	                                               .row = MODEL_NONE,
	                                               .device = STEPSCOPE_DEVICE_CPU,
	                                               .is_free = !bytes,
	                                               .has_bytes = bytes});
}

/* What was allocated before counts, what was freed before does not; a step may begin with its peak. */
static void the_peak_is_that_of_selected_steps(void **state)
{
	static const struct {
		int64_t first, last;
		double peak;
	} cases[] = {{0, 2, 1100}, {1, 1, 105}, {2, 2, 105}, {1, 2, 105}, {3, 3, 5}};
	struct table table;
	struct model model;

	model_init(&model, 0);
	uint32_t track = model_add_track(&model, model_add_process(&model), TRACK_THREAD);
	for (int64_t step = 0; step < 4; step++)
		add_step(&model, track, step, 10 + step * 10);
	add_memory(&model, 1, 0x100, 100);
	add_memory(&model, 12, 0x200, 1000);
	add_memory(&model, 15, 0x200, 0);
	add_memory(&model, 22, 0x300, 5);
	add_memory(&model, 35, 0x100, 0);
	model_finish(&model);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct analysis_options steps = {
			.has_steps = true, .first_step = cases[i].first, .last_step = cases[i].last};
		double alive = 0;

		compute("memory", &model, &steps, &table);
		assert_double_equal(number(&table, 0, "peak_bytes"), cases[i].peak, 0);
		table_release(&table);
		compute("memory_peak", &model, &steps, &table);
		for (int row = 0; row < table.row_count; row++)
			alive += number(&table, row, "alive_bytes");
		assert_double_equal(alive, cases[i].peak, 0);
		table_release(&table);
	}
	model_release(&model);
}

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
	struct analysis_options one = {.has_steps = true, .first_step = 1, .last_step = 1};
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
	struct analysis_options one = {.has_steps = true, .first_step = 1, .last_step = 1};
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
	assert_null(strstr(text(&table, 0, "cost"), "against their neighbours"));
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
		assert_int_equal(late->has_value || !strstr(late->reason, "several machines"), places[i].has_its_clock);
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
	                    "steps were lost (12 dropped events of steps and phases): the figures are of those "
	                    "that are left and may not be typical");
	table_release(&table);
	model_release(&model);
}

static void calls_outside_of_the_measured_steps_are_counted_in_the_note(void **state)
{
	struct analysis_options some = {.has_steps = true, .first_step = 0, .last_step = 3};
	struct table table;
	struct model model;

	hand_model_init(&model);
	compute("ops", &model, &all_steps, &table); /* the step that was cut off is not measured */
	assert_string_equal(table.note, "3 of 30 calls lie outside of the measured steps and are not counted");
	table_release(&table);
	compute("ops", &model, &some, &table); /* a step has two calls of matmul and one of layer */
	assert_string_equal(table.note, "6 of 30 calls lie outside of the measured steps and are not counted");
	table_release(&table);
	model_release(&model);
}

static void sums_of_absurd_sizes_are_saturated(void **state)
{
	struct table table;
	struct model model;

	model_init(&model, 0);
	model_add_process(&model);
	for (uint64_t i = 0; i < 10; i++)
		model_add_memory(&model, &(struct memory_event){.time_ns = (int64_t)i,
		                                                .address = 1 + i,
		                                                .bytes = (uint64_t)1 << 62,
		                                                .track = MODEL_NONE,
		                                                .row = MODEL_NONE,
		                                                .device = -1,
		                                                .has_bytes = true});
	model_finish(&model);
	compute("memory", &model, &all_steps, &table);
	assert_int_equal(table_get(&table, 0, table_find_column(&table, "peak_bytes"))->i, INT64_MAX);
	assert_int_equal(table_get(&table, 0, table_find_column(&table, "allocated_bytes"))->i, INT64_MAX);
	table_release(&table);
	compute("memory_peak", &model, &all_steps, &table);
	assert_int_equal(table_get(&table, 0, table_find_column(&table, "alive_bytes"))->i, INT64_MAX);
	table_release(&table);
	model_release(&model);
}

/* ---- phases around and across steps ---- */

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
	struct step_times times;

	model_finish(&line->model);
	step_times_init(&times, &line->model, &all_steps);
	assert_int_equal(times.steps[0].phase_ns[STEPSCOPE_PHASE_BACKWARD], backward);
	assert_int_equal(times.steps[0].phase_ns[STEPSCOPE_PHASE_COMMUNICATION], communication);
	assert_int_equal(times.steps[0].phase_ns[STEPSCOPE_PHASE_OPTIMIZER], optimizer);
	assert_int_equal(times.steps[0].phase_ns[PHASE_OTHER], 100 - backward - communication - optimizer);
	step_times_release(&times);
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
	struct step_times times;
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
		step_times_init(&times, &line.model, &all_steps);
		assert_int_equal(times.steps[complete].is_measured, !complete);
		assert_true(times.steps[0].is_measured);
		assert_false(step_times_measures(&times, -1));
		step_times_release(&times);
		model_release(&line.model);
	}
}

static void nested_phases_belong_to_the_innermost(void **state)
{
	struct step_times times;
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
	step_times_init(&times, &line.model, &all_steps);
	assert_int_equal(times.steps[0].phase_ns[STEPSCOPE_PHASE_FORWARD], 40);
	assert_int_equal(times.steps[0].phase_ns[STEPSCOPE_PHASE_COMMUNICATION], 10);
	assert_int_equal(times.steps[0].phase_ns[PHASE_OTHER], 50);
	step_times_release(&times);
	model_release(&line.model);
}

static void a_phase_between_steps_is_not_in_them(void **state)
{
	struct step_times times;
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
	step_times_init(&times, &line.model, &all_steps);
	assert_int_equal(times.steps[0].phase_ns[STEPSCOPE_PHASE_EVALUATION], 0);
	assert_int_equal(times.spans[0].phase_ns[STEPSCOPE_PHASE_EVALUATION], 80);
	assert_int_equal(times.spans[0].phase_ns[PHASE_OTHER], 20);
	step_times_release(&times);
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
	struct step_times times;
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
	step_times_init(&times, &line.model, &all_steps);
	assert_int_equal(times.steps[0].phase_ns[STEPSCOPE_PHASE_FORWARD], 30);
	assert_int_equal(times.steps[1].phase_ns[STEPSCOPE_PHASE_FORWARD], 30);
	assert_int_equal(times.spans[0].phase_ns[STEPSCOPE_PHASE_FORWARD], 20);
	step_times_release(&times);
	model_release(&line.model);
}

/* ---- one name, one unit, one meaning ---- */

/* What one name may mean in several tables, and why it does: all others have the same words wherever they are. */
static const struct {
	const char *reason, *names;
} meanings[] = {
	{"a time, a number or a place of what the row is about, which is another thing in each table",
         "calls cause count duration_ns end kind line max_ns mean_ns meaning min_ns module name operation p50_ns p95_ns p99_ns "
         "part phase process sample_rows sentence shape step step_ns steps stream thread total_ns trend what where wait_ns"},
	{"a share: the denominator is said in each table",
         "busy_ratio exposed_ratio ratio self_ratio sm_efficiency_ratio tensor_core_ratio occupancy_ratio"},
	{"part of a whole that the table makes: of a step's time, of the time of devices, of the critical path",
         "communication_ns compute_ns copies_ns data_ns host_ns launch_ns other_ns own_ns queued_ns runtime_ns sync_ns pieces"},
	{"of a thread or of devices; of a line, a module or a step",
         "backward_ns busy_ns device_ns exposed_ns flops flops_per_s forward_ns kernel_ns launched_count self_device_ns "
         "uncounted_operators allocated_bytes"},
	{"self and total of operators, or of samples, which count time, bytes or how many they are",
         "self_bytes self_count self_ns total_bytes total_count function stack"},
	{"of one process, or of the whole run", "cpu_ns events host last_step program rank wall_ns capture"},
	{"the one where it is made, the others refer to it", "allocated_by category"},
	{"of a device, or also of the host's memory", "device used_bytes"},
	{"at the end of the recording, of the last step, or at the peak", "live_allocations live_bytes peak_bytes"},
	{"instants: of the run's begin, or of the process's", "first_ns start_ns time_ns"},
	{"of an exchange alone, or with the waits before it; as it was issued, or as it is executed",
         "algorithm_bytes_per_s bytes call collective depth_mean"},
	{"of steps, or of phases, where a lower end is at least 0", "ci95_low_ns"},
};

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = words; (at = strstr(at, word)); at += length)
		if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	return false;
}

static bool may_differ(const char *name)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (has_word(meanings[i].names, name))
			return true;
	return false;
}

static bool is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void check_names(const struct table *table, const struct table *other)
{
	for (int column = 0; column < table->column_count; column++) {
		const struct table_column *one = &table->columns[column];
		int number = table_find_column(other, one->name);
		const struct table_column *two = number < 0 ? one : &other->columns[number];

		if (one->unit != two->unit || (one->type == TABLE_TEXT) != (two->type == TABLE_TEXT))
			fail_msg("'%s' of '%s' is of another unit or type than of '%s': give it another name",
			         one->name, table->name, other->name);
		if ((!is_same_text(one->definition, two->definition) ||
		     !is_same_text(one->denominator, two->denominator)) &&
		    !may_differ(one->name))
			fail_msg("'%s' of '%s' is defined in other words than of '%s': use the same, or another name, "
			         "or say in `meanings` why",
			         one->name, table->name, other->name);
	}
}

/* No reason is kept for what is not there any more. */
static bool is_in_several(const struct table *tables, int count, const char *name)
{
	const struct table_column *first = NULL;

	for (int i = 0; i < count; i++) {
		int column = table_find_column(&tables[i], name);
		const struct table_column *found = column < 0 ? NULL : &tables[i].columns[column];

		if (found && first &&
		    (!is_same_text(found->definition, first->definition) ||
		     !is_same_text(found->denominator, first->denominator)))
			return true;
		first = first ? first : found;
	}
	return false;
}

static void check_meanings(const struct table *tables, int count)
{
	char name[64];

	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		for (const char *at = meanings[i].names; *at; at += strspn(at, " ")) {
			size_t length = strcspn(at, " ");

			assert_true(length < sizeof(name));
			snprintf(name, sizeof(name), "%.*s", (int)length, at);
			if (!is_in_several(tables, count, name))
				fail_msg("'%s' means the same wherever it is: it needs no reason", name);
			at += length;
		}
	}
}

static void columns_of_one_name_are_one_thing(void **state)
{
	struct model model;
	struct table tables[128];
	int count = 0;

	model_init(&model, 0);
	model_finish(&model);
	for (; analyses[count]; count++) {
		assert_in_range(count, 0, 127);
		compute(analyses[count]->name, &model, &all_steps, &tables[count]);
		assert_true(tables[count].column_count > 0);
		for (int i = 0; i < count; i++)
			check_names(&tables[count], &tables[i]);
	}
	check_meanings(tables, count);
	for (int i = 0; i < count; i++)
		table_release(&tables[i]);
	model_release(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_table_keeps_its_promises),
		cmocka_unit_test(every_table_of_nothing_says_why_it_is_empty),
		cmocka_unit_test(every_column_is_defined),
		cmocka_unit_test(lanes_of_a_thread_count_their_steps_once),
		cmocka_unit_test(waits_that_overlap_operators_count_once),
		cmocka_unit_test(the_job_step_is_the_mean_of_its_processes),
		cmocka_unit_test(phases_sum_to_the_step),
		cmocka_unit_test(recursion_counts_once_in_total_and_wholly_in_self),
		cmocka_unit_test(memory_has_its_peak_and_its_growth),
		cmocka_unit_test(the_peak_is_that_of_selected_steps),
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
		cmocka_unit_test(lost_steps_are_said_with_the_step_time),
		cmocka_unit_test(calls_outside_of_the_measured_steps_are_counted_in_the_note),
		cmocka_unit_test(sums_of_absurd_sizes_are_saturated),
		cmocka_unit_test(waiting_for_a_collective_is_communication),
		cmocka_unit_test(operators_that_wait_for_a_collective_are_waits),
		cmocka_unit_test(a_collective_that_goes_on_is_not_waited_for),
		cmocka_unit_test(a_step_that_was_cut_off_is_measured_only_alone),
		cmocka_unit_test(nested_phases_belong_to_the_innermost),
		cmocka_unit_test(a_phase_between_steps_is_not_in_them),
		cmocka_unit_test(steps_that_overlap_take_their_time_once),
		cmocka_unit_test(a_phase_around_steps_is_dealt_out_to_them),
		cmocka_unit_test(columns_of_one_name_are_one_thing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
