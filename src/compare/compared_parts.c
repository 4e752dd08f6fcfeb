/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_parts.c: the parts of a step's time, from the tables of phases, operators, modules, devices, kernels and
 * calls. Levels that split the step itself get a part for the rest, so that they sum to it.
 */
#include "analysis/step_times/step_kinds.h"
#include "compare/compared.h"
#include "compare/kernel_family.h"
#include "compare/module_place.h"
#include "pytorch/names.h"

#include <math.h>
#include <string.h>

/* A level that is read from a table. Times are sums over all steps of the table, unless is_mean. */
struct part_source {
	const char *level, *table, *name;
	const char *time, *more_time; /* both are added; NULL: there is no second */
	const char *whole_time;       /* column for a recording without steps; NULL: the level needs steps */
	const char *calls;            /* NULL: not counted */
	const char *rest; /* name of the part for the rest of the step; NULL: the level does not sum to it */
	bool is_mean;
	enum {
		SAME_NAME,
		SAME_FAMILY,
		SAME_PLACE
	} same; /* how names of two runs are matched */
};

static const struct part_source part_sources[] = {
	{"operator", "ops", "name", "step_self_ns", NULL, "self_ns", "calls", "(steps without recorded operators)",
         false, SAME_NAME},
	{"module", "modules", "module", "forward_self_ns", "backward_self_ns", NULL, "calls", "(outside of modules)",
         false, SAME_PLACE},
	{"device", "step_breakdown", "part", "mean_ns", NULL, NULL, NULL, NULL, true, SAME_NAME},
	{COMPARED_KERNEL, "kernels", "kernel", "total_ns", NULL, "total_ns", "calls", NULL, false, SAME_FAMILY},
	{"call", "runtime_calls", "call", "total_ns", NULL, "total_ns", "calls", NULL, false, SAME_NAME},
};

/* Phases of steps with operators, used if the compared steps do not report their phases. */
static const struct part_source inferred_phases = {"phase", "phases", "name", "mean_ns", NULL,
                                                   NULL,    NULL,     "",     true,      SAME_NAME};

double compared_number_at(const struct table *table, int row, const char *column)
{
	int index = column ? table_find_column(table, column) : -1;
	double value;

	return index >= 0 && table_number(table, row, index, &value) ? value : 0;
}

const char *compared_text_at(const struct table *table, int row, const char *column)
{
	return table_text(table, row, table_find_column(table, column));
}

static double compared_parts_mean_step(const struct compared_run *run)
{
	double sum = 0;

	for (size_t i = 0; i < run->steps_count; i++)
		sum += run->steps[i].host_ns;
	return run->steps_count ? sum / (double)run->steps_count : 0;
}

/* Returns false if no step has phases, because this level would be empty. */
static bool has_phases(const struct compared_run *run)
{
	for (size_t i = 0; i < run->steps_count; i++)
		if (run->steps[i].has_phases && run->steps[i].phase_ns[PHASE_OTHER] < run->steps[i].host_ns)
			return true;
	return false;
}

/* Adds the difference between the step and the sum of the parts, if it is more than rounding. */
static void add_rest(struct compared_run *run, const char *level, const char *name, double sum)
{
	double rest = compared_parts_mean_step(run) - sum;

	if (fabs(rest) > 1e-6 * compared_parts_mean_step(run))
		compared_run_add_part(run, &(struct compared_part){level, name, NULL, rest, false, 0});
}

static void read_phases(struct compared_run *run)
{
	size_t known = 0;
	double sum = 0;

	for (size_t i = 0; i < run->steps_count; i++)
		known += run->steps[i].has_phases;
	for (int phase = 1; phase <= PHASE_COUNT && known; phase++) {
		struct compared_part part = {.level = "phase", .name = phase_name(phase % PHASE_COUNT)};

		for (size_t i = 0; i < run->steps_count; i++)
			part.amount += run->steps[i].has_phases
			                       ? run->steps[i].phase_ns[phase % PHASE_COUNT] / (double)known
			                       : 0;
		sum += part.amount;
		if (part.amount > 0)
			compared_run_add_part(run, &part);
	}
	if (known && known < run->steps_count)
		add_rest(run, "phase", "(steps whose phases are not known)", sum);
}

