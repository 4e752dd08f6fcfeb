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

static void gate_decide(struct gate *gate, enum gate_result result, const char *sentence)
{
	gate->result = result;
	gate->sentence = arena_dup(&gate->limits.arena, sentence);
}

/* Decides by the verdict, with its sentence. */
static void gate_decide_answer(struct gate *gate, enum gate_result result, const struct comparison *comparison)
{
	gate_decide(gate, result, table_text(&comparison->verdict, 0, COMPARISON_SENTENCE));
}

/* Returns the first limit with this result; -1 if there is none. */
static int find_limit(const struct gate *gate, enum compare_result result)
{
	for (int row = 0; row < gate->limits.row_count; row++) {
		if (gate->checked[row].result == result)
			return row;
	}
	return -1;
}

/* Returns the first limit that leaves the answer open; -1 if there is none. The step time must be measured, except for
 * snapshots, which have none. Other limits may be unmeasured. */
static int find_open(const struct gate *gate, bool wants_steps)
{
	int row = find_limit(gate, RESULT_INCONCLUSIVE);

	if (row < 0)
		row = find_limit(gate, RESULT_NOT_COMPARABLE);
	for (int i = 0; row < 0 && wants_steps && i < gate->limits.row_count; i++)
		if (gate->checked[i].check == CHECK_STEP_TIME && gate->checked[i].result == RESULT_NOT_MEASURED)
			row = i;
	return row;
}

static void decide_limits(struct gate *gate, const struct comparison *comparison)
{
	bool wants_steps = comparison->decided.metric != COMPARE_DEVICE_MEMORY;
	const struct table *limits = &gate->limits;
	int row = find_limit(gate, RESULT_BROKEN);

	gate_decide(gate, GATE_PASSED, limits->row_count ? "all limits are kept" : "no limits were given");
	if (row >= 0) {
		gate_decide(gate, GATE_FAILED, table_text(limits, row, CHECKED_MESSAGE));
		return;
	}
	row = find_open(gate, wants_steps);
	if (row >= 0)
		gate_decide(gate, GATE_INCONCLUSIVE, table_text(limits, row, CHECKED_MESSAGE));
}

static void decide_verdict(struct gate *gate, const struct comparison *comparison)
{
	enum compare_result result = comparison->decided.result;

	if (result == RESULT_REGRESSION)
		gate_decide_answer(gate, GATE_FAILED, comparison);
	else if (gate->result == GATE_PASSED && result != RESULT_IMPROVEMENT && result != RESULT_SAME)
		gate_decide_answer(gate, GATE_INCONCLUSIVE, comparison);
}

void gate_init(struct gate *gate, const struct comparison *comparison, const struct limits *limits, enum gate_rule rule)
{
	*gate = (struct gate){.rule = rule};
	if (limits)
		limits_check(limits, comparison, &gate->limits, gate->checked);
	else
		limits_none(&gate->limits);
	decide_limits(gate, comparison);
	if (rule == GATE_NEVER && gate->result != GATE_PASSED)
		gate_decide(gate, GATE_PASSED,
		            arena_printf(&gate->limits.arena, "passed because of --fail-on never: %s", gate->sentence));
	if (rule == GATE_NEVER)
		return;
	if (rule == GATE_REGRESSION && gate->result != GATE_FAILED)
		decide_verdict(gate, comparison);
	if (gate->result == GATE_PASSED && comparison->failure) /* its steps are only those before the failure */
		gate_decide(gate, GATE_INCONCLUSIVE, comparison->failure);
	if (gate->result == GATE_PASSED && !limits)
		gate_decide_answer(gate, GATE_PASSED, comparison);
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
