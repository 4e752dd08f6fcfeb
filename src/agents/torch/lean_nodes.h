/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_nodes.h: for the files lean*.c only: the name of the engine's record of a node, without building it for each
 * node ("autograd::engine::evaluate_function: AddBackward0"). The class of the node determines the name, if it is one
 * of PyTorch's own classes whose nodes all have one name.
 */
#ifndef AGENTS_TORCH_LEAN_NODES_H
#define AGENTS_TORCH_LEAN_NODES_H

#include "agents/torch/process.h"

#define LEAN_NODE_NAME_BYTES 4200 /* more than the recorder keeps of a name */

/* Finds the functions in libtorch_cpu. Returns false if they are not as expected. */
bool lean_nodes_find(const struct loaded *loaded);
/* Returns a schema with that name, valid for good, or NULL if nodes of this class may have different names. Throws
 * only exceptions that PyTorch would throw, too. */
const void *lean_nodes_schema(const void *node);
/* Builds the name. Returns `text`. */
const char *lean_nodes_name(const void *node, char text[LEAN_NODE_NAME_BYTES]);

#endif
