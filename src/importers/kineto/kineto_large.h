/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_large.h: events that are larger than one read, or than the window.
 */
#ifndef IMPORTERS_KINETO_KINETO_LARGE_H
#define IMPORTERS_KINETO_KINETO_LARGE_H

#include "base/buffer.h"
#include "importers/kineto/kineto_text.h"

/* Returns true if the bracket at `at` is an element of a list within the event that starts at `begin`. Returns false if
 * the JSON before it is broken. */
bool kineto_is_element(const char *begin, const char *at);

#define KINETO_LARGE_MAX ((size_t)16 << 20) /* bytes of an event that kineto_large_read() keeps */
#define KINETO_VALUE_MAX ((size_t)1 << 20)  /* and of one of its values */

/* Skips an event of any size that starts at text->begin. Its text goes into `out`, with large texts cut and large lists
 * replaced by null. Returns false if the event does not end or is malformed; text->begin is then after the bytes
 * examined. */
bool kineto_large_read(struct kineto_text *text, struct buffer *out);

#endif
