/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_github.c: a comparison as workflow commands (annotations) and as outputs of a step of GitHub Actions. GitHub
 * shows at most ten errors and ten warnings of a step; a notice says that there are more.
 */
#include "output/compare/compare_outputs.h"
#include "output/compare/comparison_text.h"
#include "output/text/escape.h"

#define MOST_ANNOTATIONS 10

enum github_level {
	LEVEL_NONE,
	LEVEL_ERROR,
	LEVEL_WARNING
};

struct annotations {
	struct buffer *out;
	bool may_fail; /* not with --fail-on never */
	int counts[3]; /* by level */
};

static enum github_level level_of(enum compare_result result)
{
	switch (result) {
	case RESULT_REGRESSION:
	case RESULT_BROKEN:
		return LEVEL_ERROR;
	case RESULT_INCONCLUSIVE:
	case RESULT_WARNING:
	case RESULT_NOT_COMPARABLE:
		return LEVEL_WARNING;
	default:
		return LEVEL_NONE;
	}
}

static void annotate(struct annotations *to, enum github_level level, const char *title, const char *message)
{
	if (level == LEVEL_ERROR && !to->may_fail)
		level = LEVEL_WARNING;
	if (level == LEVEL_NONE || to->counts[level]++ >= MOST_ANNOTATIONS)
		return;
	buffer_printf(to->out, "::%s title=", level == LEVEL_ERROR ? "error" : "warning");
	escape_workflow_property(to->out, title);
	buffer_add_text(to->out, "::");
	escape_workflow_message(to->out, message);
	buffer_add_text(to->out, "\n");
}

static void annotate_metric(struct annotations *to, const struct comparison *comparison, int row)
{
	enum compare_result result = comparison->metric_results[row].result;
	const struct table *metrics = &comparison->metrics;
	struct buffer title, message;

	buffer_init(&title, 1 << 16);
	buffer_init(&message, 1 << 16);
	buffer_printf(&title, "%s: %s", compare_result_name(result), compare_text(metrics, row, METRIC_TITLE));
	comparison_value(&message, metrics, row, METRIC_BASE);
	buffer_add_text(&message, " -> ");
	comparison_value(&message, metrics, row, METRIC_NEW);
	buffer_add_text(&message, ", ");
	change_for_people(&message, metrics, row);
	buffer_printf(&message, "; %s", compare_text(metrics, row, METRIC_REASON));
	annotate(to, level_of(result), title.data, message.data);
	buffer_release(&title);
	buffer_release(&message);
}

void compare_annotations(struct buffer *out, const struct compare_output *of)
{
	const struct table *limits = &of->gate->limits;
	struct annotations to = {.out = out, .may_fail = of->gate->rule != GATE_NEVER};

	for (int row = 0; row < limits->row_count; row++) {
		enum compare_result result = of->gate->checked[row].result;
		struct buffer title;

		buffer_init(&title, 1 << 16);
		buffer_printf(&title, "limit %s: %s", compare_result_name(result),
		              compare_text(limits, row, CHECKED_TITLE));
		annotate(&to, level_of(result), title.data, compare_text(limits, row, CHECKED_MESSAGE));
		buffer_release(&title);
	}
	for (int row = 0; row < of->comparison->metrics.row_count && of->gate->rule != GATE_LIMITS; row++)
		annotate_metric(&to, of->comparison, row);
	if (to.counts[LEVEL_ERROR] > MOST_ANNOTATIONS || to.counts[LEVEL_WARNING] > MOST_ANNOTATIONS)
		buffer_add_text(out, "::notice title=stepscope::not all findings are annotated\n");
}

/* Keys and values come from stepscope and have no newlines, so no delimiter is needed. */
void compare_github_output(struct buffer *out, const struct compare_output *of)
{
	const struct table *verdict = &of->comparison->verdict;
	double ratio;

	buffer_printf(out, "result=%s\nverdict=%s\n", gate_result_name(of->gate->result),
	              compare_result_name(of->comparison->decided.result));
	if (table_number(verdict, 0, COMPARISON_RATIO, &ratio))
		buffer_printf(out, "change_ratio=%.6g\n", ratio);
}
