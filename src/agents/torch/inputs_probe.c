/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs_probe.c: finds the offsets of inputs. Until they are proven, every read is a system call that cannot fault.
 */
#include "agents/torch/inputs_layout.h"
#include "agents/torch/process.h"
#include "base/hot.h"

#include <stdio.h>
#include <string.h>

#define TENSORS 32
#define TENSOR_WORDS 32
#define RECORD_WORDS 64
#define LIST_WORDS 8
#define LEAST_VALUES 2 /* values of each type that must agree */

struct known_tensor {
	uint64_t words[TENSOR_WORDS];
	int64_t sizes[2 * SIZES_IN_PLACE]; /* followed by strides */
	int count, type;
	enum inputs_probe kind;
};

static struct {
	struct known_tensor tensors[TENSORS];
	int tensor_count;
	uint64_t first, second;       /* expected inputs */
	uint64_t places, list_places; /* candidates, one bit per word */
	uint64_t list_types[LIST_WORDS];
	uint32_t tag, list_tag;
	int muls, cats; /* number of records looked at */
	bool is_value_expected;
	enum inputs_value value;
	uint64_t bits;
	int value_counts[INPUTS_VALUES]; /* number of values seen; -1: they did not agree */
	char left_out[64];
} probe;

HOT struct inputs_layout inputs_layout;

static bool read_words(uint64_t address, uint64_t *words, unsigned count)
{
	return process_read_words(address, words, count) == count;
}

void inputs_add_tensor(const struct inputs_tensor *tensor)
{
	struct known_tensor *known = &probe.tensors[probe.tensor_count];
	if (probe.tensor_count == TENSORS || tensor->count > SIZES_IN_PLACE)
		return;
	*known = (struct known_tensor){.kind = tensor->kind, .count = tensor->count, .type = tensor->type};
	memcpy(known->sizes, tensor->sizes, 2 * (size_t)tensor->count * sizeof(*tensor->sizes));
	(void)process_read_words(tensor->address, known->words, TENSOR_WORDS);
	probe.tensor_count++;
}

/* ---- inputs and lists, from records ------------------------------------------------------------------------------ */

void inputs_expect(uint64_t first, uint64_t second)
{
	probe.first = first;
	probe.second = second;
}

void inputs_expect_value(enum inputs_value type, uint64_t bits)
{
	probe.is_value_expected = true;
	probe.value = type;
	probe.bits = bits;
}

/* Returns true if the IValues at `address` start with the two expected tensors, both with one tag. */
static bool has_expected(uint64_t address, uint32_t *tag)
{
	uint64_t values[4];
	if (address % 8 != 0 || !read_words(address, values, 4) || values[0] != probe.first ||
	    values[2] != probe.second)
		return false;
	*tag = (uint32_t)values[1];
	return (uint32_t)values[1] == (uint32_t)values[3];
}

static void look_at_mul(const uint64_t *record)
{
	uint64_t found = 0;
	for (unsigned i = 0; i + 1 < RECORD_WORDS; i++) {
		uint32_t tag;
		if (record[i + 1] == 2 && has_expected(record[i], &tag)) {
			found |= 1ull << i;
			probe.tag = tag;
		}
	}
	probe.places &= found;
	probe.muls++;
}

/* The first input is a list: its payload points to an object with the start and the end of the values, and their
 * type. */
static void look_at_cat(const uint64_t *record)
{
	uint64_t found = 0;
	for (unsigned i = 0; i + 1 < RECORD_WORDS; i++) {
		uint64_t values[2], list[LIST_WORDS];
		if (!(probe.places >> i & 1) || !read_words(record[i], values, 2) ||
		    !read_words(values[0], list, LIST_WORDS))
			continue;
		for (unsigned k = 0; k + 3 < LIST_WORDS; k++) {
			uint32_t tag;
			bool is_same = !probe.list_types[k] || probe.list_types[k] == list[k + 3];
			if (is_same && list[k + 3] && list[k + 1] == list[k] + 2 * VALUE_BYTES &&
			    has_expected(list[k], &tag) && tag == probe.tag) {
				found |= 1ull << k;
				probe.list_types[k] = list[k + 3];
				probe.list_tag = (uint32_t)values[1];
			}
		}
	}
	probe.list_places &= found;
	probe.cats++;
}

