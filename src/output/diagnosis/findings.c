/* SPDX-License-Identifier: Apache-2.0
 *
 * findings.c: see the header. All numbers come from the tables of the diagnosis.
 */
#include "output/diagnosis/findings.h"

#include "base/text.h"
#include "output/text/cells.h"
#include "output/text/json.h"

#include <string.h>

#define LABEL_WIDTH 10
#define INDENT 7
#define LEFT_OUT "  left out: "
#define RUN "  the run: "
#define HEAD_BYTES 1000 /* kept bytes at the start and the end of a longer text */
#define TAIL_BYTES 200

static void findings_add_line(struct buffer *out, const char *label, const char *text, const struct text_style *style)
{
	struct buffer clean;

	buffer_init(&clean, 1 << 20);
	text_for_people(&clean, text);
	text_shorten(&clean, HEAD_BYTES, TAIL_BYTES);
	buffer_printf(out, "%*s%-*s", INDENT, "", LABEL_WIDTH, label);
	text_wrapped(out, clean.data, INDENT + LABEL_WIDTH, INDENT + LABEL_WIDTH, style);
	buffer_release(&clean);
}

/* "up to 31.55 ms of a step, 23.9 %" */
static void say_saving(struct buffer *text, const struct table *table, int row, int saving, int ratio,
                       const char *whole, const char *before)
{
	buffer_add_text(text, before);
	cell_for_people(text, table, row, saving);
	buffer_printf(text, " of %s", whole);
	if (!table_get(table, row, ratio)->has_value)
		return;
	buffer_add_text(text, ", ");
	cell_for_people(text, table, row, ratio);
}

/* " (46.7 % to 72.4 %)" */
static void say_interval(struct buffer *text, const struct table *findings, int row)
{
	buffer_add_text(text, " (");
	cell_for_people(text, findings, row, FINDING_LOW);
	buffer_add_text(text, " to ");
	cell_for_people(text, findings, row, FINDING_HIGH);
	buffer_add_text(text, ")");
}

static void add_saving(struct buffer *out, const struct table *findings, int row, const char *whole,
                       const struct text_style *style)
{
	struct buffer text;

	if (!table_get(findings, row, FINDING_SAVING)->has_value)
		return;
	buffer_init(&text, 1 << 14);
	bool is_replayed = table_get(findings, row, FINDING_LOW)->has_value;
	say_saving(&text, findings, row, FINDING_SAVING, FINDING_RATIO, whole, is_replayed ? "" : "up to ");
	if (is_replayed)
		say_interval(&text, findings, row);
	if (table_text(findings, row, FINDING_SAME))
		buffer_printf(&text, "; may overlap with %s", table_text(findings, row, FINDING_SAME));
	findings_add_line(out, "saves", text.data, style);
	buffer_release(&text);
}

static void add_finding(struct buffer *out, const struct table *findings, int row, const char *whole,
                        const struct text_style *style)
{
	buffer_add_text(out, "\n");
	text_heading(out, table_text(findings, row, FINDING_RULE), style);
	buffer_printf(out, "  %s   %s, %s confidence\n", table_text(findings, row, FINDING_TITLE),
	              table_text(findings, row, FINDING_SEVERITY), table_text(findings, row, FINDING_CERTAINTY));
	if (table_text(findings, row, FINDING_PLACE))
		findings_add_line(out, "where", table_text(findings, row, FINDING_PLACE), style);
	if (table_text(findings, row, FINDING_EVIDENCE))
		findings_add_line(out, "evidence", table_text(findings, row, FINDING_EVIDENCE), style);
	add_saving(out, findings, row, whole, style);
	findings_add_line(out, "try", table_text(findings, row, FINDING_ADVICE), style);
	findings_add_line(out, "wrong if", table_text(findings, row, FINDING_WRONG), style);
}

static int findings_count_of(const struct table *table, int column, const char *text)
{
	int count = 0;

	for (int row = 0; row < table->row_count; row++)
		count += !strcmp(table_text(table, row, column), text);
	return count;
}

static void add_headline(struct buffer *out, const char *headline, const struct text_style *style)
{
	struct buffer clean;

	if (!headline)
		return;
	buffer_init(&clean, 1 << 20);
	text_for_people(&clean, headline);
	text_shorten(&clean, HEAD_BYTES, TAIL_BYTES);
	text_wrapped(out, clean.data, 2, 0, style);
	buffer_release(&clean);
}

