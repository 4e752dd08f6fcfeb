/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope_profiles.c: reads the profiles one after the other, sampled or evented. See speedscope.h.
 */
#include "base/memory.h"
#include "importers/stacks/speedscope.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool speedscope_profiles_add_stack(struct speedscope *scope, struct speedscope_profile *one, uint32_t stack)
{
	if (one->stack_count == STACK_PROFILE_SAMPLES) {
		scope->profile.left_out++;
		return false;
	}
	MEMORY_GROW(one->stacks, one->stack_count, one->stack_capacity, 256);
	one->stacks[one->stack_count++] = stack;
	return true;
}

static void speedscope_profiles_add_value(struct speedscope_profile *one, long double value)
{
	if (one->value_count == STACK_PROFILE_SAMPLES)
		return;
	MEMORY_GROW(one->values, one->value_count, one->value_capacity, 256);
	one->values[one->value_count++] = value;
}

static void read_sample(struct speedscope *scope, struct speedscope_profile *one)
{
	enum json_stream_token value;
	uint32_t stack = 0, number;
	bool is_cut = false;
	while (speedscope_next_element(scope, &value)) {
		if (!speedscope_index(scope, value, &number)) {
			speedscope_note(scope, SPEEDSCOPE_FRAME);
		} else if (speedscope_has_room(scope, stack)) {
			stack = speedscope_stack(scope, stack, number + 1);
		} else if (!is_cut) {
			stack = speedscope_stack(scope, stack, 0);
			scope->profile.cut++;
			is_cut = true;
		}
	}
	if (value != STREAM_ERROR)
		speedscope_profiles_add_stack(scope, one, stack);
}

/* An element that is not a list keeps its place, because weights are matched by index. */
static void read_samples(struct speedscope *scope, struct speedscope_profile *one)
{
	enum json_stream_token value;
	while (speedscope_next_element(scope, &value)) {
		if (speedscope_is_begin(scope, value, STREAM_ARRAY_BEGIN)) {
			read_sample(scope, one);
		} else {
			speedscope_note(scope, SPEEDSCOPE_FRAME);
			speedscope_profiles_add_stack(scope, one, 0);
		}
	}
}

static void read_weights(struct speedscope *scope, struct speedscope_profile *one)
{
	enum json_stream_token value;
	long double number;
	while (speedscope_next_element(scope, &value)) {
		bool is_good = speedscope_number(scope, value, &number) && number >= 0;
		if (!is_good)
			speedscope_note(scope, SPEEDSCOPE_WEIGHT);
		speedscope_profiles_add_value(one, is_good ? number : -1);
	}
}

static void open_frame(struct speedscope *scope, struct speedscope_profile *one, uint32_t number)
{
	if (one->deeper) {
		one->deeper++;
	} else if (speedscope_has_room(scope, one->open)) {
		one->open = speedscope_stack(scope, one->open, number + 1);
	} else {
		one->open = speedscope_stack(scope, one->open, 0);
		one->deeper = 1;
		scope->profile.cut++;
	}
}

static void close_frame(struct speedscope *scope, struct speedscope_profile *one, uint32_t number)
{
	const struct stack_node *stacks = scope->profile.model->stacks;
	assert(one->open < scope->profile.model->stacks_count);
	if (one->deeper) {
		if (--one->deeper == 0)
			one->open = stacks[one->open].parent;
		return;
	}
	uint32_t stack = one->open;
	while (stack && stacks[stack].frame != number + 1)
		stack = stacks[stack].parent;
	if (stack != one->open || !stack)
		speedscope_note(scope, SPEEDSCOPE_CLOSE);
	if (stack)
		one->open = stacks[stack].parent;
}

