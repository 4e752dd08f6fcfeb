/* SPDX-License-Identifier: Apache-2.0
 *
 * stack_profile.c: see stack_profile.h.
 */
#include "importers/stacks/stack_profile.h"

#include "importers/kineto/kineto_value.h"
#include "model/reasons.h"

#include <assert.h>
#include <string.h>

#define STACKS_MAX (8u << 20)
#define LONGEST_TEXT ((size_t)33 << 20)

void stack_profile_init(struct stack_profile *profile, struct model *model, const char *path)
{
	*profile = (struct stack_profile){.model = model, .path = path};
	buffer_init(&profile->text, LONGEST_TEXT * 3);
	if (!model->stacks_count)
		model_add_frame(model, &(struct stack_node){0}); /* entry 0 is unused */
}

void stack_profile_release(struct stack_profile *profile)
{
	number_map_release(&profile->frames);
	number_map_release(&profile->samples);
	number_map_release(&profile->tracks);
	number_map_release(&profile->processes);
	buffer_release(&profile->text);
}

uint32_t stack_profile_text_of(struct stack_profile *profile)
{
	struct intern *strings = &profile->model->strings;
	uint32_t before = strings->count;
	if (profile->text_bytes >= STACK_PROFILE_TEXTS) {
		uint32_t known = intern_find(strings, profile->text.data);
		profile->textless += !known && profile->text.length;
		return known;
	}
	uint32_t string = intern_add_n(strings, profile->text.data ? profile->text.data : "", profile->text.length);
	if (strings->count > before)
		profile->text_bytes += profile->text.length;
	return string;
}

uint32_t stack_profile_text(struct stack_profile *profile, const char *text, size_t length)
{
	const struct kineto_value value = {text, (uint32_t)length, VALUE_NONE, TEXT_IS_NOT_ASCII};
	buffer_clear(&profile->text);
	kineto_append_text(&profile->text, &value);
	return stack_profile_text_of(profile);
}

uint32_t stack_profile_process(struct stack_profile *profile, uint32_t name, int64_t pid)
{
	struct model *model = profile->model;
	uint32_t found = number_map_find(&profile->processes, name);
	if (found == NUMBER_MAP_NONE) {
		if (model->tracks_count >= STACK_PROFILE_TRACKS)
			return MODEL_NONE;
		found = model_add_process(model);
		model->processes[found].role = STEPSCOPE_ROLE_IMPORTED;
		model->processes[found].pid = pid;
		model->processes[found].name = name;
		model->processes[found].is_closed = true;
		number_map_set(&profile->processes, name, found);
	}
	return found;
}

uint32_t stack_profile_new_track(struct stack_profile *profile, uint32_t process, uint32_t name, int64_t tid)
{
	struct model *model = profile->model;
	if (process == MODEL_NONE || model->tracks_count >= STACK_PROFILE_TRACKS)
		return MODEL_NONE;
	uint32_t track = model_add_track(model, process, tid ? TRACK_THREAD : TRACK_OTHER);
	model->tracks[track]->name = name;
	model->tracks[track]->tid = tid;
	model->tracks[track]->sort = track;
	return track;
}

uint32_t stack_profile_track(struct stack_profile *profile, uint32_t process, uint32_t name, int64_t tid)
{
	uint64_t key = (uint64_t)process << 32 | name;
	uint32_t found = number_map_find(&profile->tracks, key);
	if (found == NUMBER_MAP_NONE) {
		found = stack_profile_new_track(profile, process, name, tid);
		if (found != MODEL_NONE)
			number_map_set(&profile->tracks, key, found);
	}
	return found;
}

bool stack_profile_has_room(const struct stack_profile *profile, uint32_t depth)
{
	return depth < STACK_PROFILE_DEPTH && profile->model->stacks_count < STACKS_MAX &&
	       profile->text_bytes < STACK_PROFILE_TEXTS;
}

