/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs_text.c: writes inputs as text, in the form of PyTorch's own traces; docs/file-format.md has the form.
 */
#include "agents/torch/inputs_text.h"

#include "agents/torch/inputs_layout.h"
#include "pytorch/types.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct out {
	char *text;
	size_t bytes, at;
	bool is_over;
	uint32_t left_out; /* values to leave out, as given to inputs_write() */
	unsigned values;   /* values so far, at most VALUES_APART - 1: the place of the next one */
};

static void put(struct out *out, const char *text, size_t length)
{
	if (length > out->bytes - out->at) {
		out->is_over = true;
		return;
	}
	memcpy(out->text + out->at, text, length);
	out->at += length;
}

static void put_text(struct out *out, const char *text)
{
	put(out, text, strlen(text));
}

/* Avoids snprintf(): most of a text is numbers, and a program whose sizes change from batch to batch makes many
 * texts. */
static void put_integer(struct out *out, int64_t number)
{
	char text[24], *at = text + sizeof(text);
	uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
	do
		*--at = (char)('0' + left % 10);
	while (left /= 10);
	if (number < 0)
		*--at = '-';
	put(out, at, (size_t)(text + sizeof(text) - at));
}

/* Writes as PyTorch does: whole numbers with a point, others with all digits. */
static void put_double(struct out *out, double number)
{
	char text[40];
	bool is_whole = fabs(number) < 1e10 && number == (double)(int64_t)number;
	int length = is_whole ? snprintf(text, sizeof(text), "%lld.", (long long)number)
	                      : snprintf(text, sizeof(text), "%.17g", number);
	for (char *at = text; *at; at++)
		if (*at == ',') /* from the program's locale */
			*at = '.';
	put(out, text, (size_t)length);
}

static void inputs_text_put_value(struct out *out, uint64_t value, uint32_t tag)
{
	uint64_t bits = value_bits(value, tag);
	double number;
	bool is_left_out = out->left_out >> out->values & 1;
	out->values += out->values < VALUES_APART - 1;
	if (is_left_out)
		return;
	memcpy(&number, &bits, sizeof(number));
	if (tag == inputs_layout.value_tags[INPUTS_BOOL])
		put_text(out, bits ? "True" : "False");
	else if (tag == inputs_layout.value_tags[INPUTS_DOUBLE])
		put_double(out, number);
	else
		put_integer(out, (int64_t)bits);
}

/* ---- one input --------------------------------------------------------------------------------------------------- */

enum what { /* kinds of facts about an input */
	WHAT_SIZES,
	WHAT_TYPES,
	WHAT_STRIDES,
	WHAT_VALUES
};

static void put_type(struct out *out, uint64_t tensor)
{
	uint64_t keys, type = load(tensor, inputs_layout.type) & 0xff;
	const struct pytorch_type *known = tensor_depth(tensor, &keys) < DEPTH_MAX ? pytorch_type(type) : NULL;
	put_text(out, known ? known->name : "");
}

static void put_numbers(struct out *out, uint64_t tensor, enum what what)
{
	uint64_t keys, depth = tensor_depth(tensor, &keys);
	bool is_there = depth < DEPTH_MAX && (what == WHAT_SIZES || !(keys & inputs_layout.unstrided));
	uint64_t at = is_there ? tensor_sizes(tensor, depth) : 0;
	put_text(out, "[");
	if (is_there && what == WHAT_STRIDES)
		at = tensor_strides(at, depth);
	for (unsigned i = 0; is_there && i < depth; i++) {
		put_text(out, i ? ", " : "");
		put_integer(out, (int64_t)load(at, 8 * i));
	}
	put_text(out, "]");
}

struct list {
	uint64_t begin, count;
	bool is_tensors, is_values;
};

static struct list list_of(uint64_t address)
{
	uint64_t begin = load(address, inputs_layout.list_begin);
	struct list list = {.begin = begin,
	                    .count = (load(address, inputs_layout.list_begin + 8) - begin) / VALUE_BYTES,
	                    .is_tensors = load(address, inputs_layout.list_begin + 24) == inputs_layout.tensor_list};
	list.is_values = !list.is_tensors && list.count <= LIST_MAX && (!list.count || is_value(load_tag(begin)));
	return list;
}

/* Writes sizes or strides of a list of tensors, or "[]" for another list. */
static void put_list_numbers(struct out *out, const struct list *list, enum what what)
{
	put_text(out, "[");
	for (uint64_t i = 0; list->is_tensors && list->count <= LIST_MAX && i < list->count; i++) {
		uint64_t value = list->begin + i * VALUE_BYTES;
		put_text(out, i ? ", " : "");
		put_numbers(out, load_tag(value) == inputs_layout.tensor_tag ? load(value, 0) : 0, what);
	}
	put_text(out, "]");
}

