/* SPDX-License-Identifier: Apache-2.0
 *
 * hot.h: puts small variables that events read next to each other, from whatever file. Between two events, the
 * program's kernels push them out of the processor's caches, line by line. They also push them out of the TLB, and a
 * page walk costs more in a virtual machine. These variables are rarely written.
 *
 *     static HOT struct { ... } observer;
 */
#ifndef BASE_HOT_H
#define BASE_HOT_H

#define HOT __attribute__((section("stepscope_hot")))

#endif
