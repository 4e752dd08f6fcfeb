/* SPDX-License-Identifier: Apache-2.0
 *
 * template.c: see the header.
 */
#include "base/template.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAXIMUM_TEXT ((size_t)1 << 20)

/* Appends " thing", in the plural unless the number is 1. */
static void template_add_word(struct buffer *out, const char *thing, size_t length, double number)
{
	bool is_hissing = thing[length - 1] == 's'; /* "process", "processes" */

	buffer_printf(out, " %.*s%s", (int)length, thing, number == 1 ? "" : is_hissing ? "es" : "s");
}

static void template_cut(struct buffer *out, size_t length)
{
	if (out->length == length)
		return;
	out->length = length;
	out->data[length] = '\0';
}

/* Appends the gap "{gap}"; returns false if its value is missing. */
static bool template_add_gap(struct buffer *out, const char *gap, size_t length, const struct template_values *values)
{
	bool is_left_out_at_zero = *gap == '?';
	size_t before = out->length, name_length;
	double number = NAN;
	char name[64];

	gap += is_left_out_at_zero;
	length -= is_left_out_at_zero;
	name_length = strcspn(gap, ":|}");
	assert(name_length < sizeof(name) && name_length <= length);
	snprintf(name, sizeof(name), "%.*s", (int)name_length, gap);
	if (!values->add(out, values->context, name, &number)) {
		if (gap[name_length] == '|')
			return buffer_add(out, gap + name_length + 1, length - name_length - 1);
		return false;
	}
	if (is_left_out_at_zero && number == 0) {
		template_cut(out, before);
		return false;
	}
	if (gap[name_length] == ':')
		template_add_word(out, gap + name_length + 1, length - name_length - 1, number);
	return true;
}

/* Appends until `end`, or the end of the template; returns false if a value was missing. */
static bool template_add_part(struct buffer *out, const char **at, char end, const struct template_values *values)
{
	bool is_whole = true;

	while (**at && **at != end) {
		if (**at == '{') {
			size_t length = strcspn(++*at, "}");

			if (!template_add_gap(out, *at, length, values)) {
				is_whole = false;
				buffer_add_text(out, "not measured");
			}
			*at += length + 1;
		} else if (**at == '[') {
			size_t before = out->length;

			++*at;
			if (!template_add_part(out, at, ']', values))
				template_cut(out, before);
			++*at;
		} else if (values->is_ascii && !strncmp(*at, "±", strlen("±"))) {
			buffer_add_text(out, "+-");
			*at += strlen("±");
		} else {
			buffer_add(out, (*at)++, 1);
		}
	}
	return is_whole;
}

void template_add(struct buffer *out, const char *template, const struct template_values *values)
{
	template_add_part(out, &template, '\0', values);
}

/* ---- from texts ---- */

struct template_texts {
	const struct template_text *texts;
	size_t count;
};

static bool template_add_text(struct buffer *out, const void *context, const char *name, double *number)
{
	const struct template_texts *texts = context;

	for (size_t i = 0; i < texts->count; i++)
		if (!strcmp(texts->texts[i].name, name))
			return texts->texts[i].text && buffer_add_text(out, texts->texts[i].text);
	assert(!"a template's gap has a value");
	return false;
}

const char *template_write(struct arena *arena, const char *template, const struct template_text *texts, size_t count)
{
	const struct template_texts context = {texts, count};
	const struct template_values values = {.add = template_add_text, .context = &context};
	const char *written;
	struct buffer out;

	buffer_init(&out, MAXIMUM_TEXT);
	template_add(&out, template, &values);
	written = arena_dup_n(arena, out.data, out.length);
	buffer_release(&out);
	return written;
}
