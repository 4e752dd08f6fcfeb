/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c: see the header.
 */
#include "analysis/report.h"

#include <assert.h>
#include <string.h>

void report_init(struct report *report, const struct model *model, const struct analysis_options *options,
                 const char *path)
{
	size_t length = strlen(path);
	size_t start;

	memset(report, 0, sizeof(*report));
	arena_init(&report->arena, 0);
	report->model = model;
	report->path = path;
	report->format = model_meta(model, MODEL_NONE, "trace.format");
	analysis_context_init(&report->context, model, options);
	while (length > 1 && path[length - 1] == '/')
		length--;
	for (start = length; start > 0 && path[start - 1] != '/';)
		start--;
	report->name = arena_dup_n(&report->arena, path + start, length - start);
}

void report_release(struct report *report)
{
	for (int i = 0; i < ANALYSIS_COUNT; i++) {
		if (report->tables[i].is_ready)
			table_release(&report->tables[i].table);
	}
	analysis_context_release(&report->context);
	arena_release(&report->arena);
	memset(report, 0, sizeof(*report));
}

int64_t report_cpu_ns(const struct report *report)
{
	int64_t sum_ns = report->context.shared_cpu_ns;

	for (int i = 0; i < ANALYSIS_COUNT; i++)
		sum_ns += report->tables[i].cpu_ns;
	return sum_ns;
}

static void add_defect(struct report *report, const struct error *err)
{
	if (report->defect_count < REPORT_DEFECTS)
		report->defects[report->defect_count++] = arena_dup(&report->arena, err->text);
}

/* Returns the CPU time of this process without that of shared results, so that no table pays for being first. */
static int64_t unshared_clock_ns(const struct report *report)
{
	return analysis_cpu_clock_ns() - report->context.shared_cpu_ns;
}

static void compute(struct report *report, int number)
{
	struct table *table = &report->tables[number].table;
	struct error err = {0};
	int64_t before_ns = unshared_clock_ns(report);

	assert(number >= 0 && number < ANALYSIS_COUNT && !report->tables[number].is_ready);

	if (analyses[number]->run(&report->context, table, &err)) {
		table_release(table);
		table_init(table, analyses[number]->name, analyses[number]->name, analyses[number]->question);
		table->empty = arena_dup(&table->arena, err.text);
	}
	report->tables[number].is_ready = true;
	if (table_check(table, &err))
		add_defect(report, &err);
	report->tables[number].cpu_ns = unshared_clock_ns(report) - before_ns;
}

struct whole_steps report_leave_out_damage(struct report *report)
{
	struct analysis_context *context = &report->context;
	struct whole_steps found = whole_steps_find(report->model, analysis_context_launches(context),
	                                            analysis_context_step_times(context));

	if (found.lost && found.has_any)
		analysis_context_choose_steps(context, found.first, found.last);
	return found;
}

struct start_up report_leave_out_start_up(struct report *report)
{
	struct analysis_context *context = &report->context;
	struct start_up found = {0};
	const struct step_times *times;

	if (is_part_of_run(&context->options))
		return found;
	times = analysis_context_step_times(context);
	found = start_up_find(times);
	if (found.count)
		analysis_context_choose_steps(context, found.first_steady, times->job_last);
	return found;
}

const struct step_times *report_step_times(struct report *report)
{
	return analysis_context_step_times(&report->context);
}

struct table *report_table_mutable(struct report *report, const char *name)
{
	for (int i = 0; analyses[i]; i++) {
		if (strcmp(analyses[i]->name, name) != 0)
			continue;
		if (!report->tables[i].is_ready)
			compute(report, i);
		return &report->tables[i].table;
	}
	return NULL;
}

const struct table *report_table(struct report *report, const char *name)
{
	return report_table_mutable(report, name);
}
