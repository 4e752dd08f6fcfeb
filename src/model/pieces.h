/* SPDX-License-Identifier: Apache-2.0
 *
 * pieces.h: a model that is made of several files, put into an order that is not the one in which they were read: members of an archive come
 * as they lie in it.
 *
 *     places[i] = model_place_here(model);   // before file i is read, and once behind the last one
 *     ...
 *     model_reorder(model, places, count, order);
 *
 * Before model_finish(). No file may refer to what is of another one.
 */
#ifndef MODEL_PIECES_H
#define MODEL_PIECES_H

#include "model/model.h"

/* Arrays of the model, and whether what is in them belongs to a file. Strings and the values of series are not in order. */
#define MODEL_PIECE_ARRAYS(X)                                                                                          \
	X(processes)                                                                                                   \
	X(tracks)                                                                                                      \
	X(steps)                                                                                                       \
	X(series)                                                                                                      \
	X(memory)                                                                                                      \
	X(owners)                                                                                                      \
	X(segments)                                                                                                    \
	X(marks)                                                                                                       \
	X(args)                                                                                                        \
	X(links)                                                                                                       \
	X(stacks)                                                                                                      \
	X(samples)                                                                                                     \
	X(meta)                                                                                                        \
	X(ledger)

struct model_place { /* how many elements each array has */
#define X(name) uint32_t name;
	MODEL_PIECE_ARRAYS(X)
#undef X
};

struct model_place model_place_here(const struct model *model);

/* All that was added since, as if it had never been. */
void model_forget(struct model *model, const struct model_place *since);

/* Piece i lies between places[i] and places[i + 1], of `count` pieces; what is before places[0] stays in front. Afterwards piece order[0] is
 * the first, and places[i] is where the ith piece in that order begins. */
void model_reorder(struct model *model, struct model_place *places, uint32_t count, const uint32_t *order);

/* When processes or places in the arrays have other numbers: keys hold those, values these. */
void model_index_again(struct model *model);

#endif
