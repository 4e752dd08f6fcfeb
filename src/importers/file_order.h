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

#include "base/input_stream.h"
#include "model/pieces.h"

struct file_order {
	struct ordered_file {
		char *name;
		uint32_t number;          /* as they came: 0, 1, ... */
		struct model_place place; /* of the model: where what is of it begins */
		struct input_text text;   /* all zero: nothing in it can be used */
		int64_t rank; /* that its name tells, where the same text may be that of two ranks; -1: it is one */
	} * files;
	uint32_t count, capacity;
};

/* All zero is an empty one. */
void file_order_begin(struct file_order *order, const struct model *model, const char *name);
/* Does the name of the file that was begun last come before that of this one? */
bool file_order_is_before(const struct file_order *order, uint32_t number);
/* Has a file before the one that was begun last, which was read, the same text, and no other rank? Then of the two names the one that comes first is that of the
 * other. Else the text is remembered. */
bool file_order_has_text(struct file_order *order, struct input_text text, int64_t rank);
/* A line of the ledger: the file that was begun last is such a copy. */
void file_order_note_copy(const struct file_order *order, struct model *model);
void file_order_settle(struct file_order *order, struct model *model);
void file_order_release(struct file_order *order);

#endif
