/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_rule.c: reads any bytes as a rule and checks what the header promises of the rule or of the error.
 */
#include "diagnosis/rule.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

static void check_rule(const struct rule *rule)
{
	check(rule->id[0] && rule->title[0] && rule->needs[0] && rule->advice[0] && rule->wrong[0] && rule->sql[0]);
	check(!rule->tells_if == !rule->cannot_tell);
	check(rule->threshold_count >= 0 && rule->threshold_count <= RULE_THRESHOLDS);
	for (int i = 0; i < rule->threshold_count; i++)
		check(rule->thresholds[i].name[0] && rule->thresholds[i].source[0] &&
		      isfinite(rule->thresholds[i].value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rule rule;
	struct arena arena;
	struct error err = {0};
	char *exact = malloc(size + !size); /* no NUL behind it */
	enum status status;

	check(exact);
	memcpy(exact, data, size);
	arena_init(&arena, 0);
	status = rule_parse(&rule, &arena, exact, size, "input", &err);
	if (status)
		check(status == STATUS_INPUT && !strncmp(err.text, "rule 'input', line ", 19));
	else
		check_rule(&rule);
	arena_release(&arena);
	free(exact);
	return 0;
}
