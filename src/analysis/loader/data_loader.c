/* SPDX-License-Identifier: Apache-2.0
 *
 * data_loader.c: the table `data_loader`: how long loops wait for batches, how long a batch takes to make, and which
 * part limits. It has a row per loader, and one per worker.
 */
#include "analysis/analysis_context.h"
#include "analysis/loader/data_loader_columns.h"
#include "analysis/loader/loader_handovers.h"
#include "analysis/loader/loader_sentence.h"
#include "analysis/machine/processes.h"
#include "analysis/shared/labels.h"
#include "analysis/step_times/step_kinds.h"
#include "model/cell_words.h"
#include "model/device_names.h"

#include <inttypes.h>
#include <math.h>

#define REMOVED "the earliest events were removed (keep_size, keep_time)"

static void data_loader_set_ratio(struct table *table, int row, int column, int64_t part_ns, int64_t whole_ns)
{
	if (whole_ns > 0)
		table_set_double(table, row, column, fmin(1, (double)part_ns / (double)whole_ns));
	else
		table_set_missing(table, row, column, "no time was recorded");
}

static void data_loader_set_work(struct table *table, int row, const struct loader_work *work)
{
	int64_t busy_ns = work->dataset_ns + work->collate_ns;

	table_set_int(table, row, LOADER_DATASET, work->dataset_ns);
	table_set_int(table, row, LOADER_COLLATE, work->collate_ns);
	data_loader_set_ratio(table, row, LOADER_DATASET_RATIO, work->dataset_ns, work->window_ns);
	data_loader_set_ratio(table, row, LOADER_COLLATE_RATIO, work->collate_ns, work->window_ns);
	if (work->workers)
		data_loader_set_ratio(table, row, LOADER_IDLE_RATIO,
		                      work->window_ns > busy_ns ? work->window_ns - busy_ns : 0, work->window_ns);
	else
		table_set_missing(table, row, LOADER_IDLE_RATIO, "the loader has no workers");
}

static void data_loader_set_sampler(struct table *table, int row, const struct loader_sums *sums)
{
	static const char missing[] = "the sampler was not recorded";

	if (sums->has_sampler) {
		table_set_int(table, row, LOADER_SAMPLER, sums->sampler_ns);
		data_loader_set_ratio(table, row, LOADER_SAMPLER_RATIO, sums->sampler_ns, sums->loop_ns);
	} else {
		table_set_missing(table, row, LOADER_SAMPLER, missing);
		table_set_missing(table, row, LOADER_SAMPLER_RATIO, missing);
	}
}

static void data_loader_set_pinning(struct table *table, int row, const struct loader_sums *sums)
{
	if (!sums->pinned) {
		table_set_missing(table, row, LOADER_PIN, "no pinned batch was recorded");
		table_set_missing(table, row, LOADER_PIN_RATIO, "no pinned batch was recorded");
		return;
	}
	table_set_int(table, row, LOADER_PIN, sums->pin_ns);
	data_loader_set_ratio(table, row, LOADER_PIN_RATIO, sums->pin_ns,
	                      sums->pin_window_ns ? sums->pin_window_ns : sums->loop_ns);
	table->columns[LOADER_PIN_RATIO].is_hidden = false;
}

static const char *data_loader_label(const struct model *model, const struct loader_sums *sums, struct arena *arena)
{
	const char *what = model_meta(model, sums->process, arena_printf(arena, "data_loader.%" PRIu32, sums->number));

	return what ? arena_printf(arena, "%" PRIu32 ": %s", sums->number, what)
	            : arena_printf(arena, "%" PRIu32, sums->number);
}

static int data_loader_add_row(struct table *table, const struct model *model, const struct loader_sums *sums,
                               const char *part)
{
	int row = table_row(table);

	table_set_text(table, row, LOADER_PROCESS, process_label(model, sums->process, &table->arena));
	table_set_text(table, row, LOADER_NAME, data_loader_label(model, sums, &table->arena));
	table_set_text(table, row, LOADER_PART, part);
	return row;
}

