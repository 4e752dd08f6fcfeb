/* SPDX-License-Identifier: Apache-2.0
 *
 * name_classes.h: the class of a name, found once per name: traces have millions of spans and hundreds of names.
 *
 *     struct name_classes classes = {.classify = my_function}; // uint8_t my_function(const char *name), 0..254
 *     switch (name_class(&classes, model, chunk->name[i])) ...
 *     name_classes_release(&classes);
 */
#ifndef MODEL_NAME_CLASSES_H
#define MODEL_NAME_CLASSES_H

#include "model/model.h"

struct name_classes {
	uint8_t (*classify)(const char *name);
	uint8_t *classes; /* by string: 1 + class, 0: not classified yet */
	uint32_t capacity;
};

uint8_t name_class_find(struct name_classes *classes, const struct model *model, uint32_t name); /* the first lookup */

static inline uint8_t name_class(struct name_classes *classes, const struct model *model, uint32_t name)
{
	if (name < classes->capacity && classes->classes[name])
		return (uint8_t)(classes->classes[name] - 1);
	return name_class_find(classes, model, name);
}

void name_classes_release(struct name_classes *classes); /* keeps the function */

#endif
