/* SPDX-License-Identifier: Apache-2.0
 *
 * flops.h: floating point operations of PyTorch's operators, from the sizes and values of their inputs, by two
 * definitions:
 *
 * - FLOPS_COUNTER: as torch.utils.flop_counter: multiplications and additions of matrix products, convolutions and
 *   attention. An operator counts if no operator inside it does; the caller ensures this.
 * - FLOPS_PROFILER: as torch.profiler(with_flops=True): of mm, addmm, bmm, baddbmm, conv2d, and one per element of mul
 *   and add, only on records with these names.
 *
 *     struct flops flops = {.model = model};
 *     enum flops_result result = flops_of(&flops, FLOPS_COUNTER, name, inputs, &count);
 *     flops_release(&flops);
 */
#ifndef ANALYSIS_OPERATORS_FLOPS_H
#define ANALYSIS_OPERATORS_FLOPS_H

#include "model/model.h"
#include "model/name_classes.h"
#include "model/number_map.h"

enum flops_definition {
	FLOPS_COUNTER,
	FLOPS_PROFILER,
	FLOPS_DEFINITIONS
};

enum flops_result {
	FLOPS_NO_FORMULA,
	FLOPS_NO_SIZES, /* it has a formula, but its inputs were not recorded */
	FLOPS_UNKNOWN,  /* the recorded inputs do not tell */
	FLOPS_KNOWN
};

struct flops_answer {
	enum flops_result result;
	double count;
};

struct flops {
	const struct model *model;
	struct name_classes entries[FLOPS_DEFINITIONS]; /* 0: no formula; otherwise 1 + place in the list */
	struct number_map seen[FLOPS_DEFINITIONS];      /* name and inputs -> index of answers */
	struct flops_answer *answers;
	uint32_t count, capacity;
};

/* name: string. inputs: string with its inputs, or only with their sizes; 0: none. */
enum flops_result flops_of(struct flops *flops, enum flops_definition definition, uint32_t name, uint32_t inputs,
                           double *count);
/* Returns true if it is already known that the definition has no formula for the name. */
static inline bool flops_has_none(const struct flops *flops, enum flops_definition definition, uint32_t name)
{
	const struct name_classes *entries = &flops->entries[definition];

	return name < entries->capacity && entries->classes[name] == 1;
}
void flops_release(struct flops *flops);

#endif
