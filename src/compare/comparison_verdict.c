/* SPDX-License-Identifier: Apache-2.0
 *
 * comparison_verdict.c: the table `verdict` of a comparison: one row that says in words what the other tables say in numbers.
 */
#include "compare/comparison_build.h"

#include "base/demangle.h"
#include "base/units.h"
#include "base/utf8.h"
#include "compare/canary_metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LEAST_SHARE 0.2 /* of what goes the way of the step, to be named as its cause */
#define MOST_SHARE 0.5  /* of it: else there are others */
#define ALIKE 0.5       /* of the largest of a level: as much to blame */
#define ALIKE_NAMED 3
#define LEAST_CHANGE 0.01 /* of the share of a function, to be named */
#define MORE_CALLS 1.1
#define MANY_RUNS 200
#define NAME_BYTES 200 /* in a sentence */
#define MAXIMUM_NAME ((size_t)1 << 20)

static const struct table_column columns[COMPARISON_COLUMNS] = {
	[COMPARISON_RESULT] =
		{.name = "result",
                 .type = TABLE_TEXT,
                 .definition = "regression, improvement, no difference, inconclusive, not comparable or not "
                               "measured: of the first metric, or of a mean that is a regression when that is none"},
	[COMPARISON_SENTENCE] = {.name = "sentence", .type = TABLE_TEXT, .definition = "the answer in words"},
	[COMPARISON_METRIC] = {.name = "metric", .type = TABLE_TEXT, .definition = "what the verdict is about"},
	[COMPARISON_RATIO] = {.name = "change_ratio",
                              .title = "change",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_RATIO,
                              .role = ROLE_SHARE,
                              .denominator = "the base",
                              .definition = "its change"},
	[COMPARISON_LOW] = {.name = "ci95_low_ratio",
                            .title = "low",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_RATIO,
                            .role = ROLE_SHARE,
                            .denominator = "the base",
                            .definition = "lower end of the 95 % interval of the change"},
	[COMPARISON_HIGH] = {.name = "ci95_high_ratio",
                             .title = "high",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_RATIO,
                             .role = ROLE_SHARE,
                             .denominator = "the base",
                             .definition = "upper end of the 95 % interval of the change"},
	[COMPARISON_IS_COMPARABLE] = {.name = "is_comparable",
                                      .title = "comparable",
                                      .type = TABLE_BOOL,
                                      .definition = "hardware, software and the work per step are the same, as far as "
                                                    "both sides noted them"},
	[COMPARISON_EXPLANATION] = {.name = "explanation",
                                    .type = TABLE_TEXT,
                                    .definition = "what of the facts that differ explains the change"},
	[COMPARISON_CAUSE] = {.name = "cause",
                              .type = TABLE_TEXT,
                              .definition = "where most of the difference comes from"},
	[COMPARISON_NEEDED] = {.name = "needed", .type = TABLE_TEXT, .definition = "what would settle it"},
	[COMPARISON_DAMAGE] = {.name = "damage",
                               .type = TABLE_TEXT,
                               .definition = "what is missing from the inputs: it may look like a difference"},
	[COMPARISON_WORK] = {.name = "work",
                             .type = TABLE_TEXT,
                             .definition = "why it is not known whether a step has as much to do on both sides"},
	[COMPARISON_UNCHECKED] = {.name = "unchecked",
                                  .type = TABLE_TEXT,
                                  .definition = "what of work, hardware, software and the meaning of a step could not "
                                                "be compared, since only one side tells of it"},
	[COMPARISON_NOISE] = {.name = "noise",
                              .type = TABLE_TEXT,
                              .definition = "how much runs differ from each other, and how that is known"},
	[COMPARISON_METHOD] = {.name = "method", .type = TABLE_TEXT, .definition = "how the interval was computed"},
	[COMPARISON_BASE_RUNS] = {.name = "base_runs",
                                  .type = TABLE_INT,
                                  .unit = UNIT_COUNT,
                                  .definition = "runs of the base"},
	[COMPARISON_NEW_RUNS] = {.name = "new_runs",
                                 .type = TABLE_INT,
                                 .unit = UNIT_COUNT,
                                 .definition = "runs of the new side"},
	[COMPARISON_SMALLEST] = {.name = "smallest_ratio",
                                 .title = "smallest",
                                 .type = TABLE_DOUBLE,
                                 .unit = UNIT_RATIO,
                                 .role = ROLE_SHARE,
                                 .denominator = "the base",
                                 .definition = "changes below it are none"},
	[COMPARISON_TOLERANCE] =
		{.name = "tolerance_ratio",
                 .title = "tolerance",
                 .type = TABLE_DOUBLE,
                 .unit = UNIT_RATIO,
                 .role = ROLE_SHARE,
                 .denominator = "the base",
                 .definition = "changes of this size must be ruled out to say that there is no difference"},
};

