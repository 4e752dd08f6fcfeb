/* SPDX-License-Identifier: Apache-2.0
 *
 * gate.c: see the header.
 */
#include "compare/gate.h"

#include <string.h>

bool gate_rule_parse(const char *word, enum gate_rule *rule)
{
	static const char *const words[] = {
		[GATE_REGRESSION] = "regression", [GATE_LIMITS] = "limits", [GATE_NEVER] = "never"};

	for (int i = 0; i < (int)(sizeof(words) / sizeof(words[0])); i++) {
		if (strcmp(words[i], word) != 0)
			continue;
		*rule = (enum gate_rule)i;
		return true;
	}
	return false;
}

const char *gate_result_name(enum gate_result result)
{
	return result == GATE_PASSED ? "passed" : result == GATE_FAILED ? "failed" : "inconclusive";
}

static const char *verdict_text(const struct comparison *comparison, int column)
{
	const char *text = table_text(&comparison->verdict, 0, column);

	return text ? text : "";
}

static void gate_decide(struct gate *gate, enum gate_result result, const char *sentence)
{
	gate->result = result;
	gate->sentence = arena_dup(&gate->limits.arena, sentence);
}

/* The first limit with this result; -1: none. */
static int find_limit(const struct table *limits, const char *result)
{
	for (int row = 0; row < limits->row_count; row++) {
		if (!strcmp(table_get(limits, row, CHECKED_RESULT)->text, result))
			return row;
	}
	return -1;
}

/* Step time must be known, but of snapshots, which have none; what else was not measured is only said. */
static int find_open(const struct table *limits, bool wants_steps)
{
	int row = find_limit(limits, LIMIT_INCONCLUSIVE);

	row = row < 0 ? find_limit(limits, LIMIT_NOT_COMPARABLE) : row;
	if (row >= 0)
		return row;
	row = find_limit(limits, LIMIT_NOT_MEASURED);
	while (wants_steps && row >= 0 && row < limits->row_count) {
		if (!strcmp(table_get(limits, row, CHECKED_NAME)->text, "step_time") &&
		    !strcmp(table_get(limits, row, CHECKED_RESULT)->text, LIMIT_NOT_MEASURED))
			return row;
		row++;
	}
	return -1;
}

static void decide_limits(struct gate *gate, const struct comparison *comparison)
{
	bool wants_steps = strcmp(verdict_text(comparison, COMPARISON_METRIC), "device_memory") != 0;
	const struct table *limits = &gate->limits;
	int row = find_limit(limits, LIMIT_BROKEN);

	gate_decide(gate, GATE_PASSED, limits->row_count ? "all limits are kept" : "there are no limits");
	if (row >= 0) {
		gate_decide(gate, GATE_FAILED, table_get(limits, row, CHECKED_MESSAGE)->text);
		return;
	}
	row = find_open(limits, wants_steps);
	if (row >= 0)
		gate_decide(gate, GATE_INCONCLUSIVE, table_get(limits, row, CHECKED_MESSAGE)->text);
}

static void decide_verdict(struct gate *gate, const struct comparison *comparison)
{
	const char *result = verdict_text(comparison, COMPARISON_RESULT);

	if (!strcmp(result, RESULT_REGRESSION))
		gate_decide(gate, GATE_FAILED, verdict_text(comparison, COMPARISON_SENTENCE));
	else if (gate->result == GATE_PASSED && strcmp(result, RESULT_IMPROVEMENT) != 0 &&
	         strcmp(result, RESULT_SAME) != 0)
		gate_decide(gate, GATE_INCONCLUSIVE, verdict_text(comparison, COMPARISON_SENTENCE));
}

void gate_init(struct gate *gate, const struct comparison *comparison, const struct limits *limits, enum gate_rule rule)
{
	*gate = (struct gate){.rule = rule};
	if (limits)
		limits_check(limits, comparison, &gate->limits);
	else
		limits_none(&gate->limits);
	decide_limits(gate, comparison);
	if (rule == GATE_NEVER && gate->result != GATE_PASSED)
		gate_decide(gate, GATE_PASSED,
		            arena_printf(&gate->limits.arena, "nothing fails (--fail-on never): %s", gate->sentence));
	if (rule == GATE_NEVER)
		return;
	if (rule == GATE_REGRESSION && gate->result != GATE_FAILED)
		decide_verdict(gate, comparison);
	if (gate->result == GATE_PASSED && comparison->failure) /* its steps are those before it failed */
		gate_decide(gate, GATE_INCONCLUSIVE, comparison->failure);
	if (gate->result == GATE_PASSED && !limits)
		gate_decide(gate, GATE_PASSED, verdict_text(comparison, COMPARISON_SENTENCE));
}

void gate_release(struct gate *gate)
{
	table_release(&gate->limits);
	*gate = (struct gate){0};
}

enum status gate_status(const struct gate *gate, struct error *err)
{
	if (gate->rule == GATE_NEVER || gate->result == GATE_PASSED)
		return STATUS_OK;
	return error_set(err, gate->result == GATE_FAILED ? STATUS_LIMIT : STATUS_INCONCLUSIVE, "%s", gate->sentence);
}
