/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_makers.c: see kineto_makers.h.
 */
#include "importers/kineto/kineto_makers.h"

#include "base/hash.h"
#include "base/memory.h"
#include "importers/kineto/kineto_stage.h"
#include "pytorch/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAKERS_MAX ((size_t)262144)
#define LOOK_AT_MAX ((size_t)4096) /* a node whose operator has another name costs that many comparisons */

/* "aten::_log_softmax" and "autograd::engine::evaluate_function: LogSoftmaxBackward0" are one name: a hash of its letters and digits. */
static uint64_t kineto_makers_name_of(const char *text)
{
	const char *namespace_end = strrchr(text, ':');
	uint64_t hash = HASH_BYTES;
	for (const char *at = namespace_end ? namespace_end + 1 : text; *at && strncmp(at, "Backward", 8) != 0; at++)
		if (isalnum((unsigned char)*at))
			hash = hash_byte(hash, (uint8_t)tolower((unsigned char)*at));
	return hash;
}

bool kineto_makers_is_in_node(const struct kineto_makers *makers, int64_t start_ns)
{
	return makers->is_behind_node && start_ns <= makers->node_end_ns + KINETO_ROUNDING_NS;
}

void kineto_makers_add(struct kineto_makers *makers, const char *name, int64_t start_ns, size_t record)
{
	if (kineto_makers_is_in_node(makers, start_ns))
		return;
	if (makers->is_behind_node || makers->count == MAKERS_MAX)
		kineto_makers_forget(makers);
	MEMORY_GROW(makers->list, makers->count, makers->capacity, 64);
	makers->list[makers->count++] = (struct kineto_maker){.name = kineto_makers_name_of(name), .record = record};
}

size_t kineto_makers_take(struct kineto_makers *makers, const char *node, int64_t end_ns)
{
	uint64_t name = kineto_makers_name_of(node);
	size_t first = makers->count > LOOK_AT_MAX ? makers->count - LOOK_AT_MAX : 0;
	/* Older versions say nothing of the engine, which then adds up gradients between two nodes of one backward. */
	makers->is_behind_node = pytorch_begins(node, PYTORCH_ENGINE);
	makers->node_end_ns = end_ns;
	for (size_t i = makers->count; i-- > first;) {
		if (makers->list[i].name != name)
			continue;
		makers->count = i;
		return makers->list[i].record;
	}
	return KINETO_NO_MAKER;
}

void kineto_makers_move(struct kineto_makers *makers, size_t less)
{
	for (size_t i = 0; i < makers->count; i++)
		makers->list[i].record -= less;
}

void kineto_makers_forget(struct kineto_makers *makers)
{
	makers->count = 0;
	makers->is_behind_node = false;
}

void kineto_makers_release(struct kineto_makers *makers)
{
	free(makers->list);
	*makers = (struct kineto_makers){0};
}
