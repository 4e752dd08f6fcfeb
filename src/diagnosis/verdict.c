/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict.c: one word for the run, from the shares of a step that findings would save. A run is bound by what takes a fifth
 * of its steps; where two things take about as much it is mixed; without steps nothing is known.
 */
#include "diagnosis/verdict.h"

#include "base/units.h"
#include "diagnosis/diagnosis.h"
#include "diagnosis/savings.h"
#include "diagnosis/verdict_place.h"
#include "diagnosis/verdict_replay.h"
#include "diagnosis/verdict_run.h"
#include "model/cell_words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define BOUND_SHARE 0.20 /* guide 001's engine: waiting for data above 20 % is the cause */
#define MIXED_PART 0.75  /* the second takes at least this part of the first */
#define COMPUTE_SHARE 0.50
#define VERDICTS 16
#define NUMBERS 4 /* parts of a step that are named */
#define SMALLEST_SHARE 0.01
#define MEMORY_BOUND "memory-bound"
#define DEVICE_IDLE "device idle" /* how a finding's `time_of` begins that is about such time */

static const struct table_column columns[VERDICT_COLUMNS] = {
	[VERDICT_VERDICT] =
		{.name = "verdict",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "data-bound, launch-bound, communication-bound, ..., mixed, healthy or unknown"},
	[VERDICT_RATIO] = {.name = "ratio",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_RATIO,
                           .role = ROLE_SHARE,
                           .definition = "what its cause takes of a step",
                           .denominator = "the mean step",
                           .rules = RULE_NOT_NEGATIVE},
	[VERDICT_MARGIN] = {.name = "margin_ratio",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_RATIO,
                            .role = ROLE_EVIDENCE,
                            .definition = "how far that is from another verdict"},
	[VERDICT_SENTENCE] = {.name = "sentence", .type = TABLE_TEXT, .definition = "the same in words"},
	[VERDICT_PARTS] = {.name = "parts",
                           .type = TABLE_TEXT,
                           .definition = "what a step goes to, the largest parts first, as shares of it"},
	[VERDICT_SAVING] = {.name = "saving_ns",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_NS,
                            .definition = "what all findings together would save at most: of those that may be about "
                                          "the same time the one that saves most",
                            .rules = RULE_NOT_NEGATIVE},
	[VERDICT_SAVING_RATIO] = {.name = "saving_ratio",
                                  .type = TABLE_DOUBLE,
                                  .unit = UNIT_RATIO,
                                  .role = ROLE_SHARE,
                                  .definition = "the same as share of a step",
                                  .denominator = "the mean step",
                                  .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[VERDICT_HEADLINE] = {.name = "headline",
                              .type = TABLE_TEXT,
                              .definition = "what matters more than where the time goes: that the run did not end well, "
                                            "where and how"},
	[VERDICT_RUN] = {.name = "run",
                         .type = TABLE_TEXT,
                         .definition = "parts of the wall time of the whole run (table run_time), the largest first"},
	[VERDICT_LEFT_OUT] =
		{.name = "left_out",
                 .type = TABLE_TEXT,
                 .definition =
                         "steps of which nothing here is: those at the begin that take more than twice as "
                         "long as later ones, and those of a damaged input that have lost work of devices, or its durations"},
	[VERDICT_WHOLE] = {.name = "whole",
                           .type = TABLE_TEXT,
                           .definition = "what parts are shares of: a step, or the whole trace where that has no steps"},
	[VERDICT_SAVING_OF] =
		{.name = "saving_of",
                 .type = TABLE_TEXT,
                 .definition = "what savings, and the verdict's share, are of: the same, or a step with the "
                               "time behind it, where a finding is about that"},
};

struct share {
	const char *verdict;
	double ratio;
};

struct shares {
	struct share of[VERDICTS];
	int count;
};

static void add_share(struct shares *shares, const char *verdict, double ratio)
{
	int i = 0;

	while (i < shares->count && strcmp(shares->of[i].verdict, verdict) != 0)
		i++;
	if (i == VERDICTS)
		return;
	if (i == shares->count)
		shares->of[shares->count++] = (struct share){verdict, 0};
	shares->of[i].ratio += ratio;
	if (shares->of[i].ratio > 1) /* savings of several findings may be of one time */
		shares->of[i].ratio = 1;
}

/* ": rank 1, in data"; "": the verdict is of no rank. */
static const char *at_rank(const struct table *findings, const char *verdict, struct report *report,
                           struct arena *arena)
{
	const char *place = verdict_rank_place(findings, verdict, report_table(report, "ranks"));

	return place ? arena_printf(arena, ": %s", place) : "";
}

/* idle: share of a step in which the device is idle. Where several findings are about that time, those that save less count with what is left
 * of it: one instant makes a run bound by one thing. */
static struct shares collect(const struct table *findings, double idle)
{
	struct shares shares = {.count = 0};
	double ratio, confidence, counted = 0;

	for (int row = 0; row < findings->row_count; row++) {
		const struct table_cell *verdict = table_get(findings, row, FINDING_VERDICT);
		const char *time = table_text(findings, row, FINDING_TIME);

		if (!verdict->has_value || !table_number(findings, row, FINDING_RATIO, &ratio) ||
		    !table_number(findings, row, FINDING_CONFIDENCE, &confidence) || confidence <= 0)
			continue;
		if (time && !strncmp(time, DEVICE_IDLE, strlen(DEVICE_IDLE))) {
			ratio = counted > 0 ? fmin(ratio, fmax(idle - counted, 0)) : ratio;
			counted += ratio;
		}
		add_share(&shares, verdict->text, ratio);
	}
	return shares;
}

/* The largest two, {NULL, 0} where there are none. */
static void find_largest(const struct shares *shares, struct share *first, struct share *second)
{
	*first = *second = (struct share){0};
	for (int i = 0; i < shares->count; i++) {
		struct share share = shares->of[i];

		if (share.ratio > first->ratio) {
			*second = *first;
			*first = share;
		} else if (share.ratio > second->ratio) {
			*second = share;
		}
	}
}

/* How many causes some rule could look for, and how many none could. */
static void count_causes(const struct table *checks, const struct rule_set *rules, int *told, int *silent)
{
	struct shares causes = {.count = 0};

	for (int row = 0; row < checks->row_count; row++) { /* in the order of the rules */
		bool can_tell = strcmp(table_get(checks, row, CHECK_RESULT)->text, CHECK_CANNOT_TELL) != 0;

		if (rules->rules[row].verdict)
			add_share(&causes, rules->rules[row].verdict, can_tell);
	}
	*told = *silent = 0;
	for (int i = 0; i < causes.count; i++)
		*(causes.of[i].ratio > 0 ? told : silent) += 1;
}

static void verdict_decide(struct table *table, const char *verdict, double ratio, double margin, const char *sentence)
{
	int row = table_row(table);

	table_set_text(table, row, VERDICT_VERDICT, verdict);
	table_set_double(table, row, VERDICT_RATIO, ratio);
	table_set_double(table, row, VERDICT_MARGIN, margin);
	table_set_text(table, row, VERDICT_SENTENCE, sentence);
}

static void decide_unknown(struct table *table, const char *why)
{
	int row = table_row(table);

	table_set_text(table, row, VERDICT_VERDICT, "unknown");
	table_set_missing(table, row, VERDICT_RATIO, why);
	table_set_missing(table, row, VERDICT_MARGIN, why);
	table_set_text(table, row, VERDICT_SENTENCE, why);
}

static bool has_problem(const struct table *findings)
{
	for (int row = 0; row < findings->row_count; row++) {
		if (!strcmp(table_get(findings, row, FINDING_SEVERITY)->text, "problem"))
			return true;
	}
	return false;
}

/* Sum of a column over the rows of a table whose column `key` is one of the names. */
static double verdict_sum_of(struct report *report, const char *table_name, const char *column, const char *key,
                             const char *const *names)
{
	const struct table *table = report_table(report, table_name);
	int name = table_find_column(table, key), ratio = table_find_column(table, column);
	double sum = 0, share;

	for (int row = 0; row < table->row_count; row++) {
		for (int i = 0; names[i]; i++) {
			if (!strcmp(table_get(table, row, name)->text, names[i]) &&
			    table_number(table, row, ratio, &share))
				sum += share;
		}
	}
	return sum;
}

/* What is known of the run beside the findings. */
struct evidence {
	bool has_device, has_steps, is_trace;
	const char *whole;     /* what shares are of */
	const char *saving_of; /* the same of savings */
	double idle; /* share of what savings are shares of in which a device does nothing in a step; 0 without a device */
	double compute; /* share of a step: of kernels that compute; without a device of forward, backward and optimizer */
	double no_phase; /* share of a step outside all phases; 0 with a device */
	double unseen;   /* share of a step of which nothing says what it goes to */
	double memory;   /* share of a step: of kernels that only move memory */
	double least; /* what that device computes which does so least, of those of processes with several; 1: there are none */
	const char *least_device;
};

/* In the parts of a step a process computes while any of its devices does: devices that take turns look busy there. One that computes hardly ever
 * is not what the process trains on. */
static void look_at_devices(struct evidence *evidence, struct report *report)
{
	const struct table *devices = report_table(report, "device_busy");
	int name = table_find_column(devices, "device"), siblings = table_find_column(devices, "process_devices");
	int column = table_find_column(devices, "step_compute_ratio");
	double count, ratio;

	evidence->least = 1;
	for (int row = 0; row < devices->row_count; row++) {
		if (!table_number(devices, row, siblings, &count) || count < 2 ||
		    !table_number(devices, row, column, &ratio) || ratio < SMALLEST_SHARE || ratio >= evidence->least)
			continue;
		evidence->least = ratio;
		evidence->least_device = table_get(devices, row, name)->text;
	}
}

static struct evidence look_around(struct report *report, double step_ns, double whole_ns)
{
	static const char *const works[] = {CELL_COMPUTE, CELL_EXPOSED_COMMUNICATION, CELL_EXPOSED_COPIES, NULL},
				 *const kernels[] = {CELL_COMPUTE, NULL}, *const nothing[] = {CELL_IDLE_NOTHING, NULL},
				 *const phases[] = {"forward", "backward", "optimizer", NULL},
				 *const moves[] = {CELL_WORK_MEMORY, NULL}, *const other[] = {"other", NULL},
				 *const rest[] = {CELL_NO_OPERATION, NULL};
	struct evidence evidence = {
		.has_device = report_table(report, "step_breakdown")->row_count,
		.has_steps = report_table(report, "step_time")->row_count,
	};

	evidence.whole = evidence.has_steps || !evidence.has_device ? "a step" : "the whole trace";
	evidence.saving_of = whole_ns > step_ns ? "a step with the time behind it" : evidence.whole;
	if (evidence.has_device) {
		evidence.idle = 1 - verdict_sum_of(report, "step_breakdown", "ratio", "part", works);
		evidence.idle *= whole_ns > 0 ? step_ns / whole_ns : 1;
		evidence.compute = verdict_sum_of(report, "step_breakdown", "ratio", "part", kernels);
		evidence.unseen = verdict_sum_of(report, "step_breakdown", "ratio", "part", nothing);
		evidence.memory = evidence.compute * verdict_sum_of(report, "kernels", "ratio", "work", moves);
	} else {
		evidence.compute = verdict_sum_of(report, "phases", "ratio", "name", phases);
		evidence.no_phase = verdict_sum_of(report, "phases", "ratio", "name", other);
		evidence.unseen = report_table(report, "ops")->row_count /* some were recorded */
		                          ? verdict_sum_of(report, "ops", "step_unseen_ratio", "name", rest)
		                          : evidence.no_phase;
	}
	look_at_devices(&evidence, report);
	evidence.is_trace = report->format;
	return evidence;
}

/* "compute kernels 84.4 %, idle: host 6.2 %": where a step goes, the largest first; NULL: not known. */
static const char *where_it_goes(struct report *report, struct arena *arena)
{
	const struct table *parts = report_table(report, "step_breakdown");
	const struct table *table = parts->row_count ? parts : report_table(report, "phases");
	int name = table_find_column(table, parts->row_count ? "part" : "name");
	int column = table_find_column(table, "ratio");
	const char *text = NULL;
	double limit = 2, ratio;
	int last = -1; /* the one before, of as much; of equal ones the upper comes first */
	char number[UNITS_BYTES];

	for (int count = 0; count < NUMBERS; count++) {
		int best = -1;
		double most = 0;

		for (int row = 0; row < table->row_count; row++) {
			if (!table_number(table, row, column, &ratio) || ratio < SMALLEST_SHARE)
				continue;
			if ((ratio < limit || (ratio <= limit && row > last)) && (best < 0 || ratio > most))
				best = row, most = ratio;
		}
		if (best < 0)
			break;
		limit = most;
		last = best;
		text = arena_printf(arena, "%s%s%s %s", text ? text : "", text ? ", " : "",
		                    table_get(table, best, name)->text, units_ratio(number, most));
	}
	return text;
}

/* How much of a step nobody accounts for. */
static const char *what_is_unseen(const struct evidence *evidence, struct arena *arena)
{
	char share[UNITS_BYTES];

	units_ratio(share, evidence->unseen);
	if (evidence->has_device)
		return arena_printf(arena,
		                    "for %s of %s the device did nothing, and nothing was recorded of the threads that "
		                    "drive it",
		                    share, evidence->whole);
	return arena_printf(arena, "%s of %s is in no phase, operator or range: nobody knows what it goes to", share,
	                    evidence->whole);
}

static const char *how_to_see(const struct evidence *evidence)
{
	if (evidence->is_trace)
		return "record_function() around parts of the loop would say it";
	return "stepscope.phase(\"data\") around what fetches a batch and stepscope.range() around the rest would say it, "
	       "in C stepscope_phase_begin() and stepscope_range_push()";
}

/* Beside another verdict, where a cause might be in it. */
static const char *also_unseen(const struct evidence *evidence, struct arena *arena)
{
	return evidence->unseen >= BOUND_SHARE ? arena_printf(arena, "; %s", what_is_unseen(evidence, arena)) : "";
}

/* Of several devices of one process, where they take turns. */
static const char *also_idle(const struct evidence *evidence, struct arena *arena)
{
	char share[UNITS_BYTES];

	if (evidence->least >= COMPUTE_SHARE)
		return "";
	return arena_printf(arena, "; %s, one of several of its process, computes for only %s of %s",
	                    evidence->least_device, units_ratio(share, evidence->least), evidence->whole);
}

/* What takes most, where that is less than a fifth. Findings without a verdict, as hints are, may save time, too. */
static const char *what_is_most(const struct table *findings, const struct share *first, const char *place,
                                const char *whole, struct arena *arena)
{
	char number[UNITS_BYTES];
	double most = 0, ratio;
	int best = -1;

	if (first->verdict)
		return arena_printf(arena, "no cause takes a fifth of %s; the most is %s, %s%s", whole,
		                    units_ratio(number, first->ratio), first->verdict, place);
	for (int row = 0; row < findings->row_count; row++)
		if (table_number(findings, row, FINDING_RATIO, &ratio) && ratio > most)
			best = row, most = ratio;
	if (best < 0)
		return "no rule found time to save";
	return arena_printf(arena, "no cause was found; %s would save most, up to %s of %s",
	                    table_get(findings, best, FINDING_RULE)->text, units_ratio(number, most), whole);
}

/* No single thing takes much of a step. */
static void decide_unbound(struct diagnosis *diagnosis, const struct evidence *evidence, const struct share *first,
                           const char *place, int told, int silent)
{
	struct table *table = &diagnosis->verdict;
	double margin = BOUND_SHARE - first->ratio;
	bool has_problems = has_problem(&diagnosis->findings);
	bool is_busy = evidence->compute >= COMPUTE_SHARE && evidence->least >= COMPUTE_SHARE;
	const char *unseen = also_unseen(evidence, &table->arena);
	char a[UNITS_BYTES];
	const char *most = what_is_most(&diagnosis->findings, first, place, evidence->saving_of, &table->arena);

	if (silent)
		most = arena_printf(&table->arena, "%s; %d of the causes could not be looked for", most, silent);
	if (evidence->unseen >= (has_problems ? COMPUTE_SHARE : BOUND_SHARE)) /* a cause may be there */
		decide_unknown(table, arena_printf(&table->arena, "%s; %s; %s", what_is_unseen(evidence, &table->arena),
		                                   how_to_see(evidence), most));
	else if (silent > told &&
	         evidence->compute <= 1 - BOUND_SHARE) /* else nothing is left that could take a fifth */
		decide_unknown(table, arena_printf(&table->arena,
		                                   "no cause was found, but %d of %d causes could not be looked for",
		                                   silent, silent + told));
	else if (has_problems && evidence->no_phase >= COMPUTE_SHARE)
		decide_unknown(table,
		               arena_printf(&table->arena, "%s; %s of %s is in no phase, and no device was recorded",
		                            most, units_ratio(a, evidence->no_phase), evidence->whole));
	else if (!has_problems && diagnosis->unsound)
		decide_unknown(table, arena_printf(&table->arena, "%s; the steps cannot be replayed: %s", most,
		                                   diagnosis->unsound));
	else if (!has_problems && (is_busy || !evidence->has_device))
		verdict_decide(table, "healthy", first->ratio, margin, most);
	else if (is_busy)
		verdict_decide(table, "compute-bound", evidence->compute, margin,
		               arena_printf(&table->arena, "%s %s of %s; %s%s",
		                            evidence->has_device ? "kernels compute for"
		                                                 : "forward, backward and optimizer take",
		                            units_ratio(a, evidence->compute), evidence->whole, most, unseen));
	else
		verdict_decide(table, "mixed", first->ratio, margin,
		               arena_printf(&table->arena, "%s%s%s", most, also_idle(evidence, &table->arena), unseen));
}

/* "straggler-bound (31.5 % of a step: rank 1, in data)": one of two that take about as much. */
static const char *share_text(const struct diagnosis *diagnosis, struct report *report, const struct share *share,
                              const char *unit, struct arena *arena)
{
	char ratio[UNITS_BYTES];

	return arena_printf(arena, "%s (%s%s%s)", share->verdict, units_ratio(ratio, share->ratio), unit,
	                    at_rank(&diagnosis->findings, share->verdict, report, arena));
}

static void decide_by_shares(struct diagnosis *diagnosis, struct report *report, const struct evidence *evidence,
                             const struct shares *shares, int told, int silent)
{
	struct table *table = &diagnosis->verdict;
	struct arena *arena = &table->arena;
	const char *place, *next = "";
	struct share first, second;
	char a[UNITS_BYTES], b[UNITS_BYTES];
	const char *unit = evidence->has_steps ? arena_printf(arena, "of %s", evidence->saving_of)
	                                       : "of the whole trace (it has no steps)";

	if (evidence->has_device && evidence->unseen >= COMPUTE_SHARE) {
		decide_unknown(table, what_is_unseen(evidence, arena));
		return;
	}
	find_largest(shares, &first, &second);
	place = at_rank(&diagnosis->findings, first.verdict, report, arena);
	if (first.ratio < BOUND_SHARE) {
		decide_unbound(diagnosis, evidence, &first, place, told, silent);
		return;
	}
	if (second.ratio >= BOUND_SHARE && second.ratio >= MIXED_PART * first.ratio) {
		verdict_decide(
			table, "mixed", first.ratio, second.ratio - MIXED_PART * first.ratio,
			arena_printf(arena, "%s and %s%s",
		                     share_text(diagnosis, report, &first, arena_printf(arena, " %s", unit), arena),
		                     share_text(diagnosis, report, &second, "", arena), also_unseen(evidence, arena)));
		return;
	}
	if (second.verdict)
		next = arena_printf(arena, "; next %s %s%s", second.verdict, units_ratio(b, second.ratio),
		                    at_rank(&diagnosis->findings, second.verdict, report, arena));
	verdict_decide(table, first.verdict, first.ratio,
	               first.ratio - (second.ratio > BOUND_SHARE ? second.ratio : BOUND_SHARE),
	               arena_printf(arena, "%s %s%s%s%s", units_ratio(a, first.ratio), unit, place, next,
	                            also_unseen(evidence, arena)));
}

/* Returns true if a finding without a cut says that memory is what holds up the device: no replay removes that. */
static bool is_held_up_by_memory(const struct table *findings)
{
	for (int row = 0; row < findings->row_count; row++) {
		const char *verdict = table_text(findings, row, FINDING_VERDICT);

		if (verdict && !table_text(findings, row, FINDING_CUT) && !strcmp(verdict, MEMORY_BOUND))
			return true;
	}
	return false;
}

/* No cost bounds the run: it may be bound by something that no replay can remove. */
static void look_beyond_cuts(struct replay_verdict *decided, const struct diagnosis *diagnosis,
                             const struct evidence *evidence, struct arena *arena)
{
	char share[UNITS_BYTES];

	if (decided->is_bound)
		return;
	if (evidence->least < COMPUTE_SHARE) {
		decided->verdict = "mixed";
	} else if (is_held_up_by_memory(&diagnosis->findings)) {
		decided->verdict = MEMORY_BOUND;
		decided->ratio = evidence->memory;
		decided->margin_ratio = fabs(evidence->memory - COMPUTE_SHARE);
		decided->sentence = arena_printf(arena, "%s; kernels that only move memory take %s of a step",
		                                 decided->sentence, units_ratio(share, evidence->memory));
	}
}

/* Where no device works, the cut of the host's stretches says what such time goes to. */
static double unseen_by_replay(const struct evidence *evidence, const struct what_if *what_if)
{
	const struct what_if_cut *host = &what_if->cuts[CUT_HOST];

	return evidence->has_device || !host->is_there ? evidence->unseen
	                                               : fmax(0, evidence->unseen - host->saving_ratio);
}

static void decide_by_replay(struct diagnosis *diagnosis, struct report *report, struct evidence *evidence)
{
	struct table *table = &diagnosis->verdict;
	struct arena *arena = &table->arena;
	struct replay_verdict decided;

	evidence->unseen = unseen_by_replay(evidence, diagnosis->what_if);
	if (!replay_verdict_decide(&decided, diagnosis, report_table(report, "ranks"), evidence->unseen)) {
		decide_unknown(table,
		               arena_printf(arena, "%s; %s", what_is_unseen(evidence, arena), how_to_see(evidence)));
		return;
	}
	look_beyond_cuts(&decided, diagnosis, evidence, arena);
	if (!decided.is_bound && evidence->unseen >= COMPUTE_SHARE)
		decide_unknown(table, arena_printf(arena, "%s; %s; %s", what_is_unseen(evidence, arena),
		                                   how_to_see(evidence), decided.sentence));
	else
		verdict_decide(table, decided.verdict, decided.ratio, decided.margin_ratio,
		               arena_printf(arena, "%s%s%s", decided.sentence, also_idle(evidence, arena),
		                            also_unseen(evidence, arena)));
}

static void set_no_overlap(struct table *findings)
{
	for (int row = 0; row < findings->row_count; row++)
		table_set_missing(findings, row, FINDING_SAME, "savings come from replays");
}

static void set_saving(struct diagnosis *diagnosis, double step_ns)
{
	struct what_if_cut together;

	struct table *table = &diagnosis->verdict;
	double together_ns;

	if (replay_verdict_together(diagnosis, &together)) {
		set_no_overlap(&diagnosis->findings);
		table_set_double(table, 0, VERDICT_SAVING, together.saving_ns);
		table_set_double(table, 0, VERDICT_SAVING_RATIO, together.saving_ratio);
		return;
	}
	if (!diagnosis_savings(&diagnosis->findings, step_ns, &together_ns)) {
		table_set_missing(table, 0, VERDICT_SAVING, "no finding saves time");
		table_set_missing(table, 0, VERDICT_SAVING_RATIO, "no finding saves time");
		return;
	}
	table_set_double(table, 0, VERDICT_SAVING, together_ns);
	if (step_ns > 0)
		table_set_double(table, 0, VERDICT_SAVING_RATIO, together_ns / step_ns);
	else
		table_set_missing(table, 0, VERDICT_SAVING_RATIO, "no step was recorded");
}

/* NULL: no step is start-up. */
static const char *which_start_up(const struct start_up *start_up, const struct step_times *times, struct arena *arena)
{
	char taken[UNITS_BYTES], usual[UNITS_BYTES], most[UNITS_BYTES];
	const char *which;

	if (!start_up->count)
		return NULL;
	units_time(taken, start_up->mean_ns);
	units_time(usual, start_up->rest_ns);
	units_time(most, start_up->phase_ns);
	which = start_up->count == 1 ? arena_printf(arena, "step %" PRId64 ", %s", start_up->first, taken)
	                             : arena_printf(arena, "steps %" PRId64 " to %" PRId64 ", %s on the mean",
	                                            start_up->first, start_up->last, taken);
	if (start_up->has_phases)
		which = arena_printf(arena, "%s, %s of it in %s", which, most,
		                     start_up->phase ? phase_name(start_up->phase) : "no phase");
	return arena_printf(
		arena, "%s, as start-up: the median of the others is %s (--steps %" PRId64 "-%" PRId64 " counts all)",
		which, usual, start_up->first, times->job_last);
}

/* NULL: none has lost work of devices, or all have, and all count. */
static const char *which_torn(const struct whole_steps *whole, struct arena *arena)
{
	const char *rest, *what = !whole->lost_durations ? "launches or kernels of theirs"
	                          : !whole->lost_work    ? "durations of kernels of theirs"
	                                                 : "launches, kernels or their durations";

	if (!whole->lost || !whole->has_any)
		return NULL;
	rest = whole->first == whole->last
	               ? arena_printf(arena, "the other is %" PRId64, whole->first)
	               : arena_printf(arena, "the others are %" PRId64 " to %" PRId64, whole->first, whole->last);
	return arena_printf(arena, "%" PRIu32 " of %" PRIu32 " steps, as %s are lost: %s", whole->lost, whole->count,
	                    what, rest);
}

static void set_left_out(struct table *table, const struct start_up *start_up, const struct whole_steps *whole,
                         const struct step_times *times)
{
	const char *torn = which_torn(whole, &table->arena);
	const char *first = which_start_up(start_up, times, &table->arena);

	if (torn && first)
		torn = arena_printf(&table->arena, "%s; %s", torn, first);
	table_set_text_or(table, 0, VERDICT_LEFT_OUT, torn ? torn : first, "no step is");
}

static const char *headline_of(const struct rule_set *rules, const char *id)
{
	for (int i = 0; i < rules->count; i++)
		if (!strcmp(rules->rules[i].id, id))
			return rules->rules[i].headline;
	return NULL;
}

/* "did not end well: rank 1, pid 4711: killed by SIGSEGV; ... (and 2 more: SS802)": the first finding of a rule that has a headline. */
static void set_headline(struct diagnosis *diagnosis, const struct rule_set *rules)
{
	static const int told[] = {FINDING_PLACE, FINDING_EVIDENCE};
	const struct table *findings = &diagnosis->findings;
	struct table *table = &diagnosis->verdict;
	const char *headline = NULL, *id;
	int row = 0, count = 0;

	for (; row < findings->row_count; row++)
		if ((headline = headline_of(rules, table_text(findings, row, FINDING_RULE))))
			break;
	if (!headline) {
		table_set_missing(table, 0, VERDICT_HEADLINE, "nothing matters more than where the time goes");
		return;
	}
	id = table_text(findings, row, FINDING_RULE);
	for (int other = row + 1; other < findings->row_count; other++)
		count += !strcmp(table_text(findings, other, FINDING_RULE), id);
	for (int i = 0; i < 2; i++)
		if (table_text(findings, row, told[i]))
			headline = arena_printf(&table->arena, "%s: %s", headline, table_text(findings, row, told[i]));
	if (count)
		headline = arena_printf(&table->arena, "%s (and %d more: %s)", headline, count, id);
	table_set_text(table, 0, VERDICT_HEADLINE, headline);
}

void diagnosis_decide(struct diagnosis *diagnosis, struct report *report, const struct rule_set *rules, double step_ns,
                      double whole_ns, const struct start_up *start_up, const struct whole_steps *whole)
{
	const struct table *times = report_table(report, "step_time");
	struct evidence evidence = look_around(report, step_ns, whole_ns);
	const struct shares shares = collect(&diagnosis->findings, evidence.idle);
	struct table *table = &diagnosis->verdict;
	const char *parts = diagnosis->torn ? NULL : where_it_goes(report, &table->arena);
	int told, silent;

	table_columns(table, columns, VERDICT_COLUMNS);
	count_causes(&diagnosis->checks, rules, &told, &silent);
	if (diagnosis->torn)
		decide_unknown(table, diagnosis->torn);
	else if (step_ns <= 0)
		decide_unknown(table, times->empty ? times->empty : "no complete step was recorded");
	else if (diagnosis->what_if)
		decide_by_replay(diagnosis, report, &evidence);
	else if (!told)
		decide_unknown(table, "no rule about time could tell");
	else
		decide_by_shares(diagnosis, report, &evidence, &shares, told, silent);
	table_set_text_or(table, 0, VERDICT_PARTS, parts,
	                  diagnosis->torn ? diagnosis->torn : "neither phases nor work of a device were recorded");
	set_saving(diagnosis, whole_ns);
	table_set_text(table, 0, VERDICT_WHOLE, evidence.whole);
	table_set_text(table, 0, VERDICT_SAVING_OF, evidence.saving_of);
	verdict_run_set(diagnosis);
	set_headline(diagnosis, rules);
	set_left_out(table, start_up, whole, report_step_times(report));
}
