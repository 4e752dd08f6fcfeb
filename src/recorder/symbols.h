/* SPDX-License-Identifier: Apache-2.0
 *
 * symbols.h: names as numbers, in the training process. The master copy is in private memory, so that forked children
 * keep the numbers that the program has stored. A second copy is in the pool until the file has the name, so that a
 * kill loses no name. Lookup and insertion take no lock and may run in signal handlers.
 */
#ifndef RECORDER_SYMBOLS_H
#define RECORDER_SYMBOLS_H

#include "recorder/pool.h"

#define SYMBOLS_MAX_TEXT 65000u
#define SYMBOLS_MAX (1u << 18)

/* Call it once per process; forked children inherit the table. Adds the built-in symbols. Returns false if there is no
 * memory. */
bool symbols_start(void);

/* In a forked child: the parent's inputs and frames are no longer in use. They are neither found nor taken. */
void symbols_leave_details(void);

/* In a forked child, if the kernel did not clear the page of copies: stops copying. */
void symbols_wipe(void);

/* Sets the pool that gets copies of new names. Also copies the names after number `written`, which the file does not
 * have. */
void symbols_attach_pool(struct pool *pool, uint32_t written);
/* Stops copying. Returns false if a thread may still be writing to the previous pool. */
bool symbols_detach_pool(void);
/* For the drainer: if half of the room in the pool is taken, frees the copies of names up to number `written`. */
void symbols_free_copies(uint32_t written);

/* Returns the number of the name, and adds the name if needed. If the table is full, returns the number of "(too many
 * names)" for kinds of spans and marks, otherwise 0. */
uint32_t symbols_intern(enum stepscope_symbol_kind kind, const char *text, uint32_t length);

/* Returns true if a name was refused. */
bool symbols_are_full(void);

/* Returns the kinds of names that exist, 1 << kind each, in this program or in a parent that forked it. */
uint64_t symbols_kinds(void);

/* For the drainer: copies entries after number *from, in the form of a SYMBOLS block, and advances *from. Returns their
 * bytes (at most `maximum`, whole entries). All names that an event may use by now are among them; a name that a thread
 * is still writing comes late. Without `has_details`, inputs and frames are left out. */
size_t symbols_take(uint32_t *from, bool has_details, void *out, size_t maximum);
/* Returns the lowest number that symbols_take() skipped and that was completed since the last call; 0: none. A caller
 * that has passed this number must continue from there, and takes some other names again. */
uint32_t symbols_take_late(void);

#endif
