/* SPDX-License-Identifier: Apache-2.0
 *
 * run_mask.h: takes secrets out of command lines and variables before they are written down. Errs on the side of
 * hiding: `--num_key_heads=8` is hidden too, since its name has "key" in it.
 */
#ifndef RUN_RUN_MASK_H
#define RUN_RUN_MASK_H

#include "base/buffer.h"

#define RUN_MASK "***"

/* Appends one argument of a command line. `is_secret` carries "the last one was --password" from one argument to the next;
 * false before the first. */
void run_mask_argument(struct buffer *out, const char *argument, bool *is_secret);

/* Appends the value of a variable. */
void run_mask_variable(struct buffer *out, const char *name, const char *value);

#endif
