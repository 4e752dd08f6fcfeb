/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts.c: the cuts of waits: for data, for the device, for launches. See cuts.h.
 */
#include "replay/cuts.h"

#include "base/memory.h"
#include "model/cell_words.h"
#include "model/device_names.h"
#include "replay/cuts_recorded.h"
#include "replay/free_time.h"
#include "replay/gaps.h"
#include "replay/places.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_HANDOVER_NS 100e3 /* of a loader without workers */
#define LEFT_OF_HOST 0.02      /* of the host time of a step that is one graph */

const struct cut_kind replay_cuts[CUT_COUNT] = {
	[CUT_DATA] = {.name = CELL_CUT_DATA,
                      .noun = "waits for batches",
                      .verdict = "data-bound",
                      .doubt_ratio = 0.1, /* a wait is nothing but time: no caches or allocations go with it */
                      .without = "waits for batches; handing a batch over stays",
                      .not_known = "whether workers, disks or processors can be that fast",
                      .apply = cut_data},
	[CUT_WORKERS] = {.name = CELL_CUT_WORKERS,
                         .noun = "too few workers of the loader",
                         .verdict = "data-bound",
                         .doubt_ratio = 0.2,
                         .without = "waits that more workers would shorten",
                         .not_known = "how many workers share caches and memory well",
                         .apply = cut_workers},
	[CUT_HANDOVER] = {.name = CELL_CUT_HANDOVER,
                          .noun = "handing over batches",
                          .verdict = "data-bound",
                          .doubt_ratio = 0.3,
                          .without = "pickling and unpickling of batches, but for 0.15 ms at each side",
                          .not_known = "whether the batches can be few large tensors",
                          .apply = cut_handover},
	[CUT_SYNC] = {.name = CELL_CUT_SYNC,
                      .noun = "waits for the device",
                      .verdict = "sync-bound",
                      .needs_operators = true,
                      .without = "waits for the device in calls and operators",
                      .not_known = "whether the program can do without the value that it reads",
                      .apply = cut_sync},
	[CUT_LAUNCH] = {.name = CELL_CUT_LAUNCH,
                        .noun = "launches",
                        .verdict = "launch-bound",
                        .doubt_ratio = 0.25,
                        .without = "the usual host time and calls of a step, as if the step were one graph",
                        .not_known = "whether the step can be recorded as a graph",
                        .apply = cut_launch},
	[CUT_HOST] = {.name = CELL_CUT_HOST,
                      .noun = "long stretches of the host",
                      .verdict = "host-bound",
                      .without = "long stretches of host time in each step, outside of operators and waits for batches",
                      .not_known = "what of it the program needs",
                      .needs_operators = true,
                      .apply_ranks = cut_host},
	[CUT_BETWEEN] = {.name = CELL_CUT_HOST,
                         .noun = "host time between the steps",
                         .verdict = "host-bound",
                         .place = CELL_CUT_BETWEEN,
                         .without = "long stretches of host time between the steps",
                         .not_known = "what of it the program needs",
                         .needs_operators = true,
                         .apply_ranks = cut_between},
	[CUT_NO_PHASE] = {.name = CELL_CUT_HOST,
                          .noun = "operators outside of all phases",
                          .verdict = "host-bound",
                          .place = CELL_CUT_NO_PHASE,
                          .needs_operators = true,
                          .without = "operators outside of forward, backward and optimizer, on processors",
                          .not_known = "what of it the model needs",
                          .apply = cut_no_phase},
	[CUT_ONCE] = {.name = CELL_CUT_HOST,
                      .noun = "the stretch of one step",
                      .place = CELL_CUT_ONCE,
                      .without = "calls and host time of one step that the usual step does not have",
                      .not_known = "whether it comes again, and when",
                      .apply = cut_once},
	[CUT_PERIODIC] = {.name = CELL_CUT_PERIODIC,
                          .noun = "work that only some steps have",
                          .without = "calls and host time that the usual step does not have",
                          .not_known = "what of it the program needs",
                          .apply = cut_periodic},
	[CUT_GROWTH] =
		{.name = CELL_CUT_GROWTH,
                 .noun = "the growth of the steps",
                 .without = "what later steps take more: each step at the rate of the fastest steps of the device, or "
                            "as long as the first steps of the host",
                 .not_known = "whether later steps have more work on purpose",
                 .apply = cut_growth},
	[CUT_COMM] = {.name = CELL_CUT_COMM,
                      .noun = "collectives",
                      .verdict = "communication-bound",
                      .without = "collectives, with their calls",
                      .not_known = "how fast the network could be",
                      .apply = cut_comm},
	[CUT_RANK] = {.name = CELL_CUT_RANK,
                      .noun = "slower ranks",
                      .verdict = "straggler-bound",
                      .without = "differences between ranks: each place of a step at the median of the ranks",
                      .not_known = "why a rank is slower",
                      .apply_ranks = cut_rank},
	[CUT_DEVICE] = {.name = CELL_CUT_DEVICE,
                        .noun = "conversions and copies",
                        .needs_operators = true,
                        .without = "operators that only convert or copy on the device, or on processors",
                        .not_known = "whether the next operator can read the original",
                        .apply = cut_device},
	[CUT_COPY] = {.name = CELL_CUT_COPY,
                      .noun = "copies to the device",
                      .verdict = "copy-bound",
                      .without = "copies to the device, and waits for them",
                      .not_known = "whether the memory can be pinned",
                      .apply = cut_copy},
	[CUT_ALLOC] = {.name = CELL_CUT_ALLOC,
                       .noun = "allocations of device memory",
                       .verdict = "memory-bound",
                       .without = "calls that take memory of the device or give it back",
                       .not_known = "how much faster operators are in memory that is not new",
                       .apply = cut_alloc},
	[CUT_OPTIMIZER] = {.name = CELL_CUT_OPTIMIZER,
                           .noun = "the small calls of the optimizer",
                           .verdict = "launch-bound",
                           .host_verdict = "host-bound",
                           .without = "the calls of an optimizer, but for one fused kernel",
                           .not_known = "how long the fused kernel takes",
                           .apply = cut_optimizer},
	[CUT_OPTIMIZER_ALL] = {.name = CELL_CUT_OPTIMIZER,
                               .noun = "the optimizer",
                               .place = CELL_CUT_WHOLE,
                               .is_bound = true,
                               .without = "the whole call of the optimizer",
                               .not_known = "how much of it is needed: the saving is an upper bound",
                               .apply = cut_optimizer_all},
	[CUT_PRECISION] = {.name = CELL_CUT_PRECISION,
                           .noun = "full precision",
                           .without = "products in float32: they run at the rate of TF32, if the device has it",
                           .not_known = "whether the model trains as well with less precision",
                           .is_choice = true,
                           .apply = cut_precision},
	[CUT_PRECISION_HALF] = {.name = CELL_CUT_PRECISION,
                                .noun = "full precision",
                                .place = CELL_CUT_HALF,
                                .is_choice = true,
                                .is_bound = true,
                                .without = "products in float32 and TF32: they run at the rate of bf16 or fp16",
                                .not_known = "whether the model trains as well with less precision, and the time of "
                                             "conversions: the saving is an upper bound",
                                .apply = cut_precision_half},
	[CUT_RECOMPUTE] = {.name = CELL_CUT_RECOMPUTE,
                           .noun = "the second forward",
                           .without = "forward operators that the backward runs again",
                           .not_known = "whether there is memory for their results",
                           .is_choice = true,
                           .needs_operators = true,
                           .apply = cut_recompute},
	[CUT_GARBAGE] = {.name = CELL_CUT_GARBAGE,
                         .noun = "garbage collections",
                         .verdict = "host-bound",
                         .without = "garbage collections of Python",
                         .not_known = "how much the memory that they free would cost",
                         .apply = cut_garbage},
	[CUT_COMPILE] = {.name = CELL_CUT_COMPILE,
                         .noun = "compilations",
                         .verdict = "host-bound",
                         .without = "compilations by torch.compile",
                         .not_known = "how fast the steps are without compiled code",
                         .apply = cut_compile},
	[CUT_CHECKPOINT] = {.name = CELL_CUT_CHECKPOINT,
                            .noun = "checkpoints",
                            .verdict = "checkpoint-bound",
                            .without = "checkpoints that the loop waits for",
                            .not_known = "how much of them a thread beside the loop can hide",
                            .apply = cut_checkpoint},
	[CUT_EVALUATION] = {.name = CELL_CUT_EVALUATION,
                            .noun = "evaluations",
                            .without = "evaluations, with all that they wait for",
                            .not_known = "how many of them the program needs",
                            .is_bound = true,
                            .apply = cut_evaluation},
	[CUT_PROCESSORS] = {.name = CELL_CUT_PROCESSORS,
                            .noun = "waits for a processor",
                            .is_outside = true,
                            .without = "time for which the thread of the steps was ready to run and had no processor",
                            .not_known = "whether the run can have more processors",
                            .apply = cut_processors},
};