uint32_t stack_profile_cut(struct stack_profile *profile, uint32_t stack)
{
	profile->cut++;
	return stack_frame(profile->model, &profile->frames, stack, 0);
}

bool stack_profile_sample(struct stack_profile *profile, const struct sample *sample)
{
	bool has_room = profile->model->samples_count < STACK_PROFILE_SAMPLES && sample->track != MODEL_NONE;
	if (has_room) {
		model_add_sample(profile->model, sample);
		profile->model->processes[profile->model->tracks[sample->track]->process].event_count++;
	} else if (sample->track == MODEL_NONE) {
		profile->trackless++;
	} else {
		profile->left_out++;
	}
	return has_room;
}

bool stack_profile_add(struct stack_profile *profile, const struct sample *sample)
{
	uint64_t key = (uint64_t)sample->track << 32 | sample->stack;
	uint32_t found = number_map_find(&profile->samples, key);
	assert(found == NUMBER_MAP_NONE || found < profile->model->samples_count);
	uint64_t *weight = found != NUMBER_MAP_NONE ? &profile->model->samples[found].weight : NULL;
	if (weight && sample->weight <= INT64_MAX && *weight <= INT64_MAX - sample->weight) {
		*weight += sample->weight;
		return true;
	}
	if (!stack_profile_sample(profile, sample))
		return false;
	number_map_set(&profile->samples, key, profile->model->samples_count - 1);
	return true;
}

void stack_profile_finish(struct stack_profile *profile, const char *format, const char *weights)
{
	const struct {
		uint64_t count;
		enum ledger_kind kind;
		const char *sentence;
	} losses[] = {
		{profile->cut, LEDGER_OTHER,
	         "stacks were cut after 4096 frames, or because the file has more than 8 million distinct stacks; the rest is "
	         "one frame, \"(more frames)\""},
		{profile->left_out, LEDGER_OTHER, "samples after the first 16 million were left out"},
		{profile->trackless, LEDGER_OTHER, "samples of threads after the first million were left out"},
		{profile->textless, LEDGER_OTHER, "texts after 512 MB of distinct texts were left out"},
	};
	struct model *model = profile->model;
	for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
		if (losses[i].count)
			model_add_ledger(model, losses[i].kind, MODEL_NONE, file_name_of(profile->path),
			                 losses[i].count, losses[i].sentence);
	model_add_meta(model, MODEL_NONE, "trace.format", format);
	if (weights)
		model_add_meta(model, MODEL_NONE, "samples.weights", weights);
}

const char *const stack_profile_reasons[REASON_COUNT] = {
	[REASON_NO_STEPS] = "a stack profile has no steps: use a trace or a recording",
	[REASON_NO_PHASES] = "a stack profile has no phases",
	[REASON_NO_OPERATORS] = "a stack profile has no operators: see the table functions",
	[REASON_NO_MODULES] = "a stack profile has no module calls: see the table functions",
	[REASON_NO_ALLOCATIONS] = "a stack profile has no allocations",
	[REASON_NO_TOTALS] = "a stack profile has no allocator totals",
	[REASON_NO_SHAPES] = "a stack profile has no input sizes",
	[REASON_NO_FORMULA] = "a stack profile has no FLOP or byte counts",
	[REASON_NO_FLOPS] = "a stack profile has no FLOP or byte counts",
	[REASON_NO_BYTES] = "a stack profile has no FLOP or byte counts",
	[REASON_NO_LINES] = "a stack profile has no operators with lines: see the table functions",
	[REASON_NO_METRICS] = "a stack profile has no metrics",
	[REASON_NO_MARKS] = "a stack profile has no marks",
	[REASON_NO_TIMES] = "the file has no times, only the number of samples per stack",
	[REASON_NO_THREAD_USE] = "a stack profile does not contain the CPU time, waits and page faults of a step",
	[REASON_NO_READINGS] = "a stack profile does not contain readings of a thread's CPU time",
	[REASON_NO_COST] = "another tool recorded this",
	[REASON_NO_CAPTURE] = "another tool recorded this",
};
