/* SPDX-License-Identifier: Apache-2.0
 *
 * limits.c: limits from tiers and files. limits_check.c checks runs against them.
 */
#include "compare/limits.h"

#include "base/options.h"
#include "base/yaml_flat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIERS 4

const char limit_tiers[] = "default, smoke, perf, nightly";
static const char *const tier_names[TIERS + 1] = {"default", "smoke", "perf", "nightly", NULL};

/* The keys of the file, and their values in each tier. */
static const struct limit_key {
	const char *key;
	double values[TIERS];
	double largest;
	bool is_whole;
} limit_keys[LIMIT_COUNT] = {
	[LIMIT_NAN_STEPS] = {"nan_steps_allowed", {0, 0, 0, 0}, 1e9, true},
	[LIMIT_INF_STEPS] = {"inf_steps_allowed", {0, 0, 0, 0}, 1e9, true},
	[LIMIT_STEP_TIME] = {"max_step_time_increase_pct", {10, 15, 8, 5}, 1e6, false},
	[LIMIT_TOKENS] = {"max_tps_drop_pct", {8, 12, 5, 3}, 100, false},
	[LIMIT_MEMORY_MB] = {"max_mem_increase_mb", {500, 1000, 300, 200}, 1e9, false},
	[LIMIT_MEMORY] = {"max_mem_increase_pct", {20, 20, 20, 20}, 1e6, false},
	[LIMIT_LOSS] = {"max_loss_increase_pct", {50, 50, 50, 50}, 1e6, false},
	[LIMIT_STEP_COUNT] = {"min_step_count", {20, 10, 50, 100}, 1e9, true},
};

static const char tier_key[] = "base_tier", level_key[] = "confidence_level";

bool limits_init(struct limits *limits, const char *tier)
{
	int index = 0;

	while (tier_names[index] && strcmp(tier_names[index], tier) != 0)
		index++;
	if (!tier_names[index])
		return false;
	*limits = (struct limits){0};
	snprintf(limits->tier, sizeof(limits->tier), "%s", tier);
	for (int i = 0; i < LIMIT_COUNT; i++)
		limits->values[i] = limit_keys[i].values[index];
	return true;
}

/* ---- the file ---- */

static enum status wrong(const char *path, const struct yaml_entry *entry, const char *problem, struct error *err)
{
	return error_set(err, STATUS_USAGE, "'%s', line %d: %s %s, got '%s'", path, entry->line, entry->key, problem,
	                 entry->value);
}

static enum status limits_unknown_key(const char *path, const struct yaml_entry *entry, struct error *err)
{
	const char *names[LIMIT_COUNT + 3];
	const char *nearest;

	for (int i = 0; i < LIMIT_COUNT; i++)
		names[i] = limit_keys[i].key;
	names[LIMIT_COUNT] = tier_key;
	names[LIMIT_COUNT + 1] = level_key;
	names[LIMIT_COUNT + 2] = NULL;
	nearest = nearest_name(entry->key, names);
	error_set(err, STATUS_USAGE, "'%s', line %d: unknown limit '%s'", path, entry->line, entry->key);
	if (nearest)
		error_hint(err, "did you mean '%s'?", nearest);
	return STATUS_USAGE;
}

static bool limits_read_number(const struct yaml_entry *entry, double *value)
{
	char *end;

	*value = strtod(entry->value, &end);
	return !entry->is_alias && end != entry->value && !*end && isfinite(*value);
}

/* Intervals are always 95 % intervals, so a file that asks for another level is refused. */
static enum status check_level(const char *path, const struct yaml_entry *entry, struct error *err)
{
	double value;

	if (limits_read_number(entry, &value) && fabs(value - 0.95) < 1e-9)
		return STATUS_OK;
	return wrong(path, entry, "must be 0.95", err);
}

static enum status read_limit(struct limits *limits, const char *path, const struct yaml_entry *entry,
                              struct error *err)
{
	double value;

	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_key *key = &limit_keys[i];

		if (strcmp(entry->key, key->key) != 0)
			continue;
		if (!limits_read_number(entry, &value))
			return wrong(path, entry, "must be a number", err);
		if (value < 0 || value > key->largest)
			return wrong(path, entry,
			             i == LIMIT_TOKENS ? "must be from 0 to 100" : "must be at least 0 and not huge",
			             err);
		if (key->is_whole && value != floor(value))
			return wrong(path, entry, "must be a whole number", err);
		limits->values[i] = value;
		return STATUS_OK;
	}
	return limits_unknown_key(path, entry, err);
}

static enum status read_entry(struct limits *limits, const char *path, const struct yaml_entry *entry,
                              struct error *err)
{
	if (entry->document != 1)
		return error_set(err, STATUS_USAGE, "'%s', line %d: the file must have one document", path,
		                 entry->line);
	if (!strcmp(entry->key, level_key))
		return check_level(path, entry, err);
	return strcmp(entry->key, tier_key) ? read_limit(limits, path, entry, err) : STATUS_OK;
}

/* Reads the tier before the other keys, wherever it is in the file. */
static enum status read_tier(struct limits *limits, const char *path, const struct yaml_flat *yaml, struct error *err)
{
	for (int i = 0; i < yaml->count; i++) {
		const struct yaml_entry *entry = &yaml->entries[i];

		if (entry->document != 1 || strcmp(entry->key, tier_key) != 0)
			continue;
		if (entry->is_alias || !limits_init(limits, entry->value)) {
			error_set(err, STATUS_USAGE, "'%s', line %d: unknown tier '%s'", path, entry->line,
			          entry->value);
			error_hint(err, "tiers are %s", limit_tiers);
			return STATUS_USAGE;
		}
	}
	return STATUS_OK;
}

enum status limits_read(struct limits *limits, const char *path, struct error *err)
{
	struct yaml_flat yaml;
	enum status status = yaml_flat_read(&yaml, path, err);

	if (status)
		return status;
	status = read_tier(limits, path, &yaml, err);
	for (int i = 0; i < yaml.count && !status; i++)
		status = read_entry(limits, path, &yaml.entries[i], err);
	yaml_flat_release(&yaml);
	return status;
}
