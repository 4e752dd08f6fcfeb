/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs.h: an operator's inputs (sizes, types and strides of tensors, values of scalars), read from PyTorch's own objects at offsets
 * that were found by looking at inputs whose answers are known, and checked on more of them before anything is read in earnest.
 * What could not be proven is left out; inputs_left_out() says what.
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
	INPUTS_FOREIGN, /* of another kind: what it says of itself counts where it proves right */
	INPUTS_WRAPPER, /* the same, around another tensor */
	/* of a class in Python, alike in all but in what it computes itself: */
	INPUTS_SUBCLASS, /* nothing */
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
	int count;            /* of sizes, at most 5 */
	const int64_t *sizes; /* then as many strides; 0 where it has none */
};

/* All of them before inputs_solve(). */
void inputs_add_tensor(const struct inputs_tensor *tensor);
/* The operators that are run next have these two as their first inputs, alone (mul) or in a list (cat). */
void inputs_expect(uint64_t first, uint64_t second);
/* The sub or sum that is run next has this value (its bits) as its third input. Twice for each type, with different values. */
void inputs_expect_value(enum inputs_value type, uint64_t bits);
/* From the start callback of a probe: looks where the inputs of the record are. */
void inputs_look_at(const void *record, const char *name);
/* The first time what is known of tensors, then of values. False: the sizes were not found. */
bool inputs_solve(void);
bool inputs_are_known(void);
/* What was read of a record is compared with what is right: what differs is not read from here on. False: not even the sizes hold. */
bool inputs_check(const char *text, const char *expected);
/* "types, strides" that are left out, "" when nothing is. */
const char *inputs_left_out(void);

/* The record's inputs as a symbol; 0: it has none. Only from a start callback. */
uint32_t inputs_symbol(const void *record);
/* In a forked child: what is remembered are its parent's symbols. */
void inputs_forget(void);
/* The same as text, for the check. */
void inputs_text(const void *record, char *text, size_t bytes);

#endif
