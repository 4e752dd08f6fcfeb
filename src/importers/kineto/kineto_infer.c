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
#include "model/number_map.h"
#include "pytorch/names.h"
#include "steps/fit_phases.h"
#include "steps/inference.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <stepscope/stepscope.h>
#include <string.h>
#include <strings.h>

#define REPEATS_MIN 3u

/* ---- what repeats ---- */

struct repeat {
	uint64_t count, dur_ns;
	int64_t first_ns, last_ns;
	bool is_inside_itself; /* or crosses itself */
};

/* The user's own annotations, and calls of a module that lie in no other. *module_end_ns: of the last of those. */
static bool may_repeat(const struct model *model, const struct staged_span *span, int64_t *module_end_ns)
{
	static const char *const of_pytorch[] = {
		"nccl:", "gloo:", "mpi:", "ucc:", "enumerate(", "Optimizer.", "Torch-Compiled"};
	if (span->dur_ns < 0)
		return false;
	if (span->kind == SPAN_MODULE) {
		bool is_outermost = span->start_ns >= *module_end_ns;
		*module_end_ns = is_outermost ? span->start_ns + span->dur_ns : *module_end_ns;
		return is_outermost;
	}
	const char *name = model_text(model, span->name);
	if (!strcmp(name, KINETO_NO_NAME)) /* nothing says that they are alike */
		return false;
	for (size_t i = 0; i < sizeof of_pytorch / sizeof *of_pytorch; i++)
		if (pytorch_begins(name, of_pytorch[i]))
			return false;
	return span->kind == SPAN_ANNOTATION || span->kind == SPAN_RANGE;
}

/* Is what is written so far the name of something that is counted as it comes? The number of a layer says which one. */
static bool counts_passes(const char *text, size_t length)
{
	static const char *const words[] = {"step", "iteration", "iter", "batch", "epoch", "request", "run", "loop"};
	while (length && !isalpha((unsigned char)text[length - 1]))
		length--;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t word = strlen(words[i]);
		if (length >= word && !strncasecmp(text + length - word, words[i], word))
			return true;
	}
	return false;
}

/* "iteration 17" and "iteration 18" are one name; "layer 17" and "layer 18" are two. */
static uint32_t name_of_repeat(struct model *model, const struct staged_span *span)
{
	const char *at = model_text(model, span->name);
	bool is_counted = false;
	char text[256];
	size_t length = 0;
	if (span->kind == SPAN_MODULE) /* there the number says which one */
		return span->name;
	for (bool was_digit = false; *at && length < sizeof text - 1; at++) {
		bool is_digit = isdigit((unsigned char)*at);
		if (is_digit && !was_digit)
			is_counted = counts_passes(text, length);
		if (!is_digit || !is_counted)
			text[length++] = *at;
		else if (!was_digit)
			text[length++] = '#';
		was_digit = is_digit;
	}
	text[length] = '\0';
	return *at ? span->name : intern_add(&model->strings, text);
}

static struct repeat *repeat_of(struct number_map *map, struct repeat **repeats, uint32_t name)
{
	uint32_t count = map->count, found = number_map_add(map, name, count);
	if (found == count) {
		if (!(found & (found + 1)))
			*repeats = memory_resize(*repeats, 2 * (size_t)found + 2, sizeof **repeats);
		(*repeats)[found] = (struct repeat){0};
	}
	return &(*repeats)[found];
}

static void add_repeat(struct repeat *repeat, const struct staged_span *span)
{
	int64_t end_ns = span->start_ns + span->dur_ns;
	repeat->is_inside_itself |= repeat->count && span->start_ns < repeat->last_ns;
	repeat->first_ns = repeat->count ? repeat->first_ns : span->start_ns;
	repeat->last_ns = repeat->count && repeat->last_ns > end_ns ? repeat->last_ns : end_ns;
	repeat->count++;
	repeat->dur_ns += (uint64_t)span->dur_ns;
}

/* Of two that take the same time, wherever they are in the file. */
static bool is_before(const struct model *model, uint32_t name, uint32_t other)
{
	return !other || strcmp(model_text(model, name), model_text(model, other)) < 0;
}

/* The name that takes the most time, if that is at least half of the thread's; 0: none. */
static uint32_t find_repeat(struct model *model, const struct staged_track *track)
{
	struct number_map map = {0};
	struct repeat *repeats = NULL, all = {0};
	int64_t module_end_ns = INT64_MIN;
	uint64_t most_ns = 0;
	uint32_t best = 0;
	for (uint32_t i = 0; i < track->count; i++) {
		const struct staged_span *span = &track->spans[i];
		if (span->dur_ns >= 0)
			add_repeat(&all, span);
		if (may_repeat(model, span, &module_end_ns))
			add_repeat(repeat_of(&map, &repeats, name_of_repeat(model, span)), span);
	}
	for (uint32_t i = 0; i < map.capacity; i++) {
		const struct number_map_slot *slot = &map.slots[i];
		const struct repeat *repeat = slot->value == NUMBER_MAP_NONE ? NULL : &repeats[slot->value];
		if (repeat && repeat->count >= REPEATS_MIN && !repeat->is_inside_itself &&
		    repeat->dur_ns >= (uint64_t)(all.last_ns - all.first_ns) / 2 &&
		    (repeat->dur_ns > most_ns ||
		     (repeat->dur_ns == most_ns && is_before(model, (uint32_t)slot->key, best)))) {
			most_ns = repeat->dur_ns;
			best = (uint32_t)slot->key;
		}
	}
	free(repeats);
	number_map_release(&map);
	return best;
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
		if (may_repeat(model, span, &module_end_ns) && name_of_repeat(model, span) == name)
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

static void say_doubts(struct model *model, const struct staged_track *track, const struct inference *inference)
{
	if (inference->is_joined)
		model_add_ledger(model, LEDGER_OTHER, track->process, "steps", 1,
		                 "the number of steps is uncertain: optimizers that step without data between them "
		                 "were taken for one step")
			->code = LEDGER_CODE_UNCERTAIN_STEPS;
	if (inference->is_each_update)
		model_add_ledger(model, LEDGER_OTHER, track->process, "steps", 1,
		                 "the number of steps is uncertain: a trace does not tell optimizers apart, so every "
		                 "update was taken for a step")
			->code = LEDGER_CODE_UNCERTAIN_STEPS;
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
		say_doubts(model, track, &steps);
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
