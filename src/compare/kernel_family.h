/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_family.h: a kernel's name that stays the same if library, device or sizes change: "matrix product" for
 * ampere_sgemm_128x64_tn, cutlass_80_... and nvjet_..., and for other kernels the name without its numbers and
 * arguments.
 */
#ifndef COMPARE_KERNEL_FAMILY_H
#define COMPARE_KERNEL_FAMILY_H

#include "base/arena.h"

/* Returns a text in the arena, or a constant. */
const char *kernel_family(const char *name, struct arena *arena);

#endif
