/* SPDX-License-Identifier: Apache-2.0
 *
 * types.h: the types of a tensor's elements, by PyTorch's own numbers, which do not change.
 *
 *     const struct pytorch_type *type = pytorch_type(6);         "float", "float32", 4 bytes
 *     const struct pytorch_type *type = pytorch_type_named(text, length);
 */
#ifndef PYTORCH_TYPES_H
#define PYTORCH_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct pytorch_type {
	const char *name;  /* the name in C++, which traces use */
	const char *dtype; /* the name in Python */
	uint8_t bytes;     /* of an element; 0: less than one byte, or several elements in one */
};

#define PYTORCH_TYPES 46u

/* Returns NULL if no type has that number, or if it is unknown. */
static inline const struct pytorch_type *pytorch_type(uint64_t number)
{
	static const struct pytorch_type types[PYTORCH_TYPES] = {
		{"unsigned char", "uint8", 1},
		{"signed char", "int8", 1},
		{"short int", "int16", 2},
		{"int", "int32", 4},
		{"long int", "int64", 8},
		{"c10::Half", "float16", 2},
		{"float", "float32", 4},
		{"double", "float64", 8},
		{"c10::complex<c10::Half>", "complex32", 4},
		{"c10::complex<float>", "complex64", 8},
		{"c10::complex<double>", "complex128", 16},
		{"bool", "bool", 1},
		{"c10::qint8", "qint8", 1},
		{"c10::quint8", "quint8", 1},
		{"c10::qint32", "qint32", 4},
		{"c10::BFloat16", "bfloat16", 2},
		{"c10::quint4x2", "quint4x2", 0},
		{"c10::quint2x4", "quint2x4", 0},
		[23] = {"c10::Float8_e5m2", "float8_e5m2", 1},
		{"c10::Float8_e4m3fn", "float8_e4m3fn", 1},
		{"c10::Float8_e5m2fnuz", "float8_e5m2fnuz", 1},
		{"c10::Float8_e4m3fnuz", "float8_e4m3fnuz", 1},
		{"short unsigned int", "uint16", 2},
		{"unsigned int", "uint32", 4},
		{"long unsigned int", "uint64", 8},
		[44] = {"c10::Float8_e8m0fnu", "float8_e8m0fnu", 1},
		{"c10::Float4_e2m1fn_x2", "float4_e2m1fn_x2", 1},
	};
	return number < PYTORCH_TYPES && types[number].name ? &types[number] : NULL;
}

/* Returns true if the name is `known`, with or without a final " int". */
static inline bool pytorch_is_named(const char *known, const char *name, size_t length)
{
	return length && strncmp(known, name, length) == 0 && (!known[length] || strcmp(known + length, " int") == 0);
}

/* Finds a type by its name in C++. Some compilers omit a final " int", or move "unsigned" to the front. NULL:
 * unknown. */
static inline const struct pytorch_type *pytorch_type_named(const char *name, size_t length)
{
	for (uint64_t number = 0; number < PYTORCH_TYPES; number++) {
		const struct pytorch_type *type = pytorch_type(number);
		if (type && pytorch_is_named(type->name, name, length))
			return type;
	}
	if (pytorch_is_named("unsigned short int", name, length))
		return pytorch_type(27);
	if (pytorch_is_named("unsigned long int", name, length))
		return pytorch_type(29);
	return NULL;
}

/* Finds a type by its name in Python. */
static inline const struct pytorch_type *pytorch_type_of_dtype(const char *dtype)
{
	for (uint64_t number = 0; number < PYTORCH_TYPES; number++) {
		const struct pytorch_type *type = pytorch_type(number);
		if (type && strcmp(type->dtype, dtype) == 0)
			return type;
	}
	return NULL;
}

#endif
