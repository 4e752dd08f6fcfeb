/* SPDX-License-Identifier: Apache-2.0
 *
 * cuts_device.c: the cuts of work on the device. See cuts.h.
 */
#include "base/memory.h"
#include "base/statistics.h"
#include "model/device_names.h"
#include "pytorch/names.h"
#include "replay/cuts.h"
#include "replay/cuts_recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COPY_NS 2000.0 /* a copy from pinned memory, beside the works of the step */
#define COPY_CALL_NS 10e3
#define SMALL_KERNEL_NS 10e3
#define SMALL_KERNELS 40u /* of an optimizer without fused kernels */
#define KERNEL_START_NS 1500.0
#define LEAST_PART 0.2
#define FUSED_GAP_NS 300e3
/* Rates of products. An H200 ran a call in bf16 13 times as fast as in float32 (tests/data/gpu_truth: base, fp32). The rate
 * of TF32 was not measured: it is a third less than the ratio of the peaks. The others are ratios of peaks. */
#define TF32_TO_FLOAT32 5.0
#define HALF_TO_FLOAT32 13.0
#define HALF_TO_TF32 2.0
#define HALF_TO_FLOAT32_OLDER 8.0 /* V100 */
#define FIRST_WITH_TF32 8         /* Ampere */
#define FIRST_WITH_HALF 7         /* Volta, on matrix units */

/* ---- copies to the device ---- */

bool cut_copy(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	bool is_any = false, is_waiting = false;

	for (uint32_t i = 0; i < graph->item_count; i++) {
		const struct replay_item *item = &graph->items[i];
		struct plan_item *planned = &plan->items[i];
		bool follows_work = item->follows != REPLAY_NONE && graph->items[item->follows].work != REPLAY_NONE;

		if (item->work != REPLAY_NONE && graph->works[item->work].copy == COPY_TO_DEVICE) {
			plan->works[item->work].dur_ns = fmin(plan->works[item->work].dur_ns, COPY_NS);
			planned->own_ns = fmin(planned->own_ns, COPY_CALL_NS);
			planned->is_unblocked = is_waiting = is_any = true;
		} else if (item->kind == REPLAY_WAIT_STREAM && is_waiting && follows_work) {
			planned->is_free = true;
			planned->own_ns = fmin(planned->own_ns, COPY_NS);
			is_waiting = false;
		} else if (item->work != REPLAY_NONE) {
			is_waiting = false;
		}
	}
	return is_any;
}

/* ---- operators that convert or copy ---- */

static bool converts_or_copies(const char *name, const struct replay_work *work)
{
	return (work->copy == COPY_ON_DEVICES && pytorch_copies(name)) ||
	       (work->kind == SPAN_KERNEL && pytorch_converts(name));
}

/* Removes outermost operators of which all works convert or copy. */
static bool cut_operators_of(struct replay_plan *plan, uint32_t number)
{
	enum {
		UNKNOWN,
		WANTED,
		OTHER
	};
	const struct replay_graph *graph = plan->graph;
	const struct replay_thread *thread = &graph->threads[number];
	struct replay_stretches stretches = {0};
	uint8_t *found = memory_resize(NULL, thread->operator_count + 1, 1);

	memset(found, UNKNOWN, thread->operator_count + 1);
	for (uint32_t k = 0; k < thread->item_count; k++) {
		const struct replay_item *item = &graph->items[thread->items[k]];

		if (item->around == REPLAY_NONE || item->work == REPLAY_NONE)
			continue;
		const char *name = model_text(graph->model, thread->operators[item->around].name);
		bool is_wanted = converts_or_copies(name, &graph->works[item->work]);
		found[item->around] = !is_wanted || found[item->around] == OTHER ? OTHER : WANTED;
	}
	for (uint32_t i = 0; i < thread->operator_count; i++)
		if (found[i] == WANTED)
			plan_stretches_add(&stretches, plan, thread->operators[i].start_ns,
			                   thread->operators[i].end_ns);
	bool is_any = replay_plan_remove(plan, number, &stretches);
	free(found);
	return is_any;
}

bool cut_device(struct replay_plan *plan)
{
	bool is_any = false;

	if (is_recorded_on_processors(plan->graph))
		return cut_recorded_conversions(plan);
	for (uint32_t t = 0; t < plan->graph->thread_count; t++)
		is_any |= cut_operators_of(plan, t);
	return is_any;
}