/* Returns true for rare operators, which are known for all steps even if operators are recorded only in some. */
static bool is_of_all_steps(const struct part_source *source, const struct step_times *times, const char *name)
{
	bool is_told = strcmp(source->table, "ops") == 0 && times->scale.factor != 1 && times->scale.knows_rare;

	return is_told && name && pytorch_is_rare(name, strlen(name)) && !pytorch_is_action(name, strlen(name));
}

/* Factors for the amounts of parts. */
struct share_factors {
	double of_all, others;
};

/* Parts were measured in steps with operators. If the compared steps have none, they are assumed to have the same parts
 * in the same shares. It does not matter whether the steps differ by the cost of recording or by chance.
 *
 * Parts that are known for all steps keep their amount, and the others share the rest of the step. If the former are
 * more than half of a step, the size of the rest is mostly chance, so all parts are scaled alike. */
static struct share_factors find_factors(const struct compared_run *run, struct report *report,
                                         const struct part_source *source, const struct table *table)
{
	const struct step_times *times = report_step_times(report);
	const struct part_source *ops = source->is_mean ? source : &part_sources[0];
	const struct table *rows = source->is_mean ? table : report_table(report, ops->table);
	double steps = source->is_mean ? 1 : step_kinds_sum_steps(times), of_all = 0, others = 0;

	if (!source->rest || !run->steps_count || !times->has_plain || steps <= 0)
		return (struct share_factors){1, 1};
	for (int row = 0; row < rows->row_count; row++) {
		bool is_of_all = is_of_all_steps(ops, times, compared_text_at(rows, row, ops->name));

		*(is_of_all ? &of_all : &others) += compared_number_at(rows, row, ops->time) / steps;
	}
	if (others <= 0)
		return (struct share_factors){1, 1};
	double step = compared_parts_mean_step(run), all = step / (of_all + others);
	return of_all <= step / 2 ? (struct share_factors){1, (step - of_all) / others}
	                          : (struct share_factors){all, all};
}

static void read_source(struct compared_run *run, struct report *report, const struct part_source *source)
{
	const struct table *table = report_table(report, source->table);
	bool is_whole = !run->steps_count;
	double steps = is_whole ? 1 : step_kinds_sum_steps(report_step_times(report)), sum = 0;
	int name = table_find_column(table, source->name);
	const struct share_factors factors = find_factors(run, report, source, table);
	struct module_places places = {0};

	for (int row = 0; row < table->row_count && steps > 0; row++) {
		double calls = compared_number_at(table, row, source->calls);
		struct compared_part part = {.level = source->level,
		                             .name = table_get(table, row, name)->text,
		                             .has_calls = calls > 0,
		                             .calls = calls / steps};

		if (!table_get(table, row, name)->has_value)
			continue;
		part.amount = is_whole ? compared_number_at(table, row, source->whole_time)
		                       : compared_number_at(table, row, source->time) +
		                                 compared_number_at(table, row, source->more_time);
		part.amount *= is_of_all_steps(source, report_step_times(report), part.name) ? factors.of_all
		                                                                             : factors.others;
		part.amount /= source->is_mean ? 1 : steps;
		if (source->same == SAME_FAMILY)
			part.family = kernel_family(part.name, &run->arena);
		else if (source->same == SAME_PLACE)
			part.family = module_place(&places, (int64_t)compared_number_at(table, row, "depth"),
			                           compared_text_at(table, row, "operators"), &run->arena);
		sum += part.amount;
		compared_run_add_part(run, &part);
	}
	module_places_release(&places);
	if (source->rest && !is_whole && table->row_count && steps > 0)
		add_rest(run, source->level, source->rest, sum);
}

void compared_read_parts(struct compared_run *run, struct report *report)
{
	if (has_phases(run))
		read_phases(run);
	else if (report_step_times(report)->has_plain)
		read_source(run, report, &inferred_phases);
	for (size_t i = 0; i < sizeof(part_sources) / sizeof(part_sources[0]); i++)
		if (run->steps_count || part_sources[i].whole_time)
			read_source(run, report, &part_sources[i]);
}
