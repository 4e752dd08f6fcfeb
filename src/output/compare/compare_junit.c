/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_junit.c: a comparison as JUnit XML. It uses the elements and attributes that Jenkins, GitLab, Azure and
 * GitHub's actions all read; tests/data/junit.xsd lists them.
 */
#include "output/compare/compare_outputs.h"
#include "output/compare/comparison_text.h"
#include "output/text/escape.h"

enum junit_outcome {
	OUTCOME_PASSED,
	OUTCOME_FAILED,
	OUTCOME_SKIPPED
};

struct junit {
	struct buffer body;
	bool may_fail; /* not with --fail-on never */
	int tests, failures, skipped;
};

static enum junit_outcome outcome_of(enum compare_result result)
{
	switch (result) {
	case RESULT_REGRESSION:
	case RESULT_BROKEN:
		return OUTCOME_FAILED;
	case RESULT_SAME:
	case RESULT_IMPROVEMENT:
	case RESULT_CHANGED:
	case RESULT_KEPT:
		return OUTCOME_PASSED;
	default:
		return OUTCOME_SKIPPED;
	}
}

static void add_attribute(struct buffer *out, const char *name, const char *value)
{
	buffer_printf(out, " %s=\"", name);
	escape_xml(out, value);
	buffer_add_text(out, "\"");
}

/* Adds a test case; `text` is the detail of a failure. */
static void add_case(struct junit *junit, const char *suite, const char *name, double seconds,
                     enum compare_result result, const char *message, const char *text)
{
	enum junit_outcome outcome = outcome_of(result);

	if (outcome == OUTCOME_FAILED && !junit->may_fail)
		outcome = OUTCOME_SKIPPED;
	junit->tests++;
	junit->failures += outcome == OUTCOME_FAILED;
	junit->skipped += outcome == OUTCOME_SKIPPED;
	buffer_add_text(&junit->body, "    <testcase");
	add_attribute(&junit->body, "classname", suite);
	add_attribute(&junit->body, "name", name);
	buffer_printf(&junit->body, " time=\"%.9g\"", seconds);
	if (outcome == OUTCOME_PASSED) {
		buffer_add_text(&junit->body, "/>\n");
		return;
	}
	buffer_printf(&junit->body, ">\n      <%s", outcome == OUTCOME_FAILED ? "failure" : "skipped");
	if (outcome == OUTCOME_FAILED)
		add_attribute(&junit->body, "type", compare_result_name(result));
	add_attribute(&junit->body, "message", message);
	if (outcome == OUTCOME_FAILED) {
		buffer_add_text(&junit->body, ">");
		escape_xml(&junit->body, text);
		buffer_add_text(&junit->body, "</failure>\n    </testcase>\n");
	} else {
		buffer_add_text(&junit->body, "/>\n    </testcase>\n");
	}
}

static void add_metric(struct junit *junit, const struct comparison *comparison, int row)
{
	enum compare_result result = comparison->metric_results[row].result;
	const struct table *metrics = &comparison->metrics;
	const char *reason = compare_text(metrics, row, METRIC_REASON);
	bool is_time = comparison->metric_results[row].unit == UNIT_NS;
	struct buffer message, text;
	double ns = 0;

	buffer_init(&message, 1 << 16);
	buffer_init(&text, 1 << 16);
	buffer_printf(&message, "%s ", compare_text(metrics, row, METRIC_TITLE));
	if (outcome_of(result) == OUTCOME_FAILED)
		change_for_people(&message, metrics, row);
	else
		buffer_printf(&message, "%s: %s", compare_result_name(result), reason);
	comparison_value(&text, metrics, row, METRIC_BASE);
	buffer_add_text(&text, " -> ");
	comparison_value(&text, metrics, row, METRIC_NEW);
	buffer_printf(&text, "; %s", reason);
	if (is_time)
		table_number(metrics, row, METRIC_NEW, &ns);
	add_case(junit, "stepscope.compare", compare_text(metrics, row, METRIC_NAME), ns / 1e9, result, message.data,
	         text.data);
	buffer_release(&message);
	buffer_release(&text);
}

static void add_limit(struct junit *junit, const struct gate *gate, int row)
{
	const struct table *limits = &gate->limits;
	const char *message = compare_text(limits, row, CHECKED_MESSAGE);

	add_case(junit, "stepscope.limits", compare_text(limits, row, CHECKED_NAME), 0, gate->checked[row].result,
	         message, message);
}

/* Returns false if only the limits decide: a regression within the limits does not fail. */
static bool has_metrics(const struct gate *gate)
{
	return gate->rule != GATE_LIMITS;
}

static void add_property(struct buffer *out, const char *name, const char *value)
{
	buffer_add_text(out, "      <property");
	add_attribute(out, "name", name);
	add_attribute(out, "value", value);
	buffer_add_text(out, "/>\n");
}

static void add_properties(struct buffer *out, const struct comparison *comparison)
{
	buffer_add_text(out, "    <properties>\n");
	for (int row = 0; row < comparison->runs.row_count; row++)
		add_property(out, compare_text(&comparison->runs, row, RUNS_SIDE),
		             compare_text(&comparison->runs, row, RUNS_RUN));
	add_property(out, "verdict", compare_result_name(comparison->decided.result));
	buffer_add_text(out, "    </properties>\n");
}

static void add_counts(struct buffer *out, const struct junit *junit)
{
	buffer_printf(out, " tests=\"%d\" failures=\"%d\" errors=\"0\" skipped=\"%d\" time=\"0\">\n", junit->tests,
	              junit->failures, junit->skipped);
}

void compare_junit(struct buffer *out, const struct compare_output *of)
{
	struct junit junit = {.may_fail = of->gate->rule != GATE_NEVER};

	buffer_init(&junit.body, (size_t)1 << 28);
	for (int row = 0; row < of->comparison->metrics.row_count && has_metrics(of->gate); row++)
		add_metric(&junit, of->comparison, row);
	for (int row = 0; row < of->gate->limits.row_count; row++)
		add_limit(&junit, of->gate, row);
	buffer_add_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"stepscope\"");
	add_counts(out, &junit);
	buffer_add_text(out, "  <testsuite");
	add_attribute(out, "name", of->name);
	add_counts(out, &junit);
	add_properties(out, of->comparison);
	buffer_add(out, junit.body.data, junit.body.length);
	buffer_add_text(out, "  </testsuite>\n</testsuites>\n");
	buffer_release(&junit.body);
}
