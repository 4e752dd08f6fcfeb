/* SPDX-License-Identifier: Apache-2.0
 *
 * sampled_stacks.c: see the header. Also has the tables that need only such rows: `sampled_stacks` and
 * `sampled_threads`.
 */
#include "analysis/samples/sampled_stacks.h"

#include "analysis/analysis_context.h"
#include "analysis/shared/labels.h"
#include "analysis/shared/python_places.h"
#include "base/merge_sort.h"
#include "base/storage.h"
#include "table/bound.h"

#include <assert.h>
#include <string.h>

const char sampled_none[] = "the input has no sampled stacks";

static int sampled_stacks_compare(const void *left, const void *right)
{
	const struct sampled_stack *a = left, *b = right;

	if (a->what != b->what)
		return a->what < b->what ? -1 : 1;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return (a->stack > b->stack) - (a->stack < b->stack);
}

void sampled_stacks_init(struct sampled_stacks *stacks, const struct model *model, bool by_thread)
{
	uint32_t kept = 0;

	*stacks = (struct sampled_stacks){.storage = model->storage};
	stacks->rows = storage_resize(model->storage, NULL, model->samples_count + 1, sizeof(*stacks->rows));
	for (uint32_t i = 0; i < model->samples_count; i++) {
		const struct sample *sample = &model->samples[i];

		stacks->rows[i] = (struct sampled_stack){.what = sample->name,
		                                         .track = by_thread ? sample->track : MODEL_NONE,
		                                         .stack = sample->stack,
		                                         .weight = sample->weight,
		                                         .samples = 1};
	}
	merge_sort_in(model->storage, stacks->rows, model->samples_count, sizeof(*stacks->rows),
	              sampled_stacks_compare);
	for (uint32_t i = 0; i < model->samples_count; i++) {
		if (kept && sampled_stacks_compare(&stacks->rows[kept - 1], &stacks->rows[i]) == 0) {
			stacks->rows[kept - 1].weight += stacks->rows[i].weight;
			stacks->rows[kept - 1].samples++;
		} else {
			stacks->rows[kept++] = stacks->rows[i];
		}
	}
	stacks->count = kept;
	for (uint32_t i = 0; i < kept; i++)
		if (i == 0 || stacks->rows[i].what != stacks->rows[i - 1].what)
			stacks->has_unit[sampled_unit_of(model, stacks->rows[i].what)] = true;
}

void sampled_stacks_release(struct sampled_stacks *stacks)
{
	storage_release(stacks->storage, stacks->rows);
}

uint32_t sampled_group_end(const struct sampled_stacks *stacks, uint32_t first, wide_weight *total)
{
	uint32_t i = first;

	for (*total = 0; i < stacks->count; i++) {
		const struct sampled_stack *row = &stacks->rows[i];

		if (row->what != stacks->rows[first].what || row->track != stacks->rows[first].track)
			break;
		*total += row->weight;
	}
	return i;
}

uint32_t sampled_kinds(const struct sampled_stacks *stacks)
{
	uint32_t kinds = 0;

	for (uint32_t i = 0; i < stacks->count; i++)
		kinds += i == 0 || stacks->rows[i].what != stacks->rows[i - 1].what;
	return kinds;
}

bool sampled_is_one_group(const struct sampled_stacks *stacks)
{
	wide_weight total;

	return sampled_group_end(stacks, 0, &total) == stacks->count;
}

uint64_t sampled_beyond(const struct model *model)
{
	struct sampled_stacks stacks;
	wide_weight all = 0;
	uint64_t beyond = 0;

	for (uint32_t i = 0; i < model->samples_count; i++)
		all += model->samples[i].weight;
	if (all <= INT64_MAX)
		return 0;
	sampled_stacks_init(&stacks, model, false);
	for (uint32_t first = 0, end; first < stacks.count; first = end) {
		wide_weight total;

		end = sampled_group_end(&stacks, first, &total);
		for (uint32_t i = first; i < end && total > INT64_MAX; i++)
			beyond += (uint64_t)stacks.rows[i].samples;
	}
	sampled_stacks_release(&stacks);
	return beyond;
}

enum sampled_unit sampled_unit_of(const struct model *model, uint32_t what)
{
	const char *name = model_text(model, what);

	if (!strcmp(name, "time"))
		return SAMPLED_TIME;
	return strcmp(name, "bytes") ? SAMPLED_COUNT : SAMPLED_BYTES;
}

