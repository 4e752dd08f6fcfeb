/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_c10.h: a library that looks to the observer like libc10.so: it reports its allocations and releases by calls of two functions of its
 * own, which go through its table.
 */
#ifndef TESTS_FAKE_C10_H
#define TESTS_FAKE_C10_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_C10_API __attribute__((visibility("default")))

FAKE_C10_API extern uint64_t fake_allocations, fake_releases; /* that its own reporter heard of */

/* Only report. */
FAKE_C10_API void fake_allocate(void *address, size_t bytes);
FAKE_C10_API void fake_release(void *address);

#endif
