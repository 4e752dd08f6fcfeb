/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope.c: the importer of speedscope's own JSON, which py-spy, pyinstrument and many others write: shared frames, and profiles, each of
 * samples with weights or of frames that open and close. Keys may come in any order; py-spy writes the names of frames last, so stacks are
 * made of numbers and named in the end. An evented profile becomes samples, too: the stack that is open, and for how long.
 */
#include "importers/importer.h"
#include "importers/other_kinds.h"
#include "importers/stack_profile.h"

#include "base/json_stream.h"
#include "base/memory.h"
#include "importers/kineto_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_MAX (8u << 20)
#define NUMBER_MAX 2e18L /* sums of two fit */

struct frame { /* strings */
	uint32_t name, file, line;
};

enum repair {
	REPAIR_CUT,
	REPAIR_JSON,
	REPAIR_FRAME,
	REPAIR_WEIGHT,
	REPAIR_CLOSE,
	REPAIR_OPEN,
	REPAIR_BACK,
	REPAIR_LONG,
	REPAIR_BOTH,
	REPAIR_LARGE,
	REPAIR_SURPLUS,
	REPAIRS,
};

static const char *const sentences[REPAIRS] = {
	[REPAIR_CUT] = "the file is cut off; what was complete is read",
	[REPAIR_JSON] = "from here on the file is no JSON; what came before is read",
	[REPAIR_FRAME] = "frames that the file does not name, or no numbers of frames",
	[REPAIR_WEIGHT] = "samples without a weight that can be read, or with a negative one, were left out",
	[REPAIR_CLOSE] = "frames close that are not the innermost: those inside of them close, too, or nothing does",
	[REPAIR_OPEN] = "frames that never close last until their profile ends",
	[REPAIR_BACK] = "events before the one that they follow, or without a time, count as at its time",
	[REPAIR_LONG] = "texts of more than 4096 bytes are cut",
	[REPAIR_BOTH] = "samples or weights of a profile that has events, too, were left out",
	[REPAIR_LARGE] = "numbers beyond 2e18 (2e9 seconds) count as that",
	[REPAIR_SURPLUS] = "weights without a sample were left out",
};

struct one_profile {
	char unit[32];
	long double start, end;
	bool has_start, has_end, is_evented;
	/* samples: their stacks and weights; events: the stack that is open from a time on */
	uint32_t *stacks;
	long double *values;
	uint32_t stack_count, value_count, stack_capacity, value_capacity;
	uint32_t open, deeper; /* evented: the stack that is open, and how much deeper it is than what we keep */
	uint64_t offset;
};

struct speedscope {
	struct json_stream json;
	struct stack_profile profile;
	struct number_map stacks; /* by caller and 1 + number of the frame */
	uint16_t *depths;         /* of stacks, from first_stack on */
	uint32_t depth_capacity, first_stack;
	struct frame *frames;
	uint32_t frame_count, frame_capacity, profile_count;
	uint32_t first_sample;
	struct number_map threads; /* ids that names of profiles say */
	uint32_t unknown_units;    /* profiles */
	struct repair_count repairs[REPAIRS];
};

static void note(struct speedscope *scope, enum repair repair)
{
	repair_note(&scope->repairs[repair], scope->json.offset);
}

/* ---- pieces of JSON ---- */

static enum json_stream_token next(struct speedscope *scope)
{
	return json_stream_next(&scope->json);
}

/* What the last token says, as much of it as there is room for. */
static void copy_text(const struct speedscope *scope, char *out, size_t size)
{
	size_t length = scope->json.length < size - 1 ? scope->json.length : size - 1;
	memcpy(out, scope->json.text, length);
	out[length] = '\0';
}

/* In an object: its next key, which is followed by the value's first token. False: the object ends, or the file does. */
static bool next_key(struct speedscope *scope, char *key, size_t size, enum json_stream_token *value)
{
	if (next(scope) != STREAM_KEY)
		return false;
	copy_text(scope, key, size);
	*value = next(scope);
	return *value != STREAM_ERROR;
}