/* The third input is the expected value: finds its tag. */
static void look_at_value(const uint64_t *record)
{
	uint64_t values[6] = {0}, mask = probe.value == INPUTS_BOOL ? 0xff : UINT64_MAX;
	int *count = &probe.value_counts[probe.value];
	uint32_t *tag = &inputs_layout.value_tags[probe.value];
	probe.is_value_expected = false;
	bool is_right = record[inputs_layout.inputs / 8 + 1] >= 3 &&
	                read_words(record[inputs_layout.inputs / 8], values, 6) && (values[4] & mask) == probe.bits &&
	                (*count == 0 || *tag == (uint32_t)values[5]);
	*tag = (uint32_t)values[5];
	*count = is_right && *count >= 0 ? *count + 1 : -1;
}

void inputs_look_at(const void *record, const char *name)
{
	uint64_t words[RECORD_WORDS] = {0};
	bool is_value = probe.is_value_expected && inputs_layout.is_known &&
	                (strcmp(name, "aten::sub") == 0 || strcmp(name, "aten::sum") == 0);
	if (!probe.first && !is_value)
		return;
	(void)process_read_words((uint64_t)(uintptr_t)record, words, RECORD_WORDS);
	if (probe.muls + probe.cats == 0)
		probe.places = probe.list_places = UINT64_MAX;
	if (is_value)
		look_at_value(words);
	else if (probe.first && strcmp(name, "aten::mul") == 0)
		look_at_mul(words);
	else if (probe.first && strcmp(name, "aten::cat") == 0)
		look_at_cat(words);
}

/* ---- sizes, strides, types, from tensors ------------------------------------------------------------------------- */

static bool one_bit(uint64_t bits, unsigned *place)
{
	if (bits == 0 || (bits & (bits - 1)) != 0)
		return false;
	*place = (unsigned)__builtin_ctzll(bits) * 8;
	return true;
}

static bool has_sizes_at(const struct known_tensor *tensor, unsigned word)
{
	if (tensor->words[word] != (uint64_t)tensor->count)
		return false;
	return memcmp(&tensor->words[word + 1], tensor->sizes, (size_t)tensor->count * 8) == 0;
}

static bool has_strides_at(const struct known_tensor *tensor, unsigned word)
{
	return memcmp(&tensor->words[word + 1 + SIZES_IN_PLACE], tensor->sizes + tensor->count,
	              (size_t)tensor->count * 8) == 0;
}

/* Returns true if the word holds the keys. They are the same for tensors that differ only in size and type, but not
 * for a tensor on another device or of another layout. */
static bool has_keys_at(unsigned word)
{
	uint64_t plain = 0;
	for (int i = 0; i < probe.tensor_count; i++) {
		uint64_t keys = probe.tensors[i].words[word];
		if (probe.tensors[i].kind == INPUTS_PLAIN) {
			if (keys == 0 || (plain && keys != plain))
				return false;
			plain = keys;
		}
	}
	for (int i = 0; i < probe.tensor_count; i++) {
		uint64_t keys = probe.tensors[i].words[word];
		/* if all tensors are of a Python class (a mode that makes fake ones), so are the plain ones */
		bool is_subclass = probe.tensors[i].kind >= INPUTS_SUBCLASS;
		if (probe.tensors[i].kind != INPUTS_PLAIN && (keys == 0 || (keys == plain && !is_subclass)))
			return false;
		if (probe.tensors[i].kind == INPUTS_META && (keys & plain) == 0)
			return false;
	}
	return plain != 0;
}

static uint64_t places_of_sizes(void)
{
	uint64_t places = 0;
	for (unsigned word = 0; word + 1 + 2 * SIZES_IN_PLACE < TENSOR_WORDS; word++) {
		bool fits = true;
		for (int i = 0; i < probe.tensor_count && fits; i++)
			fits = probe.tensors[i].kind != INPUTS_PLAIN || has_sizes_at(&probe.tensors[i], word);
		places |= fits ? 1ull << word : 0;
	}
	return places;
}

/* Returns the first place that fits. A tensor may end before the words that were read, and the heap after similar
 * tensors may be similar, too. */
