/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs made by hand for tests of comparisons.
 */
#include "compared_pair.h"

#include "base/memory.h"

#include <string.h>

void make_run(struct compared_run *run, double ms, double tokens)
{
	memset(run, 0, sizeof(*run));
	arena_init(&run->arena, 0);
	run->name = run->path = "run";
	run->steps = memory_resize(NULL, STEPS, sizeof(*run->steps));
	run->steps_count = STEPS;
	memset(run->steps, 0, STEPS * sizeof(*run->steps));
	for (int i = 0; i < STEPS; i++) {
		run->steps[i] = (struct compared_step){.number = i,
		                                       .dur_ns = 1e6 * ms * (1 + 0.001 * ((i * 7) % 5 - 2)),
		                                       .has_phases = true,
		                                       .has_tokens = tokens > 0,
		                                       .tokens = tokens};
	}
	if (tokens > 0) {
		compared_run_add_fact(run, FACT_WORK, "tokens per step", arena_printf(&run->arena, "%.0f", tokens));
		compared_run_add_value(run, "tokens_per_s", tokens / ms * 1000);
	}
	compared_run_add_value(run, "step_time_mean", 1e6 * ms);
}

void set_mean(struct compared_run *run)
{
	double sum_ns = 0;

	for (size_t i = 0; i < run->steps_count; i++)
		sum_ns += run->steps[i].dur_ns;
	for (size_t i = 0; i < run->values_count; i++)
		if (!strcmp(run->values[i].name, "step_time_mean"))
			run->values[i].value = sum_ns / (double)run->steps_count;
}

void add_part(struct compared_run *run, const char *level, const char *name, const char *family, double ms)
{
	compared_run_add_part(run, &(struct compared_part){level, name, family, 1e6 * ms, true, 1});
}

void compare(struct pair *pair)
{
	comparison_init(&pair->comparison, &pair->base, 1, &pair->new, 1, NULL);
}

void release(struct pair *pair)
{
	comparison_release(&pair->comparison);
	compared_run_release(&pair->base);
	compared_run_release(&pair->new);
}

const char *verdict_text(const struct pair *pair, int column)
{
	const struct table_cell *cell = table_get(&pair->comparison.verdict, 0, column);

	return cell->has_value ? cell->text : NULL;
}

const char *result_of(const struct pair *pair, const char *metric)
{
	return table_get(&pair->comparison.metrics, comparison_metric(&pair->comparison, metric), METRIC_RESULT)->text;
}
