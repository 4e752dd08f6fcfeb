/* SPDX-License-Identifier: Apache-2.0
 *
 * objects.c: see objects.h.
 */
#include "agents/python/objects.h"

#define ENTRIES_MAX 65536u

/* Makes room: at most a quarter of the entries is then used. Forgets objects that are gone. */
static bool objects_make_room(struct object_table *table)
{
	uint32_t living = 0;
	for (uint32_t i = 0; i < table->capacity; i++)
		living += table->entries[i].reference &&
		          PyWeakref_GetObject(table->entries[i].reference) == table->entries[i].object;
	uint32_t capacity = 256;
	while (capacity < 4 * living)
		capacity *= 2;
	struct object_entry *entries = living < ENTRIES_MAX ? calloc(capacity, sizeof(*entries)) : NULL;
	if (!entries)
		return false;
	for (uint32_t i = 0; i < table->capacity; i++) {
		struct object_entry *old = &table->entries[i];
		if (!old->reference)
			continue;
		if (PyWeakref_GetObject(old->reference) == old->object)
			*objects_slot(entries, capacity, old->object) = *old;
		else
			Py_DECREF(old->reference);
	}
	free(table->entries);
	table->entries = entries;
	table->capacity = capacity;
	table->count = living;
	return true;
}

bool objects_put(struct object_table *table, PyObject *object, struct object_facts facts)
{
	PyObject *reference = PyWeakref_NewRef(object, NULL);
	if (!reference)
		return false;
	if (2 * (table->count + 1) > table->capacity && (table->is_full || !objects_make_room(table))) {
		table->is_full = true;
		Py_DECREF(reference);
		return true;
	}
	struct object_entry *entry = objects_slot(table->entries, table->capacity, object);
	table->count += !entry->reference;
	Py_XDECREF(entry->reference);
	*entry = (struct object_entry){object, reference, facts};
	return true;
}
