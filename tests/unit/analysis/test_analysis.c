/* SPDX-License-Identifier: Apache-2.0
 *
 * Promises that the tables of all analyses keep, for a run made by hand and for an empty one: each column is defined, and columns of
 * one name mean one thing.
 */
#include "analysis/step_times/step_times.h"
#include "computed.h"
#include "hand_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_table_keeps_its_promises(void **state)
{
	struct analysis_options by_all = {.by = BY_SHAPE | BY_THREAD | BY_PHASE};
	struct analysis_options some = {.filter = {.has_steps = true, .first_step = 2, .last_step = 3}};
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

static void shared_results_are_made_once(void **state)
{
	struct analysis_context context;
	const struct step_times *times;
	int64_t shared_cpu_ns;
	struct model model;

	hand_model_init(&model);
	analysis_context_init(&context, &model, &all_steps);
	assert_int_equal(context.shared_cpu_ns, 0);
	times = analysis_context_step_times(&context);
	assert_non_null(analysis_context_launches(&context));
	assert_non_null(analysis_context_collective_calls(&context));
	assert_non_null(analysis_context_flop_likeness(&context));
	shared_cpu_ns = context.shared_cpu_ns;
	assert_true(shared_cpu_ns > 0);
	assert_ptr_equal(analysis_context_step_times(&context), times);
	assert_int_equal(context.shared_cpu_ns, shared_cpu_ns);
	analysis_context_release(&context);
	model_release(&model);
}

static void chosen_steps_replace_what_depends_on_them(void **state)
{
	struct analysis_context context;
	const struct launches *launches;
	struct model model;
	uint32_t all;

	hand_model_init(&model);
	analysis_context_init(&context, &model, &all_steps);
	launches = analysis_context_launches(&context);
	all = analysis_context_step_times(&context)->job_selected;
	analysis_context_choose_steps(&context, 2, 3);
	assert_int_equal(analysis_context_step_times(&context)->job_selected, 2);
	assert_true(all > 2);
	assert_ptr_equal(analysis_context_launches(&context), launches);
	assert_false(is_part_of_run(&context.options));
	analysis_context_release(&context);
	model_release(&model);
}

struct counted_fold {
	int *made;
};

static int folds_made, folds_released;

static void counted_fold_init(void *fold, struct analysis_context *context)
{
	((struct counted_fold *)fold)->made = &folds_made;
	folds_made += analysis_context_step_times(context) != NULL;
}

static void counted_fold_release(void *fold)
{
	folds_released += ((struct counted_fold *)fold)->made == &folds_made;
}

static void tables_share_a_fold_of_the_same_steps(void **state)
{
	static const struct analysis_fold kind = {sizeof(struct counted_fold), counted_fold_init, counted_fold_release};
	struct analysis_context context;
	struct model model;
	void *fold;

	hand_model_init(&model);
	analysis_context_init(&context, &model, &all_steps);
	fold = analysis_context_fold(&context, &kind);
	assert_ptr_equal(analysis_context_fold(&context, &kind), fold);
	assert_int_equal(folds_made, 1);
	analysis_context_choose_steps(&context, 2, 3);
	assert_int_equal(folds_released, 1);
	analysis_context_fold(&context, &kind);
	assert_int_equal(folds_made, 2);
	analysis_context_release(&context);
	assert_int_equal(folds_released, 2);
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
	{"of all values, or of the finite ones, as telemetry has no others", "last"},
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
		cmocka_unit_test(shared_results_are_made_once),
		cmocka_unit_test(chosen_steps_replace_what_depends_on_them),
		cmocka_unit_test(tables_share_a_fold_of_the_same_steps),
		cmocka_unit_test(every_column_is_defined),
		cmocka_unit_test(columns_of_one_name_are_one_thing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
