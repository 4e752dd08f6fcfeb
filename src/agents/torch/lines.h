/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.h: the line of Python that issued an operator: the stack of the thread that starts the operator, read from
 * CPython's own frames. The frames cannot change meanwhile, because only this thread could change them. PyTorch
 * releases the global lock before it starts an operator, which does not matter. The only Python function that is
 * called returns the thread's state; no object is touched.
 *
 *     lines_find() once, lines_check() in functions whose lines are known, then around each record
 *     uint32_t frame = lines_begin(record, depth);     0: none, or the same as that of the record around it
 *     lines_end(depth);
 *     uint32_t frame = lines_here();                   the stack now, if there is no record
 *
 * A stack is a symbol of kind FRAME that names its caller's: see docs/file-format.md. Any thread; no lock, no malloc
 * but one per thread.
 */
#ifndef AGENTS_TORCH_LINES_H
#define AGENTS_TORCH_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks up the interpreter. Returns false if its stacks cannot be read, with the reason in `problem`. */
bool lines_find(char *problem, size_t problem_bytes);
/* Compares our stack of this thread with the interpreter's own, "LINE NAME\nFILE\n" for each frame, innermost first.
 * Returns false if they differ: `problem` has the place, and lines stay off. */
bool lines_check(const char *story, char *problem, size_t problem_bytes);
bool lines_are_known(void); /* found, checked at least once, and never wrong */

/* depth: number of records open around this one in this thread. lines_end() takes the number at the time of the end;
 * records above move down by one. */
uint32_t lines_begin(const void *record, uint32_t depth);
void lines_end(uint32_t depth);
uint32_t lines_here(void); /* 0: as for lines_begin() */

/* Returns the present cost of reading the calling thread's stack, in ns per frame; 0: it has no stack. For reports. */
double lines_measure(void);

/* In a forked child: forgets the parent's symbols. */
void lines_forget(void);
/* Stops for good. Call before the interpreter destroys its thread states. */
void lines_stop(void);
/* Returns the number of stacks that could not be recorded: there was no room, or they were not as expected. */
uint64_t lines_lost(void);

#endif
