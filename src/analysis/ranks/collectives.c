/* SPDX-License-Identifier: Apache-2.0
 *
 * collectives.c: the table `collectives`: the messages between ranks, by process, kind and size. It has when each was
 * issued, how long it was queued, and how long the backend took, the other ranks' lateness included. It also has how
 * long the training thread was idle meanwhile.
 */
#include "analysis/analysis_context.h"
#include "analysis/ranks/busy_times.h"
#include "analysis/ranks/collective_calls.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/input_steps.h"
#include "analysis/step_times/step_kinds.h"
#include "base/clamped.h"
#include "base/memory.h"
#include "base/storage.h"
#include "model/number_map.h"
#include "model/reasons.h"
#include "table/bound.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	COLLECTIVE_PROCESS,
	COLLECTIVE_NAME,
	COLLECTIVE_GROUP,
	COLLECTIVE_BYTES,
	COLLECTIVE_RANKS,
	COLLECTIVE_COUNT,
	COLLECTIVE_TOTAL_BYTES,
	COLLECTIVE_ISSUE,
	COLLECTIVE_QUEUE,
	COLLECTIVE_TIME,
	COLLECTIVE_MEAN,
	COLLECTIVE_MAX,
	COLLECTIVE_EXPOSED,
	COLLECTIVE_EXPOSED_RATIO,
	COLLECTIVE_STEP_EXPOSED,
	COLLECTIVE_LEAST,
	COLLECTIVE_COLUMNS,
};