enum replay_cut replay_cut_find(const char *name, const char *place)
{
	enum replay_cut cut = 0;

	for (; cut < CUT_COUNT; cut++) {
		const char *own = replay_cuts[cut].place;

		if (!strcmp(replay_cuts[cut].name, name) && (own && place ? !strcmp(own, place) : own == place))
			break;
	}
	return cut;
}

/* ---- data ---- */

static double least_load(const struct replay_thread *thread)
{
	double least_ns = MOST_HANDOVER_NS;

	for (uint32_t i = 0; i < thread->loads.count; i++)
		least_ns = fmin(least_ns, thread->loads.list[i].end_ns - thread->loads.list[i].start_ns);
	return least_ns;
}

/* Items that are batches lose their wait themselves; what is left are waits that contain calls. */
static void free_batches(struct replay_plan *plan, bool *is_any)
{
	for (uint32_t i = 0; i < plan->graph->item_count; i++)
		if (plan->graph->items[i].kind == REPLAY_BATCH) {
			plan->items[i].own_ns = fmin(plan->items[i].own_ns, plan->graph->handover_ns);
			plan->items[i].is_free = *is_any = true;
		}
}

/* Advances *next to the first item of the thread that starts then or later. Returns true if it is a batch that starts
 * then. */
static bool is_batch_at(const struct replay_graph *graph, const struct replay_thread *thread, uint32_t *next,
                        double start_ns)
{
	while (*next < thread->item_count && graph->items[thread->items[*next]].start_ns < start_ns)
		++*next;
	for (uint32_t k = *next; k < thread->item_count && graph->items[thread->items[k]].start_ns == start_ns; k++)
		if (graph->items[thread->items[k]].kind == REPLAY_BATCH)
			return true;
	return false;
}

