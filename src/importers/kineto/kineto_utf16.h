/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_utf16.h: UTF-16 as UTF-8.
 */
#ifndef IMPORTERS_KINETO_KINETO_UTF16_H
#define IMPORTERS_KINETO_KINETO_UTF16_H

#include "importers/kineto/kineto_text.h"

/* Returns the encoding, by the first bytes of the text. */
enum kineto_encoding kineto_encoding_of(const char *head, size_t length);
/* Decodes the complete characters in the *length bytes, and sets *length to the number of bytes they take. out: at
 * least 1.5 times that size. Returns the number of bytes written. */
size_t kineto_decode_utf16(char *out, const char *in, size_t *length, enum kineto_encoding encoding);

#endif
