/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled.h: optimizers whose step was compiled by torch.compile. PyTorch then has only the record of the code, none
 * of the call, and calls no optimizer hooks. The optimizer is known while the code is made. The agent and the
 * recording keep it by the number of the code.
 */
#ifndef AGENTS_TORCH_COMPILED_H
#define AGENTS_TORCH_COMPILED_H

#include <stdbool.h>
#include <stdint.h>

/* The code with this number ("3/1") starts a call of the optimizer. One caller at a time. */
void compiled_add(const char *code, uint64_t identity);
/* Returns true if there is any such code. */
bool compiled_is_any(void);
void compiled_tell(void); /* writes all of them to a recording that starts */
/* Returns the optimizer that the compiled code of this name calls; 0: no optimizer. Any thread. */
uint64_t compiled_optimizer(const char *name);

#endif