static bool cut_loads(struct replay_plan *plan, uint32_t number)
{
	const struct replay_thread *thread = &plan->graph->threads[number];
	struct replay_stretches stretches = {0};
	double handover_ns = least_load(thread);
	uint32_t next = 0;

	for (uint32_t i = 0; i < thread->loads.count; i++) {
		const struct replay_stretch *load = &thread->loads.list[i];

		if (is_batch_at(plan->graph, thread, &next, load->start_ns))
			continue;
		plan_stretches_add(&stretches, plan, load->start_ns + handover_ns, load->end_ns);
	}
	return replay_plan_remove(plan, number, &stretches);
}

bool cut_data(struct replay_plan *plan)
{
	bool is_any = false;

	free_batches(plan, &is_any);
	for (uint32_t t = 0; t < plan->graph->thread_count; t++)
		is_any |= cut_loads(plan, t);
	return is_any;
}

/* ---- synchronization ---- */

static bool waits_for_device(const struct replay_graph *graph, const struct replay_item *item)
{
	bool is_wait = item->kind == REPLAY_WAIT_ALL || item->kind == REPLAY_WAIT_STREAM ||
	               item->kind == REPLAY_WAIT_EVENT;
	const struct replay_work *work = item->work == REPLAY_NONE ? NULL : &graph->works[item->work];

	return (is_wait && !item->is_allocation) || (work && work->is_blocking && work->copy == COPY_TO_HOST);
}

