/* SPDX-License-Identifier: Apache-2.0
 *
 * operator_inputs.c: see operator_inputs.h. No function here trusts the text.
 */
#include "model/operator_inputs.h"

#include <string.h>

/* Removes the outer brackets: a list of tensors that is the only input has a pair around it. */
static void open_list(struct inputs_part *line)
{
	if (line->length < 6 || memcmp(line->text, "[[[", 3) != 0 ||
	    memcmp(line->text + line->length - 3, "]]]", 3) != 0)
		return;
	line->text++;
	line->length -= 2;
}

struct operator_inputs operator_inputs_split(const char *text)
{
	struct operator_inputs inputs = {.sizes = {text, strcspn(text, "\n")}};
	for (text += inputs.sizes.length; *text == '\n'; text += strcspn(text, "\n")) {
		text++;
		struct inputs_part *line = *text == 't'   ? &inputs.types
		                           : *text == 's' ? &inputs.strides
		                           : *text == 'v' ? &inputs.values
		                                          : NULL;
		if (line && text[1] == ' ')
			*line = (struct inputs_part){text + 2, strcspn(text + 2, "\n")};
	}
	open_list(&inputs.sizes);
	open_list(&inputs.strides);
	return inputs;
}

bool operator_inputs_next(const struct inputs_part *line, char separator, struct inputs_part *part)
{
	if (!line->text)
		return false;
	const char *end = line->text + line->length, *at = part->text ? part->text + part->length : line->text;
	if (part->text && at == end)
		return false;
	at += part->text != NULL;
	part->text = at;
	for (int depth = 0; at < end && (depth > 0 || *at != separator); at++)
		depth += (*at == '[') - (*at == ']');
	part->length = (size_t)(at - part->text);
	return true;
}

int operator_inputs_numbers(const struct inputs_part *part, int64_t *numbers, int most)
{
	const char *at = part->text, *end = at + part->length;
	int count = 0;
	if (part->length < 2 || *at != '[' || end[-1] != ']')
		return -1;
	for (at++, end--; at < end; at += at < end && *at == ',' ? 2 : 0) {
		bool is_negative = *at == '-';
		uint64_t number = 0;
		at += is_negative;
		if (count == most || at == end || *at < '0' || *at > '9')
			return -1;
		for (; at < end && *at >= '0' && *at <= '9'; at++)
			number = number * 10 + (uint64_t)(*at - '0');
		numbers[count++] = (int64_t)(is_negative ? 0 - number : number);
		if (at < end && (*at != ',' || end - at < 3 || at[1] != ' '))
			return -1;
	}
	return count;
}
