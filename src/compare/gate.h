/* SPDX-License-Identifier: Apache-2.0
 *
 * gate.h: what a comparison means to who must decide: passed, failed or inconclusive, with one sentence. Exporters and the exit
 * status of `stepscope compare` take it from here.
 *
 *     gate_init(&gate, &comparison, has_limits ? &limits : NULL, GATE_REGRESSION);
 *     status = gate_status(&gate, err);
 *     gate_release(&gate);
 */
#ifndef COMPARE_GATE_H
#define COMPARE_GATE_H

#include "compare/limits.h"

enum gate_rule {
	GATE_REGRESSION, /* the verdict decides, and the limits where there are any */
	GATE_LIMITS,     /* the limits alone */
	GATE_NEVER,      /* nothing fails */
};

enum gate_result {
	GATE_PASSED,
	GATE_FAILED,
	GATE_INCONCLUSIVE,
};

struct gate {
	struct table limits;                             /* of limits_check(); without rows when there are none */
	struct checked_limit checked[LIMIT_CHECK_COUNT]; /* by its rows */
	enum gate_result result;
	enum gate_rule rule;
	const char *sentence; /* why; in the arena of `limits` */
};

/* "regression", "limits", "never"; false: it is none. */
bool gate_rule_parse(const char *word, enum gate_rule *rule);
/* "passed", "failed", "inconclusive" */
const char *gate_result_name(enum gate_result result);

/* limits NULL: none. */
void gate_init(struct gate *gate, const struct comparison *comparison, const struct limits *limits,
               enum gate_rule rule);
void gate_release(struct gate *gate);

/* STATUS_OK, STATUS_LIMIT or STATUS_INCONCLUSIVE; err is filled for the latter two. */
enum status gate_status(const struct gate *gate, struct error *err) MUST_CHECK;

#endif
