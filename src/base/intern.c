/* SPDX-License-Identifier: Apache-2.0
 *
 * intern.c: an array of strings and a hash table of their numbers. A slot holds the number of a string; 0 is free.
 */
#include "base/intern.h"

#include "base/hash.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 256u
#define MAXIMUM_COUNT (1u << 30)

void intern_init(struct intern *intern)
{
	*intern = (struct intern){0};
	arena_init(&intern->arena, 0);
}

void intern_release(struct intern *intern)
{
	arena_release(&intern->arena);
	free(intern->entries);
	free(intern->slots);
	intern_init(intern);
}

static uint32_t intern_hash_of(const char *text, size_t length)
{
	return (uint32_t)(hash_text(0, text, length) >> 32);
}

/* Returns the slot that holds the string, or the free slot for it. */
static uint32_t *intern_slot_of(const struct intern *intern, const char *text, uint32_t length, uint32_t hash)
{
	uint32_t mask = intern->slot_count - 1;
	uint32_t i = hash & mask;

	for (; intern->slots[i]; i = (i + 1) & mask) {
		const struct intern_entry *entry = &intern->entries[intern->slots[i]];

		if (entry->hash == hash && entry->length == length && !memcmp(entry->text, text, length))
			break;
	}
	return &intern->slots[i];
}

static void intern_grow_slots(struct intern *intern)
{
	uint32_t slot_count = intern->slot_count ? intern->slot_count * 2 : FIRST_SLOTS;
	uint32_t mask = slot_count - 1;

	intern->slots = memory_resize(intern->slots, slot_count, sizeof(*intern->slots));
	memset(intern->slots, 0, slot_count * sizeof(*intern->slots));
	intern->slot_count = slot_count;
	for (uint32_t number = 1; number < intern->count; number++) {
		uint32_t i = intern->entries[number].hash & mask;

		while (intern->slots[i])
			i = (i + 1) & mask;
		intern->slots[i] = number;
	}
}

static void intern_make_room(struct intern *intern)
{
	if (intern->count == intern->capacity) {
		intern->capacity = intern->capacity ? intern->capacity * 2 : FIRST_SLOTS / 2;
		intern->entries = memory_resize(intern->entries, intern->capacity, sizeof(*intern->entries));
	}
	if (!intern->count)
		intern->entries[intern->count++] = (struct intern_entry){"", 0, 0};
	if (intern->count >= intern->slot_count / 2)
		intern_grow_slots(intern);
}

uint32_t intern_add_n(struct intern *intern, const char *text, size_t length)
{
	uint32_t hash;
	uint32_t *slot;

	if (!length)
		return 0;
	if (length > UINT32_MAX - 1)
		length = UINT32_MAX - 1;
	hash = intern_hash_of(text, length);
	if (intern->slot_count) {
		slot = intern_slot_of(intern, text, (uint32_t)length, hash);
		if (*slot)
			return *slot;
	}
	if (intern->count >= MAXIMUM_COUNT)
		return 0;
	intern_make_room(intern);
	slot = intern_slot_of(intern, text, (uint32_t)length, hash);
	intern->entries[intern->count] = (struct intern_entry){arena_dup_n(&intern->arena, text, length),
	                                                       (uint32_t)length, hash};
	*slot = intern->count;
	return intern->count++;
}

uint32_t intern_add(struct intern *intern, const char *text)
{
	return text ? intern_add_n(intern, text, strlen(text)) : 0;
}

uint32_t intern_find(const struct intern *intern, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	if (!length || length > UINT32_MAX - 1 || !intern->slot_count)
		return 0;
	return *intern_slot_of(intern, text, (uint32_t)length, intern_hash_of(text, length));
}

const char *intern_text(const struct intern *intern, uint32_t number)
{
	return number < intern->count ? intern->entries[number].text : "";
}

uint32_t intern_length(const struct intern *intern, uint32_t number)
{
	return number < intern->count ? intern->entries[number].length : 0;
}