/* In a list: the first token of its next element. */
static bool next_element(struct speedscope *scope, enum json_stream_token *value)
{
	*value = next(scope);
	return *value != STREAM_ERROR && *value != STREAM_ARRAY_END;
}

/* A value that is not what is wanted is passed over. */
static bool is_begin(struct speedscope *scope, enum json_stream_token value, enum json_stream_token wanted)
{
	if (value != wanted)
		json_stream_skip(&scope->json, value);
	return value == wanted;
}

static bool read_number(struct speedscope *scope, enum json_stream_token value, long double *number)
{
	char *end;
	bool is_scalar = value == STREAM_NUMBER || value == STREAM_STRING;
	*number = is_scalar ? strtold(scope->json.text, &end) : 0;
	bool is_good = is_scalar && scope->json.length && !*end && fabsl(*number) <= NUMBER_MAX;
	json_stream_skip(&scope->json, value);
	return is_good;
}

static bool read_index(struct speedscope *scope, enum json_stream_token value, uint32_t *index)
{
	long double number;
	bool is_good = read_number(scope, value, &number) && number >= 0 && number < FRAMES_MAX &&
	               number == floorl(number);
	*index = is_good ? (uint32_t)number : 0;
	return is_good;
}

/* The text with its escapes resolved; 0: it is none. */
static uint32_t read_text(struct speedscope *scope, enum json_stream_token value)
{
	struct json_stream *json = &scope->json;
	struct buffer *text = &scope->profile.text;
	const struct kineto_value raw = {json->text, (uint32_t)json->length, VALUE_STRING,
	                                 TEXT_HAS_ESCAPE | TEXT_IS_NOT_ASCII};
	uint32_t string = 0;
	if (value == STREAM_STRING) {
		if (json->is_cut)
			note(scope, REPAIR_LONG);
		buffer_clear(text);
		kineto_append_text(text, &raw);
		string = text->length ? stack_profile_text_of(&scope->profile) : 0;
	}
	json_stream_skip(json, value);
	return string;
}

/* ---- frames ---- */

static void read_frame(struct speedscope *scope)
{
	struct model *model = scope->profile.model;
	struct frame frame = {0};
	enum json_stream_token value;
	char key[16];
	while (next_key(scope, key, sizeof key, &value)) {
		long double line;
		if (strcmp(key, "name") == 0)
			frame.name = read_text(scope, value);
		else if (strcmp(key, "file") == 0)
			frame.file = read_text(scope, value);
		else if (strcmp(key, "line") == 0)
			frame.line = read_number(scope, value, &line) && line > 0 && line < UINT32_MAX ? (uint32_t)line
			                                                                               : 0;
		else
			json_stream_skip(&scope->json, value);
	}
	if (frame.file)
		frame.file = stack_frame_file(model, model_text(model, frame.file),
		                              intern_length(&model->strings, frame.file));
	if (scope->frame_count == FRAMES_MAX)
		return;
	if (scope->frame_count == scope->frame_capacity) {
		scope->frame_capacity = scope->frame_capacity ? 2 * scope->frame_capacity : 256;
		scope->frames = memory_resize(scope->frames, scope->frame_capacity, sizeof *scope->frames);
	}
	scope->frames[scope->frame_count++] = frame;
}

static void read_shared(struct speedscope *scope)
{
	enum json_stream_token value;
	char key[16];
	while (next_key(scope, key, sizeof key, &value)) {
		if (strcmp(key, "frames") != 0)
			json_stream_skip(&scope->json, value);
		else if (is_begin(scope, value, STREAM_ARRAY_BEGIN))
			while (next_element(scope, &value))
				if (is_begin(scope, value, STREAM_OBJECT_BEGIN))
					read_frame(scope);
	}
}

static uint32_t depth_of(const struct speedscope *scope, uint32_t stack)
{
	return stack >= scope->first_stack && stack ? scope->depths[stack - scope->first_stack] : 0;
}

