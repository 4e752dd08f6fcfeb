/* SPDX-License-Identifier: Apache-2.0
 *
 * file_order.h: several files that are read into one model, one after the other, in whatever order they come: afterwards the model is as if
 * they had been read in the order of their names, `rank10` behind `rank9`, as those of a directory are.
 *
 *     file_order_begin(&order, model, name);   // then read it
 *     ...
 *     file_order_settle(&order, model);        // before model_finish()
 *     ...order.files are by name now...
 *     file_order_release(&order);
 */
#ifndef IMPORTERS_FILE_ORDER_H
#define IMPORTERS_FILE_ORDER_H

#include "model/pieces.h"

struct file_order {
	struct ordered_file {
		char *name;
		uint32_t number;          /* as they came: 0, 1, ... */
		struct model_place place; /* of the model: where what is of it begins */
	} * files;
	uint32_t count, capacity;
};

/* All zero is an empty one. */
void file_order_begin(struct file_order *order, const struct model *model, const char *name);
/* Does the name of the file that was begun last come before that of this one? */
bool file_order_is_before(const struct file_order *order, uint32_t number);
/* Of the file that was begun last and this one. */
void file_order_swap_names(struct file_order *order, uint32_t number);
void file_order_settle(struct file_order *order, struct model *model);
void file_order_release(struct file_order *order);

#endif