/* ---- the answer ---- */

static const char *subject(const struct compared_sides *sides)
{
	if (sides->is_fastest)
		return "one of the fastest steps";
	switch (sides->amount) {
	case PER_TOKEN:
		return "a token";
	case PER_SAMPLE:
		return "a sample";
	default:
		return "a step";
	}
}

/* "-0.8 % to +1.9 %" */
static const char *range(const struct compared_sides *sides, struct arena *arena)
{
	return arena_printf(arena, "%s to %s", percent_text(arena, expm1(sides->decided.low)),
	                    percent_text(arena, expm1(sides->decided.high)));
}

/* The same of the interval that shows that there is no difference, and what it shows. */
static const char *same_range(const struct compared_sides *sides, struct arena *arena)
{
	return arena_printf(arena, "%s to %s (90 %%), a change of %.3g %% is ruled out",
	                    percent_text(arena, expm1(sides->first.same_low)),
	                    percent_text(arena, expm1(sides->first.same_high)), 100 * sides->options->tolerance);
}

static const char *times(const struct table *metrics, int row, struct arena *arena)
{
	const char *unit = table_text(metrics, row, METRIC_UNIT);
	char *(*const show)(char *, double) = !strcmp(unit, "bytes") ? units_bytes
	                                      : !strcmp(unit, "ns")  ? units_time
	                                                             : units_count;
	char base[UNITS_BYTES], new[UNITS_BYTES];

	show(base, table_get(metrics, row, METRIC_BASE)->d);
	show(new, table_get(metrics, row, METRIC_NEW)->d);
	return arena_printf(arena, "%s instead of %s", new, base);
}

/* The interval that told the result of a metric, and what it covers. */
static const char *metric_range(const struct comparison *comparison, int row, struct arena *arena)
{
	const struct table *metrics = &comparison->metrics;
	bool is_same = comparison->metric_results[row].is_told_same;
	int low = is_same ? METRIC_SAME_LOW : METRIC_LOW, high = is_same ? METRIC_SAME_HIGH : METRIC_HIGH;

	return arena_printf(arena, "%s to %s (%d %%)", percent_text(arena, table_get(metrics, row, low)->d),
	                    percent_text(arena, table_get(metrics, row, high)->d), is_same ? 90 : 95);
}

/* "; ...": what can be told although the first metric cannot. */
static const char *others_of(const struct comparison *comparison, const struct compared_sides *sides,
                             struct arena *arena)
{
	static const char *const others[][2] = {
		{"step_time_fastest", "of the fastest steps, which other work on the machine disturbs least, it is"},
		{"step_cpu_time", "the CPU time of a step, which has no waits in it, changed by"}};
	const char *list = "";

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && sides->amount == PER_STEP; i++) {
		int row = comparison_metric(comparison, others[i][0]);

		if (row > 0 && compare_result_is_settled(comparison->metric_results[row].result))
			list = arena_printf(arena, "%s; %s %s", list, others[i][1],
			                    metric_range(comparison, row, arena));
	}
	return list;
}

/* "; but ...": what is slower although the answer is another one. */
static const char *slower_of(const struct comparison *comparison, const struct compared_sides *sides,
                             struct arena *arena)
{
	static const char *const names[] = {"step_time_mean", "step_time_p95", "step_period"};
	const struct table *metrics = &comparison->metrics;
	const char *list = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !sides->is_fastest; i++) {
		int row = comparison_metric(comparison, names[i]);

		if (sides->amount == PER_STEP && row > 0 && comparison->metric_results[row].result == RESULT_REGRESSION)
			list = arena_printf(arena, "%s%s %s changed by %s", list, *list ? "," : "; but",
			                    table_text(metrics, row, METRIC_TITLE),
			                    metric_range(comparison, row, arena));
	}
	return list;
}

/* Where a mean decides: what the first metric says. */
static const char *despite(const struct comparison *comparison, const struct compared_sides *sides, struct arena *arena)
{
	enum compare_result result = comparison->metric_results[0].result;
	const char *one = sides->is_evened[sides->amount] ? "a usual one"
	                  : sides->amount == PER_STEP     ? "one in the middle"
	                                                  : "one in the middle, for its amount of work,";

	if (result == RESULT_INCONCLUSIVE)
		return arena_printf(arena, "of %s it cannot be told", one);
	return arena_printf(arena, "though %s takes %s", one, result == RESULT_IMPROVEMENT ? "less time" : "as long");
}