/* The stack in which `frame` (1 + its number; 0: more frames than are kept) is called. Names come in the end. */
static uint32_t stack_in(struct speedscope *scope, uint32_t parent, uint32_t frame)
{
	struct model *model = scope->profile.model;
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t found = number_map_find(&scope->stacks, key);
	if (found != NUMBER_MAP_NONE)
		return found;
	found = model_add_frame(model, &(struct stack_node){.parent = parent, .frame = frame});
	number_map_set(&scope->stacks, key, found);
	uint32_t place = found - scope->first_stack;
	if (place >= scope->depth_capacity) {
		scope->depth_capacity = scope->depth_capacity ? 2 * scope->depth_capacity : 1024;
		scope->depths = memory_resize(scope->depths, scope->depth_capacity, sizeof *scope->depths);
	}
	scope->depths[place] = (uint16_t)(depth_of(scope, parent) + 1);
	return found;
}

static bool has_room(const struct speedscope *scope, uint32_t stack)
{
	return stack_profile_has_room(&scope->profile, depth_of(scope, stack));
}

/* Is it "thread (12): loader" of py-spy, of a thread that the name of a profile says, too? */
static bool is_known_thread(const struct speedscope *scope, uint32_t frame)
{
	const struct model *model = scope->profile.model;
	const char *name = frame && frame <= scope->frame_count ? model_text(model, scope->frames[frame - 1].name) : "";
	long long tid;
	int length = 0;
	return strncmp(name, "thread (", 8) == 0 && sscanf(name, "thread (%lld)%n", &tid, &length) == 1 && length &&
	       number_map_find(&scope->threads, (uint64_t)tid) != NUMBER_MAP_NONE;
}

/* Outermost frames that only say whose the stack is are taken away, and what they call is outermost. */
static void drop_threads(struct speedscope *scope)
{
	struct model *model = scope->profile.model;
	uint32_t first = scope->first_stack, count = model->stacks_count - first;
	uint32_t *without = memory_resize(NULL, (size_t)count + 1, sizeof *without); /* the same stack without one */
	uint32_t dropped = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct stack_node *node = &model->stacks[first + i];
		bool is_outermost = node->parent < first || !node->parent;
		bool is_thread = is_outermost && is_known_thread(scope, node->frame);
		uint32_t parent = is_outermost ? 0 : without[node->parent - first], number = node->frame;
		dropped += is_thread;
		without[i] = is_thread ? 0 : parent == node->parent ? first + i : stack_in(scope, parent, number);
	}
	for (uint32_t i = scope->first_sample; i < model->samples_count && dropped; i++)
		if (model->samples[i].stack >= first)
			model->samples[i].stack = without[model->samples[i].stack - first];
	free(without);
}

/* Frames have numbers until here. */
static void name_frames(struct speedscope *scope)
{
	struct model *model = scope->profile.model;
	for (uint32_t i = scope->first_stack; i < model->stacks_count; i++) {
		struct stack_node *node = &model->stacks[i];
		uint32_t number = node->frame - 1;
		char text[32];
		if (!node->frame)
			continue;
		if (number < scope->frame_count) {
			const struct frame *frame = &scope->frames[number];
			node->file = frame->file;
			node->line = frame->line;
			node->frame = frame->name;
		} else {
			node->frame = 0;
		}
		if (node->frame)
			continue;
		repair_note(&scope->repairs[REPAIR_FRAME], 0);
		snprintf(text, sizeof text, "(frame %u)", number);
		node->frame = intern_add(&model->strings, text);
	}
}

/* ---- profiles ---- */

static bool add_stack(struct speedscope *scope, struct one_profile *one, uint32_t stack)
{
	if (one->stack_count == STACK_PROFILE_SAMPLES) {
		scope->profile.left_out++;
		return false;
	}
	if (one->stack_count == one->stack_capacity) {
		one->stack_capacity = one->stack_capacity ? 2 * one->stack_capacity : 256;
		one->stacks = memory_resize(one->stacks, one->stack_capacity, sizeof *one->stacks);
	}
	one->stacks[one->stack_count++] = stack;
	return true;
}

static void add_value(struct one_profile *one, long double value)
{
	if (one->value_count == STACK_PROFILE_SAMPLES)
		return;
	if (one->value_count == one->value_capacity) {
		one->value_capacity = one->value_capacity ? 2 * one->value_capacity : 256;
		one->values = memory_resize(one->values, one->value_capacity, sizeof *one->values);
	}
	one->values[one->value_count++] = value;
}

