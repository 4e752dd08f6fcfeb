/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto_keys.h: the keys of events and of their args.
 */
#ifndef IMPORTERS_KINETO_KINETO_KEYS_H
#define IMPORTERS_KINETO_KINETO_KEYS_H

#include "importers/kineto/kineto_event.h"

enum kineto_field kineto_field_of(const char *text, size_t length); /* KINETO_EVENT_FIELD_COUNT: none */
enum kineto_key kineto_key_of(const char *text, size_t length);
bool kineto_is_document_key(const char *text, size_t length);

#endif
