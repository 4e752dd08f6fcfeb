/* SPDX-License-Identifier: Apache-2.0
 *
 * inflate.h: reads gzip in pieces, one member after the other. It uses ISA-L, which is about four times as fast as
 * zlib. If the machine has no ISA-L, it uses zlib; the build chooses the file.
 */
#ifndef BASE_INFLATE_H
#define BASE_INFLATE_H

#include <stddef.h>

struct inflater;

enum inflate_result {
	INFLATE_GOES_ON,    /* needs more input or more room */
	INFLATE_MEMBER_END, /* the next data is another member: call inflater_reset() first */
	INFLATE_IS_DAMAGED,
};

struct inflater *inflater_new(void);           /* NULL: out of memory */
void inflater_free(struct inflater *inflater); /* accepts NULL */
void inflater_reset(struct inflater *inflater);
/* Reads up to *in_length bytes and writes up to *out_length bytes. Sets both to the number of bytes used. */
enum inflate_result inflater_run(struct inflater *inflater, const char *in, size_t *in_length, char *out,
                                 size_t *out_length);

#endif
