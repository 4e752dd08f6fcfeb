/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope_json.c: tokens of speedscope's JSON: keys, elements, numbers, texts. See speedscope.h.
 */
#include "importers/kineto/kineto_value.h"
#include "importers/stacks/speedscope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void speedscope_note(struct speedscope *scope, enum speedscope_repair repair)
{
	repair_note(&scope->repairs[repair], scope->json.offset);
}

enum json_stream_token speedscope_next(struct speedscope *scope)
{
	return json_stream_next(&scope->json);
}

void speedscope_copy_text(const struct speedscope *scope, char *out, size_t size)
{
	size_t length = scope->json.length < size - 1 ? scope->json.length : size - 1;
	memcpy(out, scope->json.text, length);
	out[length] = '\0';
}

bool speedscope_next_key(struct speedscope *scope, char *key, size_t size, enum json_stream_token *value)
{
	if (speedscope_next(scope) != STREAM_KEY)
		return false;
	speedscope_copy_text(scope, key, size);
	*value = speedscope_next(scope);
	return *value != STREAM_ERROR;
}

bool speedscope_next_element(struct speedscope *scope, enum json_stream_token *value)
{
	*value = speedscope_next(scope);
	return *value != STREAM_ERROR && *value != STREAM_ARRAY_END;
}

bool speedscope_is_begin(struct speedscope *scope, enum json_stream_token value, enum json_stream_token wanted)
{
	if (value != wanted)
		json_stream_skip(&scope->json, value);
	return value == wanted;
}

bool speedscope_number(struct speedscope *scope, enum json_stream_token value, long double *number)
{
	char *end;
	bool is_scalar = value == STREAM_NUMBER || value == STREAM_STRING;
	*number = is_scalar ? strtold(scope->json.text, &end) : 0;
	bool is_good = is_scalar && scope->json.length && !*end && fabsl(*number) <= SPEEDSCOPE_NUMBER_MAX;
	json_stream_skip(&scope->json, value);
	return is_good;
}

bool speedscope_index(struct speedscope *scope, enum json_stream_token value, uint32_t *index)
{
	long double number;
	bool is_good = speedscope_number(scope, value, &number) && number >= 0 && number < SPEEDSCOPE_FRAMES_MAX &&
	               number == floorl(number);
	*index = is_good ? (uint32_t)number : 0;
	return is_good;
}

uint32_t speedscope_text(struct speedscope *scope, enum json_stream_token value)
{
	struct json_stream *json = &scope->json;
	struct buffer *text = &scope->profile.text;
	const struct kineto_value raw = {json->text, (uint32_t)json->length, VALUE_STRING,
	                                 TEXT_HAS_ESCAPE | TEXT_IS_NOT_ASCII};
	uint32_t string = 0;
	if (value == STREAM_STRING) {
		if (json->is_cut)
			speedscope_note(scope, SPEEDSCOPE_LONG);
		buffer_clear(text);
		kineto_append_text(text, &raw);
		string = text->length ? stack_profile_text_of(&scope->profile) : 0;
	}
	json_stream_skip(json, value);
	return string;
}
