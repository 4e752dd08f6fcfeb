/* SPDX-License-Identifier: Apache-2.0
 *
 * hot.h: small variables that events read lie side by side, whichever file they are of. Between two events the program's kernels push them out
 * of the processor's caches, by lines, and out of its table of pages, which costs more where a page is looked up for a virtual machine. None of
 * them is written often.
 *
 *     static HOT struct { ... } observer;
 */
#ifndef BASE_HOT_H
#define BASE_HOT_H

#define HOT __attribute__((section("stepscope_hot")))

#endif
