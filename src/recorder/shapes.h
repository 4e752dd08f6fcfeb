/* SPDX-License-Identifier: Apache-2.0
 *
 * shapes.h: shapes of tensors as names, "[8, 64, 256] [256, 1024]". A known shape costs one hash of its numbers; its
 * text is written once.
 */
#ifndef RECORDER_SHAPES_H
#define RECORDER_SHAPES_H

#include <stdint.h>
#include <stepscope/stepscope.h>

/* Return symbols of kind text, or 0 if the shape or type is not given. Any thread, also in signal handlers. */
uint32_t shapes_symbol(const struct stepscope_op_info *info);
uint32_t shapes_dtype_symbol(enum stepscope_dtype dtype);

#endif