static void speedscope_profiles_take_event(struct speedscope *scope, struct speedscope_profile *one, char type,
                                           uint32_t number, const long double *at)
{
	long double last = one->value_count ? one->values[one->value_count - 1] : at ? *at : 0;
	bool is_late = at && *at >= last;
	if (!is_late)
		speedscope_note(scope, SPEEDSCOPE_BACK);
	if (type == 'O')
		open_frame(scope, one, number);
	else
		close_frame(scope, one, number);
	if (one->stack_count && (!is_late || *at == last))
		one->stacks[one->stack_count - 1] = one->open; /* the stack before lasted no time */
	else if (speedscope_profiles_add_stack(scope, one, one->open))
		speedscope_profiles_add_value(one, is_late ? *at : last);
}

static void speedscope_profiles_read_event(struct speedscope *scope, struct speedscope_profile *one)
{
	enum json_stream_token value;
	char key[16], type = 0;
	uint32_t number = 0;
	long double at;
	bool has_frame = false, has_time = false;
	while (speedscope_next_key(scope, key, sizeof key, &value)) {
		if (strcmp(key, "type") == 0) {
			type = value == STREAM_STRING ? scope->json.text[0] : 0;
			json_stream_skip(&scope->json, value);
		} else if (strcmp(key, "frame") == 0) {
			has_frame = speedscope_index(scope, value, &number);
		} else if (strcmp(key, "at") == 0) {
			has_time = speedscope_number(scope, value, &at);
		} else {
			json_stream_skip(&scope->json, value);
		}
	}
	if (scope->json.error.status != STATUS_OK)
		return;
	if (has_frame && (type == 'O' || type == 'C'))
		speedscope_profiles_take_event(scope, one, type, number, has_time ? &at : NULL);
	else
		speedscope_note(scope, SPEEDSCOPE_FRAME);
}

static void speedscope_profiles_read_events(struct speedscope *scope, struct speedscope_profile *one)
{
	enum json_stream_token value;
	if (!one->is_evented && (one->stack_count || one->value_count)) {
		speedscope_note(scope, SPEEDSCOPE_BOTH);
		one->stack_count = one->value_count = 0;
	}
	one->is_evented = true;
	while (speedscope_next_element(scope, &value))
		if (speedscope_is_begin(scope, value, STREAM_OBJECT_BEGIN))
			speedscope_profiles_read_event(scope, one);
}

static void speedscope_profiles_read_word(struct speedscope *scope, enum json_stream_token value, char *text,
                                          size_t size)
{
	if (value == STREAM_STRING)
		speedscope_copy_text(scope, text, size);
	json_stream_skip(&scope->json, value);
}

static void read_profile_key(struct speedscope *scope, struct speedscope_profile *one, const char *key,
                             enum json_stream_token value, uint32_t *name)
{
	if (strcmp(key, "name") == 0)
		*name = speedscope_text(scope, value);
	else if (strcmp(key, "unit") == 0)
		speedscope_profiles_read_word(scope, value, one->unit, sizeof one->unit);
	else if (strcmp(key, "startValue") == 0)
		(void)speedscope_number(scope, value, &one->start);
	else if (strcmp(key, "endValue") == 0)
		one->has_end = speedscope_number(scope, value, &one->end);
	else if (strcmp(key, "samples") == 0 && value == STREAM_ARRAY_BEGIN && !one->is_evented)
		read_samples(scope, one);
	else if (strcmp(key, "weights") == 0 && value == STREAM_ARRAY_BEGIN && !one->is_evented)
		read_weights(scope, one);
	else if (strcmp(key, "events") == 0 && value == STREAM_ARRAY_BEGIN)
		speedscope_profiles_read_events(scope, one);
	else {
		if (one->is_evented && (strcmp(key, "samples") == 0 || strcmp(key, "weights") == 0))
			speedscope_note(scope, SPEEDSCOPE_BOTH);
		json_stream_skip(&scope->json, value);
	}
}

void speedscope_read_profile(struct speedscope *scope)
{
	struct speedscope_profile one = {.offset = scope->json.offset};
	enum json_stream_token value;
	uint32_t name = 0;
	char key[16];
	while (speedscope_next_key(scope, key, sizeof key, &value))
		read_profile_key(scope, &one, key, value, &name);
	speedscope_deliver(scope, &one, name);
	free(one.stacks);
	free(one.values);
	scope->profile_count++;
}
