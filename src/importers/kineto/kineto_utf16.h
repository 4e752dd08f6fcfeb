/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_utf16.h: UTF-16 as UTF-8.
 */
#ifndef IMPORTERS_KINETO_KINETO_UTF16_H
#define IMPORTERS_KINETO_KINETO_UTF16_H

#include "importers/kineto/kineto_text.h"

/* By its first bytes. */
enum kineto_encoding kineto_encoding_of(const char *head, size_t length);
/* Decodes as many of *length bytes as make whole characters, and says how many that were. out: at least as long and half again. Returns
 * how much was written. */
size_t kineto_decode_utf16(char *out, const char *in, size_t *length, enum kineto_encoding encoding);

#endif
