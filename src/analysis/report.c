/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c: see the header.
 */
#include "analysis/report.h"

#include "analysis/trace_reasons.h"

#include <assert.h>
#include <string.h>
#include <time.h>

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
	report->options = *options;
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
	step_times_release(&report->step_times);
	launches_release(&report->launches);
	flop_likeness_release(&report->flop_likeness);
	kept_work_release(&report->kept_work);
	collective_calls_release(&report->collective_calls);
	arena_release(&report->arena);
	memset(report, 0, sizeof(*report));
}

int64_t report_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t report_cpu_ns(const struct report *report)
{
	int64_t sum_ns = report->shared_cpu_ns;

	for (int i = 0; i < ANALYSIS_COUNT; i++)
		sum_ns += report->tables[i].cpu_ns;
	return sum_ns;
}

/* What tables share. */
static void prepare(struct report *report)
{
	int64_t before_ns = report_clock_ns();

	if (report->is_prepared)
		return;
	report->is_prepared = true;
	collective_calls_find(&report->collective_calls, report->model);
	report->options.collective_calls = &report->collective_calls;
	step_times_init(&report->step_times, report->model, &report->options);
	report->options.step_times = &report->step_times;
	launches_init(&report->launches, report->model);
	report->options.launches = &report->launches;
	flop_likeness_init(&report->flop_likeness, report->model);
	report->options.flop_likeness = &report->flop_likeness;
	report->options.kept_work = &report->kept_work;
	report->shared_cpu_ns = report_clock_ns() - before_ns;
}

static void add_defect(struct report *report, const struct error *err)
{
	if (report->defect_count < REPORT_DEFECTS)
		report->defects[report->defect_count++] = arena_dup(&report->arena, err->text);
}

static void compute(struct report *report, int number)
{
	struct table *table = &report->tables[number].table;
	struct error err = {0};
	int64_t before_ns;

	prepare(report);
	before_ns = report_clock_ns();
	if (analyses[number]->run(report->model, &report->options, table, &err)) {
		table_release(table);
		table_init(table, analyses[number]->name, analyses[number]->name, analyses[number]->question);
		table->empty = arena_dup(&table->arena, err.text);
	}
	if (report->format)
		trace_reasons_apply(table, report->format);
	report->tables[number].is_ready = true;
	if (table_check(table, &err))
		add_defect(report, &err);
	report->tables[number].cpu_ns = report_clock_ns() - before_ns;
}

/* Only time of these steps counts from here on, and what happened in all that counted until now. */
static void leave_steps(struct report *report, int64_t first, int64_t last)
{
	int64_t before_ns = report_clock_ns();

	report->options.leaves_steps |= !report->options.filter.has_steps;
	report->options.filter.has_steps = true;
	report->options.filter.first_step = first;
	report->options.filter.last_step = last;
	step_times_release(&report->step_times);
	report->options.step_times = NULL;
	step_times_init(&report->step_times, report->model, &report->options);
	report->options.step_times = &report->step_times;
	report->shared_cpu_ns += report_clock_ns() - before_ns;
}

struct whole_steps report_leave_out_damage(struct report *report)
{
	struct whole_steps found;

	prepare(report);
	found = whole_steps_find(report->model, &report->launches, &report->step_times);
	if (found.lost && found.has_any)
		leave_steps(report, found.first, found.last);
	return found;
}

struct start_up report_leave_out_start_up(struct report *report)
{
	struct start_up found = {0};

	if (is_part_of_run(&report->options))
		return found;
	prepare(report);
	found = start_up_find(&report->step_times);
	if (found.count)
		leave_steps(report, found.first_steady, report->step_times.job_last);
	return found;
}

const struct step_times *report_step_times(struct report *report)
{
	prepare(report);
	return &report->step_times;
}

const char *report_reason(const struct report *report, const char *reason)
{
	return report->format ? trace_reason(reason, report->format) : reason;
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