static const char *mean_sentence(const struct comparison *comparison, const struct compared_sides *sides,
                                 struct arena *arena)
{
	const struct table *metrics = &comparison->metrics;
	const char *name = table_text(metrics, sides->deciding, METRIC_NAME);
	const char *change = percent_text(arena, fabs(expm1(sides->decided.change)));

	change += *change == '+';
	if (!strcmp(name, "step_time_mean"))
		return arena_printf(arena, "steps take %s longer on average, %s (95 %%: %s), %s", change,
		                    times(metrics, sides->deciding, arena), range(sides, arena),
		                    despite(comparison, sides, arena));
	if (!strcmp(name, "step_period"))
		return arena_printf(arena, "from one step to the next it takes %s longer, %s (95 %%: %s), %s", change,
		                    times(metrics, sides->deciding, arena), range(sides, arena),
		                    despite(comparison, sides, arena));
	return arena_printf(arena, "%s per second are %s fewer, %s (95 %%: %s), %s",
	                    sides->amount == PER_TOKEN ? "tokens" : "samples", change,
	                    times(metrics, sides->deciding, arena), range(sides, arena),
	                    despite(comparison, sides, arena));
}

/* Of snapshots. */
static const char *memory_sentence(const struct comparison *comparison, const struct compared_sides *sides,
                                   struct arena *arena)
{
	const struct table *metrics = &comparison->metrics;
	enum compare_result result = comparison->metric_results[0].result;
	const char *peaks = times(metrics, 0, arena);
	double ratio = 0;

	table_number(metrics, 0, METRIC_RATIO, &ratio);
	if (!sides->has_first)
		return arena_printf(arena, "the peak memory of a device is %s (%s); %s", peaks,
		                    percent_text(arena, ratio), table_text(metrics, 0, METRIC_REASON));
	if (result == RESULT_INCONCLUSIVE)
		return arena_printf(arena,
		                    "cannot tell: the peak memory of a device is %s, but anything from %s is possible",
		                    peaks, range(sides, arena));
	if (comparison->metric_results[0].is_told_same)
		return arena_printf(arena, "the peak memory of a device is the same: %s", same_range(sides, arena));
	return arena_printf(arena, "the peak memory of a device is %s, %s (95 %%: %s)%s", peaks,
	                    percent_text(arena, ratio), range(sides, arena),
	                    result != RESULT_SAME ? "" : ", too little to matter");
}

/* What is left to be compared. */
static const char *sentence_without_steps(const struct comparison *comparison, struct arena *arena)
{
	const char *reason = table_text(&comparison->metrics, 0, METRIC_REASON);

	if (comparison->is_whole && comparison->contributions.row_count)
		return arena_printf(
			arena, "which side is faster cannot be told: %s; differences are of whole recordings", reason);
	if (comparison->functions.row_count || comparison->memory.row_count || comparison->telemetry.row_count)
		return arena_printf(arena, "which side is faster cannot be told: %s", reason);
	return arena_printf(arena, "cannot be compared: %s", reason);
}

static const char *sentence_of(const struct comparison *comparison, const struct compared_sides *sides,
                               struct arena *arena)
{
	const struct table *metrics = &comparison->metrics;
	enum compare_result result = comparison->metric_results[0].result;
	double ratio = expm1(sides->first.change);
	const char *change = percent_text(arena, fabs(ratio));

	change += *change == '+';
	if (sides->is_memory)
		return memory_sentence(comparison, sides, arena);
	if (!sides->has_first)
		return sentence_without_steps(comparison, arena);
	if (sides->deciding)
		return mean_sentence(comparison, sides, arena);
	if (result == RESULT_NOT_COMPARABLE && sides->unlike)
		return arena_dup(arena, sides->unlike);
	if (result == RESULT_NOT_COMPARABLE)
		return arena_printf(arena,
		                    "the work per step changed: %s; %s takes %s (%s), but it is not the same step",
		                    sides->work_changes ? sides->work_changes : "", subject(sides),
		                    times(metrics, 0, arena), percent_text(arena, ratio));
	if (result == RESULT_INCONCLUSIVE && sides->first.is_single)
		return arena_printf(
			arena,
			"cannot tell: %s takes %s (%s), but of a run with one step it is not known how much "
			"its steps differ",
			subject(sides), times(metrics, 0, arena), percent_text(arena, ratio));
	if (result == RESULT_INCONCLUSIVE)
		return arena_printf(arena, "cannot tell: %s takes %s, but anything from %s is possible%s%s",
		                    subject(sides), times(metrics, 0, arena), range(sides, arena),
		                    others_of(comparison, sides, arena), slower_of(comparison, sides, arena));
	if (comparison->metric_results[0].is_told_same)
		return arena_printf(arena, "%s takes the same time: %s%s", subject(sides), same_range(sides, arena),
		                    slower_of(comparison, sides, arena));
	return arena_printf(arena, "%s takes %s %s, %s (95 %%: %s)%s%s", subject(sides), change,
	                    ratio > 0 ? "longer" : "less time", times(metrics, 0, arena), range(sides, arena),
	                    result == RESULT_SAME ? ", too little to matter" : "",
	                    result == RESULT_REGRESSION ? "" : slower_of(comparison, sides, arena));
}