static void read_sample(struct speedscope *scope, struct one_profile *one)
{
	enum json_stream_token value;
	uint32_t stack = 0, number;
	bool is_cut = false;
	while (next_element(scope, &value)) {
		if (!read_index(scope, value, &number)) {
			note(scope, REPAIR_FRAME);
		} else if (has_room(scope, stack)) {
			stack = stack_in(scope, stack, number + 1);
		} else if (!is_cut) {
			stack = stack_in(scope, stack, 0);
			scope->profile.cut++;
			is_cut = true;
		}
	}
	if (value != STREAM_ERROR)
		add_stack(scope, one, stack);
}

/* What is no list keeps its place: weights are by number. */
static void read_samples(struct speedscope *scope, struct one_profile *one)
{
	enum json_stream_token value;
	while (next_element(scope, &value)) {
		if (is_begin(scope, value, STREAM_ARRAY_BEGIN)) {
			read_sample(scope, one);
		} else {
			note(scope, REPAIR_FRAME);
			add_stack(scope, one, 0);
		}
	}
}

static void read_weights(struct speedscope *scope, struct one_profile *one)
{
	enum json_stream_token value;
	long double number;
	while (next_element(scope, &value)) {
		bool is_good = read_number(scope, value, &number) && number >= 0;
		if (!is_good)
			note(scope, REPAIR_WEIGHT);
		add_value(one, is_good ? number : -1);
	}
}

static void open_frame(struct speedscope *scope, struct one_profile *one, uint32_t number)
{
	if (one->deeper) {
		one->deeper++;
	} else if (has_room(scope, one->open)) {
		one->open = stack_in(scope, one->open, number + 1);
	} else {
		one->open = stack_in(scope, one->open, 0);
		one->deeper = 1;
		scope->profile.cut++;
	}
}

static void close_frame(struct speedscope *scope, struct one_profile *one, uint32_t number)
{
	const struct stack_node *stacks = scope->profile.model->stacks;
	if (one->deeper) {
		if (--one->deeper == 0)
			one->open = stacks[one->open].parent;
		return;
	}
	uint32_t stack = one->open;
	while (stack && stacks[stack].frame != number + 1)
		stack = stacks[stack].parent;
	if (stack != one->open || !stack)
		note(scope, REPAIR_CLOSE);
	if (stack)
		one->open = stacks[stack].parent;
}

static void take_event(struct speedscope *scope, struct one_profile *one, char type, uint32_t number,
                       const long double *at)
{
	long double last = one->value_count ? one->values[one->value_count - 1] : at ? *at : 0;
	bool is_late = at && *at >= last;
	if (!is_late)
		note(scope, REPAIR_BACK);
	if (type == 'O')
		open_frame(scope, one, number);
	else
		close_frame(scope, one, number);
	if (one->stack_count && (!is_late || *at == last))
		one->stacks[one->stack_count - 1] = one->open; /* the stack before lasted no time */
	else if (add_stack(scope, one, one->open))
		add_value(one, is_late ? *at : last);
}

static void read_event(struct speedscope *scope, struct one_profile *one)
{
	enum json_stream_token value;
	char key[16], type = 0;
	uint32_t number = 0;
	long double at;
	bool has_frame = false, has_time = false;
	while (next_key(scope, key, sizeof key, &value)) {
		if (strcmp(key, "type") == 0) {
			type = value == STREAM_STRING ? scope->json.text[0] : 0;
			json_stream_skip(&scope->json, value);
		} else if (strcmp(key, "frame") == 0) {
			has_frame = read_index(scope, value, &number);
		} else if (strcmp(key, "at") == 0) {
			has_time = read_number(scope, value, &at);
		} else {
			json_stream_skip(&scope->json, value);
		}
	}
	if (scope->json.error.status != STATUS_OK)
		return;
	if (has_frame && (type == 'O' || type == 'C'))
		take_event(scope, one, type, number, has_time ? &at : NULL);
	else
		note(scope, REPAIR_FRAME);
}