static void findings_add_verdict(struct buffer *out, const struct table *verdict, const struct text_style *style)
{
	add_headline(out, table_text(verdict, 0, VERDICT_HEADLINE), style);
	text_heading(out, table_text(verdict, 0, VERDICT_VERDICT), style);
	buffer_add_text(out, ": ");
	text_wrapped(out, table_text(verdict, 0, VERDICT_SENTENCE), 2,
	             (int)strlen(table_text(verdict, 0, VERDICT_VERDICT)) + 2, style);
	if (table_text(verdict, 0, VERDICT_PARTS)) {
		const char *whole = table_text(verdict, 0, VERDICT_WHOLE);
		size_t start = out->length;

		buffer_printf(out, "  %s: ", whole);
		text_wrapped(out, table_text(verdict, 0, VERDICT_PARTS), 10, (int)(out->length - start), style);
	}
	if (table_text(verdict, 0, VERDICT_RUN)) {
		buffer_add_text(out, RUN);
		text_wrapped(out, table_text(verdict, 0, VERDICT_RUN), 10, (int)strlen(RUN), style);
	}
	if (table_text(verdict, 0, VERDICT_LEFT_OUT)) {
		buffer_add_text(out, LEFT_OUT);
		text_wrapped(out, table_text(verdict, 0, VERDICT_LEFT_OUT), 10, (int)strlen(LEFT_OUT), style);
	}
}

static void add_counts(struct buffer *out, const struct diagnosis *diagnosis)
{
	int problems = findings_count_of(&diagnosis->findings, FINDING_SEVERITY, "problem");
	int hints = findings_count_of(&diagnosis->findings, FINDING_SEVERITY, "hint");
	int quiet = findings_count_of(&diagnosis->checks, CHECK_RESULT, CHECK_NOTHING);

	buffer_printf(out, "\n%d problem%s, %d hint%s; %d rule%s found nothing\n", problems, problems == 1 ? "" : "s",
	              hints, hints == 1 ? "" : "s", quiet, quiet == 1 ? "" : "s");
}

/* Adds the combined saving if several findings save time. */
static void add_together(struct buffer *out, const struct diagnosis *diagnosis, const struct text_style *style)
{
	const struct table *findings = &diagnosis->findings, *verdict = &diagnosis->verdict;
	struct buffer text;
	int count = 0;

	for (int row = 0; row < findings->row_count; row++)
		count += table_get(findings, row, FINDING_SAVING)->has_value;
	if (count < 2)
		return;
	buffer_init(&text, 1 << 10);
	buffer_add_text(&text, "Combined saving: ");
	say_saving(&text, verdict, 0, VERDICT_SAVING, VERDICT_SAVING_RATIO, table_text(verdict, 0, VERDICT_SAVING_OF),
	           diagnosis->what_if ? "" : "up to ");
	buffer_add_text(&text, diagnosis->what_if ? "; replayed without all these costs at once"
	                                          : "; overlapping findings are counted once");
	text_wrapped(out, text.data, 2, 0, style);
	buffer_release(&text);
}

/* Adds the ids of all rules with the reason of that row. Only ids, because there are many; --list explains the
 * rules. */
static void add_rules_of(struct buffer *out, const struct table *checks, int row, const struct text_style *style)
{
	const char *reason = table_text(checks, row, CHECK_REASON);
	struct buffer ids;

	buffer_init(&ids, 1 << 14);
	for (int other = row; other < checks->row_count; other++) {
		const char *its = table_text(checks, other, CHECK_REASON);

		if (its && !strcmp(its, reason))
			buffer_printf(&ids, "%s%s", ids.length ? " " : "", table_text(checks, other, CHECK_RULE));
	}
	buffer_add_text(out, "    ");
	text_wrapped(out, ids.data, 4, 4, style);
	buffer_release(&ids);
}

static bool is_first_of_its_reason(const struct table *checks, int row)
{
	for (int before = 0; before < row; before++) {
		const char *reason = table_text(checks, before, CHECK_REASON);

		if (reason && !strcmp(reason, table_text(checks, row, CHECK_REASON)))
			return false;
	}
	return true;
}

/* Groups rules by reason, because many rules need the same data. */
static void add_silent(struct buffer *out, const struct table *checks, const struct text_style *style)
{
	bool is_first = true;

	for (int row = 0; row < checks->row_count; row++) {
		if (!table_text(checks, row, CHECK_REASON) || !is_first_of_its_reason(checks, row))
			continue;
		if (is_first)
			buffer_add_text(out, "\nCannot tell (stepscope diagnose --list describes each rule)\n");
		is_first = false;
		buffer_add_text(out, "  ");
		text_wrapped(out, table_text(checks, row, CHECK_REASON), 2, 2, style);
		add_rules_of(out, checks, row, style);
	}
}

