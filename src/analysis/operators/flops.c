/* SPDX-License-Identifier: Apache-2.0
 *
 * flops.c: a table of formulas, and the places of their inputs. Answers are cached, because a program calls few
 * operators with few inputs very often. Sources: torch/utils/flop_counter.py and torch/csrc/profiler/util.cpp of
 * PyTorch 2.13.
 */
#include "analysis/operators/flops.h"

#include "base/memory.h"
#include "model/operator_inputs.h"

#include <stdlib.h>
#include <string.h>

#define INPUTS_MAX 64 /* as in the agent; the end of a longer list is unknown */
#define SIZES_MAX 8

struct sizes {
	int64_t list[SIZES_MAX];
	int count; /* -1: unknown */
};

struct flops_inputs {
	struct sizes sizes[INPUTS_MAX];
	struct inputs_part values[INPUTS_MAX], types[INPUTS_MAX];
	int count, value_count, type_count; /* value_count, type_count: 0 if they were not recorded */
};

/* The places of the inputs; inputs that a formula does not use are 0. */
struct places {
	uint8_t first; /* of the adjacent tensors that it multiplies */
	uint8_t stride, padding, dilation, transposed, mask;
	uint8_t offsets; /* a tensor at this place: sequences of different lengths, which are not recorded */
};

typedef double formula(const struct flops_inputs *inputs, const struct places *places); /* < 0: unknown */

struct flops_entry {
	const char *name;
	formula *formula;
	struct places places;
	uint8_t inputs; /* number of inputs of the operator */
};

#define UNKNOWN (-1.0)

/* ---- matrix products --------------------------------------------------------------------------------------------- */

static const struct sizes *sizes_at(const struct flops_inputs *inputs, int place, int depth)
{
	static const struct sizes nothing = {.count = -1};
	const struct sizes *sizes = place < inputs->count ? &inputs->sizes[place] : &nothing;
	return sizes->count == depth ? sizes : NULL;
}

/* flop_counter.mm_flop: [m, k] x [k, n] */
static double matrices(const struct flops_inputs *inputs, const struct places *places)
{
	const struct sizes *a = sizes_at(inputs, places->first, 2), *b = sizes_at(inputs, places->first + 1, 2);
	if (!a || !b || a->list[1] != b->list[0])
		return UNKNOWN;
	return 2.0 * (double)a->list[0] * (double)a->list[1] * (double)b->list[1];
}

/* flop_counter.bmm_flop: [b, m, k] x [b, k, n] */
static double batches(const struct flops_inputs *inputs, const struct places *places)
{
	const struct sizes *a = sizes_at(inputs, places->first, 3), *b = sizes_at(inputs, places->first + 1, 3);
	if (!a || !b || a->list[0] != b->list[0] || a->list[2] != b->list[1])
		return UNKNOWN;
	return 2.0 * (double)a->list[0] * (double)a->list[1] * (double)a->list[2] * (double)b->list[2];
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

static double product(const struct sizes *sizes, int from)
{
	double result = 1;
	for (int i = from; i < sizes->count; i++)
		result *= (double)sizes->list[i];
	return result;
}

/* Reads an input that is a list of numbers. A single number stands for all dimensions. */
static bool numbers_at(const struct flops_inputs *inputs, int place, int dimensions, int64_t *numbers)
{
	if (place >= inputs->value_count)
		return false;
	int count = operator_inputs_numbers(&inputs->values[place], numbers, dimensions);
	for (int i = 1; i < dimensions && count == 1; i++)
		numbers[i] = numbers[0];
	return count == 1 || count == dimensions;
}

/* Returns false if the text is not a truth value, or was left out. */
static bool read_truth(const char *text, size_t length, bool *is_true)
{
	*is_true = length >= 4 && memcmp(text, "True", 4) == 0;
	return *is_true || (length >= 5 && memcmp(text, "False", 5) == 0);
}

static bool truth_at(const struct flops_inputs *inputs, int place, bool *is_true)
{
	return place < inputs->value_count &&
	       read_truth(inputs->values[place].text, inputs->values[place].length, is_true);
}

/* Returns the product of the output's sizes after batch and channels; < 0: unknown. */
static double output_places(const struct flops_inputs *inputs, const struct places *places, const struct sizes *x,
                            const struct sizes *w)
{
	int64_t stride[SIZES_MAX], padding[SIZES_MAX], dilation[SIZES_MAX] = {0};
	int dimensions = x->count - 2;
	double result = 1;
	if (!numbers_at(inputs, places->stride, dimensions, stride) ||
	    !numbers_at(inputs, places->padding, dimensions, padding) ||
	    (places->dilation && !numbers_at(inputs, places->dilation, dimensions, dilation)))
		return UNKNOWN;
	for (int i = 0; i < dimensions; i++) {
		int64_t spread = places->dilation ? dilation[i] : 1;
		__extension__ typedef __int128 wide;
		wide room = (wide)x->list[i + 2] + 2 * (wide)padding[i] - (wide)spread * (w->list[i + 2] - 1) - 1;
		if (stride[i] <= 0 || room < 0)
			return UNKNOWN;
		wide spots = room / stride[i] + 1;
		result *= (double)spots;
	}
	return result;
}

static bool are_convolved(const struct sizes *x, const struct sizes *w)
{
	return x->count == w->count && x->count > 2;
}

static const struct sizes *any_sizes_at(const struct flops_inputs *inputs, int place)
{
	return place < inputs->count && inputs->sizes[place].count > 0 ? &inputs->sizes[place] : NULL;
}

/* flop_counter.conv_flop: one product with the whole kernel per place of the output (of the input, if transposed). */
static double convolution(const struct flops_inputs *inputs, const struct places *places)
{
	const struct sizes *x = any_sizes_at(inputs, 0), *w = any_sizes_at(inputs, 1);
	bool is_transposed = false;
	if (!x || !w || !are_convolved(x, w) || !inputs->value_count ||
	    (places->transposed && !truth_at(inputs, places->transposed, &is_transposed)))
		return UNKNOWN;
	double spots = is_transposed ? product(x, 2) : output_places(inputs, places, x, w);
	return spots < 0 ? UNKNOWN : 2.0 * spots * product(w, 0) * (double)x->list[0];
}

/* Reads from the mask, "[True, False, True]", whether this gradient is wanted. Returns false if that is unknown. */
static bool read_mask(const struct inputs_part *mask, int which, bool *is_wanted)
{
	const char *at = mask->text + 1, *end = mask->text + mask->length;
	for (; which > 0 && at < end; which--) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		at = comma ? comma + 2 : end;
	}
	return read_truth(at, at < end ? (size_t)(end - at) : 0, is_wanted);
}