static void data_loader_set_waits(struct table *table, int row, const struct loader_sums *sums)
{
	table_set_int(table, row, LOADER_WAIT, sums->wait_ns);
	table_set_int(table, row, LOADER_LOOP, sums->loop_ns);
	data_loader_set_ratio(table, row, LOADER_WAIT_RATIO, sums->wait_ns, sums->loop_ns);
	if (sums->batches) {
		table_set_double(table, row, LOADER_WAIT_P50, sums->wait.p50);
		table_set_double(table, row, LOADER_WAIT_MAX, sums->wait.max);
	} else {
		table_set_missing(table, row, LOADER_WAIT_P50, "the loop received no batch");
		table_set_missing(table, row, LOADER_WAIT_MAX, "the loop received no batch");
	}
}

static void data_loader_set_starts(struct table *table, int row, const struct loader_sums *sums)
{
	if (sums->has_rest && !sums->first_batches)
		table_set_missing(table, row, LOADER_START, REMOVED);
	else
		table_set_int(table, row, LOADER_START, sums->first_wait_ns);
	if (!sums->work.workers)
		table_set_missing(table, row, LOADER_WORKERS, "no batches from workers were recorded");
	else if (sums->has_rest && !sums->starts)
		table_set_missing(table, row, LOADER_WORKERS, REMOVED);
	else
		table_set_int(table, row, LOADER_WORKERS, sums->starting_ns);
	if (sums->work.workers && sums->has_ready)
		table_set_double(table, row, LOADER_READY, sums->ready);
	else
		table_set_missing(table, row, LOADER_READY,
		                  sums->has_rest ? REMOVED : "no batches from workers were recorded");
}

/* Sets the cells of the work on batches and of the limit. They are unknown if the workers were not recorded. */
static void data_loader_set_limit(struct table *table, int row, const struct loader_sums *sums)
{
	static const int of_work[] = {LOADER_DATASET,    LOADER_DATASET_RATIO, LOADER_COLLATE, LOADER_COLLATE_RATIO,
	                              LOADER_IDLE_RATIO, LOADER_LIMIT,         LOADER_SENTENCE};

	if (sums->batches && sums->work.count > 0) {
		const struct loader_verdict verdict = loader_limit_find(sums);

		data_loader_set_work(table, row, &sums->work);
		table_set_text(table, row, LOADER_SENTENCE, loader_sentence(sums, &verdict, &table->arena));
		table_set_text(table, row, LOADER_LIMIT, loader_limit_name(verdict.limit));
		return;
	}
	for (size_t i = 0; i < sizeof(of_work) / sizeof(of_work[0]); i++)
		table_set_missing(table, row, of_work[i], "the making of its batches was not recorded");
}

/* Sets the cells of the batches' way. `worker`: MODEL_NONE, or a worker, which unpickles nothing. */
static void data_loader_set_handovers(struct table *table, int row, const struct model *model,
                                      const struct loader_handovers *handovers, const struct loader_sums *sums,
                                      uint32_t worker)
{
	static const int columns[HANDOVER_KINDS] = {LOADER_DISPATCH, LOADER_PICKLING, LOADER_UNPICKLING};
	const struct loader_handover_sums found = loader_handovers_sum(handovers, model, sums->process, sums->number,
	                                                               worker);
	static const char *const missing = "no batch of a worker was handed over while ranges were recorded, or the "
					   "recording is from a version that did not record it";

	for (int kind = 0; kind < HANDOVER_KINDS; kind++) {
		if (found.of[kind].count)
			table_set_int(table, row, columns[kind], found.of[kind].dur_ns);
		else
			table_set_missing(table, row, columns[kind],
			                  kind == HANDOVER_UNPICKLE && worker != MODEL_NONE
			                          ? "known for the whole loop only"
			                          : missing);
	}
	if (found.of[HANDOVER_DISPATCH].count)
		table_set_int(table, row, LOADER_DISPATCHED, found.of[HANDOVER_DISPATCH].count);
	else
		table_set_missing(table, row, LOADER_DISPATCHED, missing);
	if (found.of[HANDOVER_PICKLE].count)
		table_set_int(table, row, LOADER_PICKLED_BYTES, found.bytes);
	else
		table_set_missing(table, row, LOADER_PICKLED_BYTES, missing);
}

static void data_loader_add_loop(struct table *table, const struct model *model, const struct loader_sums *sums,
                                 const struct loader_handovers *handovers)
{
	int row = data_loader_add_row(table, model, sums, CELL_LOADER_LOOP);

	table_set_int(table, row, LOADER_BATCHES, sums->batches);
	data_loader_set_waits(table, row, sums);
	data_loader_set_starts(table, row, sums);
	data_loader_set_sampler(table, row, sums);
	data_loader_set_pinning(table, row, sums);
	data_loader_set_limit(table, row, sums);
	data_loader_set_handovers(table, row, model, handovers, sums, MODEL_NONE);
	table_set_missing(table, row, LOADER_END, "the loop is not a worker");
}

