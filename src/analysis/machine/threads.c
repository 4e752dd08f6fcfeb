/* SPDX-License-Identifier: Apache-2.0
 *
 * threads.c: the table `threads`: the threads that recorded anything, and how much of the time they spent inside
 * spans.
 */
#include "analysis/analysis_context.h"
#include "analysis/shared/labels.h"
#include "base/clamped.h"

enum {
	THREAD_PROCESS,
	THREAD_NAME,
	THREAD_KIND,
	THREAD_MAIN,
	THREAD_SPANS,
	THREAD_BUSY,
	THREAD_RATIO,
	THREAD_FIRST,
	THREAD_LAST,
	THREAD_COLUMNS,
};

static const struct table_column columns[THREAD_COLUMNS] = {
	[THREAD_PROCESS] = PROCESS_COLUMN,
	[THREAD_NAME] = {.name = "thread", .type = TABLE_TEXT, .role = ROLE_KEY, .definition = "name and thread id"},
	[THREAD_KIND] =
		{.name = "kind",
                 .type = TABLE_TEXT,
                 .role = ROLE_EVIDENCE,
                 .definition = "thread, signal (handlers that interrupted the recorder), self (the recorder's own), "
                               "device, other"},
	[THREAD_MAIN] = {.name = "is_main",
                         .title = "main",
                         .type = TABLE_BOOL,
                         .role = ROLE_EVIDENCE,
                         .definition = "true for the process's first thread"},
	[THREAD_SPANS] = {.name = "spans",
                          .type = TABLE_INT,
                          .unit = UNIT_COUNT,
                          .definition = "recorded spans: steps, phases, ranges, operations",
                          .rules = RULE_NOT_NEGATIVE},
	[THREAD_BUSY] = {.name = "busy_ns",
                         .title = "in spans",
                         .type = TABLE_INT,
                         .unit = UNIT_NS,
                         .definition = "time inside any span",
                         .rules = RULE_NOT_NEGATIVE},
	[THREAD_RATIO] = {.name = "busy_ratio",
                          .title = "%",
                          .type = TABLE_DOUBLE,
                          .unit = UNIT_RATIO,
                          .role = ROLE_SHARE,
                          .definition = "share of time inside any span",
                          .denominator = "recorded time of the thread's process",
                          .rules = RULE_NOT_NEGATIVE | RULE_AT_MOST_ONE},
	[THREAD_FIRST] =
		{.name = "first_ns",
                 .title = "first",
                 .type = TABLE_INT,
                 .unit = UNIT_NS_SINCE_START,
                 .definition = "start of the thread's first span, since the first known instant of its process"},
	[THREAD_LAST] = {.name = "last_ns",
                         .title = "last",
                         .type = TABLE_INT,
                         .unit = UNIT_NS_SINCE_START,
                         .definition = "end of the thread's last span, since the first known instant of its process"},
};

/* Spans of a track nest, so the spans at top level cover all others. */
static void threads_fold_track(const struct model *model, const struct track *track, int64_t *busy_ns,
                               int64_t *first_ns, int64_t *last_ns)
{
	*busy_ns = 0;
	*first_ns = INT64_MAX;
	*last_ns = INT64_MIN;
	for (uint32_t c = 0; c < track->chunk_count; c++) {
		const struct span_chunk *chunk = track->chunks[c];

		for (uint32_t i = 0; i < chunk->count; i++) {
			int64_t end_ns = chunk->start_ns[i] + chunk->dur_ns[i];

			if (chunk->depth[i])
				continue;
			clamped_add(busy_ns, chunk->dur_ns[i]);
			*first_ns = chunk->start_ns[i] < *first_ns ? chunk->start_ns[i] : *first_ns;
			*last_ns = end_ns > *last_ns ? end_ns : *last_ns;
		}
		model_chunk_done(model, chunk);
	}
}

static void threads_add_row(struct table *table, struct labels *labels, uint32_t number)
{
	static const char *const kinds[] = {"thread", "signal", "self", "device", "other"};
	const struct model *model = labels->model;
	const struct track *track = model->tracks[number];
	const struct process *process = &model->processes[track->process];
	int64_t busy_ns, first_ns, last_ns, whole_ns = process->last_ns - process->first_ns;
	int row = table_row(table);

	threads_fold_track(model, track, &busy_ns, &first_ns, &last_ns);
	table_set_lasting_text(table, row, THREAD_PROCESS, labels_process(labels, track->process));
	table_set_lasting_text(table, row, THREAD_NAME, track_label(model, number, &table->arena));
	table_set_lasting_text(table, row, THREAD_KIND, kinds[track->kind]);
	table_set_bool(table, row, THREAD_MAIN, track->is_main);
	table_set_int(table, row, THREAD_SPANS, track->span_count);
	table_set_int(table, row, THREAD_BUSY, busy_ns);
	if (whole_ns > 0)
		table_set_double(table, row, THREAD_RATIO, (double)busy_ns / (double)whole_ns);
	else
		table_set_missing(table, row, THREAD_RATIO, "no time was recorded");
	if (track->span_count) {
		table_set_int(table, row, THREAD_FIRST, first_ns - process->origin_ns);
		table_set_int(table, row, THREAD_LAST, last_ns - process->origin_ns);
		return;
	}
	table_set_missing(table, row, THREAD_FIRST, "no spans were recorded");
	table_set_missing(table, row, THREAD_LAST, "no spans were recorded");
}

static enum status threads_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct labels labels;

	table_init(table, "threads", "Threads",
	           "threads and other tracks, over all data that was read (with --steps, the data around the steps)");
	table_columns(table, columns, THREAD_COLUMNS);
	table_keep_in(table, model->storage);
	labels_init(&labels, model, &table->arena);
	for (uint32_t process = 0; process < model->processes_count; process++) {
		for (uint32_t i = 0; i < model->tracks_count; i++) {
			if (model->tracks[i]->process == process)
				threads_add_row(table, &labels, i);
		}
	}
	labels_release(&labels);
	if (!table->row_count)
		table->empty = "no thread recorded anything";
	return STATUS_OK;
}

const struct analysis analysis_threads = {
	.name = "threads",
	.row = "thread",
	.question = "which threads recorded spans, and how busy were they?",
	.run = threads_run,
	.splits = BY_THREAD,
};
