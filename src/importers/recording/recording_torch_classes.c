/* SPDX-License-Identifier: Apache-2.0
 *
 * recording_torch_classes.c: what a record says about a training, by the kind and the text of its symbol, which is looked at once.
 */
#include "base/memory.h"
#include "importers/recording/recording_torch_scan.h"
#include "pytorch/names.h"

#include <stdlib.h>
#include <string.h>

#define MAX_COMPILED 4096u /* optimizers' calls */

/* Interned by the agent before its first operator (src/agents/torch/agent.c). */
static const char agent_name[] = "torch.agent";

static enum record_class class_of_symbol(uint8_t kind, const char *text, uint32_t length)
{
	switch (kind) {
	case STEPSCOPE_SYMBOL_TEXT:
		return record_class_of(NAME_OF_TEXT, text, length);
	case STEPSCOPE_SYMBOL_RANGE:
		return record_class_of(NAME_OF_RANGE, text, length);
	case STEPSCOPE_SYMBOL_OP:
		return record_class_of(NAME_OF_OPERATOR, text, length);
	case STEPSCOPE_SYMBOL_BACKWARD:
		return record_class_of(NAME_OF_GRADIENT, text, length);
	case STEPSCOPE_SYMBOL_SCRIPT:
		return record_class_of(NAME_OF_SCRIPT, text, length);
	case STEPSCOPE_SYMBOL_MODULE:
		return record_class_of(NAME_OF_MODULE, text, length);
	case STEPSCOPE_SYMBOL_ANNOTATION:
		return record_class_of(NAME_OF_ANNOTATION, text, length);
	default:
		return CLASS_UNKNOWN;
	}
}

/* Of the code that the name of a record says. */
static uint32_t code_of(const char *text, uint32_t length)
{
	const uint32_t before = (uint32_t)strlen(PYTORCH_COMPILED);
	return pytorch_code_number(text + before, length - before);
}

/* "torch.compiled CODE OPTIMIZER" */
static void note_compiled(struct torch_scan *scan, const char *text, uint32_t length)
{
	const uint32_t before = (uint32_t)strlen(PYTORCH_COMPILED_CALL);
	char numbers[64], *end;
	if (!pytorch_begins_n(text, length, PYTORCH_COMPILED_CALL) || length - before >= sizeof numbers ||
	    scan->optimizer_count == MAX_COMPILED)
		return;
	memcpy(numbers, text + before, length - before);
	numbers[length - before] = 0;
	uint64_t code = strtoull(numbers, &end, 10);
	if (!(scan->optimizer_count & (scan->optimizer_count + 1)))
		scan->optimizers = memory_resize(scan->optimizers, 2 * (size_t)scan->optimizer_count + 2,
		                                 sizeof *scan->optimizers);
	number_map_set(&scan->compiled, code, scan->optimizer_count);
	scan->optimizers[scan->optimizer_count++] = strtoull(end, NULL, 10);
}

uint64_t torch_compiled_optimizer(const struct torch_scan *scan, uint32_t symbol)
{
	uint32_t code = number_map_find(&scan->codes, symbol);
	uint32_t found = number_map_find(&scan->compiled, code);
	return code == NUMBER_MAP_NONE || found == NUMBER_MAP_NONE ? 0 : scan->optimizers[found];
}

void torch_scan_symbol(struct recording *recording, uint32_t id, uint8_t kind, const char *text, uint32_t length)
{
	struct recorded_session *session = recording->session;
	bool is_mark = kind == STEPSCOPE_SYMBOL_TEXT && length == sizeof agent_name - 1 &&
	               !memcmp(text, agent_name, length);
	if (is_mark && !session->torch) {
		session->torch = memory_resize(NULL, 1, sizeof *session->torch);
		memset(session->torch, 0, sizeof *session->torch);
	}
	struct torch_scan *scan = session->torch;
	enum record_class class = scan ? class_of_symbol(kind, text, length) : CLASS_UNKNOWN;
	if (scan && kind == STEPSCOPE_SYMBOL_TEXT)
		note_compiled(scan, text, length);
	if (class == CLASS_UNKNOWN || id >= 1u << 24)
		return;
	if (id >= scan->class_capacity) {
		uint32_t capacity = (id / 1024 + 1) * 2048;
		scan->classes = memory_resize(scan->classes, capacity, 1);
		memset(scan->classes + scan->class_capacity, 0, capacity - scan->class_capacity);
		scan->class_capacity = capacity;
	}
	scan->classes[id] = (uint8_t) class;
	if (class == CLASS_COMPILED)
		number_map_set(&scan->codes, id, code_of(text, length));
	if (class == CLASS_PROFILER_STEP)
		number_map_set(&scan->profiler_steps, id, pytorch_profiler_step(text, length));
}