/* ---- why ---- */

static const char *explanation_of(const struct comparison *comparison, const struct compared_sides *sides,
                                  struct arena *arena)
{
	const struct table *differences = &comparison->differences;
	const char *list = NULL;

	if (sides->work_changes)
		return arena_printf(arena, "the work per step changed: %s", sides->work_changes);
	for (int row = 0; row < differences->row_count; row++) {
		if (!table_get(differences, row, DIFFERENCE_MATTERS)->b)
			continue;
		list = arena_printf(arena, "%s%s%s %.60s -> %.60s", list ? list : "", list ? ", " : "",
		                    table_text(differences, row, DIFFERENCE_FACT),
		                    table_text(differences, row, DIFFERENCE_BASE),
		                    table_text(differences, row, DIFFERENCE_NEW));
	}
	return list ? arena_printf(arena, "not the same: %s", list) : NULL;
}

/* As people write it, in a sentence that has others, too. */
static const char *verdict_name_of(const struct table *table, int row, int column, struct arena *arena)
{
	struct demangler demangler = DEMANGLER_NONE;
	struct buffer text;
	const char *name;

	buffer_init(&text, MAXIMUM_NAME);
	demangler_words(&demangler, &text, table_text(table, row, column));
	name = arena_dup_n(arena, text.data, utf8_cut(text.data, text.length, NAME_BYTES));
	buffer_release(&text);
	demangler_release(&demangler);
	return name;
}

static const char *describe_row(const struct table *contributions, int row, struct arena *arena)
{
	const struct table_cell *base = table_get(contributions, row, CONTRIBUTION_BASE_CALLS);
	const struct table_cell *other = table_get(contributions, row, CONTRIBUTION_NEW_CALLS);
	double delta = table_get(contributions, row, CONTRIBUTION_DELTA)->d;
	char text[UNITS_BYTES];
	const char *calls = "";

	units_time(text, fabs(delta));
	if (base->has_value && base->d > 0 && other->d > 0 &&
	    (other->d > MORE_CALLS * base->d || other->d * MORE_CALLS < base->d))
		calls = arena_printf(arena, " (%.3g times the calls)", other->d / base->d);
	return arena_printf(arena, "%s %c%s%s", verdict_name_of(contributions, row, CONTRIBUTION_NAME, arena),
	                    delta < 0 ? '-' : '+', text, calls);
}

/* The rows of a level that are most to blame, "aten::mm +338.8 us": all that are about as large as the largest of those that go the way of the
 * step, measured by these: where others go against it, the sum says little. NULL: even together they are a small part, or less than `least`. */
static const char *level_cause(const struct table *contributions, const char *level, bool is_slower, double least,
                               struct arena *arena)
{
	double all = 0, alike = 0, largest = 0;
	const char *list = NULL;
	int count = 0;

	for (int row = 0; row < contributions->row_count; row++) { /* of a level the largest first */
		double delta = table_get(contributions, row, CONTRIBUTION_DELTA)->d;
		double part = is_slower ? delta : -delta;

		if (strcmp(table_text(contributions, row, CONTRIBUTION_LEVEL), level) != 0 || part <= 0)
			continue;
		all += part;
		if (!strcmp(table_text(contributions, row, CONTRIBUTION_NAME), "other"))
			continue;
		largest = largest > 0 ? largest : part;
		if (part < ALIKE * largest)
			continue;
		alike += part;
		if (count++ < ALIKE_NAMED)
			list = arena_printf(arena, "%s%s%s", list ? list : "", list ? ", " : "",
			                    describe_row(contributions, row, arena));
	}
	if (!list || alike <= LEAST_SHARE * all || alike < least)
		return NULL;
	if (count > ALIKE_NAMED)
		list = arena_printf(arena, "%s and %d more like these", list, count - ALIKE_NAMED);
	return alike < MOST_SHARE * all ? arena_printf(arena, "%s, among others", list) : list;
}

