/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs_layout.h: where inputs lie, for the files inputs*.c only: inputs_probe.c finds out, inputs.c and inputs_text.c read.
 *
 *   record + inputs    {address of IValues, count}
 *   IValue             8 bytes payload, at 8 a 32-bit tag; 16 in all
 *   tensor + sizes     count, then up to five sizes and behind them five strides in place, else a pointer to sizes, then strides
 *   tensor + type      a byte, the number of the element type
 *   tensor + keys      64 bits that tell what kind of tensor it is; 0: undefined
 *   tensor + policy    bits of a word that are 0 where sizes and strides are those that lie there
 *   list + begin       {address of IValues, end, end of room, address of the type of the elements}
 */
#ifndef AGENTS_TORCH_INPUTS_LAYOUT_H
#define AGENTS_TORCH_INPUTS_LAYOUT_H

#include "agents/torch/inputs.h"

#include <string.h>

#define VALUE_BYTES 16
#define SIZES_IN_PLACE 5
#define INPUTS_MAX 64    /* of an operator that are read */
#define LIST_MAX 30      /* of a list, as in PyTorch's own traces; longer ones are not looked into */
#define DEPTH_MAX 64     /* sizes of a tensor */
#define VALUES_APART 32u /* of an operator that are known one by one; those from the last one on count as one */

struct inputs_layout {
	bool is_known; /* sizes */
	bool has_types, has_strides, has_values;
	unsigned inputs, sizes, keys, policy, type, list_begin; /* bytes */
	uint32_t tensor_tag, list_tag;
	uint32_t value_tags[INPUTS_VALUES];
	uint64_t tensor_list; /* address of the type of a list of tensors */
	uint64_t foreign;     /* bits of keys: tensors of other kinds than the plain ones */
	uint64_t untrusted;   /* those of them of which nothing is read */
	uint64_t wrappers;    /* those of them that wrap others */
	uint64_t subclasses;  /* those of them whose class, in Python, may compute sizes itself */
	uint64_t policy_bits; /* not 0: it does, or strides */
	uint64_t substance; /* bits of keys that say where elements are: a tensor without any of them is not defined */
	uint64_t unstrided; /* bits of keys: no strides; all of them without has_strides */
};
extern struct inputs_layout inputs_layout;

static inline uint64_t load(uint64_t address, unsigned offset)
{
	uint64_t word;
	memcpy(&word, (const char *)(uintptr_t)address + offset, sizeof(word));
	return word;
}

static inline uint32_t load_tag(uint64_t value)
{
	return (uint32_t)load(value, 8);
}

/* One size of 0 is what a tensor begins with, and a wrapper keeps where what it wraps has no sizes to copy (symbols, nested ones). */
static inline bool may_have_sizes(uint64_t tensor, uint64_t keys)
{
	bool is_new = load(tensor, inputs_layout.sizes) == 1 && load(tensor, inputs_layout.sizes + 8) == 0;
	return !(keys & inputs_layout.untrusted) && keys & inputs_layout.substance &&
	       !(keys & inputs_layout.wrappers && is_new) &&
	       !(keys & inputs_layout.subclasses && load(tensor, inputs_layout.policy) & inputs_layout.policy_bits);
}

/* How many sizes a tensor has; 64 or more: it is none, or not to be trusted. */
static inline uint64_t tensor_depth(uint64_t tensor, uint64_t *keys)
{
	*keys = tensor ? load(tensor, inputs_layout.keys) : 0;
	if (!*keys || (__builtin_expect((*keys & inputs_layout.foreign) != 0, 0) && !may_have_sizes(tensor, *keys)))
		return UINT64_MAX;
	return load(tensor, inputs_layout.sizes);
}

static inline uint64_t tensor_sizes(uint64_t tensor, uint64_t depth)
{
	uint64_t at = tensor + inputs_layout.sizes + 8;
	return depth > SIZES_IN_PLACE ? load(at, 0) : at;
}

static inline uint64_t tensor_strides(uint64_t sizes, uint64_t depth)
{
	return sizes + 8 * (depth > SIZES_IN_PLACE ? depth : SIZES_IN_PLACE);
}

static inline bool is_value(uint32_t tag)
{
	return tag == inputs_layout.value_tags[INPUTS_INT] || tag == inputs_layout.value_tags[INPUTS_DOUBLE] ||
	       tag == inputs_layout.value_tags[INPUTS_BOOL];
}

/* What counts of a value's payload: a bool is one byte of it. */
static inline uint64_t value_bits(uint64_t value, uint32_t tag)
{
	uint64_t bits = load(value, 0);
	return tag == inputs_layout.value_tags[INPUTS_BOOL] ? bits & 0xff : bits;
}

#endif
