/* SPDX-License-Identifier: Apache-2.0
 *
 * rule_set.h: the rules of a diagnosis: those built into the program (rules/), the user's own, and thresholds changed in a
 * file of YAML.
 *
 *     struct rule_set rules;
 *     status = rule_set_init(&rules, err);
 *     status = rule_set_add_folder(&rules, "my-rules", err);
 *     status = rule_set_read_thresholds(&rules, "thresholds.yaml", err);
 *     rule_set_release(&rules);
 */
#ifndef DIAGNOSIS_RULE_SET_H
#define DIAGNOSIS_RULE_SET_H

#include "diagnosis/rule.h"

#define RULE_SET_RULES 256

struct rule_set {
	struct arena arena;
	struct rule rules[RULE_SET_RULES]; /* by id */
	int count;
	int folders; /* that were added */
};

enum status rule_set_init(struct rule_set *set, struct error *err) MUST_CHECK; /* with the built-in rules */
void rule_set_release(struct rule_set *set);

/* Adds the files *.sql of a folder; one with the id of a rule that is there replaces it, unless that is of the same
 * folder: which of the two counts would be chance. */
enum status rule_set_add_folder(struct rule_set *set, const char *path, struct error *err) MUST_CHECK;

/* `SS101: {share: 0.1}` changes a threshold. */
enum status rule_set_read_thresholds(struct rule_set *set, const char *path, struct error *err) MUST_CHECK;

#endif