static const char *share_text(const struct table *table, int row, int column, struct arena *arena)
{
	double share;

	return table_number(table, row, column, &share) ? arena_printf(arena, "%.1f %%", 100 * share) : "(small)";
}

/* The function whose share of the samples changed most, among those of which that is certain, where it is known of any. */
static const char *function_cause(const struct table *functions, struct arena *arena)
{
	for (int row = 0; row < functions->row_count; row++) {
		const struct table_cell *certain = table_get(functions, row, FUNCTIONS_IS_CERTAIN);

		if (fabs(table_get(functions, row, FUNCTIONS_SELF_CHANGE)->d) < LEAST_CHANGE)
			return NULL;
		if (!certain->has_value || certain->b)
			return arena_printf(arena, "function: %s %s -> %s of the samples (self)",
			                    verdict_name_of(functions, row, FUNCTIONS_NAME, arena),
			                    share_text(functions, row, FUNCTIONS_BASE_SELF_RATIO, arena),
			                    share_text(functions, row, FUNCTIONS_NEW_SELF_RATIO, arena));
	}
	return NULL;
}

/* The category and the allocations whose memory changed most, of the peak. */
static const char *memory_cause(const struct table *memory, struct arena *arena)
{
	static const char *const levels[] = {COMPARED_MEMORY "category", COMPARED_MEMORY "operation"};
	const char *list = NULL;
	char bytes[UNITS_BYTES];

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		for (int row = 0; row < memory->row_count; row++) {
			double delta = table_get(memory, row, CONTRIBUTION_DELTA)->d;

			if (strcmp(table_text(memory, row, CONTRIBUTION_LEVEL), levels[i]) != 0)
				continue;
			if (fabs(delta) > 0)
				list = arena_printf(arena, "%s%s%s: %s %c%s", list ? list : "", list ? "; " : "",
				                    levels[i], verdict_name_of(memory, row, CONTRIBUTION_NAME, arena),
				                    delta < 0 ? '-' : '+', units_bytes(bytes, fabs(delta)));
			break; /* the largest is the first */
		}
	}
	return list;
}

/* The quantity that changed most, of those of which that is certain, as a ratio. */
static const char *telemetry_cause(const struct comparison *comparison, struct arena *arena)
{
	const struct table *telemetry = &comparison->telemetry;
	const char *cause = NULL;
	double largest = 0;

	for (int row = 0; row < telemetry->row_count; row++) {
		double base = table_get(telemetry, row, TELEMETRY_CHANGE_BASE)->d;
		double new = table_get(telemetry, row, TELEMETRY_CHANGE_NEW)->d, change;
		const char *unit = table_text(telemetry, row, TELEMETRY_CHANGE_UNIT);

		if (comparison->telemetry_results[row] != RESULT_CHANGED)
			continue;
		change = fabs(new - base) / fmax(fabs(base), fabs(new));
		if (change <= largest)
			continue;
		largest = change;
		cause = arena_printf(arena, "%.80s %.80s %.4g -> %.4g%s%s",
		                     table_text(telemetry, row, TELEMETRY_CHANGE_OF),
		                     table_text(telemetry, row, TELEMETRY_CHANGE_QUANTITY), base, new, unit ? " " : "",
		                     unit ? unit : "");
	}
	return cause;
}

/* Of what has no steps. */
static const char *other_cause(const struct comparison *comparison, struct arena *arena)
{
	const char *cause = function_cause(&comparison->functions, arena);

	cause = cause ? cause : memory_cause(&comparison->memory, arena);
	return cause ? cause : telemetry_cause(comparison, arena);
}

/* What is between steps is in none of them. */
static const char *cause_between(const struct comparison *comparison, struct arena *arena)
{
	int period = comparison_metric(comparison, "step_period"),
	    mean = comparison_metric(comparison, "step_time_mean");
	char text[UNITS_BYTES];

	units_time(text, fmax(0, table_get(&comparison->metrics, period, METRIC_DELTA)->d -
	                                 table_get(&comparison->metrics, mean, METRIC_DELTA)->d));
	return arena_printf(arena, "between steps +%s", text);
}