static uint64_t place_of_keys(void)
{
	unsigned word = 0;
	while (word < TENSOR_WORDS && !has_keys_at(word))
		word++;
	return word < TENSOR_WORDS ? 1ull << word : 0;
}

/* Finds the one byte that has the number of the element type in all tensors. */
static bool find_type(void)
{
	unsigned found = 0;
	for (unsigned byte = 0; byte < sizeof(probe.tensors[0].words); byte++) {
		bool fits = true;
		for (int i = 0; i < probe.tensor_count && fits; i++)
			fits = ((const uint8_t *)probe.tensors[i].words)[byte] == probe.tensors[i].type;
		if (fits)
			inputs_layout.type = byte;
		found += fits;
	}
	return found == 1;
}

static bool find_strides(void)
{
	bool fits = true;
	for (int i = 0; i < probe.tensor_count; i++)
		fits &= probe.tensors[i].kind != INPUTS_PLAIN ||
		        has_strides_at(&probe.tensors[i], inputs_layout.sizes / 8);
	return fits;
}

/* Finds the bits above those that name a device, from the bit for elements in memory on, that no plain tensor has.
 * Trusted tensors may have two more bits, for gradients and for inference mode. The tensors of the probe have
 * gradients where the bits below differ. */
static void find_kinds(uint64_t plain)
{
	uint64_t meta = 0;
	for (int i = 0; i < probe.tensor_count; i++)
		if (probe.tensors[i].kind == INPUTS_META)
			meta = probe.tensors[i].words[inputs_layout.keys / 8];
	uint64_t common = plain & meta;
	inputs_layout.substance = common & -common;
	inputs_layout.untrusted = ~(inputs_layout.substance - 1) & ~plain;
}

struct common {
	uint64_t all, any; /* bits of the word in all tensors of the kind, and in any of them */
};

static struct common common_bits(enum inputs_probe kind, unsigned word)
{
	struct common common = {.all = UINT64_MAX};
	for (int i = 0; i < probe.tensor_count; i++) {
		if (probe.tensors[i].kind != kind)
			continue;
		common.all &= probe.tensors[i].words[word];
		common.any |= probe.tensors[i].words[word];
	}
	return common;
}

/* Finds two bits that are 0, 1 and 2 in the three subclasses, and 0 in plain tensors. They occur once, or (for C++ and
 * for Python) in several fields of one word. Between the fields the memory keeps earlier contents, so only bits that
 * are alike in all tensors of a kind count. */
static bool has_policy_at(unsigned word, uint64_t *bits)
{
	struct common strides = common_bits(INPUTS_SUBCLASS_STRIDES, word);
	struct common sizes = common_bits(INPUTS_SUBCLASS_SIZES, word);
	uint64_t others = common_bits(INPUTS_SUBCLASS, word).any | common_bits(INPUTS_PLAIN, word).any;
	uint64_t one = strides.all & ~sizes.any & ~others, two = sizes.all & ~strides.any & ~others;
	uint64_t fields = one & two >> 1;
	*bits = fields | fields << 1;
	return fields != 0;
}

static bool find_policy(void)
{
	uint64_t places = 0, bits;
	for (unsigned word = 0; word < TENSOR_WORDS; word++)
		places |= has_policy_at(word, &bits) ? 1ull << word : 0;
	return one_bit(places, &inputs_layout.policy) &&
	       has_policy_at(inputs_layout.policy / 8, &inputs_layout.policy_bits);
}

/* Trusts tensors of other kinds if their sizes are at the same place as in plain ones. The bits that set them apart
 * are then no reason for mistrust. If these are several bits, the lowest one tells the kind. */
static void trust_others(void)
{
	uint64_t untrusted = inputs_layout.untrusted, plain = inputs_layout.substance;
	enum inputs_probe last = find_policy() ? INPUTS_SUBCLASS : INPUTS_WRAPPER;
	inputs_layout.foreign = inputs_layout.unstrided = untrusted;
	for (int i = 0; i < probe.tensor_count; i++) {
		const struct known_tensor *tensor = &probe.tensors[i];
		uint64_t keys = tensor->words[inputs_layout.keys / 8], extra = keys & untrusted;
		if (tensor->kind < INPUTS_FOREIGN || tensor->kind > last ||
		    !has_sizes_at(tensor, inputs_layout.sizes / 8))
			continue;
		inputs_layout.untrusted &= ~extra;
		inputs_layout.substance |= keys & plain ? 0 : extra & -extra;
		inputs_layout.wrappers |= tensor->kind == INPUTS_WRAPPER ? extra : 0;
		inputs_layout.subclasses |= tensor->kind == INPUTS_SUBCLASS ? extra : 0;
		if (tensor->sizes[tensor->count] && has_strides_at(tensor, inputs_layout.sizes / 8))
			inputs_layout.unstrided &= ~extra;
	}
}

