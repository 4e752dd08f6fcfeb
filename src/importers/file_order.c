/* SPDX-License-Identifier: Apache-2.0
 *
 * file_order.c: see file_order.h.
 */
#include "importers/file_order.h"

#include "base/memory.h"
#include "base/merge_sort.h"
#include "importers/text_lines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void file_order_begin(struct file_order *order, const struct model *model, const char *name)
{
	MEMORY_GROW(order->files, order->count, order->capacity, 16);
	struct ordered_file *file = &order->files[order->count];
	*file = (struct ordered_file){.name = strdup(name), .number = order->count, .place = model_place_here(model)};
	if (!file->name)
		memory_exhausted(strlen(name) + 1);
	order->count++;
}

static int file_order_compare(const void *left, const void *right)
{
	const struct ordered_file *a = left, *b = right;
	return strverscmp(a->name, b->name);
}

bool file_order_is_before(const struct file_order *order, uint32_t number)
{
	assert(number < order->count);
	return file_order_compare(&order->files[order->count - 1], &order->files[number]) < 0;
}

bool file_order_has_text(struct file_order *order, struct input_text text, int64_t rank)
{
	assert(order->count > 0);
	struct ordered_file *last = &order->files[order->count - 1];
	for (uint32_t i = 0; i + 1 < order->count; i++) {
		struct ordered_file *file = &order->files[i];
		bool is_other_rank = file->rank >= 0 && rank >= 0 && file->rank != rank;
		if (file->text.bytes != text.bytes || file->text.sum != text.sum || is_other_rank)
			continue;
		/* the name that sorts first wins, in whatever order the files come */
		if (file_order_is_before(order, i)) {
			char *name = file->name;
			file->name = last->name;
			last->name = name;
		}
		return true;
	}
	last->text = text;
	last->rank = rank;
	return false;
}

void file_order_note_copy(const struct file_order *order, struct model *model)
{
	model_add_ledger(model, LEDGER_OTHER, MODEL_NONE, file_name_of(order->files[order->count - 1].name), 1,
	                 "the file has the same text as another file: they are read once");
}

static bool file_order_is_settled(const struct file_order *order)
{
	for (uint32_t i = 1; i < order->count; i++)
		if (file_order_compare(&order->files[i - 1], &order->files[i]) > 0)
			return false;
	return true;
}

void file_order_settle(struct file_order *order, struct model *model)
{
	if (file_order_is_settled(order))
		return;
	struct model_place *places = memory_resize(NULL, (size_t)order->count + 1, sizeof *places);
	uint32_t *numbers = memory_resize(NULL, order->count, sizeof *numbers);
	for (uint32_t i = 0; i < order->count; i++)
		places[i] = order->files[i].place;
	places[order->count] = model_place_here(model);
	merge_sort(order->files, order->count, sizeof *order->files, file_order_compare);
	for (uint32_t i = 0; i < order->count; i++)
		numbers[i] = order->files[i].number;
	model_reorder(model, places, order->count, numbers);
	for (uint32_t i = 0; i < order->count; i++)
		order->files[i].place = places[i];
	free(places);
	free(numbers);
}

void file_order_release(struct file_order *order)
{
	for (uint32_t i = 0; i < order->count; i++)
		free(order->files[i].name);
	free(order->files);
	*order = (struct file_order){0};
}
