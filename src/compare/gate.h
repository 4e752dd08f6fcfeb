/* SPDX-License-Identifier: Apache-2.0
 *
 * gate.h: turns a comparison into a decision: passed, failed or inconclusive, with one sentence. Exporters and the
 * exit status of `stepscope compare` use it.
 *
 *     gate_init(&gate, &comparison, has_limits ? &limits : NULL, GATE_REGRESSION);
 *     status = gate_status(&gate, err);
 *     gate_release(&gate);
 */
#ifndef COMPARE_GATE_H
#define COMPARE_GATE_H

#include "compare/limits.h"

enum gate_rule {
	GATE_REGRESSION, /* the verdict decides, and the limits if there are any */
	GATE_LIMITS,     /* only the limits decide */
	GATE_NEVER,      /* nothing fails */
};

enum gate_result {
	GATE_PASSED,
	GATE_FAILED,
	GATE_INCONCLUSIVE,
};

struct gate {
	struct table limits;                             /* of limits_check(); without rows if there are no limits */
	struct checked_limit checked[LIMIT_CHECK_COUNT]; /* by row of `limits` */
	enum gate_result result;
	enum gate_rule rule;
	const char *sentence; /* the reason; in the arena of `limits` */
};

/* Parses "regression", "limits" or "never". Returns false for other words. */
bool gate_rule_parse(const char *word, enum gate_rule *rule);
/* Returns "passed", "failed" or "inconclusive". */
const char *gate_result_name(enum gate_result result);

/* limits NULL: there are no limits. */
void gate_init(struct gate *gate, const struct comparison *comparison, const struct limits *limits,
               enum gate_rule rule);
void gate_release(struct gate *gate);

/* Returns STATUS_OK, STATUS_LIMIT or STATUS_INCONCLUSIVE; fills err for the latter two. */
enum status gate_status(const struct gate *gate, struct error *err) MUST_CHECK;

#endif
