/* SPDX-License-Identifier: Apache-2.0
 *
 * savings.c: what findings save together when no time counts twice. Two findings may be about one time unless both say which it is
 * (`time_of`: docs/rules.md) and these lie apart: other phases, other parts of what the device does, other waits; what lies between steps
 * or ranks is apart from all of them. Findings of one rule are never about one time.
 */
#include "diagnosis/savings.h"

#include "base/memory.h"
#include "diagnosis/diagnosis.h"

#include <stdlib.h>
#include <string.h>

#define BETWEEN "between " /* steps, ranks */
#define AND " + "

static bool are_parts_one_time(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t shorter = a_length < b_length ? a_length : b_length, view = strcspn(a, " ") + 1;

	if (view > shorter || memcmp(a, b, view) != 0) /* seen from another side the same instant has another name */
		return strncmp(a, BETWEEN, strlen(BETWEEN)) != 0 && strncmp(b, BETWEEN, strlen(BETWEEN)) != 0;
	return !memcmp(a, b, shorter); /* "device idle" has "device idle: launch" in it */
}

static size_t part_length(const char *list)
{
	const char *end = strstr(list, AND);

	return end ? (size_t)(end - list) : strlen(list);
}

static const char *behind_part(const char *part, size_t length)
{
	return part[length] ? part + length + strlen(AND) : part + length;
}

/* NULL: any time of a step. */
static bool are_times_one(const char *a, const char *b)
{
	if (!a || !b)
		return true;
	for (const char *x = a; *x; x = behind_part(x, part_length(x)))
		for (const char *y = b; *y; y = behind_part(y, part_length(y)))
			if (are_parts_one_time(x, part_length(x), y, part_length(y)))
				return true;
	return false;
}

static bool may_be_one_time(const struct table *findings, int one, int other)
{
	const char *rule = table_text(findings, one, FINDING_RULE);

	return strcmp(rule, table_text(findings, other, FINDING_RULE)) != 0 &&
	       are_times_one(table_text(findings, one, FINDING_TIME), table_text(findings, other, FINDING_TIME));
}

/* Rows that save time, most first; the caller frees them. */
static int *rows_by_saving(const struct table *findings, int *count)
{
	int *rows = memory_resize(NULL, (size_t)findings->row_count + 1, sizeof(*rows));
	double saving, before;

	*count = 0;
	for (int row = 0; row < findings->row_count; row++) {
		int at = *count;

		if (!table_number(findings, row, FINDING_SAVING, &saving))
			continue;
		for (; at && table_number(findings, rows[at - 1], FINDING_SAVING, &before) && before < saving; at--)
			rows[at] = rows[at - 1];
		rows[at] = row;
		++*count;
	}
	return rows;
}

/* The rules of findings that save more, and may be about the same time. */
static void name_others(struct table *findings, const int *rows, int at)
{
	const char *names = NULL;

	for (int before = 0; before < at; before++) {
		const char *rule = table_text(findings, rows[before], FINDING_RULE);

		if (may_be_one_time(findings, rows[before], rows[at]) && !(names && strstr(names, rule)))
			names = arena_printf(&findings->arena, "%s%s%s", names ? names : "", names ? ", " : "", rule);
	}
	table_set_text_or(findings, rows[at], FINDING_SAME, names, "nothing that saves more may be about its time");
}

/* Largest first, each that may not be about the time of one that counts. */
static double sum_apart(const struct table *findings, const int *rows, int count, bool only_named)
{
	int *counted = memory_resize(NULL, (size_t)count + 1, sizeof(*counted)), n = 0;
	double sum = 0, saving;

	for (int at = 0; at < count; at++) {
		bool is_apart = !only_named || table_text(findings, rows[at], FINDING_TIME);

		for (int i = 0; i < n && is_apart; i++)
			is_apart = !may_be_one_time(findings, counted[i], rows[at]);
		if (!is_apart || !table_number(findings, rows[at], FINDING_SAVING, &saving))
			continue;
		counted[n++] = rows[at];
		sum += saving;
	}
	free(counted);
	return sum;
}

bool diagnosis_savings(struct table *findings, double step_ns, double *together_ns)
{
	int count, *rows = rows_by_saving(findings, &count);
	double all = sum_apart(findings, rows, count, false), named = sum_apart(findings, rows, count, true);

	for (int row = 0; row < findings->row_count; row++)
		table_set_missing(findings, row, FINDING_SAME, "it is not about time");
	for (int at = 0; at < count; at++)
		name_others(findings, rows, at);
	free(rows);
	*together_ns = all > named ? all : named;
	if (step_ns > 0 && *together_ns > step_ns)
		*together_ns = step_ns;
	return count;
}
