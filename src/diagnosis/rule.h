/* SPDX-License-Identifier: Apache-2.0
 *
 * rule.h: a rule of the diagnosis: a comment that says what it is for, and one SELECT over the tables of a run. The header
 * is lines "-- key: value"; lines "--   more" go on with the value before. docs/rules.md explains the keys:
 *
 *     -- id: SS101
 *     -- title: The loop waits for data
 *     -- severity: problem
 *     -- verdict: data-bound
 *     -- needs: phases.ratio
 *     -- tells if: EXISTS (SELECT 1 FROM phases WHERE name = 'data')
 *     -- cannot tell: the program marks no waits for data
 *     -- threshold: share = 0.05 (the TensorBoard plugin's)
 *     -- advice: ...
 *     -- wrong: ...
 *     SELECT ... AS place, ... AS evidence, ... AS saving_ns, ... AS confidence FROM phases WHERE ratio > :share
 *
 * All texts live in the arena that rule_parse() is given.
 */
#ifndef DIAGNOSIS_RULE_H
#define DIAGNOSIS_RULE_H

#include "base/arena.h"
#include "base/error.h"

#include <stddef.h>

#define RULE_THRESHOLDS 16
#define RULE_BYTES 65536 /* of the longest rule */

enum rule_severity {
	RULE_HINT,
	RULE_PROBLEM,
};

struct rule_threshold {
	const char *name;   /* :name in the SELECT */
	double value;       /* in force */
	const char *source; /* who says so */
};

struct rule {
	const char *id, *title;
	enum rule_severity severity;
	const char *verdict;     /* what the run is when this takes most of a step, or NULL */
	const char *headline;    /* what is said before the verdict when it is found, or NULL */
	const char *needs;       /* tables and columns that must be measured: "phases.ratio, steps" */
	const char *tells_if;    /* a condition of SQL, or NULL: always */
	const char *cannot_tell; /* what is said when tells_if is false */
	const char *advice;
	const char *wrong; /* what would make the finding wrong */
	const char *sql;
	struct rule_threshold thresholds[RULE_THRESHOLDS];
	int threshold_count;
	const char *where; /* the file, or the name of a built-in one */
	int folder;        /* of a rule_set: 0 built in, 1, 2, ... as they were added */
};

/* STATUS_INPUT names `where` and the line. */
enum status rule_parse(struct rule *rule, struct arena *arena, const char *text, size_t length, const char *where,
                       struct error *err) MUST_CHECK;

const char *rule_severity_name(enum rule_severity severity); /* "problem", "hint" */

#endif
