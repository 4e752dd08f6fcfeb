/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_sentences.c: see the header. A sentence is a template (base/template.h) in a table that is indexed by the
 * decision; its gaps are filled with texts of the verdict's numbers.
 */
#include "compare/verdict_sentences.h"

#include "base/template.h"
#include "base/units.h"

#include <inttypes.h>
#include <math.h>

/* ---- the words ---- */

static const char *const answers[] = {
	[ANSWER_NOTHING] = "the sides cannot be compared: {reason}",
	[ANSWER_TABLES] = "the faster side is unknown: {reason}",
	[ANSWER_WHOLE] = "the faster side is unknown: {reason}; differences are those of whole recordings",
	[ANSWER_PEAK_WITHOUT] = "the peak memory of a device is {new} instead of {base} ({ratio}); {reason}",
	[ANSWER_PEAK_OPEN] = "the peak memory of a device is {new} instead of {base}, but the change is uncertain: "
			     "the 95 % interval is {range}",
	[ANSWER_PEAK_SAME] = "the peak memory of a device is the same: {same_range} (90 %), a change of {tolerance} % is "
			     "ruled out",
	[ANSWER_PEAK_SMALL] = "the peak memory of a device is {new} instead of {base}, {ratio} (95 %: {range}), too "
			      "little to matter",
	[ANSWER_PEAK_CHANGED] = "the peak memory of a device is {new} instead of {base}, {ratio} (95 %: {range})",
	[ANSWER_MEAN] = "steps take {change} longer on average, {new} instead of {base} (95 %: {range}), {first}",
	[ANSWER_PERIOD] = "the time between step starts is {change} longer, {new} instead of {base} (95 %: {range}), "
			  "{first}",
	[ANSWER_RATE] = "{things} per second are {change} fewer, {new} instead of {base} (95 %: {range}), {first}",
	[ANSWER_UNLIKE] = "{unlike}",
	[ANSWER_OTHER_WORK] = "the work per step changed: {work|}; {subject} takes {new} instead of {base} ({ratio}), "
			      "but these steps are not comparable",
	[ANSWER_ONE_STEP] = "{subject} takes {new} instead of {base} ({ratio}), but the change is uncertain: a run with "
			    "one step does not show how much steps vary",
	[ANSWER_OPEN] = "{subject} takes {new} instead of {base}, but the change is uncertain: the 95 % interval is "
			"{range}[; {others}][; but {worse}]",
	[ANSWER_SAME] = "{subject} takes the same time: {same_range} (90 %), a change of {tolerance} % is ruled out"
			"[; but {worse}]",
	[ANSWER_SMALL] = "{subject} takes {change} {direction}, {new} instead of {base} (95 %: {range}), too little to "
			 "matter[; but {worse}]",
	[ANSWER_CHANGED] = "{subject} takes {change} {direction}, {new} instead of {base} (95 %: {range})"
			   "[; but {worse}]",
};

static const char *const subjects[] = {
	[SUBJECT_STEP] = "a step",
	[SUBJECT_TOKEN] = "a token",
	[SUBJECT_SAMPLE] = "a sample",
	[SUBJECT_FASTEST] = "one of the fastest steps",
};

/* {first} of an answer: the result of the first metric for a typical step. */
static const char first_open[] = "but the result for {one} is inconclusive";
static const char first_shorter[] = "although {one} takes less time";
static const char first_same[] = "although {one} is unchanged";

static const char *const middles[] = {
	[MIDDLE_STEP] = "the median step",
	[MIDDLE_OF_WORK] = "the median step, adjusted for its work,",
	[MIDDLE_EVENED] = "a typical step",
};

/* {others} and {worse} of an answer: lists of these. */
static const char
	other_fastest[] = "the fastest steps, which other work on the machine disturbs least, changed by {range}";
static const char other_cpu_time[] = "the CPU time of a step, which includes no waits, changed by {range}";
static const char worse_metric[] = "{metric} changed by {range}";

static const char *const needs[] = {
	[NEEDED_NOTHING] = "the result is settled",
	[NEEDED_SAME_WORK] = "more runs cannot settle the result: the work differs",
	[NEEDED_SNAPSHOTS] = "two or more snapshots per side, each from a separate run: their scatter is the noise",
	[NEEDED_ALIKE] = "both sides recorded with --budget none, or both without it",
	[NEEDED_AMOUNT] = "the amount of work per step on both sides: stepscope.step(tokens=...) in Python, "
			  "stepscope_step_tokens() in C",
	[NEEDED_MORE_STEPS] = "more than one step in each run, or at least four runs in total",
	[NEEDED_QUIET_MACHINE] = "alternating runs (base, new, base, new) on a quieter machine: on this machine runs "
				 "differ too much",
	[NEEDED_LONGER_RUNS] = "runs of about {steps} steps, or about {runs} runs per side, would distinguish a "
			       "change of {tolerance} % from no change",
	[NEEDED_RUNS] = "about {runs} alternating runs per side (base, new, base, new) would distinguish a "
			"change of {tolerance} % from no change",
};

