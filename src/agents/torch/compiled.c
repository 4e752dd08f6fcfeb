/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled.c: see compiled.h. Entries are only added, so that readers need no lock.
 */
#include "agents/torch/compiled.h"

#include "pytorch/names.h"
#include "recorder/emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CODES 256u /* PyTorch stops compiling a function again after 8 times */

static struct {
	uint32_t code;
	uint64_t identity;
} codes[CODES];
static uint32_t code_count; /* atomic */

static void compiled_tell_code(uint32_t index)
{
	char text[64];
	int length = snprintf(text, sizeof(text), PYTORCH_COMPILED_CALL "%" PRIu32 " %" PRIu64, codes[index].code,
	                      codes[index].identity);
	emit_symbol(STEPSCOPE_SYMBOL_TEXT, text, (uint32_t)length);
}

void compiled_add(const char *code, uint64_t identity)
{
	uint32_t count = code_count, number = pytorch_code_number(code, strlen(code));
	if (!number || count == CODES)
		return;
	codes[count].code = number;
	codes[count].identity = identity;
	__atomic_store_n(&code_count, count + 1, __ATOMIC_RELEASE);
	compiled_tell_code(count);
}

bool compiled_is_any(void)
{
	return __atomic_load_n(&code_count, __ATOMIC_RELAXED) > 0;
}

void compiled_tell(void)
{
	for (uint32_t i = 0; i < code_count; i++)
		compiled_tell_code(i);
}

uint64_t compiled_optimizer(const char *name)
{
	uint32_t count = __atomic_load_n(&code_count, __ATOMIC_ACQUIRE);
	uint32_t number = count ? pytorch_code_number(name + strlen(PYTORCH_COMPILED),
	                                              strlen(name) - strlen(PYTORCH_COMPILED))
	                        : 0;
	for (uint32_t i = 0; i < count && number; i++)
		if (codes[i].code == number)
			return codes[i].identity;
	return 0;
}
