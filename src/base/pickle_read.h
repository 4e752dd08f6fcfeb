/* SPDX-License-Identifier: Apache-2.0
 *
 * pickle_read.h: the data in a Python pickle of protocol 2 to 5: numbers, texts, tuples, lists and dictionaries. It reads data only:
 * nothing in it imports, calls or builds anything. Opcodes with which a pickle makes Python do that end the reading with an error that
 * names the opcode and its place.
 *
 *     struct pickle pickle;
 *     pickle_init(&pickle, (struct pickle_client){take, mine});
 *     status = pickle_read(&pickle, input, path, err);     STATUS_OK also when it is cut off: pickle.end
 *     ...pickle.result...
 *     pickle_release(&pickle);
 *
 * What was complete when a pickle breaks off is in the result: containers that were open are filled with what they had.
 *
 * A client may take the contents of a container as they come, so that large pickles need little memory: `take` gets the items that are
 * put into a list, or keys and values in turn that are put into a dictionary, and says with pickle_take() what the container is from now
 * on. Texts are numbers of pickle.texts; of longer ones the first MiB is kept.
 *
 * Memory is at most 256 MiB and 16 times the bytes of the file (as it is compressed), with what the client says that it keeps
 * (pickle_use()); a pickle that describes more is refused.
 */
#ifndef BASE_PICKLE_READ_H
#define BASE_PICKLE_READ_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/input_stream.h"
#include "base/intern.h"

#include <stdbool.h>
#include <stdint.h>

enum pickle_type {
	PICKLE_NONE,
	PICKLE_BOOL, /* i64 */
	PICKLE_INT,
	PICKLE_LARGE, /* an integer that i64 does not hold */
	PICKLE_FLOAT,
	PICKLE_TEXT,   /* number: of pickle.texts */
	PICKLE_BYTES,  /* contents are not kept */
	PICKLE_OBJECT, /* number: of a list, ... */
	PICKLE_MARK,   /* inside only */
};

struct pickle_value {
	uint32_t type; /* enum pickle_type */
	uint32_t number;
	union {
		int64_t i64;
		double f64;
	};
};

enum pickle_kind {
	PICKLE_LIST,
	PICKLE_DICTIONARY, /* items: keys and values in turn */
	PICKLE_TUPLE,
	PICKLE_TAKEN, /* by the client */
};

struct pickle_object {
	union {
		struct pickle_value *items;
		uint32_t taken; /* what pickle_take() said */
	};
	uint32_t count;
	uint8_t kind;         /* enum pickle_kind */
	uint8_t capacity_log; /* of items: 1 << this */
	uint8_t tag;          /* of what was taken */
};

struct pickle;

struct pickle_client {
	/* Items are put into the object, a list or dictionary (or one that was taken before). True: they need not be kept.
	 * (optional) */
	bool (*take)(void *context, struct pickle *pickle, uint32_t object, const struct pickle_value *items,
	             uint32_t count);
	void (*progress)(void *context); /* (optional) now and then */
	void *context;
};

enum pickle_end {
	PICKLE_COMPLETE,
	PICKLE_CUT,       /* the file ends within the pickle */
	PICKLE_MALFORMED, /* what follows makes no sense */
	PICKLE_REFUSED,
};

struct pickle {
	struct pickle_client client;
	struct intern texts;
	struct pickle_object *objects;
	uint32_t object_count, object_capacity;
	struct pickle_value *stack;
	uint32_t stack_count, stack_capacity;
	uint64_t *memo; /* type << 32 | number; 0: none */
	uint32_t memo_count, memo_capacity;
	uint64_t used_bytes;
	struct buffer text;
	/* the file */
	struct input_stream *input;
	uint8_t *window;
	size_t begin, window_end;
	uint64_t window_offset;
	struct error input_error; /* why, when it is not the end of the file */
	/* what became of it */
	enum pickle_end end;
	struct pickle_value result;
	uint64_t offset; /* of the opcode that is read: where it ended */
	uint8_t opcode;
	uint64_t cut_texts, odd_texts, refused_items; /* odd: no UTF-8, where U+FFFD stands now */
};

void pickle_init(struct pickle *pickle, struct pickle_client client);
void pickle_release(struct pickle *pickle);

/* Could these first bytes be a pickle's of protocol 2 to 5? */
bool pickle_begins(const char *head, size_t length);

/* Reads all of it. Fails when the pickle is refused; what the file did not deliver is in pickle->input_error. */
enum status pickle_read(struct pickle *pickle, struct input_stream *input, const char *path,
                        struct error *err) MUST_CHECK;

/* What the client keeps of it counts, too. */
static inline void pickle_use(struct pickle *pickle, uint64_t bytes)
{
	pickle->used_bytes += bytes;
}

/* The object is what the client says from now on; frees its items. */
void pickle_take(struct pickle *pickle, uint32_t object, uint8_t tag, uint32_t taken, uint32_t count);

/* NULL: the value is none of that kind. */
static inline const struct pickle_object *pickle_object(const struct pickle *pickle, const struct pickle_value *value,
                                                        enum pickle_kind kind)
{
	const struct pickle_object *object = value && value->type == PICKLE_OBJECT ? &pickle->objects[value->number]
	                                                                           : NULL;
	return object && object->kind == kind ? object : NULL;
}

/* NULL: it was not taken as that. */
static inline const struct pickle_object *pickle_taken(const struct pickle *pickle, const struct pickle_value *value,
                                                       uint8_t tag)
{
	const struct pickle_object *object = pickle_object(pickle, value, PICKLE_TAKEN);
	return object && object->tag == tag ? object : NULL;
}

/* The value of a dictionary's key; NULL: it is not among its first 64. */
const struct pickle_value *pickle_find(const struct pickle *pickle, const struct pickle_object *dictionary,
                                       const char *key);
/* NULL: no text. */
const char *pickle_text(const struct pickle *pickle, const struct pickle_value *value);

#endif
