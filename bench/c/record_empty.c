/* SPDX-License-Identifier: Apache-2.0
 *
 * record_empty.c: a shared library with two empty functions, to measure the cost of the calls of a pair alone.
 */
#include "record_empty.h"

unsigned record_empty_active = 1;

void record_empty_begin(uint32_t name)
{
	__asm__ volatile("" ::"r"(name));
}

void record_empty_end(void)
{
	__asm__ volatile("");
}
