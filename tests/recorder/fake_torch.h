/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_torch.h: a library that looks to the observer like libtorch_cpu.so: the functions it looks up, and records, tensors and lists laid
 * out as in some version of PyTorch. What an operator calls is fake_begin() and fake_end().
 */
#ifndef TESTS_FAKE_TORCH_H
#define TESTS_FAKE_TORCH_H

#include <stdint.h>

#define FAKE_API __attribute__((visibility("default")))

enum fake_tag {
	FAKE_NONE = 0,
	FAKE_TENSOR = 1,
	FAKE_DOUBLE = 3,
	FAKE_INT = 5,
	FAKE_BOOL = 10,
	FAKE_STRING = 12,
	FAKE_LIST = 14
};

struct fake_value { /* an IValue */
	uint64_t payload;
	uint32_t tag, unused;
};

struct fake_tensor {
	uint64_t words[32];
	uint64_t more[64]; /* sizes and strides of deep ones */
};

struct fake_list {
	uint64_t words[8];
};

struct fake_record { /* larger than what is read of it in search of places */
	const char *name;
	uint64_t words[80];
};

enum { /* words that count; the rest of each object is noise */
	FAKE_SIZES = 7,
	FAKE_STRIDES = 13,
	FAKE_TYPE = 20,
	FAKE_KEYS = 21,
	FAKE_BEGIN = 2,
	FAKE_ELEMENTS = 5,
	FAKE_SEQUENCE = 25,
	FAKE_INPUTS = 26,
	FAKE_SCHEMA = 30,
	FAKE_FORWARD = 38,
};

enum { /* kinds of tensors, for keys */
	FAKE_PLAIN,
	FAKE_META,
	FAKE_SPARSE,
	FAKE_NESTED,
	FAKE_OPAQUE,   /* no device, and what goes with that */
	FAKE_UNDEFINED /* that alone */
};

struct fake_schema {
	const char *name;
	uint64_t words[7];
};

FAKE_API void fake_begin(int scope, const struct fake_record *record);
FAKE_API void fake_end(int scope, const struct fake_record *record);
/* Is there a callback of the scope, and does it ask for inputs? */
FAKE_API int fake_has_callback(int scope);
FAKE_API int fake_asks(int scope);
FAKE_API extern int64_t fake_sequence; /* what PyTorch's peek() says */

#endif
