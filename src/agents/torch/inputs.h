/* SPDX-License-Identifier: Apache-2.0
 *
 * inputs.h: the sizes of an operator's input tensors, read from PyTorch's own objects at offsets that were found by looking at tensors
 * whose answers are known, and checked on more of them before anything is read in earnest.
 */
#ifndef AGENTS_TORCH_INPUTS_H
#define AGENTS_TORCH_INPUTS_H

#include "agents/torch/entry.h"

#define INPUTS_TEXT_BYTES 4096

enum inputs_probe {
	INPUTS_PLAIN,   /* a tensor in memory, of any type: may be trusted */
	INPUTS_META,    /* on the device "meta" */
	INPUTS_FOREIGN, /* sparse: lays out its sizes elsewhere, or lies about them */
};

/* A tensor (address of its TensorImpl) with its sizes; all of them before inputs_solve(). */
void inputs_add_tensor(uint64_t tensor, enum inputs_probe kind, const int64_t *sizes, int count);
/* The operators that are run next have these two as their first inputs, alone (mul) or in a list (cat). */
void inputs_expect(uint64_t first, uint64_t second);
/* From the start callback of a probe: looks where the inputs of the record are. */
void inputs_look_at(const void *record, const char *name);
/* False: not every place was found, or not just one. */
bool inputs_solve(void);
bool inputs_are_known(void);

/* "[3, 5] [5] []" of the record, as a symbol; 0: it has no inputs. Only from a start callback. */
uint32_t inputs_symbol(const void *record);
/* The same as text, for the check. */
void inputs_text(const void *record, char *text, size_t bytes);

#endif