static void read_events(struct speedscope *scope, struct one_profile *one)
{
	enum json_stream_token value;
	if (!one->is_evented && (one->stack_count || one->value_count)) {
		note(scope, REPAIR_BOTH);
		one->stack_count = one->value_count = 0;
	}
	one->is_evented = true;
	while (next_element(scope, &value))
		if (is_begin(scope, value, STREAM_OBJECT_BEGIN))
			read_event(scope, one);
}

static void read_word(struct speedscope *scope, enum json_stream_token value, char *text, size_t size)
{
	if (value == STREAM_STRING)
		copy_text(scope, text, size);
	json_stream_skip(&scope->json, value);
}

static void read_profile_key(struct speedscope *scope, struct one_profile *one, const char *key,
                             enum json_stream_token value, uint32_t *name)
{
	if (strcmp(key, "name") == 0)
		*name = read_text(scope, value);
	else if (strcmp(key, "unit") == 0)
		read_word(scope, value, one->unit, sizeof one->unit);
	else if (strcmp(key, "startValue") == 0)
		one->has_start = read_number(scope, value, &one->start);
	else if (strcmp(key, "endValue") == 0)
		one->has_end = read_number(scope, value, &one->end);
	else if (strcmp(key, "samples") == 0 && value == STREAM_ARRAY_BEGIN && !one->is_evented)
		read_samples(scope, one);
	else if (strcmp(key, "weights") == 0 && value == STREAM_ARRAY_BEGIN && !one->is_evented)
		read_weights(scope, one);
	else if (strcmp(key, "events") == 0 && value == STREAM_ARRAY_BEGIN)
		read_events(scope, one);
	else {
		if (one->is_evented && (strcmp(key, "samples") == 0 || strcmp(key, "weights") == 0))
			note(scope, REPAIR_BOTH);
		json_stream_skip(&scope->json, value);
	}
}

/* ---- into the model ---- */

struct measure {
	const char *unit, *name;
	long double factor;
};

static struct measure measure_of(const struct one_profile *one)
{
	static const struct measure measures[] = {
		{"nanoseconds", "time", 1}, {"microseconds", "time", 1e3L}, {"milliseconds", "time", 1e6L},
		{"seconds", "time", 1e9L},  {"bytes", "bytes", 1},
	};
	for (size_t i = 0; i < sizeof measures / sizeof *measures; i++)
		if (strcmp(one->unit, measures[i].unit) == 0)
			return measures[i];
	if (!*one->unit || strcmp(one->unit, "none") == 0 || strcmp(one->unit, "time") == 0)
		return (struct measure){"none", "samples", 1};
	return (struct measure){one->unit, one->unit, 1};
}

static int64_t scaled(struct speedscope *scope, long double value, const struct measure *measure)
{
	long double result = roundl(value * measure->factor);
	if (fabsl(result) > NUMBER_MAX)
		note(scope, REPAIR_LARGE);
	return result > NUMBER_MAX    ? (int64_t)NUMBER_MAX
	       : result < -NUMBER_MAX ? (int64_t)-NUMBER_MAX
	                              : (int64_t)result;
}

/* `Process 12 Thread 34 "loader"` of py-spy and of our own exporter; what comes behind the numbers is the thread's name. */
static uint32_t track_of(struct speedscope *scope, uint32_t name)
{
	struct stack_profile *profile = &scope->profile;
	const char *text = model_text(profile->model, name), *rest = text;
	long long pid = 0, tid = 0;
	int length = 0;
	if (sscanf(rest, "Process %lld %n", &pid, &length) == 1)
		rest += length;
	length = 0;
	if (sscanf(rest, "Thread %lld %n", &tid, &length) == 1 && length)
		rest += length;
	size_t bytes = strlen(rest);
	bool is_quoted = bytes > 2 && *rest == '"' && rest[bytes - 1] == '"';
	char process_name[32] = "";
	if (pid)
		snprintf(process_name, sizeof process_name, "Process %lld", pid);
	uint32_t process = stack_profile_process(profile, intern_add(&profile->model->strings, process_name), pid);
	if (tid)
		number_map_set(&scope->threads, (uint64_t)tid, 1);
	if (tid && bytes)
		name = intern_add_n(&profile->model->strings, rest + is_quoted, bytes - 2 * (size_t)is_quoted);
	return stack_profile_new_track(profile, process, name ? name : intern_add(&profile->model->strings, "profile"),
	                               tid);
}