/* {fastest} and {running} are conditions: an empty text, or NULL. */
static const char noise_template[] =
	"{scatter}[; {price}][; up to {luck} % more may be luck, because the base is the fastest of {best_of} "
	"runs][{fastest}; other work competed for the CPUs, so the fastest steps are compared[{running}, without their "
	"waits for a CPU]: they are disturbed least, but do not show a slowdown of only some steps]";

static const char *const scatters[] = {
	[SCATTER_OF_PAIRS] = "alternating runs: the differences within pairs scatter by {pairs} %",
	[SCATTER_OF_REPEATS] = "repeated runs: they scatter by {runs} %",
	[SCATTER_OF_KEPT] = "scatter of {best_of} kept runs: {runs} % from run to run[{why}]",
	[SCATTER_ASSUMED] = "assumed without repeated runs: {runs} % from run to run[{why}]",
};

static const char why_both[] = ", because the steps of the runs were uneven and other work competed for the CPUs";
static const char why_contended[] = ", because other work competed for the CPUs";
static const char why_uneven[] = ", because the steps of the runs were uneven";
static const char why_few[] = "; and 5 % from step to step, because there are few steps";

static const char *const numbers[] = {
	[NUMBER_MEDIAN] = "medians of step times",
	[NUMBER_EVENED] = "evened-out steps, because steps are of two kinds and the median falls between them",
	[NUMBER_MEAN] = "means of step times, because the medians do not show the change",
	[NUMBER_FASTEST] = "fastest steps",
	[NUMBER_PEAK] = "peaks",
};

static const char *const tests[] = {
	[TEST_PAIRS_STUDENT] = "Student's t of the pairs",
	[TEST_PAIRS_RANKS] = "Wilcoxon's signed ranks of the pairs",
	[TEST_REPEATS_STUDENT] = "Student's t of the runs",
	[TEST_REPEATS_RANKS] = "Wilcoxon's rank sums of the runs",
	[TEST_BOOTSTRAP] = "stationary bootstrap of blocks of steps, plus the assumed noise",
};

/* ---- the answer ---- */

const char *sentences_join(struct arena *arena, const char *list, const char *separator, const char *item)
{
	return list ? arena_printf(arena, "%s%s%s", list, separator, item) : item;
}

static const char *amount_text(enum table_unit unit, double value, struct arena *arena)
{
	char text[UNITS_BYTES];

	if (unit == UNIT_BYTES)
		return arena_dup(arena, units_bytes(text, value));
	return arena_dup(arena, unit == UNIT_NS ? units_time(text, value) : units_count(text, value));
}

/* Returns the interval that shows the result of a metric: "+1.2 % to +3.4 % (95 %)". */
static const char *metric_range(const struct metric_result *metric, struct arena *arena)
{
	if (metric->is_told_same)
		return arena_printf(arena, "%s (90 %%)",
		                    percent_range_text(arena, metric->same_low, metric->same_high));
	return arena_printf(arena, "%s (95 %%)", percent_range_text(arena, metric->low, metric->high));
}

/* Returns the sentences about a list of rows of `metrics`; NULL for an empty list. */
static const char *metrics_text(const struct verdict_words *words, const int *rows, int count, const char *separator,
                                const char *template)
{
	const char *list = NULL;

	for (int i = 0; i < count; i++) {
		const struct metric_result *metric = &words->comparison->metric_results[rows[i]];
		const struct template_text texts[] = {
			{"metric", table_text(&words->comparison->metrics, rows[i], METRIC_TITLE)},
			{"range", metric_range(metric, words->arena)},
		};
		const char *other = metric->metric == COMPARE_STEP_CPU_TIME ? other_cpu_time : other_fastest;

		list = sentences_join(words->arena, list, separator,
		                      WRITE_TEXTS(words->arena, template ? template : other, texts));
	}
	return list;
}

static const char *first_text(const struct verdict *verdict, struct arena *arena)
{
	const struct template_text one = {"one", middles[verdict->middle]};
	const char *template = verdict->first == RESULT_INCONCLUSIVE  ? first_open
	                       : verdict->first == RESULT_IMPROVEMENT ? first_shorter
	                                                              : first_same;

	return template_write(arena, template, &one, 1);
}

