/* SPDX-License-Identifier: Apache-2.0
 *
 * record_empty.h: see record_empty.c.
 */
#ifndef BENCH_RECORD_EMPTY_H
#define BENCH_RECORD_EMPTY_H

#include <stdint.h>

extern unsigned record_empty_active;
void record_empty_begin(uint32_t name);
void record_empty_end(void);

#endif
