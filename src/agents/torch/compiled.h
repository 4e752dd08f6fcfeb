/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled.h: optimizers whose step torch.compile has made code of. PyTorch then has no record of the call but that of the code, and no
 * hook of optimizers is called. Which code begins a call is known while it is made; here, and in the recording, it is kept by its number.
 */
#ifndef AGENTS_TORCH_COMPILED_H
#define AGENTS_TORCH_COMPILED_H

#include <stdbool.h>
#include <stdint.h>

/* The code with this number ("3/1") begins a call of the optimizer. One caller at a time. */
void compiled_add(const char *code, uint64_t identity);
/* Returns true if there is any such code. */
bool compiled_is_any(void);
void compiled_tell(void); /* all of them, in a recording that begins */
/* Which optimizer the record with this name is a call of; 0: of none. In any thread. */
uint64_t compiled_optimizer(const char *name);

#endif
