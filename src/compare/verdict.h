/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict.h: the answer of a comparison as values: metric, result, the sentence and its numbers, the cause of the
 * change, and what would settle it. There are no words here: compare/verdict_sentences.h has them.
 *
 *     struct verdict verdict = verdict_decide(&comparison, &sides);
 *     verdict.cause = verdict_find_cause(&comparison, &sides);
 *
 * Rows are rows of the tables of the comparison.
 */
#ifndef COMPARE_VERDICT_H
#define COMPARE_VERDICT_H

#include "compare/compare_metric.h"
#include "compare/compare_result.h"
#include "compare/verdict_cause.h"

#include <stddef.h>
#include <stdint.h>

struct compared_sides;

enum side {
	SIDE_BASE,
	SIDE_NEW,
	SIDES
};

enum verdict_answer {
	/* for a side without steps: */
	ANSWER_NOTHING,
	ANSWER_TABLES, /* other tables have rows */
	ANSWER_WHOLE,  /* `contributions` are of whole recordings */
	/* for snapshots of memory: */
	ANSWER_PEAK_WITHOUT, /* without an interval */
	ANSWER_PEAK_OPEN,
	ANSWER_PEAK_SAME,
	ANSWER_PEAK_SMALL,
	ANSWER_PEAK_CHANGED,
	/* for a mean that is certainly worse, while the first metric is not: */
	ANSWER_MEAN,
	ANSWER_PERIOD,
	ANSWER_RATE,
	/* for the first metric: */
	ANSWER_UNLIKE,
	ANSWER_OTHER_WORK,
	ANSWER_ONE_STEP,
	ANSWER_OPEN,
	ANSWER_SAME,
	ANSWER_SMALL,
	ANSWER_CHANGED,
};

enum verdict_subject { /* the thing that takes the time */
	SUBJECT_STEP,
	SUBJECT_TOKEN,
	SUBJECT_SAMPLE,
	SUBJECT_FASTEST, /* one of the fastest steps */
};

enum verdict_middle { /* name of a typical step in a sentence about the first metric */
	MIDDLE_STEP,
	MIDDLE_OF_WORK, /* per token or sample */
	MIDDLE_EVENED,  /* steps of two kinds, evened out */
};

enum verdict_explanation {
	EXPLAINED_BY_NOTHING,
	EXPLAINED_BY_WORK,  /* the rows of `differences` about work */
	EXPLAINED_BY_FACTS, /* the rows that matter */
};

enum verdict_needed {
	NEEDED_NOTHING,   /* it is settled */
	NEEDED_SAME_WORK, /* the work differs, so more runs do not settle it */
	NEEDED_SNAPSHOTS,
	NEEDED_ALIKE, /* operators recorded on both sides, or on neither */
	NEEDED_AMOUNT,
	NEEDED_MORE_STEPS,
	NEEDED_QUIET_MACHINE,
	NEEDED_LONGER_RUNS, /* needs needed_steps, or needed_runs */
	NEEDED_RUNS,
};

enum verdict_scatter { /* the source of the noise from run to run */
	SCATTER_UNKNOWN,
	SCATTER_OF_PAIRS,
	SCATTER_OF_REPEATS,
	SCATTER_OF_KEPT, /* runs of the history */
	SCATTER_ASSUMED,
};

struct verdict_noise {
	enum verdict_scatter scatter;
	double ratio;                         /* standard deviation from run to run */
	bool is_uneven, is_contended, is_few; /* why more noise is assumed */
	double luck; /* this much of the difference may be luck of a base that was chosen as the fastest; 0: none */
	size_t best_of;
	bool is_running; /* the fastest steps are compared without their waits for a CPU */
};

enum verdict_number { /* the number that represents a run */
	NUMBER_MEDIAN,
	NUMBER_EVENED,
	NUMBER_MEAN,
	NUMBER_FASTEST,
	NUMBER_PEAK,
};

enum verdict_test { /* the source of the interval */
	TEST_UNKNOWN,
	TEST_PAIRS_STUDENT,
	TEST_PAIRS_RANKS,
	TEST_REPEATS_STUDENT,
	TEST_REPEATS_RANKS,
	TEST_BOOTSTRAP,
};

struct verdict_trouble { /* trouble of the runs of one side */
	size_t first;    /* the first run that is damaged or failed */
	size_t count;    /* number of such runs; 0: none */
};

#define VERDICT_OTHERS 2
#define VERDICT_SLOWER 3
#define VERDICT_MEMORY 2

struct verdict {
	enum compare_result result;
	enum compare_metric metric; /* the first, unless a mean is certainly worse */
	int row;                    /* of `metrics` */
	enum compare_result first;  /* the result of the first metric */
	enum verdict_answer answer;
	enum verdict_subject subject;
	enum verdict_middle middle;
	enum verdict_number number;
	double base, new;                         /* of the metric */
	double ratio;                             /* new over base minus 1; 0 if it is unknown */
	double low, high, same_low, same_high;    /* its 95 % and 90 % intervals */
	int others[VERDICT_OTHERS], others_count; /* rows of metrics that are settled although the answer is open */
	int worse[VERDICT_SLOWER + VERDICT_MEMORY],
		worse_count; /* rows of metrics that are worse although the answer is not a regression */
	bool is_unchecked;   /* the answer assumes that facts are equal that could not be compared */
	enum verdict_explanation explanation;
	struct verdict_cause cause; /* set from verdict_find_cause() */
	enum verdict_needed needed;
	int64_t needed_runs, needed_steps;
	struct verdict_noise noise;
	enum verdict_test test;
	struct verdict_trouble damage[SIDES];
	struct verdict_trouble failure[SIDES]; /* runs that did not complete */
	bool is_divergence_known;              /* a new run reports whether its loss diverged */
	struct verdict_trouble diverged;       /* of the new side */
};

/* Decides everything but the cause. It uses the metrics, the differences, and what `sides` holds about both. */
struct verdict verdict_decide(const struct comparison *comparison, const struct compared_sides *sides);

#endif
