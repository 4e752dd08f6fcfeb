/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs.h: an operator's inputs (sizes, types and strides of tensors, values of scalars), read from PyTorch's own
 * objects. The offsets are found in inputs with known answers, and checked on more inputs before the recording uses
 * them. Facts that could not be proven are left out; inputs_left_out() lists them.
 *
 *     inputs_add_tensor(...);                 known tensors of many kinds
 *     inputs_expect(x, y); (mul, cat)         operators that take two of them: inputs_look_at() from their callbacks
 *     inputs_solve();                         sizes, types and strides
 *     inputs_expect_value(...); (sub, sum)    scalars of each type: inputs_look_at() again
 *     inputs_solve();                         once more: scalars
 *     inputs_check(text, expected);           others, whose text is known
 *
 * docs/file-format.md has the text's form.
 */
#ifndef AGENTS_TORCH_INPUTS_H
#define AGENTS_TORCH_INPUTS_H

#include "agents/torch/entry.h"

#define INPUTS_TEXT_BYTES 8192

enum inputs_probe {
	INPUTS_PLAIN,   /* a tensor in memory: may be trusted */
	INPUTS_META,    /* on the device "meta" */
	INPUTS_FOREIGN, /* of another kind: its fields count if they prove right */
	INPUTS_WRAPPER, /* the same, around another tensor */
	/* of a Python class; they differ only in the fields that the class computes itself: */
	INPUTS_SUBCLASS, /* no field */
	INPUTS_SUBCLASS_STRIDES,
	INPUTS_SUBCLASS_SIZES,
};

enum inputs_value {
	INPUTS_INT,
	INPUTS_DOUBLE,
	INPUTS_BOOL,
	INPUTS_VALUES
};

struct inputs_tensor {
	uint64_t address; /* of the TensorImpl */
	enum inputs_probe kind;
	int type;             /* PyTorch's number of its element type */
	int count;            /* number of sizes, at most 5 */
	const int64_t *sizes; /* followed by the same number of strides; 0 if it has none */
};

/* Call for all tensors before inputs_solve(). */
void inputs_add_tensor(const struct inputs_tensor *tensor);
/* The next operators have these two tensors as their first inputs, alone (mul) or in a list (cat). */
void inputs_expect(uint64_t first, uint64_t second);
/* The next sub or sum has this value (its bits) as its third input. Call twice for each type, with different values. */
void inputs_expect_value(enum inputs_value type, uint64_t bits);
/* Call from the start callback of a probe: finds the place of the record's inputs. */
void inputs_look_at(const void *record, const char *name);
/* Solves for tensors at the first call, for values at the second. Returns false if the sizes were not found. */
bool inputs_solve(void);
bool inputs_are_known(void);
/* Compares the text that was read from a record with the right one. Facts that differ are not read from now on.
 * Returns false if even the sizes differ. */
bool inputs_check(const char *text, const char *expected);
/* Returns the facts that are left out, such as "types, strides"; "" if nothing is left out. */
const char *inputs_left_out(void);

/* Returns the record's inputs as a symbol; 0: it has none, or there is no room. Call only from a start callback. */
uint32_t inputs_symbol(const void *record);
/* In a forked child: forgets the parent's symbols. */
void inputs_forget(void);
/* Writes the inputs as text, for the check. */
void inputs_text(const void *record, char *text, size_t bytes);

#endif
