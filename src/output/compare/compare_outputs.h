/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_outputs.h: a comparison for CI systems, one file compare_*.c per form. All numbers and sentences come from the tables of
 * the comparison and the gate; nothing is computed here. Names are escaped by escape.h.
 */
#ifndef OUTPUT_COMPARE_COMPARE_OUTPUTS_H
#define OUTPUT_COMPARE_COMPARE_OUTPUTS_H

#include "base/buffer.h"
#include "compare/gate.h"

struct compare_output {
	const struct comparison *comparison;
	const struct gate *gate;
	const char *name; /* of what is compared, for example a model: in titles and in the marker of a comment */
};

#define COMMENT_BYTES 65000   /* GitHub takes 65,536 characters */
#define SUMMARY_BYTES 1000000 /* 1 MiB per step */

/* Markdown for a comment on a pull request or a job's summary: the verdict first, then what changed; the tables are cut so that it is at
 * most so many bytes. The first line is a comment that says which comment to replace next time. */
void compare_markdown(struct buffer *out, const struct compare_output *of, size_t most_bytes);

/* JUnit XML: one case per metric and per limit; regressions fail, what is not known is skipped. */
void compare_junit(struct buffer *out, const struct compare_output *of);

/* Workflow commands of GitHub: one annotation per regression, broken limit and open question. */
void compare_annotations(struct buffer *out, const struct compare_output *of);

/* Lines for $GITHUB_OUTPUT: result, verdict, change. */
void compare_github_output(struct buffer *out, const struct compare_output *of);

/* What github-action-benchmark reads: customBiggerIsBetter or customSmallerIsBetter, the new side's numbers. */
void compare_benchmark(struct buffer *out, const struct compare_output *of, bool is_bigger_better);

/* The tables of rlhf-canary's notebook, and why. */
void compare_canary(struct buffer *out, const struct compare_output *of);

/* The limits as rlhf-canary's ComparisonReport, JSON. */
void compare_canary_report(struct buffer *out, const struct compare_output *of);

/* "+13.4 %"; "-". */
void change_for_people(struct buffer *out, const struct table *metrics, int row);
/* Of the table `functions`: by 0.1 points at least, or with what it calls by 1. */
bool function_has_changed(const struct table *functions, int row);
#define FUNCTIONS_ARE_THE_SAME "no function's share of the samples changed by 0.1 points, or by 1 with what it calls"
/* A cell of text, "" when it is missing. */
const char *compare_text(const struct table *table, int row, int column);

#endif