/* Solves for all types of values, or none: a list may hold any type. */
static void solve_values(void)
{
	const uint32_t *tags = inputs_layout.value_tags;
	bool is_good = inputs_layout.is_known;
	for (unsigned i = 0; i < INPUTS_VALUES; i++)
		is_good &= probe.value_counts[i] >= LEAST_VALUES && tags[i] != inputs_layout.tensor_tag &&
		           tags[i] != inputs_layout.list_tag && tags[i] != tags[(i + 1) % INPUTS_VALUES];
	inputs_layout.has_values = is_good;
	for (unsigned i = 0; i < INPUTS_VALUES && !is_good; i++)
		inputs_layout.value_tags[i] = UINT32_MAX;
}

static bool solve_tensors(void)
{
	struct inputs_layout *layout = &inputs_layout;
	probe.first = 0;
	if (probe.muls < 2 || probe.cats < 2 || !one_bit(probe.places, &layout->inputs) ||
	    !one_bit(probe.list_places, &layout->list_begin) || !one_bit(places_of_sizes(), &layout->sizes) ||
	    !one_bit(place_of_keys(), &layout->keys))
		return false;
	layout->tensor_tag = probe.tag;
	layout->list_tag = probe.list_tag;
	layout->tensor_list = probe.list_types[layout->list_begin / 8];
	for (unsigned i = 0; i < INPUTS_VALUES; i++)
		layout->value_tags[i] = UINT32_MAX;
	for (int i = 0; i < probe.tensor_count; i++)
		if (probe.tensors[i].kind == INPUTS_PLAIN)
			find_kinds(probe.tensors[i].words[layout->keys / 8]);
	layout->is_known = layout->tensor_tag != layout->list_tag && layout->untrusted != 0;
	if (layout->is_known) {
		layout->has_types = find_type();
		layout->has_strides = find_strides();
		trust_others();
		layout->unstrided |= layout->has_strides ? 0 : UINT64_MAX;
	}
	return layout->is_known;
}

bool inputs_solve(void)
{
	if (!inputs_layout.is_known)
		return solve_tensors();
	solve_values();
	return true;
}

bool inputs_are_known(void)
{
	return inputs_layout.is_known;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

struct probed_line {
	const char *text;
	size_t length;
};

/* Returns the line that starts with `key`, without the key; "": the first line. Empty if there is no such line. */
static struct probed_line find_line(const char *text, const char *key)
{
	const char *found = *key ? strstr(text, key) : text;
	if (!found)
		return (struct probed_line){"", 0};
	found += strlen(key);
	return (struct probed_line){found, strcspn(found, "\n")};
}

static bool is_same_line(const char *text, const char *expected, const char *key)
{
	struct probed_line one = find_line(text, key), other = find_line(expected, key);
	return one.length == other.length && memcmp(one.text, other.text, one.length) == 0;
}

bool inputs_check(const char *text, const char *expected)
{
	struct inputs_layout *layout = &inputs_layout;
	layout->is_known &= is_same_line(text, expected, "");
	layout->has_types &= is_same_line(text, expected, "\nt ");
	layout->has_strides &= is_same_line(text, expected, "\ns ");
	layout->has_values &= is_same_line(text, expected, "\nv ");
	if (!layout->has_strides)
		layout->unstrided = UINT64_MAX;
	return layout->is_known;
}

const char *inputs_left_out(void)
{
	const struct inputs_layout *layout = &inputs_layout;
	snprintf(probe.left_out, sizeof(probe.left_out), "%s%s%s", layout->has_types ? "" : ", types",
	         layout->has_strides ? "" : ", strides", layout->has_values ? "" : ", values");
	return *probe.left_out ? probe.left_out + 2 : "";
}
