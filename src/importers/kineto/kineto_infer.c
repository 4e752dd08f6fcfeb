/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_infer.c: steps and phases of a trace that marks none, by what PyTorch says: the rules are those of steps/infer_steps.h. Where it
 * says nothing, as in inference, an annotation or module that comes again and again and takes most of the time is a step. What is found
 * is put among the staged spans, before they are delivered.
 */
#include "base/memory.h"
#include "base/merge_sort.h"
#include "importers/kineto/kineto_deliver.h"
#include "importers/kineto/kineto_import.h"
#include "importers/kineto/kineto_nodes.h"
#include "importers/kineto/kineto_tokens.h"
#include "steps/fit_phases.h"
#include "steps/infer_repeats.h"
#include "steps/inference.h"
#include "steps/step_doubts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>

/* The name that the span has in each pass; 0: it is no step. The user's own annotations may be one, and calls of a module that lie in no
 * other, whose number says which one. *module_end_ns: of the last of those. */
static uint32_t name_of_repeat(struct model *model, const struct staged_span *span, int64_t *module_end_ns)
{
	if (span->dur_ns < 0)
		return 0;
	if (span->kind == SPAN_MODULE) {
		bool is_outermost = span->start_ns >= *module_end_ns;
		*module_end_ns = is_outermost ? span->start_ns + span->dur_ns : *module_end_ns;
		return is_outermost ? span->name : 0;
	}
	bool is_range = span->kind == SPAN_ANNOTATION || span->kind == SPAN_RANGE;
	bool has_name = is_range && strcmp(model_text(model, span->name), KINETO_NO_NAME) != 0;
	return has_name ? repeats_name(model, span->name) : 0; /* without names nothing says that they are alike */
}

static uint32_t find_repeat(struct model *model, const struct staged_track *track)
{
	struct repeats repeats = {0};
	int64_t module_end_ns = INT64_MIN;
	for (uint32_t i = 0; i < track->count; i++) {
		const struct staged_span *span = &track->spans[i];
		repeats_add(&repeats, name_of_repeat(model, span, &module_end_ns), span->start_ns, span->dur_ns);
	}
	uint32_t found = repeats_find(&repeats, model);
	repeats_release(&repeats);
	return found;
}

/* ---- into the track ---- */

struct kineto_infer_found { /* spans to put in */
	struct staged_span *spans;
	uint32_t count, capacity, steps, phases;
};

static void kineto_infer_add_found(struct kineto_infer_found *found, struct model *model, int64_t start_ns,
                                   int64_t end_ns, uint8_t what)
{
	bool is_step = what == INFERRED_STEP, is_generation = what == INFERRED_GENERATION;
	const char *name = is_step ? "step" : INFERRED_GENERATION_NAME;
	MEMORY_GROW(found->spans, found->count, found->capacity, 64);
	found->spans[found->count++] = (struct staged_span){
		.start_ns = start_ns,
		.dur_ns = end_ns - start_ns,
		.name = is_step || is_generation ? intern_add(&model->strings, name) : what,
		.kind = is_step         ? SPAN_STEP
	                : is_generation ? SPAN_RANGE
	                                : SPAN_PHASE,
		.flags = is_generation ? 0 : SPAN_IS_INFERRED};
	found->steps += is_step;
	found->phases += !is_step && !is_generation;
}

static void take_repeats(struct kineto_infer_found *found, struct model *model, const struct staged_track *track,
                         uint32_t name)
{
	int64_t module_end_ns = INT64_MIN;
	for (uint32_t i = 0; i < track->count && name; i++) {
		const struct staged_span *span = &track->spans[i];
		if (name_of_repeat(model, span, &module_end_ns) == name)
			kineto_infer_add_found(found, model, span->start_ns, span->start_ns + span->dur_ns,
			                       INFERRED_STEP);
	}
}

/* Where steps begin and end, in order: those that the trace marks, or else those that were found; returns how many. */
static uint32_t find_bounds(const struct staged_track *track, const struct kineto_infer_found *found, int64_t **bounds)
{
	const struct staged_span *spans = track->has_steps ? track->spans : found->spans;
	uint32_t span_count = track->has_steps ? track->count : found->count, count = 0, capacity = 0;
	*bounds = NULL;
	for (uint32_t i = 0; i < span_count; i++) {
		const struct staged_span *span = &spans[i];
		if (span->kind != SPAN_STEP)
			continue;
		if (count + 2 > capacity) {
			capacity = capacity ? 2 * capacity : 64;
			*bounds = memory_resize(*bounds, capacity, sizeof **bounds);
		}
		(*bounds)[count++] = span->start_ns;
		(*bounds)[count++] = span->start_ns + (span->dur_ns > 0 ? span->dur_ns : 0);
	}
	return count;
}