static void data_loader_add_worker(struct table *table, const struct model *model, const struct loader_sums *sums,
                                   const struct loader_worker *worker, const struct loader_handovers *handovers)
{
	static const int of_loop[] = {LOADER_WAIT,    LOADER_WAIT_P50,      LOADER_WAIT_MAX, LOADER_WAIT_RATIO,
	                              LOADER_LOOP,    LOADER_READY,         LOADER_WORKERS,  LOADER_LIMIT,
	                              LOADER_SAMPLER, LOADER_SAMPLER_RATIO, LOADER_PIN,      LOADER_PIN_RATIO,
	                              LOADER_SENTENCE};
	const struct process *process = &model->processes[worker->process];
	const char *end = process_failure(model, worker->process, &table->arena);
	int64_t number = 0;
	int row;

	loader_worker_number(model, worker->process, &number);
	row = data_loader_add_row(
		table, model, sums,
		arena_printf(&table->arena, "worker %" PRId64 " (pid %" PRId64 ")", number, process->pid));
	table_set_int(table, row, LOADER_BATCHES, worker->work.count);
	data_loader_set_work(table, row, &worker->work);
	data_loader_set_handovers(table, row, model, handovers, sums, worker->process);
	if (sums->has_rest)
		table_set_missing(table, row, LOADER_START, REMOVED);
	else
		table_set_int(table, row, LOADER_START,
		              worker->first_ns > process->first_ns ? worker->first_ns - process->first_ns : 0);
	if (end)
		table_set_text(table, row, LOADER_END, end);
	else
		table_set_missing(table, row, LOADER_END, "no failure of the worker was recorded");
	for (size_t i = 0; i < sizeof(of_loop) / sizeof(of_loop[0]); i++)
		table_set_missing(table, row, of_loop[i], "known for the whole loop only");
}

static void data_loader_add_rows(struct table *table, const struct model *model, const struct loader_batches *part,
                                 const struct loader_handovers *handovers)
{
	struct loader_sums sums;
	struct loader_worker worker = {0};

	loader_sums_compute(&sums, part, model);
	data_loader_add_loop(table, model, &sums, handovers);
	while (loader_sums_next_worker(&sums, part, &worker))
		data_loader_add_worker(table, model, &sums, &worker, handovers);
}

static void data_loader_add_note(struct table *table, struct analysis_context *context)
{
	table->note = step_kinds_operators_note(analysis_context_step_times(context), &table->arena);
}

/* Traces of torch.profiler have waits for loaders, by their names, but no batches. */
static const char *data_loader_why_empty(const struct model *model)
{
	for (uint32_t string = 1; string <= model->strings.count; string++)
		if (is_data_wait(intern_text(&model->strings, string)))
			return "waits for a data loader were recorded, but not its batches and workers: see the phase data, and the "
			       "operators enumerate(DataLoader)#...";
	return "no loop over a PyTorch data loader was recorded";
}

static enum status data_loader_run(struct analysis_context *context, struct table *table, struct error *err)
{
	const struct model *model = context->model;
	struct loader_batches batches, part = {0};
	struct loader_handovers handovers;

	table_init(table, "data_loader", "Data loaders",
	           "waits of loops over PyTorch's data loaders and their causes, in steps recorded with operators");
	table_columns(table, data_loader_columns, LOADER_COLUMNS);
	table->columns[LOADER_PIN_RATIO].is_hidden = true; /* until a batch is pinned */
	loader_batches_find(&batches, model);
	loader_handovers_find(&handovers, model);
	while (loader_batches_next(&batches, &part))
		data_loader_add_rows(table, model, &part, &handovers);
	if (!table->row_count)
		table->empty = step_times_no_operations(context, &table->arena, data_loader_why_empty(model));
	else
		data_loader_add_note(table, context);
	loader_batches_release(&batches);
	loader_handovers_release(&handovers);
	return STATUS_OK;
}

const struct analysis analysis_data_loader = {
	.name = "data_loader",
	.row = "loop over a data loader, and each of its workers",
	.question = "does the loop wait for data, and why?",
	.run = data_loader_run,
	.is_of_operators = true,
};