const char *verdict_sentence(const struct verdict_words *words)
{
	const struct verdict *verdict = words->verdict;
	enum table_unit unit = words->comparison->metric_results[verdict->row].unit;
	struct arena *arena = words->arena;
	const char *change = percent_text(arena, fabs(verdict->ratio));
	const struct template_text texts[] = {
		{"subject", subjects[verdict->subject]},
		{"things", verdict->subject == SUBJECT_TOKEN ? "tokens" : "samples"},
		{"base", amount_text(unit, verdict->base, arena)},
		{"new", amount_text(unit, verdict->new, arena)},
		{"ratio", percent_text(arena, verdict->ratio)},
		{"change", change + (*change == '+')},
		{"direction", verdict->ratio > 0 ? "longer" : "less time"},
		{"range", percent_range_text(arena, verdict->low, verdict->high)},
		{"same_range", percent_range_text(arena, verdict->same_low, verdict->same_high)},
		{"tolerance", arena_printf(arena, "%.3g", 100 * words->sides->options->tolerance)},
		{"reason", table_text(&words->comparison->metrics, 0, METRIC_REASON)},
		{"unlike", words->sides->prices.is_unlike ? operators_unlike_text(words->sides, arena) : NULL},
		{"work", work_changes_text(words->comparison, arena)},
		{"first", first_text(verdict, arena)},
		{"others", metrics_text(words, verdict->others, verdict->others_count, "; ", NULL)},
		{"worse", metrics_text(words, verdict->worse, verdict->worse_count, ", ", worse_metric)},
	};
	const char *answer = WRITE_TEXTS(arena, answers[verdict->answer], texts);

	/* a gate, an annotation or a comment on a pull request may show only the sentence */
	return verdict->is_unchecked ? arena_printf(arena, "%s; unchecked: %s", answer, unchecked_kinds_text(words))
	                             : answer;
}

/* ---- certainty ---- */

static bool is_needed(const struct verdict *verdict)
{
	return verdict->needed != NEEDED_NOTHING && verdict->needed != NEEDED_SAME_WORK;
}

const char *verdict_needed_text(const struct verdict_words *words)
{
	const struct verdict *verdict = words->verdict;
	const struct template_text texts[] = {
		{"steps", arena_printf(words->arena, "%" PRId64, verdict->needed_steps)},
		{"runs", arena_printf(words->arena, "%" PRId64, verdict->needed_runs)},
		{"tolerance", arena_printf(words->arena, "%.3g", 100 * words->sides->options->tolerance)},
	};

	return is_needed(verdict) ? WRITE_TEXTS(words->arena, needs[verdict->needed], texts) : NULL;
}

const char *verdict_not_needed_text(const struct verdict_words *words)
{
	return is_needed(words->verdict) ? NULL : needs[words->verdict->needed];
}

/* Returns why more noise is assumed; NULL if it is not. */
static const char *assumption_text(const struct verdict_noise *noise)
{
	if (noise->is_contended)
		return noise->is_uneven ? why_both : why_contended;
	if (noise->is_uneven)
		return why_uneven;
	return noise->is_few ? why_few : NULL;
}

static const char *scatter_text(const struct verdict_noise *noise, struct arena *arena)
{
	const struct template_text texts[] = {
		{"pairs", arena_printf(arena, "%.2g", 100 * sqrt(2) * noise->ratio)},
		{"runs", arena_printf(arena, "%.2g", 100 * noise->ratio)},
		{"best_of", arena_printf(arena, "%zu", noise->best_of)},
		{"why", assumption_text(noise)},
	};

	return WRITE_TEXTS(arena, scatters[noise->scatter], texts);
}

static const char *noise_text(const struct verdict_words *words)
{
	const struct verdict_noise *noise = &words->verdict->noise;
	struct arena *arena = words->arena;
	const struct template_text texts[] = {
		{"scatter", scatter_text(noise, arena)},
		{"price", operators_price_text(words->sides, arena)},
		{"luck", noise->luck > 0 ? arena_printf(arena, "%.2g", 100 * noise->luck) : NULL},
		{"best_of", arena_printf(arena, "%zu", noise->best_of)},
		{"fastest", words->verdict->subject == SUBJECT_FASTEST ? "" : NULL},
		{"running", noise->is_running ? "" : NULL},
	};

	return WRITE_TEXTS(arena, noise_template, texts);
}

const char *verdict_noise_text(const struct verdict_words *words)
{
	return words->verdict->noise.scatter == SCATTER_UNKNOWN ? NULL : noise_text(words);
}

const char *verdict_method_text(const struct verdict_words *words)
{
	const struct verdict *verdict = words->verdict;

	if (verdict->test == TEST_UNKNOWN)
		return NULL;
	return arena_printf(words->arena, "%s; %s", numbers[verdict->number], tests[verdict->test]);
}