static void put_list_values(struct out *out, const struct list *list)
{
	put_text(out, "[");
	for (uint64_t i = 0; i < list->count; i++) {
		uint64_t value = list->begin + i * VALUE_BYTES;
		put_text(out, i ? ", " : "");
		if (is_value(load_tag(value)))
			inputs_text_put_value(out, value, load_tag(value));
	}
	put_text(out, "]");
}

static void put_list(struct out *out, uint64_t address, enum what what)
{
	struct list list = list_of(address);
	if (what == WHAT_TYPES)
		put_text(out, list.is_tensors ? "TensorList" : list.is_values ? "ScalarList" : "");
	else if (what == WHAT_VALUES && list.is_values)
		put_list_values(out, &list);
	else if (what != WHAT_VALUES)
		put_list_numbers(out, &list, what);
}

static void put_input(struct out *out, uint64_t value, enum what what)
{
	uint32_t tag = load_tag(value);
	bool is_tensor = tag == inputs_layout.tensor_tag;
	if (tag == inputs_layout.list_tag)
		put_list(out, load(value, 0), what);
	else if (what == WHAT_TYPES && is_tensor && load(value, 0))
		put_type(out, load(value, 0));
	else if (what == WHAT_TYPES)
		put_text(out, is_value(tag) ? "Scalar" : "");
	else if (what == WHAT_VALUES && is_value(tag))
		inputs_text_put_value(out, value, tag);
	else if (what != WHAT_VALUES)
		put_numbers(out, is_tensor ? load(value, 0) : 0, what);
}

/* Returns true if a list of tensors is the only input: it gets a pair of brackets, so that it does not look like
 * several inputs. */
static bool is_one_list(uint64_t values, uint64_t count)
{
	if (count != 1 || load_tag(values) != inputs_layout.list_tag)
		return false;
	struct list list = list_of(load(values, 0));
	return list.is_tensors && list.count && list.count <= LIST_MAX;
}

static void put_line(struct out *out, const void *record, enum what what)
{
	uint64_t values = load((uint64_t)(uintptr_t)record, inputs_layout.inputs);
	uint64_t count = load((uint64_t)(uintptr_t)record, inputs_layout.inputs + 8);
	bool is_numbers = what == WHAT_SIZES || what == WHAT_STRIDES;
	bool is_inside = is_numbers && is_one_list(values, count);
	put_text(out, is_inside ? "[" : "");
	for (uint64_t i = 0; i < count && i < INPUTS_MAX; i++) {
		put_text(out, !i ? "" : is_numbers ? " " : ";");
		put_input(out, values + i * VALUE_BYTES, what);
	}
	put_text(out, is_inside ? "]" : "");
}

size_t inputs_write(const void *record, uint32_t left_out, char *text, size_t bytes)
{
	struct out out = {.text = text, .bytes = bytes, .left_out = left_out};
	put_line(&out, record, WHAT_SIZES);
	if (out.is_over) /* a very long list was cut off */
		return out.at;
	size_t sizes = out.at;
	if (inputs_layout.has_types) {
		put_text(&out, "\nt ");
		put_line(&out, record, WHAT_TYPES);
	}
	if (inputs_layout.has_strides) {
		put_text(&out, "\ns ");
		put_line(&out, record, WHAT_STRIDES);
	}
	if (inputs_layout.has_values) {
		put_text(&out, "\nv ");
		put_line(&out, record, WHAT_VALUES);
	}
	return out.is_over ? sizes : out.at;
}

/* ---- values alone ------------------------------------------------------------------------------------------------ */

struct values {
	uint64_t *list;
	unsigned count;
};

static void inputs_text_add_value(struct values *values, uint64_t value)
{
	uint64_t bits = value_bits(value, load_tag(value));
	if (values->count < VALUES_APART)
		values->list[values->count++] = bits;
	else
		values->list[VALUES_APART - 1] = values->list[VALUES_APART - 1] * 31 + bits;
}

static void add_values(struct values *values, const struct list *list)
{
	for (uint64_t i = 0; list->is_values && i < list->count; i++)
		if (is_value(load_tag(list->begin + i * VALUE_BYTES)))
			inputs_text_add_value(values, list->begin + i * VALUE_BYTES);
}

unsigned inputs_values(const void *record, uint64_t list[VALUES_APART])
{
	struct values values = {.list = list};
	uint64_t at = load((uint64_t)(uintptr_t)record, inputs_layout.inputs);
	uint64_t count = load((uint64_t)(uintptr_t)record, inputs_layout.inputs + 8);
	for (uint64_t i = 0; i < count && i < INPUTS_MAX; i++, at += VALUE_BYTES) {
		struct list inner = load_tag(at) == inputs_layout.list_tag ? list_of(load(at, 0)) : (struct list){0};
		add_values(&values, &inner);
		if (is_value(load_tag(at)))
			inputs_text_add_value(&values, at);
	}
	return values.count;
}
