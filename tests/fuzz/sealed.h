/* SPDX-License-Identifier: Apache-2.0
 *
 * sealed.h: puts the checksums of a segment right, so that nothing hides behind them.
 */
#ifndef FUZZ_SEALED_H
#define FUZZ_SEALED_H

#include "base/crc32c.h"
#include "format/block.h"

#include <stdint.h>
#include <stdlib.h>
#include <stepscope/format.h>
#include <string.h>

static inline void seal_blocks(uint8_t *bytes, size_t size)
{
	struct stepscope_segment_header header;
	if (size < sizeof header)
		return;
	memcpy(&header, bytes, sizeof header);
	segment_header_seal(&header);
	memcpy(bytes, &header, sizeof header);
	for (size_t at = sizeof header; size - at >= sizeof(struct stepscope_block);) {
		struct stepscope_block block;
		memcpy(&block, bytes + at, sizeof block);
		block.magic = STEPSCOPE_BLOCK_MAGIC;
		size_t room = size - at - sizeof block;
		if (block.bytes > room)
			block.bytes = (uint32_t)room;
		block.crc = 0;
		block.crc = crc32c(crc32c(0, &block, sizeof block), bytes + at + sizeof block, block.bytes);
		memcpy(bytes + at, &block, sizeof block);
		at += sizeof block + block.bytes;
	}
}

/* To be freed. */
static inline uint8_t *sealed_copy(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size + 1);
	if (!bytes)
		abort();
	memcpy(bytes, data, size);
	seal_blocks(bytes, size);
	return bytes;
}

#endif
