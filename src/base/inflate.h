/* SPDX-License-Identifier: Apache-2.0
 *
 * inflate.h: gzip read in pieces, one member after the other. By ISA-L, some four times as fast as zlib, which stands in where the
 * machine has no ISA-L; the build chooses the file.
 */
#ifndef BASE_INFLATE_H
#define BASE_INFLATE_H

#include <stddef.h>

struct inflater;

enum inflate_result {
	INFLATE_GOES_ON,    /* it wants more input, or more room */
	INFLATE_MEMBER_END, /* what follows is another member: call inflater_reset() first */
	INFLATE_IS_DAMAGED,
};

struct inflater *inflater_new(void);           /* NULL: out of memory */
void inflater_free(struct inflater *inflater); /* accepts NULL */
void inflater_reset(struct inflater *inflater);
/* Takes up to *in_length bytes and gives up to *out_length, and says in both how many that were. */
enum inflate_result inflater_run(struct inflater *inflater, const char *in, size_t *in_length, char *out,
                                 size_t *out_length);

#endif