static void widen(struct process *process, int64_t first_ns, int64_t last_ns)
{
	bool has_any = process->first_ns || process->last_ns;
	process->first_ns = has_any && process->first_ns < first_ns ? process->first_ns : first_ns;
	process->last_ns = has_any && process->last_ns > last_ns ? process->last_ns : last_ns;
}

/* How long the stack was open, from sample->time_ns on; or its weight. */
static bool weigh(struct speedscope *scope, const struct one_profile *one, const struct measure *measure, uint32_t i,
                  struct sample *sample)
{
	if (!one->is_evented) {
		sample->weight = one->values[i] >= 0 ? (uint64_t)scaled(scope, one->values[i], measure) : 0;
		return one->values[i] >= 0;
	}
	bool is_last = i + 1 == one->value_count;
	long double end = !is_last ? one->values[i + 1] : one->has_end ? one->end : one->values[i];
	sample->time_ns = scaled(scope, one->values[i], measure);
	sample->weight = end > one->values[i] ? (uint64_t)(scaled(scope, end, measure) - sample->time_ns) : 0;
	return sample->stack && sample->weight;
}

static void deliver(struct speedscope *scope, struct one_profile *one, uint32_t name)
{
	const struct measure measure = measure_of(one);
	struct model *model = scope->profile.model;
	uint32_t count = one->stack_count < one->value_count ? one->stack_count : one->value_count;
	for (uint32_t i = count; i < one->value_count; i++)
		repair_note(&scope->repairs[REPAIR_SURPLUS], one->offset);
	for (uint32_t i = count; i < one->stack_count; i++)
		repair_note(&scope->repairs[REPAIR_WEIGHT], one->offset);
	if (one->is_evented && one->open)
		repair_note(&scope->repairs[REPAIR_OPEN], one->offset);
	if (!count)
		return;
	uint32_t track = track_of(scope, name);
	if (track == MODEL_NONE) {
		scope->profile.trackless += count;
		return;
	}
	scope->unknown_units += measure.name == one->unit;
	struct sample sample = {.track = track,
	                        .name = stack_profile_text(&scope->profile, measure.name, strlen(measure.name))};
	int64_t begin_ns = scaled(scope, one->is_evented ? one->values[0] : one->start, &measure);
	sample.time_ns = begin_ns;
	for (uint32_t i = 0; i < count; i++) {
		sample.stack = one->stacks[i];
		if (weigh(scope, one, &measure, i, &sample))
			stack_profile_sample(&scope->profile, &sample);
		if (sample.time_ns < (int64_t)NUMBER_MAX - (int64_t)sample.weight)
			sample.time_ns += (int64_t)sample.weight;
	}
	if (strcmp(measure.name, "time") == 0)
		widen(&model->processes[model->tracks[track]->process], begin_ns, sample.time_ns);
}

static void read_profile(struct speedscope *scope)
{
	struct one_profile one = {.offset = scope->json.offset};
	enum json_stream_token value;
	uint32_t name = 0;
	char key[16];
	while (next_key(scope, key, sizeof key, &value))
		read_profile_key(scope, &one, key, value, &name);
	deliver(scope, &one, name);
	free(one.stacks);
	free(one.values);
	scope->profile_count++;
}

/* ---- the file ---- */

static void read_document(struct speedscope *scope)
{
	struct model *model = scope->profile.model;
	enum json_stream_token value;
	char key[32];
	if (next(scope) != STREAM_OBJECT_BEGIN)
		return;
	while (next_key(scope, key, sizeof key, &value)) {
		if (strcmp(key, "shared") == 0 && value == STREAM_OBJECT_BEGIN)
			read_shared(scope);
		else if (strcmp(key, "profiles") == 0 && value == STREAM_ARRAY_BEGIN)
			while (next_element(scope, &value)) {
				if (is_begin(scope, value, STREAM_OBJECT_BEGIN))
					read_profile(scope);
			}
		else if (strcmp(key, "name") == 0)
			model_add_meta(model, MODEL_NONE, "trace.name", model_text(model, read_text(scope, value)));
		else if (strcmp(key, "exporter") == 0)
			model_add_meta(model, MODEL_NONE, "trace.exporter", model_text(model, read_text(scope, value)));
		else
			json_stream_skip(&scope->json, value);
	}
}

