/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs_layout.h: the offsets of inputs, for the files inputs*.c only: inputs_probe.c finds them, inputs.c and
 * inputs_text.c use them.
 *
 *     record + inputs    {address of IValues, count}
 *     IValue             8 bytes payload, at 8 a 32-bit tag; 16 in all
 *     tensor + sizes     count, then five sizes and five strides in place; if more, a pointer to sizes, then strides
 *     tensor + type      a byte, the number of the element type
 *     tensor + keys      64 bits with the kind of the tensor; 0: undefined
 *     tensor + policy    bits of a word that are 0 if the sizes and strides in the tensor are valid
 *     list + begin       {address of IValues, end, end of room, address of the type of the elements}
 */
#ifndef AGENTS_TORCH_INPUTS_LAYOUT_H
#define AGENTS_TORCH_INPUTS_LAYOUT_H

#include "agents/torch/inputs.h"

#include <string.h>

#define VALUE_BYTES 16
#define SIZES_IN_PLACE 5
#define INPUTS_MAX 64    /* inputs of an operator that are read */
#define LIST_MAX 30      /* elements of a list, as in PyTorch's own traces; longer lists are not read */
#define DEPTH_MAX 64     /* sizes of a tensor */
#define VALUES_APART 32u /* values of an operator that are known one by one; the last one combines all further values */

struct inputs_layout {
	bool is_known; /* sizes are known */
	bool has_types, has_strides, has_values;
	unsigned inputs, sizes, keys, policy, type, list_begin; /* offsets in bytes */
	uint32_t tensor_tag, list_tag;
	uint32_t value_tags[INPUTS_VALUES];
	uint64_t tensor_list; /* address of the type of a list of tensors */
	uint64_t foreign;     /* bits of keys: kinds of tensors other than the plain ones */
	uint64_t untrusted;   /* of the foreign bits: tensors of these kinds are not read */
	uint64_t wrappers;    /* of the foreign bits: tensors that wrap others */
	uint64_t subclasses;  /* of the foreign bits: tensors of a Python class, which may compute sizes itself */
	uint64_t policy_bits; /* not 0: the class computes sizes or strides */
	uint64_t substance; /* bits of keys with the place of the elements: a tensor without any of them is undefined */
	uint64_t unstrided; /* bits of keys: no strides; all bits if has_strides is false */
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

/* Returns true if the sizes in a tensor of another kind can be read. A new tensor has one size, 0. A wrapper keeps
 * that size if the wrapped tensor has no sizes to copy (symbolic or nested ones). */
static inline bool may_have_sizes(uint64_t tensor, uint64_t keys)
{
	bool is_new = load(tensor, inputs_layout.sizes) == 1 && load(tensor, inputs_layout.sizes + 8) == 0;
	return !(keys & inputs_layout.untrusted) && keys & inputs_layout.substance &&
	       !(keys & inputs_layout.wrappers && is_new) &&
	       !(keys & inputs_layout.subclasses && load(tensor, inputs_layout.policy) & inputs_layout.policy_bits);
}

/* Returns the number of sizes of a tensor; 64 or more: it is undefined, or not trusted. */
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

/* Returns the significant bits of a value's payload: a bool uses one byte of it. */
static inline uint64_t value_bits(uint64_t value, uint32_t tag)
{
	uint64_t bits = load(value, 0);
	return tag == inputs_layout.value_tags[INPUTS_BOOL] ? bits & 0xff : bits;
}

#endif
