/* SPDX-License-Identifier: Apache-2.0
 *
 * bound.h: private to src/table: what table_bound() promises.
 */
#ifndef TABLE_BOUND_H
#define TABLE_BOUND_H

#include "table/table.h"

/* So much is there before rows are compared and go. */
#define BOUND_ROWS 131072
#define BOUND_ARENA_BYTES ((size_t)192 << 20)

/* Before a row is added: what does not stay, as far as it is known, goes into table->more. */
void bound_make_room(struct table *table);

#endif
