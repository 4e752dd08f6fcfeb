/* SPDX-License-Identifier: Apache-2.0
 *
 * name_classes.c: see name_classes.h.
 */
#include "model/name_classes.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

uint8_t name_class_find(struct name_classes *classes, const struct model *model, uint32_t name)
{
	if (name >= classes->capacity) {
		uint32_t capacity = 2 * name + 64;

		classes->classes = memory_resize(classes->classes, capacity, 1);
		memset(classes->classes + classes->capacity, 0, capacity - classes->capacity);
		classes->capacity = capacity;
	}
	classes->classes[name] = (uint8_t)(1 + classes->classify(model_text(model, name)));
	return (uint8_t)(classes->classes[name] - 1);
}

void name_classes_release(struct name_classes *classes)
{
	free(classes->classes);
	classes->classes = NULL;
	classes->capacity = 0;
}
