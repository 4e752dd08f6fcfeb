/* SPDX-License-Identifier: Apache-2.0
 *
 * compared_run.c: see the header. Steps and single numbers are read here, facts and parts in their own files.
 */
#include "compare/compared_run.h"

#include "base/memory.h"
#include "compare/compared.h"
#include "compare/cuts/compared_replay.h"
#include "compare/steady.h"
#include "model/cell_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const fact_kind_names[FACT_KINDS] = {
	[FACT_WORK] = "work",         [FACT_HARDWARE] = "hardware",   [FACT_SOFTWARE] = "software",
	[FACT_SETTINGS] = "settings", [FACT_RECORDING] = "recording", [FACT_CLOCK] = "clock",
};

/* Appends one zeroed element. */
static void *compared_run_grow(void *array, size_t *count, size_t *capacity, size_t bytes)
{
	if (*count == *capacity) {
		*capacity = *capacity ? 2 * *capacity : 64;
		array = memory_resize(array, *capacity, bytes);
	}
	memset((char *)array + *count * bytes, 0, bytes);
	++*count;
	return array;
}

#define ADD(run, what)                                                                                                 \
	((run)->what = compared_run_grow((run)->what, &(run)->what##_count, &(run)->what##_capacity,                   \
	                                 sizeof(*(run)->what)),                                                        \
	 &(run)->what[(run)->what##_count - 1])

void compared_run_add_fact(struct compared_run *run, enum fact_kind kind, const char *name, const char *value)
{
	*ADD(run, facts) = (struct compared_fact){kind, arena_dup(&run->arena, name), arena_dup(&run->arena, value)};
}

void compared_run_add_number(struct compared_run *run, enum fact_kind kind, const char *name, double value)
{
	compared_run_add_fact(run, kind, name, arena_printf(&run->arena, "%.10g", value));
}

void compared_run_add_value(struct compared_run *run, const char *name, double value)
{
	*ADD(run, values) = (struct compared_value){arena_dup(&run->arena, name), true, value, NULL};
}

void compared_run_add_missing(struct compared_run *run, const char *name, const char *reason)
{
	*ADD(run, values) = (struct compared_value){arena_dup(&run->arena, name), false, 0,
	                                            arena_dup(&run->arena, reason ? reason : "not measured")};
}

void compared_run_add_part(struct compared_run *run, const struct compared_part *part)
{
	struct compared_part *added = ADD(run, parts);

	*added = *part;
	added->level = arena_dup(&run->arena, part->level);
	added->name = arena_dup(&run->arena, part->name);
	added->family = part->family ? arena_dup(&run->arena, part->family) : NULL;
}

/* Removes the address from "<built-in method mean of Tensor object at 0x7f01>", because it differs in each run. */
static const char *without_address(struct arena *arena, const char *name)
{
	const char *at = strstr(name, "at 0x");

	at = at ? at : strstr(name, "at_0x");
	if (!at || at < name + 1)
		return arena_dup(arena, name);
	at--;
	return arena_printf(arena, "%.*s%s", (int)(at - name), name, at + 6 + strspn(at + 6, "0123456789abcdefABCDEF"));
}

void compared_run_add_function(struct compared_run *run, const struct compared_function *function)
{
	struct compared_function *added = ADD(run, functions);

	*added = *function;
	added->what = arena_dup(&run->arena, function->what);
	added->name = without_address(&run->arena, function->name);
	added->file = function->file ? arena_dup(&run->arena, function->file) : NULL;
}

void compared_run_add_telemetry(struct compared_run *run, const struct compared_telemetry *telemetry)
{
	struct compared_telemetry *added = ADD(run, telemetry);

	*added = *telemetry;
	added->of = arena_dup(&run->arena, telemetry->of);
	added->quantity = arena_dup(&run->arena, telemetry->quantity);
	added->unit = telemetry->unit ? arena_dup(&run->arena, telemetry->unit) : NULL;
}

const struct compared_value *compared_run_value(const struct compared_run *run, const char *name)
{
	for (size_t i = 0; i < run->values_count; i++)
		if (!strcmp(run->values[i].name, name))
			return &run->values[i];
	return NULL;
}

const char *compared_run_fact(const struct compared_run *run, const char *name)
{
	for (size_t i = 0; i < run->facts_count; i++)
		if (!strcmp(run->facts[i].name, name))
			return run->facts[i].value;
	return NULL;
}

/* ---- steps ---- */

static void read_created(struct compared_run *run, struct report *report)
{
	const struct table *table = report_table(report, "run");
	const struct table_cell *cell = table_get(table, 0, table_find_column(table, "created"));

	run->created = cell->has_value ? arena_dup(&run->arena, cell->text) : NULL;
	for (uint32_t i = 0; i < report->model->processes_count; i++) {
		const struct process *process = &report->model->processes[i];
		int64_t created_ns = process->first_ns + process->realtime_offset_ns;

		if (!process->has_times || !process->realtime_offset_ns)
			continue;
		if (!run->has_created || created_ns < run->created_ns)
			run->created_ns = created_ns;
		run->has_created = true;
	}
}

static void read_steps(struct compared_run *run, struct report *report)
{
	const struct step_times *times = report_step_times(report);
	size_t timeless = 0;

	for (uint32_t i = 0; i < times->job_count; i++) {
		const struct job_step *job = &times->job[i];
		struct compared_step *step;

		if (!job->is_program)
			continue;
		step = ADD(run, steps);
		timeless += job->length_ns <= 0;
		*step = (struct compared_step){.number = job->number,
		                               .dur_ns = job->length_ns,
		                               .host_ns = job->dur_ns,
		                               .has_phases = job->has_phases,
		                               .has_tokens = job->has_tokens,
		                               .tokens = job->tokens,
		                               .has_samples = job->has_samples,
		                               .samples = job->samples,
		                               .has_cpu = job->with_cpu == job->processes,
		                               .cpu_ns = job->cpu_ns,
		                               .running_ns = job->running_ns};
		memcpy(step->phase_ns, job->phase_ns, sizeof(step->phase_ns));
	}
	if (!run->steps_count)
		run->no_steps = arena_dup(&run->arena, step_times_empty_reason(times));
	if (2 * timeless > run->steps_count) { /* their median would be 0, and nothing is a share of 0 */
		run->no_steps = arena_printf(&run->arena, "%zu of %zu steps take no time", timeless, run->steps_count);
		run->steps_count = 0;
	}
}

/* Returns true for a memory snapshot. The steps that mark its events have no measured times. */
static bool is_snapshot(const struct report *report)
{
	return report->format && !strcmp(report->format, "cuda memory snapshot");
}

/* Returns true if step numbers can select a range of the steps in tables. */
static bool compared_run_has_rising_numbers(const struct compared_run *run)
{
	for (size_t i = 1; i < run->steps_count; i++)
		if (run->steps[i].number <= run->steps[i - 1].number)
			return false;
	return run->steps_count > 0;
}

/* Leaves out the warm-up. */
static void cut_warm_up(struct compared_run *run)
{
	double *durations = memory_resize(NULL, run->steps_count + 1, sizeof(*durations));

	for (size_t i = 0; i < run->steps_count; i++)
		durations[i] = run->steps[i].dur_ns;
	run->warm_up = compared_run_has_rising_numbers(run) ? (int64_t)steady_warm_up(durations, run->steps_count) : 0;
	free(durations);
	if (!run->warm_up)
		return;
	run->warm_up_reason = "slower than the steps of the second half";
	run->steps_count -= (size_t)run->warm_up;
	memmove(run->steps, run->steps + run->warm_up, run->steps_count * sizeof(*run->steps));
}

/* ---- single numbers ---- */

enum compared_run_fold {
	FOLD_FIRST,
	FOLD_LARGEST,
	FOLD_SUM,
	FOLD_MEAN
};

enum value_scope {
	STEADY, /* without the warm-up */
	WHOLE,
	WHOLE_WITH_STEPS, /* of runs with steps */
	WHOLE_WITHOUT_STEPS
};

/* A number of a table; with `where`, only of rows whose column `where` has this text. */
static const struct value_source {
	const char *name, *table, *column;
	enum compared_run_fold fold;
	const char *where, *text;
	enum value_scope scope;
} value_sources[] = {
	{"step_time_mean", "step_time", "mean_ns", FOLD_FIRST, NULL, NULL, STEADY},
	{"step_time_p95", "step_time", "p95_ns", FOLD_FIRST, NULL, NULL, STEADY},
	{"tokens_per_s", "step_time", "tokens_per_s", FOLD_FIRST, NULL, NULL, STEADY},
	{"samples_per_s", "step_time", "samples_per_s", FOLD_FIRST, NULL, NULL, STEADY},
	/* from the first to the last work there is one gap less than steps, so few steps would look busier than many */
	{"device_busy", "device_busy", "step_kernel_ratio", FOLD_MEAN, NULL, NULL, WHOLE_WITH_STEPS},
	{"device_busy", "device_busy", "busy_ratio", FOLD_MEAN, NULL, NULL, WHOLE_WITHOUT_STEPS},
	{"peak_memory", "processes", "rss_peak_bytes", FOLD_LARGEST, "role", CELL_ROLE_TRAINER, WHOLE},
	{"final_loss", "metrics", "last", FOLD_FIRST, "name", "loss", WHOLE},
	{"not_finite", "metrics", "nan_count", FOLD_SUM, NULL, NULL, WHOLE},
};

static bool compared_run_is_wanted(const struct table *table, int row, const struct value_source *source)
{
	const struct table_cell *cell;
	int column;

	if (!source->where)
		return true;
	column = table_find_column(table, source->where);
	cell = column >= 0 ? table_get(table, row, column) : NULL;
	return cell && cell->has_value && !strcmp(cell->text, source->text);
}

static void compared_run_read_value(struct compared_run *run, struct report *report, const struct value_source *source)
{
	const struct table *table = report_table(report, source->table);
	int column = table_find_column(table, source->column), count = 0;
	const char *reason = table->empty;
	double result = 0;

	for (int row = 0; row < table->row_count && column >= 0; row++) {
		double value;

		if (!compared_run_is_wanted(table, row, source))
			continue;
		if (!table_number(table, row, column, &value)) {
			reason = table_get(table, row, column)->reason;
			continue;
		}
		if (!count || (source->fold == FOLD_LARGEST && value > result))
			result = value;
		else if (source->fold == FOLD_SUM || source->fold == FOLD_MEAN)
			result += value;
		count++;
	}
	if (!count)
		compared_run_add_missing(run, source->name, reason ? reason : "not recorded");
	else
		compared_run_add_value(run, source->name, source->fold == FOLD_MEAN ? result / count : result);
}

/* Reads the largest peak of one process on one device. */
static void read_device_memory(struct compared_run *run, struct report *report)
{
	const struct table *table = report_table(report, "memory");
	int device = table_find_column(table, "device"), category = table_find_column(table, "category");
	int peak = table_find_column(table, "peak_bytes");
	const char *reason = NULL; /* set if a peak is unknown: it may be the largest */
	double largest = 0, value;

	for (int row = 0; row < table->row_count; row++) {
		const struct table_cell *where = table_get(table, row, device), *what = table_get(table, row, category);

		if (!where->has_value || !what->has_value || !strncmp(where->text, "host", 4) ||
		    strcmp(what->text, CELL_ALL) != 0)
			continue;
		if (!table_number(table, row, peak, &value))
			reason = table_get(table, row, peak)->reason;
		else if (value > largest)
			largest = value;
	}
	if (reason)
		compared_run_add_missing(run, "device_memory",
		                         arena_printf(&run->arena, COMPARED_IN_PART "%s", reason));
	else if (largest > 0)
		compared_run_add_value(run, "device_memory", largest);
	else
		compared_run_add_missing(run, "device_memory",
		                         table->row_count ? "no memory of a device was recorded" : table->empty);
}

struct compared_run_gaps { /* time between steps, for each process that is a rank */
	double sum_ns, squares, count;
	bool has_last, is_rank;
	uint32_t process; /* of the previous step */
	int64_t last_ns, last_number;
};

static bool is_rank(const struct step_times *times, uint32_t process)
{
	for (uint32_t i = 0; i < times->span_count; i++)
		if (times->spans[i].process == process)
			return times->spans[i].is_rank;
	return false;
}

/* Adds the time since the previous step, unless a profiler left out steps in between. */
static void add_gap(struct compared_run_gaps *gaps, const struct model_step *step, bool is_numbered)
{
	if (gaps->has_last && gaps->is_rank && !(is_numbered && step->number - 1 > gaps->last_number)) {
		double gap_ns = fmax(0, (double)(step->start_ns - gaps->last_ns));

		gaps->sum_ns += gap_ns;
		gaps->squares += gap_ns * gap_ns;
		gaps->count++;
	}
	gaps->last_ns = gaps->has_last && gaps->last_ns > step->end_ns ? gaps->last_ns : step->end_ns;
	gaps->last_number = step->number;
	gaps->has_last = true;
}

/* The steps of a process are adjacent in the model. */
static struct compared_run_gaps gaps_of(const struct model *model, const struct step_times *times)
{
	struct compared_run_gaps gaps = {0};

	for (uint32_t i = 0; i < times->count; i++) {
		const struct model_step *step = &model->steps[i];

		if (!times->steps[i].is_selected)
			continue;
		if (!gaps.has_last || gaps.process != step->process) {
			gaps.has_last = false;
			gaps.process = step->process;
			gaps.is_rank = is_rank(times, step->process);
		}
		add_gap(&gaps, step, model->processes[step->process].role == STEPSCOPE_ROLE_IMPORTED);
	}
	return gaps;
}

/* Reads the mean time between two steps, and its standard error. */
static void read_between(struct compared_run *run, const struct report *report, const struct step_times *times)
{
	const struct compared_run_gaps gaps = gaps_of(report->model, times);

	if (compared_run_fact(run, COMPARED_DAMAGE)) {
		compared_run_add_missing(run, "between_steps",
		                         "the input is damaged: missing steps would count as time between steps");
	} else if (gaps.count > 0) {
		double mean = gaps.sum_ns / gaps.count;

		compared_run_add_value(run, "between_steps", mean);
		compared_run_add_value(run, "between_steps_error",
		                       sqrt(fmax(0, gaps.squares / gaps.count - mean * mean) / gaps.count));
	} else {
		compared_run_add_missing(run, "between_steps", "fewer than two steps");
	}
}

/* Contention is sampled by the second, not by the step. It is read for the whole run even if steps are selected. */
static void read_contention(struct compared_run *run, struct report *report)
{
	static const struct value_source source = {
		"cpu_contention", "counters", "mean", FOLD_FIRST, "name", "host.pressure.cpu.some_ratio", WHOLE};
	struct analysis_options options = report->context.options;
	struct report whole;

	if (!options.filter.has_steps) {
		compared_run_read_value(run, report, &source);
		return;
	}
	options.filter.has_steps = false;
	report_init(&whole, report->model, &options, report->path);
	compared_run_read_value(run, &whole, &source);
	report_release(&whole);
}

static bool applies(const struct compared_run *run, enum value_scope scope, bool is_whole)
{
	if (scope == STEADY || scope == WHOLE)
		return (scope == WHOLE) == is_whole;
	return is_whole && (scope == WHOLE_WITHOUT_STEPS) == (run->no_steps != NULL);
}

static void compared_run_read_values(struct compared_run *run, struct report *report, bool is_whole)
{
	for (size_t i = 0; i < sizeof(value_sources) / sizeof(value_sources[0]); i++)
		if (applies(run, value_sources[i].scope, is_whole))
			compared_run_read_value(run, report, &value_sources[i]);
}

static void read_steady(struct compared_run *run, struct report *report)
{
	compared_run_read_values(run, report, false);
	read_between(run, report, report_step_times(report));
	compared_read_parts(run, report);
	compared_read_ranks(run, report);
}

/* ---- public ---- */

void compared_run_init(struct compared_run *run, struct report *report)
{
	struct analysis_options options = report->context.options;
	struct report *steady = report, cut;

	memset(run, 0, sizeof(*run));
	arena_init(&run->arena, 0);
	run->name = arena_dup(&run->arena, report->name);
	run->path = arena_dup(&run->arena, report->path);
	read_created(run, report);
	if (is_snapshot(report))
		run->no_steps = "a memory snapshot has no steps";
	else
		read_steps(run, report);
	cut_warm_up(run);
	compared_read_facts(run, report);
	compared_read_operators(run, report);
	compared_read_functions(run, report);
	compared_run_read_values(run, report, true);
	read_contention(run, report);
	read_device_memory(run, report);
	compared_read_memory(run, report);
	compared_read_telemetry(run, report);
	/* also without a warm-up: kernels and calls outside of steps do not belong to a mean step */
	if (compared_run_has_rising_numbers(run)) {
		options.filter.has_steps = true;
		options.filter.first_step = run->steps[0].number;
		options.filter.last_step = run->steps[run->steps_count - 1].number;
		report_init(&cut, report->model, &options, report->path);
		steady = &cut;
	}
	if (!is_snapshot(report))
		read_steady(run, steady);
	if (steady != report)
		report_release(steady);
	compared_read_replay(run, report);
}

const char *compared_run_trouble(const struct compared_run *run, struct arena *arena)
{
	const char *end = compared_run_fact(run, COMPARED_END), *damage = compared_run_fact(run, COMPARED_DAMAGE);

	if (!end)
		return damage;
	return arena_printf(arena, "the run did not complete: %s%s%s", end, damage ? "; " : "", damage ? damage : "");
}

void compared_run_release(struct compared_run *run)
{
	free(run->steps);
	free(run->facts);
	free(run->values);
	free(run->parts);
	free(run->functions);
	free(run->telemetry);
	arena_release(&run->arena);
	memset(run, 0, sizeof(*run));
}
