/* SPDX-License-Identifier: Apache-2.0
 *
 * crc32c.h: CRC-32C (Castagnoli), with the processor's instruction if it has one. Start with crc 0 and chain:
 * crc32c(crc32c(0, a, n), b, m) is the sum of a followed by b. Any thread may call it.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t crc, const void *data, size_t length);

#endif
