/* SPDX-License-Identifier: Apache-2.0
 *
 * node_makers.c: see node_makers.h.
 */
#include "steps/node_makers.h"

#include "base/hash.h"
#include "base/memory.h"
#include "pytorch/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NODE_ROUNDING_NS 1000 /* rounding of times in these traces */
#define MAKERS_MAX ((size_t)262144)
#define LOOK_AT_MAX ((size_t)4096) /* a node whose operator has another name costs that many comparisons */

/* "aten::_log_softmax" and "autograd::engine::evaluate_function: LogSoftmaxBackward0" are one name: a hash of its letters and digits. */
static uint64_t node_makers_name_of(const char *text)
{
	const char *namespace_end = strrchr(text, ':');
	uint64_t hash = HASH_BYTES;
	for (const char *at = namespace_end ? namespace_end + 1 : text; *at && strncmp(at, "Backward", 8) != 0; at++)
		if (isalnum((unsigned char)*at))
			hash = hash_byte(hash, (uint8_t)tolower((unsigned char)*at));
	return hash;
}

bool node_makers_is_in_node(const struct node_makers *makers, int64_t start_ns)
{
	return makers->is_behind_node && start_ns <= makers->node_end_ns + NODE_ROUNDING_NS;
}

void node_makers_add(struct node_makers *makers, const char *name, int64_t start_ns, size_t record)
{
	if (node_makers_is_in_node(makers, start_ns))
		return;
	if (makers->is_behind_node || makers->count == MAKERS_MAX)
		node_makers_forget(makers);
	MEMORY_GROW(makers->list, makers->count, makers->capacity, 64);
	makers->list[makers->count++] = (struct node_maker){.name = node_makers_name_of(name), .record = record};
}

size_t node_makers_take(struct node_makers *makers, const char *node, int64_t end_ns)
{
	uint64_t name = node_makers_name_of(node);
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
	return NO_NODE_MAKER;
}

void node_makers_move(struct node_makers *makers, size_t less)
{
	for (size_t i = 0; i < makers->count; i++)
		makers->list[i].record -= less;
}

void node_makers_forget(struct node_makers *makers)
{
	makers->count = 0;
	makers->is_behind_node = false;
}

void node_makers_release(struct node_makers *makers)
{
	free(makers->list);
	*makers = (struct node_makers){0};
}