void sampled_set_weight(struct table *table, int row, int column, enum sampled_unit unit, wide_weight weight)
{
	static const char *const reasons[] = {"the samples do not count time", "the samples do not count bytes",
	                                      "the samples count time or bytes"};

	static_assert(sizeof(reasons) / sizeof(reasons[0]) == SAMPLED_UNITS, "a reason for each unit");
	assert(unit < SAMPLED_UNITS);

	for (int i = 0; i < SAMPLED_UNITS; i++)
		table_set_missing(table, row, column + i, reasons[i]);
	if (weight <= INT64_MAX)
		table_set_int(table, row, column + (int)unit, (int64_t)weight);
	else
		table_set_missing(table, row, column + (int)unit, "the sum does not fit in 64 bits");
}

void sampled_hide(struct table *table, int column, const struct sampled_stacks *stacks)
{
	for (int i = 0; i < SAMPLED_UNITS; i++)
		table->columns[column + i].is_hidden = stacks->count && !stacks->has_unit[i];
}

void sampled_set_ratio(struct table *table, int row, int column, wide_weight part, wide_weight whole)
{
	if (whole > 0)
		table_set_double(table, row, column, (double)part / (double)whole);
	else
		table_set_missing(table, row, column, "the samples have no weight");
}

void sampled_note(struct table *table, const struct model *model)
{
	const char *weights = model_meta(model, MODEL_NONE, "samples.weights");

	if (!model->samples_count)
		table->empty = sampled_none;
	else if (weights)
		table->note = arena_printf(&table->arena, "numbers are %s", weights);
}

void sampled_set_thread(struct table *table, int row, int column, const struct model *model, uint32_t track)
{
	if (track < model->tracks_count)
		table_set_text(table, row, column, track_label(model, track, &table->arena));
	else
		table_set_missing(table, row, column, "rows cover all threads; use --by thread");
}

/* ---- by thread ---- */

enum {
	THREAD_WEIGHT,
	THREAD_RATIO = THREAD_WEIGHT + SAMPLED_UNITS,
	THREAD_SAMPLES,
	THREAD_PROCESS,
	THREAD_NAME,
	THREAD_COLUMNS,
};

#define SAMPLES_COLUMN                                                                                                 \
	{                                                                                                              \
		.name = "sample_rows", .title = "samples", .type = TABLE_INT, .unit = UNIT_COUNT,                      \
		.role = ROLE_EVIDENCE, .definition = "number of sample rows in these sums", .rules = RULE_NOT_NEGATIVE \
	}

#define RATIO_COLUMN(text)                                                                                             \
	{                                                                                                              \
		.name = "ratio", .title = "%", .type = TABLE_DOUBLE, .unit = UNIT_RATIO, .role = ROLE_SHARE,           \
		.definition = text, .denominator = "all samples of the same unit",                                     \
		.rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE                                                          \
	}

static const struct table_column thread_columns[THREAD_COLUMNS] = {
	SAMPLED_COLUMNS(THREAD_WEIGHT, "total", "total", "total weight of its samples", 0, false, MORE_SUM),
	[THREAD_RATIO] = RATIO_COLUMN("share of the thread"),
	[THREAD_SAMPLES] = SAMPLES_COLUMN,
	[THREAD_PROCESS] = {.name = "process",
                            .type = TABLE_TEXT,
                            .role = ROLE_KEY,
                            .definition = "process, if the file names it"},
	[THREAD_NAME] = {.name = "thread",
                         .type = TABLE_TEXT,
                         .role = ROLE_KEY,
                         .definition = "thread, or profile of the file"},
};

static wide_weight total_of(const struct sampled_stacks *stacks, uint32_t what)
{
	wide_weight sum = 0;

	for (uint32_t i = 0; i < stacks->count; i++)
		if (stacks->rows[i].what == what)
			sum += stacks->rows[i].weight;
	return sum;
}

static void sampled_stacks_add_thread(struct table *table, const struct model *model,
                                      const struct sampled_stacks *stacks, uint32_t first, uint32_t end,
                                      wide_weight weight, wide_weight whole)
{
	const struct sampled_stack *group = &stacks->rows[first];
	int row = table_row(table);
	int64_t samples = 0;

	for (uint32_t i = first; i < end; i++)
		samples += stacks->rows[i].samples;
	sampled_set_weight(table, row, THREAD_WEIGHT, sampled_unit_of(model, group->what), weight);
	sampled_set_ratio(table, row, THREAD_RATIO, weight, whole);
	table_set_int(table, row, THREAD_SAMPLES, samples);
	if (group->track < model->tracks_count)
		table_set_text(table, row, THREAD_PROCESS,
		               process_label(model, model->tracks[group->track]->process, &table->arena));
	sampled_set_thread(table, row, THREAD_NAME, model, group->track);
}