static const char *cause_of(const struct comparison *comparison, const struct compared_sides *sides,
                            struct arena *arena)
{
	static const char *const levels[][2] = {
		{"phase", ""},          {COMPARED_LATE_RANK, "late rank: "},
		{"device", "device: "}, {"operator", "operator: "},
		{"kernel", "kernel: "}, {CANARY_CUDA_OPERATORS, "CUDA operators, as profiled: "},
	};
	enum compare_result result = comparison->decided.result;
	const char *list = NULL;
	bool is_slower = result == RESULT_REGRESSION;
	double change;

	if (sides->is_memory || !sides->has_first)
		return other_cause(comparison, arena);
	if (result != RESULT_REGRESSION && result != RESULT_IMPROVEMENT)
		return NULL;
	change = fabs(table_get(&comparison->metrics, sides->deciding, METRIC_DELTA)->d);
	if (sides->amount != PER_STEP) /* contributions are of steps, which have different amounts of work */
		return NULL;
	if (!strcmp(table_text(&comparison->metrics, sides->deciding, METRIC_NAME), "step_period"))
		return cause_between(comparison, arena);
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		/* waits are a part of the step, and may be a small one */
		bool is_part = !strcmp(levels[i][0], COMPARED_LATE_RANK);
		const char *cause = level_cause(&comparison->contributions, levels[i][0], is_slower,
		                                is_part ? LEAST_SHARE * change : 0, arena);

		if (cause)
			list = arena_printf(arena, "%s%s%s%s", list ? list : "", list ? "; " : "", levels[i][1], cause);
	}
	return list;
}

/* ---- how sure ---- */

#define AMOUNT_NEEDED                                                                                                  \
	"the amount of work per step on both sides: stepscope.step(tokens=...) in Python, stepscope_step_tokens() in C"
#define ALIKE_NEEDED "both sides recorded with --budget none, or both without"

/* What is not known of the cost of recording is in the way, which no number of runs makes less. */
static bool wants_alike(const struct compared_sides *sides)
{
	return sides->doubt > log1p(sides->options->tolerance) / 2;
}

static const char *needed_of(const struct comparison *comparison, const struct compared_sides *sides,
                             struct arena *arena)
{
	const struct table *metrics = &comparison->metrics;
	const struct table_cell *runs = table_get(metrics, 0, METRIC_NEEDED_RUNS);
	const struct table_cell *steps = table_get(metrics, 0, METRIC_NEEDED_STEPS);
	double percent = 100 * sides->options->tolerance;

	if (sides->is_memory && !sides->has_first)
		return "two snapshots of each side or more, of runs of their own: their scatter is the noise";
	if (sides->unlike)
		return ALIKE_NEEDED;
	if (comparison->metric_results[0].result == RESULT_NOT_COMPARABLE)
		return sides->wants_amount ? AMOUNT_NEEDED : NULL;
	if (sides->has_first && sides->first.is_single)
		return "more than one step of each run, or four runs together";
	if (!runs->has_value || sides->deciding)
		return NULL;
	if (wants_alike(sides))
		return ALIKE_NEEDED;
	if (runs->i > MANY_RUNS)
		return "runs in turns (base, new, base, new) on a quieter machine: on this one they differ too much";
	if (steps->has_value)
		return arena_printf(arena,
		                    "runs of about %" PRId64 " steps, or about %" PRId64 " runs a side, would tell a "
		                    "change of %.3g %% from none",
		                    steps->i, runs->i, percent);
	return arena_printf(arena,
	                    "about %" PRId64
	                    " runs a side, made in turns (base, new, base, new), would tell a change of "
	                    "%.3g %% from none",
	                    runs->i, percent);
}

static const char *const side_names[SIDES] = {"base", "new"};

/* "new 'cut': events are missing (16722)": the first of each side's runs that is damaged, and how many more. */
static const char *damage_of(const struct compared_sides *sides, struct arena *arena)
{
	const char *list = NULL;

	for (int side = 0; side < SIDES; side++) {
		int damaged = 0;

		for (size_t i = 0; i < sides->count[side]; i++) {
			const struct compared_run *run = &sides->runs[side][i];
			const char *damage = compared_run_trouble(run, arena);

			if (damage && !damaged++)
				list = arena_printf(arena, "%s%s%s '%.60s': %.200s", list ? list : "", list ? "; " : "",
				                    side_names[side], run->name, damage);
		}
		if (damaged > 1)
			list = arena_printf(arena, "%s, and %d more runs of this side", list, damaged - 1);
	}
	return list;
}

