/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_outputs.h: a comparison for CI systems, one file compare_*.c per format. All numbers and sentences come from
 * the tables of the comparison and the gate; nothing is computed here. Names are escaped by escape.h.
 */
#ifndef OUTPUT_COMPARE_COMPARE_OUTPUTS_H
#define OUTPUT_COMPARE_COMPARE_OUTPUTS_H

#include "base/buffer.h"
#include "compare/gate.h"

struct compare_output {
	const struct comparison *comparison;
	const struct gate *gate;
	const char *name; /* of the compared thing, for example a model: for titles and the marker of a comment */
};

#define COMMENT_BYTES 65000   /* GitHub accepts 65,536 characters */
#define SUMMARY_BYTES 1000000 /* GitHub accepts 1 MiB per step */

/* Writes Markdown for a comment on a pull request or a job's summary: the verdict first, then the changes. The tables
 * are cut so that the text has at most `most_bytes`. The first line is an HTML comment that identifies the comment to
 * replace next time. */
void compare_markdown(struct buffer *out, const struct compare_output *of, size_t most_bytes);

/* Writes JUnit XML with one case per metric and per limit. Regressions fail, unknown results are skipped. */
void compare_junit(struct buffer *out, const struct compare_output *of);

/* Writes workflow commands of GitHub: one annotation per regression, broken limit and open question. */
void compare_annotations(struct buffer *out, const struct compare_output *of);

/* Writes lines for $GITHUB_OUTPUT: result, verdict, change_ratio. */
void compare_github_output(struct buffer *out, const struct compare_output *of);

/* Writes the new side's numbers for github-action-benchmark: customBiggerIsBetter or customSmallerIsBetter. */
void compare_benchmark(struct buffer *out, const struct compare_output *of, bool is_bigger_better);

/* Writes the tables of rlhf-canary's notebook, and the verdict's sentences. */
void compare_canary(struct buffer *out, const struct compare_output *of);

/* Writes the limits as rlhf-canary's ComparisonReport, JSON. */
void compare_canary_report(struct buffer *out, const struct compare_output *of);

/* Writes "+13.4 % (+12.0 % to +14.8 %)", or "-" if the change is unknown. */
void change_for_people(struct buffer *out, const struct table *metrics, int row);
/* Returns true if the function's self share changed by at least 0.1 points, or its total share by at least 1. */
bool function_has_changed(const struct table *functions, int row);
#define FUNCTIONS_ARE_THE_SAME "no function's share of the samples changed by 0.1 points (self) or 1 point (total)"
/* Returns a cell of text, or "" if it is missing. */
const char *compare_text(const struct table *table, int row, int column);

#endif
