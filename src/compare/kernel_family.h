/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_family.h: what a kernel is called when names change with the library, the device or the sizes: "matrix product" for
 * ampere_sgemm_128x64_tn, cutlass_80_... and nvjet_..., the name without its numbers and arguments for others.
 */
#ifndef COMPARE_KERNEL_FAMILY_H
#define COMPARE_KERNEL_FAMILY_H

#include "base/arena.h"

/* In the arena, or a constant. */
const char *kernel_family(const char *name, struct arena *arena);

#endif
