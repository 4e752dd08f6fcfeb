/* SPDX-License-Identifier: Apache-2.0
 *
 * rule_set.c: see the header.
 */
#include "diagnosis/rule_set.h"

#include "base/options.h"
#include "base/yaml_flat.h"
#include "diagnosis/built_in.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rule *find_rule(struct rule_set *set, const char *id)
{
	for (int i = 0; i < set->count; i++) {
		if (!strcmp(set->rules[i].id, id))
			return &set->rules[i];
	}
	return NULL;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(((const struct rule *)a)->id, ((const struct rule *)b)->id);
}

static enum status add_rule(struct rule_set *set, const char *text, size_t length, const char *where, struct error *err)
{
	struct rule rule, *known;
	enum status status = rule_parse(&rule, &set->arena, text, length, where, err);

	if (status)
		return status;
	rule.where = where;
	rule.folder = set->folders;
	known = find_rule(set, rule.id);
	if (known && known->folder == rule.folder) {
		error_set(err, STATUS_INPUT, "'%s' has the id of '%s': %s", where, known->where, rule.id);
		error_hint(err, "rules of one folder have an id each; a built-in one may be replaced once");
		return STATUS_INPUT;
	}
	if (!known && set->count == RULE_SET_RULES)
		return error_set(err, STATUS_INPUT, "more than %d rules", RULE_SET_RULES);
	*(known ? known : &set->rules[set->count++]) = rule;
	qsort(set->rules, (size_t)set->count, sizeof(set->rules[0]), compare_ids);
	return STATUS_OK;
}

enum status rule_set_init(struct rule_set *set, struct error *err)
{
	enum status status = STATUS_OK;

	memset(set, 0, sizeof(*set));
	arena_init(&set->arena, 0);
	for (const struct built_in_rule *rule = built_in_rules; rule->name && !status; rule++)
		status = add_rule(set, rule->text, strlen(rule->text), rule->name, err);
	return status;
}

void rule_set_release(struct rule_set *set)
{
	arena_release(&set->arena);
	memset(set, 0, sizeof(*set));
}

/* ---- the user's rules ---- */

static int is_sql(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 4 && !strcmp(entry->d_name + length - 4, ".sql");
}

static enum status rule_set_add_file(struct rule_set *set, const char *path, struct error *err)
{
	FILE *file = fopen(path, "r");
	char *text;
	size_t length;
	enum status status;

	if (!file)
		return error_errno(err, STATUS_INPUT, errno, "cannot read '%s'", path);
	text = arena_alloc(&set->arena, RULE_BYTES + 1);
	length = fread(text, 1, RULE_BYTES + 1, file);
	status = ferror(file) ? error_errno(err, STATUS_INPUT, errno, "cannot read '%s'", path)
	                      : add_rule(set, text, length, path, err);
	fclose(file);
	return status;
}

enum status rule_set_add_folder(struct rule_set *set, const char *path, struct error *err)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_sql, alphasort);
	enum status status = STATUS_OK;

	set->folders++;

	if (count < 0)
		return error_errno(err, STATUS_INPUT, errno, "cannot read the rules in '%s'", path);
	if (!count)
		status = error_set(err, STATUS_INPUT, "there are no rules (*.sql) in '%s'", path);
	for (int i = 0; i < count; i++) {
		if (!status)
			status = rule_set_add_file(set, arena_printf(&set->arena, "%s/%s", path, entries[i]->d_name),
			                           err);
		free(entries[i]);
	}
	free(entries);
	return status;
}

/* ---- thresholds ---- */

static enum status unknown_rule(const struct rule_set *set, const char *path, const struct yaml_entry *entry,
                                const char *id, struct error *err)
{
	const char *ids[RULE_SET_RULES + 1];
	const char *nearest;

	for (int i = 0; i < set->count; i++)
		ids[i] = set->rules[i].id;
	ids[set->count] = NULL;
	nearest = nearest_name(id, ids);
	error_set(err, STATUS_USAGE, "'%s', line %d: there is no rule '%s'", path, entry->line, id);
	if (nearest)
		error_hint(err, "did you mean '%s'?", nearest);
	return STATUS_USAGE;
}

static struct rule_threshold *find_threshold(struct rule *rule, const char *name)
{
	for (int i = 0; i < rule->threshold_count; i++) {
		if (!strcmp(rule->thresholds[i].name, name))
			return &rule->thresholds[i];
	}
	return NULL;
}

static enum status change_threshold(struct rule_set *set, const char *path, const struct yaml_entry *entry,
                                    struct error *err)
{
	size_t length = strcspn(entry->key, ".");
	const char *id = arena_dup_n(&set->arena, entry->key, length);
	struct rule *rule = find_rule(set, id);
	struct rule_threshold *threshold;
	char *end;
	double value = strtod(entry->value, &end);

	if (!rule)
		return unknown_rule(set, path, entry, id, err);
	threshold = entry->key[length] ? find_threshold(rule, entry->key + length + 1) : NULL;
	if (!threshold) {
		error_set(err, STATUS_USAGE, "'%s', line %d: rule '%s' has no threshold '%s'", path, entry->line, id,
		          entry->key[length] ? entry->key + length + 1 : "");
		if (rule->threshold_count)
			error_hint(err, "it has '%s'; 'stepscope diagnose --list' shows all", rule->thresholds[0].name);
		return STATUS_USAGE;
	}
	if (entry->is_alias || end == entry->value || *end || !isfinite(value))
		return error_set(err, STATUS_USAGE, "'%s', line %d: a threshold is a number, got '%s'", path,
		                 entry->line, entry->value);
	if (value < 0 && threshold->value >= 0) /* shares, times, counts: all would be found */
		return error_set(err, STATUS_USAGE, "'%s', line %d: this threshold is 0 or more, got '%s'", path,
		                 entry->line, entry->value);
	threshold->value = value;
	return STATUS_OK;
}

enum status rule_set_read_thresholds(struct rule_set *set, const char *path, struct error *err)
{
	struct yaml_flat yaml;
	enum status status = yaml_flat_read(&yaml, path, err);

	if (status)
		return status;
	for (int i = 0; i < yaml.count && !status; i++)
		status = change_threshold(set, path, &yaml.entries[i], err);
	yaml_flat_release(&yaml);
	return status;
}
