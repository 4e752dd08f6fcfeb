/* SPDX-License-Identifier: Apache-2.0
 *
 * diagnosis.c: asks what each rule needs, runs it and ranks what it finds. The verdict is made in verdict.c.
 */
#include "diagnosis/diagnosis.h"

#include "analysis/step_times/step_kinds.h"
#include "analysis/what_if/replayed.h"
#include "base/demangle.h"
#include "base/options.h"
#include "base/text.h"
#include "diagnosis/finding_cut.h"
#include "diagnosis/verdict.h"
#include "diagnosis/verdict_replay.h"
#include "model/cell_words.h"
#include "query/query.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FINDINGS_OF_A_RULE 20
#define RULE_SECONDS 30
#define MAXIMUM_TEXT ((size_t)2 << 20)
#define HEAD_BYTES 3000 /* of a sentence that is longer than both */
#define TAIL_BYTES 1000

static const struct table_column finding_columns[FINDING_COLUMNS] = {
	[FINDING_RULE] = {.name = "rule", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "id of the rule"},
	[FINDING_TITLE] = {.name = "title", .type = TABLE_TEXT, .definition = "what is wrong"},
	[FINDING_SEVERITY] = {.name = "severity", .type = TABLE_TEXT, .definition = "problem or hint"},
	[FINDING_PLACE] = {.name = "where", .type = TABLE_TEXT, .definition = "line, module, rank or step"},
	[FINDING_EVIDENCE] = {.name = "evidence", .type = TABLE_TEXT, .definition = "the numbers behind it"},
	[FINDING_SAVING] = {.name = "saving_ns",
                            .type = TABLE_DOUBLE,
                            .unit = UNIT_NS,
                            .definition = "what a step would be shorter at most",
                            .rules = RULE_NOT_NEGATIVE},
	[FINDING_RATIO] = {.name = "saving_ratio",
                           .type = TABLE_DOUBLE,
                           .unit = UNIT_RATIO,
                           .role = ROLE_SHARE,
                           .definition = "the same as share of a step (verdict.saving_of)",
                           .denominator = "the mean step, with the time behind it where a finding is about that",
                           .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[FINDING_TIME] =
		{.name = "time_of",
                 .type = TABLE_TEXT,
                 .role = ROLE_EVIDENCE,
                 .definition =
                         "which time it would save, where the rule knows: phases, parts of what the device does, waits, "
                         "or what lies between steps or ranks"},
	[FINDING_SAME] = {.name = "same_time_as",
                          .type = TABLE_TEXT,
                          .role = ROLE_EVIDENCE,
                          .definition = "rules of findings that would save more, and may be about the same time"},
	[FINDING_CONFIDENCE] = {.name = "confidence_ratio",
                                .type = TABLE_DOUBLE,
                                .unit = UNIT_RATIO,
                                .role = ROLE_EVIDENCE,
                                .definition = "how sure the rule is; 1: certain",
                                .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[FINDING_CERTAINTY] = {.name = "confidence", .type = TABLE_TEXT, .definition = "the same as a word"},
	[FINDING_VERDICT] = {.name = "verdict", .type = TABLE_TEXT, .definition = "what it makes a run"},
	[FINDING_ADVICE] = {.name = "advice", .type = TABLE_TEXT, .definition = "what to do"},
	[FINDING_WRONG] = {.name = "wrong", .type = TABLE_TEXT, .definition = "what would make the finding wrong"},
	[FINDING_CUT] = {.name = "cut",
                         .type = TABLE_TEXT,
                         .role = ROLE_EVIDENCE,
                         .definition = "cost that the replay leaves out to find the saving (table what_if)"},
	[FINDING_CUT_PLACE] = {.name = "place",
                               .type = TABLE_TEXT,
                               .role = ROLE_EVIDENCE,
                               .definition = "where the cut is, if it is not everywhere"},
	[FINDING_LOW] = {.name = "saving_low_ratio",
                         .type = TABLE_DOUBLE,
                         .unit = UNIT_RATIO,
                         .role = ROLE_EVIDENCE,
                         .definition = "lower end of the interval of the saving",
                         .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[FINDING_HIGH] = {.name = "saving_high_ratio",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_RATIO,
                          .role = ROLE_EVIDENCE,
                          .definition = "upper end of the interval of the saving",
                          .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
};

static const struct table_column check_columns[CHECK_COLUMNS] = {
	[CHECK_RULE] = {.name = "rule", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "id of the rule"},
	[CHECK_TITLE] = {.name = "title", .type = TABLE_TEXT, .definition = "what it looks for"},
	[CHECK_RESULT] = {.name = "result", .type = TABLE_TEXT, .definition = "found, nothing, or cannot tell"},
	[CHECK_FINDINGS] = {.name = "findings",
                            .type = TABLE_INT,
                            .unit = UNIT_COUNT,
                            .definition = "how many it found"},
	[CHECK_REASON] = {.name = "reason", .type = TABLE_TEXT, .definition = "why it cannot tell"},
};

static const struct table_column time_columns[TIME_COLUMNS] = {
	[TIME_CPU] = {.name = "cpu_ns",
                      .title = "CPU time",
                      .type = TABLE_INT,
                      .unit = UNIT_NS,
                      .definition = "what it took: a rule without the tables it reads, a table without what all share",
                      .rules = RULE_NOT_NEGATIVE},
	[TIME_KIND] = {.name = "kind", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "rule, table or shared"},
	[TIME_NAME] = {.name = "name", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "its id or name"},
};

struct running {
	struct diagnosis *diagnosis;
	struct report *report;
	struct query query;
	struct demangler demangler;
	double step_ns; /* the mean step; 0: not known */
	const char *few; /* why steps with operators are too few to say that something is not there; NULL: they are not */
	bool infers_phases;   /* some phases are known in these steps alone */
	bool needs_operators; /* the rule that is looked at */
};

/* ---- what a rule needs ---- */

static const char *diagnosis_why_empty(const struct table *table)
{
	return table->empty ? table->empty : table->note ? table->note : "it was not measured";
}

/* Why a column has no value in any row; NULL: it has one. */
static const char *why_missing(const struct table *table, int column)
{
	const char *reason = NULL;

	for (int row = 0; row < table->row_count; row++) {
		const struct table_cell *cell = table_get(table, row, column);

		if (cell->has_value)
			return NULL;
		reason = reason ? reason : cell->reason;
	}
	return reason ? reason : diagnosis_why_empty(table);
}

/* One table or column: "phases.ratio" or "phases". The reason stays NULL where it is there. */
static enum status diagnosis_look_at(struct running *running, const struct rule *rule, const char *need,
                                     const char **reason, struct arena *arena, struct error *err)
{
	size_t length = strcspn(need, ".");
	const struct table *table = report_table(running->report, arena_dup_n(arena, need, length));
	int column;

	if (!table)
		return error_set(err, STATUS_USAGE, "rule '%s' needs the table '%.*s', which does not exist", rule->id,
		                 (int)length, need);
	if (running->diagnosis->torn && analysis_find(table->name)->is_of_devices) {
		*reason = running->diagnosis->torn;
		return STATUS_OK;
	}
	if (!table->row_count)
		*reason = diagnosis_why_empty(table);
	if (!need[length] || !table->column_count) /* an analysis that failed has no columns */
		return STATUS_OK;
	column = table_find_column(table, need + length + 1);
	if (column < 0)
		return error_set(err, STATUS_USAGE,
		                 "rule '%s' needs the column '%s', which the table '%s' does not have", rule->id,
		                 need + length + 1, table->name);
	if (table->row_count)
		*reason = why_missing(table, column);
	return STATUS_OK;
}

/* Is what it names known in steps with operators alone? */
static bool is_of_operators(const struct running *running, const char *need, struct arena *arena)
{
	size_t length = strcspn(need, ".");
	const struct analysis *analysis = analysis_find(arena_dup_n(arena, need, length));

	return !strcmp(need + length, ".has_detail") ||
	       (analysis && (analysis->is_of_operators || analysis->is_of_devices ||
	                     (analysis->is_of_phases && running->infers_phases)));
}

/* "a|b": one of them is enough; of none the first one's reason counts. */
static enum status look_at_either(struct running *running, const struct rule *rule, const char *needs,
                                  const char **reason, struct arena *arena, struct error *err)
{
	enum status status = STATUS_OK;

	while (*needs && !status) {
		size_t length = strcspn(needs, "|");
		const char *missing = NULL, *need = arena_dup_n(arena, needs, length);

		status = diagnosis_look_at(running, rule, need, &missing, arena, err);
		if (!missing) {
			*reason = NULL;
			running->needs_operators |= is_of_operators(running, need, arena);
			return status;
		}
		*reason = *reason ? *reason : missing;
		needs += length + (needs[length] != '\0');
	}
	return status;
}

/* Up to the first that is missing: no table is made for a rule that cannot tell. */
static enum status what_is_missing(struct running *running, const struct rule *rule, const char **reason,
                                   struct arena *arena, struct error *err)
{
	enum status status = STATUS_OK;

	*reason = NULL;
	running->needs_operators = false;
	for (const char *need = rule->needs; *need && !*reason && !status;) {
		size_t length = strcspn(need, ", ");

		if (length)
			status = look_at_either(running, rule, arena_dup_n(arena, need, length), reason, arena, err);
		need += length + (need[length] != '\0');
	}
	return status;
}

/* ---- its SELECT ---- */

/* SQLite takes a parameter that nobody sets for NULL: a misspelt one would find nothing for ever. */
static enum status bind_thresholds(struct query *query, const struct rule *rule, struct arena *arena, struct error *err)
{
	const char *names[RULE_THRESHOLDS + 1] = {NULL};
	const char *left, *nearest;

	for (int i = 0; i < rule->threshold_count; i++) {
		names[i] = arena_printf(arena, ":%s", rule->thresholds[i].name);
		query_bind(query, names[i], rule->thresholds[i].value);
	}
	left = query_other_parameter(query, names);
	if (!left)
		return STATUS_OK;
	nearest = nearest_name(left, names);
	return error_set(err, STATUS_USAGE, "it has no threshold '%s'%s%s%s", left, nearest ? ": did you mean '" : "",
	                 nearest ? nearest : "", nearest ? "'?" : "");
}

static enum status select_rows(struct running *running, const struct rule *rule, const char *sql, struct table *rows,
                               struct arena *arena, struct error *err)
{
	struct error why = {0};
	enum status status = query_begin(&running->query, sql, &why);

	if (!status)
		status = bind_thresholds(&running->query, rule, arena, &why);
	if (!status)
		status = query_fetch(&running->query, rows, FINDINGS_OF_A_RULE, &why);
	if (status)
		error_set(err, status, "rule '%s': %s", rule->id, why.text);
	return status;
}

/* The condition `tells if`. */
static enum status diagnosis_ask(struct running *running, const struct rule *rule, bool *can_tell, struct arena *arena,
                                 struct error *err)
{
	struct table rows;
	double value = 0;
	enum status status;

	*can_tell = true;
	if (!rule->tells_if)
		return STATUS_OK;
	status = select_rows(running, rule, arena_printf(arena, "SELECT %s", rule->tells_if), &rows, arena, err);
	if (status)
		return status;
	*can_tell = rows.row_count && table_number(&rows, 0, 0, &value) && value != 0;
	table_release(&rows);
	return STATUS_OK;
}

/* ---- findings ---- */

static const char *const result_columns[] = {"place",   "evidence", "saving_ns", "confidence", "advice",
                                             "time_of", "cut",      "cut_place", NULL};

/* A text would be as if there was no time to save. */
static enum status check_saving(const struct rule *rule, const struct table *rows, struct error *err)
{
	int column = table_find_column(rows, "saving_ns");

	for (int row = 0; column >= 0 && rows->columns[column].type == TABLE_TEXT && row < rows->row_count; row++)
		if (table_get(rows, row, column)->has_value)
			return error_set(err, STATUS_USAGE,
			                 "rule '%s': its saving_ns is the text '%.40s', and no number of nanoseconds",
			                 rule->id, table_text(rows, row, column));
	return STATUS_OK;
}

/* A misspelt column would be as if the rule did not say it. */
static enum status check_columns_of(const struct rule *rule, const struct table *rows, struct error *err)
{
	for (int column = 0; column < rows->column_count; column++) {
		const char *name = rows->columns[column].name, *nearest;
		int known = 0;

		while (result_columns[known] && strcmp(result_columns[known], name) != 0)
			known++;
		if (result_columns[known])
			continue;
		error_set(err, STATUS_USAGE, "rule '%s': its SELECT gives a column '%s'", rule->id, name);
		nearest = nearest_name(name, result_columns);
		if (nearest)
			error_hint(err, "did you mean '%s'?", nearest);
		else
			error_hint(
				err,
				"a rule gives place, evidence, cut, cut_place, saving_ns, time_of, confidence and advice");
		return STATUS_USAGE;
	}
	return check_saving(rule, rows, err);
}

/* Sentences are for people, whatever the form: names of C++ in them are as people write them. */
static void set_sentence(struct running *running, int row, int column, const char *text)
{
	struct buffer plain;

	buffer_init(&plain, MAXIMUM_TEXT);
	demangler_words(&running->demangler, &plain, text);
	text_shorten(&plain, HEAD_BYTES, TAIL_BYTES);
	table_set_text(&running->diagnosis->findings, row, column, plain.data);
	buffer_release(&plain);
}

/* The number of a step or rank is a place, too. */
static void diagnosis_copy_text(struct running *running, int row, int column, const struct table *from, int from_row,
                                const char *name)
{
	struct table *to = &running->diagnosis->findings;
	int from_column = table_find_column(from, name);
	const struct table_cell *cell = from_column >= 0 ? table_get(from, from_row, from_column) : NULL;
	double number;

	if (cell && cell->has_value && from->columns[from_column].type == TABLE_TEXT)
		set_sentence(running, row, column, cell->text);
	else if (cell && table_number(from, from_row, from_column, &number))
		table_set_text(to, row, column, arena_printf(&to->arena, "%.15g", number));
	else
		table_set_missing(to, row, column, "the rule does not say");
}

static bool number_called(const struct table *table, int row, const char *name, double *value)
{
	int column = table_find_column(table, name);

	return column >= 0 && table_number(table, row, column, value);
}

static void set_no_saving(struct table *findings, int row, const char *reason)
{
	table_set_missing(findings, row, FINDING_SAVING, reason);
	table_set_missing(findings, row, FINDING_RATIO, reason);
}

/* The saving is that of the replay, if the run has one; a user's rule may say its own. */
static void set_saving(struct running *running, const struct rule *rule, int row, const struct table *rows,
                       int from_row)
{
	struct table *findings = &running->diagnosis->findings;
	enum replay_cut cut = finding_cut_called(running->diagnosis, rows, from_row);
	double saving_ns;

	if (cut < CUT_COUNT) {
		finding_cut_set(running->diagnosis, row, cut);
		return;
	}
	finding_cut_set_none(findings, row,
	                     running->diagnosis->what_if ? "the rule names no cut" : "the run has no replay");
	if (!number_called(rows, from_row, "saving_ns", &saving_ns) || !(saving_ns >= 0 && isfinite(saving_ns)))
		set_no_saving(findings, row, "it is not about time");
	else if (running->diagnosis->what_if && !rule->folder)
		set_no_saving(findings, row, "no replay removes it");
	else
		table_set_double(findings, row, FINDING_SAVING, saving_ns);
}

static bool lies_between_steps(const struct table *findings, int row)
{
	const char *time = table_text(findings, row, FINDING_TIME);

	return time && !strncmp(time, CELL_BETWEEN_STEPS, strlen(CELL_BETWEEN_STEPS));
}

/* What lies between two steps and is no phase, beside the mean step. */
static double mean_between(struct report *report)
{
	const struct table *between = report_table(report, "between_steps"), *run = report_table(report, "run");
	double gaps, total_ns;

	if (!run->row_count || !number_called(run, 0, "rank_gaps", &gaps) || gaps <= 0)
		return 0;
	for (int row = 0; row < between->row_count; row++)
		if (!strcmp(table_get(between, row, table_find_column(between, "part"))->text,
		            CELL_BETWEEN_STEPS CELL_PHASE_OTHER) &&
		    number_called(between, row, "total_ns", &total_ns))
			return total_ns / gaps;
	return 0;
}

/* What shares of savings are of: the mean step, and where a finding is about what lies behind it, with that: also behind the last one. */
static double whole_of(const struct running *running)
{
	const struct table *findings = &running->diagnosis->findings;
	double saving_ns, told_ns = 0;

	for (int row = 0; row < findings->row_count; row++)
		if (lies_between_steps(findings, row) && table_number(findings, row, FINDING_SAVING, &saving_ns))
			told_ns += saving_ns;
	return running->step_ns > 0 && told_ns > 0 ? running->step_ns + fmax(told_ns, mean_between(running->report))
	                                           : running->step_ns;
}

/* None saves more than there is: the rule errs. */
static void set_ratios(const struct running *running, double whole_ns)
{
	struct table *findings = &running->diagnosis->findings;
	double saving_ns;

	for (int row = 0; row < findings->row_count; row++) {
		double most_ns = lies_between_steps(findings, row) ? whole_ns : running->step_ns;

		if (!table_number(findings, row, FINDING_SAVING, &saving_ns) || table_text(findings, row, FINDING_CUT))
			continue;
		if (running->step_ns <= 0) {
			table_set_missing(findings, row, FINDING_RATIO, "no step was recorded");
			continue;
		}
		table_set_double(findings, row, FINDING_SAVING, fmin(saving_ns, most_ns));
		table_set_double(findings, row, FINDING_RATIO, fmin(saving_ns, most_ns) / whole_ns);
	}
}

static void set_confidence(struct table *findings, int row, const struct table *rows, int from_row)
{
	double confidence;

	if (!number_called(rows, from_row, "confidence", &confidence) || confidence < 0)
		confidence = finding_cut_confidence(findings, row);
	confidence = confidence > 1 ? 1 : confidence;
	table_set_double(findings, row, FINDING_CONFIDENCE, confidence);
	table_set_text(findings, row, FINDING_CERTAINTY,
	               confidence >= 0.8   ? "high"
	               : confidence >= 0.5 ? "medium"
	                                   : "low");
}

/* Of a cut its own: one rule may name several. */
static const char *verdict_of(const struct running *running, const struct rule *rule, const struct table *rows,
                              int from_row)
{
	enum replay_cut cut = finding_cut_called(running->diagnosis, rows, from_row);

	const char *verdict = cut < CUT_COUNT ? replay_cut_verdict(cut, running->diagnosis->what_if->is_of_device)
	                                      : NULL;

	return verdict ? verdict : rule->verdict;
}

static void add_finding(struct running *running, const struct rule *rule, const struct table *rows, int from_row)
{
	struct table *findings = &running->diagnosis->findings;
	int row = table_row(findings);

	table_set_text(findings, row, FINDING_RULE, rule->id);
	table_set_text(findings, row, FINDING_TITLE, rule->title);
	table_set_text(findings, row, FINDING_SEVERITY, rule_severity_name(rule->severity));
	diagnosis_copy_text(running, row, FINDING_PLACE, rows, from_row, "place");
	diagnosis_copy_text(running, row, FINDING_EVIDENCE, rows, from_row, "evidence");
	set_saving(running, rule, row, rows, from_row);
	diagnosis_copy_text(running, row, FINDING_TIME, rows, from_row, "time_of");
	set_confidence(findings, row, rows, from_row);
	table_set_text_or(findings, row, FINDING_VERDICT, verdict_of(running, rule, rows, from_row),
	                  "it makes no verdict");
	diagnosis_copy_text(running, row, FINDING_ADVICE, rows, from_row, "advice");
	if (!table_get(findings, row, FINDING_ADVICE)->has_value) /* nothing of its own */
		table_set_text(findings, row, FINDING_ADVICE, rule->advice);
	table_set_text(findings, row, FINDING_WRONG, rule->wrong);
}

static void add_check(struct diagnosis *diagnosis, const struct rule *rule, int count, const char *reason)
{
	struct table *checks = &diagnosis->checks;
	int row = table_row(checks);

	table_set_text(checks, row, CHECK_RULE, rule->id);
	table_set_text(checks, row, CHECK_TITLE, rule->title);
	table_set_text(checks, row, CHECK_RESULT, reason ? CHECK_CANNOT_TELL : count ? CHECK_FOUND : CHECK_NOTHING);
	if (reason)
		table_set_text(checks, row, CHECK_REASON, reason);
	else
		table_set_int(checks, row, CHECK_FINDINGS, count);
}

static enum status add_findings(struct running *running, const struct rule *rule, struct arena *arena,
                                struct error *err)
{
	struct table rows;
	enum status status = select_rows(running, rule, rule->sql, &rows, arena, err);

	if (status)
		return status;
	status = check_columns_of(rule, &rows, err);
	for (int row = 0; row < rows.row_count && !status; row++)
		add_finding(running, rule, &rows, row);
	/* of few steps what is found is there, but what is not found may be in the others */
	add_check(running->diagnosis, rule, rows.row_count,
	          !rows.row_count && running->needs_operators ? running->few : NULL);
	table_release(&rows);
	return status;
}

static void diagnosis_add_time(struct diagnosis *diagnosis, const char *kind, const char *name, int64_t cpu_ns)
{
	int row = table_row(&diagnosis->times);

	table_set_int(&diagnosis->times, row, TIME_CPU, cpu_ns);
	table_set_text(&diagnosis->times, row, TIME_KIND, kind);
	table_set_text(&diagnosis->times, row, TIME_NAME, name);
}

static enum status apply_rule(struct running *running, const struct rule *rule, struct arena *arena, struct error *err)
{
	const char *reason;
	bool can_tell = true;
	enum status status = what_is_missing(running, rule, &reason, arena, err);

	if (!status && !reason)
		status = diagnosis_ask(running, rule, &can_tell, arena, err);
	if (!status && !can_tell)
		reason = rule->cannot_tell;
	if (!status && !reason)
		status = add_findings(running, rule, arena, err);
	if (status == STATUS_LIMIT) /* too large a run for this rule, no fault of the user's */
		reason = arena_dup(arena, err->text), status = STATUS_OK, *err = (struct error){0};
	if (!status && reason)
		add_check(running->diagnosis, rule, 0, reason);
	return status;
}

/* ---- the whole ---- */

/* Without what it took to make tables. */
static int64_t own_clock_ns(const struct running *running)
{
	return analysis_cpu_clock_ns() - report_cpu_ns(running->report);
}

static enum status apply_rules(struct running *running, const struct rule_set *rules, struct arena *arena,
                               struct error *err)
{
	enum status status = STATUS_OK;

	for (int i = 0; i < rules->count && !status; i++) {
		int64_t before_ns = own_clock_ns(running);

		status = apply_rule(running, &rules->rules[i], arena, err);
		diagnosis_add_time(running->diagnosis, "rule", rules->rules[i].id, own_clock_ns(running) - before_ns);
	}
	return status;
}

/* Also of those that the verdict alone reads. */
static void add_times_of_tables(struct diagnosis *diagnosis, const struct report *report)
{
	diagnosis_add_time(diagnosis, "shared", "results that several tables share", report->context.shared_cpu_ns);
	for (int i = 0; analyses[i]; i++)
		if (report->tables[i].is_ready)
			diagnosis_add_time(diagnosis, "table", analyses[i]->name, report->tables[i].cpu_ns);
	table_sort(&diagnosis->times, TIME_CPU, false);
}

/* The mean step; without steps the whole trace of a device counts as one, as in the table step_breakdown. */
static double diagnosis_mean_step(struct report *report)
{
	const struct table *times = report_table(report, "step_time"), *parts = report_table(report, "step_breakdown");
	double mean_ns, sum_ns = 0;

	if (times->row_count)
		return number_called(times, 0, "mean_ns", &mean_ns) ? mean_ns : 0;
	for (int row = 0; row < parts->row_count; row++)
		sum_ns += number_called(parts, row, "mean_ns", &mean_ns) ? mean_ns : 0;
	return sum_ns;
}

static const char *why_torn(const struct whole_steps *whole)
{
	if (whole->has_any)
		return NULL;
	return whole->lost_work
	               ? "the input is cut off or damaged, or the profiler lost kernels: they are lost all over it"
	               : "how long kernels, copies or fills took is not known, as their durations are lost all over the "
	                 "input";
}

/* Returns the replay of the run; NULL: it has none. Without the work that was lost a replay is wrong, so rules get no
 * table of it. */
static struct what_if *replayed(struct report *report, const char *torn)
{
	struct what_if *what_if = replayed_get(&report->context);

	if (torn)
		what_if->problem = torn;
	return what_if->problem ? NULL : what_if;
}

static void find_few(struct running *running, struct arena *arena)
{
	const struct step_times *times = report_step_times(running->report);

	for (uint32_t i = 0; i < times->span_count; i++)
		running->infers_phases |= times->spans[i].infers_phases;
	running->few = times->job_detailed && times->job_detailed < STEP_KINDS_LEAST
	                       ? step_kinds_operators_note(times, arena)
	                       : NULL;
}

/* Problems before hints; in both the largest saving first, those that save no time last. Savings of replays are in the
 * order of the lower ends of their intervals. */
static void rank(struct table *findings)
{
	table_sort(findings, FINDING_SAVING, false);
	table_sort(findings, FINDING_LOW, false);
	table_sort(findings, FINDING_SEVERITY, false);
}

enum status diagnosis_run(struct diagnosis *diagnosis, struct report *report, const struct rule_set *rules,
                          struct error *err)
{
	const struct query_limits limits = {RULE_SECONDS, (int64_t)256 << 20};
	const struct whole_steps whole = report_leave_out_damage(report);
	const struct start_up start_up = report_leave_out_start_up(report);
	struct running running = {.diagnosis = diagnosis, .report = report, .step_ns = diagnosis_mean_step(report)};
	double whole_ns;
	struct arena arena;
	enum status status = query_init(&running.query, report, &limits, err);

	if (status)
		return status;
	arena_init(&arena, 0);
	diagnosis->torn = why_torn(&whole);
	diagnosis->what_if = replayed(report, diagnosis->torn);
	diagnosis->unsound = replay_verdict_unsound(report);
	diagnosis->run = run_parts_get(&report->context);
	find_few(&running, &arena);
	table_init(&diagnosis->findings, "findings", "Findings", "what is wrong, what it costs and what to do");
	table_columns(&diagnosis->findings, finding_columns, FINDING_COLUMNS);
	table_init(&diagnosis->checks, "checks", "Rules", "which rules looked, and what came out");
	table_columns(&diagnosis->checks, check_columns, CHECK_COLUMNS);
	table_init(&diagnosis->verdict, "verdict", "Verdict", "what limits the run");
	table_init(&diagnosis->times, "times", "What it took",
	           "CPU time of the rules, and of the tables made for them");
	table_columns(&diagnosis->times, time_columns, TIME_COLUMNS);
	status = apply_rules(&running, rules, &arena, err);
	whole_ns = whole_of(&running);
	set_ratios(&running, whole_ns);
	rank(&diagnosis->findings);
	diagnosis->findings.empty = "nothing to fix here";
	if (!status)
		diagnosis_decide(diagnosis, report, rules, running.step_ns, whole_ns, &start_up, &whole);
	add_times_of_tables(diagnosis, report);
	query_release(&running.query);
	demangler_release(&running.demangler);
	arena_release(&arena);
	if (status)
		diagnosis_release(diagnosis);
	return status;
}

void diagnosis_release(struct diagnosis *diagnosis)
{
	table_release(&diagnosis->findings);
	table_release(&diagnosis->checks);
	table_release(&diagnosis->verdict);
	table_release(&diagnosis->times);
}
