/* SPDX-License-Identifier: Apache-2.0
 *
 * run_mask.h: removes secrets from command lines and variables before they are written to a file. It prefers to hide
 * too much: `--num_key_heads=8` is hidden too, because its name contains "key".
 */
#ifndef RUN_RUN_MASK_H
#define RUN_RUN_MASK_H

#include "base/buffer.h"

#define RUN_MASK "***"

/* Appends one argument of a command line. `is_secret` carries "the last argument was --password" to the next call; set
 * it to false before the first. */
void run_mask_argument(struct buffer *out, const char *argument, bool *is_secret);

/* Appends the value of a variable. */
void run_mask_variable(struct buffer *out, const char *name, const char *value);

#endif