static enum status run_threads(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct sampled_stacks stacks;
	uint32_t what = MODEL_NONE;
	wide_weight whole = 0, weight;

	table_init(table, "sampled_threads", "Sampled threads", "weight of the samples of each thread");
	table_columns(table, thread_columns, THREAD_COLUMNS);
	sampled_stacks_init(&stacks, model, true);
	sampled_hide(table, THREAD_WEIGHT, &stacks);
	table->columns[THREAD_SAMPLES].is_hidden = stacks.has_unit[SAMPLED_COUNT];
	for (uint32_t first = 0, end; first < stacks.count; first = end) {
		end = sampled_group_end(&stacks, first, &weight);
		whole = stacks.rows[first].what == what ? whole : total_of(&stacks, stacks.rows[first].what);
		what = stacks.rows[first].what;
		sampled_stacks_add_thread(table, model, &stacks, first, end, weight, whole);
	}
	table_sort(table, THREAD_RATIO, false);
	table->empty = sampled_none;
	sampled_stacks_release(&stacks);
	return STATUS_OK;
}

const struct analysis analysis_sampled_threads = {
	.name = "sampled_threads",
	.row = "thread",
	.question = "which threads were sampled, and how often?",
	.run = run_threads,
	.splits = BY_THREAD,
};

/* ---- by stack ---- */

enum {
	STACK_WEIGHT,
	STACK_RATIO = STACK_WEIGHT + SAMPLED_UNITS,
	STACK_SAMPLES,
	STACK_THREAD,
	STACK_TEXT,
	STACK_COLUMNS,
};

static const struct table_column stack_columns[STACK_COLUMNS] = {
	SAMPLED_COLUMNS(STACK_WEIGHT, "self", "self", "weight of the samples of the stack", 0, false, MORE_SUM),
	[STACK_RATIO] = RATIO_COLUMN("share of the stack"),
	[STACK_SAMPLES] = SAMPLES_COLUMN,
	[STACK_THREAD] = {.name = "thread",
                          .type = TABLE_TEXT,
                          .role = ROLE_KEY,
                          .definition = "thread, or profile of the file"},
	[STACK_TEXT] = {.name = "stack",
                        .type = TABLE_TEXT,
                        .role = ROLE_KEY,
                        .definition = "frames, outermost first, separated by semicolons"},
};

static void sampled_stacks_add_stack(struct table *table, const struct model *model, const struct sampled_stack *stack,
                                     wide_weight whole)
{
	int row = table_row(table);

	sampled_set_weight(table, row, STACK_WEIGHT, sampled_unit_of(model, stack->what), stack->weight);
	sampled_set_ratio(table, row, STACK_RATIO, stack->weight, whole);
	table_set_int(table, row, STACK_SAMPLES, stack->samples);
	sampled_set_thread(table, row, STACK_THREAD, model, stack->track);
	table_set_text(table, row, STACK_TEXT, python_stack_text(model, stack->stack, &table->arena));
}

static enum status run_stacks(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct sampled_stacks stacks;
	wide_weight whole;

	table_init(table, "sampled_stacks", "Hottest stacks", "sampled stacks; equal stacks are merged");
	table_columns(table, stack_columns, STACK_COLUMNS);
	sampled_stacks_init(&stacks, model, context->options.by & BY_THREAD);
	sampled_hide(table, STACK_WEIGHT, &stacks);
	table->columns[STACK_SAMPLES].is_hidden = stacks.has_unit[SAMPLED_COUNT];
	table->columns[STACK_THREAD].is_hidden = !(context->options.by & BY_THREAD);
	if (sampled_is_one_group(&stacks))
		table->columns[STACK_RATIO].more = MORE_SUM;
	table_bound(table, STACK_RATIO); /* a file may have millions of stacks, each with another text */
	for (uint32_t first = 0, end; first < stacks.count; first = end) {
		end = sampled_group_end(&stacks, first, &whole);
		for (uint32_t i = first; i < end; i++)
			sampled_stacks_add_stack(table, model, &stacks.rows[i], whole);
	}
	table_add_more(table, STACK_TEXT);
	table_sort(table, STACK_RATIO, false);
	sampled_note(table, model);
	sampled_stacks_release(&stacks);
	return STATUS_OK;
}

const struct analysis analysis_sampled_stacks = {
	.name = "sampled_stacks",
	.row = "stack",
	.question = "which stacks were sampled most?",
	.run = run_stacks,
	.splits = BY_THREAD,
};
