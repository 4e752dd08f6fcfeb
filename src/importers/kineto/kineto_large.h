/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_large.h: events that are larger than what is read at once, or than the window.
 */
#ifndef IMPORTERS_KINETO_KINETO_LARGE_H
#define IMPORTERS_KINETO_KINETO_LARGE_H

#include "base/buffer.h"
#include "importers/kineto/kineto_text.h"

/* Is the bracket at `at` an element of a list within the event that begins at `begin`? Where JSON is broken before it: no. */
bool kineto_is_element(const char *begin, const char *at);

#define KINETO_LARGE_MAX ((size_t)16 << 20) /* bytes of an event that kineto_large_read() keeps */
#define KINETO_VALUE_MAX ((size_t)1 << 20)  /* and of one of its values */

/* Passes an event, of any size, that begins at text->begin: its text, with large values cut (texts) or null (lists), goes into `out`.
 * False: it does not end, or is not sound; then text->begin is behind what was looked at. */
bool kineto_large_read(struct kineto_text *text, struct buffer *out);

#endif