/* "new 'dpo' did not complete": the first run that says so. */
static const char *failure_of(const struct compared_sides *sides, struct arena *arena)
{
	for (int side = SIDES; side-- > 0;) {
		for (size_t i = 0; i < sides->count[side]; i++) {
			const struct compared_run *run = &sides->runs[side][i];
			const char *status = compared_run_fact(run, COMPARED_STATUS);
			const char *end = compared_run_fact(run, COMPARED_END);

			if (end)
				return arena_printf(arena, "%s '%.60s' did not complete: %.200s", side_names[side],
				                    run->name, end);
			if (status && strcmp(status, COMPARED_COMPLETED) != 0)
				return arena_printf(arena, "%s '%.60s' did not complete: its status is '%.40s'",
				                    side_names[side], run->name, status);
		}
	}
	return NULL;
}

/* By what the runs say of themselves, as rlhf-canary's metrics.json does. */
static void find_divergence(struct comparison *comparison, const struct compared_sides *sides, struct arena *arena)
{
	comparison->is_divergence_known = false;
	comparison->diverged = NULL;
	for (size_t i = 0; i < sides->count[SIDE_NEW]; i++) {
		const struct compared_run *run = &sides->runs[SIDE_NEW][i];
		const struct compared_value *said = compared_run_value(run, COMPARED_DIVERGED);

		if (!said || !said->has_value)
			continue;
		comparison->is_divergence_known = true;
		if (said->value > 0 && !comparison->diverged)
			comparison->diverged = arena_dup(arena, run->name);
	}
}

#define WORK_UNKNOWN                                                                                                     \
	"it is not known whether a step has as much to do on both sides: neither sizes of inputs (stepscope run --with " \
	"shapes, record_shapes=True of torch.profiler) nor tokens or samples of a step were recorded"

static const char *assumption_of(const struct estimate *first)
{
	if (first->is_uneven && first->is_contended)
		return ", because the steps of the runs were uneven and other work competed for the CPUs";
	if (first->is_contended)
		return ", because other work competed for the CPUs";
	if (first->is_uneven)
		return ", because the steps of the runs were uneven";
	return first->is_few ? "; and 5 % from step to step, as there are few steps" : "";
}

static const char *scatter_of(const struct compared_sides *sides, struct arena *arena)
{
	const struct estimate *first = &sides->decided;

	switch (first->way) {
	case ESTIMATE_PAIRS:
		return arena_printf(arena, "runs made in turns: their differences scatter by %.2g %%",
		                    100 * sqrt(2) * first->noise);
	case ESTIMATE_REPEATS:
		return arena_printf(arena, "repeated runs: they scatter by %.2g %%", 100 * first->noise);
	default:
		return arena_printf(arena, "%s: %.2g %% from run to run%s",
		                    sides->options->is_noise_kept
		                            ? arena_printf(arena, "that of %zu kept runs", sides->options->best_of)
		                            : "assumed, for want of repeated runs",
		                    100 * first->noise, assumption_of(first));
	}
}

static const char *noise_of(const struct compared_sides *sides, struct arena *arena)
{
	const struct comparison_options *options = sides->options;
	double luck = estimate_luck(options->best_of, options->assumed_noise);
	const char *scatter = sides->has_first ? scatter_of(sides, arena) : NULL;

	if (scatter && sides->price)
		scatter = arena_printf(arena, "%s; %s", scatter, sides->price);
	if (!scatter || luck <= 0 || sides->is_memory)
		return scatter;
	return arena_printf(arena, "%s; up to %.2g %% more may be luck of the base, the fastest of %zu runs", scatter,
	                    100 * luck, options->best_of);
}

static const char *contended_noise(const struct compared_sides *sides, const char *noise, struct arena *arena)
{
	if (!sides->is_fastest || !noise)
		return noise;
	return arena_printf(
		arena,
		"%s; other work competed for the CPUs, so the fastest steps are compared%s, which it disturbs "
		"least: what slows only some steps does not show in them",
		noise, sides->is_running ? ", without their waits for a CPU" : "");
}

/* What is compared of each run. */
static const char *verdict_number_of(const struct compared_sides *sides)
{
	if (sides->is_memory)
		return "peaks";
	if (sides->is_fastest)
		return "fastest steps";
	if (sides->deciding)
		return "means of steps, as their medians do not show it";
	if (sides->is_evened[sides->amount])
		return "steps evened out, as they are of two kinds and the median lies between";
	return "medians of steps";
}