/* Marks the operators of a thread that copy to the device: they wait for their copy, not for a value. */
static bool *copying_operators(const struct replay_graph *graph, uint32_t thread)
{
	uint32_t count = graph->threads[thread].operator_count;
	bool *copies = memory_resize(NULL, count + 1, sizeof(*copies));

	for (uint32_t i = 0; i <= count; i++)
		copies[i] = false;
	for (uint32_t k = 0; k < graph->threads[thread].item_count; k++) {
		const struct replay_item *item = &graph->items[graph->threads[thread].items[k]];

		if (item->around != REPLAY_NONE && item->work != REPLAY_NONE &&
		    graph->works[item->work].copy == COPY_TO_DEVICE)
			copies[item->around] = true;
	}
	return copies;
}

/* Removes the outermost operator around each wait, or the call alone. */
static bool cut_waits_of(struct replay_plan *plan, uint32_t thread)
{
	const struct replay_graph *graph = plan->graph;
	struct replay_stretches stretches = {0};
	bool *copies = copying_operators(graph, thread);

	for (uint32_t k = 0; k < graph->threads[thread].item_count; k++) {
		uint32_t i = graph->threads[thread].items[k];
		const struct replay_item *item = &graph->items[i];

		if (!waits_for_device(graph, item) || replay_is_extra(graph->places, i) ||
		    (item->around != REPLAY_NONE && copies[item->around]))
			continue;
		if (item->around == REPLAY_NONE)
			plan_stretches_add(&stretches, plan, item->start_ns, item->end_ns);
		else
			plan_stretches_add(&stretches, plan, graph->threads[thread].operators[item->around].start_ns,
			                   graph->threads[thread].operators[item->around].end_ns);
	}
	bool is_any = replay_plan_remove(plan, thread, &stretches);
	free(copies);
	return is_any;
}

bool cut_sync(struct replay_plan *plan)
{
	bool is_any = false;

	if (is_recorded_on_processors(plan->graph))
		return cut_recorded_sync(plan);
	for (uint32_t t = 0; t < plan->graph->thread_count; t++)
		is_any |= cut_waits_of(plan, t);
	plan->shows_late = is_any;
	return is_any;
}

/* ---- launches ---- */

/* Long stretches, waits for batches and items that the usual step does not have stay. */
static double kept_of_gap(const struct replay_graph *graph, const double *loads_ns, uint32_t item)
{
	return loads_ns[item] + fmax(free_time_long(graph, item), free_time_irregular(graph, item));
}

static void launch_as_graph(struct replay_plan *plan, uint32_t i, double kept_ns)
{
	const struct replay_item *item = &plan->graph->items[i];
	struct plan_item *planned = &plan->items[i];
	bool is_blocking = item->work != REPLAY_NONE && plan->graph->works[item->work].is_blocking;

	if (item->kind != REPLAY_BATCH && !item->has_target && !item->is_allocation && !is_blocking)
		planned->own_ns *= LEFT_OF_HOST;
	planned->gap_ns = kept_ns + LEFT_OF_HOST * (planned->gap_ns - kept_ns);
	planned->rows = planned->triton = planned->hidden = 0;
}

bool cut_launch(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	if (!graph->has_device)
		return false;
	double *loads_ns = gaps_in_loads(graph);

	for (uint32_t i = 0; i < graph->item_count; i++)
		if (!replay_is_extra(graph->places, i))
			launch_as_graph(plan, i, fmin(kept_of_gap(graph, loads_ns, i), plan->items[i].gap_ns));
	free(loads_ns);
	return true;
}

/* ---- allocations ---- */

bool cut_alloc(struct replay_plan *plan)
{
	bool is_any = false;

	for (uint32_t i = 0; i < plan->graph->item_count; i++)
		if (plan->graph->items[i].is_allocation) {
			plan->items[i].own_ns = plan->items[i].after_ns = 0;
			plan->items[i].is_free = is_any = true;
		}
	return is_any;
}
