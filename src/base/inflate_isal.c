/* SPDX-License-Identifier: Apache-2.0
 *
 * inflate_isal.c: gzip read by ISA-L.
 */
#include "base/inflate.h"

#include <isa-l/igzip_lib.h>
#include <stdint.h>
#include <stdlib.h>

struct inflater {
	struct inflate_state state;
};

struct inflater *inflater_new(void)
{
	struct inflater *inflater = calloc(1, sizeof *inflater);
	if (inflater) {
		isal_inflate_init(&inflater->state);
		inflater->state.crc_flag = ISAL_GZIP;
	}
	return inflater;
}

void inflater_free(struct inflater *inflater)
{
	free(inflater);
}

void inflater_reset(struct inflater *inflater)
{
	isal_inflate_reset(&inflater->state);
	inflater->state.crc_flag = ISAL_GZIP;
}

enum inflate_result inflater_run(struct inflater *inflater, const char *in, size_t *in_length, char *out,
                                 size_t *out_length)
{
	struct inflate_state *state = &inflater->state;
	uint32_t in_bytes = *in_length > UINT32_MAX ? UINT32_MAX : (uint32_t)*in_length,
		 out_bytes = *out_length > UINT32_MAX ? UINT32_MAX : (uint32_t)*out_length;
	state->next_in = (uint8_t *)(uintptr_t)in; /* the library only reads it */
	state->avail_in = in_bytes;
	state->next_out = (uint8_t *)out;
	state->avail_out = out_bytes;
	int result = isal_inflate(state);
	*in_length = in_bytes - state->avail_in;
	*out_length = out_bytes - state->avail_out;
	if (result < 0 || result == ISAL_NEED_DICT)
		return INFLATE_IS_DAMAGED;
	return state->block_state == ISAL_BLOCK_FINISH ? INFLATE_MEMBER_END : INFLATE_GOES_ON;
}