static void infer(struct inference *inference, const struct kineto_tokens *tokens)
{
	infer_steps(inference, &(struct train_loop){.records = tokens->records,
	                                            .count = tokens->count,
	                                            .ranges = tokens->ranges,
	                                            .hooked = tokens->hooked,
	                                            .hooked_count = tokens->hooked_count});
}

/* Pipeline parallel training: a window may have the forwards of other micro-batches than its backwards. */
static bool has_other_batches(const struct kineto_group *group)
{
	return group->early_nodes > group->node_count / 2;
}

/* frames: calls of Python are ranges, which steps take in as a whole; plain: the same trace without them, which has the phases. */
static void take_inferred(struct kineto_infer_found *found, struct model *model, const struct staged_track *track,
                          const struct kineto_tokens *frames, const struct kineto_tokens *plain, bool has_phases)
{
	struct inference steps, phases;
	int64_t *bounds;
	infer(&steps, frames);
	for (size_t i = 0; i < steps.count && !track->has_steps; i++)
		if (steps.list[i].what == INFERRED_STEP)
			kineto_infer_add_found(found, model, steps.list[i].start_ns, steps.list[i].end_ns,
			                       INFERRED_STEP);
	if (!track->has_steps)
		step_doubts_say(model, track->process, &steps, DOUBTS_OF_TRACE);
	inference_release(&steps);
	if (!has_phases)
		return;
	infer(&phases, plain);
	uint32_t bound_count = find_bounds(track, found, &bounds);
	fit_phases(&phases, frames->ranges, frames->range_count, bounds, bound_count);
	for (size_t i = 0; i < phases.count; i++)
		kineto_infer_add_found(found, model, phases.list[i].start_ns, phases.list[i].end_ns,
		                       phases.list[i].what);
	inference_release(&phases);
	free(bounds);
}

/* The track is sorted by start. */
static void kineto_infer_merge(struct storage *storage, struct staged_track *track,
                               const struct kineto_infer_found *found)
{
	merge_sort(found->spans, found->count, sizeof *found->spans, kineto_compare_spans);
	uint32_t from = track->count, left = found->count, to = from + left;
	track->spans = storage_resize(storage, track->spans, to, sizeof *track->spans);
	track->count = track->capacity = to;
	track->is_sorted &= !left;
	while (left) {
		const struct staged_span *put = &found->spans[left - 1];
		bool is_behind = !from || kineto_compare_spans(&track->spans[from - 1], put) <= 0;
		track->spans[--to] = is_behind ? *put : track->spans[from - 1];
		left -= is_behind;
		from -= !is_behind;
	}
	assert(to == from); /* what is left is in its place */
}

/* Without sequence numbers. */
static void say_names(struct model *model, const struct staged_track *track, const struct kineto_tokens *tokens)
{
	char text[400];
	snprintf(text, sizeof text,
	         "operators have no sequence numbers: forwards are told by the names of the backwards' nodes, of which "
	         "%" PRIu64 " of %" PRIu64 " have the name of an operator before them%s",
	         tokens->nodes_made, tokens->nodes,
	         2 * tokens->nodes_made < tokens->nodes
	                 ? "; that is less than half, so steps and phases are uncertain: backwards "
	                   "with nothing known between them count as one"
	                 : "");
	model_add_ledger(model, LEDGER_OTHER, track->process, "phases", 1, text);
}

static void say(struct model *model, const struct staged_track *track, const struct kineto_infer_found *found,
                uint32_t repeat)
{
	char text[400];
	if (found->phases)
		model_add_ledger(
			model, LEDGER_OTHER, track->process, "phases", found->phases,
			"the trace names no phases: they are inferred from optimizers, backwards and waits for "
			"data");
	if (!found->steps)
		return;
	if (repeat)
		snprintf(text, sizeof text,
		         "the trace marks no steps (no ProfilerStep): '%.200s' comes again and again and takes most of "
		         "the time, so each is taken for one",
		         model_text(model, repeat));
	else
		snprintf(text, sizeof text,
		         "the trace marks no steps (no ProfilerStep): they are inferred from optimizers, backwards and "
		         "waits for data");
	model_add_ledger(model, LEDGER_OTHER, track->process, "steps", found->steps, text);
}

/* How many of these tracks mark steps. */
static uint32_t count_markers(const struct kineto_stage *stage, const uint32_t *tracks, uint32_t count)
{
	uint32_t markers = 0;
	for (uint32_t i = 0; i < count; i++)
		markers += stage->tracks[tracks[i]].has_steps;
	return markers;
}

