/* SPDX-License-Identifier: Apache-2.0
 *
 * symbols.h: names as numbers, in the training process. The master copy lives in private memory, so that forked children keep
 * the numbers that the program has stored; a second copy goes to the pool, as long as the file does not have it, so that a kill loses no
 * name. Looking up and adding take no lock and may run in signal handlers.
 */
#ifndef RECORDER_SYMBOLS_H
#define RECORDER_SYMBOLS_H

#include "recorder/pool.h"

#define SYMBOLS_MAX_TEXT 65000u
#define SYMBOLS_MAX (1u << 18)

/* Once per process (forked children inherit it). False when there is no memory. Adds the built-in symbols. */
bool symbols_start(void);

/* In a forked child: nobody uses its parent's inputs and frames any more. They are neither found nor taken. */
void symbols_leave_details(void);

/* In a forked child, where the kernel did not clear what it should: copies go nowhere. */
void symbols_wipe(void);

/* Where copies go from now on. Copies those that exist behind number `written`: the file has the others. */
void symbols_attach_pool(struct pool *pool, uint32_t written);
/* Copies go nowhere from now on. False: a thread may still be writing to the pool before. */
bool symbols_detach_pool(void);
/* For the drainer: when half of the room in the pool is taken, it is freed from the names up to number `written`. */
void symbols_free_copies(uint32_t written);

/* The number of the name, adding it if needed. When the table is full, that of "(too many names)" for what has a beginning and
 * an end or is a mark, else 0. */
uint32_t symbols_intern(enum stepscope_symbol_kind kind, const char *text, uint32_t length);

/* Was a name refused? */
bool symbols_are_full(void);

/* Which kinds there are names of, 1 << kind each: what the program, or a parent that forked it, had anything to say about. */
uint64_t symbols_kinds(void);

/* For the drainer: entries behind number *from, as they go into a SYMBOLS block; returns their bytes (at most `maximum`, whole
 * entries) and moves *from. What an event may use by now is among them; what a thread is still writing comes late. Without details: no
 * inputs and no frames. */
size_t symbols_take(uint32_t *from, bool has_details, void *out, size_t maximum);
/* The lowest number that was passed over and can be taken since the last call, 0: none. Who took behind it goes back there, and takes some
 * others once more. */
uint32_t symbols_take_late(void);

#endif
