/* SPDX-License-Identifier: Apache-2.0
 *
 * objects.h: facts about objects of the program, by their address. A weak reference beside each address shows whether
 * the address was reused; no object is kept alive.
 *
 *     static struct object_table table;
 *     if (!objects_put(&table, module, (struct object_facts){.symbol = symbol}))
 *             PyErr_Clear();
 *     struct object_entry *entry = objects_find(&table, module);
 *
 * Called with the global interpreter lock held. A look-up takes a few instructions and no memory. A full table (65,536
 * living objects) takes no more objects.
 */
#ifndef AGENTS_PYTHON_OBJECTS_H
#define AGENTS_PYTHON_OBJECTS_H

#include "agents/python/native.h"
#include "base/hash.h"

struct object_facts { /* their meaning depends on the table's owner */
	uint32_t symbol;
	uint32_t session; /* in which facts about the object were recorded */
	uint64_t identity;
};

struct object_entry {
	PyObject *object;    /* borrowed: only compared */
	PyObject *reference; /* weak reference to the object; NULL: the entry is free */
	struct object_facts facts;
};

struct object_table { /* starts as {0} */
	struct object_entry *entries;
	uint32_t count, capacity; /* a power of two */
	bool is_full;             /* takes no more objects */
};

/* Returns the entry of the object, or the free entry for it. */
static inline struct object_entry *objects_slot(struct object_entry *entries, uint32_t capacity, const PyObject *object)
{
	for (uint32_t at = (uint32_t)(hash_word((uintptr_t)object) >> 32);; at++) {
		struct object_entry *entry = &entries[at & (capacity - 1)];
		if (!entry->reference || entry->object == object)
			return entry;
	}
}

/* Returns NULL if the object is unknown. */
static inline struct object_entry *objects_find(const struct object_table *table, const PyObject *object)
{
	struct object_entry *entry = table->capacity ? objects_slot(table->entries, table->capacity, object) : NULL;
	if (!entry || !entry->reference || PyWeakref_GetObject(entry->reference) != object)
		return NULL;
	return entry;
}

/* Replaces the facts about the object, or about an earlier object with its address. Does nothing if the table is full.
 * Returns false if the object cannot have weak references, with an exception. */
bool objects_put(struct object_table *table, PyObject *object, struct object_facts facts);

#endif
