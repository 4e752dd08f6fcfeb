/* SPDX-License-Identifier: Apache-2.0
 *
 * verdict_sentences_cause.c: the words of a verdict about its cause.
 */
#include "base/demangle.h"
#include "base/template.h"
#include "base/units.h"
#include "base/utf8.h"
#include "compare/verdict_sentences.h"

#include <math.h>

#define NAME_BYTES 200 /* longest name in a sentence */
#define MAXIMUM_NAME ((size_t)1 << 20)

/* ---- the words ---- */

static const char words_between[] = "between steps +{time}";
static const char
	words_part[] = "[{level}: ]{rows}[ and {more} similar ones][{others}, among others]"; /* {others}: a condition */
static const char words_row[] = "{name} {sign}{amount}[ ({calls} times the calls)]";
static const char words_function[] = "function: {name} {base} -> {new} of the samples (self)";
static const char words_memory[] = "{level}: {name} {sign}{amount}";
static const char words_telemetry[] = "{of} {quantity} {base} -> {new}[ {unit}]";

/* The name of a phase needs no name of its level. */
static const char *const level_names[CAUSE_LEVELS] = {
	[CAUSE_LATE_RANK] = "late rank",
	[CAUSE_DEVICE] = "device",
	[CAUSE_OPERATOR] = "operator",
	[CAUSE_KERNEL] = "kernel",
	[CAUSE_CUDA_OPERATOR] = "CUDA operators, as profiled",
};

/* ---- gaps ---- */

/* Returns a name of the program in readable form, short enough for a sentence. */
static const char *cause_name(const struct table *table, int row, int column, struct arena *arena)
{
	struct demangler demangler = DEMANGLER_NONE;
	struct buffer text;
	const char *name;

	buffer_init(&text, MAXIMUM_NAME);
	demangler_words(&demangler, &text, table_text(table, row, column));
	name = arena_dup_n(arena, text.data, utf8_cut(text.data, text.length, NAME_BYTES));
	buffer_release(&text);
	demangler_release(&demangler);
	return name;
}

/* Returns "aten::mm +338.8 us (1.5 times the calls)". */
static const char *part_row_text(const struct table *contributions, int row, double calls_ratio, struct arena *arena)
{
	double delta = table_get(contributions, row, CONTRIBUTION_DELTA)->d;
	char amount[UNITS_BYTES];
	const struct template_text texts[] = {
		{"name", cause_name(contributions, row, CONTRIBUTION_NAME, arena)},
		{"sign", delta < 0 ? "-" : "+"},
		{"amount", units_time(amount, fabs(delta))},
		{"calls", calls_ratio > 0 ? arena_printf(arena, "%.3g", calls_ratio) : NULL},
	};

	return WRITE_TEXTS(arena, words_row, texts);
}

/* Returns "aten::mm +338.8 us, aten::add +301.2 us". */
static const char *part_rows_text(const struct table *contributions, const struct cause_part *part, struct arena *arena)
{
	const char *list = NULL;

	for (int i = 0; i < part->count; i++)
		list = sentences_join(arena, list, ", ",
		                      part_row_text(contributions, part->rows[i], part->calls_ratio[i], arena));
	return list;
}

static const char *part_text(const struct table *contributions, const struct cause_part *part, const char *level,
                             struct arena *arena)
{
	const struct template_text texts[] = {
		{"level", level},
		{"rows", part_rows_text(contributions, part, arena)},
		{"more", part->more ? arena_printf(arena, "%d", part->more) : NULL},
		{"others", part->is_among_others ? "" : NULL},
	};

	return WRITE_TEXTS(arena, words_part, texts);
}

static const char *parts_text(const struct verdict_words *words)
{
	const char *list = NULL;

	for (int level = 0; level < CAUSE_LEVELS; level++) {
		const struct cause_part *part = &words->verdict->cause.parts[level];

		if (part->count)
			list = sentences_join(
				words->arena, list, "; ",
				part_text(&words->comparison->contributions, part, level_names[level], words->arena));
	}
	return list;
}

static const char *share_text(const struct table *functions, int row, int column, struct arena *arena)
{
	double share;

	return table_number(functions, row, column, &share) ? arena_printf(arena, "%.1f %%", 100 * share) : "(small)";
}

static const char *function_text(const struct table *functions, int row, struct arena *arena)
{
	const struct template_text texts[] = {
		{"name", cause_name(functions, row, FUNCTIONS_NAME, arena)},
		{"base", share_text(functions, row, FUNCTIONS_BASE_SELF_RATIO, arena)},
		{"new", share_text(functions, row, FUNCTIONS_NEW_SELF_RATIO, arena)},
	};

	return WRITE_TEXTS(arena, words_function, texts);
}

static const char *memory_row_text(const struct table *memory, int row, struct arena *arena)
{
	double delta = table_get(memory, row, CONTRIBUTION_DELTA)->d;
	char amount[UNITS_BYTES];
	const struct template_text texts[] = {
		{"level", table_text(memory, row, CONTRIBUTION_LEVEL)},
		{"name", cause_name(memory, row, CONTRIBUTION_NAME, arena)},
		{"sign", delta < 0 ? "-" : "+"},
		{"amount", units_bytes(amount, fabs(delta))},
	};

	return WRITE_TEXTS(arena, words_memory, texts);
}

static const char *memory_text(const struct verdict_words *words)
{
	const char *list = NULL;

	for (int level = 0; level < CAUSE_MEMORY_LEVELS; level++) {
		int row = words->verdict->cause.memory[level];

		if (row >= 0)
			list = sentences_join(words->arena, list, "; ",
			                      memory_row_text(&words->comparison->memory, row, words->arena));
	}
	return list;
}

static const char *telemetry_text(const struct table *telemetry, int row, struct arena *arena)
{
	const struct template_text texts[] = {
		{"of", arena_printf(arena, "%.80s", table_text(telemetry, row, TELEMETRY_CHANGE_OF))},
		{"quantity", arena_printf(arena, "%.80s", table_text(telemetry, row, TELEMETRY_CHANGE_QUANTITY))},
		{"base", arena_printf(arena, "%.4g", table_get(telemetry, row, TELEMETRY_CHANGE_BASE)->d)},
		{"new", arena_printf(arena, "%.4g", table_get(telemetry, row, TELEMETRY_CHANGE_NEW)->d)},
		{"unit", table_text(telemetry, row, TELEMETRY_CHANGE_UNIT)},
	};

	return WRITE_TEXTS(arena, words_telemetry, texts);
}

static const char *between_text(double ns, struct arena *arena)
{
	char text[UNITS_BYTES];
	const struct template_text time = {"time", units_time(text, ns)};

	return template_write(arena, words_between, &time, 1);
}

const char *verdict_cause_text(const struct verdict_words *words)
{
	const struct comparison *comparison = words->comparison;
	const struct verdict_cause *cause = &words->verdict->cause;

	switch (cause->kind) {
	case CAUSE_BETWEEN_STEPS:
		return between_text(cause->between_ns, words->arena);
	case CAUSE_PARTS:
		return parts_text(words);
	case CAUSE_FUNCTION:
		return function_text(&comparison->functions, cause->row, words->arena);
	case CAUSE_MEMORY:
		return memory_text(words);
	case CAUSE_TELEMETRY:
		return telemetry_text(&comparison->telemetry, cause->row, words->arena);
	default:
		return NULL;
	}
}