static const struct table_column columns[COLLECTIVE_COLUMNS] = {
	[COLLECTIVE_PROCESS] = PROCESS_COLUMN,
	[COLLECTIVE_NAME] =
		{.name = "collective",
                 .type = TABLE_TEXT,
                 .role = ROLE_KEY,
                 .definition = "name of the collective in the backend; with c10d::, name of the issued call, if its "
                               "execution was not recorded or is unknown"},
	[COLLECTIVE_GROUP] = {.name = "group",
                              .type = TABLE_TEXT,
                              .role = ROLE_KEY,
                              .definition = "name of its process group"},
	[COLLECTIVE_BYTES] = {.name = "bytes",
                              .type = TABLE_INT,
                              .unit = UNIT_BYTES,
                              .role = ROLE_KEY,
                              .definition = "bytes of its tensors in this rank, per collective"},
	[COLLECTIVE_RANKS] = {.name = "group_ranks",
                              .title = "ranks",
                              .type = TABLE_INT,
                              .unit = UNIT_COUNT,
                              .definition = "number of ranks in its process group"},
	[COLLECTIVE_COUNT] = {.name = "count",
                              .type = TABLE_INT,
                              .unit = UNIT_COUNT,
                              .definition = "number of collectives",
                              .rules = RULE_NOT_NEGATIVE,
                              .more = MORE_SUM},
	[COLLECTIVE_TOTAL_BYTES] = {.name = "total_bytes",
                                    .title = "total",
                                    .type = TABLE_INT,
                                    .unit = UNIT_BYTES,
                                    .definition = "bytes of all these collectives",
                                    .more = MORE_SUM},
	[COLLECTIVE_ISSUE] = {.name = "issue_ns",
                              .title = "issue",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_NS,
                              .definition = "mean duration of the call that issues it, on the caller's thread",
                              .rules = RULE_NOT_NEGATIVE},
	[COLLECTIVE_QUEUE] = {.name = "queue_ns",
                              .title = "queue",
                              .type = TABLE_DOUBLE,
                              .unit = UNIT_NS,
                              .definition = "mean time from its issue to the start of its execution"},
	[COLLECTIVE_TIME] = {.name = "total_ns",
                             .title = "execution",
                             .type = TABLE_INT,
                             .unit = UNIT_NS,
                             .definition = "total duration of the executions, including waits for other ranks",
                             .rules = RULE_NOT_NEGATIVE,
                             .more = MORE_SUM},
	[COLLECTIVE_MEAN] = {.name = "mean_ns",
                             .title = "mean",
                             .type = TABLE_DOUBLE,
                             .unit = UNIT_NS,
                             .definition = "mean duration of an execution"},
	[COLLECTIVE_MAX] = {.name = "max_ns",
                            .title = "max",
                            .type = TABLE_INT,
                            .unit = UNIT_NS,
                            .definition = "longest execution",
                            .more = MORE_MOST},
	[COLLECTIVE_EXPOSED] = {.name = "exposed_ns",
                                .title = "exposed",
                                .type = TABLE_INT,
                                .unit = UNIT_NS,
                                .definition = "part of total_ns in which the issuing thread ran no other operator",
                                .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                                .other = "total_ns",
                                .more = MORE_SUM},
	[COLLECTIVE_EXPOSED_RATIO] = {.name = "exposed_ratio",
                                      .title = "exposed %",
                                      .type = TABLE_DOUBLE,
                                      .unit = UNIT_RATIO,
                                      .role = ROLE_SHARE,
                                      .definition = "exposed share of its execution time",
                                      .denominator = "duration of its executions whose issuing call is known",
                                      .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[COLLECTIVE_STEP_EXPOSED] = {.name = "step_exposed_ns",
                                     .title = "in steps",
                                     .type = TABLE_INT,
                                     .unit = UNIT_NS,
                                     .definition = "exposed time of the collectives that were issued in measured steps",
                                     .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_OTHER,
                                     .other = "exposed_ns",
                                     .more = MORE_SUM},
	[COLLECTIVE_LEAST] = STEP_KINDS_LEAST_COLUMN,
};

struct collectives_group {
	uint32_t process, name, inputs;
	struct collective_group of;
	bool is_executed;
	int64_t issued; /* of those: issues, and executions with a known issue */
	struct collectives_sums {
		int64_t count, total_ns, exposed_ns, step_exposed_ns;
	} sums[2]; /* [1]: in sampled steps, which stand for others */
	struct step_sightings seen;
	int64_t max_ns, issued_total_ns, issued_exposed_ns;
	double issue_ns, queue_ns;
};

struct issued {
	uint32_t track, execution;
};

struct collectives_fold {
	const struct model *model;
	const struct collective_calls *calls;
	const struct step_times *times;
	struct collectives_group *groups;
	uint32_t group_count, group_capacity;
	struct number_map kinds;    /* name and inputs -> kind */
	struct number_map grouped;  /* kind and process group -> number */
	struct number_map numbered; /* process and that number -> index of the group */
	struct busy_times busy;     /* of the issuing thread */
	bool is_sample;             /* collectives in steps with operators in all ranks stand for the others */
	double factor;              /* number of collectives that each stands for, on average */
	uint32_t left_out;
};

/* ---- groups ---- */

static struct collectives_group *collectives_group_of(struct collectives_fold *fold, const struct collective_call *call)
{
	uint32_t kind = number_map_add(&fold->kinds, (uint64_t)call->name << 32 | call->inputs, fold->kinds.count);
	uint32_t grouped = number_map_add(&fold->grouped, (uint64_t)kind << 32 | call->group.name, fold->grouped.count);
	uint32_t found = number_map_add(&fold->numbered, (uint64_t)call->process << 32 | grouped, fold->group_count);

	if (found == fold->group_count) {
		STORAGE_GROW(fold->model->storage, fold->groups, fold->group_count, fold->group_capacity, 32);
		fold->groups[fold->group_count++] = (struct collectives_group){
			.process = call->process, .name = call->name, .inputs = call->inputs, .of = call->group};
	}
	return &fold->groups[found];
}

/* The step of a collective is that of the call that issued it, if that call is known. */
static bool collectives_counts(struct collectives_fold *fold, const struct collective_call *call,
                               const struct collective_call *issue)
{
	bool is_counted = !fold->is_sample || step_kinds_is_whole(fold->times, issue ? issue->step : call->step);

	fold->left_out += !is_counted;
	return is_counted;
}

static struct collectives_sums *sums_of(const struct collectives_fold *fold, struct collectives_group *group,
                                        int32_t step)
{
	bool is_sampled = fold->factor != 1 && step_kinds_is_sampled_job(fold->times, step);

	if (is_sampled)
		step_kinds_sight_job(&group->seen, fold->times, step);
	return &group->sums[is_sampled];
}

static void add_execution(struct collectives_fold *fold, const struct collective_call *execution)
{
	struct collectives_group *group = collectives_group_of(fold, execution);
	int64_t dur_ns = execution->end_ns - execution->start_ns;
	const struct collective_call *issue = execution->partner == MODEL_NONE
	                                              ? NULL
	                                              : &fold->calls->issues[execution->partner];
	struct collectives_sums *sums = sums_of(fold, group, issue ? issue->step : execution->step);

	group->is_executed = true;
	sums->count++;
	clamped_add(&sums->total_ns, dur_ns);
	group->max_ns = dur_ns > group->max_ns ? dur_ns : group->max_ns;
	if (!issue)
		return;
	busy_times_of(&fold->busy, fold->model, issue->track);
	group->issued++;
	clamped_add(&group->issued_total_ns, dur_ns);
	group->issue_ns += (double)(issue->end_ns - issue->start_ns);
	group->queue_ns += (double)(execution->start_ns - issue->start_ns);
	int64_t exposed_ns = dur_ns - busy_times_in(&fold->busy, execution->start_ns, execution->end_ns);
	group->issued_exposed_ns += exposed_ns;
	sums->exposed_ns += exposed_ns;
	sums->step_exposed_ns += step_times_measures(fold->times, issue->step) ? exposed_ns : 0;
}

/* Sorts by issuing thread, so that the busy times of each thread are computed once. */
static int compare_issuers(const void *left, const void *right)
{
	const struct issued *a = left, *b = right;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return (a->execution > b->execution) - (a->execution < b->execution);
}

static void add_executions(struct collectives_fold *fold)
{
	const struct collective_calls *calls = fold->calls;
	struct issued *order = memory_resize(NULL, (size_t)calls->execution_count + 1, sizeof(*order));

	for (uint32_t i = 0; i < calls->execution_count; i++) {
		uint32_t issue = calls->executions[i].partner;

		order[i] = (struct issued){issue == MODEL_NONE ? MODEL_NONE : calls->issues[issue].track, i};
	}
	if (calls->execution_count)
		qsort(order, calls->execution_count, sizeof(*order), compare_issuers);
	for (uint32_t i = 0; i < calls->execution_count; i++) {
		const struct collective_call *call = &calls->executions[order[i].execution];

		if (collectives_counts(fold, call, call->partner == MODEL_NONE ? NULL : &calls->issues[call->partner]))
			add_execution(fold, call);
	}
	free(order);
}

static void add_issue(struct collectives_fold *fold, const struct collective_call *issue)
{
	struct collectives_group *group = collectives_group_of(fold, issue);

	group->issued++;
	sums_of(fold, group, issue->step)->count++;
	group->issue_ns += (double)(issue->end_ns - issue->start_ns);
}

/* ---- the table ---- */

static struct collectives_sums collectives_join(const struct collectives_sums sums[2], double factor)
{
	struct collectives_sums joined = sums[0];

	step_kinds_join(&joined.count, sums[1].count, factor);
	step_kinds_join(&joined.total_ns, sums[1].total_ns, factor);
	step_kinds_join(&joined.exposed_ns, sums[1].exposed_ns, factor);
	step_kinds_join(&joined.step_exposed_ns, sums[1].step_exposed_ns, factor);
	return joined;
}

static void collectives_set_bytes(struct table *table, int row, const struct model *model,
                                  const struct collectives_group *group, int64_t count)
{
	const char *reason;
	double bytes;

	if (collective_bytes(group->inputs ? model_text(model, group->inputs) : NULL, &bytes, &reason)) {
		table_set_int(table, row, COLLECTIVE_BYTES, clamped_int(bytes));
		table_set_int(table, row, COLLECTIVE_TOTAL_BYTES, clamped_int(bytes * (double)count));
		return;
	}
	reason = reason ? reason : model_reason(model, REASON_NO_SHAPES);
	table_set_missing(table, row, COLLECTIVE_BYTES, reason);
	table_set_missing(table, row, COLLECTIVE_TOTAL_BYTES, reason);
}

static void collectives_add_row(struct table *table, const struct collectives_fold *fold,
                                const struct collectives_group *group)
{
	const struct model *model = fold->model;
	const struct collectives_sums recorded = collectives_join(group->sums, 1);
	const struct collectives_sums sums = collectives_join(
		group->sums, fold->factor == 1 ? 1 : step_sightings_factor(&group->seen));
	static const char unmatched[] = "calls and executions cannot be matched: their numbers differ for this kind and "
					"size, or one was executed before its call";
	static const char no_group[] = "its process group is unknown";
	static const char unseen[] = "no execution was recorded; table communication has those of devices";
	int row = table_row(table);

	table_set_text(table, row, COLLECTIVE_PROCESS, process_label(model, group->process, &table->arena));
	table_set_text(table, row, COLLECTIVE_NAME, model_text(model, group->name));
	collectives_set_bytes(table, row, model, group, sums.count);
	table_set_text_or(table, row, COLLECTIVE_GROUP, group->of.name ? model_text(model, group->of.name) : NULL,
	                  no_group);
	if (group->of.ranks)
		table_set_int(table, row, COLLECTIVE_RANKS, group->of.ranks);
	else
		table_set_missing(table, row, COLLECTIVE_RANKS, no_group);
	table_set_int(table, row, COLLECTIVE_COUNT, sums.count);
	step_sightings_set_least(table, row, COLLECTIVE_LEAST, &group->seen, fold->factor);
	for (int column = COLLECTIVE_ISSUE; column < COLLECTIVE_LEAST; column++)
		table_set_missing(table, row, column, group->is_executed ? unmatched : unseen);
	if (group->issued)
		table_set_double(table, row, COLLECTIVE_ISSUE, group->issue_ns / (double)group->issued);
	if (!group->is_executed)
		return;
	table_set_int(table, row, COLLECTIVE_TIME, sums.total_ns);
	table_set_double(table, row, COLLECTIVE_MEAN, (double)recorded.total_ns / (double)recorded.count);
	table_set_int(table, row, COLLECTIVE_MAX, group->max_ns);
	if (!group->issued)
		return;
	table_set_double(table, row, COLLECTIVE_QUEUE, group->queue_ns / (double)group->issued);
	table_set_int(table, row, COLLECTIVE_EXPOSED, sums.exposed_ns);
	table_set_int(table, row, COLLECTIVE_STEP_EXPOSED, sums.step_exposed_ns);
	if (group->issued_total_ns > 0)
		table_set_double(table, row, COLLECTIVE_EXPOSED_RATIO,
		                 (double)group->issued_exposed_ns / (double)group->issued_total_ns);
}

static const char *removed_note(const struct collectives_fold *fold, struct arena *arena)
{
	int64_t without = 0;

	for (uint32_t i = 0; i < fold->group_count; i++)
		if (fold->groups[i].issued)
			without += collectives_join(fold->groups[i].sums, 1).count - fold->groups[i].issued;
	return without ? arena_printf(
				 arena,
				 "the calls that issued %s were removed again: issue, queue and exposed cover the others",
				 counted(arena, (uint64_t)without, "collective"))
	               : NULL;
}

static const char *notes(const struct collectives_fold *fold, const struct table *table, struct arena *arena)
{
	const char *removed = removed_note(fold, arena), *part = step_kinds_whole_note(fold->times, arena);

	if (part && fold->factor != 1)
		part = arena_printf(arena, "%s; sums are multiplied by %.3g%s", part, fold->factor,
		                    step_sightings_note(table, COLLECTIVE_LEAST, arena));
	if (fold->left_out)
		part = arena_printf(arena, "%s; not counted: %s in other steps or outside steps", part,
		                    counted(arena, fold->left_out, "collective"));
	return removed && part ? arena_printf(arena, "%s; %s", part, removed) : part ? part : removed;
}

static enum status collectives_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct collectives_fold fold = {.model = model,
	                                .kinds = {.storage = model->storage},
	                                .grouped = {.storage = model->storage},
	                                .numbered = {.storage = model->storage}};
	struct step_times with_inputs = {0};

	table_init(table, "collectives", "Collectives",
	           "data that ranks exchange through torch.distributed, while operators were recorded");
	table_columns(table, columns, COLLECTIVE_COLUMNS);
	fold.calls = analysis_context_collective_calls(context);
	fold.times = analysis_context_step_times(context);
	const struct step_times *sized = input_steps_only(&with_inputs, fold.times, model);
	if (fold.times->scale.is_wanted && sized->job_whole) /* rows are by size */
		fold.times = sized;
	fold.is_sample = fold.times->scale.is_wanted && fold.times->job_whole &&
	                 fold.times->job_whole < fold.times->job_count;
	fold.factor = fold.is_sample ? step_kinds_job_factor(fold.times) : 1;
	add_executions(&fold);
	for (uint32_t i = 0; i < fold.calls->issue_count; i++) {
		if (fold.calls->issues[i].partner == MODEL_NONE &&
		    collectives_counts(&fold, &fold.calls->issues[i], NULL))
			add_issue(&fold, &fold.calls->issues[i]);
	}
	table_bound(table, COLLECTIVE_TIME);
	for (uint32_t i = 0; i < fold.group_count; i++)
		collectives_add_row(table, &fold, &fold.groups[i]);
	table_add_more(table, COLLECTIVE_NAME);
	table_sort(table, COLLECTIVE_TIME, false);
	table->note = notes(&fold, table, &table->arena);
	if (!table->row_count)
		table->empty = step_times_no_operations(context, &table->arena,
		                                        "no collective of torch.distributed was recorded");
	input_steps_release(&with_inputs);
	storage_release(model->storage, fold.groups);
	number_map_release(&fold.kinds);
	number_map_release(&fold.grouped);
	number_map_release(&fold.numbered);
	busy_times_release(&fold.busy);
	return STATUS_OK;
}

const struct analysis analysis_collectives = {
	.name = "collectives",
	.row = "process, collective and size",
	.question = "which data do ranks exchange, and how long do threads wait for it?",
	.run = collectives_run,
	.is_of_operators = true,
};