/* By another thread of the process; or by another process, of which one that marks none is a worker. has_markers: before
 * any steps were inferred. */
static bool are_marked_elsewhere(const struct kineto_stage *stage, const struct kineto_group *group, uint32_t training,
                                 bool has_markers)
{
	uint32_t markers = count_markers(stage, group->tracks, group->count);
	return markers ? markers > stage->tracks[training].has_steps : has_markers;
}

static void infer_process(struct kineto_import *import, const struct kineto_group *group, const uint8_t *kinds,
                          uint8_t *classes, bool has_markers)
{
	struct kineto_stage *stage = &import->stage;
	uint32_t training, repeat = 0;
	struct kineto_tokens frames, plain = {0};
	struct kineto_infer_found found = {0};
	if (!kineto_tokens_init(&frames, import, group, kinds, classes, true, &training))
		return;
	struct staged_track *track = &stage->tracks[training];
	bool is_elsewhere = are_marked_elsewhere(stage, group, training, has_markers);
	bool is_wanted = !frames.has_phases && !is_elsewhere;
	if (is_wanted && import->has_python)
		kineto_tokens_init(&plain, import, group, kinds, classes, false, &training);
	if (is_wanted)
		take_inferred(&found, import->model, track, &frames, import->has_python ? &plain : &frames,
		              !has_other_batches(group));
	if (!found.steps && !track->has_steps && !is_elsewhere) {
		repeat = find_repeat(import->model, track);
		take_repeats(&found, import->model, track, repeat);
	}
	kineto_infer_merge(import->stage.storage, track, &found);
	say(import->model, track, &found, repeat);
	if (is_wanted && has_other_batches(group))
		model_add_ledger(
			import->model, LEDGER_OTHER, track->process, "phases", group->early_nodes,
			"phases are unknown: most backwards belong to forwards before the trace, as in pipeline "
			"parallel training");
	if (found.phases && frames.nodes)
		say_names(import->model, track, &frames);
	track->has_steps |= found.steps > 0;
	kineto_tokens_release(&frames);
	kineto_tokens_release(&plain);
	free(found.spans);
}

/* ---- all of them ---- */

/* Tracks by process, within one in the order of the stage; those of the file's process i are order[ends[i - 1]] to order[ends[i] - 1]. */
static uint32_t *group_tracks(const struct kineto_import *import, uint32_t *order)
{
	const struct kineto_stage *stage = &import->stage;
	uint32_t count = import->model->processes_count - import->first_process;
	uint32_t *ends = memory_resize(NULL, (size_t)count + 1, sizeof *ends);
	memset(ends, 0, ((size_t)count + 1) * sizeof *ends);
	for (uint32_t i = 0; i < stage->tracks_count; i++) {
		assert(stage->tracks[i].process - import->first_process < count);
		ends[stage->tracks[i].process - import->first_process + 1]++;
	}
	for (uint32_t i = 1; i <= count; i++)
		ends[i] += ends[i - 1];
	for (uint32_t i = 0; i < stage->tracks_count; i++) /* what were begins become ends */
		order[ends[stage->tracks[i].process - import->first_process]++] = i;
	return ends;
}

static bool has_sequence(const struct kineto_stage *stage)
{
	for (uint32_t i = 0; i < stage->extras_count; i++)
		if (stage->extras[i].sequence != STEPSCOPE_NO_SEQUENCE)
			return true;
	return false;
}

void kineto_infer(struct kineto_import *import, const uint8_t *kinds)
{
	size_t strings = import->model->strings.count + (size_t)1;
	if (import->is_ours) /* what it was made of was inferred before */
		return;
	import->has_no_sequence = !has_sequence(&import->stage);
	uint32_t *order = memory_resize(NULL, (size_t)import->stage.tracks_count + 1, sizeof *order);
	uint32_t *ends = group_tracks(import, order);
	bool has_markers = count_markers(&import->stage, order, import->stage.tracks_count) > 0;
	uint8_t *classes = memory_resize(NULL, strings, sizeof *classes);
	memset(classes, 0, strings);
	for (uint32_t i = import->first_process, begin = 0; i < import->model->processes_count; i++) {
		uint32_t end = ends[i - import->first_process];
		struct kineto_group group = {.tracks = order + begin, .count = end - begin};
		kineto_nodes_find(import, &group, kinds);
		infer_process(import, &group, kinds, classes, has_markers);
		node_numbers_release(&group.nodes);
		begin = end;
	}
	free(classes);
	free(ends);
	free(order);
}
