/* SPDX-License-Identifier: Apache-2.0
 *
 * model_index.h: finds elements of the model's arrays. Private to model/.
 */
#ifndef MODEL_MODEL_INDEX_H
#define MODEL_MODEL_INDEX_H

#include "base/storage.h"
#include "model/model.h"
#include "model/number_map.h"

struct model_index {
	struct number_map series; /* process, name, is_metric */
	struct number_map meta;   /* process, key */
	uint64_t last_series_key; /* cached, because values of one series often follow each other */
	uint32_t last_series;
};

static inline uint64_t model_series_key(const struct value_series *series)
{
	return (uint64_t)series->process << 33 | (uint64_t)series->name << 1 | series->is_metric;
}

static inline uint64_t model_meta_key(uint32_t process, uint32_t key)
{
	return (uint64_t)process << 32 | key;
}

/* Makes room for one more element of a MODEL_ARRAY. */
#define MODEL_ARRAY_GROW(model, name)                                                                                  \
	STORAGE_GROW((model)->storage, (model)->name, (model)->name##_count, (model)->name##_capacity, 16)

/* Returns the phase that a string names: its own number, or 0. */
static inline uint8_t phase_of_string(uint32_t string)
{
	return string < 8 ? (uint8_t)string : 0;
}

#endif
