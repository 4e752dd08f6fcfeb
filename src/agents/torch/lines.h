/* SPDX-License-Identifier: Apache-2.0
 *
 * lines.h: which line of Python issued an operator: the stack of the thread that begins it, read from CPython's own frames. They cannot
 * change meanwhile, for this thread is the only one that could change them; the global lock, which PyTorch gives away before it begins an
 * operator, does not matter. Python is not called, but for the one function that tells the thread's state; no object is touched.
 *
 *     lines_find() once, lines_check() in functions whose lines are known, then around each record
 *     uint32_t frame = lines_begin(record, depth);     0: none, or the same as that of the record around it
 *     lines_end(depth);
 *     uint32_t frame = lines_here();                   of what is no record: the stack now
 *
 * A stack is a symbol of kind FRAME that names its caller's: see docs/file-format.md. Any thread; no lock, no malloc but one per thread.
 */
#ifndef AGENTS_TORCH_LINES_H
#define AGENTS_TORCH_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks the interpreter up. False: `problem` says why its stacks cannot be read. */
bool lines_find(char *problem, size_t problem_bytes);
/* Compares our stack of this thread with the interpreter's own story, "LINE NAME\nFILE\n" for each frame, innermost first. False: they differ,
 * `problem` says where, and lines stay off. */
bool lines_check(const char *story, char *problem, size_t problem_bytes);
bool lines_are_known(void); /* found, checked at least once, and never wrong */

/* depth: how many records are open around this one in this thread. At its end as many as are then; those that lie on it go down by one. */
uint32_t lines_begin(const void *record, uint32_t depth);
void lines_end(uint32_t depth);
uint32_t lines_here(void); /* 0: as lines_begin() */

/* What reading the calling thread's stack costs now, per frame, in ns; 0: it has none. For reports. */
double lines_measure(void);

/* In a forked child: what is remembered are its parent's symbols. */
void lines_forget(void);
/* For good: before the interpreter takes its threads' states apart. */
void lines_stop(void);
/* Stacks that could not be recorded: no room, or not as they should be. */
uint64_t lines_lost(void);

#endif