/* ---- products in float32 ---- */

/* The first digit of a device's compute capability; -1: not recorded. */
static long device_generation(const struct replay_graph *graph)
{
	const char *major = model_meta(graph->model, graph->process, "device.0.computeMajor");

	return major ? strtol(major, NULL, 10) : -1;
}

/* Names tell of the device only if the trace does not: kernels of an older device also run on newer ones. */
static enum product_type product_on_device(enum product_type type, long generation)
{
	if (generation < 0 || (type != PRODUCT_FLOAT32 && type != PRODUCT_FLOAT32_OLDER))
		return type;
	return generation >= FIRST_WITH_TF32   ? PRODUCT_FLOAT32
	       : generation >= FIRST_WITH_HALF ? PRODUCT_FLOAT32_OLDER
	                                       : PRODUCT_OTHER;
}

/* faster: by how much products of each type become faster. */
static bool speed_up_products(struct replay_plan *plan, const double faster[PRODUCT_TYPES])
{
	const struct replay_graph *graph = plan->graph;
	long generation = device_generation(graph);
	bool is_any = false;

	for (uint32_t i = 0; i < graph->work_count; i++) {
		const struct replay_work *work = &graph->works[i];
		enum product_type type;

		if (work->item == REPLAY_NONE || work->kind != SPAN_KERNEL || work->rows > 1)
			continue;
		type = product_on_device(work->product, generation);
		plan->works[i].dur_ns = fmin(plan->works[i].dur_ns, work->dur_ns / faster[type]);
		is_any |= faster[type] > 1;
	}
	return is_any;
}

bool cut_precision(struct replay_plan *plan)
{
	static const double faster[PRODUCT_TYPES] = {
		[PRODUCT_OTHER] = 1,
		[PRODUCT_FLOAT32] = TF32_TO_FLOAT32,
		[PRODUCT_FLOAT32_OLDER] = 1,
		[PRODUCT_TF32] = 1,
	};

	return speed_up_products(plan, faster);
}

bool cut_precision_half(struct replay_plan *plan)
{
	static const double faster[PRODUCT_TYPES] = {
		[PRODUCT_OTHER] = 1,
		[PRODUCT_FLOAT32] = HALF_TO_FLOAT32,
		[PRODUCT_FLOAT32_OLDER] = HALF_TO_FLOAT32_OLDER,
		[PRODUCT_TF32] = HALF_TO_TF32,
	};

	return speed_up_products(plan, faster);
}

/* ---- optimizer ---- */

struct optimizer_call {
	uint32_t first, count; /* items */
	uint32_t kernels;
	double median_ns, fused_ns;
};

static void measure_call(const struct replay_graph *graph, uint32_t thread, struct optimizer_call *call)
{
	double *durations = memory_resize(NULL, call->count + 1, sizeof(*durations));

	for (uint32_t i = call->first; i < call->first + call->count; i++) {
		const struct replay_item *item = &graph->items[i];

		if (item->thread != thread || item->work == REPLAY_NONE || graph->works[item->work].kind != SPAN_KERNEL)
			continue;
		double dur_ns = graph->works[item->work].dur_ns;
		call->fused_ns += fmax(dur_ns - KERNEL_START_NS, LEAST_PART * dur_ns);
		durations[call->kernels++] = dur_ns;
	}
	call->median_ns = call->kernels ? quantile_within(durations, call->kernels, 0.5) : 0;
	free(durations);
}

static void fuse_call(struct replay_plan *plan, uint32_t thread, const struct optimizer_call *call)
{
	const struct replay_graph *graph = plan->graph;
	bool has_kernel = false;

	for (uint32_t i = call->first; i < call->first + call->count; i++) {
		const struct replay_item *item = &graph->items[i];
		struct plan_item *planned = &plan->items[i];
		bool is_kernel = item->work != REPLAY_NONE && graph->works[item->work].kind == SPAN_KERNEL;

		if (item->thread != thread || item->kind == REPLAY_MARK)
			continue;
		if (is_kernel && !has_kernel) {
			plan->works[item->work].dur_ns = call->fused_ns;
			planned->gap_ns = fmin(planned->gap_ns, FUSED_GAP_NS);
			has_kernel = true;
			continue;
		}
		planned->is_gone |= item->work != REPLAY_NONE;
		planned->gap_ns = planned->own_ns = 0;
		planned->rows = planned->triton = planned->hidden = 0;
	}
}

