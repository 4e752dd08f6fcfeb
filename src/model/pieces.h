/* SPDX-License-Identifier: Apache-2.0
 *
 * pieces.h: reorders a model read from several files. The members of an archive are read in the order of the archive,
 * which may not be the order wanted.
 *
 *     places[i] = model_place_here(model);   // before file i is read, and once after the last one
 *     ...
 *     model_reorder(model, places, count, order);
 *
 * Before model_finish(). No file may refer to data of another file.
 */
#ifndef MODEL_PIECES_H
#define MODEL_PIECES_H

#include "model/model.h"

/* Arrays of the model whose elements belong to one file each. Strings and the values of series are not reordered. */
#define MODEL_PIECE_ARRAYS(X)                                                                                          \
	X(processes)                                                                                                   \
	X(tracks)                                                                                                      \
	X(steps)                                                                                                       \
	X(series)                                                                                                      \
	X(memory)                                                                                                      \
	X(owners)                                                                                                      \
	X(segments)                                                                                                    \
	X(readings)                                                                                                    \
	X(marks)                                                                                                       \
	X(args)                                                                                                        \
	X(links)                                                                                                       \
	X(stacks)                                                                                                      \
	X(samples)                                                                                                     \
	X(meta)                                                                                                        \
	X(ledger)

struct model_place { /* number of elements in each array */
#define X(name) uint32_t name;
	MODEL_PIECE_ARRAYS(X)
#undef X
};

struct model_place model_place_here(const struct model *model);

/* Removes all elements added since that place. */
void model_forget(struct model *model, const struct model_place *since);

/* Piece i is between places[i] and places[i + 1], for `count` pieces. Elements before places[0] stay in front.
 * Afterwards piece order[0] is the first, and places[i] is the start of the i-th piece in the new order. */
void model_reorder(struct model *model, struct model_place *places, uint32_t count, const uint32_t *order);

/* Rebuilds the index after processes or array positions were renumbered: its keys contain processes, its values are
 * positions. */
void model_index_again(struct model *model);

#endif