void findings_text(struct buffer *out, const struct diagnosis *diagnosis, const struct text_style *style)
{
	const struct table *findings = &diagnosis->findings;
	bool is_unknown = !strcmp(table_text(&diagnosis->verdict, 0, VERDICT_VERDICT), "unknown");

	findings_add_verdict(out, &diagnosis->verdict, style);
	for (int row = 0; row < findings->row_count; row++)
		add_finding(out, findings, row, table_text(&diagnosis->verdict, 0, VERDICT_SAVING_OF), style);
	if (!findings->row_count && !is_unknown)
		buffer_printf(out, "%s\n", findings->empty);
	add_counts(out, diagnosis);
	add_together(out, diagnosis, style);
	add_silent(out, &diagnosis->checks, style);
}

void findings_times(struct buffer *out, const struct diagnosis *diagnosis, const struct text_style *style)
{
	const struct text_view view = {.has_heading = true};

	buffer_add_text(out, "\n");
	text_heading(out, diagnosis->times.title, style);
	buffer_add_text(out, "\n");
	text_table(out, &diagnosis->times, &view, style);
}

/* null: the run has no replay, or no profiler whose cost its rows carry. */
static void add_step_without_profiler(struct json_writer *json, const struct what_if *what_if)
{
	if (!what_if || !what_if->has_profiler) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	json_key(json, "low"), json_double(json, what_if->low_ns);
	json_key(json, "high"), json_double(json, what_if->high_ns);
	json_object_end(json);
}

/* A part that was not measured has null, and the reason. */
static void add_run_part(struct json_writer *json, const struct run_parts *run, enum run_part part)
{
	const char *missing = run->unknown ? run->unknown : run->missing[part];

	json_key(json, run_part_key(part)), json_object_begin(json);
	json_key(json, "total_ns");
	if (missing)
		json_null(json);
	else
		json_double(json, run->ns[part]);
	json_key(json, "ratio");
	if (missing || !(run->wall_ns > 0))
		json_null(json);
	else
		json_double(json, run->ns[part] / run->wall_ns);
	if (missing)
		json_key(json, "reason"), json_string(json, missing);
	json_object_end(json);
}

static void add_run(struct json_writer *json, const struct run_parts *run)
{
	json_object_begin(json);
	json_key(json, "wall_ns");
	if (run->unknown)
		json_null(json);
	else
		json_double(json, run->wall_ns);
	if (run->unknown)
		json_key(json, "reason"), json_string(json, run->unknown);
	json_key(json, "parts"), json_object_begin(json);
	for (enum run_part part = 0; part < RUN_PART_COUNT; part++)
		add_run_part(json, run, part);
	json_object_end(json), json_object_end(json);
}

void findings_json(struct buffer *out, const struct diagnosis *diagnosis, const char *run, bool has_times)
{
	const struct table *const tables[] = {&diagnosis->findings, &diagnosis->checks, &diagnosis->times};
	size_t count = sizeof(tables) / sizeof(tables[0]) - !has_times;
	struct json_writer json;

	json_writer_init(&json, out, JSON_PRETTY);
	json_object_begin(&json);
	json_key(&json, "schema"), json_string(&json, "stepscope.diagnosis/1");
	json_key(&json, "run_id"), json_string(&json, run);
	json_key(&json, "step_without_profiler_ns"), add_step_without_profiler(&json, diagnosis->what_if);
	json_key(&json, "run"), add_run(&json, diagnosis->run);
	json_key(&json, "verdict"), json_row(&json, &diagnosis->verdict, 0);
	for (size_t i = 0; i < count; i++)
		json_key(&json, tables[i]->name), json_rows(&json, tables[i]);
	json_object_end(&json);
	buffer_add_text(out, "\n");
}

void findings_rules(struct buffer *out, const struct rule_set *rules, const struct text_style *style)
{
	for (int i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->rules[i];

		text_heading(out, rule->id, style);
		buffer_printf(out, "  %s   %s\n", rule->title, rule_severity_name(rule->severity));
		for (int t = 0; t < rule->threshold_count; t++) {
			const struct rule_threshold *threshold = &rule->thresholds[t];
			size_t start = out->length;

			buffer_printf(out, "%*s%s = %g: ", INDENT, "", threshold->name, threshold->value);
			text_wrapped(out, threshold->source, INDENT + 2, (int)(out->length - start), style);
		}
	}
}
