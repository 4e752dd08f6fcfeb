/* SPDX-License-Identifier: Apache-2.0
 *
 * lean_nodes.h: for the files lean*.c only: what the engine calls its record of a node ("autograd::engine::evaluate_function: AddBackward0"),
 * without putting it together for each node: a node's class says it, where that is one of PyTorch's own whose nodes all have one name.
 */
#ifndef AGENTS_TORCH_LEAN_NODES_H
#define AGENTS_TORCH_LEAN_NODES_H

#include "agents/torch/process.h"

#define LEAN_NODE_NAME_BYTES 4200 /* more than is recorded of one */

/* In libtorch_cpu; false: not as known. */
bool lean_nodes_find(const struct loaded *loaded);
/* A schema with that name, for good; NULL: nodes of this class have names of their own. Throws nothing that is not thrown without us. */
const void *lean_nodes_schema(const void *node);
/* Puts the name together. Returns `text`. */
const char *lean_nodes_name(const void *node, char text[LEAN_NODE_NAME_BYTES]);

#endif