/* flop_counter.conv_backward_flop. Like that, it ignores groups in the gradient of the weight. */
static double convolution_backward(const struct flops_inputs *inputs, const struct places *places)
{
	const struct sizes *gradient = any_sizes_at(inputs, 0), *x = any_sizes_at(inputs, 1),
			   *w = any_sizes_at(inputs, 2);
	if (!gradient || !x || !w || !are_convolved(x, w) || gradient->count != x->count ||
	    places->mask >= inputs->value_count || inputs->values[places->mask].length < 2)
		return UNKNOWN;
	const struct inputs_part *mask = &inputs->values[places->mask];
	bool is_transposed, wants_input, wants_weight;
	if (!truth_at(inputs, places->transposed, &is_transposed) || !read_mask(mask, 0, &wants_input) ||
	    !read_mask(mask, 1, &wants_weight))
		return UNKNOWN;
	double count = 0;
	if (wants_input)
		count += 2.0 * product(is_transposed ? x : gradient, 2) * product(w, 0) * (double)gradient->list[0];
	if (wants_weight)
		count += 2.0 * product(w, 2) * product(is_transposed ? x : gradient, 2) * (double)x->list[1] *
		         (double)gradient->list[1] * (double)x->list[0];
	return count;
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

struct attention {
	double batch, heads, queries, keys, depth, value_depth;
};

/* Reads query, key and value, which are adjacent: [batch, heads, length, depth], or with heads and length exchanged. */
static bool get_attention(const struct flops_inputs *inputs, int first, bool is_exchanged, struct attention *attention)
{
	int heads = is_exchanged ? 2 : 1, length = is_exchanged ? 1 : 2;
	const struct sizes *q = sizes_at(inputs, first, 4), *k = sizes_at(inputs, first + 1, 4);
	const struct sizes *v = sizes_at(inputs, first + 2, 4);
	if (!q || !k || !v || q->list[0] != k->list[0] || q->list[3] != k->list[3] ||
	    k->list[length] != v->list[length])
		return false;
	*attention = (struct attention){(double)q->list[0],      (double)q->list[heads], (double)q->list[length],
	                                (double)k->list[length], (double)q->list[3],     (double)v->list[3]};
	return true;
}

static bool has_offsets(const struct flops_inputs *inputs, const struct places *places)
{
	return places->offsets && (places->offsets >= inputs->count || inputs->sizes[places->offsets].count != 0);
}

/* flop_counter.sdpa_flop_count: two products; the part that a causal mask spares is not subtracted. */
static double forward_count(const struct attention *at)
{
	return 2.0 * at->batch * at->heads * at->queries * at->keys * (at->depth + at->value_depth);
}

/* flop_counter.sdpa_backward_flop_count: five products, including the scores once more. */
static double backward_count(const struct attention *at)
{
	return 2.0 * at->batch * at->heads * at->queries * at->keys * (3 * at->depth + 2 * at->value_depth);
}

static double attention(const struct flops_inputs *inputs, const struct places *places)
{
	struct attention at;
	return get_attention(inputs, places->first, false, &at) ? forward_count(&at) : UNKNOWN;
}

static double attention_backward(const struct flops_inputs *inputs, const struct places *places)
{
	struct attention at;
	return get_attention(inputs, places->first, false, &at) ? backward_count(&at) : UNKNOWN;
}

/* For operators that the other ones call: their heads come after the length. flop_counter would read them in the wrong
 * order, but it counts the outer operator and does not reach these. */
static double inner_attention(const struct flops_inputs *inputs, const struct places *places)
{
	struct attention at;
	bool is_known = !has_offsets(inputs, places) && get_attention(inputs, places->first, true, &at);
	return is_known ? forward_count(&at) : UNKNOWN;
}

static double inner_attention_backward(const struct flops_inputs *inputs, const struct places *places)
{
	struct attention at;
	bool is_known = !has_offsets(inputs, places) && get_attention(inputs, places->first, true, &at);
	return is_known ? backward_count(&at) : UNKNOWN;
}

/* ---- element by element ------------------------------------------------------------------------------------------ */

/* Returns false for a tensor whose sizes were not read: it has no type, and the sizes of a number, "[]". */
static bool is_read(const struct flops_inputs *inputs, int place)
{
	return inputs->sizes[place].count > 0 || place >= inputs->type_count || inputs->types[place].length > 0;
}

/* util.cpp, computeFlops(): elements of the first input, whatever the second is. */
static double elements(const struct flops_inputs *inputs, const struct places *places)
{
	int first = places->first;
	bool is_known = first < inputs->count && inputs->sizes[first].count >= 0 && is_read(inputs, first);
	return is_known ? product(&inputs->sizes[first], 0) : UNKNOWN;
}

/* util.cpp, computeFlops(): like convolution(), in two dimensions; the weight's sizes already include groups. */
static double convolution_2d(const struct flops_inputs *inputs, const struct places *places)
{
	return sizes_at(inputs, 0, 4) ? convolution(inputs, places) : UNKNOWN;
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

#define CONVOLUTION                                                                                                    \
	{                                                                                                              \
		.stride = 3, .padding = 4, .dilation = 5, .transposed = 6                                              \
	}

static const struct flops_entry counter_entries[] = {
	{"aten::mm", matrices, {0}, 2},
	{"aten::addmm", matrices, {.first = 1}, 5},
	{"aten::_scaled_mm", matrices, {0}, 8},
	{"aten::bmm", batches, {0}, 2},
	{"aten::baddbmm", batches, {.first = 1}, 5},
	{"aten::convolution", convolution, CONVOLUTION, 9},
	{"aten::_convolution", convolution, CONVOLUTION, 13},
	{"aten::convolution_overrideable", convolution, CONVOLUTION, 9},
	{"aten::cudnn_convolution", convolution, {.padding = 2, .stride = 3, .dilation = 4}, 9},
	{"aten::_slow_conv2d_forward", convolution, {.stride = 4, .padding = 5}, 6},
	{"aten::convolution_backward", convolution_backward, {.transposed = 7, .mask = 10}, 11},
	{"aten::_scaled_dot_product_flash_attention", attention, {0}, 7},
	{"aten::_scaled_dot_product_efficient_attention", attention, {0}, 8},
	{"aten::_scaled_dot_product_cudnn_attention", attention, {0}, 9},
	{"aten::_scaled_dot_product_flash_attention_backward", attention_backward, {.first = 1}, 15},
	{"aten::_scaled_dot_product_efficient_attention_backward", attention_backward, {.first = 1}, 13},
	{"aten::_scaled_dot_product_cudnn_attention_backward", attention_backward, {.first = 1}, 16},
	{"aten::_flash_attention_forward", inner_attention, {.offsets = 3}, 17},
	{"aten::_efficient_attention_forward", inner_attention, {.offsets = 4}, 14},
	{"aten::_flash_attention_backward", inner_attention_backward, {.first = 1, .offsets = 6}, 17},
	{"aten::_efficient_attention_backward", inner_attention_backward, {.first = 1, .offsets = 6}, 20},
	/* flop_counter leaves out the CPU's kernel, which computes the same as the others */
	{"aten::_scaled_dot_product_flash_attention_for_cpu", attention, {0}, 7},
	{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward, {.first = 1}, 10},
	{NULL, NULL, {0}, 0},
};

static const struct flops_entry profiler_entries[] = {
	{"aten::mm", matrices, {0}, INPUTS_MAX},
	{"aten::addmm", matrices, {.first = 1}, INPUTS_MAX},
	{"aten::bmm", batches, {0}, INPUTS_MAX},
	{"aten::baddbmm", batches, {.first = 1}, INPUTS_MAX},
	{"aten::conv2d", convolution_2d, {.stride = 3, .padding = 4, .dilation = 5}, INPUTS_MAX},
	{"aten::mul", elements, {0}, INPUTS_MAX},
	{"aten::add", elements, {0}, INPUTS_MAX},
	{NULL, NULL, {0}, 0},
};

static int split_texts(const struct inputs_part *line, struct inputs_part *texts)
{
	struct inputs_part part = {0};
	int count = 0;
	while (count < INPUTS_MAX && operator_inputs_next(line, ';', &part))
		texts[count++] = part;
	return count;
}

static void flops_split(struct flops_inputs *inputs, const char *text)
{
	struct operator_inputs lines = operator_inputs_split(text);
	struct inputs_part part = {0};
	inputs->count = 0;
	while (inputs->count < INPUTS_MAX && operator_inputs_next(&lines.sizes, ' ', &part)) {
		struct sizes *sizes = &inputs->sizes[inputs->count++];
		sizes->count = operator_inputs_numbers(&part, sizes->list, SIZES_MAX);
		for (int i = 0; i < sizes->count; i++)
			if (sizes->list[i] < 0)
				sizes->count = -1;
	}
	inputs->value_count = split_texts(&lines.values, inputs->values);
	inputs->type_count = split_texts(&lines.types, inputs->types);
}

/* If a transform of functorch calls an operator, the inputs of the operators around it come first: PyTorch passes all
 * of them on one stack, and records the whole stack. */
static void leave_own(struct flops_inputs *inputs, int own)
{
	int others = inputs->count - own;
	if (inputs->count == INPUTS_MAX)
		inputs->count = inputs->value_count = 0;
	if (inputs->count < 2 * own)
		return;
	memmove(inputs->sizes, inputs->sizes + others, (size_t)own * sizeof(*inputs->sizes));
	if (inputs->value_count == inputs->count)
		memmove(inputs->values, inputs->values + others, (size_t)own * sizeof(*inputs->values));
	inputs->value_count = inputs->value_count == inputs->count ? own : 0;
	inputs->count = own;
}

static uint8_t place_in(const struct flops_entry *entries, const char *name)
{
	for (uint8_t i = 0; entries[i].name; i++)
		if (!strcmp(entries[i].name, name))
			return (uint8_t)(1 + i);
	return 0;
}

static uint8_t counter_place(const char *name)
{
	return place_in(counter_entries, name);
}

static uint8_t profiler_place(const char *name)
{
	return place_in(profiler_entries, name);
}

static struct flops_answer flops_find_answer(const struct model *model, const struct flops_entry *entry,
                                             uint32_t string)
{
	struct flops_inputs inputs;
	if (!string)
		return (struct flops_answer){FLOPS_NO_SIZES, 0};
	flops_split(&inputs, model_text(model, string));
	leave_own(&inputs, entry->inputs);
	double count = entry->formula(&inputs, &entry->places);
	return (struct flops_answer){count < 0 ? FLOPS_UNKNOWN : FLOPS_KNOWN, count < 0 ? 0 : count};
}

enum flops_result flops_of(struct flops *flops, enum flops_definition definition, uint32_t name, uint32_t inputs,
                           double *count)
{
	bool is_counter = definition == FLOPS_COUNTER;
	flops->entries[definition].classify = is_counter ? counter_place : profiler_place;
	uint8_t place = name_class(&flops->entries[definition], flops->model, name);
	*count = 0;
	if (!place)
		return FLOPS_NO_FORMULA;
	uint64_t key = (uint64_t)name << 32 | inputs;
	uint32_t found = number_map_find(&flops->seen[definition], key);
	if (found == NUMBER_MAP_NONE) {
		MEMORY_GROW(flops->answers, flops->count, flops->capacity, 256);
		found = flops->count++;
		flops->answers[found] = flops_find_answer(
			flops->model, (is_counter ? counter_entries : profiler_entries) + place - 1, inputs);
		number_map_set(&flops->seen[definition], key, found);
	}
	*count = flops->answers[found].count;
	return flops->answers[found].result;
}

void flops_release(struct flops *flops)
{
	for (int i = 0; i < FLOPS_DEFINITIONS; i++) {
		number_map_release(&flops->seen[i]);
		name_classes_release(&flops->entries[i]);
	}
	free(flops->answers);
	flops->answers = NULL;
}