static void finish(struct speedscope *scope)
{
	struct model *model = scope->profile.model;
	const struct json_stream *json = &scope->json;
	if (json->error.status != STATUS_OK)
		repair_note(&scope->repairs[json->is_unterminated ? REPAIR_CUT : REPAIR_JSON],
		            json->window_offset + json->begin);
	drop_threads(scope);
	name_frames(scope);
	for (int i = 0; i < REPAIRS; i++)
		repair_report(&scope->repairs[i], model, scope->profile.path, sentences[i]);
	if (scope->unknown_units)
		model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, file_name_of(scope->profile.path),
		                 scope->unknown_units,
		                 "profiles have a unit that is not known; each such unit is kept apart");
	stack_profile_finish(&scope->profile, "speedscope", NULL);
}

/* A mark of the byte order is no JSON. */
static enum status pass_mark(struct input_stream *input, struct error *err)
{
	const char *head;
	char mark[3];
	size_t length;
	enum status status = input_peek(input, &head, &length, err);
	if (status != STATUS_OK || length < 3 || memcmp(head, "\xef\xbb\xbf", 3) != 0)
		return status;
	return input_read(input, mark, sizeof mark, &length, err);
}

static enum status load_input(struct input_stream *input, const char *path, struct model *model, struct error *err)
{
	struct speedscope scope = {0};
	enum status status = json_stream_init(&scope.json, input, err);
	if (status != STATUS_OK)
		return status;
	stack_profile_init(&scope.profile, model, path);
	scope.first_stack = model->stacks_count;
	scope.first_sample = model->samples_count;
	read_document(&scope);
	if (model->samples_count > scope.first_sample)
		finish(&scope);
	else if (scope.json.error.status != STATUS_OK)
		status = error_set(err, STATUS_INPUT, "'%s' has no samples that can be read: %s", path,
		                   scope.json.error.text);
	else if (scope.repairs[REPAIR_WEIGHT].count)
		status = error_set(err, STATUS_INPUT, "'%s' has no samples that can be read: %s", path,
		                   "none has a weight from 0 to 2e18");
	else if (scope.repairs[REPAIR_LARGE].count)
		status = error_set(err, STATUS_INPUT, "'%s' has no samples that can be read: %s", path,
		                   "its times are beyond 2e9 seconds");
	else
		status = error_set(err, STATUS_INPUT, "'%s' has no samples: its %u profiles are empty", path,
		                   scope.profile_count);
	number_map_release(&scope.stacks);
	number_map_release(&scope.threads);
	free(scope.depths);
	free(scope.frames);
	stack_profile_release(&scope.profile);
	json_stream_release(&scope.json);
	return status;
}

static enum status load(const char *path, const struct model_filter *filter, struct model *model, struct error *err)
{
	struct input_stream *input;
	enum status status = input_open(path, &input, err);
	if (status != STATUS_OK)
		return status;
	status = pass_mark(input, err);
	if (status == STATUS_OK)
		status = load_input(input, path, model, err);
	input_close(input);
	return status;
}

/* By keys of its own near the beginning; what has none of them there is taken for another trace. */
static bool recognises(const char *path, bool is_directory, const char *head, size_t length)
{
	struct input_stream *input;
	struct error ignored;
	bool is_found = false;
	if (is_directory || length == 0 || input_open(path, &input, &ignored) != STATUS_OK)
		return false;
	if (input_peek(input, &head, &length, &ignored) == STATUS_OK)
		is_found = other_kind_is_speedscope(head, length);
	input_close(input);
	return is_found;
}

const struct importer importer_speedscope = {
	.name = "speedscope",
	.description = "speedscope's JSON, as py-spy, pyinstrument and others write it: sampled and evented profiles",
	.recognises = recognises,
	.load = load,
	.is_of_a_rank = true,
};