/* Items that start and end in the span. */
static struct optimizer_call items_in(const struct replay_graph *graph, uint32_t thread, double start_ns, double end_ns)
{
	uint32_t low = 0, high = graph->item_count;
	struct optimizer_call call;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (graph->items[middle].start_ns < start_ns)
			low = middle + 1;
		else
			high = middle;
	}
	call = (struct optimizer_call){.first = low};
	for (uint32_t i = low; i < graph->item_count && graph->items[i].start_ns <= end_ns; i++)
		if (graph->items[i].thread == thread && graph->items[i].end_ns <= end_ns)
			call.count = i + 1 - low;
	return call;
}

static bool fuse(struct replay_plan *plan, uint32_t thread, const struct replay_stretch *stretch)
{
	struct optimizer_call call = items_in(plan->graph, thread, stretch->start_ns, stretch->end_ns);

	measure_call(plan->graph, thread, &call);
	if (call.kernels < SMALL_KERNELS || call.median_ns > SMALL_KERNEL_NS)
		return false;
	fuse_call(plan, thread, &call);
	return true;
}

bool cut_optimizer(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	bool is_any = false;

	if (is_recorded_on_processors(graph))
		return cut_recorded_optimizer(plan, false);
	for (uint32_t t = 0; t < graph->thread_count; t++)
		for (uint32_t i = 0; i < graph->threads[t].optimizers.count; i++)
			is_any |= fuse(plan, t, &graph->threads[t].optimizers.list[i]);
	return is_any;
}

bool cut_optimizer_all(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	bool is_any = false;

	if (is_recorded_on_processors(graph))
		return cut_recorded_optimizer(plan, true);
	for (uint32_t t = 0; t < graph->thread_count; t++) {
		const struct replay_stretches *calls = &graph->threads[t].optimizers;
		struct replay_stretches stretches = {0};

		for (uint32_t i = 0; i < calls->count; i++)
			plan_stretches_add(&stretches, plan, calls->list[i].start_ns, calls->list[i].end_ns);
		is_any |= replay_plan_remove(plan, t, &stretches);
	}
	return is_any;
}

/* ---- forward again ---- */

/* Adds the hull of the rows in a node of the backward that a forward recorded: they have a number, and no thread of a
 * forward. */
static void add_recomputed(struct replay_plan *plan, struct replay_stretches *stretches,
                           const struct replay_operator *outermost)
{
	const struct track *track = plan->graph->model->tracks[outermost->track];
	double first_ns = INFINITY, last_ns = -INFINITY;

	for (uint32_t row = outermost->row + 1, i; row < track->span_count; row++) {
		const struct span_chunk *chunk = track_chunk(track, row, &i);
		double start_ns = (double)(chunk->start_ns[i] - plan->graph->origin_ns);
		uint64_t sequence = span_sequence(chunk, i);

		if (start_ns >= outermost->end_ns)
			break;
		if (chunk->kind[i] != SPAN_OP || chunk->flags[i] & SPAN_IS_BACKWARD ||
		    sequence == STEPSCOPE_NO_SEQUENCE || sequence >> 48)
			continue;
		first_ns = fmin(first_ns, start_ns);
		last_ns = fmax(last_ns, start_ns + (double)chunk->dur_ns[i]);
	}
	plan_stretches_add(stretches, plan, first_ns, last_ns);
}

bool cut_recompute(struct replay_plan *plan)
{
	const struct replay_graph *graph = plan->graph;
	bool is_any = false;

	for (uint32_t t = 0; t < graph->thread_count; t++) {
		struct replay_stretches stretches = {0};

		for (uint32_t i = 0; i < graph->threads[t].operator_count; i++)
			if (pytorch_begins(model_text(graph->model, graph->threads[t].operators[i].name),
			                   PYTORCH_ENGINE))
				add_recomputed(plan, &stretches, &graph->threads[t].operators[i]);
		is_any |= replay_plan_remove(plan, t, &stretches);
	}
	return is_any;
}