static const char *method_of(const struct compared_sides *sides, struct arena *arena)
{
	const struct estimate *first = &sides->decided;
	const char *how = "error by a stationary bootstrap of stretches of steps, and the assumed noise";

	if (!sides->has_first)
		return NULL;
	if (first->way == ESTIMATE_PAIRS)
		how = first->has_ranks ? "Wilcoxon's signed ranks of the pairs" : "Student's t of the pairs";
	else if (first->way == ESTIMATE_REPEATS)
		how = first->has_ranks ? "Wilcoxon's rank sums of the runs" : "Student's t of the runs";
	return arena_printf(arena, "%s; %s", verdict_number_of(sides), how);
}

static void verdict_set_change(struct table *table, const struct table *metrics, int row)
{
	static const int pairs[][2] = {
		{COMPARISON_RATIO, METRIC_RATIO}, {COMPARISON_LOW, METRIC_LOW}, {COMPARISON_HIGH, METRIC_HIGH}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const struct table_cell *cell = table_get(metrics, row, pairs[i][1]);

		if (cell->has_value)
			table_set_double(table, 0, pairs[i][0], cell->d);
		else
			table_set_missing(table, 0, pairs[i][0], cell->reason);
	}
}

/* Comparability comes first: what an answer takes for granted is said in the answer, since a gate, an annotation or a PR comment may show no more. */
static const char *answer_of(const struct comparison *comparison, const struct compared_sides *sides,
                             struct arena *arena)
{
	static const enum compare_result judged[] = {RESULT_REGRESSION, RESULT_IMPROVEMENT, RESULT_SAME,
	                                             RESULT_INCONCLUSIVE};
	const char *sentence = sentence_of(comparison, sides, arena);

	for (size_t i = 0; sides->unchecked_kinds && i < sizeof(judged) / sizeof(judged[0]); i++)
		if (judged[i] == comparison->decided.result)
			return arena_printf(arena, "%s; unchecked: %s", sentence, sides->unchecked_kinds);
	return sentence;
}

void comparison_add_verdict(struct comparison *comparison, struct compared_sides *sides)
{
	struct table *table = &comparison->verdict;
	struct arena *arena = &table->arena;
	const char *not_measured = "the first metric was not measured";

	table_init(table, "verdict", "Verdict", "whether the new side is slower, and how sure that is");
	table_columns(table, columns, COMPARISON_COLUMNS);
	table_row(table);
	table_set_text(table, 0, COMPARISON_RESULT, compare_result_name(comparison->decided.result));
	table_set_text(table, 0, COMPARISON_SENTENCE, answer_of(comparison, sides, arena));
	table_set_text(table, 0, COMPARISON_METRIC, table_text(&comparison->metrics, sides->deciding, METRIC_NAME));
	verdict_set_change(table, &comparison->metrics, sides->deciding);
	table_set_bool(table, 0, COMPARISON_IS_COMPARABLE, sides->is_comparable);
	table_set_text_or(table, 0, COMPARISON_EXPLANATION, explanation_of(comparison, sides, arena),
	                  "nothing that was noted on both sides does");
	table_set_text_or(table, 0, COMPARISON_CAUSE, cause_of(comparison, sides, arena), "nothing stands out");
	table_set_text_or(table, 0, COMPARISON_NEEDED, needed_of(comparison, sides, arena),
	                  sides->is_same_work ? "it is settled"
	                                      : "more runs do not settle it: the work is not the same");
	table_set_text_or(table, 0, COMPARISON_DAMAGE, damage_of(sides, arena), "the inputs are whole");
	comparison->failure = failure_of(sides, arena);
	find_divergence(comparison, sides, arena);
	table_set_text_or(
		table, 0, COMPARISON_WORK, sides->is_work_unknown ? WORK_UNKNOWN : NULL,
		"something on both sides says how much a step has to do, or there are no operators to say it of");
	table_set_text_or(table, 0, COMPARISON_UNCHECKED, sides->unchecked,
	                  "what one side tells of, the other does, too");
	table_set_text_or(table, 0, COMPARISON_NOISE, contended_noise(sides, noise_of(sides, arena), arena),
	                  not_measured);
	table_set_text_or(table, 0, COMPARISON_METHOD, method_of(sides, arena), not_measured);
	table_set_int(table, 0, COMPARISON_BASE_RUNS, (int64_t)sides->count[SIDE_BASE]);
	table_set_int(table, 0, COMPARISON_NEW_RUNS, (int64_t)sides->count[SIDE_NEW]);
	table_set_double(table, 0, COMPARISON_SMALLEST, sides->options->smallest);
	table_set_double(table, 0, COMPARISON_TOLERANCE, sides->options->tolerance);
}
