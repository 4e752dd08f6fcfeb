/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_functions.c: the functions of sampled stacks. The functions with the largest total share are kept. The self
 * values of the others are summed up, so that all self shares still sum to 1.
 */
#include "base/merge_sort.h"
#include "compare/compared.h"

#include <string.h>

/* Returns the sum of three columns. One of them has a value: it depends on the quantity that the samples count. Returns
 * 0 if the value does not fit. */
static double compared_functions_sum_of(const struct table *table, int row, const char *const columns[3])
{
	double sum = 0;

	for (int i = 0; i < 3; i++)
		sum += compared_number_at(table, row, columns[i]);
	return sum;
}

static void read_function(struct compared_run *run, const struct table *table, int row)
{
	static const char *const selves[] = {"self_ns", "self_bytes", "self_count"};
	static const char *const totals[] = {"total_ns", "total_bytes", "total_count"};
	const struct compared_function function = {.what = compared_text_at(table, row, "what"),
	                                           .name = compared_text_at(table, row, "function"),
	                                           .file = compared_text_at(table, row, "file"),
	                                           .self = compared_functions_sum_of(table, row, selves),
	                                           .total = compared_functions_sum_of(table, row, totals),
	                                           .self_ratio = compared_number_at(table, row, "self_ratio"),
	                                           .total_ratio = compared_number_at(table, row, "total_ratio")};

	if (function.total_ratio > 0)
		compared_run_add_function(run, &function);
}

static int compare_totals(const void *left, const void *right)
{
	const struct compared_function *a = left, *b = right;

	return (a->total_ratio < b->total_ratio) - (a->total_ratio > b->total_ratio);
}

/* Returns the row for the functions that were left out and count the same quantity. */
static struct compared_function *others_of(struct compared_run *run, size_t kept, const char *what)
{
	const struct compared_function others = {.what = what, .name = COMPARED_OTHERS};

	for (size_t i = kept; i < run->functions_count; i++)
		if (!strcmp(run->functions[i].what, what))
			return &run->functions[i];
	compared_run_add_function(run, &others);
	return &run->functions[run->functions_count - 1];
}

/* It is unknown which of these functions call each other, so only their self values can be added to the total. */
static void join_others(struct compared_run *run, size_t most)
{
	size_t count = run->functions_count;

	if (count <= most)
		return;
	merge_sort(run->functions, count, sizeof(*run->functions), compare_totals);
	run->functions_count = most;
	for (size_t i = most; i < count; i++) {
		const struct compared_function left_out = run->functions[i];
		struct compared_function *others = others_of(run, most, left_out.what);

		others->self += left_out.self;
		others->total += left_out.self;
		others->self_ratio += left_out.self_ratio;
		others->total_ratio += left_out.self_ratio;
	}
}

void compared_read_functions(struct compared_run *run, struct report *report)
{
	const struct table *table = report_table(report, "functions");

	for (int row = 0; row < table->row_count; row++)
		read_function(run, table, row);
	join_others(run, COMPARED_FUNCTIONS);
}
