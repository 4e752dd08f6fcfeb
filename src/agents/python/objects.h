/* SPDX-License-Identifier: Apache-2.0
 *
 * objects.h: what is known of objects of the program, by their address. A weak reference beside it tells an address that was given out
 * again; nothing is kept alive.
 *
 *     static struct object_table table;
 *     if (!objects_put(&table, module, (struct object_facts){.symbol = symbol}))
 *             PyErr_Clear();
 *     struct object_entry *entry = objects_find(&table, module);
 *
 * Called with the global interpreter lock held. Looking something up takes a few instructions and no memory; what is full (65,536 living
 * objects) takes nothing more in.
 */
#ifndef AGENTS_PYTHON_OBJECTS_H
#define AGENTS_PYTHON_OBJECTS_H

#include "agents/python/native.h"
#include "base/hash.h"

struct object_facts { /* whatever the table's owner wants */
	uint32_t symbol;
	uint64_t identity;
};

struct object_entry {
	PyObject *object;    /* borrowed: only compared */
	PyObject *reference; /* to it; NULL: the entry is free */
	struct object_facts facts;
};

struct object_table { /* starts as {0} */
	struct object_entry *entries;
	uint32_t count, capacity; /* a power of two */
	bool is_full;             /* no more are taken in */
};

/* Where the object is, or would be. */
static inline struct object_entry *objects_slot(struct object_entry *entries, uint32_t capacity, const PyObject *object)
{
	for (uint32_t at = (uint32_t)(hash_word((uintptr_t)object) >> 32);; at++) {
		struct object_entry *entry = &entries[at & (capacity - 1)];
		if (!entry->reference || entry->object == object)
			return entry;
	}
}

/* NULL: not known. */
static inline struct object_entry *objects_find(const struct object_table *table, const PyObject *object)
{
	struct object_entry *entry = table->capacity ? objects_slot(table->entries, table->capacity, object) : NULL;
	if (!entry || !entry->reference || PyWeakref_GetObject(entry->reference) != object)
		return NULL;
	return entry;
}

/* In the place of what was known of it, or of one that had its address. False: it cannot be referred to, and an exception is set. */
bool objects_put(struct object_table *table, PyObject *object, struct object_facts facts);

#endif
