/* SPDX-License-Identifier: Apache-2.0
 *
 * shapes.c: see shapes.h.
 */
#include "recorder/shapes.h"

#include "base/hash.h"
#include "recorder/emit.h"

#define CACHE_ENTRIES 1024u /* hash of the numbers (40 of its bits) << 24 | symbol */

static uint64_t cache[CACHE_ENTRIES];

static int clamp(int value, int maximum)
{
	return value < 0 ? 0 : value > maximum ? maximum : value;
}

static uint64_t hash_shape(const struct stepscope_op_info *info, int inputs)
{
	uint64_t hash = HASH_FACTOR + (uint64_t)inputs;
	for (int i = 0; i < inputs; i++) {
		int rank = clamp(info->rank[i], STEPSCOPE_MAX_DIMS);
		hash = hash_word(hash ^ (uint64_t)rank);
		for (int d = 0; d < rank; d++)
			hash = hash_mix(hash, (uint64_t)info->shape[i][d]);
	}
	return hash;
}

static uint32_t write_shape(const struct stepscope_op_info *info, int inputs)
{
	char text[STEPSCOPE_MAX_INPUTS * STEPSCOPE_MAX_DIMS * 22 + 16];
	size_t length = 0;
	for (int i = 0; i < inputs; i++) {
		int rank = clamp(info->rank[i], STEPSCOPE_MAX_DIMS);
		length += (size_t)snprintf(text + length, sizeof(text) - length, i ? " [" : "[");
		for (int d = 0; d < rank; d++)
			length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%lld", d ? ", " : "",
			                           (long long)info->shape[i][d]);
		length += (size_t)snprintf(text + length, sizeof(text) - length, "]");
	}
	return emit_symbol(STEPSCOPE_SYMBOL_TEXT, text, (uint32_t)length);
}

uint32_t shapes_symbol(const struct stepscope_op_info *info)
{
	int inputs = clamp(info->input_count, STEPSCOPE_MAX_INPUTS);
	if (inputs == 0)
		return 0;
	uint64_t hash = hash_shape(info, inputs);
	uint64_t *entry = &cache[hash & (CACHE_ENTRIES - 1)];
	uint64_t seen = __atomic_load_n(entry, __ATOMIC_RELAXED);
	if (seen && seen >> 24 == hash >> 24)
		return (uint32_t)(seen & 0xffffff);
	uint32_t symbol = write_shape(info, inputs);
	if (symbol)
		__atomic_store_n(entry, (hash >> 24) << 24 | symbol, __ATOMIC_RELAXED);
	return symbol;
}

uint32_t shapes_dtype_symbol(enum stepscope_dtype dtype)
{
	static const char *const names[] = {"",      "float64", "float32", "float16", "bfloat16", "float8",
	                                    "int64", "int32",   "int16",   "int8",    "uint8",    "bool"};
	static uint32_t symbols[sizeof(names) / sizeof(names[0])];
	if ((unsigned)dtype >= sizeof(names) / sizeof(names[0]) || dtype == STEPSCOPE_DTYPE_UNKNOWN)
		return 0;
	uint32_t symbol = __atomic_load_n(&symbols[dtype], __ATOMIC_RELAXED);
	if (symbol == 0) {
		symbol = emit_symbol(STEPSCOPE_SYMBOL_TEXT, names[dtype], (uint32_t)strlen(names[dtype]));
		__atomic_store_n(&symbols[dtype], symbol, __ATOMIC_RELAXED);
	}
	return symbol;
}
