/* SPDX-License-Identifier: Apache-2.0
 *
 * file_order.h: several files that are read into one model in any order. Afterwards the model is as if they had been
 * read in the order of their names, `rank10` after `rank9`, like the files of a directory.
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
		uint32_t number;          /* in order of arrival: 0, 1, ... */
		struct model_place place; /* where the file's rows start in the model */
		struct input_text text;   /* all zero: nothing in it can be used */
		/* rank in the file's name, if two ranks may have the same text; -1: files with the same text are
		 * copies */
		int64_t rank;
	} * files;
	uint32_t count, capacity;
};

/* A zeroed struct is empty. */
void file_order_begin(struct file_order *order, const struct model *model, const char *name);
/* Returns true if the name of the latest file sorts before the name of this file. */
bool file_order_is_before(const struct file_order *order, uint32_t number);
/* Returns true if an earlier file has the same text as the latest one and not a different rank. The earlier file then
 * gets whichever of the two names sorts first. Otherwise remembers the text. */
bool file_order_has_text(struct file_order *order, struct input_text text, int64_t rank);
/* Adds a line to the ledger that says that the latest file is a copy. */
void file_order_note_copy(const struct file_order *order, struct model *model);
void file_order_settle(struct file_order *order, struct model *model);
void file_order_release(struct file_order *order);

#endif
